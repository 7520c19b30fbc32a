package workspace

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// keptRefs is where a local branch with commits of its own is kept before it is set to
// what origin has.
const keptRefs = "refs/the-loop/kept/"

// target is what a checkout is to have.
type target struct {
	commit string
	// branch is "" for a detached head.
	branch string
	missed error
	notes  []string
}

// commit resolves a revision of ours, "" when there is no such commit.
func (g *git) commit(ctx context.Context, dir, rev string) (string, error) {
	out, err := g.run(ctx, call{dir: dir, args: []string{"rev-parse", "--verify", "--quiet", rev + "^{commit}"}})
	if no(err) {
		return "", nil
	}
	return out, err
}

// currentBranch is "" for a detached head.
func (g *git) currentBranch(ctx context.Context, dir string) (string, error) {
	out, err := g.run(ctx, call{dir: dir, args: []string{"symbolic-ref", "--quiet", "HEAD"}})
	if no(err) {
		return "", nil
	}
	return strings.TrimPrefix(out, "refs/heads/"), err
}

// no reports whether git ran and answered no, as it does with --quiet.
func no(err error) bool {
	var e *gitError
	return errors.As(err, &e) && e.err == nil && e.code == 1 && !strings.Contains(e.stderr, "fatal:")
}

// aim finds out what is to be checked out, fetching it. With the strategy Worktree the
// repository's lock is held.
func (m *Manager) aim(ctx context.Context, dir string, req Request, s Strategy) (target, error) {
	if req.Ref != "" {
		return m.aimRef(ctx, dir, req)
	}
	var missed error
	if req.Branch != "" || req.PullRequest > 0 {
		t, err := m.aimHead(ctx, dir, req, s)
		reason := ReasonOf(err)
		// What may work later is no reason to give the session another branch for ever.
		if err == nil || req.RequireBranch || reason != ReasonRefNotFound && reason != ReasonBranchInUse {
			return t, err
		}
		missed = err
	}
	t, err := m.aimDefault(ctx, dir, req)
	t.missed = missed
	return t, err
}

func (m *Manager) aimDefault(ctx context.Context, dir string, req Request) (target, error) {
	for range 2 {
		if commit, err := m.git.commit(ctx, dir, "refs/remotes/origin/HEAD"); err != nil || commit != "" {
			return target{commit: commit}, err
		}
		if _, err := m.git.run(ctx, call{dir: dir, args: []string{"remote", "set-head", "origin", "--auto"}}); err != nil {
			break
		}
	}
	commit, err := m.git.commit(ctx, dir, "refs/remotes/origin/main")
	if err == nil && commit == "" {
		err = &Error{
			Reason:  ReasonRefNotFound,
			Problem: "the repository " + req.Repository.String() + " has neither a default branch nor a branch main",
			Remedy:  "push a first commit to it",
		}
	}
	return target{commit: commit}, err
}

// aimRef looks for a branch, then a tag, then a commit.
func (m *Manager) aimRef(ctx context.Context, dir string, req Request) (target, error) {
	into := "refs/remotes/origin/" + req.Ref
	tag := "refs/tags/" + req.Ref
	for _, spec := range []string{"+refs/heads/" + req.Ref + ":" + into, "+" + tag + ":" + tag} {
		err := m.fetch(ctx, dir, spec)
		if err == nil {
			_, into, _ = strings.Cut(spec, ":")
			commit, err := m.git.commit(ctx, dir, into)
			return target{commit: commit}, err
		}
		if ReasonOf(err) != ReasonRefNotFound {
			return target{}, err
		}
	}
	if commitPattern.MatchString(req.Ref) {
		commit, err := m.git.commit(ctx, dir, req.Ref)
		if err != nil || commit != "" {
			return target{commit: commit}, err
		}
		if err = m.fetch(ctx, dir, "+"+req.Ref+":refs/remotes/commit/"+req.Ref); err == nil {
			return target{commit: req.Ref}, nil
		}
		if ReasonOf(err) != ReasonRefNotFound {
			return target{}, err
		}
	}
	return target{}, &Error{
		Reason: ReasonRefNotFound, Branch: req.Ref, Remedy: "push it, or name another (a commit in full)",
		Problem: fmt.Sprintf("%s has no branch, tag or commit %q", req.Repository, req.Ref),
	}
}

