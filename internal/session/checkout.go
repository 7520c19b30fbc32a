package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/event"
	"github.com/theloop-dev/the-loop/internal/workspace"
)

// Kinds of jobs.
const (
	jobPrepare = "prepare"
	jobRemove  = "remove"
)

const (
	// jobAgain is when to look for the end of a job without a hint: one can be lost.
	jobAgain = 10 * time.Second
	// idleAgain is the same while no job is begun, as right after the start of the agent.
	idleAgain = time.Second
)

// prepared is what came of making a checkout, with what it was made for: the class can
// have changed meanwhile.
type prepared struct {
	workspace.Checkout
	root string
}

// job runs or goes on with a job; again is when to look whether it has ended, 0 when it has.
func (t *turn) job(kind string, do func(context.Context) (any, error)) (o outcome, again time.Duration) {
	o, finished := t.Jobs.run(t.Object.GetUID(), kind, do)
	switch {
	case !finished:
		return o, jobAgain
	case errors.Is(o.err, errJobsIdle):
		return o, idleAgain // no failure, and nothing to tell of
	}
	return o, 0
}

// checkout is what a session is to work in.
type checkout struct {
	config  workspace.Config
	request workspace.Request
}

// checkoutOf says which checkout a session works in: nil when it works elsewhere, because
// it is a standing one, has a directory of its own, or its class checks nothing out.
func (e *Engine) checkoutOf(s *Subject) (*checkout, *Obstacle) {
	w, ok := s.Object.(*api.WorkItemSession)
	if !ok || w.Spec.Conversation != nil {
		return nil, nil
	}
	p := s.Class.Spec.Workspace
	if p.Root == "" {
		if w.Spec.PullRequest == nil {
			return nil, nil
		}
		return nil, &Obstacle{Reason: api.ReasonNoSeparateCheckout, Message: fmt.Sprintf(
			"the session of a pull request needs a checkout of its own, and SessionClass %s checks nothing out: set its spec.workspace.root", s.Class.Name)}
	}
	root, err := e.expand(p.Root)
	if err != nil {
		return nil, &Obstacle{Reason: api.ReasonInvalidSpec, Message: "spec.workspace.root of SessionClass " + s.Class.Name + ": " + err.Error()}
	}
	c := &checkout{
		config: workspace.Config{Root: root, Strategy: workspace.Strategy(p.Strategy), Protocol: workspace.Protocol(p.CloneProtocol)},
	}
	c.request = workspace.Request{Item: RefOf(w)}
	if w.Spec.Workspace != nil {
		c.request.Ref, c.request.Branch = w.Spec.Workspace.Ref, w.Spec.Workspace.Branch
	}
	if pr := w.Spec.PullRequest; pr != nil {
		c.request.PullRequest = pr.Number
		if c.request.Branch == "" {
			// A stranger's head is not to be trusted with the clone that others share.
			c.config.Strategy = workspace.Clone
		}
		// Anything else than its own head would be worked on for the pull request.
		c.request.RequireBranch = c.request.Ref == ""
	}
	return c, nil
}

// checkoutThere reports whether the recorded checkout is on the host.
func checkoutThere(st *api.HostedSessionStatus) bool {
	if st.Checkout == nil {
		return false
	}
	info, err := os.Stat(st.Checkout.Path)
	return err == nil && info.IsDir()
}

// undoToken is the value of the annotation that asks for what was removed, "" when it was
// handled or is not there.
func (t *turn) undoToken() string {
	token := Token(t.Object.GetAnnotations()[api.UndoCleanupAnnotation])
	if token == t.status.LastHandledUndo {
		return ""
	}
	return token
}

