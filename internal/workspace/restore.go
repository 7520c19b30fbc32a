package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/theloop-dev/the-loop/internal/workitem"
)

// Restore makes a removed checkout again, at its path, on its commit, with the work that
// was not committed as such: what was staged is staged, what was untracked untracked. It
// is on its branch again unless that moved on or is in use, which a note says; then the
// head is detached. Ignored files, empty directories, tags and a merge that was under way
// do not come back. The entry stays until PruneUndo.
//
// It is refused, with ReasonOccupied, when something exists at the path.
func (m *Manager) Restore(ctx context.Context, u Undo) (Checkout, error) {
	op := "restoring the checkout of " + u.Ref
	began := time.Now()
	item, p, err := m.placeOf(u)
	if err != nil {
		return Checkout{}, during(op, err)
	}
	locks, err := m.lockItems(ctx, item.Slug())
	if err != nil {
		return Checkout{}, during(op, err)
	}
	defer locks[0].Release()
	if p, err = m.claimFor(item, p); err != nil {
		return Checkout{}, during(op, err)
	}
	var notes []string
	if p.strategy == Clone {
		err = m.cloneTo(ctx, p.repo, p.path, func(dir string) error {
			notes, err = m.restoreClone(ctx, u, dir)
			return err
		})
	} else {
		notes, err = m.restoreWorktree(ctx, u, p, began)
	}
	if err != nil {
		m.abandon(p)
		return Checkout{}, during(op, err)
	}
	if err := m.writeClaim(p, claim{Ref: u.Ref}); err != nil {
		return Checkout{}, during(op, err)
	}
	c, err := m.describe(ctx, p, Request{Item: item})
	if err != nil {
		return Checkout{}, during(op, err)
	}
	c.Notes = append(notes, u.Notes...)
	return *c, nil
}

// placeOf finds the place of an entry again: the path in its file is only compared.
func (m *Manager) placeOf(u Undo) (workitem.Ref, place, error) {
	item, err := u.Item()
	if err != nil {
		return item, place{}, err
	}
	if err := checkItem(item); err != nil {
		return item, place{}, err
	}
	repo, err := u.Repository.normalised()
	if err != nil {
		return item, place{}, err
	}
	if u.Head == "" {
		return item, place{}, &Error{
			Reason: ReasonFailed, Path: u.Dir, Problem: "it had no commit yet, and is not restored",
			Remedy: "its files are in " + filepath.Join(u.Dir, bundleFile) + ": git fetch it, " + undoWork,
		}
	}
	for _, sha := range slices.Concat([]string{u.Head}, u.commits(), u.optional()) {
		if !commitPattern.MatchString(sha) {
			return item, place{}, u.damaged(quoted(sha) + " is no commit")
		}
	}
	for branch := range u.Branches {
		if !refName(branch) {
			return item, place{}, u.damaged(quoted(branch) + " is no branch")
		}
	}
	for _, name := range names(item) {
		if p := m.place(u.Strategy, repo, name); p.path == u.Path {
			return item, p, nil
		}
	}
	return item, place{}, &Error{
		Reason: ReasonOutsideRoot, Path: u.Path,
		Problem: fmt.Sprintf("its path %s is not where a checkout of it belongs below %s", u.Path, m.root),
		Remedy:  "restore it with the workspace root that it had",
	}
}

func (u *Undo) damaged(problem string) *Error {
	return &Error{Reason: ReasonDamaged, Path: u.Dir, Problem: "in " + filepath.Join(u.Dir, metaFile) + ", " + problem}
}

func (u *Undo) optional() []string {
	return slices.DeleteFunc([]string{u.Base, u.Work, u.Index}, func(s string) bool { return s == "" })
}

// claimFor takes the place for a checkout that is not there.
func (m *Manager) claimFor(item workitem.Ref, p place) (place, error) {
	if err := m.inside(p.path); err != nil {
		return p, err
	}
	c, err := readClaim(p.claimFile())
	if err != nil {
		return p, err
	}
	free := c == nil && !exists(p.owned) ||
		c != nil && c.Ref == item.String() && (c.Preparing || !exists(p.path))
	if !free {
		return p, &Error{
			Reason: ReasonOccupied, Path: p.path, Problem: "something is at " + p.path + " again",
			Remedy: "clean it up, or move it away",
		}
	}
	return p, m.writeClaim(p, claim{Ref: item.String(), Preparing: p.strategy == Worktree})
}

