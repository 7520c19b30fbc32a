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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/tmux"
)

var _ = Describe("the life of a session", func() {
	It("starts a StandingSession from its manifest and tells it its rules and its brief, once", func() {
		h := newHost()
		s := h.standing("hello", func(s *api.StandingSession) { s.Spec.Prompt = "Keep an eye on the build." })
		ready(s)
		Eventually(func() []logged { return h.submits("Keep an eye on the build.") }).Should(HaveLen(1))
		Expect(h.submits("")[0].Text).To(And(ContainSubstring(`standing session "hello"`), ContainSubstring("\n---\n"), ContainSubstring("phase-selection")))
		st := get(s).Status
		Expect(st.TmuxTarget).To(Equal("loop-standing-hello"))
		Expect(st.WorkingDirectory).To(Equal(filepath.Join(h.dir, "work")))
		Expect(h.events("started")[0].UID).To(Equal(string(s.UID)))
		Expect(h.events("started")[0].Argv).To(ContainElements("--session-id", st.ConversationID))
		Eventually(condition(s, api.ConditionAcceptingInput), 15*time.Second).Should(Equal("True/Idle"))
	})

	It("starts a WorkItemSession in a directory of its own", func() {
		h := newHost()
		s := h.workItem(15, func(s *api.WorkItemSession) { s.Spec.Prompt = "Look into it." })
		ready(s)
		Expect(get(s).Status.TmuxTarget).To(Equal("loop-github-octo-repo-15"))
		Expect(s.Status.Item).To(Equal("github:octo/repo#15"))
		Eventually(func() []logged { return h.submits("Look into it.") }).Should(HaveLen(1))
	})

	It("respawns a killed harness by policy Always and resumes the same conversation", func() {
		h := newHost()
		s := h.standing("always", nil)
		ready(s)
		Eventually(func() []logged { return h.submits("") }).Should(HaveLen(1))
		Eventually(func() []logged { return h.events("reply") }).Should(HaveLen(1))
		id := get(s).Status.ConversationID
		h.killHarness(s)
		Eventually(condition(s, api.ConditionResumed)).Should(Equal("True/ConversationContinued"))
		ready(s)
		Expect(get(s).Status.ConversationID).To(Equal(id))
		Expect(s.Status.Restarts).To(BeEquivalentTo(1))
		started := h.events("started")
		Expect(started).To(HaveLen(2))
		Expect(started[1].Argv).To(ContainElements("--resume", id))
		By("saying nothing again that the conversation has taken")
		m := h.say(s, "still there?")
		Eventually(outcome(m)).Should(Equal(submitted))
		Expect(h.submits("")).To(HaveLen(2))
	})

	It("C024: leaves a dead WorkItemSession until the next message, which starts and reaches it", func() {
		h := newHost()
		s := h.workItem(3, nil)
		ready(s)
		first := h.say(s, "first")
		Eventually(outcome(first)).Should(Equal(submitted))
		Eventually(func() []logged { return h.events("reply") }).Should(HaveLen(1))
		h.killHarness(s)
		Eventually(condition(s, api.ConditionReady)).Should(Equal("False/Exited"))
		Consistently(func() []logged { return h.events("started") }, time.Second).Should(HaveLen(1))
		next := h.say(s, "second")
		Eventually(outcome(next)).Should(Equal(submitted))
		Expect(h.submits("second")).To(HaveLen(1))
		Eventually(condition(s, api.ConditionResumed)).Should(Equal("True/ConversationContinued"))
	})

	It("falls back to a fresh conversation when the resume fails, and says so", func() {
		h := newHost("lose-resume")
		s := h.standing("lost", nil)
		ready(s)
		Eventually(func() []logged { return h.events("reply") }).Should(HaveLen(1))
		id := get(s).Status.ConversationID
		h.killHarness(s)
		Eventually(condition(s, api.ConditionResumed)).Should(Equal("False/ResumeFailed"))
		ready(s)
		Expect(get(s).Status.ConversationID).NotTo(Equal(id))
		Eventually(func() []logged { return h.submits(`standing session "lost"`) }).Should(HaveLen(2))
	})

	It("slows down a harness that keeps ending, and says so", func() {
		h := newHost("exit=7")
		s := h.standing("looping", nil)
		Eventually(condition(s, api.ConditionReady)).Should(Equal("False/CrashLoopBackOff"))
		n := len(h.events("started"))
		Consistently(func() int { return len(h.events("started")) }, 2*time.Second).Should(Equal(n))
		Expect(message(s, api.ConditionSessionRunning)).To(ContainSubstring("started again at"))
	})

	It("stops: ends the harness, retains the terminal, and resumes when it is wanted again", func() {
		h := newHost()
		s := h.standing("stopper", nil)
		ready(s)
		Eventually(func() []logged { return h.events("reply") }).Should(HaveLen(1))
		id := get(s).Status.ConversationID
		update(s, func() { s.Spec.State = api.SessionStateStopped })
		Eventually(condition(s, api.ConditionReady)).Should(Equal("True/Stopped"))
		Expect(h.events("exit")).To(ContainElement(HaveField("Event", "exit")))
		Expect(h.pane(s).Dead).To(BeTrue())
		refused := h.say(s, "anybody?")
		Eventually(outcome(refused)).Should(Equal("Refused/SessionNotRunning"))
		update(s, func() { s.Spec.State = api.SessionStateRunning })
		ready(s)
		Expect(get(s).Status.ConversationID).To(Equal(id))
		Expect(h.events("started")[1].Argv).To(ContainElements("--resume", id))
	})

	It("stops without retaining when the class says so", func() {
		h := newHost()
		class := &api.SessionClass{}
		class.Name = h.class
		get(class)
		class.Spec.Tmux.KeepSessionOnClose = new(false)
		Expect(k8s.Update(context.Background(), class)).To(Succeed())
		s := h.standing("closer", nil)
		ready(s)
		update(s, func() { s.Spec.State = api.SessionStateStopped })
		Eventually(condition(s, api.ConditionReady)).Should(Equal("True/Stopped"))
		Expect(h.sessions()).To(BeEmpty())
	})

	It("kills a harness that ignores SIGTERM after the grace, and what it left behind", func() {
		h := newHost("ignore-term", "ignore-hup", "children=setsid+daemon")
		class := &api.SessionClass{}
		class.Name = h.class
		get(class)
		class.Spec.Tmux.HarnessKillGraceSeconds = new(int32(1))
		Expect(k8s.Update(context.Background(), class)).To(Succeed())
		s := h.standing("stubborn", nil)
		ready(s)
		update(s, func() { s.Spec.State = api.SessionStateStopped })
		Eventually(condition(s, api.ConditionReady)).Should(Equal("True/Stopped"))
		left, err := tmux.Sweep(string(s.UID))
		Expect(err).NotTo(HaveOccurred())
		Expect(left).To(BeEmpty())
	})

	It("lets a deleted object go once its harness has ended", func() {
		h := newHost()
		s := h.standing("goner", nil)
		ready(s)
		Expect(k8s.Delete(context.Background(), s)).To(Succeed())
		Eventually(func() bool {
			return apierrors.IsNotFound(k8s.Get(context.Background(), client.ObjectKeyFromObject(s), s))
		}).Should(BeTrue())
		Expect(h.pane(s).Dead).To(BeTrue())
		By("starting a successor of the same name in the retained terminal's place")
		next := h.standing("goner", nil)
		ready(next)
		Expect(h.sessions()).To(HaveLen(1))
	})

	It("cleans up: nothing of the session is left on the host, and the object stays", func() {
		h := newHost()
		s := h.workItem(21, nil)
		ready(s)
		update(s, func() { s.Spec.State = api.SessionStateCleanedUp })
		Eventually(condition(s, api.ConditionReady)).Should(Equal("True/CleanedUp"))
		Expect(h.sessions()).To(BeEmpty())
		Expect(get(s).Status.TmuxTarget).To(BeEmpty())
	})

	It("restarts once for each restart token", func() {
		h := newHost()
		s := h.standing("again", nil)
		ready(s)
		Eventually(func() []logged { return h.events("reply") }).Should(HaveLen(1))
		update(s, func() { s.Annotations = map[string]string{api.RestartRequestedAnnotation: "one"} })
		Eventually(func() string { return get(s).Status.LastHandledRestart }).Should(Equal("one"))
		ready(s)
		Consistently(func() []logged { return h.events("started") }, time.Second).Should(HaveLen(2))
	})

	It("keeps its hands off while the paused annotation is set", func() {
		h := newHost()
		s := h.standing("paused", func(s *api.StandingSession) { s.Annotations = map[string]string{api.PausedAnnotation: "true"} })
		Eventually(condition(s, api.ConditionReady)).Should(Equal("False/Paused"))
		Expect(h.sessions()).To(BeEmpty())
		update(s, func() { delete(s.Annotations, api.PausedAnnotation) })
		ready(s)
	})

	It("does not start a gated WorkItemSession until its gates are gone", func() {
		h := newHost()
		s := h.workItem(33, func(s *api.WorkItemSession) { s.Spec.StartGates = []api.StartGate{{Name: "phase-selection"}} })
		Eventually(condition(s, api.ConditionReady)).Should(Equal("False/Gated"))
		Expect(h.sessions()).To(BeEmpty())
		update(s, func() { s.Spec.StartGates = nil })
		ready(s)
	})

	It("C014: refuses a live terminal session of the right name that is not ours, loudly, and leaves it alone", func() {
		h := newHost()
		Eventually(func() error { _, err := os.Stat(h.socket); return err }).Should(Succeed())
		out, err := exec.Command("tmux", "-N", "-S", h.socket, "new-session", "-d", "-P", "-F", "#{pane_pid}", "-s", "loop-standing-taken", "sleep", "1000").Output()
		Expect(err).NotTo(HaveOccurred())
		s := h.standing("taken", nil)
		Eventually(condition(s, api.ConditionReady)).Should(Equal("False/SessionOccupied"))
		Expect(message(s, api.ConditionSessionRunning)).To(And(ContainSubstring("attach -r -t"), ContainSubstring("kill-session -t")))
		Consistently(func() int { return len(h.sessions()) }, time.Second).Should(Equal(1))
		foreign := h.sessions()[0]
		Expect(foreign.UID).To(BeEmpty())
		Expect(string(out)).To(HavePrefix(itoa(foreign.Panes[0].PID)))
		Expect(foreign.Panes[0].Dead).To(BeFalse())
		By("starting as soon as a person has ended it")
		Expect(exec.Command("tmux", "-N", "-S", h.socket, "kill-session", "-t", "=loop-standing-taken").Run()).To(Succeed())
		ready(s)
	})

	It("adopts every session when the agent is killed at random moments, twenty times, with ten sessions", func() {
		h := newHost()
		var all []*api.StandingSession
		for i := range 10 {
			all = append(all, h.standing("kept-"+itoa(i), nil))
		}
		for _, s := range all {
			ready(s)
		}
		pids := map[string]int{}
		for _, s := range h.sessions() {
			pids[s.UID] = s.Panes[0].PID
		}
		Expect(pids).To(HaveLen(10))
		var said []*api.SessionMessage
		for range 20 {
			said = append(said, h.say(all[rand.IntN(len(all))], "round "+itoa(len(said))+"."))
			// A moment at random, from before its first request to well after its work.
			timer := time.NewTimer(time.Duration(rand.IntN(1500)) * time.Millisecond)
			<-timer.C
			h.agent.kill()
			h.startAgent()
		}
		for i, m := range said {
			Eventually(outcome(m)).Should(Equal(submitted))
			Expect(h.submits("round " + itoa(i) + ".")).To(HaveLen(1))
		}
		for _, s := range all {
			ready(s)
			Expect(get(s).Status.Restarts).To(BeZero())
		}
		now := map[string]int{}
		for _, s := range h.sessions() {
			Expect(s.Live()).To(BeTrue())
			now[s.UID] = s.Panes[0].PID
		}
		Expect(now).To(Equal(pids))
		Expect(h.events("started")).To(HaveLen(10))
	})

	It("T05: does nothing while tmux does not answer, and goes on when it does", func() {
		h := newHost()
		s := h.standing("frozen", nil)
		ready(s)
		snap, err := h.server.Snapshot(context.Background())
		Expect(err).NotTo(HaveOccurred())
		Expect(syscall.Kill(snap.Epoch.PID, syscall.SIGSTOP)).To(Succeed())
		DeferCleanup(func() { _ = syscall.Kill(snap.Epoch.PID, syscall.SIGCONT) })
		Eventually(condition(s, api.ConditionReady)).Should(Equal("Unknown/TmuxUnknown"))
		Expect(syscall.Kill(snap.Epoch.PID, syscall.SIGCONT)).To(Succeed())
		ready(s)
		Expect(h.events("started")).To(HaveLen(1))
	})

	It("starts everything again when the terminal server was killed", func() {
		h := newHost()
		s := h.standing("phoenix", nil)
		ready(s)
		Eventually(func() []logged { return h.events("reply") }).Should(HaveLen(1))
		snap, err := h.server.Snapshot(context.Background())
		Expect(err).NotTo(HaveOccurred())
		Expect(syscall.Kill(snap.Epoch.PID, syscall.SIGKILL)).To(Succeed())
		Eventually(func() string { return get(s).Status.ServerEpoch }).ShouldNot(Equal(snap.Epoch.String()))
		Eventually(condition(s, api.ConditionResumed)).Should(Equal("True/ConversationContinued"))
		ready(s)
	})

	It("refuses a second agent on the same state, and on the same host name", func() {
		h := newHost()
		lock := filepath.Join(h.dir, "agent", "agent.lock")
		Eventually(func() error { _, err := os.Stat(lock); return err }).Should(Succeed())
		Eventually(func() error {
			return k8s.Get(context.Background(), client.ObjectKey{Name: h.name}, &api.SessionHost{})
		}).Should(Succeed())
		run := func(dir string) string {
			cmd := exec.Command(filepath.Join(binDir, "agent"), "--host-name", h.name, "--state-dir", dir, "--tmux-socket", h.socket)
			cmd.Env = append(os.Environ(), "KUBECONFIG="+h.kubeconfig)
			out, err := cmd.CombinedOutput()
			Expect(err).To(HaveOccurred())
			return string(out)
		}
		Expect(run(filepath.Join(h.dir, "agent"))).To(ContainSubstring("in use by the agent with pid " + itoa(h.agent.pid())))
		Eventually(func() string { return run(filepath.Join(h.dir, "other")) }, 40*time.Second).Should(ContainSubstring("two agents must not share a host name"))
	})
})
