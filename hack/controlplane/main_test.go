package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRunPrintDir(t *testing.T) {
	root := t.TempDir()
	t.Setenv(cacheVar, root)
	var stdout, stderr bytes.Buffer
	if err := run(t.Context(), []string{"-print-dir"}, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(stdout.String(), filepath.Join(root, "controlplane", "k8s-v")) || stderr.Len() != 0 {
		t.Errorf("printed %q and %q", &stdout, &stderr)
	}
	if entries, err := os.ReadDir(root); err != nil || len(entries) != 0 {
		t.Errorf("made %v (%v)", entries, err)
	}
}

func TestRunWithACompleteCache(t *testing.T) {
	t.Setenv(cacheVar, t.TempDir())
	t.Setenv("PATH", "") // neither go nor kubectl
	var dir, stdout, stderr bytes.Buffer
	if err := run(t.Context(), []string{"-print-dir"}, &dir, &stderr); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		put(t, strings.TrimSpace(dir.String()), name, "x", 0o755)
	}
	if err := run(t.Context(), nil, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	if stdout.String() != dir.String() || stderr.Len() != 0 {
		t.Errorf("printed %q and %q", &stdout, &stderr)
	}
}

func TestRunUsage(t *testing.T) {
	t.Setenv(cacheVar, t.TempDir())
	for _, args := range [][]string{{"-kubectl=perhaps"}, {"extra"}, {"-nonsense"}} {
		var stdout, stderr bytes.Buffer
		if err := run(t.Context(), args, &stdout, &stderr); !errors.Is(err, errUsage) {
			t.Errorf("%v: got %v", args, err)
		}
		if stderr.Len() == 0 || stdout.Len() != 0 {
			t.Errorf("%v: printed %q and %q", args, &stdout, &stderr)
		}
	}
	t.Setenv(cacheVar, "relative")
	if err := run(t.Context(), nil, &bytes.Buffer{}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "absolute") {
		t.Errorf("got %v", err)
	}
}

func TestWantKubectl(t *testing.T) {
	found := func(string) (string, error) { return "/usr/bin/kubectl", nil }
	absent := func(string) (string, error) { return "", errors.New("not found") }
	for _, tc := range []struct {
		mode     string
		lookPath func(string) (string, error)
		want     bool
	}{
		{"auto", found, false}, {"auto", absent, true},
		{"always", found, true}, {"never", absent, false},
	} {
		if got, err := wantKubectl(tc.mode, tc.lookPath); err != nil || got != tc.want {
			t.Errorf("%s: got %v, %v", tc.mode, got, err)
		}
	}
}
