package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"

	"github.com/theloop-dev/the-loop/internal/filelock"
)

var _ = Describe("how many sessions are delivered to at a time", func() {
	DescribeTable("C053: is what the flag says, else the configuration file, else eight", func(file, flag string, want int) {
		path := filepath.Join(GinkgoT().TempDir(), "c.yaml")
		Expect(os.WriteFile(path, []byte(file), 0o600)).To(Succeed())
		o := &upOptions{}
		flags := pflag.NewFlagSet("up", pflag.ContinueOnError)
		o.flags(flags)
		args := []string{"--config", path}
		if flag != "" {
			args = append(args, flag)
		}
		Expect(flags.Parse(args)).To(Succeed())
		Expect(o.readConfig(logr.Discard())).To(Succeed())
		Expect(o.agent.Workers).To(Equal(want))
	},
		Entry(nil, "", "", 8),
		Entry(nil, "routing: {spawnWorkdir: /srv}", "", 8),
		Entry(nil, "routing: {maxConcurrentDispatches: 2}", "", 2),
		Entry(nil, "routing: {maxConcurrentDispatches: 2}", "--workers=8", 8),
		Entry(nil, "", "--workers=1", 1),
	)
})

var _ = Describe("T02, T33: the bounds of sessions' memory", func() {
	It("can be chosen for the agent that up runs, and are refused with the form that is allowed", func() {
		o := &upOptions{}
		flags := pflag.NewFlagSet("up", pflag.ContinueOnError)
		o.flags(flags)
		Expect(flags.Parse([]string{"--history-limit=500", "--cgroup-parent=/sys/fs/cgroup/sessions"})).To(Succeed())
		Expect(o.agent.HistoryLimit).To(Equal(500))
		Expect(o.agent.CgroupParent).To(Equal("/sys/fs/cgroup/sessions"))

		st := state(GinkgoT().TempDir())
		o.agent.Dir = st.agent()
		o.agent.CgroupParent = "sessions"
		Expect(o.keepHostName(st)).To(MatchError(ContainSubstring(`--cgroup-parent "sessions" must be the absolute path`)))
		o.agent.CgroupParent, o.agent.HistoryLimit = "", -1
		Expect(o.keepHostName(st)).To(MatchError(ContainSubstring("--history-limit -1 is not a number of lines from 0 to")))
	})
})

var _ = Describe("the-loop down", func() {
	DescribeTable("ends no process by its recorded pid alone", func(ctx SpecContext, hold func(state), says string) {
		bystander := exec.Command("sleep", "1000")
		Expect(bystander.Start()).To(Succeed())
		DeferCleanup(func() {
			_ = bystander.Process.Kill()
			_ = bystander.Wait()
		})
		st := state(GinkgoT().TempDir())
		hold(st)
		ended := 0
		err := endUp(ctx, st, upRecord{PID: bystander.Process.Pid}, GinkgoWriter, &ended)
		if says == "" {
			Expect(err).NotTo(HaveOccurred())
		} else {
			Expect(err).To(MatchError(And(ContainSubstring(says), ContainSubstring("nothing was ended"))))
		}
		Expect(ended).To(BeZero())
		Consistently(func() error { return bystander.Process.Signal(syscall.Signal(0)) }, 200*time.Millisecond).Should(Succeed())
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", bystander.Process.Pid))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(stat)).To(MatchRegexp(`\(sleep\) [^ZX]`), "it was ended")
	},
		Entry("when nobody holds the state", func(state) {}, ""),
		Entry("when another process holds the state", func(st state) {
			lock, err := filelock.Own(context.Background(), st.lock())
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(lock.Release)
		}, fmt.Sprintf("is held by process %d, which is not the the-loop up on record", os.Getpid())),
		Entry("when that cannot be told", func(st state) {
			Expect(os.Symlink("elsewhere", st.lock())).To(Succeed())
		}, "whether a the-loop up runs on"),
	)
})
