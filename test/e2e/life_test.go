package e2e

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/tmux"
	"github.com/theloop-dev/the-loop/test/testenv"
)

var _ = Describe("the life of a session", func() {
	It("C186: starts a StandingSession from its manifest and tells it its rules and its brief, once", func() {
		h := env.NewDemoHost()
		s := h.Standing("hello", func(s *api.StandingSession) { s.Spec.Prompt = "Keep an eye on the build." })
		h.Ready(s)
		Eventually(h.Submits).WithArguments("Keep an eye on the build.").Should(HaveLen(1))
		Expect(h.Submits("")[0].Text).To(And(
			MatchRegexp(`(?s)standing session "hello".*\n---\n.*Keep an eye on the build\.`), ContainSubstring("phase-selection")))
		st := get(s).Status
		Expect(st.TmuxTarget).To(Equal("loop-standing-hello"))
		Expect(st.WorkingDirectory).To(Equal(h.Work))
		Expect(h.Events("started")[0].UID).To(Equal(string(s.UID)))
		Expect(h.Events("started")[0].Argv).To(ContainElements("--session-id", st.ConversationID))
		h.Await(s, api.ConditionAcceptingInput, "True/Idle", 15*time.Second)
	})

	It("C010: starts a WorkItemSession in a directory of its own", func() {
		h := env.NewDemoHost()
		s := h.WorkItem(15, func(s *api.WorkItemSession) { s.Spec.Prompt = "Look into it." })
		h.Ready(s)
		Expect(get(s).Status.TmuxTarget).To(Equal("loop-github-octo-repo-15"))
		Expect(s.Status.Item).To(Equal("github:octo/repo#15"))
		Eventually(h.Submits).WithArguments("Look into it.").Should(HaveLen(1))
		Expect(h.Sessions()).To(HaveLen(1))
		Expect(h.Events("started")).To(HaveLen(1))
		Expect(h.Events("started")[0].Argv).To(ContainElements("--session-id", s.Status.ConversationID))
		Eventually(h.Reported).WithArguments(s, "SessionSpawned").Should(Equal(1))
	})

	It("C071: respawns a killed harness by policy Always and resumes the same conversation", func() {
		h := env.NewDemoHost()
		s := h.Standing("always")
		h.Ready(s)
		Eventually(h.Submits).WithArguments("").Should(HaveLen(1))
		Eventually(h.Events).WithArguments("reply").Should(HaveLen(1))
		id := get(s).Status.ConversationID
		h.KillHarness(s)
		h.Await(s, api.ConditionResumed, "True/ConversationContinued")
		h.Ready(s)
		Expect(get(s).Status.ConversationID).To(Equal(id))
		Expect(s.Status.Restarts).To(BeEquivalentTo(1))
		started := h.Events("started")
		Expect(started).To(HaveLen(2))
		Expect(started[1].Argv).To(ContainElements("--resume", id))
		By("saying nothing again that the conversation has taken")
		m := h.Say(s, "still there?")
		h.AwaitOutcome(m, testenv.Submitted)
		Expect(h.Submits("")).To(HaveLen(2))
	})

	It("C033 C070: leaves a dead WorkItemSession until the next message, which starts and reaches it", func() {
		h := env.NewDemoHost()
		s := h.WorkItem(3)
		h.Ready(s)
		first := h.Say(s, "first")
		h.AwaitOutcome(first, testenv.Submitted)
		Eventually(h.Events).WithArguments("reply").Should(HaveLen(1))
		h.KillHarness(s)
		h.Await(s, api.ConditionReady, "False/Exited")
		Consistently(h.Events, time.Second).WithArguments("started").Should(HaveLen(1))
		next := h.Say(s, "second")
		h.AwaitOutcome(next, testenv.Submitted)
		Expect(h.Submits("second")).To(HaveLen(1))
		h.Await(s, api.ConditionResumed, "True/ConversationContinued")
		Expect(get(s).Status.TmuxTarget).To(Equal("loop-github-octo-repo-3"))
		Expect(h.Sessions()).To(HaveLen(1))
		Eventually(h.Reported).WithArguments(s, "SessionRespawned").Should(Equal(1))
		By("saying nothing again that was delivered before")
		Expect(get(first).Status.Outcome).To(BeEquivalentTo("Submitted"))
		Expect(h.Submits("first")).To(HaveLen(1))
	})

	It("C072 C167: falls back to a fresh conversation when the resume fails, and says so", func() {
		h := env.NewDemoHost("lose-resume")
		s := h.Standing("lost")
		h.Ready(s)
		Eventually(h.Events).WithArguments("reply").Should(HaveLen(1))
		id := get(s).Status.ConversationID
		h.KillHarness(s)
		h.Await(s, api.ConditionResumed, "False/ResumeFailed")
		h.Ready(s)
		Expect(get(s).Status.ConversationID).NotTo(Equal(id))
		Eventually(h.Submits).WithArguments(`standing session "lost"`).Should(HaveLen(2))
	})

	It("T37: slows down a harness that keeps ending, and says so", func() {
		h := env.NewDemoHost("exit=7")
		s := h.Standing("looping")
		h.Await(s, api.ConditionReady, "False/CrashLoopBackOff")
		n := len(h.Events("started"))
		Consistently(func() int { return len(h.Events("started")) }, 2*time.Second).Should(Equal(n))
		Expect(h.Message(s, api.ConditionSessionRunning)).To(ContainSubstring("started again at"))
	})

	It("C166 C172: stops: ends the harness, retains the terminal, and resumes when it is wanted again", func() {
		h := env.NewDemoHost()
		s := h.Standing("stopper")
		h.Ready(s)
		Eventually(h.Events).WithArguments("reply").Should(HaveLen(1))
		id := get(s).Status.ConversationID
		h.Update(s, func() { s.Spec.State = api.SessionStateStopped })
		h.Await(s, api.ConditionReady, "True/Stopped")
		Expect(h.Events("signal")).To(ContainElement(HaveField("Signal", "SIGTERM")))
		Expect(h.Events("exit")).To(ContainElement(HaveField("Event", "exit")))
		Expect(h.Pane(s).Dead).To(BeTrue())
		refused := h.Say(s, "anybody?")
		h.AwaitOutcome(refused, "Refused/SessionNotRunning")
		h.Update(s, func() { s.Spec.State = api.SessionStateRunning })
		h.Ready(s)
		Expect(get(s).Status.ConversationID).To(Equal(id))
		Expect(h.Events("started")[1].Argv).To(ContainElements("--resume", id))
		h.Await(s, api.ConditionResumed, "True/ConversationContinued")
	})

	It("C092: stops without retaining when the class says so", func() {
		h := env.NewDemoHost()
		h.UpdateClass(h.Class, func(c *api.SessionClass) { c.Spec.Tmux.KeepSessionOnClose = new(false) })
		s := h.Standing("closer")
		h.Ready(s)
		h.Update(s, func() { s.Spec.State = api.SessionStateStopped })
		h.Await(s, api.ConditionReady, "True/Stopped")
		Expect(h.Sessions()).To(BeEmpty())
	})

	It("T22: kills a harness that ignores SIGTERM after the grace, and what it left behind", func() {
		h := env.NewDemoHost("ignore-term", "ignore-hup", "children=setsid+daemon")
		h.UpdateClass(h.Class, func(c *api.SessionClass) { c.Spec.Tmux.HarnessKillGraceSeconds = new(int32(1)) })
		s := h.Standing("stubborn")
		h.Ready(s)
		h.Update(s, func() { s.Spec.State = api.SessionStateStopped })
		h.Await(s, api.ConditionReady, "True/Stopped")
		left, err := tmux.Sweep(string(s.UID))
		Expect(err).NotTo(HaveOccurred())
		Expect(left).To(BeEmpty())
	})

	It("C014 C170: lets a deleted object go once its harness has ended", func() {
		h := env.NewDemoHost()
		s := h.Standing("goner")
		h.Ready(s)
		h.Delete(s)
		h.AwaitGone(s)
		Expect(h.Pane(s).Dead).To(BeTrue())
		By("starting a successor of the same name in the retained terminal's place")
		next := h.Standing("goner")
		h.Ready(next)
		Expect(h.Sessions()).To(HaveLen(1))
	})

	It("cleans up: nothing of the session is left on the host, and the object stays", func() {
		h := env.NewDemoHost()
		s := h.WorkItem(21)
		h.Ready(s)
		h.Update(s, func() { s.Spec.State = api.SessionStateCleanedUp })
		h.Await(s, api.ConditionReady, "True/CleanedUp")
		Expect(h.Sessions()).To(BeEmpty())
		Expect(get(s).Status.TmuxTarget).To(BeEmpty())
	})

	It("restarts once for each restart token", func() {
		h := env.NewDemoHost()
		s := h.Standing("again")
		h.Ready(s)
		Eventually(h.Events).WithArguments("reply").Should(HaveLen(1))
		h.Update(s, func() { s.Annotations = map[string]string{api.RestartRequestedAnnotation: "one"} })
		Eventually(func() string { return get(s).Status.LastHandledRestart }).Should(Equal("one"))
		// The controller may call it ready for a moment longer.
		Eventually(h.Events).WithArguments("started").Should(HaveLen(2))
		h.Ready(s)
		Consistently(h.Events, time.Second).WithArguments("started").Should(HaveLen(2))
	})

	It("keeps its hands off while the paused annotation is set", func() {
		h := env.NewDemoHost()
		s := h.Standing("paused", func(s *api.StandingSession) { s.Annotations = map[string]string{api.PausedAnnotation: "true"} })
		h.Await(s, api.ConditionReady, "False/Paused")
		Expect(h.Sessions()).To(BeEmpty())
		h.Update(s, func() { delete(s.Annotations, api.PausedAnnotation) })
		h.Ready(s)
	})

	It("does not start a gated WorkItemSession until its gates are gone", func() {
		h := env.NewDemoHost()
		s := h.WorkItem(33, func(s *api.WorkItemSession) { s.Spec.StartGates = []api.StartGate{{Name: "phase-selection"}} })
		h.Await(s, api.ConditionReady, "False/Gated")
		Expect(h.Sessions()).To(BeEmpty())
		h.Update(s, func() { s.Spec.StartGates = nil })
		h.Ready(s)
	})

	It("C013 C168 C169: refuses a live terminal session of the right name that is not ours, loudly, and leaves it alone", func() {
		h := env.NewDemoHost()
		Eventually(func() error { _, err := os.Stat(h.Socket); return err }).Should(Succeed())
		pid := h.Tmux("new-session", "-d", "-P", "-F", "#{pane_pid}", "-s", "loop-standing-taken", "sleep", "1000")
		s := h.Standing("taken")
		h.Await(s, api.ConditionReady, "False/SessionOccupied")
		Expect(h.Message(s, api.ConditionSessionRunning)).To(And(ContainSubstring("attach -r -t"), ContainSubstring("kill-session -t")))
		Consistently(func() int { return len(h.Sessions()) }, time.Second).Should(Equal(1))
		foreign := h.Sessions()[0]
		Expect(foreign.UID).To(BeEmpty())
		Expect(pid).To(HavePrefix(itoa(foreign.Panes[0].PID)))
		Expect(foreign.Panes[0].Dead).To(BeFalse())
		By("starting as soon as a person has ended it")
		h.Tmux("kill-session", "-t", "=loop-standing-taken")
		h.Ready(s)
	})

	It("adopts every session when the agent is killed at random moments, twenty times, with ten sessions", func() {
		h := env.NewDemoHost()
		var all []*api.StandingSession
		for i := range 10 {
			all = append(all, h.Standing("kept-"+itoa(i)))
		}
		for _, s := range all {
			h.Ready(s)
		}
		pids := map[string]int{}
		for _, s := range h.Sessions() {
			pids[s.UID] = s.Panes[0].PID
		}
		Expect(pids).To(HaveLen(10))
		var said []*api.SessionMessage
		for range 20 {
			said = append(said, h.Say(all[rand.IntN(len(all))], "round "+itoa(len(said))+"."))
			// A moment at random, from before its first request to well after its work.
			timer := time.NewTimer(time.Duration(rand.IntN(1500)) * time.Millisecond)
			<-timer.C
			h.RestartAgent()
		}
		for i, m := range said {
			h.AwaitOutcome(m, testenv.Submitted)
			Expect(h.Submits("round " + itoa(i) + ".")).To(HaveLen(1))
		}
		for _, s := range all {
			h.Ready(s)
			Expect(get(s).Status.Restarts).To(BeZero())
		}
		now := map[string]int{}
		for _, s := range h.Sessions() {
			Expect(s.Live()).To(BeTrue())
			now[s.UID] = s.Panes[0].PID
		}
		Expect(now).To(Equal(pids))
		Expect(h.Events("started")).To(HaveLen(10))
	})

	It("C007 N05: keeps two work items apart whose names tmux makes equal", func() {
		h := env.NewDemoHost()
		var twins []*api.WorkItemSession
		for i, repo := range []string{"foo.js", "foo_js"} {
			twins = append(twins, h.WorkItem(5, func(s *api.WorkItemSession) {
				s.Name, s.Spec.WorkItem.Repo = "twin-"+itoa(i), repo
			}))
			h.Ready(twins[i])
		}
		Expect(get(twins[0]).Status.TmuxTarget).To(Equal("loop-github-octo-foo_js-5"))
		Expect(get(twins[1]).Status.TmuxTarget).To(HavePrefix("loop-github-octo-foo_js-5-"))
		for i, s := range twins {
			h.AwaitOutcome(h.Say(s, "for twin "+itoa(i)), testenv.Submitted)
			heard := h.Submits("for twin " + itoa(i))
			Expect(heard).To(HaveLen(1))
			Expect(heard[0].PID).To(Equal(h.HarnessPID(s)))
		}
		Expect(h.Events("started")).To(HaveLen(2))
	})

	It("H06: ends a harness at a dialog by a signal, and presses nothing", func() {
		h := env.NewDemoHost()
		s := h.WorkItem(6, func(s *api.WorkItemSession) { s.Spec.Prompt = "fake: permission-dialog\nDo it." })
		h.Await(s, api.ConditionAcceptingInput, "False/AwaitingInput")
		before := h.Log.Input()
		h.Update(s, func() { s.Spec.State = api.SessionStateStopped })
		h.Await(s, api.ConditionReady, "True/Stopped")
		Expect(h.Events("signal")).To(ContainElement(HaveField("Signal", "SIGTERM")))
		Expect(h.Log.Input()).To(Equal(before))
		Expect(h.Events("dialog-answered")).To(BeEmpty())
		Expect(h.Events("tool-ran")).To(BeEmpty())
	})

	It("goes on when a person has written its status, and puts that right", func() {
		h := env.NewDemoHost()
		s := h.Standing("edited")
		h.Ready(s)
		h.AwaitOutcome(h.Say(s, "before"), testenv.Submitted)
		Eventually(func() string { return string(get(s).Status.Activity.State) }).Should(Equal("Idle"))
		pid := h.HarnessPID(s)
		env.Kubectl("patch", "-n", h.Namespace, "standing/"+s.Name, "--subresource=status", "--type=merge", "-p",
			`{"status":{"activity":{"state":"Busy"},"conditions":null}}`)
		h.AwaitOutcome(h.Say(s, "after"), testenv.Submitted)
		Eventually(func() string { return string(get(s).Status.Activity.State) }).Should(Equal("Idle"))
		h.Ready(s)
		Expect(h.HarnessPID(s)).To(Equal(pid))
	})

	It("C171: does nothing while tmux does not answer, and goes on when it does", func() {
		h := env.NewDemoHost()
		s := h.Standing("frozen")
		h.Ready(s)
		thaw := h.FreezeServer()
		h.Await(s, api.ConditionReady, "Unknown/TmuxUnknown")
		late := h.Standing("late")
		h.Await(late, api.ConditionReady, "Unknown/TmuxUnknown")
		thaw()
		h.Ready(s)
		h.Ready(late)
		Expect(h.Events("started")).To(HaveLen(2))
	})

	It("T06: is called running no longer, soon after its harness or its terminal server is gone", func() {
		h := env.NewDemoHost()
		s := h.WorkItem(6)
		aTurn(h, s, "first")
		h.KillHarness(s)
		h.Await(s, api.ConditionSessionRunning, "False/Exited", 5*time.Second)
		Expect(h.Message(s, api.ConditionSessionRunning)).To(Equal("the harness ended by SIGKILL; the next message starts it again"))
		aTurn(h, s, "second")
		h.SignalServer(syscall.SIGKILL)
		h.Await(s, api.ConditionSessionRunning, "False/Exited", 5*time.Second)
	})

	It("T05: starts everything again when the terminal server was killed", func() {
		h := env.NewDemoHost()
		var all []*api.StandingSession
		for i := range 14 {
			all = append(all, h.Standing("phoenix-"+itoa(i)))
		}
		for _, s := range all {
			h.Ready(s)
		}
		Eventually(h.Events).WithArguments("reply").Should(HaveLen(len(all)))
		killed := h.SignalServer(syscall.SIGKILL)
		for _, s := range all {
			Eventually(func() string { return get(s).Status.ServerEpoch }, time.Minute).ShouldNot(Equal(killed.String()))
			h.Await(s, api.ConditionResumed, "True/ConversationContinued", time.Minute)
			h.Ready(s)
		}
	})

	It("refuses a second agent on the same state, and on the same host name", func() {
		h := env.NewDemoHost()
		lock := filepath.Join(h.StateDir, "agent.lock")
		Eventually(func() error { _, err := os.Stat(lock); return err }).Should(Succeed())
		Eventually(func() error {
			return h.Client.Get(context.Background(), client.ObjectKey{Name: h.Name}, &api.SessionHost{})
		}).Should(Succeed())
		run := func(dir string) string {
			cmd := exec.Command(filepath.Join(h.Bin, "agent"), "--host-name", h.Name, "--state-dir", dir, "--tmux-socket", h.Socket)
			cmd.Env = append(os.Environ(), "KUBECONFIG="+h.Kubeconfig)
			out, err := cmd.CombinedOutput()
			Expect(err).To(HaveOccurred())
			return string(out)
		}
		Expect(run(h.StateDir)).To(ContainSubstring("in use by the agent with pid " + itoa(h.Agent.PID())))
		Eventually(func() string { return run(filepath.Join(h.Dir, "other")) }, 40*time.Second).Should(ContainSubstring("two agents must not share a host name"))
	})
})