func (m *Manager) restoreWorktree(ctx context.Context, u Undo, p place, began time.Time) ([]string, error) {
	lock, err := m.lockRepository(ctx, p.repo)
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	shared, notes, err := m.ensureShared(ctx, p.repo, began)
	if err != nil {
		return nil, err
	}
	if err := m.clearUnfinished(ctx, p, shared); err != nil {
		return nil, err
	}
	forget, err := m.unbundle(ctx, u, shared)
	defer forget()
	if err != nil {
		return nil, err
	}
	args := []string{"worktree", "add", "--quiet", "--detach", "--", p.path, u.Head}
	free, why, err := m.branchFree(ctx, u, shared)
	switch {
	case err != nil:
		return nil, err
	case free:
		args = []string{"worktree", "add", "--quiet", "-B", u.Branch, "--", p.path, u.Head}
	case why != "":
		notes = append(notes, why)
	}
	if _, err := m.git.run(ctx, call{dir: shared, args: args}); err != nil {
		return nil, err
	}
	if free {
		m.follow(ctx, p.path, u.Branch)
	}
	return notes, m.fill(ctx, u, p.path)
}

// branchFree reports whether the branch can be set to the kept commit without losing
// anything, and why not.
func (m *Manager) branchFree(ctx context.Context, u Undo, dir string) (bool, string, error) {
	if u.Branch == "" || !refName(u.Branch) {
		return false, "", nil
	}
	if err := m.refuseHeld(ctx, dir, u.Branch); err != nil {
		if ReasonOf(err) != ReasonBranchInUse {
			return false, "", err
		}
		return false, "the head is detached: " + err.Error(), nil
	}
	local, err := m.git.commit(ctx, dir, "refs/heads/"+u.Branch)
	if err != nil || local == "" || local == u.Head {
		return err == nil, "", err
	}
	ahead, err := m.git.run(ctx, call{dir: dir, args: []string{"rev-list", "--max-count=1", local, "^" + u.Head, "--"}})
	if err != nil || ahead == "" {
		return err == nil, "", err
	}
	return false, "the head is detached: the branch " + u.Branch + " has other commits by now", nil
}

// follow sets the branch's upstream, where origin has it.
func (m *Manager) follow(ctx context.Context, dir, branch string) {
	args := []string{"branch", "--quiet", "--set-upstream-to=origin/" + branch, "--", branch}
	_, _ = m.git.run(ctx, call{dir: dir, args: args})
}

// restoreClone brings back a clone with its branches and stashes.
func (m *Manager) restoreClone(ctx context.Context, u Undo, dir string) ([]string, error) {
	forget, err := m.unbundle(ctx, u, dir)
	if err != nil {
		return nil, err
	}
	defer forget()
	var updates strings.Builder
	for branch, sha := range u.Branches {
		fmt.Fprintf(&updates, "update refs/heads/%s %s\n", branch, sha)
	}
	if _, err := m.git.run(ctx, call{dir: dir, args: []string{"update-ref", "--stdin"}, stdin: updates.String()}); err != nil {
		return nil, err
	}
	args := []string{"checkout", "--quiet", "--detach", u.Head, "--"}
	if refName(u.Branch) {
		args = []string{"checkout", "--quiet", "-B", u.Branch, u.Head, "--"}
	}
	if _, err := m.git.run(ctx, call{dir: dir, args: args}); err != nil {
		return nil, err
	}
	for branch := range u.Branches {
		m.follow(ctx, dir, branch)
	}
	for _, sha := range slices.Backward(u.Stashes) {
		subject, err := m.git.run(ctx, call{dir: dir, args: []string{"log", "-1", "--format=%s", sha, "--"}})
		if err != nil {
			return nil, err
		}
		args := []string{"stash", "store", "--quiet", "--message", subject, sha}
		if _, err := m.git.run(ctx, call{dir: dir, args: args}); err != nil {
			return nil, err
		}
	}
	return nil, m.fill(ctx, u, dir)
}

