package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// cacheVar overrides the cache directory; errors name it.
const cacheVar = "THE_LOOP_CACHE"

// cacheRoot returns the absolute directory below which everything is cached.
func cacheRoot(getenv func(string) string, userCacheDir func() (string, error)) (string, error) {
	if root := getenv(cacheVar); root != "" {
		if !filepath.IsAbs(root) {
			return "", fmt.Errorf("%s=%s is relative: set it to an absolute path", cacheVar, root)
		}
		return filepath.Clean(root), nil
	}
	user, err := userCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache directory: %w: set HOME, or %s to an absolute path", err, cacheVar)
	}
	return filepath.Join(user, "the-loop"), nil
}

// cache is the place of one set of binaries.
type cache struct {
	parent string // absolute, shared by all versions
	key    string // the name of the set's directory in parent
}

// newCache names the place for the pinned versions on this platform. The key
// also depends on all of go.mod and on the flags, not on the version of Go: a
// new Go is no reason to build for a quarter of an hour what works.
func newCache(root string, p pins) cache {
	h := sha256.New()
	fmt.Fprintln(h, p.modHash)
	for _, t := range p.targets(true) {
		fmt.Fprintln(h, t.name, t.pkg, buildFlags, p.ldflags(t, ""))
	}
	return cache{
		parent: filepath.Join(root, "controlplane"),
		key: fmt.Sprintf("k8s-%s-etcd-%s-%s-%s-%s", p.k8s, p.etcd, runtime.GOOS, runtime.GOARCH,
			hex.EncodeToString(h.Sum(nil))[:8]),
	}
}

func (c cache) dir() string      { return filepath.Join(c.parent, c.key) }
func (c cache) lockFile() string { return c.dir() + ".lock" }

// missing returns the targets whose binary is not in the cache.
func (c cache) missing(ts []target) []target {
	var out []target
	for _, t := range ts {
		info, err := os.Stat(filepath.Join(c.dir(), t.name))
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o100 == 0 || info.Size() == 0 {
			out = append(out, t)
		}
	}
	return out
}

// prepare makes the parent directory.
func (c cache) prepare() error {
	if err := os.MkdirAll(c.parent, 0o755); err != nil {
		return c.explain(err)
	}
	return nil
}

// tempDir makes a directory next to the final one. Those which killed builds
// left are removed first: whoever holds the lock is the only builder.
func (c cache) tempDir() (string, error) {
	prefix := "." + c.key + ".tmp-"
	entries, err := os.ReadDir(c.parent)
	if err != nil {
		return "", c.explain(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			if err := os.RemoveAll(filepath.Join(c.parent, e.Name())); err != nil {
				return "", c.explain(err)
			}
		}
	}
	dir, err := os.MkdirTemp(c.parent, prefix)
	if err != nil {
		return "", c.explain(err)
	}
	return dir, nil
}

// publish moves the binaries in tmp to their final place: the whole directory at
// once when there is none yet, otherwise file by file, each atomically.
func (c cache) publish(tmp string, ts []target) error {
	for _, t := range ts {
		if err := seal(filepath.Join(tmp, t.name)); err != nil {
			return c.explain(err)
		}
	}
	// MkdirTemp made it private; other users may run what is in the cache.
	if err := os.Chmod(tmp, 0o755); err != nil {
		return c.explain(err)
	}
	err := os.Rename(tmp, c.dir())
	if err == nil {
		return nil
	}
	if info, statErr := os.Stat(c.dir()); statErr != nil || !info.IsDir() {
		return c.explain(err)
	}
	for _, t := range ts {
		if err := os.Rename(filepath.Join(tmp, t.name), filepath.Join(c.dir(), t.name)); err != nil {
			return c.explain(err)
		}
	}
	return nil
}

// seal checks a freshly built binary and puts it on the disk, so that a power
// cut after the rename does not leave an empty file that looks complete.
func seal(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() == 0 {
		return fmt.Errorf("%s was built but is not a program (mode %v, %d bytes)", path, info.Mode(), info.Size())
	}
	if err := f.Chmod(0o755); err != nil {
		return err
	}
	return f.Sync()
}

// explain says what a person can do about an error of the file system.
func (c cache) explain(err error) error {
	remedy := fmt.Sprintf("make %s writable, or set %s to an absolute path of a writable directory", c.parent, cacheVar)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		remedy = fmt.Sprintf("the disk of %s is full: free about 1 GB, or set %s to a directory on another disk", c.parent, cacheVar)
	}
	return fmt.Errorf("cannot use the cache directory %s: %w: %s", c.parent, err, remedy)
}