// prepareCheckout makes the checkout, or the removed one again where that was asked for.
func (t *turn) prepareCheckout(context.Context) (bool, time.Duration, error) {
	c, token := *t.launch.checkout, t.undoToken()
	undoRoot := t.undoRoot()
	// The token is a part of the kind: a job that was begun before is not what it asks for.
	o, again := t.job(jobPrepare+" "+token, func(ctx context.Context) (any, error) {
		m, err := workspace.New(c.config)
		if err != nil {
			return nil, err
		}
		if token == "" {
			made, err := m.Prepare(ctx, c.request)
			return prepared{made, c.config.Root}, err
		}
		last, err := newestUndo(undoRoot, c.request.Item.String())
		if err != nil {
			return nil, err
		}
		made, err := m.Restore(ctx, *last)
		return prepared{made, c.config.Root}, err
	})
	if again > 0 {
		return false, again, nil
	}
	if o.err != nil {
		return t.checkoutFailed(o.err)
	}
	made := o.value.(prepared)
	t.mem.failed, t.mem.retries, t.mem.checkoutGone = nil, 0, false
	t.status.Checkout = &api.SessionCheckout{Path: made.Path, Root: made.root, Branch: made.Branch}
	if token != "" {
		t.status.LastHandledUndo = token
	}
	t.launch.dir = made.Path
	message := "checked out " + made.Repository.String() + " at " + made.Path
	if token != "" {
		message = "restored what was removed, at " + made.Path
	}
	t.tell(event.WorkspacePrepared, strings.Join(append([]string{message}, made.Notes...), "; "),
		"strategy", made.Strategy, "checkout", made.Path, "branch", made.Branch, "reused", made.Reused, "restored", token != "")
	if made.Missed != nil {
		t.tell(event.WorkspaceRefMissed, "what was checked out is not what was asked for: "+made.Missed.Error(), "checkout", made.Path, "error", made.Missed)
	}
	return true, 0, nil
}

// checkoutFailed says why there is no checkout, and tries again ever more slowly.
func (t *turn) checkoutFailed(err error) (bool, time.Duration, error) {
	reason := string(workspace.ReasonOf(err))
	t.set(api.ConditionWorkspaceReady, metav1.ConditionFalse, reason, err.Error())
	return t.startFailed(reason, err)
}

// undoRoot is where the unsaved work of removed checkouts is, in a directory for each time
// that it is kept, in seconds.
func (e *Engine) undoRoot() string { return filepath.Join(e.Dir, "undo") }

// newestUndo is what was removed last of an item.
func newestUndo(undoRoot, ref string) (*workspace.Undo, error) {
	dirs, err := os.ReadDir(undoRoot)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var last *workspace.Undo
	var unread error
	for _, d := range dirs {
		// What can be read counts, whatever is broken beside it.
		kept, err := workspace.ListUndo(filepath.Join(undoRoot, d.Name()))
		unread = errors.Join(unread, err)
		for i := range kept {
			if kept[i].Ref == ref && (last == nil || kept[i].CreatedAt.After(last.CreatedAt)) {
				last = &kept[i]
			}
		}
	}
	if last == nil && unread != nil {
		return nil, unread
	}
	if last == nil {
		return nil, fmt.Errorf("nothing that was removed of %s is kept: remove the annotation %s to start with a new checkout", ref, api.UndoCleanupAnnotation)
	}
	return last, nil
}

// PruneUndo removes the unsaved work that was kept for long enough, when it was due also
// at the call before: a clock that jumps must not remove it all (T36).
func (e *Engine) PruneUndo() error {
	dirs, err := os.ReadDir(e.undoRoot())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	due := map[string]bool{}
	for _, d := range dirs {
		seconds, convErr := strconv.Atoi(d.Name())
		if convErr != nil {
			continue // not ours
		}
		dir, age := filepath.Join(e.undoRoot(), d.Name()), time.Duration(seconds)*time.Second
		kept, listErr := workspace.ListUndo(dir)
		err = errors.Join(err, listErr)
		newDue := false
		for _, u := range kept {
			if e.Clock.Since(u.CreatedAt) >= age {
				due[u.Dir] = true
				newDue = newDue || !e.dueUndo[u.Dir]
			}
		}
		if newDue {
			continue // the others wait with it
		}
		_, pruneErr := workspace.PruneUndo(dir, e.Clock.Now(), age)
		err = errors.Join(err, pruneErr)
	}
	e.dueUndo = due
	return err
}

