package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
)

// lockPoll is how often a lock that is held is tried again: a blocking flock could not
// be given up when the context ends.
const lockPoll = 20 * time.Millisecond

// fileLock is held among goroutines and processes, and ends with its process.
type fileLock struct {
	path string
	f    *os.File
}

// acquire waits for the lock until the context ends.
func acquire(ctx context.Context, path string) (*fileLock, error) {
	var held *fileLock
	err := wait.PollUntilContextCancel(ctx, lockPoll, true, func(context.Context) (bool, error) {
		f, err := tryLock(path)
		if err != nil || f == nil {
			return false, err
		}
		held = &fileLock{path: path, f: f}
		return true, nil
	})
	if err == nil {
		return held, nil
	}
	if ctx.Err() == nil {
		return nil, fmt.Errorf("taking the lock %s: %w", path, err)
	}
	return nil, &Error{
		Reason: contextReason(ctx.Err()), Path: path, Err: err,
		Problem: "another caller still works there, holding the lock " + path,
	}
}

func contextReason(err error) Reason {
	if errors.Is(err, context.DeadlineExceeded) {
		return ReasonTimeout
	}
	return ReasonCanceled
}

// tryLock gives nil when the lock is held, or was just removed by its holder.
func tryLock(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		mine, err1 := f.Stat()
		there, err2 := os.Lstat(path)
		if err1 == nil && err2 == nil && os.SameFile(mine, there) {
			return f, nil
		}
	}
	_ = f.Close()
	if err != nil && !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
		return nil, err
	}
	return nil, nil
}

func (l *fileLock) release() { _ = l.f.Close() }

// remove releases the lock and leaves no file behind.
func (l *fileLock) remove() {
	_ = os.Remove(l.path)
	l.release()
}

// lockItems takes the locks of several slugs, in an order that all callers share.
func (m *Manager) lockItems(ctx context.Context, slugs ...string) ([]*fileLock, error) {
	slices.Sort(slugs)
	var held []*fileLock
	for _, slug := range slices.Compact(slugs) {
		l, err := m.lockBelow(ctx, filepath.Join(locksDir, slug))
		if err != nil {
			for _, l := range held {
				l.release()
			}
			return nil, err
		}
		held = append(held, l)
	}
	return held, nil
}

// lockRepository takes the lock beside the shared clone.
func (m *Manager) lockRepository(ctx context.Context, r Repository) (*fileLock, error) {
	return m.lockBelow(ctx, beside(r.dir(), "lock"))
}

func (m *Manager) lockBelow(ctx context.Context, rel string) (*fileLock, error) {
	if err := m.inside(filepath.Join(m.root, rel)); err != nil {
		return nil, err
	}
	return acquire(ctx, filepath.Join(m.root, rel))
}

// beside is the name of a file of ours next to path. No component of a path begins with
// a dot or holds a tilde, so that it is no checkout's, and belongs to this path alone.
func beside(path, suffix string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"~"+suffix)
}
