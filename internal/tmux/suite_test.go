//go:build linux

package tmux

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
)

// helperVariable makes the test binary a helper process instead: see helpers.
const helperVariable = "LOOP_TMUX_TEST_HELPER"

func TestMain(m *testing.M) {
	if name := os.Getenv(helperVariable); name != "" {
		os.Exit(helpers[name]())
	}
	os.Exit(m.Run())
}

// helpers are what a process of its own does with the socket in LOOP_TMUX_TEST_SOCKET.
var helpers = map[string]func() int{
	"ensure": func() int {
		s, err := New(Config{Socket: os.Getenv("LOOP_TMUX_TEST_SOCKET"), Binary: os.Getenv("LOOP_TMUX_TEST_BINARY")})
		if err == nil {
			var epoch Epoch
			if epoch, err = s.Ensure(context.Background()); err == nil {
				fmt.Println(epoch)
				return 0
			}
		}
		fmt.Println(err)
		return 1
	},
	"events": func() int {
		s, err := New(Config{Socket: os.Getenv("LOOP_TMUX_TEST_SOCKET"), Binary: os.Getenv("LOOP_TMUX_TEST_BINARY")})
		if err != nil {
			return 1
		}
		for range s.Events(context.Background()) {
		}
		return 0
	},
}

func helper(name, bin, socket string) *exec.Cmd {
	exe, err := os.Executable()
	Expect(err).NotTo(HaveOccurred())
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), helperVariable+"="+name, "LOOP_TMUX_TEST_SOCKET="+socket, "LOOP_TMUX_TEST_BINARY="+bin)
	return cmd
}

