package testenv

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/tmux"
)

// Snapshot lists what the terminal server has.
func (h *Host) Snapshot() tmux.Snapshot {
	GinkgoHelper()
	snap, err := h.Server.Snapshot(context.Background())
	Expect(err).NotTo(HaveOccurred())
	return snap
}

// Sessions lists the terminal sessions of this host.
func (h *Host) Sessions() []tmux.Session {
	GinkgoHelper()
	return h.Snapshot().Sessions
}

// Pane is the one pane of the one terminal session of an object.
func (h *Host) Pane(obj Session) tmux.Pane {
	GinkgoHelper()
	mine := h.Snapshot().ByUID(string(obj.GetUID()))
	Expect(mine).To(HaveLen(1))
	Expect(mine[0].Panes).To(HaveLen(1))
	return mine[0].Panes[0]
}

// HarnessPID is the process below the pane's own: the harness itself.
func (h *Host) HarnessPID(obj Session) int {
	GinkgoHelper()
	pid := 0
	Eventually(func(g Gomega) {
		p := h.Pane(obj)
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.PID, p.PID))
		g.Expect(err).NotTo(HaveOccurred())
		_, err = fmt.Sscan(string(b), &pid)
		g.Expect(err).NotTo(HaveOccurred())
	}).Should(Succeed())
	return pid
}

// KillHarness ends the harness itself with SIGKILL.
func (h *Host) KillHarness(obj Session) {
	GinkgoHelper()
	Expect(syscall.Kill(h.HarnessPID(obj), syscall.SIGKILL)).To(Succeed())
}

// SignalServer sends a signal to the terminal server and returns which one it was. One
// that is killed has ended when this returns: until then it takes clients that it drops.
func (h *Host) SignalServer(sig syscall.Signal) tmux.Epoch {
	GinkgoHelper()
	epoch := h.Snapshot().Epoch
	Expect(epoch.IsZero()).To(BeFalse(), "no terminal server runs")
	Expect(syscall.Kill(epoch.PID, sig)).To(Succeed())
	if sig == syscall.SIGKILL {
		Eventually(func() bool {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", epoch.PID))
			return err != nil || strings.Contains(string(stat), ") Z ")
		}).Should(BeTrue(), "the killed terminal server still runs")
	}
	return epoch
}

// FreezeServer stops the terminal server, which answers nothing then, until it is
// thawed or the test ends.
func (h *Host) FreezeServer() (thaw func()) {
	GinkgoHelper()
	pid := h.SignalServer(syscall.SIGSTOP).PID
	DeferCleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	return func() {
		GinkgoHelper()
		Expect(syscall.Kill(pid, syscall.SIGCONT)).To(Succeed())
	}
}

// Tmux runs a tmux command on the host's terminal server, as a person would, and
// returns what it printed.
func (h *Host) Tmux(args ...string) string {
	GinkgoHelper()
	out, err := Tmux(h.Socket, args...)
	Expect(err).NotTo(HaveOccurred(), out)
	return out
}

// Tmux runs a tmux command on the terminal server of a socket, which must run already.
func Tmux(socket string, args ...string) (string, error) {
	out, err := exec.Command("tmux", append([]string{"-N", "-u", "-S", socket}, args...)...).CombinedOutput()
	return string(out), err
}

// Keys presses keys in a terminal session, as a person does who is attached.
func (h *Host) Keys(session string, keys ...string) {
	GinkgoHelper()
	h.Tmux(append([]string{"send-keys", "-t", "=" + session + ":"}, keys...)...)
}

// Screen is what a terminal session shows, or why that cannot be told.
func (h *Host) Screen(session string) string {
	out, err := Tmux(h.Socket, "capture-pane", "-p", "-t", "="+session+":")
	if err != nil {
		return err.Error() + ": " + out
	}
	return out
}
