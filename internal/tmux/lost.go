package tmux

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

const (
	// reviveTime bounds the wait for a server to make its socket anew.
	reviveTime = time.Second
	// startTime is how old a process is at most that has not made its socket yet.
	startTime = 500 * time.Millisecond
	// remindTime is how often a server that is out of our sight is reminded.
	remindTime = time.Second
)

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
	if (err != nil || peer == epoch.PID) && IsServer(epoch.PID) {
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
	if seen.visible && processAlive(seen.epoch.PID, seen.start) && IsServer(seen.epoch.PID) {
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
	if errors.Is(err, syscall.ESRCH) {
		return serverDead, nil
	}
	lost := func(err error) (serverState, error) {
		return serverDead, unknown(op, ReasonSocketLost, fmt.Sprintf("process %d of the server lives, but nothing listens on %s", pid, s.socket), err)
	}
	if err != nil {
		return lost(err)
	}
	defer p.close()
	if !processAlive(pid, start) {
		return serverDead, nil
	}
	// One that somebody has just started makes its socket by itself.
	young := max(startTime-processAge(start), 0)
	ctx, cancel := context.WithTimeout(ctx, young+reviveTime)
	defer cancel()
	for told := false; ctx.Err() == nil; {
		if _, err := peerPID(s.socket); err == nil {
			return serverBack, nil
		}
		if !told && processAge(start) >= startTime {
			told = true
			if err := p.signal(syscall.SIGUSR1); err != nil && !errors.Is(err, syscall.ESRCH) {
				return lost(err)
			}
		}
		if p.ended(10 * time.Millisecond) {
			return serverDead, nil
		}
	}
	return lost(ctx.Err())
}

// remind makes the server look after children that have ended, when a pane is dead and
// its process a zombie. A tmux that is built with utempter (Debian's is) ignores SIGCHLD for
// the moment in which it records the end of a pane's terminal; a process that ends just
// then stays unnoticed, without exit status and without the pane-died hook, until
// another child ends. The reminder is what tmux does to itself after other uses of
// utempter. The next snapshot knows more, and the hook hastens it.
func (s *Server) remind(ctx context.Context, snap Snapshot) {
	for _, session := range snap.Sessions {
		for _, pane := range session.Panes {
			if !pane.Dying {
				continue
			}
			if !s.pidsVisible(snap.Epoch) {
				s.remindFromInside(ctx)
				return
			}
			if state, _, err := procStat(pane.PID); err == nil && state == 'Z' {
				s.remindServer(snap.Epoch)
				return
			}
		}
	}
}

// remindServer sends SIGCHLD to the server, which makes it wait for all of its children.
func (s *Server) remindServer(epoch Epoch) {
	p, err := openProcess(epoch.PID)
	if err != nil {
		return
	}
	defer p.close()
	if s.pidsVisible(epoch) {
		_ = p.signal(syscall.SIGCHLD)
	}
}

// remindFromInside lets the server run a child of its own, whose end reminds it.
func (s *Server) remindFromInside(ctx context.Context) {
	s.mu.Lock()
	due := time.Since(s.reminded) >= remindTime
	if due {
		s.reminded = time.Now()
	}
	s.mu.Unlock()
	if due {
		_, _ = s.run(ctx, "remind", command{"run-shell", "-b", "true"})
	}
}
