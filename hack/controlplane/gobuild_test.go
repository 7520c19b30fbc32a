package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fakeGo writes a shell script that stands for the go command. buildScript is
// what it does on `go build`; $OUT is the file to make.
func fakeGo(t *testing.T, version, buildScript string) *goBuilder {
	t.Helper()
	dir := t.TempDir()
	info := filepath.Join(dir, "info")
	put(t, dir, "info", `{"Version":"v1.37.2","Time":"2026-10-27T12:01:04Z"}`, 0o600)
	put(t, dir, "go", `#!/bin/sh
echo "$@" >> `+dir+`/calls
env | grep -E '^(CGO_ENABLED|GOFLAGS|GOWORK|GOTMPDIR)=' >> `+dir+`/env
case "$1" in
env) echo '{"GOVERSION":"`+version+`","GOPROXY":"https://proxy.test","GOCACHE":"/c","GOFLAGS":"-mod=vendor -p=3 -race"}' ;;
mod) [ -z "$GO_TEST_OFFLINE" ] || { echo '{"Error":"dial tcp: no such host"}'; exit 1; }; echo '{"Info":"`+info+`"}' ;;
build)
	while [ "$1" != -o ]; do shift; done
	OUT=$2
	`+buildScript+`
	;;
esac
`, 0o755)
	return &goBuilder{pins: testPins(t), moduleDir: dir, goCommand: filepath.Join(dir, "go")}
}

func TestGoBuild(t *testing.T) {
	b := fakeGo(t, "go1.26.8", `echo fmt >&2; echo k8s.io/api/core/v1 >&2; echo program > $OUT`)
	out := filepath.Join(t.TempDir(), "kube-apiserver")
	var steps []string
	if err := b.build(t.Context(), testPins(t).targets(false)[1], out, func(s string) { steps = append(steps, s) }); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(out); err != nil || string(got) != "program\n" {
		t.Errorf("got %q, %v", got, err)
	}
	if got := steps[len(steps)-1]; got != "compiling, 2 packages so far" {
		t.Errorf("last step %q", got)
	}
	calls, err := os.ReadFile(filepath.Join(b.moduleDir, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"mod download -json k8s.io/kubernetes\n",
		"build -v -mod=readonly -tags= -trimpath -buildvcs=false -ldflags=-s -w -X=",
		"version.buildDate=2026-10-27T12:01:04Z ",
		" -o " + out + " k8s.io/kubernetes/cmd/kube-apiserver\n",
	} {
		if !strings.Contains(string(calls), want) {
			t.Errorf("missing %q in\n%s", want, calls)
		}
	}
	env, err := os.ReadFile(filepath.Join(b.moduleDir, "env"))
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(filepath.Dir(out)); err != nil || len(entries) != 1 {
		t.Errorf("left %v (%v)", entries, err)
	}
	last := strings.Join(strings.Split(strings.TrimSpace(string(env)), "\n")[6:], "\n")
	for _, want := range []string{"GOFLAGS=-buildvcs=false -p=3", "GOTMPDIR=" + out + ".work", "CGO_ENABLED=0", "GOWORK=off"} {
		if !strings.Contains(last+"\n", want+"\n") {
			t.Errorf("missing %q in the environment of go build:\n%s", want, last)
		}
	}
}

func TestGoBuildErrors(t *testing.T) {
	for _, tc := range []struct {
		name, version, script string
		want                  []string
	}{
		{
			"proxy unreachable", "go1.26.8",
			`echo 'go: k8s.io/api@v0.37.2: Get "https://proxy.test/x": dial tcp: lookup proxy.test: no such host' >&2; exit 1`,
			[]string{"go build go.etcd.io/etcd/server/v3 failed", "no such host", "GOPROXY=https://proxy.test", "go env -w GOPROXY="},
		},
		{
			"disk full", "go1.26.8", `echo "write /c/x: no space left on device" >&2; exit 1`,
			[]string{"no space left", "a disk is full", "GOCACHE", cacheVar},
		},
		{"out of memory", "go1.26.8", `echo "compile: signal: killed" >&2; exit 1`, []string{"memory", "GOFLAGS=-p=1"}},
		{"compile error", "go1.26.8", `echo "# x/y" >&2; echo "x.go:1:1: broken here" >&2; exit 1`, []string{"broken here", "exit status 1"}},
		{"silent", "go1.26.8", `exit 3`, []string{"exit status 3", "it said nothing"}},
		{"too old", "go1.25.9", ``, []string{"go1.25.9", "needs Go 1.26.0 or newer", "GOTOOLCHAIN=auto"}},
		{
			"too old, by its own word", "go1.26.8", `echo "go: go.mod requires go >= 1.27 (running go 1.26.8; GOTOOLCHAIN=local)" >&2; exit 1`,
			[]string{"requires go >= 1.27", "https://go.dev/dl/"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := fakeGo(t, tc.version, tc.script).build(t.Context(), testPins(t).targets(false)[0],
				filepath.Join(t.TempDir(), "etcd"), func(string) {})
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("missing %q in: %v", want, err)
				}
			}
		})
	}
}

