package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

const defaultTimeout = 30 * time.Minute

// Manager makes and removes the checkouts below one root. Any number of Managers, in any
// number of processes, can work on one root at once.
type Manager struct {
	root     string
	strategy Strategy
	protocol Protocol
	git      *git
}

// New opens a root. Its errors have ReasonRootUnusable, or ReasonInvalidRequest for an
// unknown strategy or protocol.
func New(cfg Config) (*Manager, error) {
	m := &Manager{strategy: cfg.Strategy, protocol: cfg.Protocol, git: &git{binary: cfg.Git, timeout: cfg.Timeout}}
	if m.strategy == "" {
		m.strategy = Worktree
	}
	if m.protocol == "" {
		m.protocol = HTTPS
	}
	if m.git.binary == "" {
		m.git.binary = "git"
	}
	if m.git.timeout == 0 {
		m.git.timeout = defaultTimeout
	}
	if m.strategy != Worktree && m.strategy != Clone {
		return nil, invalid(fmt.Sprintf("there is no workspace strategy %q", m.strategy), "write Worktree or Clone")
	}
	if m.protocol != HTTPS && m.protocol != SSH {
		return nil, invalid(fmt.Sprintf("there is no clone protocol %q", m.protocol), "write HTTPS or SSH")
	}
	env := cfg.Env
	if env == nil {
		env = os.Environ()
	}
	m.git.env = gitEnv(env)
	var err error
	m.root, err = openRoot(cfg.Root)
	return m, err
}

// Root is the root without symlinks: what every Path begins with.
func (m *Manager) Root() string { return m.root }

// Prepare makes the item's checkout, or finds it and leaves it as it is. A checkout of
// another item is never touched. It is safe to call again after an error or a crash:
// what an interrupted call left is made anew, since no session worked in it.
//
// An item with a pull request's branch gets that branch, following origin; a local branch
// of that name with commits of its own is kept under refs/the-loop/kept. All others get a
// detached head: the default branch for an issue (C140).
//
// Every error is an *Error. ReasonBranchInUse says which checkout holds the branch, which
// is never taken from it (C141).
func (m *Manager) Prepare(ctx context.Context, req Request) (Checkout, error) {
	op := "preparing the checkout of " + req.Item.String()
	began := time.Now()
	if err := req.complete(); err != nil {
		return Checkout{}, during(op, err)
	}
	locks, err := m.lockItems(ctx, req.Item.Slug())
	if err != nil {
		return Checkout{}, during(op, err)
	}
	defer locks[0].Release()
	c, err := m.reuse(ctx, req)
	if err == nil && c == nil {
		c, err = m.create(ctx, req, began)
	}
	if err != nil {
		return Checkout{}, during(op, err)
	}
	return *c, nil
}

// complete checks a request and fills in what was left out.
func (r *Request) complete() error {
	if err := checkItem(r.Item); err != nil {
		return err
	}
	if r.Repository == (Repository{}) {
		r.Repository = RepositoryOf(r.Item)
	}
	var err error
	if r.Repository, err = r.Repository.normalised(); err != nil {
		return err
	}
	if r.Ref != "" {
		if err := checkRefName("ref", r.Ref); err != nil {
			return err
		}
	}
	if r.Branch != "" {
		if err := checkRefName("branch", r.Branch); err != nil {
			return err
		}
	}
	switch {
	case r.PullRequest < 0:
		return invalid(fmt.Sprintf("%d is not the number of a pull request", r.PullRequest), "it must be 1 or more")
	case r.RequireBranch && r.Ref != "":
		return invalid("both a ref to start from and a head that is required were given", "give one of them")
	case r.RequireBranch && r.Branch == "" && r.PullRequest == 0:
		return invalid("a head is required, but none was named", "name a branch or a pull request")
	}
	return nil
}

// reuse gives the item's checkout when there is one, as it is.
func (m *Manager) reuse(ctx context.Context, req Request) (*Checkout, error) {
	p, err := m.find(req.Item, req.Repository)
	if err != nil || p == nil {
		return nil, err
	}
	_, err = m.git.run(ctx, call{dir: p.path, args: []string{"rev-parse", "--git-dir"}})
	if err != nil || !exists(filepath.Join(p.path, ".git")) {
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		return nil, damagedCheckout(p.path, err)
	}
	c, err := m.describe(ctx, *p, req)
	if err != nil {
		return nil, err
	}
	c.Reused = true
	if req.RequireBranch && req.Branch != "" && c.Branch != req.Branch {
		return nil, &Error{
			Reason: ReasonWrongBranch, Path: p.path, Branch: req.Branch,
			Problem: fmt.Sprintf("its checkout %s is on %s, not on the branch %s", p.path, orDetached(c.Branch), req.Branch),
			Remedy:  "switch the branch there, or clean the item up",
		}
	}
	return c, nil
}

func damagedCheckout(path string, err error) *Error {
	out := &Error{
		Reason: ReasonDamaged, Path: path, Err: err, Problem: "git cannot read the checkout " + path,
		Remedy: "repair it (git worktree repair, when its clone was moved), or save what you need and remove it",
	}
	if err != nil {
		out.Problem += ": " + redact(err.Error())
	}
	return out
}

func orDetached(branch string) string {
	if branch == "" {
		return "no branch"
	}
	return "the branch " + branch
}

