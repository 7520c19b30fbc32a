package tmux

import (
	"context"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

const (
	// eventPause keeps a burst of events from becoming a burst of processes. The server
	// keeps a signal that nobody waits for, so that none is lost.
	eventPause = 10 * time.Millisecond
	// The backoff of the waiting client while there is no server to wait for.
	minBackoff = 100 * time.Millisecond
	maxBackoff = 5 * time.Second
)

// Events tells that something changed and a new Snapshot is worth its price: a pane died,
// a session closed, the server went away or came back. It carries no facts, and several
// events may become one. It may miss events (people who split a window cause none): it
// hastens the regular listing and does not replace it. The channel is closed soon after
// ctx ends.
//
// Sources are a client that waits for the server's hooks, which Ensure sets, and the
// processes that WatchPanes names.
func (s *Server) Events(ctx context.Context) <-chan struct{} {
	out := make(chan struct{}, 1)
	notify := func() {
		select {
		case out <- struct{}{}:
		default: // one is waiting to be read already
		}
	}
	var running sync.WaitGroup
	running.Go(func() { s.waitForHooks(ctx, notify) })
	if w, err := newWatcher(notify); err == nil {
		s.mu.Lock()
		s.watchers[w] = struct{}{}
		s.mu.Unlock()
		running.Go(w.run)
		running.Go(func() {
			<-ctx.Done()
			s.mu.Lock()
			delete(s.watchers, w)
			s.mu.Unlock()
			w.stop()
		})
	}
	go func() {
		running.Wait()
		close(out)
	}()
	return out
}

// WatchPanes names the processes whose end is an event: the live pane pids of the latest
// snapshot. It replaces the former list. Pids of a server in another pid namespace are
// ignored, and so is everything while no Events runs.
func (s *Server) WatchPanes(pids []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.seen.visible {
		pids = nil
	}
	for w := range s.watchers {
		w.watch(pids)
	}
}

// waitForHooks keeps one client waiting until ctx ends.
func (s *Server) waitForHooks(ctx context.Context, notify func()) {
	// The client must not outlive us, and the kernel takes the end of the thread that
	// started it for ours.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	backoff := minBackoff
	for up := true; ctx.Err() == nil; {
		err := s.waitOnce(ctx)
		pause := eventPause
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			if !up {
				backoff, up = minBackoff, true
			}
			notify()
		default:
			if up { // the server went away
				up = false
				notify()
			}
			pause = backoff
			backoff = min(2*backoff, maxBackoff)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// waitOnce runs a client that ends with the next event. It has no timeout.
func (s *Server) waitOnce(ctx context.Context) error {
	args, err := s.argv([]command{{"wait-for", eventChannel}})
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, s.binary, args...)
	cmd.Env = s.clientEnv
	cmd.WaitDelay = drainDelay
	cmd.SysProcAttr = dieWithUs()
	return cmd.Run()
}
