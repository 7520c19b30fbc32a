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
	o, finished := t.Jobs.run(t.Object.GetUID(), jobPrepare, func(ctx context.Context) (any, error) {
		m, err := workspace.New(c.config)
		if err != nil {
			return nil, err
		}
		if token == "" {
			return m.Prepare(ctx, c.request)
		}
		last, err := newestUndo(undoRoot, c.request.Item.String())
		if err != nil {
			return nil, err
		}
		return m.Restore(ctx, *last)
	})
	if !finished {
		return false, 0, nil // the end of the job is a hint
	}
	if o.err != nil {
		return t.checkoutFailed(o.err)
	}
	made := o.value.(workspace.Checkout)
	t.mem.failed, t.mem.retries, t.mem.checkoutGone = nil, 0, false
	t.status.Checkout = &api.SessionCheckout{Path: made.Path, Root: c.config.Root, Branch: made.Branch}
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
	for _, d := range dirs {
		kept, err := workspace.ListUndo(filepath.Join(undoRoot, d.Name()))
		if err != nil {
			return nil, err
		}
		for i := range kept {
			if kept[i].Ref == ref && (last == nil || kept[i].CreatedAt.After(last.CreatedAt)) {
				last = &kept[i]
			}
		}
	}
	if last == nil {
		return nil, fmt.Errorf("nothing that was removed of %s is kept: remove the annotation %s to start with a new checkout", ref, api.UndoCleanupAnnotation)
	}
	return last, nil
}

// PruneUndo removes the unsaved work that was kept for long enough.
func (e *Engine) PruneUndo() error {
	dirs, err := os.ReadDir(e.undoRoot())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, d := range dirs {
		seconds, convErr := strconv.Atoi(d.Name())
		if convErr != nil {
			continue // not ours
		}
		_, pruneErr := workspace.PruneUndo(filepath.Join(e.undoRoot(), d.Name()), e.Clock.Now(), time.Duration(seconds)*time.Second)
		err = errors.Join(err, pruneErr)
	}
	return err
}

// removalOf says what is to be removed of the session's checkout now, and where; an empty
// root is nothing. A cleanup and a deletion look also for what no record tells of.
func (t *turn) removalOf(desired Desired) (root string) {
	w, ok := t.Object.(*api.WorkItemSession)
	if !ok || w.Spec.Conversation != nil || desired == DesiredRunning || t.mem.checkoutGone {
		return ""
	}
	keep := false
	if t.Class != nil {
		keep = ptr.Deref(t.Class.Spec.Workspace.KeepCheckoutOnClose, false)
	}
	if keep && desired != DesiredCleanedUp {
		return ""
	}
	if t.status.Checkout != nil {
		return t.status.Checkout.Root
	}
	atRest := t.status.ClosedAt != nil && t.status.Launch == nil && t.status.StartedAt == nil
	if desired == DesiredStopped || atRest || t.launch.checkout == nil {
		return ""
	}
	return t.launch.checkout.config.Root
}

// removeCheckout removes the checkout by its reference alone, and keeps what was not saved.
func (t *turn) removeCheckout() (bool, time.Duration, error) {
	w := t.Object.(*api.WorkItemSession)
	seconds, cfg := int32(604800), workspace.Config{Root: t.removalOf(t.desired())}
	if t.Class != nil {
		seconds = ptr.Deref(t.Class.Spec.Workspace.UndoCleanupSeconds, seconds)
	}
	removal := workspace.Removal{Item: RefOf(w), UndoDir: filepath.Join(t.undoRoot(), strconv.Itoa(int(seconds))), Discard: seconds == 0}
	o, finished := t.Jobs.run(t.Object.GetUID(), jobRemove, func(ctx context.Context) (any, error) {
		m, err := workspace.New(cfg)
		if err != nil {
			return nil, err
		}
		return m.Remove(ctx, removal)
	})
	if !finished {
		return false, 0, nil
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
