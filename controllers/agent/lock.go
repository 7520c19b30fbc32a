package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
)

// lockLingers is how long a lock may outlive its process: a child that was being started
// when the process was killed holds it, too, until it is a program of its own.
const lockLingers = time.Second

// lockDir takes a state directory for this process. The lock ends with the process,
// whatever ends it.
func lockDir(ctx context.Context, dir string) (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, "agent.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the state directory cannot be written: %w; choose another with --state-dir", err)
	}
	switch err := Flock(ctx, f); {
	case errors.Is(err, unix.EWOULDBLOCK):
		holder, _ := io.ReadAll(io.LimitReader(f, 32))
		_ = f.Close()
		return nil, fmt.Errorf("the state directory %s is in use by the agent with pid %s: stop that one, or choose another with --state-dir", dir, strings.TrimSpace(string(holder)))
	case err != nil:
		_ = f.Close()
		return nil, fmt.Errorf("locking the state directory %s: %w", dir, err)
	}
	if err := f.Truncate(0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if _, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// Flock locks a file for this process. It fails with unix.EWOULDBLOCK when the file is locked
// for longer than the lock of a killed process lingers, which is a second.
func Flock(ctx context.Context, f *os.File) error {
	err := wait.PollUntilContextTimeout(ctx, lockLingers/50, lockLingers, true, func(context.Context) (bool, error) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			return false, nil
		}
		return true, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return unix.EWOULDBLOCK
	}
	return err
}