// aimHead looks for the pull request's branch, or for the head that its host keeps.
func (m *Manager) aimHead(ctx context.Context, dir string, req Request, s Strategy) (target, error) {
	var err error
	if req.Branch != "" {
		var t target
		t, err = m.aimBranch(ctx, dir, req, s)
		if ReasonOf(err) != ReasonRefNotFound || req.RequireBranch || req.PullRequest == 0 {
			return t, err
		}
	}
	n := strconv.FormatInt(req.PullRequest, 10)
	into := "refs/remotes/pull/" + n
	switch fetched := m.fetch(ctx, dir, "+refs/pull/"+n+"/head:"+into); {
	case ReasonOf(fetched) == ReasonRefNotFound && err == nil:
		return target{}, &Error{Reason: ReasonRefNotFound, Problem: fmt.Sprintf("%s has no pull request %s", req.Repository, n)}
	case ReasonOf(fetched) == ReasonRefNotFound:
		return target{}, err
	case fetched != nil:
		return target{}, fetched
	}
	commit, err := m.git.commit(ctx, dir, into)
	return target{commit: commit}, err
}

func (m *Manager) aimBranch(ctx context.Context, dir string, req Request, s Strategy) (target, error) {
	remote := "refs/remotes/origin/" + req.Branch
	if err := m.fetch(ctx, dir, "+refs/heads/"+req.Branch+":"+remote); err != nil {
		if ReasonOf(err) == ReasonRefNotFound {
			err = &Error{
				Reason: ReasonRefNotFound, Branch: req.Branch, Err: err,
				Problem: fmt.Sprintf("%s has no branch %s", req.Repository, req.Branch), Remedy: "push it",
			}
		}
		return target{}, err
	}
	commit, err := m.git.commit(ctx, dir, remote)
	t := target{commit: commit, branch: req.Branch}
	if err != nil || s == Clone {
		return t, err
	}
	if err := m.refuseHeld(ctx, dir, req.Branch); err != nil {
		return target{}, err
	}
	note, err := m.keepBranch(ctx, dir, req.Branch, remote)
	if note != "" {
		t.notes = append(t.notes, note)
	}
	return t, err
}

// refuseHeld says which worktree has the branch (C141).
func (m *Manager) refuseHeld(ctx context.Context, dir, branch string) error {
	out, err := m.git.run(ctx, call{dir: dir, args: []string{"worktree", "list", "--porcelain"}})
	if err != nil {
		return err
	}
	path := ""
	for line := range strings.Lines(out + "\n") {
		line = strings.TrimSuffix(line, "\n")
		if p, ok := strings.CutPrefix(line, "worktree "); ok {
			path = p
		}
		if line == "branch refs/heads/"+branch {
			return m.branchInUse(branch, path)
		}
	}
	return nil
}

func (m *Manager) branchInUse(branch, path string) *Error {
	e := &Error{Reason: ReasonBranchInUse, Branch: branch, Path: path}
	if rel, err := filepath.Rel(filepath.Join(m.root, treesDir), path); err == nil && filepath.IsLocal(rel) {
		e.HeldBy = m.claimedBy(path)
	}
	who := "a worktree that is no item's"
	if e.HeldBy != "" {
		who = e.HeldBy
	}
	e.Problem = fmt.Sprintf("the branch %s is checked out by %s, at %s", branch, who, path)
	e.Remedy = "clean that item up or switch the branch there; two checkouts cannot share a branch"
	return e
}

// keepBranch keeps the commits of a local branch that origin's does not have: it is set
// to origin's next.
func (m *Manager) keepBranch(ctx context.Context, dir, branch, remote string) (string, error) {
	local, err := m.git.commit(ctx, dir, "refs/heads/"+branch)
	if err != nil || local == "" {
		return "", err
	}
	ahead, err := m.git.run(ctx, call{dir: dir, args: []string{"rev-list", "--max-count=1", local, "^" + remote, "--"}})
	if err != nil || ahead == "" {
		return "", err
	}
	kept := keptRefs + branch + "/" + local
	if _, err := m.git.run(ctx, call{dir: dir, args: []string{"update-ref", kept, local}}); err != nil {
		return "", err
	}
	return fmt.Sprintf("the local branch %s had commits that origin does not have: they are kept as %s", branch, kept), nil
}

// fetch gets one ref. ReasonRefNotFound means that the repository answered and has none.
func (m *Manager) fetch(ctx context.Context, dir, spec string) error {
	_, err := m.git.run(ctx, call{dir: dir, args: []string{"fetch", "--quiet", "--no-recurse-submodules", "--", "origin", spec}})
	if err == nil {
		return nil
	}
	var e *gitError
	if errors.As(err, &e) && e.err == nil {
		for _, s := range []string{"couldn't find remote ref", "not our ref", "Server does not allow request for unadvertised object"} {
			if strings.Contains(e.stderr, s) {
				return &Error{Reason: ReasonRefNotFound, Problem: redact(err.Error()), Err: err}
			}
		}
	}
	return classify(err, ReasonFetchFailed)
}