// describe reads what is checked out.
func (m *Manager) describe(ctx context.Context, p place, req Request) (*Checkout, error) {
	c := &Checkout{Path: p.path, Item: req.Item, Repository: p.repo, Strategy: p.strategy}
	var err error
	if c.Branch, err = m.git.currentBranch(ctx, p.path); err != nil {
		return nil, err
	}
	c.Head, err = m.git.commit(ctx, p.path, "HEAD")
	return c, err
}

func (m *Manager) create(ctx context.Context, req Request, began time.Time) (*Checkout, error) {
	p, err := m.claimPlace(m.strategy, req.Item, req.Repository)
	if err != nil {
		return nil, err
	}
	var aim target
	if p.strategy == Clone {
		aim, err = m.addClone(ctx, p, req)
	} else {
		aim, err = m.addWorktree(ctx, p, req, began)
	}
	if err != nil {
		m.abandon(p)
		return nil, err
	}
	if err := m.writeClaim(p, claim{Ref: req.Item.String()}); err != nil {
		return nil, err
	}
	c, err := m.describe(ctx, p, req)
	if err != nil {
		return nil, err
	}
	c.Missed, c.Notes = aim.missed, aim.notes
	return c, nil
}

// abandon takes the claim back when nothing is there that it is needed for. What is left
// otherwise is removed by the next call.
func (m *Manager) abandon(p place) {
	if p.strategy == Worktree && m.removeAll(p.owned) != nil {
		return
	}
	// Of a clone, the directories that are empty: of the owner, the host and the item.
	for dir := filepath.Dir(p.path); len(dir) >= len(p.owned); dir = filepath.Dir(dir) {
		_ = os.Remove(dir)
	}
	if !exists(p.owned) {
		_ = os.Remove(p.claimFile())
	}
}

// addWorktree makes a worktree of the shared clone.
func (m *Manager) addWorktree(ctx context.Context, p place, req Request, began time.Time) (target, error) {
	lock, err := m.lockRepository(ctx, p.repo)
	if err != nil {
		return target{}, err
	}
	defer lock.Release()
	shared, notes, err := m.ensureShared(ctx, p.repo, began)
	if err != nil {
		return target{}, err
	}
	if err := m.clearUnfinished(ctx, p, shared); err != nil {
		return target{}, err
	}
	aim, err := m.aim(ctx, shared, req, Worktree)
	if err != nil {
		return aim, err
	}
	if held := m.checkOut(ctx, shared, p.path, aim); held != nil {
		if req.RequireBranch || ReasonOf(held) != ReasonBranchInUse {
			return aim, held
		}
		if aim, err = m.aimDefault(ctx, shared, req); err == nil {
			aim.missed = held
			err = m.checkOut(ctx, shared, p.path, aim)
		}
		if err != nil {
			return aim, err
		}
	}
	aim.notes = append(notes, aim.notes...)
	return aim, m.git.markBase(ctx, p.path, aim.commit)
}

var heldMessage = regexp.MustCompile(`(?m)^fatal: .* is already (?:checked out|used by worktree) at '([^'\n]+)'`)

// checkOut adds the worktree. The branch can turn out to be in use only now: git also
// knows of a rebase that is under way.
func (m *Manager) checkOut(ctx context.Context, shared, path string, aim target) error {
	args := []string{"worktree", "add", "--quiet", "--detach", "--", path, aim.commit}
	if aim.branch != "" {
		args = []string{"worktree", "add", "--quiet", "-B", aim.branch, "--", path, "refs/remotes/origin/" + aim.branch}
	}
	_, err := m.git.run(ctx, call{dir: shared, args: args})
	var e *gitError
	if errors.As(err, &e) && aim.branch != "" {
		if held := heldMessage.FindStringSubmatch(e.stderr); held != nil {
			return m.branchInUse(aim.branch, held[1])
		}
	}
	return err
}

// baseRef, in each checkout, is the commit that it began with: no work of the session's.
const baseRef = "refs/worktree/the-loop-base"

func (g *git) markBase(ctx context.Context, dir, commit string) error {
	_, err := g.run(ctx, call{dir: dir, args: []string{"update-ref", baseRef, commit}})
	return err
}

// clearUnfinished removes what an interrupted call left at p, whose claim says that no
// session was given it, and forgets worktrees whose directory is gone.
func (m *Manager) clearUnfinished(ctx context.Context, p place, shared string) error {
	if exists(p.path) {
		if err := m.removeAll(p.path); err != nil {
			return err
		}
	}
	if err := m.sweep(p.owned, asideMark); err != nil {
		return err
	}
	_, err := m.git.run(ctx, call{dir: shared, args: []string{"worktree", "prune"}})
	return err
}

// addClone makes a clone of its own, which gets its name when it is complete.
func (m *Manager) addClone(ctx context.Context, p place, req Request) (target, error) {
	if err := m.sweep(p.owned, asideMark); err != nil {
		return target{}, err
	}
	var aim target
	err := m.cloneTo(ctx, p.repo, p.path, func(dir string) error {
		var err error
		if aim, err = m.aim(ctx, dir, req, Clone); err != nil {
			return err
		}
		args := []string{"checkout", "--quiet", "--detach", aim.commit, "--"}
		if aim.branch != "" {
			args = []string{"checkout", "--quiet", "-B", aim.branch, "refs/remotes/origin/" + aim.branch, "--"}
		}
		if _, err = m.git.run(ctx, call{dir: dir, args: args}); err != nil {
			return err
		}
		return m.git.markBase(ctx, dir, aim.commit)
	})
	return aim, err
}
