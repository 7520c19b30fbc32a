package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

func TestCacheRoot(t *testing.T) {
	home := func() (string, error) { return "/home/ann/.cache", nil }
	for _, tc := range []struct {
		name, env string
		user      func() (string, error)
		want, err string
	}{
		{name: "default", user: home, want: "/home/ann/.cache/the-loop"},
		{name: "variable", env: "/big/disk/", user: home, want: "/big/disk"},
		{name: "relative variable", env: "cache", user: home, err: "THE_LOOP_CACHE=cache is relative"},
		{name: "no home", user: func() (string, error) { return "", errors.New("neither") }, err: "THE_LOOP_CACHE"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := cacheRoot(func(string) string { return tc.env }, tc.user)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got error %v, want one with %q", err, tc.err)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestCacheKey(t *testing.T) {
	p := testPins(t)
	c := newCache("/root", p)
	prefix := "/root/controlplane/k8s-v1.37.2-etcd-v3.7.3-" + runtime.GOOS + "-" + runtime.GOARCH + "-"
	if !strings.HasPrefix(c.dir(), prefix) || len(c.dir()) != len(prefix)+8 {
		t.Errorf("got %s", c.dir())
	}
	if again := newCache("/root", testPins(t)); again != c {
		t.Errorf("the key is not stable: %s and %s", c.key, again.key)
	}
	p.modHash = "another"
	if newCache("/root", p).key == c.key {
		t.Error("other dependencies have the same key")
	}
}

// put writes a binary into dir.
func put(t *testing.T, dir, name, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

func TestMissing(t *testing.T) {
	p := testPins(t)
	c := newCache(t.TempDir(), p)
	check := func(want ...string) {
		t.Helper()
		var got []string
		for _, tg := range c.missing(p.targets(true)) {
			got = append(got, tg.name)
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("missing %v, want %v", got, want)
		}
	}
	check("etcd", "kube-apiserver", "kubectl")
	put(t, c.dir(), "etcd", "x", 0o755)
	put(t, c.dir(), "kube-apiserver", "", 0o755) // cut off
	put(t, c.dir(), "kubectl", "x", 0o644)       // no program
	check("kube-apiserver", "kubectl")
}

func TestPublish(t *testing.T) {
	p := testPins(t)
	c := newCache(t.TempDir(), p)
	if err := c.prepare(); err != nil {
		t.Fatal(err)
	}
	publish := func(ts []target, content string) error {
		t.Helper()
		tmp, err := c.tempDir()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(tmp) }()
		for _, tg := range ts {
			put(t, tmp, tg.name, content, 0o600)
		}
		return c.publish(tmp, ts)
	}
	if err := publish(p.targets(false), ""); err == nil {
		t.Error("empty binaries were published")
	}
	if _, err := os.Stat(c.dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a failed publish left %s", c.dir())
	}
	if err := publish(p.targets(false), "one"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(c.dir())
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("got %v, %v", info, err)
	}
	if err := publish(p.targets(true)[2:], "kubectl"); err != nil { // later, into the same directory
		t.Fatal(err)
	}
	if left := c.missing(p.targets(true)); len(left) != 0 {
		t.Errorf("missing %v", left)
	}
	if b, err := os.ReadFile(filepath.Join(c.dir(), "etcd")); err != nil || string(b) != "one" {
		t.Errorf("etcd was touched: %q, %v", b, err)
	}
}

func TestTempDirRemovesWhatKilledBuildsLeft(t *testing.T) {
	p := testPins(t)
	c := newCache(t.TempDir(), p)
	stale := filepath.Join(c.parent, "."+c.key+".tmp-123")
	other := filepath.Join(c.parent, ".k8s-v1.36.0.tmp-123")
	put(t, stale, "etcd", "half", 0o755)
	put(t, other, "etcd", "half", 0o755)
	if _, err := c.tempDir(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(stale); !errors.Is(err, os.ErrNotExist) {
		t.Error("the stale directory is still there")
	}
	if _, err := os.Stat(other); err != nil {
		t.Error("the directory of another version is gone")
	}
}

func TestUnusableCache(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	put(t, filepath.Dir(file), "file", "x", 0o600)
	c := newCache(file, testPins(t))
	err := c.prepare()
	if err == nil || !strings.Contains(err.Error(), c.parent) || !strings.Contains(err.Error(), cacheVar) {
		t.Errorf("got %v", err)
	}
	full := c.explain(&os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC})
	if !strings.Contains(full.Error(), "is full") || !strings.Contains(full.Error(), cacheVar) || !errors.Is(full, syscall.ENOSPC) {
		t.Errorf("got %v", full)
	}
}
