package tmux

import "errors"

// Usage is the memory of the terminal server, in bytes.
type Usage struct {
	// Resident is what its process has now.
	Resident int64
	// Budget is what the scrollback of its panes can come to at most, as they are wide when
	// nobody has attached: the server drops what is beyond the history limit of each.
	Budget int64
}

const (
	// cellBytes is what one character takes at most: five bytes where it stands, for one with
	// a colour of 24 bits or outside ASCII an entry of 19 (from tmux 3.4 on 23), and a tenth
	// for what the allocator cannot use.
	cellBytes = 32
	// lineBytes is what a line takes beside its characters.
	lineBytes = 96
)

// HistoryBudget is what the scrollback of one pane can come to at most, in bytes.
func (s *Server) HistoryBudget(columns int) int64 {
	return int64(s.historyLimit) * int64(columns*cellBytes+lineBytes)
}

// Usage is what the server of a snapshot uses. It reads one file, and asks the server nothing.
func (s *Server) Usage(snap Snapshot) (Usage, error) {
	if snap.Epoch.IsZero() {
		return Usage{}, nil
	}
	if !IsServer(snap.Epoch.PID) {
		return Usage{}, errors.New("tmux: the process of the server is not seen from here")
	}
	u := Usage{}
	for _, session := range snap.Sessions {
		u.Budget += int64(len(session.Panes)) * s.HistoryBudget(defaultWidth)
	}
	var err error
	u.Resident, err = resident(snap.Epoch.PID)
	return u, err
}
