//go:build linux

package tmux

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// The benchmarks compare with the bare tmux client doing the same in the same run, so that
// the figures mean something on any machine. x-of-bare is our time as a multiple of it.

// benchServer is a server with n stamped sessions besides one whose pane reads.
func benchServer(b *testing.B, n int) (*fixture, Target) {
	b.Helper()
	RegisterTestingT(b)
	f := &fixture{dir: b.TempDir(), bin: binaries()[0]}
	s, err := New(Config{Binary: f.bin, Socket: filepath.Join(f.dir, "d", "s"), Timeout: time.Minute})
	Expect(err).NotTo(HaveOccurred())
	f.Server = s
	b.Cleanup(f.end)
	f.epoch, err = f.Ensure(context.Background())
	Expect(err).NotTo(HaveOccurred())
	manySessions(f, n)
	sp, err := f.Spawn(context.Background(), f.request("reader", "/bin/sh", "-c", `stty raw -echo; printf '\033[?2004hREADY'; exec cat >/dev/null`))
	Expect(err).NotTo(HaveOccurred())
	t := Target{UID: f.uids[0], SessionID: sp.SessionID, PaneID: sp.PaneID, Epoch: sp.Epoch}
	Eventually(func() (string, error) { return f.Capture(context.Background(), t, 0) }).Should(ContainSubstring("READY"))
	return f, t
}

// bare runs the tmux client without anything of ours.
func bare(f *fixture, stdin string, args ...string) {
	cmd := exec.Command(f.binary, append([]string{"-u", "-N", "-S", f.socket}, args...)...)
	cmd.Env = f.clientEnv
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	if out, err := cmd.Output(); err != nil {
		panic(fmt.Sprintf("%v: %s", err, out))
	}
}

// compare times ours and others in turn, so that a busy machine hits all alike, and
// reports our time as a multiple of each.
func compare(b *testing.B, ours func(i int), others map[string]func(i int)) {
	took, names := map[string]time.Duration{}, []string{}
	for name := range others {
		names = append(names, name)
	}
	i := 0
	for b.Loop() {
		ours(i)
		b.StopTimer()
		for _, name := range names {
			began := time.Now()
			others[name](i)
			took[name] += time.Since(began)
		}
		b.StartTimer()
		i++
	}
	for _, name := range names {
		b.ReportMetric(float64(b.Elapsed())/float64(took[name]), name)
	}
}

// BenchmarkSnapshot against "list-panes -a" as tmux prints it by default.
func BenchmarkSnapshot(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("sessions=%d", n), func(b *testing.B) {
			f, _ := benchServer(b, n-1)
			compare(b,
				func(int) {
					if snap, err := f.Snapshot(context.Background()); err != nil || len(snap.Sessions) != n {
						b.Fatalf("%d sessions, %v", len(snap.Sessions), err)
					}
				},
				map[string]func(int){"x-of-bare": func(int) { bare(f, "", "list-panes", "-a") }})
		})
	}
}

// BenchmarkDeliver is one Paste and one Submit against the bare tmux commands for the same
// bytes: in one invocation, and in the two that text and return need to arrive apart.
func BenchmarkDeliver(b *testing.B) {
	for _, size := range []int{100, 10_000, 1 << 20} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			f, t := benchServer(b, 99)
			text := strings.Repeat("0123456789abcde\n", size/16+1)[:size]
			pasteText := []string{"load-buffer", "-b", "b", "-", ";", "paste-buffer", "-p", "-r", "-d", "-b", "b", "-t", t.PaneID}
			pasteReturn := []string{"set-buffer", "-b", "c", "\r", ";", "paste-buffer", "-d", "-b", "c", "-t", t.PaneID}
			compare(b,
				func(i int) {
					d := fmt.Sprint("d", i)
					r, err := f.Paste(context.Background(), t, d, []byte(text))
					if err == nil && r.Outcome == Done {
						r, err = f.Submit(context.Background(), t, d)
					}
					if err != nil || r.Outcome != Done {
						b.Fatal(r, err)
					}
				},
				map[string]func(int){
					"x-of-bare-one": func(int) { bare(f, text, append(append(append([]string{}, pasteText...), ";"), pasteReturn...)...) },
					"x-of-bare-two": func(int) { bare(f, text, pasteText...); bare(f, "", pasteReturn...) },
				})
		})
	}
}

// BenchmarkSpawn is a new session against the bare new-session.
func BenchmarkSpawn(b *testing.B) {
	f, _ := benchServer(b, 0)
	dir := b.TempDir()
	uid := newUID()
	f.uids = append(f.uids, uid)
	compare(b,
		func(i int) {
			_, err := f.Spawn(context.Background(), SpawnRequest{Name: fmt.Sprint("ours", i), UID: uid, Generation: "1", Dir: dir, Argv: []string{"/bin/sleep", "infinity"}})
			if err != nil {
				b.Fatal(err)
			}
		},
		map[string]func(int){"x-of-bare": func(i int) {
			bare(f, "", "new-session", "-d", "-s", fmt.Sprint("bare", i), "-c", dir, "/bin/sleep", "infinity")
		}})
}
