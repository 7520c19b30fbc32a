package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

	"github.com/theloop-dev/the-loop/internal/devcluster"
	"github.com/theloop-dev/the-loop/internal/tmux"
	"github.com/theloop-dev/the-loop/test/testenv"
)

// upState is one state directory with a terminal server of its own.
type upState struct {
	dir, socket string
	server      *tmux.Server
}

func newUpState() *upState {
	GinkgoHelper()
	dir, err := os.MkdirTemp(env.SuiteDir, "up-")
	Expect(err).NotTo(HaveOccurred())
	u := &upState{dir: dir, socket: filepath.Join(dir, "t", "s")}
	u.server, err = tmux.New(tmux.Config{Socket: u.socket})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		_, _ = u.down()
		_, _ = devcluster.StopProcesses(context.Background(), filepath.Join(dir, "control-plane"))
	})
	return u
}

// environment of a fresh machine: no harness of the operator's, a home of its own.
func (u *upState) environment() []string {
	return []string{"HOME=" + u.dir, "XDG_STATE_HOME=" + filepath.Join(u.dir, "xdg")}
}

func (u *upState) up(args ...string) *testenv.Process {
	GinkgoHelper()
	args = append([]string{"up", "--state-dir", u.dir, "--tmux-socket", u.socket, "--control-plane-dir", env.Assets}, args...)
	return env.Program("the-loop", u.environment(), args...)
}

