package session

import (
	"context"
	"path/filepath"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/theloop-dev/the-loop/internal/event"
	"github.com/theloop-dev/the-loop/internal/harness"
)

// prepare writes what keeps the harness from opening on a dialog. A failure is told
// and keeps nothing from starting.
func (t *turn) prepare(ctx context.Context) {
	p, ok := t.launch.adapter.(harness.Preparer)
	if !ok {
		return
	}
	done, err := p.Prepare(ctx, t.prepareOptions())
	for _, w := range done.Warnings {
		t.Log.Info("warning: " + w)
	}
	if len(done.Applied) > 0 {
		t.Store.Emit(event.WorkspaceTrusted, strings.Join(done.Applied, "; "), "harness", t.launch.adapter.Name(), "cwd", t.launch.dir, "applied", done.Applied)
	}
	if err != nil {
		t.Store.Emit(event.WorkspaceTrustFailed, "the harness's configuration was not prepared; it may open on a dialog: "+err.Error(),
			"harness", t.launch.adapter.Name(), "cwd", t.launch.dir, "error", err)
	}
}

// prepareOptions say what is to be written into the harness's own configuration.
func (t *turn) prepareOptions() harness.PrepareOptions {
	trust, plugins := t.Class.Spec.Trust, t.Class.Spec.Plugins
	root := ""
	if t.Class.Spec.Workspace.Root != "" {
		root, _ = t.expand(t.Class.Spec.Workspace.Root)
	}
	repo := ptr.Deref(plugins.MarketplaceRepo, "")
	return harness.PrepareOptions{
		Dir: t.launch.dir, WorkspaceRoot: root, Args: t.launch.args, Lookup: t.lookup,
		Trust: t.trusts(), Scope: trust.Scope, AcceptBypass: trust.AcceptBypassPermissions,
		Plugins: ptr.Deref(plugins.Enabled, true) && repo != "", MarketplaceRepo: repo,
		LockDir: filepath.Join(t.Dir, "locks"), CopyDir: filepath.Join(t.Dir, "config-copies"),
	}
}

// trusts reports whether the harness's trust dialog is answered for the session.
func (t *turn) trusts() bool {
	return !t.strangersHead() && (t.Class == nil || ptr.Deref(t.Class.Spec.Trust.Enabled, true))
}

// strangersHead reports that the checkout is the head of a pull request which is on no
// branch of the repository, and so may be written by anybody: what its files would grant
// is for a person to accept, at the harness's own dialog (H22).
func (t *turn) strangersHead() bool {
	if t.launch.checkout == nil {
		return false
	}
	r, is := t.launch.checkout.request, t.status.Checkout
	if strings.Contains(r.Ref, "pull/") {
		return true
	}
	// A branch that was begun in the checkout is none of the repository.
	return r.PullRequest != 0 && (r.Branch == "" || is == nil || is.Branch != r.Branch)
}
