package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/fakeharness/faketest"
	"github.com/theloop-dev/the-loop/test/testenv"
)

// want changes the wanted state of a session.
func want(s testenv.Session, state api.SessionState) {
	GinkgoHelper()
	env.Update(s, func() {
		switch s := s.(type) {
		case *api.WorkItemSession:
			s.Spec.State = state
		case *api.StandingSession:
			s.Spec.State = state
		}
	})
}

// gone reports that a process does not run: nobody may have asked yet how it ended.
func gone(pid int) func() bool {
	return func() bool {
		b, err := os.ReadFile("/proc/" + itoa(pid) + "/stat")
		return err != nil || strings.Contains(string(b), ") Z ")
	}
}

// attached runs the command that a session's status tells a person to attach with, on a
// terminal, and waits until tmux has him as a client.
func attached(h *testenv.Host, s testenv.Session) *faketest.Terminal {
	GinkgoHelper()
	env.Get(s)
	cmd := exec.Command("/bin/sh", "-c", "exec "+s.HostedStatus().AttachCommand)
	cmd.Env = []string{"TERM=xterm-256color", "LANG=C.UTF-8", "PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + h.Dir}
	t, err := faketest.Start(cmd, 100, 30)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(t.Close)
	Eventually(func() string { return h.Tmux("list-clients", "-t", "="+s.HostedStatus().TmuxTarget) }).ShouldNot(BeEmpty(), t.Output)
	return t
}

// press types keys as fast as a person: what comes faster is a paste to tmux, and no key of
// its own.
func press(t *faketest.Terminal, keys string) {
	GinkgoHelper()
	between := time.NewTicker(20 * time.Millisecond)
	defer between.Stop()
	for _, key := range keys {
		<-between.C
		Expect(t.Type(string(key))).To(Succeed())
	}
}

var _ = Describe("the close of a session", func() {
	It("C090: ends the harness, keeps the pane with all that it showed, and marks the session closed", func() {
		h := env.NewDemoHost()
		s := h.WorkItem(90, func(s *api.WorkItemSession) { s.Spec.Prompt = "fake: output=300\nShow it." })
		h.Ready(s)
		Eventually(h.Events).WithArguments("reply").Should(HaveLen(1))
		pid := h.HarnessPID(s)
		want(s, api.SessionStateStopped)
		h.Await(s, api.ConditionReady, "True/Stopped")
		Expect(gone(pid)()).To(BeTrue())
		Expect(h.Events("signal")).To(ConsistOf(HaveField("Signal", "SIGTERM")))
		Expect(h.Events("exit")).To(HaveLen(1), "it was not killed")
		Expect(h.Pane(s).Dead).To(BeTrue())
		shown := h.Tmux("capture-pane", "-p", "-S", "-", "-t", "=loop-github-octo-repo-90:")
		Expect(shown).To(And(ContainSubstring("line 1 of 300"), ContainSubstring("line 300 of 300")))
		Expect(get(s).Status.ClosedAt).NotTo(BeNil())
		for _, reason := range []string{"SessionHarnessTerminated", "SessionClosed", "SessionRetained"} {
			Eventually(h.Reported).WithArguments(s, reason).Should(Equal(1), reason)
		}
	})

	It("C091: gives a harness that ignores it the grace and no more, and none where it is zero", func() {
		h := env.NewDemoHost("ignore-term", "ignore-hup")
		short := "none-" + h.Name
		spec := h.DemoClass("ignore-term", "ignore-hup")
		spec.Tmux.HarnessKillGraceSeconds = new(int32(0))
		h.CreateClass(short, spec)
		h.UpdateClass(h.Class, func(c *api.SessionClass) { c.Spec.Tmux.HarnessKillGraceSeconds = new(int32(2)) })
		var all []*api.StandingSession
		for i := range 5 {
			all = append(all, h.Standing("deaf-"+itoa(i), func(s *api.StandingSession) {
				if i == 0 {
					s.Spec.ClassName = short
				}
			}))
		}
		for _, s := range all {
			h.Ready(s)
		}
		for i, s := range all {
			pid := h.HarnessPID(s)
			wanted := time.Now()
			want(s, api.SessionStateStopped)
			var asked time.Time
			Eventually(func() bool {
				for _, e := range h.Events("signal") {
					if e.PID == pid {
						asked = e.Time
					}
				}
				// Without a grace it may be killed before it can note that it was asked.
				return !asked.IsZero() || i == 0 && gone(pid)()
			}, 30*time.Second, 5*time.Millisecond).Should(BeTrue())
			if i > 0 {
				h.Say(s, "whatever is looked at meanwhile")
			}
			Eventually(gone(pid), 30*time.Second, 5*time.Millisecond).Should(BeTrue())
			ended := time.Now()
			if i == 0 {
				// Not even the shortest other grace.
				Expect(asked.IsZero() || ended.Sub(asked) < time.Second).To(BeTrue(), "it took %s", ended.Sub(asked))
				continue
			}
			// The harness may note the signal long after it was sent.
			Expect(ended.Sub(wanted)).To(BeNumerically(">=", 2*time.Second))
			Expect(ended.Sub(asked)).To(BeNumerically("<", 5*time.Second))
		}
		for _, s := range all {
			h.Await(s, api.ConditionReady, "True/Stopped")
		}
	})

	It("C093: leaves the harness running where it is not to be ended, and goes on with it when it is wanted again", func() {
		h := env.NewDemoHost()
		h.UpdateClass(h.Class, func(c *api.SessionClass) { c.Spec.Tmux.KillHarnessOnClose = new(false) })
		s := h.WorkItem(93)
		aTurn(h, s, "first")
		pid := h.HarnessPID(s)
		want(s, api.SessionStateStopped)
		h.Await(s, api.ConditionReady, "True/Stopped")
		Expect(h.Message(s, api.ConditionSessionRunning)).To(ContainSubstring("retained with its harness running"))
		h.AwaitOutcome(h.Say(s, "not for it"), "Refused/SessionNotRunning")
		Consistently(gone(pid), time.Second).Should(BeFalse())
		Expect(h.HarnessPID(s)).To(Equal(pid))
		Expect(h.Events("signal")).To(BeEmpty())
		want(s, api.SessionStateRunning)
		h.Ready(s)
		aTurn(h, s, "second")
		Expect(h.HarnessPID(s)).To(Equal(pid))
		Expect(h.Events("started")).To(HaveLen(1))
	})

	DescribeTable("C094: signals nothing where the record names somebody's own terminal", func(end func(s *api.WorkItemSession)) {
		h := env.NewDemoHost()
		s := h.WorkItem(94)
		h.Ready(s)
		log := faketest.Log(filepath.Join(h.Dir, "main.log"))
		pane := strings.TrimSpace(h.Tmux("new-session", "-d", "-P", "-F", "#{pane_id}", "-s", "main",
			"env", "FAKEHARNESS_HOME="+filepath.Join(h.Dir, "main"), "FAKEHARNESS_LOG="+string(log), "FAKEHARNESS_BEHAVIOUR=ignore-term,ignore-hup", h.DemoHarness()))
		Eventually(log.Count).WithArguments("ready").Should(Equal(1))
		main, ok := h.Snapshot().ByName("main")
		Expect(ok).To(BeTrue())
		h.Agent.Kill()
		h.Tmux("kill-session", "-t", "=loop-github-octo-repo-94")
		rewrite(s, func(st *api.HostedSessionStatus) { st.TmuxTarget, st.PaneID = "main", pane })
		end(s)
		h.StartAgent()
		if get(s).DeletionTimestamp != nil {
			h.AwaitGone(s)
		} else {
			h.Await(s, api.ConditionReady, "True/"+string(s.Spec.State))
		}
		Expect(h.Sessions()).To(HaveLen(1))
		now := h.Sessions()[0]
		Expect(now.UID).To(BeEmpty(), "it got our stamp")
		Expect(now.Live()).To(BeTrue())
		Expect(now.Panes[0].PID).To(Equal(main.Panes[0].PID))
		Expect(log.Events("signal")).To(BeEmpty())
	},
		Entry("in a stop", func(s *api.WorkItemSession) { want(s, api.SessionStateStopped) }),
		Entry("in a cleanup", func(s *api.WorkItemSession) { want(s, api.SessionStateCleanedUp) }),
		Entry("in a deletion", func(s *api.WorkItemSession) { env.Delete(s) }),
	)

	It("C105: without a session is remembered, and neither the next message nor another agent starts anything", func() {
		h := env.NewDemoHost()
		s := h.WorkItem(105, func(s *api.WorkItemSession) { s.Spec.StartGates = []api.StartGate{{Name: "phase-selection"}} })
		h.Await(s, api.ConditionReady, "False/Gated")
		env.Update(s, func() { s.Spec.State, s.Spec.StartGates = api.SessionStateStopped, nil })
		h.Await(s, api.ConditionReady, "True/Stopped")
		Expect(get(s).Status.ClosedAt).NotTo(BeNil())
		h.AwaitOutcome(h.Say(s, "anybody?"), "Refused/SessionNotRunning")
		h.RestartAgent()
		h.AwaitOutcome(h.Say(s, "anybody now?"), "Refused/SessionNotRunning")
		Consistently(h.Sessions, time.Second).Should(BeEmpty())
		Expect(h.Events("started")).To(BeEmpty())
		Expect(get(s).Status.StartedAt).To(BeNil())
	})

	DescribeTable("C106: by a reset says what it ended and removed, treats the terminal by policy, and forgets", func(keep bool) {
		f := newForge(func(c *api.SessionClassSpec) { c.Tmux.KeepSessionOnClose = &keep })
		s := f.WorkItem(15)
		aTurn(f.Host, s, "first")
		path := get(s).Status.Checkout.Path
		messages := len(f.Messages(s))
		env.Delete(s)
		f.AwaitGone(s)
		Expect(path).NotTo(BeADirectory())
		for _, reason := range []string{"SessionHarnessTerminated", "WorkspaceCleaned", "SessionReset"} {
			Eventually(f.Reported).WithArguments(s, reason).Should(Equal(1), reason)
		}
		Expect(len(f.Messages(s))).To(BeNumerically("<=", messages), "nothing was said")
		if !keep {
			Expect(f.Sessions()).To(BeEmpty())
			return
		}
		Expect(f.Sessions()).To(HaveLen(1))
		Expect(f.Sessions()[0].Live()).To(BeFalse())
	},
		Entry("kept", true),
		Entry("not kept", false),
	)
})

var _ = Describe("a pause", func() {
	DescribeTable("C096: lets a person attach with his keyboard", func(pause func(s *api.WorkItemSession)) {
		h := env.NewDemoHost()
		s := h.WorkItem(96)
		h.Ready(s)
		pause(s)
		m := h.Say(s, "of the-loop")
		if s.Spec.DeliveryPolicy == api.DeliveryPolicyDrop {
			h.AwaitOutcome(m, "Dropped/Dropped")
		}
		t := attached(h, s)
		Expect(t.Type("typed by a person")).To(Succeed())
		Eventually(h.Screen).WithArguments("loop-github-octo-repo-96").Should(ContainSubstring("typed by a person"))
		Expect(t.Type("\r")).To(Succeed())
		Eventually(h.Submits).WithArguments("typed by a person").Should(HaveLen(1))
		Expect(h.Submits("of the-loop")).To(BeEmpty())
	},
		Entry("where nothing is delivered", func(s *api.WorkItemSession) {
			env.Update(s, func() { s.Spec.DeliveryPolicy = api.DeliveryPolicyDrop })
			env.Ready(s)
		}),
		Entry("where nothing at all is done", func(s *api.WorkItemSession) {
			env.Update(s, func() { metav1.SetMetaDataAnnotation(&s.ObjectMeta, api.PausedAnnotation, "true") })
			env.Await(s, api.ConditionReady, "False/Paused")
		}),
	)

	It("C098: is not made up for: what came during it is not typed after it", func() {
		h := env.NewDemoHost()
		s := h.WorkItem(98)
		aTurn(h, s, "before the pause")
		env.Update(s, func() { s.Spec.DeliveryPolicy = api.DeliveryPolicyDrop })
		h.Ready(s)
		for i := range 3 {
			h.AwaitOutcome(h.Say(s, "during the pause "+itoa(i)), "Dropped/Dropped")
		}
		env.Update(s, func() { s.Spec.DeliveryPolicy = api.DeliveryPolicyDeliver })
		aTurn(h, s, "after the pause")
		h.RestartAgent()
		aTurn(h, s, "after the agent")
		Expect(h.Submits("during the pause")).To(BeEmpty())
		Expect(h.Submits("")).To(HaveLen(3))
	})
})

var _ = Describe("a closed session", func() {
	It("C097: is attached to for reading only: no key reaches a harness that still runs", func() {
		h := env.NewDemoHost()
		h.UpdateClass(h.Class, func(c *api.SessionClass) { c.Spec.Tmux.KillHarnessOnClose = new(false) })
		s := h.WorkItem(97)
		aTurn(h, s, "first")
		want(s, api.SessionStateStopped)
		h.Await(s, api.ConditionReady, "True/Stopped")
		before := h.Log.Input()
		t := attached(h, s)
		// The keys of tmux itself, too: the end of the pane, and of the window.
		press(t, "typed by a person\r\x02xy\x02&y")
		Consistently(h.Log.Input, time.Second).Should(Equal(before))
		Expect(h.Pane(s).Dead).To(BeFalse())
		By("leaving it by the keys for that")
		// Once more where a question of tmux, from the keys before, takes the first.
		Eventually(func() any { _ = t.Type("\x02d"); return t.Done }, 30*time.Second, 500*time.Millisecond).Should(BeClosed())
		Expect(t.Output()).To(ContainSubstring("detached"))
	})

	It("C097: keeps what it showed, whatever is typed into its dead pane", func() {
		h := env.NewDemoHost()
		s := h.WorkItem(98)
		aTurn(h, s, "first")
		want(s, api.SessionStateStopped)
		h.Await(s, api.ConditionReady, "True/Stopped")
		t := attached(h, s)
		shown := h.Screen("loop-github-octo-repo-98")
		press(t, "typed by a person\r\x04\x03\x02xy\x02&y")
		Consistently(func() string { return h.Screen("loop-github-octo-repo-98") }, time.Second).Should(Equal(shown))
		Expect(h.Pane(s).Dead).To(BeTrue())
	})
})
