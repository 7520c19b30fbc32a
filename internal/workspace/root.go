package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode"
)

// openRoot makes the root when it is not there, and refuses what cannot hold checkouts.
// It gives the path without symlinks.
func openRoot(root string) (string, error) {
	refuse := func(problem, remedy string, err error) error {
		return &Error{
			Reason: ReasonRootUnusable, Op: "opening the workspace root " + quoted(root),
			Problem: problem, Remedy: remedy, Path: root, Err: err,
		}
	}
	switch {
	case root == "":
		return "", refuse("no root is configured", "set spec.workspace.root of the SessionClass", nil)
	case !filepath.IsAbs(root):
		return "", refuse("it is not an absolute path", "write it from / on", nil)
	case strings.ContainsFunc(root, unicode.IsControl):
		return "", refuse("it holds control characters", "choose another directory", nil)
	}
	root = filepath.Clean(root)
	if info, err := os.Stat(root); err == nil && !info.IsDir() {
		return "", refuse("it is a file", "choose a directory", nil)
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", refuse("it cannot be made: "+err.Error(), "make it, owned by the user that runs the agent", err)
	}
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return "", refuse("it cannot be read: "+err.Error(), "choose another directory", err)
	}
	if at := gitDirAbove(real); at != "" {
		return "", refuse("it is inside the repository data of git, "+at, "choose a directory outside of it", nil)
	}
	probe, err := os.CreateTemp(real, ".writable-")
	if err != nil {
		return "", refuse("it cannot be written to: "+err.Error(), "give it to the user that runs the agent", err)
	}
	_ = probe.Close()
	return real, os.Remove(probe.Name())
}

// gitDirAbove is the git directory that dir is in, or is; "" when there is none.
func gitDirAbove(dir string) string {
	for ; ; dir = filepath.Dir(dir) {
		bare := exists(filepath.Join(dir, "HEAD")) && isDir(filepath.Join(dir, "objects")) && isDir(filepath.Join(dir, "refs"))
		if bare || filepath.Base(dir) == ".git" {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// exists takes what cannot be looked at for there: what is not there is made anew, or
// forgotten.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}

func isDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

// inside refuses a path that is not below the root, or that a symlink leads to: what is
// made and removed there would be somewhere else.
func (m *Manager) inside(path string) error {
	rel, err := filepath.Rel(m.root, path)
	if err != nil || !filepath.IsLocal(rel) {
		return &Error{Reason: ReasonOutsideRoot, Problem: path + " is not below the workspace root " + m.root, Path: path}
	}
	at := m.root
	for part := range strings.SplitSeq(rel, string(filepath.Separator)) {
		at = filepath.Join(at, part)
		info, err := os.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			return &Error{
				Reason: ReasonOutsideRoot, Problem: at + " is a symlink, which could lead out of the workspace root", Path: at,
				Remedy: "replace it by a directory, or mount what it leads to",
			}
		}
	}
	return nil
}

// removeAll removes a tree below the root, also one with directories that are not
// writable, as those of Go's module cache are. It follows no symlink.
func (m *Manager) removeAll(path string) error {
	if err := m.inside(filepath.Dir(path)); err != nil {
		return err
	}
	root, err := os.OpenRoot(m.root)
	if err != nil {
		return err
	}
	defer root.Close()
	rel, err := filepath.Rel(m.root, path)
	if err != nil || rel == "." {
		return fmt.Errorf("%s is not below the root %s", path, m.root)
	}
	if err = root.RemoveAll(rel); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = fs.WalkDir(root.FS(), filepath.ToSlash(rel), func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && err == nil {
			_ = root.Chmod(p, 0o700)
		}
		return nil
	})
	return root.RemoveAll(rel)
}

// sweep removes what an interrupted call left beside path under this suffix.
func (m *Manager) sweep(path, suffix string) error {
	left, err := filepath.Glob(escapeGlob(beside(path, suffix)) + "*")
	if err != nil {
		return err
	}
	for _, p := range left {
		if err := m.removeAll(p); err != nil {
			return err
		}
	}
	return nil
}

func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}