// unbundle brings the kept commits into the repository at dir. forget takes the refs away
// that hold them, once something else does.
func (m *Manager) unbundle(ctx context.Context, u Undo, dir string) (forget func(), err error) {
	forget = func() {}
	bundle := filepath.Join(u.Dir, bundleFile)
	if _, err := m.git.run(ctx, call{dir: dir, args: []string{"bundle", "verify", "--quiet", bundle}}); err != nil {
		e := classify(err, ReasonDamaged)
		e.Problem = "its bundle cannot be read, or builds on commits that the repository no longer has: " + e.Problem
		e.Remedy = "look at it with git bundle verify " + bundle
		return forget, e
	}
	space := "refs/the-loop/restoring/" + filepath.Base(u.Dir) + "/"
	forget = func() {
		ctx := context.WithoutCancel(ctx)
		out, err := m.git.run(ctx, call{dir: dir, args: []string{"for-each-ref", "--format=delete %(refname)", space}})
		if err == nil && out != "" {
			_, _ = m.git.run(ctx, call{dir: dir, args: []string{"update-ref", "--stdin"}, stdin: out + "\n"})
		}
	}
	_, err = m.git.run(ctx, call{dir: dir, args: []string{
		"fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--", bundle, "+refs/the-loop/undo/*:" + space + "*",
	}})
	if err != nil {
		return forget, err
	}
	for _, sha := range append(u.commits(), u.optional()...) {
		if found, err := m.git.commit(ctx, dir, sha); err != nil || found == "" && sha != u.Base {
			return forget, errors.Join(err, fmt.Errorf("the commit %s is neither in its bundle nor in the repository", sha))
		}
	}
	return forget, nil
}

// fill writes what differs from the head into a fresh checkout.
func (m *Manager) fill(ctx context.Context, u Undo, dir string) error {
	if u.Base != "" {
		if err := m.git.markBase(ctx, dir, u.Base); err != nil {
			return err
		}
	}
	if u.Work == "" {
		return nil
	}
	temp, err := os.MkdirTemp(m.root, ".restoring-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	s, err := m.git.newScratch(ctx, filepath.Join(temp, "git"), dir)
	if err != nil {
		return err
	}
	if err := s.writeFiles(ctx, u); err != nil {
		return err
	}
	if u.Index == "" {
		return nil
	}
	if _, err := m.git.run(ctx, call{dir: dir, args: []string{"read-tree", u.Index}}); err != nil {
		return err
	}
	// It reports what differs by its exit status.
	_, _ = m.git.run(ctx, call{dir: dir, args: []string{"update-index", "-q", "--refresh"}})
	return ctx.Err()
}

func (s *scratch) writeFiles(ctx context.Context, u Undo) error {
	out, err := s.run(ctx, "", "diff-tree", "-r", "-z", "--no-renames", u.Head, u.Work, "--")
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(s.files)
	if err != nil {
		return err
	}
	defer root.Close()
	fields := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	var write strings.Builder
	for i := 0; i+1 < len(fields); i += 2 {
		// ":<old mode> <new mode> <old object> <new object> <status>", then the path.
		name := fields[i+1]
		head := strings.Fields(fields[i])
		if len(head) != 5 {
			return fmt.Errorf("git diff-tree answered %s", quoted(fields[i]))
		}
		switch {
		case head[1] == "160000":
		case head[4] == "D":
			if err := root.Remove(filepath.FromSlash(name)); err != nil && !errors.Is(err, fs.ErrNotExist) && head[0] != ":160000" {
				return err
			}
			removeEmpty(root, filepath.Dir(filepath.FromSlash(name)))
		default:
			write.WriteString(name + "\x00")
		}
	}
	if _, err := s.run(ctx, "", "read-tree", u.Work); err != nil {
		return err
	}
	_, err = s.run(ctx, write.String(), "checkout-index", "--force", "-z", "--stdin")
	return err
}

// removeEmpty removes a directory and those above it as long as they are empty.
func removeEmpty(root *os.Root, dir string) {
	for dir != "." && root.Remove(dir) == nil {
		dir = filepath.Dir(dir)
	}
}