func (u *upState) down() (string, error) {
	cmd := exec.Command(filepath.Join(env.Bin, "the-loop"), "down", "--state-dir", u.dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// isReady waits until `up` says so.
func isReady(p *testenv.Process) {
	GinkgoHelper()
	Eventually(p.Session, time.Minute).Should(gbytes.Say(`Ready\. Ctrl-C stops the-loop`))
}

func (u *upState) panePID() int {
	GinkgoHelper()
	snap, err := u.server.Snapshot(context.Background())
	Expect(err).NotTo(HaveOccurred())
	Expect(snap.Sessions).To(HaveLen(1))
	Expect(snap.Sessions[0].Live()).To(BeTrue())
	return snap.Sessions[0].Panes[0].PID
}

var _ = Describe("the-loop up and down", func() {
	It("reaches a live session, survives Ctrl-C, is adopted, is refused twice, and is ended", func() {
		u := newUpState()
		p := u.up()
		isReady(p)
		said := string(p.Out.Contents())
		Expect(said).To(MatchRegexp(`(?m)^NAMESPACE +NAME +HOST +READY +STATE`))
		Expect(said).To(MatchRegexp(`(?m)^default +hello +\S+ +True +Running`))
		kubeconfig := regexp.MustCompile(`export KUBECONFIG=(\S+)`).FindStringSubmatch(said)[1]
		Expect(filepath.IsAbs(kubeconfig)).To(BeTrue())
		Expect(said).To(ContainSubstring("attach -t '=loop-standing-hello'"))
		pid := u.panePID()

		By("refusing a second up on the same state by name of the first")
		second := u.up()
		Eventually(second.Session, 10*time.Second).Should(gexec.Exit(1))
		Expect(second.Err).To(gbytes.Say(`another the-loop up \(pid ` + itoa(p.PID()) + `\)`))

		By("stopping within 5 seconds by Ctrl-C, and leaving the session")
		began := time.Now()
		p.Interrupt()
		Eventually(p.Session, 10*time.Second).Should(gexec.Exit(0))
		Expect(time.Since(began)).To(BeNumerically("<", 5*time.Second))
		Expect(u.panePID()).To(Equal(pid))
		left, err := devcluster.Processes(filepath.Join(u.dir, "control-plane"))
		Expect(err).NotTo(HaveOccurred())
		Expect(left).To(BeEmpty())

		By("adopting the session")
		p = u.up()
		isReady(p)
		Expect(u.panePID()).To(Equal(pid))

		By("ending everything, and saying what")
		out, err := u.down()
		Expect(err).NotTo(HaveOccurred(), out)
		Eventually(p.Session, 10*time.Second).Should(gexec.Exit(0))
		Expect(out).To(And(ContainSubstring("ended the-loop up (pid "+itoa(p.PID())+")"), ContainSubstring("ended session loop-standing-hello"), ContainSubstring("ended the terminal server")))
		Expect(syscall.Kill(pid, 0)).NotTo(Succeed())
		snap, err := u.server.Snapshot(context.Background())
		Expect(err).NotTo(HaveOccurred())
		Expect(snap.Epoch.IsZero()).To(BeTrue())
		out, err = u.down()
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(ContainSubstring("Nothing to end"))
	})

	It("starts again after it was killed, with the session as it was", func() {
		u := newUpState()
		p := u.up()
		isReady(p)
		pid := u.panePID()
		p.Kill()
		p = u.up()
		isReady(p)
		Expect(u.panePID()).To(Equal(pid))
		p.Stop()
	})

	It("ends sessions of its own alone", func() {
		u := newUpState()
		p := u.up()
		isReady(p)
		_, err := testenv.Tmux(u.socket, "new-session", "-d", "-s", "mine", "sleep", "1000")
		Expect(err).NotTo(HaveOccurred())
		out, err := u.down()
		Expect(err).NotTo(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("left alone: 1 sessions"))
		snap, err := u.server.Snapshot(context.Background())
		Expect(err).NotTo(HaveOccurred())
		Expect(snap.Sessions).To(HaveLen(1))
		Expect(snap.Sessions[0].Name).To(Equal("mine"))
		Expect(u.server.Shutdown(context.Background(), snap.Epoch)).To(Succeed())
	})

	It("works with an existing cluster", func() {
		u := newUpState()
		args := []string{"up", "--state-dir", u.dir, "--tmux-socket", u.socket, "--kubeconfig", env.Cluster.Kubeconfig(), "--sample=false", "--host-name", "existing"}
		p := env.Program("the-loop", u.environment(), args...)
		isReady(p)
		Eventually(func() string { out, _ := env.TryKubectl("get", "shost", "existing"); return out }).Should(ContainSubstring("Enabled"))
		p.Stop()
		env.Kubectl("delete", "shost", "existing")
		// What `up` made for itself must not be every other test's default.
		env.Kubectl("delete", "sclass", "-l", "theloop.dev/default-class=true")
	})

	DescribeTable("refuses what cannot work, saying what and why, and leaves nothing behind",
		func(args func(u *upState) []string, says string) {
			u := newUpState()
			p := env.Program("the-loop", u.environment(), append([]string{"up"}, args(u)...)...)
			Eventually(p.Session, time.Minute).Should(gexec.Exit(1))
			Expect(string(p.Err.Contents())).To(MatchRegexp(says))
			Expect(u.socket).NotTo(BeAnExistingFile())
		},
		Entry("a state directory that cannot be written", func(u *upState) []string {
			Expect(os.WriteFile(filepath.Join(u.dir, "file"), nil, 0o600)).To(Succeed())
			return []string{"--state-dir", filepath.Join(u.dir, "file", "x"), "--control-plane-dir", env.Assets}
		}, `state directory cannot be made.*--state-dir`),
		Entry("a socket path that is too long", func(u *upState) []string {
			return []string{"--state-dir", u.dir, "--tmux-socket", filepath.Join(u.dir, strings.Repeat("x", 120)), "--control-plane-dir", env.Assets}
		}, `socket.*107`),
		Entry("no tmux", func(u *upState) []string {
			return []string{"--state-dir", u.dir, "--tmux", "/nonexistent/tmux", "--tmux-socket", u.socket, "--control-plane-dir", env.Assets}
		}, `(?i)tmux.*install`),
		Entry("a tmux that is too old", func(u *upState) []string {
			old := filepath.Join(u.dir, "tmux")
			Expect(os.WriteFile(old, []byte("#!/bin/sh\necho tmux 3.0a\n"), 0o700)).To(Succeed())
			return []string{"--state-dir", u.dir, "--tmux", old, "--tmux-socket", u.socket, "--control-plane-dir", env.Assets}
		}, `3\.2`),
		Entry("no control plane", func(u *upState) []string {
			return []string{"--state-dir", u.dir, "--tmux-socket", u.socket}
		}, `make controlplane`),
		Entry("a host name that cannot be one", func(u *upState) []string {
			return []string{"--state-dir", u.dir, "--host-name", "Bad_Name", "--control-plane-dir", env.Assets}
		}, `--host-name "Bad_Name"`),
		Entry("a kubeconfig that does not exist", func(u *upState) []string {
			return []string{"--state-dir", u.dir, "--tmux-socket", u.socket, "--kubeconfig", "/nonexistent"}
		}, `--kubeconfig.*no such file`),
	)
})
