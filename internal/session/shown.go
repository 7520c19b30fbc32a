package session

import (
	"cmp"
	"fmt"
	"slices"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/tmux"
)

// Shown is the terminal of a session, as a person is shown it.
type Shown struct {
	Target tmux.Target
	// Ended says why it is a record and no live terminal, "" when it is live. What is typed
	// into a record could only be lost, or revive it (U10).
	Ended string
}

// Shown finds the terminal that carries the session's stamp in the newest listing: that
// of another object of its name is not its own. There may be none. An error means that
// the terminal server did not answer.
func (e *Engine) Shown(obj api.HostedSession) (Shown, bool, error) {
	snap, err := e.Lister.Latest()
	if err != nil {
		return Shown{}, false, fmt.Errorf("the terminal server did not answer: %w", err)
	}
	mine := snap.ByUID(string(obj.GetUID()))
	if len(mine) == 0 {
		return Shown{}, false, nil
	}
	found := mine[max(0, slices.IndexFunc(mine, tmux.Session.Live))]
	pane, ok := found.Pane(obj.HostedStatus().PaneID)
	if !ok {
		pane = found.Panes[0]
	}
	ended := record(obj, pane)
	if !ok {
		ended = cmp.Or(ended, "the pane of its harness is gone") // this one is a person's own
	}
	return Shown{
		Target: tmux.Target{UID: found.UID, SessionID: found.ID, PaneID: pane.ID, Epoch: snap.Epoch},
		Ended:  ended,
	}, true, nil
}

// record says why a terminal is a record.
func record(obj api.HostedSession, p tmux.Pane) string {
	switch {
	case obj.GetDeletionTimestamp() != nil:
		return "it is being deleted"
	case obj.WantedState() == api.SessionStateStopped:
		return "it is stopped"
	case obj.WantedState() == api.SessionStateCleanedUp:
		return "it is cleaned up"
	case p.Dead:
		return "its harness has ended"
	}
	return ""
}
