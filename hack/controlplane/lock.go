package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// lockPoll is how often a waiting build looks whether it is its turn.
const lockPoll = 200 * time.Millisecond

// lock takes the exclusive lock on path, waiting for another holder until ctx
// ends. While it waits, waiting is called at once and then after each period of
// every, with the pid of the holder (0 when it is not known). The lock is the
// kernel's (flock): it ends with the process that holds it, however that ends,
// and the file itself stays and means nothing. The returned function releases it.
func lock(ctx context.Context, path string, every time.Duration, waiting func(pid int)) (func(), error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := acquire(ctx, f, every, waiting); err != nil {
		_ = f.Close()
		return nil, err
	}
	// For those who wait; not being able to say it is no reason to fail.
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return func() {
		_ = f.Truncate(0)
		// Closing alone would not do: a child that is just being forked has the
		// file too, for a moment.
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
		_ = f.Close()
	}, nil
}

func acquire(ctx context.Context, f *os.File, every time.Duration, waiting func(pid int)) error {
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	var said time.Time
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR):
			continue
		case !errors.Is(err, syscall.EWOULDBLOCK):
			return fmt.Errorf("cannot lock %s: %w", f.Name(), err)
		}
		if time.Since(said) >= every {
			said = time.Now()
			waiting(holder(f))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// holder reads the pid that the holder of the lock wrote, 0 when it has not yet.
func holder(f *os.File) int {
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
