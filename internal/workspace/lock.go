package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/theloop-dev/the-loop/internal/filelock"
)

func contextReason(err error) Reason {
	if errors.Is(err, context.DeadlineExceeded) {
		return ReasonTimeout
	}
	return ReasonCanceled
}

// lockItems takes the locks of several slugs, in an order that all callers share.
func (m *Manager) lockItems(ctx context.Context, slugs ...string) ([]*filelock.Lock, error) {
	slices.Sort(slugs)
	var held []*filelock.Lock
	for _, slug := range slices.Compact(slugs) {
		l, err := m.lockBelow(ctx, filepath.Join(locksDir, slug))
		if err != nil {
			for _, l := range held {
				l.Release()
			}
			return nil, err
		}
		held = append(held, l)
	}
	return held, nil
}

// lockRepository takes the lock beside the shared clone.
func (m *Manager) lockRepository(ctx context.Context, r Repository) (*filelock.Lock, error) {
	return m.lockBelow(ctx, beside(r.dir(), "lock"))
}

// lockBelow waits for a lock until the context ends.
func (m *Manager) lockBelow(ctx context.Context, rel string) (*filelock.Lock, error) {
	path := filepath.Join(m.root, rel)
	if err := m.inside(path); err != nil {
		return nil, err
	}
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err != nil {
		return nil, fmt.Errorf("taking the lock %s: %w", path, err)
	}
	lock, err := filelock.Acquire(ctx, path)
	switch {
	case err == nil:
		return lock, nil
	case ctx.Err() == nil:
		return nil, fmt.Errorf("taking the lock %s: %w", path, err)
	}
	return nil, &Error{
		Reason: contextReason(ctx.Err()), Path: path, Err: err,
		Problem: "another caller still works there, holding the lock " + path,
	}
}

// beside is the name of a file of ours next to path. No component of a path begins with
// a dot or holds a tilde, so that it is no checkout's, and belongs to this path alone.
func beside(path, suffix string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"~"+suffix)
}
