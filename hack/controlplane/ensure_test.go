package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeBuilder writes the target's name as the binary.
type fakeBuilder struct {
	mu     sync.Mutex
	built  []string
	before func(ctx context.Context, t target, out string) error
}

func (f *fakeBuilder) build(ctx context.Context, t target, out string, step func(string)) error {
	step("pretending")
	f.mu.Lock()
	f.built = append(f.built, t.name)
	f.mu.Unlock()
	if f.before != nil {
		if err := f.before(ctx, t, out); err != nil {
			return err
		}
	}
	return os.WriteFile(out, []byte(t.name), 0o600)
}

func testEnsurer(t *testing.T, root string, b builder) (ensurer, *bytes.Buffer) {
	t.Helper()
	var said bytes.Buffer
	return ensurer{cache: newCache(root, testPins(t)), builder: b, out: &progress{w: &said}, every: 5 * time.Millisecond}, &said
}

// leftovers lists what is in the cache beside the lock and the finished directory.
func leftovers(t *testing.T, c cache) []string {
	t.Helper()
	entries, err := os.ReadDir(c.parent)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if e.Name() != c.key && e.Name() != c.key+".lock" {
			out = append(out, e.Name())
		}
	}
	return out
}

func TestEnsureBuildsOnce(t *testing.T) {
	b := &fakeBuilder{}
	e, said := testEnsurer(t, t.TempDir(), b)
	b.before = func(_ context.Context, _ target, out string) error {
		if _, err := os.Stat(e.cache.dir()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the directory is visible while it is built (%v)", err)
		}
		if filepath.Dir(filepath.Dir(out)) != e.cache.parent {
			t.Errorf("%s is not built next to its final place", out)
		}
		time.Sleep(20 * time.Millisecond) // for a progress line
		return nil
	}
	ts := testPins(t).targets(false)
	if err := e.ensure(t.Context(), ts); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(b.built, " "); got != "etcd kube-apiserver" {
		t.Errorf("built %s", got)
	}
	for _, want := range []string{"etcd (1 of 2): pretending", "kube-apiserver (2 of 2): built in", e.cache.dir(), "done in"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("did not say %q but:\n%s", want, said)
		}
	}
	said.Reset()
	if err := e.ensure(t.Context(), ts); err != nil || len(b.built) != 2 || said.Len() != 0 {
		t.Errorf("again: %v, built %v, said %q", err, b.built, said)
	}
	b.before = nil
	if err := e.ensure(t.Context(), testPins(t).targets(true)); err != nil || strings.Join(b.built[2:], " ") != "kubectl" {
		t.Errorf("kubectl later: %v, built %v", err, b.built)
	}
	if left := leftovers(t, e.cache); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

func TestEnsureLeavesNothingHalfDone(t *testing.T) {
	broken := errors.New("broken")
	for _, tc := range []struct {
		name   string
		before func(cancel func()) func(context.Context, target, string) error
		want   error
	}{
		{"the second binary fails", func(func()) func(context.Context, target, string) error {
			return func(_ context.Context, t target, out string) error {
				if t.name == "etcd" {
					return nil
				}
				if err := os.WriteFile(out, []byte("half"), 0o755); err != nil {
					return err
				}
				return broken
			}
		}, broken},
		{"interrupted while it builds", func(cancel func()) func(context.Context, target, string) error {
			return func(ctx context.Context, _ target, _ string) error {
				cancel()
				<-ctx.Done()
				return ctx.Err()
			}
		}, context.Canceled},
		{"interrupted after the last binary", func(cancel func()) func(context.Context, target, string) error {
			return func(_ context.Context, t target, _ string) error {
				if t.name == "kube-apiserver" {
					cancel()
				}
				return nil
			}
		}, context.Canceled},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			e, _ := testEnsurer(t, t.TempDir(), &fakeBuilder{before: tc.before(cancel)})
			if err := e.ensure(ctx, testPins(t).targets(false)); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if _, err := os.Stat(e.cache.dir()); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s exists (%v)", e.cache.dir(), err)
			}
			if left := leftovers(t, e.cache); len(left) != 0 {
				t.Errorf("left %v", left)
			}
			// And it can be done after all.
			again, _ := testEnsurer(t, filepath.Dir(e.cache.parent), &fakeBuilder{})
			if err := again.ensure(t.Context(), testPins(t).targets(false)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestEnsureConcurrently(t *testing.T) {
	root := t.TempDir()
	b := &fakeBuilder{before: func(context.Context, target, string) error {
		time.Sleep(20 * time.Millisecond)
		return nil
	}}
	var wg sync.WaitGroup
	for range 8 {
		e, _ := testEnsurer(t, root, b)
		wg.Go(func() {
			if err := e.ensure(t.Context(), testPins(t).targets(true)); err != nil {
				t.Error(err)
			}
			if left := e.cache.missing(testPins(t).targets(true)); len(left) != 0 {
				t.Errorf("returned although %v are missing", left)
			}
		})
	}
	wg.Wait()
	if len(b.built) != 3 {
		t.Errorf("built %v", b.built)
	}
}

func TestEnsureSaysForWhomItWaits(t *testing.T) {
	e, said := testEnsurer(t, t.TempDir(), &fakeBuilder{})
	if err := e.cache.prepare(); err != nil {
		t.Fatal(err)
	}
	unlock, err := lock(t.Context(), e.cache.lockFile(), time.Hour, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 2*lockPoll)
	defer cancel()
	if err := e.ensure(ctx, testPins(t).targets(false)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if want := "waiting for pid "; !strings.Contains(said.String(), want) || !strings.Contains(said.String(), e.cache.dir()) {
		t.Errorf("did not say %q but:\n%s", want, said)
	}
}
