package main_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/harness/launch"
	"github.com/theloop-dev/the-loop/test/fakeharness/faketest"
)

// fake is a launch of the fakeharness, and its log.
func fake(behaviour string, args ...string) (f launch.File, log faketest.Log) {
	GinkgoHelper()
	home := GinkgoT().TempDir()
	log = faketest.Log(filepath.Join(home, "log"))
	return launch.File{
		Argv: append([]string{fakeharness}, args...),
		Env:  []string{"FAKEHARNESS_HOME=" + home, "FAKEHARNESS_LOG=" + string(log), "FAKEHARNESS_BEHAVIOUR=" + behaviour},
	}, log
}

// stubborn waits for the children of a fakeharness and returns their pids; whatever
// a test leaves of them is killed.
func stubborn(log faketest.Log, n int) []int {
	GinkgoHelper()
	var pids []int
	Eventually(func() int {
		pids = nil
		for _, e := range log.Events("child") {
			pids = append(pids, e.PID)
		}
		return len(pids)
	}).Should(Equal(n))
	DeferCleanup(func() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	for _, pid := range pids {
		Expect(living(pid)).To(BeTrue())
	}
	return pids
}

var _ = Describe("the processes of a session", func() {
	const quick = 200 // milliseconds of grace

	DescribeTable("are all gone with the harness, whatever they did to escape",
		func(end func(p *pane, log faketest.Log), check func(ws syscall.WaitStatus)) {
			f, log := fake("children")
			f.GraceMillis = quick
			p := run(f)
			pids := stubborn(log, 5)
			Eventually(log.Count).WithArguments("ready").Should(Equal(1))
			end(p, log)
			check(p.status())
			for _, pid := range pids {
				Expect(living(pid)).To(BeFalse())
			}
		},
		Entry("that ended by itself", func(p *pane, _ faketest.Log) { p.types("quit\r") },
			func(ws syscall.WaitStatus) { Expect(ws.ExitStatus()).To(Equal(0)) }),
		Entry("that was asked to end", func(p *pane, _ faketest.Log) { p.signal(syscall.SIGTERM) },
			func(ws syscall.WaitStatus) { Expect(ws.ExitStatus()).To(Equal(143)) }),
		Entry("that was hung up", func(p *pane, _ faketest.Log) { p.signal(syscall.SIGHUP) },
			func(ws syscall.WaitStatus) { Expect(ws.ExitStatus()).To(Equal(129)) }),
		Entry("whose terminal went away", func(p *pane, _ faketest.Log) { p.HangUp() },
			func(ws syscall.WaitStatus) { Expect(ws.ExitStatus()).To(Equal(129)) }),
		Entry("that was killed", func(_ *pane, log faketest.Log) {
			_ = syscall.Kill(log.Events("started")[0].PID, syscall.SIGKILL)
		}, func(ws syscall.WaitStatus) { Expect(ws.Signal()).To(Equal(syscall.SIGKILL)) }),
	)

	It("T22: are gone after the terminal went away, even when the harness ignores everything", func() {
		f, log := fake("ignore-term,ignore-hup,children=setsid")
		f.GraceMillis = quick
		p := run(f)
		pids := stubborn(log, 1)
		Eventually(log.Count).WithArguments("ready").Should(Equal(1))
		p.HangUp()
		Expect(p.status().Signal()).To(Equal(syscall.SIGKILL))
		Expect(living(pids[0])).To(BeFalse())
		Expect(log.Count("signal")).To(Equal(2), "SIGHUP, then SIGTERM, then SIGKILL")
	})

	It("stay as long as the harness lives, whatever it ignores", func() {
		f, log := fake("ignore-term,ignore-hup,children=daemon")
		f.GraceMillis = -1
		p := run(f)
		pids := stubborn(log, 1)
		Eventually(log.Count).WithArguments("ready").Should(Equal(1))
		p.signal(syscall.SIGTERM)
		p.signal(syscall.SIGHUP)
		Eventually(log.Count).WithArguments("signal").Should(Equal(2))
		Expect(living(p.pid())).To(BeTrue())
		Expect(living(pids[0])).To(BeTrue())
		p.types("quit\r")
		Expect(p.status().ExitStatus()).To(BeZero())
		Expect(living(pids[0])).To(BeFalse())
	})

	It("end at once when they obey", func() {
		f := sh("sleep 1000 & (setsid sleep 1000 &) ; echo started; exit 3")
		f.GraceMillis = 10 * time.Minute.Milliseconds()
		Expect(run(f).status().ExitStatus()).To(Equal(3))
	})

	It("end when they are stopped", func() {
		f := sh("sleep 1000 & kill -STOP $!; exit 3")
		f.GraceMillis = 10 * time.Minute.Milliseconds()
		Expect(run(f).status().ExitStatus()).To(Equal(3))
	})

	It("end when they start others in their end", func() {
		f := sh(`sh -c 'trap "setsid sleep 1001 & exit" TERM; echo armed; while :; do sleep 0.05; done' & read line; exit 3`)
		f.GraceMillis = quick
		p := run(f)
		p.shows("armed")
		p.types("\n")
		Expect(p.status().ExitStatus()).To(Equal(3))
	})

	It("T32: leave no zombies while the harness runs", func() {
		p := run(sh("i=0; while [ $i -lt 300 ]; do (setsid true &); i=$((i+1)); done; echo done; sleep 1000"))
		p.shows("done")
		Eventually(func() []int { return childrenOf(p.pid()) }).Should(HaveLen(1))
	})

	It("die with the pane's process: no second harness may start beside the first", func() {
		f, log := fake("ignore-term,ignore-hup")
		p := run(f)
		Eventually(log.Count).WithArguments("ready").Should(Equal(1))
		harness := p.child()
		p.signal(syscall.SIGKILL)
		Expect(p.status().Signal()).To(Equal(syscall.SIGKILL))
		Eventually(func() bool { return living(harness) }).Should(BeFalse())
	})

	It("can be found by LOOP_UID", func() {
		f, log := fake("children")
		f.UID, f.GraceMillis = "uid-9", quick
		run(f)
		pids := stubborn(log, 5)
		for _, pid := range append(pids, log.Events("started")[0].PID) {
			environ, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
			Expect(err).NotTo(HaveOccurred())
			Expect(strings.Split(string(environ), "\x00")).To(ContainElement("LOOP_UID=uid-9"))
		}
		Expect(log.Events("started")[0].UID).To(Equal("uid-9"))
	})
})
