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

// Inside the bundle: the head, the files, the branches and the stashes.
const (
	undoHead     = "refs/the-loop/undo/head"
	undoWork     = "refs/the-loop/undo/work"
	undoBranches = "refs/the-loop/undo/heads/"
	undoStashes  = "refs/the-loop/undo/stash/"
)

// scratch is a repository of ours over the files and the objects of a checkout. What is
// written into it leaves the checkout as it is, and neither configuration nor attributes
// of the checkout change what is read: files are taken byte for byte, no filter runs.
type scratch struct {
	g     *git
	dir   string
	files string
}

var scratchSettings = []string{
	"-c", "core.autocrlf=false", "-c", "core.safecrlf=false", "-c", "core.fileMode=true",
	"-c", "core.symlinks=true", "-c", "core.ignoreCase=false", "-c", "core.sparseCheckout=false",
	"-c", "core.looseCompression=1", "-c", "core.bigFileThreshold=64m",
}

func (s *scratch) run(ctx context.Context, stdin string, args ...string) (string, error) {
	raw := append([]string{"--git-dir=" + s.dir, "--work-tree=" + s.files}, scratchSettings...)
	return s.g.run(ctx, call{dir: s.files, raw: raw, args: args, stdin: stdin})
}

// newScratch makes one at dir, which does not exist yet.
func (g *git) newScratch(ctx context.Context, dir, checkout string) (*scratch, error) {
	objects, err := g.run(ctx, call{dir: checkout, args: []string{"rev-parse", "--git-path", "objects"}})
	if err != nil {
		return nil, err
	}
	common, err := g.run(ctx, call{dir: checkout, args: []string{"rev-parse", "--git-path", "info/exclude"}})
	if err != nil {
		return nil, err
	}
	format, err := g.run(ctx, call{dir: checkout, args: []string{"rev-parse", "--show-object-format"}})
	if err != nil {
		return nil, err
	}
	init := []string{"init", "--quiet", "--bare", "--template=", "--object-format=" + format, "--", dir}
	if _, err = g.run(ctx, call{args: init}); err != nil {
		return nil, err
	}
	info := filepath.Join(dir, "info")
	if err := os.MkdirAll(info, 0o700); err != nil {
		return nil, err
	}
	err = errors.Join(
		os.WriteFile(filepath.Join(dir, "objects", "info", "alternates"), []byte(absolute(checkout, objects)+"\n"), 0o600),
		os.WriteFile(filepath.Join(info, "attributes"), []byte("* -text -eol -ident -filter -working-tree-encoding\n"), 0o600),
		copyFile(absolute(checkout, common), filepath.Join(info, "exclude")))
	return &scratch{g: g, dir: dir, files: checkout}, err
}

