// Package filelock takes locks between processes and goroutines. A lock is the kernel's
// (flock): it ends with its process, whatever ends that, and its file means nothing by itself.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"
)

const (
	// poll is how often a lock that is held is tried again: a blocking flock could not be
	// given up when a context ends.
	poll = 10 * time.Millisecond
	// endingWait is how long a process that was just killed gets to let go of its lock: its
	// threads and files go one after the other, and a child that it was starting has the lock,
	// too, until that is a program of its own.
	endingWait = 2 * time.Second
	// runningWait is the same for one that still seems to run: the signal may not have reached
	// it, or it only looked whether the lock is free.
	runningWait = 500 * time.Millisecond
)

// Lock is one that is held.
type Lock struct {
	path  string
	file  *flock.Flock
	owned bool
}

// HeldError says that another process has a lock.
type HeldError struct {
	// Path is the lock's file.
	Path string
	// PID is the process that has it; 0 when it has not written that yet.
	PID int
}

// Error names the holder.
func (e *HeldError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("another process holds the lock %s", e.Path)
	}
	return fmt.Sprintf("process %d holds the lock %s", e.PID, e.Path)
}

// Acquire waits for the lock until the context ends, whose error it gives then. The file is
// made where there is none, its directory is not.
func Acquire(ctx context.Context, path string) (*Lock, error) {
	return wait(ctx, path, func() error { return nil })
}

// Own takes the lock for as long as this process does something, and writes its pid into the
// file, for people and for others who want it. It fails with a *HeldError where another
// process has it; one that is about to be gone is waited for, two seconds at most.
func Own(ctx context.Context, path string) (*Lock, error) {
	l, err := take(ctx, path)
	if err != nil {
		return nil, err
	}
	l.owned = true
	if err := os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		l.Release()
		return nil, err
	}
	return l, nil
}

// Free looks whether Own would succeed now, and leaves all as it is. It fails as Own does, but
// for what writing would fail for.
func Free(ctx context.Context, path string) error {
	l, err := take(ctx, path)
	if err == nil {
		l.Release()
	}
	return err
}

// take takes the lock, or says who has it.
func take(ctx context.Context, path string) (*Lock, error) {
	begin := time.Now()
	return wait(ctx, path, func() error {
		patience, pid := endingWait, holder(path)
		if running(pid) {
			patience = runningWait
		}
		if time.Since(begin) > patience {
			return &HeldError{Path: path, PID: pid}
		}
		return nil
	})
}

// wait tries until it has the lock, the context ends, or held, which is asked while another
// has it, gives an error.
func wait(ctx context.Context, path string, held func() error) (*Lock, error) {
	for {
		l, err := try(path)
		if l != nil || err != nil {
			return l, err
		}
		if err := held(); err != nil {
			return nil, err
		}
		if err := sleep(ctx); err != nil {
			return nil, err
		}
	}
}

// Release gives the lock up. Its file stays, so that nobody waits for another one.
func (l *Lock) Release() {
	if l.owned {
		if there, err := l.there(); there && err == nil {
			_ = os.Truncate(l.path, 0) // before it is free: nobody is to read a stale pid
		}
	}
	l.owned = false
	for errors.Is(l.file.Close(), unix.EINTR) {
	}
}

// Remove gives the lock up and leaves no file behind.
func (l *Lock) Remove() {
	_ = os.Remove(l.path) // before it is free: another's is not to be removed
	l.Release()
}

// there reports that the lock is that of the file of its name.
func (l *Lock) there() (bool, error) {
	mine, err := l.file.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Lstat(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(mine, named), err
}

// try gives nil where the lock is held, or its file was just removed by who held it.
func try(path string) (*Lock, error) {
	f := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW))
	switch ok, err := f.TryLock(); {
	case errors.Is(err, unix.EINTR):
		return nil, nil
	case err != nil:
		return nil, err
	case !ok:
		return nil, nil
	}
	l := &Lock{path: path, file: f}
	if there, err := l.there(); err != nil || !there {
		l.Release()
		return nil, err
	}
	return l, nil
}

// sleep waits for the next try.
func sleep(ctx context.Context) error {
	t := time.NewTimer(poll)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// holder is the pid that the holder of a lock wrote, 0 when there is none.
func holder(path string) int {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}

// running reports that a process is there and not about to be gone. What the system does not
// tell more of is.
func running(pid int) bool {
	if pid == 0 {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil { // not to be read, or gone
		return !errors.Is(unix.Kill(pid, 0), unix.ESRCH)
	}
	// The second field is the command in parentheses and may contain anything.
	state := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	return len(state) == 0 || state[0] != "Z" && state[0] != "X"
}
