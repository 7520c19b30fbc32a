package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/theloop-dev/the-loop/internal/workitem"
)

// Removal says whose checkouts go.
type Removal struct {
	// Item and Endpoints, its pull requests with checkouts of their own, are all that is
	// needed: there need be no record of the checkouts (C101, C104).
	Item      workitem.Ref
	Endpoints []workitem.Ref
	// UndoDir is the directory where unsaved work is kept, absolute. It is made when it
	// does not exist.
	UndoDir string
	// Discard keeps nothing: unsaved work is lost, also of checkouts that cannot be read.
	Discard bool
}

// Removed is one directory that is gone.
type Removed struct {
	Item     workitem.Ref
	Path     string
	Strategy Strategy
}

// RemoveResult is what was done. It is also given with an error.
type RemoveResult struct {
	// Removed are the checkouts that are gone, the endpoints' first; none when there were
	// none, which is no error.
	Removed []Removed
	// Kept is the work that was unsaved, for Restore.
	Kept []Undo
	// Unclaimed are directories with the name of one of the items which nobody claims:
	// they are not ours, and were left.
	Unclaimed []string
	// Notes are for a person.
	Notes []string
}

// unit is one directory to remove with its claim.
type unit struct {
	place
	item workitem.Ref
	// checkouts are the places in it that can hold work; none when no session had it.
	checkouts []place
}

// Remove removes the checkouts of an item and its endpoints, made with either strategy
// (C099, C104). Unsaved work is kept first: uncommitted changes, untracked files that are
// not ignored, and commits that no remote branch has. When any of that cannot be kept,
// nothing is removed and the error has ReasonBundleFailed. The shared clone and its
// branches stay. A checkout of another item with the same slug is not touched (W3).
func (m *Manager) Remove(ctx context.Context, r Removal) (RemoveResult, error) {
	var res RemoveResult
	op := "removing the checkouts of " + r.Item.String()
	items := uniqueItems(append(slices.Clone(r.Endpoints), r.Item))
	var slugs []string
	for _, item := range items {
		if err := checkItem(item); err != nil {
			return res, during(op, err)
		}
		slugs = append(slugs, item.Slug())
	}
	locks, err := m.lockItems(ctx, slugs...)
	if err != nil {
		return res, during(op, err)
	}
	defer func() {
		for _, l := range locks {
			l.Remove()
		}
	}()
	var units []unit
	for _, item := range items {
		found, unclaimed, err := m.unitsOf(item)
		if err != nil {
			return res, during(op, err)
		}
		units = append(units, found...)
		res.Unclaimed = append(res.Unclaimed, unclaimed...)
	}
	if !r.Discard && len(units) > 0 {
		if res.Kept, err = m.keepAll(ctx, units, r.UndoDir); err != nil {
			return res, during(op, err)
		}
	}
	var failed []error
	for _, u := range units {
		note, err := m.removeUnit(ctx, u)
		if err != nil {
			failed = append(failed, during(op, err))
			continue
		}
		if note != "" {
			res.Notes = append(res.Notes, note)
		}
		res.Removed = append(res.Removed, Removed{Item: u.item, Path: u.owned, Strategy: u.strategy})
	}
	return res, errors.Join(failed...)
}

// uniqueItems keeps the last of equal items: the item's own come after its endpoints'.
func uniqueItems(items []workitem.Ref) []workitem.Ref {
	var out []workitem.Ref
	for i, item := range items {
		if !slices.Contains(items[i+1:], item) {
			out = append(out, item)
		}
	}
	return out
}

// unitsOf finds everything of the item's, and what has its name without a claim.
func (m *Manager) unitsOf(item workitem.Ref) (units []unit, unclaimed []string, err error) {
	repos, err := m.repositoriesBelow(filepath.Join(m.root, treesDir))
	if err != nil {
		return nil, nil, err
	}
	own := names(item)
	var places []place
	for _, name := range own {
		places = append(places, m.place(Clone, Repository{}, name))
		for _, r := range repos {
			places = append(places, m.treeAt(r, name))
		}
	}
	for _, p := range places {
		if err := m.inside(p.owned); err != nil {
			return nil, nil, err
		}
		c, err := readClaim(p.claimFile())
		if err != nil {
			return nil, nil, err
		}
		if c == nil && p.name == own[0] && exists(p.owned) {
			unclaimed = append(unclaimed, p.owned)
		}
		if c == nil || c.Ref != item.String() {
			continue
		}
		u, err := m.unitAt(p, item, c)
		if err != nil {
			return nil, nil, err
		}
		units = append(units, u)
	}
	return units, unclaimed, nil
}

func (m *Manager) unitAt(p place, item workitem.Ref, c *claim) (unit, error) {
	u := unit{place: p, item: item}
	if c.Preparing || !exists(p.owned) {
		return u, nil
	}
	if p.strategy == Worktree {
		u.checkouts = []place{p}
		return u, nil
	}
	dirs, err := m.repositoriesBelow(p.owned)
	for _, dir := range dirs {
		at := p
		at.repo, at.path = repositoryAt(dir), filepath.Join(p.owned, dir)
		u.checkouts = append(u.checkouts, at)
	}
	return u, err
}