func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// copyIndex begins with the checkout's own index, so that only what changed is read.
func (s *scratch) copyIndex(ctx context.Context) error {
	index, err := s.g.run(ctx, call{dir: s.files, args: []string{"rev-parse", "--git-path", "index"}})
	if err != nil {
		return err
	}
	index = absolute(s.files, index)
	shared, err := filepath.Glob(filepath.Join(escapeGlob(filepath.Dir(index)), "sharedindex.*"))
	if err != nil {
		return err
	}
	for _, from := range append(shared, index) {
		if err := copyFile(from, filepath.Join(s.dir, filepath.Base(from))); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies a file that need not be there. It keeps the time: git compares that of
// its index with those of the files to find the ones that it must read.
func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

// keep writes the unsaved work of the checkout at p into the undo directory. It gives nil
// when there is none. The checkout, its index and its refs stay as they are.
func (m *Manager) keep(ctx context.Context, p place, item workitem.Ref, undoDir string) (*Undo, error) {
	temp, err := os.MkdirTemp(undoDir, undoTemp)
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	entry := filepath.Join(temp, "entry")
	if err := os.Mkdir(entry, 0o700); err != nil {
		return nil, err
	}
	s, err := m.git.newScratch(ctx, filepath.Join(temp, "git"), p.path)
	if err != nil {
		return nil, err
	}
	u := &Undo{
		Ref: item.String(), Slug: item.Slug(), Repository: p.repo, Strategy: p.strategy, Path: p.path,
		CreatedAt: time.Now().UTC().Truncate(time.Microsecond),
	}
	if err := s.readHeads(ctx, u); err != nil {
		return nil, err
	}
	if err := s.readFiles(ctx, u); err != nil {
		return nil, err
	}
	unpushed, err := s.unpushed(ctx, u)
	if err != nil || u.Work == "" && !unpushed {
		return nil, err
	}
	if err := s.bundle(ctx, u, filepath.Join(entry, bundleFile)); err != nil {
		return nil, err
	}
	return u, u.publish(entry, undoDir)
}

// readHeads notes the commits that the checkout would take with it: of a worktree its
// head, since branches stay in the shared clone; of a clone also its branches and stashes.
func (s *scratch) readHeads(ctx context.Context, u *Undo) error {
	var err error
	if u.Branch, err = s.g.currentBranch(ctx, s.files); err != nil {
		return err
	}
	if u.Head, err = s.g.commit(ctx, s.files, "HEAD"); err != nil {
		return err
	}
	if u.Base, err = s.g.commit(ctx, s.files, baseRef); err != nil || u.Strategy != Clone {
		return err
	}
	out, err := s.g.run(ctx, call{dir: s.files, args: []string{"for-each-ref", "--format=%(objectname) %(refname)", "refs/heads/"}})
	if err != nil {
		return err
	}
	u.Branches = map[string]string{}
	for _, line := range lines(out) {
		sha, ref, _ := strings.Cut(line, " ")
		u.Branches[strings.TrimPrefix(ref, "refs/heads/")] = sha
	}
	stash, err := s.g.commit(ctx, s.files, "refs/stash")
	if err != nil || stash == "" {
		return err
	}
	out, err = s.g.run(ctx, call{dir: s.files, args: []string{"rev-list", "--walk-reflogs", "refs/stash", "--"}})
	u.Stashes = lines(out)
	return err
}

func lines(out string) []string {
	if out == "" {
		return nil
	}
	return strings.Split(out, "\n")
}

// readFiles makes the commits that hold what is staged and what is in the directory, when
// that differs from the head.
func (s *scratch) readFiles(ctx context.Context, u *Undo) error {
	if err := s.copyIndex(ctx); err != nil {
		return err
	}
	var head string
	var err error
	if u.Head == "" {
		head, err = s.run(ctx, "", "mktree")
	} else {
		head, err = s.run(ctx, "", "rev-parse", "--verify", u.Head+"^{tree}")
	}
	if err != nil {
		return err
	}
	unmerged, err := s.run(ctx, "", "ls-files", "--unmerged")
	if err != nil {
		return err
	}
	index := ""
	if unmerged != "" {
		u.Notes = append(u.Notes, "a merge was not resolved: its files are kept as they were, with their conflict marks")
	} else if index, err = s.run(ctx, "", "write-tree"); err != nil {
		return err
	}
	if _, err := s.run(ctx, "", "add", "--all", "--", "."); err != nil {
		return err
	}
	work, err := s.run(ctx, "", "write-tree")
	if err != nil {
		return err
	}
	if err := s.checkNested(ctx, u); err != nil {
		return err
	}
	if work == head && (index == "" || index == head) {
		return nil
	}
	var parents []string
	if u.Head != "" {
		parents = append(parents, u.Head)
	}
	if index != "" {
		if u.Index, err = s.commitTree(ctx, index, "the-loop: what was staged", parents); err != nil {
			return err
		}
		parents = append(parents, u.Index)
	}
	u.Work, err = s.commitTree(ctx, work, "the-loop: uncommitted work of "+u.Ref, parents)
	return err
}

func (s *scratch) commitTree(ctx context.Context, tree, subject string, parents []string) (string, error) {
	args := []string{"commit-tree", "-m", subject}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	return s.run(ctx, "", append(args, tree)...)
}

// checkNested looks into repositories inside the checkout, submodules and others: git
// takes none of their files. One with work of its own refuses the removal.
func (s *scratch) checkNested(ctx context.Context, u *Undo) error {
	out, err := s.run(ctx, "", "ls-files", "--stage", "-z")
	if err != nil {
		return err
	}
	for entry := range strings.SplitSeq(out, "\x00") {
		mode, rest, _ := strings.Cut(entry, " ")
		_, name, found := strings.Cut(rest, "\t")
		dir := filepath.Join(s.files, name)
		if mode != "160000" || !found || !exists(filepath.Join(dir, ".git")) {
			continue
		}
		changed, err := s.g.run(ctx, call{dir: dir, args: []string{"status", "--porcelain", "--ignore-submodules=none"}})
		if err != nil {
			return err
		}
		ahead, err := s.g.run(ctx, call{dir: dir, args: []string{
			"rev-list", "--max-count=1", "HEAD", "--branches", "--glob=refs/stash", "--not", "--remotes",
		}})
		if err != nil {
			return err
		}
		if changed != "" || ahead != "" {
			return &Error{
				Reason: ReasonBundleFailed, Path: dir,
				Problem: "the repository " + dir + " inside the checkout has work that is not pushed, which cannot be kept with it",
				Remedy:  "push it, or move it away",
			}
		}
		u.Notes = append(u.Notes, "the repository inside it, "+name+", had nothing unsaved and is not kept")
	}
	return nil
}

// unpushed reports whether a commit would be lost that no remote branch has.
func (s *scratch) unpushed(ctx context.Context, u *Undo) (bool, error) {
	args := append([]string{"rev-list", "--max-count=1"}, u.commits()...)
	if len(args) == 2 {
		return false, nil
	}
	args = append(args, "--not", "--remotes")
	if u.Base != "" {
		args = append(args, u.Base)
	}
	out, err := s.g.run(ctx, call{dir: s.files, args: append(args, "--")})
	return out != "", err
}

// commits are all that the checkout would take with it.
func (u *Undo) commits() []string {
	out := slices.Clone(u.Stashes)
	if u.Head != "" {
		out = append(out, u.Head)
	}
	for _, sha := range u.Branches {
		out = append(out, sha)
	}
	return out
}

// bundle writes everything that the default branch does not have. Other branches go when
// they are merged, and Restore needs what the bundle builds on.
func (s *scratch) bundle(ctx context.Context, u *Undo, file string) error {
	refs := map[string]string{}
	set := func(ref, sha string) {
		if sha != "" {
			refs[ref] = sha
		}
	}
	set(undoHead, u.Head)
	set(undoWork, u.Work)
	for branch, sha := range u.Branches {
		set(undoBranches+branch, sha)
	}
	for i, sha := range u.Stashes {
		set(fmt.Sprintf("%s%d", undoStashes, i), sha)
	}
	var updates, revs strings.Builder
	for ref, sha := range refs {
		fmt.Fprintf(&updates, "create %s %s\n", ref, sha)
		fmt.Fprintln(&revs, ref)
	}
	if _, err := s.run(ctx, updates.String(), "update-ref", "--stdin"); err != nil {
		return err
	}
	for _, ref := range []string{"refs/remotes/origin/HEAD", "refs/remotes/origin/main"} {
		stays, err := s.g.commit(ctx, s.files, ref)
		if err != nil {
			return err
		}
		if stays != "" {
			fmt.Fprintln(&revs, "^"+stays)
			break
		}
	}
	if _, err := s.run(ctx, revs.String(), "bundle", "create", "--quiet", file, "--stdin"); err != nil {
		return err
	}
	_, err := s.run(ctx, "", "bundle", "verify", "--quiet", file)
	return err
}
