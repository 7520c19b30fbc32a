package testenv

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/theloop-dev/the-loop/test/testenv/ground"
)

const (
	// directory is the variable by which each of them learns where the sources are.
	directory = "THE_LOOP_TEST_DIR"
	// endMargin is how long before the deadline of go test the specs are interrupted,
	// so that they can clean up.
	endMargin = 30 * time.Second
)

// RunSuite runs the specs of a suite that mostly waits, in as many processes as it is
// told, each of which has its own of everything: BeforeSuite runs in each. With a flag of
// ginkgo's (-ginkgo.focus, -ginkgo.v), and where coverage is measured, it runs in this one.
func RunSuite(t *testing.T, description string, processes int) {
	t.Helper()
	alone := false
	flag.Visit(func(f *flag.Flag) {
		alone = alone || strings.HasPrefix(f.Name, "ginkgo.") || f.Name == "test.coverprofile" && f.Value.String() != ""
	})
	if !alone {
		runShared(t, processes)
		return
	}
	if dir := os.Getenv(directory); dir != "" {
		t.Chdir(dir)
	}
	RunSpecs(t, description)
}

// runShared runs this very program by ginkgo's command, which hands out the specs.
func runShared(t *testing.T, processes int) {
	t.Helper()
	root, command := ground.Root(t), filepath.Join(t.TempDir(), "ginkgo")
	build := exec.Command("go", "build", "-o", command, "github.com/onsi/ginkgo/v2/ginkgo")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building ginkgo: %v\n%s", err, out)
	}
	self, err := os.Executable()
	must(t, err)
	dir, err := os.Getwd()
	must(t, err)
	args := []string{fmt.Sprint("--procs=", processes)}
	if testing.Verbose() {
		args = append(args, "-v")
	}
	if end, ok := t.Deadline(); ok {
		args = append(args, fmt.Sprint("--timeout=", max(time.Until(end)-endMargin, time.Second).Round(time.Second)))
	}
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd := exec.CommandContext(ctx, command, append(args, self)...)
	cmd.Stdout, cmd.Stderr, cmd.Env = os.Stdout, os.Stderr, append(os.Environ(), directory+"="+dir)
	// All of them are interrupted, and once: a terminal's interrupt reaches their group by
	// this process alone. The second one would keep them from cleaning up.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	if err := cmd.Run(); err != nil {
		t.Fatalf("the specs: %v", err)
	}
}
