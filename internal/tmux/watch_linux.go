package tmux

import (
	"errors"
	"sync"

	"golang.org/x/sys/unix"
)

// watcher notices the end of processes. One goroutine polls all of their pidfds.
type watcher struct {
	notify func()
	wake   int // an eventfd: the list has changed, or the watcher stops

	mu      sync.Mutex
	wanted  []int
	changed bool
	stopped bool
	closed  bool
}

func newWatcher(notify func()) (*watcher, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return &watcher{notify: notify, wake: fd}, nil
}

// watch replaces the list of processes.
func (w *watcher) watch(pids []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wanted, w.changed = append([]int(nil), pids...), true
	w.poke()
}

// stop makes run return.
func (w *watcher) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.poke()
}

func (w *watcher) poke() {
	if !w.closed {
		_, _ = unix.Write(w.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

// take hands the new list over, if there is one.
func (w *watcher) take() (pids []int, changed, stopped bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	pids, changed, stopped = w.wanted, w.changed, w.stopped
	w.wanted, w.changed = nil, false
	return pids, changed, stopped
}

// run polls until stop.
func (w *watcher) run() {
	held := map[int]*process{} // nil for one that has ended and is still listed
	defer func() {
		for _, p := range held {
			if p != nil {
				p.close()
			}
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.closed = true
		_ = unix.Close(w.wake)
	}()
	for {
		poked, err := w.poll(held)
		if err != nil {
			return
		}
		if !poked {
			continue
		}
		pids, changed, stopped := w.take()
		if stopped {
			return
		}
		if changed && update(held, pids) {
			w.notify()
		}
	}
}

// poll waits for the end of a process or a poke.
func (w *watcher) poll(held map[int]*process) (poked bool, err error) {
	fds := []unix.PollFd{{Fd: int32(w.wake), Events: unix.POLLIN}}
	var polled []*process
	for _, p := range held {
		if p != nil {
			fds = append(fds, unix.PollFd{Fd: int32(p.fd), Events: unix.POLLIN})
			polled = append(polled, p)
		}
	}
	if _, err := unix.Poll(fds, -1); err != nil {
		if errors.Is(err, unix.EINTR) {
			return false, nil
		}
		return false, err
	}
	for i, p := range polled {
		if fds[i+1].Revents != 0 {
			// It is listed as live until the server notices: once is enough.
			p.close()
			held[p.pid] = nil
			w.notify()
		}
	}
	if fds[0].Revents == 0 {
		return false, nil
	}
	var count [8]byte
	_, _ = unix.Read(w.wake, count[:])
	return true, nil
}

// update makes held the processes with these pids. It reports whether one of them had
// ended already.
func update(held map[int]*process, pids []int) (ended bool) {
	wanted := map[int]bool{}
	for _, pid := range pids {
		wanted[pid] = pid > 1
	}
	for pid, p := range held {
		if !wanted[pid] {
			if p != nil {
				p.close()
			}
			delete(held, pid)
		}
	}
	for pid, ok := range wanted {
		if _, known := held[pid]; known || !ok {
			continue
		}
		p, err := openProcess(pid)
		if errors.Is(err, unix.ESRCH) {
			ended = true
		}
		held[pid] = p // nil: not to be had, and not asked for again while it is listed
	}
	return ended
}