func TestGoModDownloadError(t *testing.T) {
	t.Setenv("GO_TEST_OFFLINE", "1") // for the script
	err := fakeGo(t, "go1.26.8", ``).build(t.Context(), testPins(t).targets(false)[0], filepath.Join(t.TempDir(), "etcd"), func(string) {})
	for _, want := range []string{"go mod download k8s.io/kubernetes failed", "no such host", "GOPROXY=https://proxy.test"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in: %v", want, err)
		}
	}
}

func TestGoMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, command := range []string{"", "/nowhere/go"} {
		b := &goBuilder{pins: testPins(t), moduleDir: ".", goCommand: command}
		err := b.build(t.Context(), testPins(t).targets(false)[0], filepath.Join(t.TempDir(), "etcd"), func(string) {})
		if err == nil || !strings.Contains(err.Error(), "install Go 1.26.0 or newer") {
			t.Errorf("goCommand %q: got %v", command, err)
		}
	}
}

func TestInterruptKillsGoAndItsChildren(t *testing.T) {
	for _, tc := range []struct{ name, script string }{
		{"obedient", `sleep 60 & echo $! > $OUT.pid; wait`},
		{"deaf", `trap "" INT; sleep 60 & echo $! > $OUT.pid; while :; do wait; sleep 1; done`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := fakeGo(t, "go1.26.8", tc.script)
			out := filepath.Join(t.TempDir(), "etcd")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			got := make(chan error, 1)
			go func() { got <- b.build(ctx, testPins(t).targets(false)[0], out, func(string) {}) }()
			pid := 0
			for deadline := time.Now().Add(10 * time.Second); pid == 0 && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
				if text, err := os.ReadFile(out + ".pid"); err == nil {
					pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
				}
			}
			if pid == 0 {
				t.Fatal("the script did not start")
			}
			cancel()
			select {
			case err := <-got:
				if !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
			case <-time.After(stopGrace + 5*time.Second):
				t.Fatal("did not end")
			}
			for deadline := time.Now().Add(5 * time.Second); !gone(pid); time.Sleep(5 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("process %d lives on", pid)
				}
			}
		})
	}
}

// gone says whether the process has ended, reaped or not.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func TestOlderGo(t *testing.T) {
	for _, tc := range []struct {
		have, want string
		older      bool
	}{
		{"go1.26.0", "1.26.0", false},
		{"go1.26.8", "1.26.0", false},
		{"go1.25.9", "1.26.0", true},
		{"go1.26", "1.26.1", true},
		{"go1.27rc1", "1.26.1", false},
		{"go2.0", "1.26.1", false},
		{"devel go1.28-abc", "1.26.1", false},
	} {
		if got := olderGo(tc.have, tc.want); got != tc.older {
			t.Errorf("olderGo(%q, %q) = %v", tc.have, tc.want, got)
		}
	}
}

func TestFollowKeepsTheLastLines(t *testing.T) {
	var in strings.Builder
	for i := range 30 {
		in.WriteString("line number " + strconv.Itoa(i) + "\n")
	}
	in.WriteString("go: downloading k8s.io/api v0.37.2\nfmt\n\n")
	var steps []string
	tail := follow(strings.NewReader(in.String()), func(s string) { steps = append(steps, s) })
	if len(tail) != 12 || tail[11] != "line number 29" {
		t.Errorf("got %q", tail)
	}
	if strings.Join(steps, "; ") != "downloading, 1 modules so far; compiling, 1 packages so far" {
		t.Errorf("got %q", steps)
	}
}