// treeAt is the worktree of this name in a repository directory.
func (m *Manager) treeAt(dir, name string) place {
	path := filepath.Join(m.root, treesDir, dir, name)
	return place{strategy: Worktree, repo: repositoryAt(dir), name: name, path: path, owned: path}
}

// repositoryAt is the reverse of Repository.dir.
func repositoryAt(dir string) Repository {
	parts := strings.Split(dir, string(filepath.Separator))
	return Repository{Host: strings.Replace(parts[0], "_", ":", 1), Owner: parts[1], Repo: parts[2]}
}

// repositoriesBelow gives the directories host/owner/repo below dir.
func (m *Manager) repositoriesBelow(dir string) ([]string, error) {
	if err := m.inside(dir); err != nil {
		return nil, err
	}
	found := []string{""}
	for range 3 {
		var next []string
		for _, at := range found {
			entries, err := os.ReadDir(filepath.Join(dir, at))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, err
			}
			for _, e := range entries {
				if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
					next = append(next, filepath.Join(at, e.Name()))
				}
			}
		}
		found = next
	}
	return found, nil
}

// keepAll keeps the work of all units, or none and nothing may be removed.
func (m *Manager) keepAll(ctx context.Context, units []unit, undoDir string) ([]Undo, error) {
	if err := m.checkUndoDir(undoDir); err != nil {
		return nil, err
	}
	var kept []Undo
	for _, u := range units {
		for _, p := range u.checkouts {
			entry, err := m.keep(ctx, p, u.item, undoDir)
			if err != nil {
				for _, k := range kept {
					_ = os.RemoveAll(k.Dir)
				}
				return nil, notKept(p.path, err)
			}
			if entry != nil {
				kept = append(kept, *entry)
			}
		}
	}
	return kept, nil
}

func notKept(path string, err error) error {
	cause := classify(err, ReasonFailed)
	if cause.Reason == ReasonCanceled {
		return cause
	}
	out := &Error{
		Reason: ReasonBundleFailed, Path: path, Err: err,
		Problem: "nothing was removed, because the work in " + path + " could not be kept: " + cause.Problem,
		Remedy:  "commit and push it, or remove it without keeping it",
	}
	if cause.Remedy != "" {
		out.Remedy = cause.Remedy + "; or remove it without keeping its work"
	}
	return out
}

func (m *Manager) checkUndoDir(dir string) error {
	if !filepath.IsAbs(dir) {
		return invalid(fmt.Sprintf("the undo directory %q is not an absolute path", dir), "name one, or discard unsaved work")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return &Error{
			Reason: ReasonBundleFailed, Path: dir, Err: err,
			Problem: "nothing was removed, because the undo directory cannot be made: " + err.Error(),
		}
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	for _, below := range []string{treesDir, itemsDir} {
		if rel, err := filepath.Rel(filepath.Join(m.root, below), real); err == nil && filepath.IsLocal(rel) {
			return invalid("the undo directory "+dir+" is among the checkouts", "choose another one")
		}
	}
	return nil
}

// removeUnit moves the directory aside first, so that it is there as a whole or not at
// all, and forgets it last, so that what an interrupted removal left is found again.
func (m *Manager) removeUnit(ctx context.Context, u unit) (note string, err error) {
	shared := ""
	if u.strategy == Worktree {
		lock, err := m.lockRepository(ctx, u.repo)
		if err != nil {
			return "", err
		}
		defer lock.Release()
		if dir := filepath.Join(m.root, u.repo.dir()); exists(filepath.Join(dir, ".git")) {
			shared = dir
		}
	}
	if err := m.inside(u.owned); err != nil {
		return "", err
	}
	if err := m.sweep(u.owned, asideMark); err != nil {
		return "", err
	}
	if exists(u.owned) {
		if shared != "" {
			// A person can have locked it against pruning. It says no when nobody did.
			_, _ = m.git.run(ctx, call{dir: shared, args: []string{"worktree", "unlock", "--", u.owned}})
		}
		if err := ctx.Err(); err != nil {
			return "", err
		}
		if err := os.Rename(u.owned, beside(u.owned, asideMark)); err != nil {
			return "", err
		}
	}
	if err := m.sweep(u.owned, asideMark); err != nil {
		return "", fmt.Errorf("what is left of %s, at %s, cannot be removed: %w", u.owned, beside(u.owned, asideMark), err)
	}
	if shared != "" {
		// Whoever adds a worktree prunes too: this must not keep an item from ending.
		if _, err := m.git.run(ctx, call{dir: shared, args: []string{"worktree", "prune"}}); err != nil {
			note = "the clone " + shared + " still lists the removed worktree: " + redact(err.Error())
		}
	}
	return note, os.Remove(u.claimFile())
}
