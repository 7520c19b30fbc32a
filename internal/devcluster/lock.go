package devcluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/theloop-dev/the-loop/internal/filelock"
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

// lockDir takes the directory's lock or fails with a *LockedError.
func lockDir(ctx context.Context, d layout) (*filelock.Lock, error) {
	lock, err := filelock.Own(ctx, d.lock())
	switch held := (*filelock.HeldError)(nil); {
	case errors.As(err, &held):
		return nil, &LockedError{Dir: string(d), PID: held.PID}
	case err != nil && ctx.Err() == nil:
		return nil, d.explain(err)
	}
	return lock, err
}