// removalOf says what is to be removed of the session's checkout now, and where; an empty
// root is nothing. A cleanup and a deletion look also for what no record tells of.
func (t *turn) removalOf(desired Desired) (root string) {
	w, ok := t.Object.(*api.WorkItemSession)
	if !ok || w.Spec.Conversation != nil || desired == DesiredRunning || desired == DesiredParked {
		return ""
	}
	// A class that cannot be found may have said that it is kept.
	keep := t.Class == nil
	if t.Class != nil {
		keep = ptr.Deref(t.Class.Spec.Workspace.KeepCheckoutOnClose, false)
	}
	if keep && desired != DesiredCleanedUp || t.SharesCheckout {
		return ""
	}
	if t.status.Checkout != nil {
		// Also where it is gone, and that could not be written down: no harm is in a second time.
		return t.status.Checkout.Root
	}
	if desired == DesiredStopped || t.mem.checkoutGone || CleanedUp(t.status) || t.Class == nil {
		return ""
	}
	// Not t.launch.checkout: a harness that is missing by now is no reason to leave it behind.
	c, _ := t.checkoutOf(t.Subject)
	if c == nil {
		return ""
	}
	return c.config.Root
}

// CleanedUp reports that everything of a session was removed from its host. That nothing
// was ever started says less: a checkout may have been under way.
func CleanedUp(st *api.HostedSessionStatus) bool {
	reason, _ := reasonOf(st, api.ConditionSessionRunning)
	return reason == api.ReasonCleanedUp
}

// removeCheckout removes the checkout by its reference alone, and keeps what was not saved.
func (t *turn) removeCheckout() (bool, time.Duration, error) {
	w := t.Object.(*api.WorkItemSession)
	seconds, cfg := int32(604800), workspace.Config{Root: t.removalOf(t.desired())}
	if t.Class != nil {
		seconds = ptr.Deref(t.Class.Spec.Workspace.UndoCleanupSeconds, seconds)
	}
	removal := workspace.Removal{Item: RefOf(w), UndoDir: filepath.Join(t.undoRoot(), strconv.Itoa(int(seconds))), Discard: seconds == 0}
	o, again := t.job(jobRemove, func(ctx context.Context) (any, error) {
		m, err := workspace.New(cfg)
		if err != nil {
			return nil, err
		}
		return m.Remove(ctx, removal)
	})
	if again > 0 {
		return false, again, nil
	}
	done, _ := o.value.(workspace.RemoveResult)
	for _, r := range done.Removed {
		message, undo := "removed the checkout "+r.Path, ""
		if i := slices.IndexFunc(done.Kept, func(u workspace.Undo) bool { return u.Path == r.Path }); i >= 0 {
			undo = done.Kept[i].Dir
			message += fmt.Sprintf("; its unsaved work is kept for %s in %s", time.Duration(seconds)*time.Second, undo)
		}
		t.Store.Emit(event.WorkspaceCleaned, message, "checkout", r.Path, "undo", undo)
	}
	if o.err != nil {
		t.mem.removalProblem, t.mem.removalAt = o.err.Error(), t.now()
		t.Store.Emit(event.WorkspaceCleanupFailed, "the checkout is still there: "+o.err.Error(), "error", o.err)
	} else {
		t.mem.checkoutGone, t.mem.removalProblem, t.status.Checkout = true, "", nil
		t.set(api.ConditionWorkspaceReady, metav1.ConditionFalse, api.ReasonCheckoutRemoved, "the checkout was removed")
	}
	return true, 0, nil
}
