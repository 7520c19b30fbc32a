package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/theloop-dev/the-loop/internal/tmux"
)

// retainFile in the directory of a deleted session says until when its terminal is
// retained. Without it, it is retained until somebody ends it.
const retainFile = "retain-until"

// leaveSign keeps the session's directory, which shows that a retained terminal without an
// object was ours, and says there when it is to be closed.
func (t *turn) leaveSign(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if t.Class == nil || t.Class.Spec.Tmux.RetainedSecondsAfterClose == nil {
		return nil
	}
	until := t.now().Add(time.Duration(ptr.Deref(t.Class.Spec.Tmux.RetainedSecondsAfterClose, 0)) * time.Second)
	return os.WriteFile(filepath.Join(dir, retainFile), []byte(until.UTC().Format(time.RFC3339)+"\n"), 0o600)
}

// Reap closes the terminals of deleted sessions that were retained for long enough, and
// forgets the unsaved work of checkouts whose time is over, and the control groups that a crash left. What is overdue is seen twice
// before it is ended: a clock that jumps must not end them all (T36). It is called every
// minute, by one goroutine.
func (e *Engine) Reap(ctx context.Context) {
	if err := errors.Join(e.PruneUndo(), e.reapRetained(ctx), e.tidyGroups(), e.reapSeals()); err != nil {
		e.HostLog.Info("not everything that is no longer retained could be removed; it is tried again", "reason", err.Error())
	}
}

func (e *Engine) tidyGroups() error {
	if e.Groups == nil {
		return nil
	}
	return e.Groups.Tidy(e.KnownUID)
}

func (e *Engine) reapRetained(ctx context.Context) error {
	signs, err := filepath.Glob(filepath.Join(e.Dir, "sessions", "*", retainFile))
	if err != nil || len(signs) == 0 {
		return err
	}
	snap, err := e.Lister.Refresh(ctx)
	if err != nil {
		return err
	}
	for _, sign := range signs {
		uid := filepath.Base(filepath.Dir(sign))
		// The memory of a session that is known is its reconciler's alone.
		if e.KnownUID(uid) || !e.overdue(sign) {
			continue
		}
		switch reapErr := e.reap(ctx, snap, uid); {
		case errors.Is(reapErr, errLives): // it is looked at again, and nobody's news
			continue
		case reapErr != nil:
			err = errors.Join(err, reapErr)
			continue
		}
		err = errors.Join(err, os.RemoveAll(filepath.Dir(sign)))
		e.memories.forget(types.UID(uid))
	}
	return err
}

// overdue reports that a sign's time was over also when it was looked at before.
func (e *Engine) overdue(sign string) bool {
	mem := e.memories.of(types.UID(filepath.Base(filepath.Dir(sign))))
	data, err := os.ReadFile(sign)
	until, parseErr := time.Parse(time.RFC3339, strings.TrimSpace(string(data)))
	if err != nil || parseErr != nil || e.Clock.Now().Before(until) {
		mem.overdue = time.Time{}
		return false
	}
	if mem.overdue.IsZero() {
		mem.overdue = e.Clock.Now()
		return false
	}
	return true
}

// errLives: somebody works in a retained terminal.
var errLives = errors.New("it lives")

// reap closes the dead terminals of one session. A live one is left: somebody works in it.
func (e *Engine) reap(ctx context.Context, snap tmux.Snapshot, uid string) error {
	for i := range snap.Sessions {
		s := &snap.Sessions[i]
		if s.UID != uid {
			continue
		}
		if s.Live() {
			return errLives
		}
		res, err := e.Terminal.ClearDead(ctx, s.ID, uid, snap.Epoch)
		if err == nil && res.Outcome != tmux.Done && res.Outcome != tmux.Gone {
			err = fmt.Errorf("the retained terminal %s of a deleted session is not closed: %s", s.Name, res.Detail)
		}
		if err != nil {
			return err
		}
		e.HostLog.Info("retained terminal of a deleted session closed", "terminal", s.Name, "uid", uid)
	}
	return nil
}

// overdueFor is how long a retained terminal has to be seen to be due before it is closed:
// a clock that jumps must not close them all (T36).
const overdueFor = time.Minute

// retainUntil is when the retained terminal is closed, zero for never.
func (t *turn) retainUntil(seconds *int32) time.Time {
	if seconds == nil || t.status.ClosedAt == nil {
		t.mem.overdue = time.Time{}
		return time.Time{}
	}
	due := t.status.ClosedAt.Add(time.Duration(*seconds) * time.Second)
	if t.now().Before(due) {
		t.mem.overdue = time.Time{}
		return due
	}
	if t.mem.overdue.IsZero() {
		t.mem.overdue = t.now()
	}
	return t.mem.overdue.Add(min(overdueFor, time.Duration(*seconds)*time.Second))
}
