package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/fakeharness/faketest"
	"github.com/theloop-dev/the-loop/test/testenv"
)

// lookAlike is a process that is not ours and could be taken for it. It logs every signal
// that can be caught, and does not end by one.
type lookAlike struct {
	what, start string
	pid         int
	log         faketest.Log
}

// startOf tells a process from another that got its number: when it was started, "" when
// it does not run.
func startOf(pid int) string {
	b, err := os.ReadFile("/proc/" + itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	const state, start = 0, 19 // fields 3 and 22 of proc(5)
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if f[state] == "Z" {
		return ""
	}
	return f[start]
}

// untouched looks whether each still runs and got no signal.
func untouched(g Gomega, all []*lookAlike) {
	for _, l := range all {
		g.Expect(startOf(l.pid)).To(Equal(l.start), "%s was ended", l.what)
		g.Expect(l.log.Events("signal")).To(BeEmpty(), "%s was signalled", l.what)
	}
}

// crowd makes look-alikes of the sessions of one host.
type crowd struct {
	*testenv.Host
	all []*lookAlike
}

// environment of the next look-alike: what our harness has, but for home, log and UID. It
// runs no hook: those of our command line would speak for our session.
func (c *crowd) environment(uid string) (env []string, log faketest.Log) {
	dir := filepath.Join(c.Dir, "look-alike-"+itoa(len(c.all)))
	Expect(os.MkdirAll(dir, 0o700)).To(Succeed())
	log = faketest.Log(filepath.Join(dir, "log"))
	return []string{
		"FAKEHARNESS_HOME=" + dir, "FAKEHARNESS_LOG=" + string(log), "FAKEHARNESS_BEHAVIOUR=ignore-term,ignore-hup,never-ready",
		// None of these is the mark of uid.
		"LOOP_UID=" + uid + "0", "LOOP_UID_=" + uid, "OLD_LOOP_UID=" + uid, "loop_uid=" + uid, "NOTE=LOOP_UID=" + uid,
	}, log
}

func (c *crowd) add(what string, pid int, log faketest.Log) {
	GinkgoHelper()
	// It handles signals from when it has drawn its screen.
	Eventually(log.Count).WithArguments("framing-on").Should(Equal(1), what)
	start := startOf(pid)
	Expect(start).NotTo(BeEmpty(), what)
	c.all = append(c.all, &lookAlike{what: what, pid: pid, start: start, log: log})
}

// outside starts one with this command line and directory on a terminal of its own.
func (c *crowd) outside(what string, argv []string, dir, uid string) {
	GinkgoHelper()
	env, log := c.environment(uid)
	cmd := exec.Command(c.DemoHarness())
	cmd.Args, cmd.Dir, cmd.Env = argv, dir, append(os.Environ(), env...)
	t, err := faketest.Start(cmd, 80, 24)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(t.Close)
	c.add(what, cmd.Process.Pid, log)
}

// inside starts one in a terminal session of somebody's on a terminal server.
func (c *crowd) inside(what, socket, session string, argv []string, uid string) {
	GinkgoHelper()
	env, log := c.environment(uid)
	args := append([]string{"new-session", "-d", "-P", "-F", "#{pane_pid}", "-s", session, "-c", c.Work, "--", "env"}, env...)
	out, err := testenv.Tmux(socket, append(args, argv...)...)
	Expect(err).NotTo(HaveOccurred(), out)
	pid, err := strconv.Atoi(strings.TrimSpace(out))
	Expect(err).NotTo(HaveOccurred())
	c.add(what, pid, log)
}

// reusing starts one under a pid that was another's, or reports that it cannot be done
// here.
func (c *crowd) reusing(what string, pid int, argv []string, uid string) bool {
	GinkgoHelper()
	const next = "/proc/sys/kernel/ns_last_pid"
	env, log := c.environment(uid)
	for range 300 {
		if err := os.WriteFile(next, []byte(itoa(pid-1)), 0); err != nil {
			return false
		}
		cmd := exec.Command(c.DemoHarness())
		cmd.Args, cmd.Dir, cmd.Env = argv, c.Work, append(os.Environ(), env...)
		t, err := faketest.Start(cmd, 80, 24)
		Expect(err).NotTo(HaveOccurred())
		if cmd.Process.Pid == pid {
			DeferCleanup(t.Close)
			c.add(what, pid, log)
			return true
		}
		t.Close()
		_ = os.Remove(string(log))
	}
	return false
}

// around makes look-alikes of a session that runs.
func (c *crowd) around(s testenv.Session, other string) {
	GinkgoHelper()
	argv, err := os.ReadFile("/proc/" + itoa(c.HarnessPID(s)) + "/cmdline")
	Expect(err).NotTo(HaveOccurred())
	words := strings.Split(strings.TrimSuffix(string(argv), "\x00"), "\x00")
	env.Get(s)
	name, dir, uid := s.HostedStatus().TmuxTarget, s.HostedStatus().WorkingDirectory, string(s.GetUID())
	plain := []string{c.DemoHarness()}
	c.outside("the same command line in the same directory", words, dir, uid)
	c.inside("a terminal whose name begins like ours", c.Socket, name+"-2", words, uid)
	c.inside("a terminal with which our name begins", c.Socket, name[:len(name)-1], plain, uid)
	c.inside("a terminal of our name on another server", other, name, words, uid)
	c.inside("a terminal with the mark of an object like ours", c.Socket, "loop-other-of-"+name, plain, uid)
	c.Tmux("set-option", "-t", "=loop-other-of-"+name+":", "@loop_uid", uid+"0")
}

// otherServer is a terminal server of somebody's.
func (c *crowd) otherServer() string {
	GinkgoHelper()
	socket := filepath.Join(c.Dir, "o")
	cmd := exec.Command("tmux", "-S", socket, "-f", "/dev/null", "new-session", "-d", "-s", "other", "sleep", "1000")
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	DeferCleanup(func() {
		out, err := testenv.Tmux(socket, "kill-server")
		Expect(err).NotTo(HaveOccurred(), out)
	})
	return socket
}

var _ = Describe("what only looks like ours", func() {
	It("is never signalled and never ended, whatever becomes of the sessions that it looks like", func() {
		// What the harness leaves behind has to be swept, too.
		h := env.NewDemoHost("ignore-term", "ignore-hup", "children=setsid+daemon")
		h.UpdateClass(h.Class, func(c *api.SessionClass) { c.Spec.Tmux.HarnessKillGraceSeconds = new(int32(0)) })
		c := &crowd{Host: h}
		s, w := h.Standing("look"), h.WorkItem(1)
		h.Ready(s)
		h.Ready(w)
		aTurn(h, s, "first")
		aTurn(h, w, "of the item")
		other := c.otherServer()
		c.around(s, other)
		c.around(w, other)
		step := func(what string, do func()) {
			GinkgoHelper()
			By(what)
			do()
			untouched(Default, c.all)
		}
		started := func(n int) { GinkgoHelper(); Eventually(h.Events).WithArguments("started").Should(HaveLen(n)) }
		step("a harness that ends, and its return", func() {
			h.KillHarness(s)
			started(3)
			h.Ready(s)
		})
		step("a restart", func() {
			h.Update(s, func() { metav1.SetMetaDataAnnotation(&s.ObjectMeta, api.RestartRequestedAnnotation, "x") })
			started(4)
			h.Ready(s)
		})
		step("the end of the agent", func() {
			h.RestartAgent()
			aTurn(h, s, "second")
		})
		step("a stop, and a start in the place of what was retained", func() {
			want(s, api.SessionStateStopped)
			h.Await(s, api.ConditionReady, "True/Stopped")
			want(s, api.SessionStateRunning)
			started(5)
			h.Ready(s)
		})
		step("a cleanup", func() {
			want(w, api.SessionStateCleanedUp)
			h.Await(w, api.ConditionReady, "True/CleanedUp")
		})
		step("the deletions", func() {
			h.Delete(s)
			h.Delete(w)
			h.AwaitGone(s)
			h.AwaitGone(w)
		})
		h.RestartAgent()
		next := h.Standing("look")
		h.Ready(next)
		Consistently(untouched, 3*time.Second, 200*time.Millisecond).WithArguments(c.all).Should(Succeed())
		var names []string
		for _, t := range h.Sessions() {
			Expect(t.Live()).To(BeTrue())
			names = append(names, t.Name)
		}
		Expect(names).To(ConsistOf("loop-standing-look", "loop-standing-look-2", "loop-standing-loo", "loop-other-of-loop-standing-look",
			"loop-github-octo-repo-1-2", "loop-github-octo-repo-", "loop-other-of-loop-github-octo-repo-1"))
	})

	DescribeTable("is not signalled where it got the number of a process of ours that ended", func(end func(s *api.StandingSession)) {
		h := env.NewDemoHost()
		c := &crowd{Host: h}
		s := h.Standing("reused")
		aTurn(h, s, "first")
		pane := h.Pane(s).PID
		argv, err := os.ReadFile("/proc/" + itoa(pane) + "/cmdline")
		Expect(err).NotTo(HaveOccurred())
		words := strings.Split(strings.TrimSuffix(string(argv), "\x00"), "\x00")
		words[0] = h.DemoHarness()
		By("stopping the agent, which has seen the process live and is to end it")
		Expect(syscall.Kill(h.Agent.PID(), syscall.SIGSTOP)).To(Succeed())
		end(s)
		// The number is free when nobody is left of its session, which is the harness. An init
		// that adopts it may take its time to reap it.
		Expect(unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)).To(Succeed())
		DeferCleanup(func() { Expect(unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)).To(Succeed()) })
		Expect(syscall.Kill(pane, syscall.SIGKILL)).To(Succeed())
		Eventually(func() error {
			_, _ = syscall.Wait4(-pane, nil, syscall.WNOHANG, nil)
			return syscall.Kill(-pane, 0)
		}).Should(MatchError(syscall.ESRCH))
		reused := c.reusing("the process with the number of our pane's", pane, words[:1], string(s.UID))
		Expect(syscall.Kill(h.Agent.PID(), syscall.SIGCONT)).To(Succeed())
		if !reused {
			Skip("the kernel does not let this user choose the next pid")
		}
		if get(s).DeletionTimestamp != nil {
			h.AwaitGone(s)
		} else {
			h.Await(s, api.ConditionReady, "True/Stopped")
		}
		Consistently(untouched, time.Second).WithArguments(c.all).Should(Succeed())
	},
		Entry("in a stop", func(s *api.StandingSession) { want(s, api.SessionStateStopped) }),
		Entry("in a deletion", func(s *api.StandingSession) { env.Delete(s) }),
	)
})