func TestTmux(t *testing.T) {
	if flag.Lookup("test.count").Value.String() != "1" {
		// Ginkgo runs a suite once in a process: for go test -count=10 each has its own.
		args := []string{"-test.run=^TestTmux$", "-test.count=1"}
		for _, a := range os.Args[1:] {
			if strings.HasPrefix(strings.TrimLeft(a, "-"), "ginkgo.") {
				args = append(args, a)
			}
		}
		if out, err := exec.Command(os.Args[0], args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	RegisterFailHandler(Fail)
	suite, reporter := GinkgoConfiguration()
	suite.Timeout = 10 * time.Minute
	RunSpecs(t, "tmux", suite, reporter)
}

// Each spec ends with as many goroutines as it began with. This is registered first, so
// that its cleanup comes last.
var _ = BeforeEach(func() {
	ignore := goleak.IgnoreCurrent()
	DeferCleanup(func() {
		Eventually(func() error { return goleak.Find(ignore) }).WithTimeout(5 * time.Second).Should(Succeed())
	})
	SetDefaultEventuallyTimeout(10 * time.Second)
	SetDefaultEventuallyPollingInterval(5 * time.Millisecond)
})

// binaries are the tmux programs to test with: those of TMUX_BINARIES, separated as on
// PATH (or by commas or blanks), or tmux on PATH.
func binaries() []string {
	names := strings.FieldsFunc(os.Getenv("TMUX_BINARIES"), func(r rune) bool { return r == ':' || r == ',' || r == ' ' })
	if len(names) == 0 {
		names = []string{"tmux"}
	}
	return names
}

// with describes a subject once for every tmux.
func with(subject string, body func(bin string)) bool {
	for _, bin := range binaries() {
		Describe(subject+" ["+bin+"]", func() { body(bin) })
	}
	return true
}

// fixture is a Server on a socket of its own, with everything that it started.
type fixture struct {
	*Server
	dir   string
	bin   string
	epoch Epoch
	uids  []string
}

// uidSerial makes UIDs that no other run of the suite uses.
var uidSerial atomic.Int64

func newUID() string {
	return fmt.Sprintf("u%d-%d-%d", os.Getpid(), time.Now().UnixNano(), uidSerial.Add(1))
}

// shortDir is a private directory whose path leaves room for a socket name.
func shortDir() string {
	dir, err := os.MkdirTemp("/tmp", "lt")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	return dir
}

// unstarted is a fixture without a server. change adapts the configuration.
func unstarted(bin string, change ...func(*Config)) *fixture {
	f := &fixture{dir: shortDir(), bin: bin}
	cfg := Config{Binary: bin, Socket: filepath.Join(f.dir, "s"), Timeout: 20 * time.Second}
	for _, c := range change {
		c(&cfg)
	}
	s, err := New(cfg)
	Expect(err).NotTo(HaveOccurred())
	f.Server = s
	DeferCleanup(f.end)
	return f
}

// started is a fixture with a running server.
func started(bin string, change ...func(*Config)) *fixture {
	f := unstarted(bin, change...)
	var err error
	f.epoch, err = f.Ensure(context.Background())
	Expect(err).NotTo(HaveOccurred())
	return f
}

// hang freezes the server, and has its clients wait 300 ms for it and no longer. What it
// returns lets both go on as before: 300 ms can be too short for a server that starts.
func (f *fixture) hang() (goOn func()) {
	patience := f.timeout
	freeze(f.epoch.PID)
	f.timeout = 300 * time.Millisecond
	return func() {
		f.timeout = patience
		thaw(f.epoch.PID)
	}
}

// end ends the servers of the fixture's socket and what its sessions left behind.
func (f *fixture) end() {
	for {
		pid, _, ok := findServer(f.socket)
		if !ok {
			break
		}
		killPID(pid)
	}
	for _, uid := range f.uids {
		_, err := EndProcesses(context.Background(), uid, 0)
		Expect(err).NotTo(HaveOccurred())
	}
}

// killPID ends a process that a test started, and waits until it has ended.
func killPID(pid int) {
	p, err := openProcess(pid)
	if err != nil {
		return
	}
	defer p.close()
	_ = p.signal(syscall.SIGKILL)
	Expect(p.ended(10 * time.Second)).To(BeTrue())
}

func (f *fixture) request(name string, argv ...string) SpawnRequest {
	uid := newUID()
	f.uids = append(f.uids, uid)
	return SpawnRequest{Name: name, UID: uid, Generation: "1", Object: "standingsession/default/" + name, Dir: f.dir, Argv: argv}
}

// spawn creates a session that is ours; without argv it sleeps.
func (f *fixture) spawn(name string, argv ...string) Target {
	GinkgoHelper()
	if len(argv) == 0 {
		argv = []string{"/bin/sleep", "infinity"}
	}
	req := f.request(name, argv...)
	sp, err := f.Spawn(context.Background(), req)
	Expect(err).NotTo(HaveOccurred())
	return Target{UID: req.UID, SessionID: sp.SessionID, PaneID: sp.PaneID, Epoch: sp.Epoch}
}

// person runs tmux as somebody at a terminal would, on the fixture's socket.
func (f *fixture) person(args ...string) string {
	GinkgoHelper()
	out, err := f.try(args...)
	Expect(err).NotTo(HaveOccurred(), "tmux %q: %s", args, out)
	return strings.TrimSuffix(out, "\n")
}

func (f *fixture) try(args ...string) (string, error) {
	cmd := exec.Command(f.binary, append([]string{"-u", "-S", f.socket, "-f", "/dev/null"}, args...)...)
	cmd.Env = f.clientEnv
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (f *fixture) snapshot() Snapshot {
	GinkgoHelper()
	snap, err := f.Snapshot(context.Background())
	Expect(err).NotTo(HaveOccurred())
	return snap
}

// session is our session with this name, which must exist.
func (f *fixture) session(name string) Session {
	GinkgoHelper()
	s, ok := f.snapshot().ByName(name)
	Expect(ok).To(BeTrue(), "no session %s", name)
	return s
}

func (f *fixture) names() []string {
	GinkgoHelper()
	var out []string
	for _, s := range f.snapshot().Sessions {
		out = append(out, s.Name)
	}
	return out
}

// died waits until every pane of a session is dead and its end is known.
func (f *fixture) died(name string) Session {
	GinkgoHelper()
	var s Session
	Eventually(func(g Gomega) {
		s = f.session(name)
		g.Expect(s.Live()).To(BeFalse())
		g.Expect(s.Panes[0].Dying).To(BeFalse())
	}).Should(Succeed())
	return s
}

// reader spawns a program that switches bracketed paste on and keeps every byte that it
// is given in a file.
func (f *fixture) reader(name string) (Target, func() string) {
	GinkgoHelper()
	file := filepath.Join(f.dir, name+".got")
	t := f.spawn(name, "/bin/sh", "-c", `stty raw -echo; : >"$0"; printf '\033[?2004hREADY'; exec cat >>"$0"`, file)
	f.ready(t)
	return t, func() string {
		data, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		return string(data)
	}
}

// ready waits until the pane's program has printed READY.
func (f *fixture) ready(t Target) {
	GinkgoHelper()
	Eventually(func() (string, error) { return f.Capture(context.Background(), t, 0) }).Should(ContainSubstring("READY"))
}

// ended is a session whose program has ended, behind what the script printed. tmux drops
// what it has not read when a program ends: of 300 that ended at once, 4 lost it.
func (f *fixture) ended(name, script string) Target {
	GinkgoHelper()
	t := f.spawn(name, "/bin/sh", "-c", script+"; echo READY; exec sleep infinity")
	f.ready(t)
	Expect(outcome(f.Signal(context.Background(), t, syscall.SIGKILL))).To(Equal(Done))
	f.died(name)
	return t
}

// bracketed is how a text arrives in a reader.
func bracketed(text string) string { return "\x1b[200~" + text + "\x1b[201~" }

// olderThan reports whether the fixture's tmux is older.
func (f *fixture) olderThan(v version) bool { return f.client.before(v) }

// outcome makes the two results of a guarded operation one value.
func outcome(r Result, err error) Outcome {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	return r.Outcome
}

// script writes an executable shell script.
func script(dir, name, body string) string {
	path := filepath.Join(dir, name)
	Expect(os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o755)).To(Succeed())
	return path
}

// needNamespace skips what needs a namespace of its own where none can be had.
func needNamespace(flags ...string) {
	if err := exec.Command("unshare", append(flags, "/bin/true")...).Run(); err != nil {
		Skip("needs unshare to work")
	}
}

// needRoot skips what only root can set up.
func needRoot() {
	if os.Geteuid() != 0 {
		Skip("needs root")
	}
}
