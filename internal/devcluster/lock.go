package devcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// LockedError says that a living process runs the control plane in a directory.
type LockedError struct {
	// Dir is the state directory.
	Dir string
	// PID is the process that holds it; 0 when it has not written it yet.
	PID int
}

// Error names the holder and the way out.
func (e *LockedError) Error() string {
	who := "another process"
	if e.PID != 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("the control plane in %s is already run by %s: end that one first (Ctrl-C in its terminal), or use another state directory",
		e.Dir, who)
}

// lockDir takes the directory's lock or fails with a *LockedError. The lock is
// the kernel's: it ends with the process, and the file stays and means nothing.
func lockDir(ctx context.Context, d layout) (*os.File, error) {
	f, err := os.OpenFile(d.lock(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, d.explain(err)
	}
	switch err = tryLock(ctx, f); {
	case errors.Is(err, unix.EWOULDBLOCK):
		locked := &LockedError{Dir: string(d), PID: readPID(f)}
		_ = f.Close()
		return nil, locked
	case err != nil:
		err = fmt.Errorf("cannot lock %s: %w", f.Name(), err)
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		_ = f.Close()
		return nil, d.explain(err)
	}
	return f, nil
}

// endingWait is how long a process that was just killed gets to let go of the
// lock: its threads and files go one after the other.
const endingWait = 2 * time.Second

// tryLock takes the lock on f. It waits for a holder that is about to be gone,
// at most for endingWait or until ctx ends, and for no other.
func tryLock(ctx context.Context, f *os.File) error {
	ctx, cancel := context.WithTimeout(ctx, endingWait)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case !errors.Is(err, unix.EWOULDBLOCK):
			return err
		}
		if pid := readPID(f); pid != 0 {
			if _, s, inspectErr := inspect(pid); inspectErr != nil || s == stateRunning {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// unlockDir gives the lock up. The pid goes first, so that nobody reads a stale
// one. Closing alone would not do: a child that is just being forked has the
// file too, for a moment.
func unlockDir(f *os.File) {
	_ = f.Truncate(0)
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
	_ = f.Close()
}

func readPID(f *os.File) int {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return pid
}
