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
		who := "another agent"
		if held.PID != 0 {
			who = fmt.Sprintf("the agent with pid %d", held.PID)
		}
		return nil, fmt.Errorf("the state directory %s is in use by %s: stop that one, or choose another with --state-dir", dir, who)
	}
	if err != nil {
		return nil, fmt.Errorf("the state directory cannot be locked: %w; choose another with --state-dir", err)
	}
	return lock, nil
}
