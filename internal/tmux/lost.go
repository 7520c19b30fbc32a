package tmux

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// reviveTime bounds the wait for a server to make its socket anew.
const reviveTime = time.Second

// seenServer is the server that answered last.
type seenServer struct {
	epoch   Epoch
	version version
	// visible means that epoch.PID is the server's pid for us, too: we share its pid
	// namespace, and the pids of its panes are meaningful here.
	visible bool
	// start is the start time of the process, in ticks since boot; 0 unless visible.
	start uint64
}

func (s *Server) seenServer() seenServer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

// observe records who answered. Who listens on the socket says whether the pid that the
// server has of itself is the one that we see: in another pid namespace the number
// would be some other process of ours.
func (s *Server) observe(epoch Epoch, v version) {
	if s.seenServer().epoch == epoch {
		return
	}
	seen := seenServer{epoch: epoch, version: v}
	peer, err := peerPID(s.socket)
	if (err != nil || peer == epoch.PID) && isServer(epoch.PID) {
		if state, start, err := procStat(epoch.PID); err == nil && state != 'Z' {
			seen.visible, seen.start = true, start
		}
	}
	s.mu.Lock()
	s.seen = seen
	s.mu.Unlock()
	s.warn(versionWarning("server", v))
}

// serverState is what became of a server whose socket does not answer.
type serverState int

const (
	serverDead serverState = iota
	serverBack
)

// lostServer finds the process of our server when nothing listens on its socket:
// the one that answered last, or, after a restart of this process, one that was
// started for this very socket.
func (s *Server) lostServer() (pid int, start uint64, ok bool) {
	seen := s.seenServer()
	if seen.visible && processAlive(seen.epoch.PID, seen.start) && isServer(seen.epoch.PID) {
		return seen.epoch.PID, seen.start, true
	}
	return findServer(s.socket)
}

// reviveSocket is asked when nothing listens on the socket. Somebody may have removed
// the file while the server and all sessions live on: SIGUSR1 makes a tmux server
// create it anew. Without a living process there is authoritatively no server. A
// process that lives and does not come back is an *UnknownError: never absence.
func (s *Server) reviveSocket(ctx context.Context, op string) (serverState, error) {
	pid, start, ok := s.lostServer()
	if !ok {
		return serverDead, nil
	}
	p, err := openProcess(pid)
	if err == nil {
		defer p.close()
		if !processAlive(pid, start) {
			return serverDead, nil
		}
		err = p.signal(syscall.SIGUSR1)
		println("USR1 to", pid, op)
	}
	switch {
	case errors.Is(err, syscall.ESRCH):
		return serverDead, nil
	case err != nil:
		return serverDead, unknown(op, ReasonSocketLost, fmt.Sprintf("nothing listens on %s, and its server, process %d, cannot be told", s.socket, pid), err)
	}
	ctx, cancel := context.WithTimeout(ctx, reviveTime)
	defer cancel()
	for ctx.Err() == nil {
		if _, err := peerPID(s.socket); err == nil {
			return serverBack, nil
		}
		if p.ended(10 * time.Millisecond) {
			return serverDead, nil
		}
	}
	return serverDead, unknown(op, ReasonSocketLost, "the server process lives, but nothing listens on "+s.socket, ctx.Err())
}
