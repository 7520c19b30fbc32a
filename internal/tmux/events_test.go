//go:build linux

package tmux

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	. "github.com/onsi/gomega"
)

var _ = with("Events", func(bin string) {
	// watch starts Events and ends it with the spec.
	watch := func(f *fixture) <-chan struct{} {
		ctx, cancel := context.WithCancel(context.Background())
		events := f.Events(ctx)
		DeferCleanup(func() {
			cancel()
			Eventually(events).Should(BeClosed())
		})
		Eventually(func() int { return len(waiters(f.socket)) }).Should(Equal(1))
		return events
	}
	quiet := func(events <-chan struct{}) {
		GinkgoHelper()
		for { // what is under way may still arrive
			select {
			case <-events:
				continue
			default:
			}
			break
		}
		Consistently(events, 150*ms).ShouldNot(Receive())
	}

	It("tells that a program ended, by the server's hook and by the process itself, each without the other", func() {
		f := started(bin)
		one, two := f.spawn("one"), f.spawn("two")
		pid := f.session("two").Panes[0].PID
		events := watch(f)
		quiet(events)
		Expect(outcome(f.Signal(context.Background(), one, syscall.SIGKILL))).To(Equal(Done))
		f.died("one") // reminds a server that has overlooked it
		Eventually(events).Should(Receive())
		quiet(events)

		for _, hook := range []string{"pane-died", "pane-exited", "session-closed"} {
			f.person("set-hook", "-gu", hook)
		}
		f.WatchPanes([]int{pid})
		quiet(events)
		Expect(outcome(f.Signal(context.Background(), two, syscall.SIGKILL))).To(Equal(Done))
		Eventually(events).Should(Receive())
		f.WatchPanes([]int{pid, pid, 0, 1, -1})
		quiet(events) // once, though it stays in the list
	})

	It("tells that a session closed, also of the last of many at once", func() {
		f := started(bin)
		events := watch(f)
		for range 3 {
			var targets []Target
			for _, n := range []string{"a", "b", "c", "d"} {
				targets = append(targets, f.spawn(n))
			}
			quiet(events)
			for _, t := range targets {
				Expect(outcome(f.KillSession(context.Background(), t))).To(Equal(Done))
			}
			Eventually(events).Should(Receive())
		}
	})

	It("tells that the server went away, and works again with the next one", func() {
		f := started(bin)
		f.spawn("a")
		events := watch(f)
		quiet(events)
		killPID(f.epoch.PID)
		Eventually(events).Should(Receive())
		Eventually(func() (err error) { f.epoch, err = f.Ensure(context.Background()); return err }).Should(Succeed())
		t := f.spawn("a")
		Eventually(func() int { return len(waiters(f.socket)) }).Should(Equal(1))
		quiet(events)
		Expect(outcome(f.KillSession(context.Background(), t))).To(Equal(Done))
		Eventually(events).Should(Receive())
	})

	It("T24: leaves no client behind, neither when its context ends nor when this process is killed", func() {
		f := started(bin)
		ctx, cancel := context.WithCancel(context.Background())
		events := f.Events(ctx)
		f.WatchPanes([]int{os.Getpid()})
		Eventually(func() int { return len(waiters(f.socket)) }).Should(Equal(1))
		cancel()
		Eventually(events).Should(BeClosed())
		Expect(waiters(f.socket)).To(BeEmpty())
		f.WatchPanes([]int{os.Getpid()})

		cmd := helper("events", bin, f.socket)
		Expect(cmd.Start()).To(Succeed())
		Eventually(func() int { return len(waiters(f.socket)) }).Should(Equal(1))
		Expect(cmd.Process.Kill()).To(Succeed())
		Expect(cmd.Wait()).NotTo(Succeed())
		Eventually(func() int { return len(waiters(f.socket)) }).Should(Equal(0))
		Expect(f.snapshot().Epoch).To(Equal(f.epoch))
	})

	It("T06: a client that waits is not a reason for a hung server to hang us", func() {
		f := started(bin)
		ctx, cancel := context.WithCancel(context.Background())
		events := f.Events(ctx)
		Eventually(func() int { return len(waiters(f.socket)) }).Should(Equal(1))
		freeze(f.epoch.PID)
		cancel()
		Eventually(events).Should(BeClosed())
		thaw(f.epoch.PID)
	})

	It("runs without a server, and hears the first one", func() {
		f := unstarted(bin)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		events := f.Events(ctx)
		Eventually(events).Should(Receive())
		_, err := f.Ensure(ctx)
		Expect(err).NotTo(HaveOccurred())
		t := f.spawn("a")
		Eventually(func() int { return len(waiters(f.socket)) }).Should(Equal(1))
		Expect(outcome(f.KillSession(ctx, t))).To(Equal(Done))
		Eventually(events).Should(Receive())
		cancel()
		Eventually(events).Should(BeClosed())
	})
})

// waiters are the clients that wait for events of the server of a socket.
func waiters(socket string) []int {
	pids, err := listProcesses()
	Expect(err).NotTo(HaveOccurred())
	var found []int
	for _, pid := range pids {
		data, err := os.ReadFile(procPath(pid, "cmdline"))
		if err == nil && strings.HasSuffix(string(data), "\x00"+filepath.Clean(socket)+"\x00wait-for\x00"+eventChannel+"\x00") {
			found = append(found, pid)
		}
	}
	return found
}
