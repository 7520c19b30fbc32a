package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// fetchedFile, in a git directory, carries the time of the last complete fetch.
const fetchedFile = "the-loop-fetched"

// ensureShared gives the clone that worktrees share, fetched since began. It is made when
// it is not there and made anew when it is damaged. The repository's lock is held.
func (m *Manager) ensureShared(ctx context.Context, r Repository, began time.Time) (string, []string, error) {
	dir := filepath.Join(m.root, r.dir())
	if err := m.inside(dir); err != nil {
		return "", nil, err
	}
	note, err := m.setDamagedAside(ctx, dir)
	if err != nil {
		return "", nil, err
	}
	var notes []string
	if note != "" {
		notes = append(notes, note)
	}
	if !exists(dir) {
		return dir, notes, m.cloneTo(ctx, r, dir, nil)
	}
	if err := m.setOrigin(ctx, r, dir); err != nil {
		return "", nil, err
	}
	if info, err := os.Stat(filepath.Join(dir, ".git", fetchedFile)); err == nil && info.ModTime().After(began) {
		return dir, notes, nil
	}
	if err := m.fetchAll(ctx, dir); err != nil {
		known, _ := m.git.run(ctx, call{dir: dir, args: []string{"for-each-ref", "--count=1", "refs/remotes/origin/"}})
		if known == "" || ctx.Err() != nil {
			return "", nil, classify(err, ReasonFetchFailed)
		}
		notes = append(notes, "the repository was not fetched, its last known state is used: "+redact(err.Error()))
	}
	return dir, notes, nil
}

// setDamagedAside moves a clone away that git cannot read, unless worktrees hang on it.
func (m *Manager) setDamagedAside(ctx context.Context, dir string) (string, error) {
	if entries, err := os.ReadDir(dir); err != nil || len(entries) == 0 {
		_ = os.Remove(dir)
		return "", nil //nolint:nilerr // What cannot be read or is not there shows when it is made.
	}
	if !exists(filepath.Join(dir, ".git")) {
		return "", &Error{
			Reason: ReasonOccupied, Path: dir, Problem: dir + ", where the clone of the repository belongs, is no repository",
			Remedy: "move it away",
		}
	}
	_, err := m.git.run(ctx, call{dir: dir, args: []string{"rev-parse", "--git-dir"}})
	var failed *gitError
	if err == nil || !errors.As(err, &failed) || failed.err != nil || !strings.Contains(failed.stderr, "not a git repository") {
		return "", err
	}
	if trees, _ := os.ReadDir(filepath.Join(dir, ".git", "worktrees")); len(trees) > 0 {
		return "", &Error{
			Reason: ReasonDamaged, Path: dir, Err: err,
			Problem: fmt.Sprintf("git cannot read the clone %s, on which %d checkouts depend: %v", dir, len(trees), redact(err.Error())),
			Remedy:  "repair it, or save what you need from those checkouts and remove them and it",
		}
	}
	aside := beside(dir, "damaged-"+time.Now().UTC().Format("20060102T150405.000000Z"))
	if err := os.Rename(dir, aside); err != nil {
		return "", err
	}
	return "git could not read the clone " + dir + ": it was moved to " + aside + " and is made anew", nil
}

// cloneTo clones into a directory beside dir and renames it when it is complete, so that
// dir is never half a clone. finish is called before that.
func (m *Manager) cloneTo(ctx context.Context, r Repository, dir string, finish func(dir string) error) error {
	if err := m.inside(dir); err != nil {
		return err
	}
	if err := m.sweep(dir, cloneMark); err != nil {
		return err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(parent, filepath.Base(beside(dir, cloneMark))+"-")
	if err != nil {
		return err
	}
	defer func() { _ = m.removeAll(temp) }()
	if err := os.Chmod(temp, 0o755); err != nil {
		return err
	}
	began := time.Now()
	// Without files, and on no branch: the shared clone must not hold a branch that an
	// item wants.
	_, err = m.git.run(ctx, call{dir: parent, args: []string{
		"clone", "--quiet", "--no-checkout", "--no-recurse-submodules", "--origin", "origin", "--", r.url(m.protocol), temp,
	}})
	if err != nil {
		e := classify(err, ReasonCloneFailed)
		e.Problem = "cloning " + r.String() + ": " + e.Problem
		return e
	}
	if head, err := m.git.commit(ctx, temp, "HEAD"); err == nil && head != "" {
		if _, err := m.git.run(ctx, call{dir: temp, args: []string{"update-ref", "--no-deref", "HEAD", head}}); err != nil {
			return err
		}
	}
	if err := markFetched(temp, began); err != nil {
		return err
	}
	if finish != nil {
		if err := finish(temp); err != nil {
			return err
		}
	}
	return os.Rename(temp, dir)
}

// setOrigin undoes a change of the URL, by a change of the protocol or by anybody who
// works in a worktree.
func (m *Manager) setOrigin(ctx context.Context, r Repository, dir string) error {
	want := r.url(m.protocol)
	have, err := m.git.run(ctx, call{dir: dir, args: []string{"config", "--local", "--get-all", "remote.origin.url"}})
	if err == nil && have == want {
		return nil
	}
	_, err = m.git.run(ctx, call{dir: dir, args: []string{"config", "--local", "--replace-all", "remote.origin.url", want}})
	return err
}

func (m *Manager) fetchAll(ctx context.Context, dir string) error {
	began := time.Now()
	_, err := m.git.run(ctx, call{dir: dir, args: []string{
		"fetch", "--quiet", "--prune", "--no-recurse-submodules", "--", "origin", "+refs/heads/*:refs/remotes/origin/*",
	}})
	if err != nil {
		return err
	}
	return markFetched(dir, began)
}

// markFetched notes that a fetch that began then is complete: who asked before that need
// not fetch again.
func markFetched(dir string, began time.Time) error {
	file := filepath.Join(dir, ".git", fetchedFile)
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Chtimes(file, began, began)
}
