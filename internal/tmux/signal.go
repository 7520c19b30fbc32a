package tmux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
)

// pidsVisible reports whether the pids of an epoch's server and its panes are what we
// see under these numbers. In another pid namespace the same number is another process.
func (s *Server) pidsVisible(epoch Epoch) bool {
	seen := s.seenServer()
	return seen.visible && seen.epoch == epoch && processAlive(epoch.PID, seen.start) && IsServer(epoch.PID)
}

// Signal sends a signal to the process of the target's pane, or, when the target names
// none, to that of every live pane of its session: what a person opened beside the harness
// is ended only with the session as a whole (T20).
//
// Each process is held by a pidfd between two listings: only one that still is the
// process of the same live pane, in a session with the same stamp and epoch, gets the
// signal, so that a pid that was given to another process meanwhile never does. Never
// signalled are pids up to 1, the pid of a dead pane, the server and this process. When the
// server lives in another pid namespace it sends the signal itself, under the same guard.
//
// Done means that at least one process got the signal; Detail names them. A session whose
// panes are all dead is Refused, one that does not exist Gone. Errors are *UnknownError.
// Whether the processes end shows in a later snapshot.
func (s *Server) Signal(ctx context.Context, t Target, sig syscall.Signal) (Result, error) {
	const op = "signal"
	if err := t.validate(op, false); err != nil {
		return Result{}, err
	}
	if sig <= 0 {
		return Result{}, fmt.Errorf("tmux signal: %d is no signal", int(sig))
	}
	only := t.PaneID
	t.PaneID = ""
	session, refusal, ok, err := t.stillOurs(s.listSession(ctx, op, t))
	if !ok {
		return refusal, err
	}
	session.Panes = onlyPane(session.Panes, only)
	if !s.pidsVisible(t.Epoch) {
		return s.signalThroughServer(ctx, t, session, sig)
	}
	held := map[string]*process{}
	defer func() {
		for _, p := range held {
			p.close()
		}
	}()
	for _, pane := range session.Panes {
		if pane.Dead || !t.mayBeSignalled(pane.PID) {
			continue
		}
		p, err := openProcess(pane.PID)
		switch {
		case err == nil:
			held[pane.ID] = p
		case errors.Is(err, syscall.ENOSYS): // before Linux 5.3
			return s.signalThroughServer(ctx, t, session, sig)
		case !errors.Is(err, syscall.ESRCH):
			return Result{}, unknown(op, ReasonFailed, fmt.Sprintf("process %d of pane %s cannot be held", pane.PID, pane.ID), err)
		}
	}
	session, refusal, ok, err = t.stillOurs(s.listSession(ctx, op, t))
	if !ok {
		return refusal, err
	}
	var done []string
	var failed error
	for _, pane := range session.Panes {
		p := held[pane.ID]
		if p == nil || pane.Dead || pane.PID != p.pid {
			continue
		}
		switch err := p.signal(sig); {
		case err == nil:
			done = append(done, fmt.Sprintf("%s to %d in %s", signalName(sig), p.pid, pane.ID))
		case !errors.Is(err, syscall.ESRCH):
			failed = errors.Join(failed, fmt.Errorf("process %d of pane %s: %w", p.pid, pane.ID, err))
		}
	}
	return signalled(done, failed)
}

// onlyPane keeps the pane with this id; "" keeps all.
func onlyPane(panes []Pane, id string) []Pane {
	if id == "" {
		return panes
	}
	return slices.DeleteFunc(slices.Clone(panes), func(p Pane) bool { return p.ID != id })
}

func signalled(done []string, failed error) (Result, error) {
	switch {
	case failed != nil:
		return Result{}, unknown("signal", ReasonFailed, joinDetail(done), failed)
	case len(done) == 0:
		return Result{Outcome: Refused, Detail: "no live process is left"}, nil
	}
	return Result{Outcome: Done, Detail: joinDetail(done)}, nil
}

// mayBeSignalled excludes what is never the process of a pane.
func (t Target) mayBeSignalled(pid int) bool {
	return pid > 1 && pid != t.Epoch.PID && pid != os.Getpid()
}

func (s *Server) listSession(ctx context.Context, op string, t Target) (Snapshot, error) {
	return s.list(ctx, op, command{"list-panes", "-s", "-t", t.session(), "-F", paneFormat})
}

// signalThroughServer lets the server run kill(1), in its own pid namespace, one pane at
// a time, each under the guard that it still is the live pane with this pid.
func (s *Server) signalThroughServer(ctx context.Context, t Target, session Session, sig syscall.Signal) (Result, error) {
	var done []string
	var failed error
	for _, pane := range session.Panes {
		if pane.Dead || pane.PID <= 1 || pane.PID == t.Epoch.PID {
			continue
		}
		one := t
		one.PaneID = pane.ID
		pid := strconv.Itoa(pane.PID)
		cond := one.paneGuard([]string{"#{pane_dead}", "#{pane_pid}"}, []string{"0", pid})
		r, err := s.guarded(ctx, "signal", one, command{"if-shell", "-F", "-t", one.pane(), cond,
			"run-shell 'kill -" + signalName(sig) + " " + pid + "' ; display-message -p " + doneMark,
			one.refusal(one.pane(), "-")})
		switch {
		case err != nil:
			failed = errors.Join(failed, fmt.Errorf("pane %s: %w", pane.ID, err))
		case r.Outcome == Done:
			done = append(done, fmt.Sprintf("%s to %d in %s through the server", signalName(sig), pane.PID, pane.ID))
		case r.Outcome == Refused && r.Detail != "":
			// It ended, or was given away, since the listing.
			continue
		}
	}
	return signalled(done, failed)
}
