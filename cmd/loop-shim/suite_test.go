package main_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"github.com/theloop-dev/the-loop/internal/harness/hook"
	"github.com/theloop-dev/the-loop/internal/harness/launch"
	"github.com/theloop-dev/the-loop/test/fakeharness/faketest"
	"github.com/theloop-dev/the-loop/test/testenv/ground"
)

// asHelper makes the test binary one of the helper processes below.
const asHelper = "SHIM_TEST_HELPER"

func TestMain(m *testing.M) {
	switch os.Getenv(asHelper) {
	case "":
		os.Exit(m.Run())
	case "signals":
		printSignals()
	case "listener":
		listenForEver()
	case "no-clone3":
		fmt.Println(withoutClone3(os.Args[1:]))
	}
	os.Exit(3)
}

// printSignals prints every signal that it gets, and ends with the second SIGUSR2.
func printSignals() {
	c := make(chan os.Signal, 100)
	signal.Notify(c, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	fmt.Println("ready")
	count := map[os.Signal]int{}
	for s := range c {
		count[s]++
		fmt.Printf("got %s %d.\n", s, count[s])
		if count[syscall.SIGUSR2] == 2 {
			os.Exit(0)
		}
	}
}

// listenForEver is an agent that never reads its pokes.
func listenForEver() {
	if _, err := hook.Listen(context.Background(), os.Args[1]); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("ready")
	select {}
}

func TestShim(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(20 * time.Second)
	SetDefaultEventuallyPollingInterval(5 * time.Millisecond)
	RunSpecs(t, "loop-shim")
}

// The programs under test.
var shim, fakeharness string

var _ = SynchronizedBeforeSuite(func() []byte {
	const module = "github.com/theloop-dev/the-loop/"
	static := []string{"CGO_ENABLED=0"}
	a, err := gexec.BuildWithEnvironment(module+"cmd/loop-shim", static)
	Expect(err).NotTo(HaveOccurred())
	b, err := gexec.BuildWithEnvironment(module+"test/fakeharness", static)
	Expect(err).NotTo(HaveOccurred())
	return []byte(a + "\n" + b)
}, func(paths []byte) {
	shim, fakeharness, _ = strings.Cut(string(paths), "\n")
})

var _ = SynchronizedAfterSuite(func() {}, gexec.CleanupBuildArtifacts)

var _ = BeforeEach(func() {
	leaks := ground.Leaks()
	DeferCleanup(func() { Eventually(leaks).Should(Succeed()) })
})

// pane is a loop-shim on a terminal of its own, as tmux starts it.
type pane struct{ *faketest.Terminal }

// run starts a launch on a new terminal. Fields that are empty get values that
// work.
func run(f launch.File) *pane {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	if f.Dir == "" {
		f.Dir = dir
	}
	if f.UID == "" {
		f.UID = "uid-1"
	}
	path, err := launch.Write(dir, f)
	Expect(err).NotTo(HaveOccurred())
	return runFile(path)
}

// runFile starts the launch of a file on a new terminal.
func runFile(path string) *pane {
	GinkgoHelper()
	cmd := exec.Command(shim, "exec", path)
	cmd.Env = append(os.Environ(), "TMUX=/tmp/x,1,0", "TMUX_PANE=%1", "SECRET=hunter2")
	t, err := faketest.Start(cmd, 100, 30)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(t.Close)
	return &pane{t}
}

// pid is the pane's process.
func (p *pane) pid() int { return p.Cmd.Process.Pid }

// status waits for the end.
func (p *pane) status() syscall.WaitStatus {
	GinkgoHelper()
	Eventually(p.Done).Should(BeClosed(), p.Output)
	return p.Cmd.ProcessState.Sys().(syscall.WaitStatus)
}

// shows waits for a text on the terminal.
func (p *pane) shows(text string) {
	GinkgoHelper()
	Eventually(p.Output).Should(ContainSubstring(text))
}

// types writes to the terminal as a person does.
func (p *pane) types(text string) {
	GinkgoHelper()
	Expect(p.Type(text)).To(Succeed())
}

// signal sends a signal to the pane's process, as another process.
func (p *pane) signal(s syscall.Signal) {
	GinkgoHelper()
	Expect(p.Cmd.Process.Signal(s)).To(Succeed())
}

// sh is a launch of a shell script.
func sh(script string, more ...func(*launch.File)) launch.File {
	f := launch.File{Argv: []string{"/bin/sh", "-c", script}}
	for _, m := range more {
		m(&f)
	}
	return f
}

// helper is a launch of one of the helper processes.
func helper(name string) launch.File {
	return launch.File{Argv: []string{self()}, Env: []string{asHelper + "=" + name}}
}

func self() string {
	GinkgoHelper()
	exe, err := os.Executable()
	Expect(err).NotTo(HaveOccurred())
	return exe
}

// stat is a field of /proc/<pid>/stat by its number in proc(5), "" when there is
// no such process.
func stat(pid, field int) string {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return ""
	}
	const first = 3
	return strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))[field-first]
}

// living reports whether the process runs.
func living(pid int) bool {
	s := stat(pid, 3)
	return s != "" && s != "Z" && s != "X"
}

// child is the only child of the pane's process.
func (p *pane) child() int {
	GinkgoHelper()
	var pid int
	Eventually(func() []int {
		all := childrenOf(p.pid())
		if len(all) == 1 {
			pid = all[0]
		}
		return all
	}).Should(HaveLen(1))
	return pid
}

// childrenOf are the direct children of a process, ended ones included.
func childrenOf(parent int) []int {
	var out []int
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && stat(pid, 4) == strconv.Itoa(parent) {
			out = append(out, pid)
		}
	}
	return out
}
