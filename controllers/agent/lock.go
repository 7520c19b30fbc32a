package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/theloop-dev/the-loop/internal/filelock"
)

// lockDir takes a state directory for this process.
func lockDir(ctx context.Context, dir string) (*filelock.Lock, error) {
	lock, err := filelock.Own(ctx, filepath.Join(dir, "agent.lock"))
	if held := (*filelock.HeldError)(nil); errors.As(err, &held) {
		return nil, fmt.Errorf("the state directory %s is in use by the agent with pid %d: stop that one, or choose another with --state-dir", dir, held.PID)
	}
	if err != nil {
		return nil, fmt.Errorf("the state directory cannot be locked: %w; choose another with --state-dir", err)
	}
	return lock, nil
}
