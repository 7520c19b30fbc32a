package e2e

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/testenv"
)

var _ = Describe("the resume of a session", func() {
	// mute makes a class of a harness that tells nothing of itself, and whose resumes
	// count when they have lived for so long.
	mute := func(h *testenv.Host, name string, probe int32) string {
		GinkgoHelper()
		class := name + "-" + h.Name
		spec := h.DemoClass("flush-late=0")
		spec.Harness.Name = "custom"
		spec.Harness.Custom = &api.CustomHarness{
			StartArgs: []string{"--session-id", "{{conversationID}}"}, ResumeArgs: []string{"--resume", "{{conversationID}}"},
		}
		spec.Tmux.ResumeProbeSeconds = &probe
		h.CreateClass(class, spec)
		return class
	}

	It("C073: counts at once where the probe time is zero, and not before it is over where it is not", func() {
		h := env.NewDemoHost()
		classes := []string{mute(h, "now", 0), mute(h, "later", 60)}
		var all []*api.WorkItemSession
		for i, class := range classes {
			s := h.WorkItem(int64(i)+1, func(s *api.WorkItemSession) {
				s.Spec.ClassName, s.Spec.RestartPolicy = class, api.RestartPolicyAlways
			})
			h.Await(s, api.ConditionSessionRunning, "True/Running")
			all = append(all, s)
		}
		Eventually(h.Events).WithArguments("ready").Should(HaveLen(2))
		for _, s := range all {
			h.Keys(get(s).Status.TmuxTarget, "a turn of "+s.Name, "Enter")
		}
		for _, s := range all {
			Eventually(answered).WithArguments(h, "a turn of "+s.Name).Should(BeTrue())
			h.KillHarness(s)
		}
		now, later := all[0], all[1]
		h.Await(now, api.ConditionResumed, "True/ConversationContinued")
		h.Await(later, api.ConditionResumed, "Unknown/ResumePending")
		Consistently(h.Condition(later, api.ConditionResumed), 2*time.Second).Should(Equal("Unknown/ResumePending"))
		for _, s := range all {
			Expect(h.Events("started")).To(ContainElement(HaveField("Argv", ContainElements("--resume", get(s).Status.ConversationID))))
		}
	})

	It("C075: is none where the class forbids it: a fresh conversation, and no failure of a resume", func() {
		h := env.NewDemoHost()
		h.UpdateClass(h.Class, func(c *api.SessionClass) { c.Spec.Tmux.ResumeOnRespawn = new(false) })
		s := h.WorkItem(75)
		aTurn(h, s, "first")
		id := get(s).Status.ConversationID
		h.KillHarness(s)
		h.Await(s, api.ConditionReady, "False/Exited")
		h.AwaitOutcome(h.Say(s, "second"), testenv.Submitted)
		h.Await(s, api.ConditionResumed, "False/FreshConversation")
		Expect(get(s).Status.ConversationID).NotTo(Equal(id))
		started := h.Events("started")
		Expect(started).To(HaveLen(2))
		Expect(started[1].Argv).To(ContainElements("--session-id", s.Status.ConversationID))
		Expect(started[1].Argv).NotTo(ContainElement("--resume"))
		Eventually(h.Reported).WithArguments(s, "SessionRespawned").Should(Equal(1))
		Expect(h.Reported(s, "SessionResumeFailed")).To(BeZero())
	})

	It("goes on with the conversation that a person began with /clear", func() {
		h := env.NewDemoHost()
		s := h.Standing("cleared")
		aTurn(h, s, "of the first conversation")
		id := get(s).Status.ConversationID
		h.Keys("loop-standing-cleared", "/clear", "Enter")
		Eventually(h.Events).WithArguments("new-id").Should(HaveLen(1))
		fresh := h.Events("new-id")[0].ID
		Expect(fresh).NotTo(Equal(id))
		Eventually(func() string { return get(s).Status.ConversationID }).Should(Equal(fresh))
		aTurn(h, s, "of the second conversation")
		h.KillHarness(s)
		Eventually(h.Events).WithArguments("started").Should(HaveLen(2))
		Expect(h.Events("started")[1].Argv).To(ContainElements("--resume", fresh))
		h.Await(s, api.ConditionResumed, "True/ConversationContinued")
	})

	It("of a conversation that died in its first turn gives way to a fresh one under a new id, which is said", func() {
		h := env.NewDemoHost("burnt-id")
		s := h.WorkItem(5)
		h.Ready(s)
		first := h.Say(s, "the last thing it hears")
		h.Await(s, api.ConditionReady, "False/Exited")
		h.AwaitOutcome(first, testenv.Submitted)
		id := get(s).Status.ConversationID
		h.UpdateClass(h.Class, func(c *api.SessionClass) { c.Spec.Harness.Env = h.DemoClass("flush-late=0").Harness.Env })
		h.AwaitOutcome(h.Say(s, "second"), testenv.Submitted)
		h.Await(s, api.ConditionResumed, "False/ResumeFailed")
		Expect(get(s).Status.ConversationID).NotTo(Equal(id))
		Expect(h.Submits("second")).To(HaveLen(1))
		Expect(h.Submits("the last thing it hears")).To(HaveLen(1), "it was taken: nobody asked for it twice")
		Eventually(h.Reported).WithArguments(s, "SessionResumeFailed").Should(Equal(1))
	})
})

var _ = Describe("the record of a session that lost its terminal's name", func() {
	It("C076 C079: costs a live session nothing: the next message reaches it, nothing is started, and that is said", func() {
		h := env.NewDemoHost()
		s := h.WorkItem(76)
		aTurn(h, s, "first")
		pane, id := h.Pane(s), get(s).Status.ConversationID
		h.Agent.Kill()
		rewrite(s, withoutTarget)
		m := h.Say(s, "for the living")
		h.StartAgent()
		h.AwaitOutcome(m, testenv.Submitted)
		h.Ready(s)
		Expect(h.Pane(s).PID).To(Equal(pane.PID))
		Expect(h.Submits("for the living")).To(HaveLen(1))
		Expect(h.Events("started")).To(HaveLen(1))
		Expect(get(s).Status.TmuxTarget).To(Equal("loop-github-octo-repo-76"))
		Expect(s.Status.PaneID).To(Equal(pane.ID))
		Expect(s.Status.ConversationID).To(Equal(id))
		Expect(s.Status.Restarts).To(BeZero())
		Eventually(h.Reported).WithArguments(s, "SessionRespawnAverted").Should(Equal(1))
		Expect(h.Reported(s, "SessionSpawned") + h.Reported(s, "SessionRespawned")).To(Equal(1))
	})

	It("C079: is one loud failure where the terminal is somebody else's, and a delivery when he is done", func() {
		h := env.NewDemoHost()
		s := h.WorkItem(79)
		aTurn(h, s, "first")
		h.Agent.Kill()
		h.Tmux("kill-session", "-t", "=loop-github-octo-repo-79")
		h.Tmux("new-session", "-d", "-s", "loop-github-octo-repo-79", "sleep", "1000")
		rewrite(s, withoutTarget)
		m := h.Say(s, "for nobody yet")
		h.StartAgent()
		h.Await(s, api.ConditionReady, "False/SessionOccupied")
		Eventually(h.Reported).WithArguments(s, "SessionSpawnFailed").Should(Equal(1))
		Consistently(h.Reported, 6*time.Second).WithArguments(s, "SessionSpawnFailed").Should(Equal(1))
		Expect(get(m).Status.Outcome).To(BeEquivalentTo("Queued"))
		h.Tmux("kill-session", "-t", "=loop-github-octo-repo-79")
		h.AwaitOutcome(m, testenv.Submitted)
		Expect(h.Submits("for nobody yet")).To(HaveLen(1))
	})

	It("R01: is looked for before the start: found from another directory, and given up with a word where it is gone", func() {
		h := env.NewDemoHost()
		s := h.Standing("moved")
		aTurn(h, s, "first")
		id := get(s).Status.ConversationID
		elsewhere := filepath.Join(h.Dir, "elsewhere")
		Expect(os.Mkdir(elsewhere, 0o700)).To(Succeed())
		h.Update(s, func() { s.Spec.Cwd = elsewhere })
		h.KillHarness(s)
		h.Await(s, api.ConditionResumed, "True/ConversationContinued")
		aTurn(h, s, "second")
		Expect(get(s).Status.ConversationID).To(Equal(id))

		files, err := filepath.Glob(filepath.Join(h.Dir, "harness", "projects", "*", id+".jsonl"))
		Expect(err).NotTo(HaveOccurred())
		Expect(files).To(HaveLen(1))
		Expect(os.Remove(files[0])).To(Succeed())
		h.KillHarness(s)
		h.Await(s, api.ConditionResumed, "False/ResumeFailed")
		h.Ready(s)
		Expect(get(s).Status.ConversationID).NotTo(Equal(id))
		all := h.Events("started")
		Expect(all).To(HaveLen(3), "no start is wasted on it")
		Expect(all[2].Argv).To(ContainElement("--session-id"))
		Expect(told(h, s, "standing.resume_failed", 1)[0]["error"]).To(ContainSubstring("the harness kept it in " + files[0]))
	})

	It("C078: is mended by the start that the next message brings, which goes on with the conversation", func() {
		h := env.NewDemoHost()
		s := h.WorkItem(78)
		aTurn(h, s, "first")
		id := get(s).Status.ConversationID
		h.Agent.Kill()
		h.Tmux("kill-session", "-t", "=loop-github-octo-repo-78")
		rewrite(s, func(st *api.HostedSessionStatus) { st.TmuxTarget, st.PaneID, st.ServerEpoch = "", "", "" })
		h.StartAgent()
		h.Await(s, api.ConditionReady, "False/Exited")
		h.AwaitOutcome(h.Say(s, "second"), testenv.Submitted)
		Expect(h.Submits("second")).To(HaveLen(1))
		Expect(get(s).Status.TmuxTarget).To(Equal("loop-github-octo-repo-78"))
		Expect(s.Status.ConversationID).To(Equal(id))
		h.Await(s, api.ConditionResumed, "True/ConversationContinued")
	})
})

var _ = Describe("the restart of a session", func() {
	It("C080: leaves a pause as it was, whatever brings it about", func() {
		h := env.NewDemoHost()
		s := h.Standing("on-pause")
		aTurn(h, s, "before the pause")
		h.Update(s, func() { s.Spec.DeliveryPolicy = api.DeliveryPolicyDrop })
		h.Ready(s)
		age := get(s).CreationTimestamp
		for i, restart := range []func(){
			func() { h.KillHarness(s) },
			func() {
				h.Update(s, func() { metav1.SetMetaDataAnnotation(&s.ObjectMeta, api.RestartRequestedAnnotation, "x") })
			},
			func() { h.Agent.Kill(); h.Tmux("kill-session", "-t", "=loop-standing-on-pause"); h.StartAgent() },
		} {
			restart()
			Eventually(h.Events).WithArguments("started").Should(HaveLen(i + 2))
			h.Ready(s)
			h.AwaitOutcome(h.Say(s, "during the pause"), "Dropped/Dropped")
			Expect(get(s).Spec.DeliveryPolicy).To(Equal(api.DeliveryPolicyDrop))
			Expect(s.CreationTimestamp).To(Equal(age))
		}
		Expect(h.Submits("during the pause")).To(BeEmpty())
	})

	It("C081: waits, with its message, for a harness that is missing, and is told why", func() {
		h := env.NewDemoHost()
		binary := filepath.Join(h.Dir, "claude")
		Expect(os.Symlink(h.DemoHarness(), binary)).To(Succeed())
		h.UpdateClass(h.Class, func(c *api.SessionClass) { c.Spec.Harness.Binary = binary })
		s := h.WorkItem(81)
		aTurn(h, s, "first")
		Expect(os.Rename(binary, binary+".away")).To(Succeed())
		h.KillHarness(s)
		h.Await(s, api.ConditionReady, "False/Exited")
		m := h.Say(s, "second")
		h.Await(s, api.ConditionReady, "False/BinaryMissing")
		Expect(h.Message(s, api.ConditionReady)).To(ContainSubstring(binary))
		Eventually(h.Reported).WithArguments(s, "SessionSpawnFailed").Should(Equal(1))
		h.AwaitOutcome(m, "Queued/Queued")
		Expect(os.Rename(binary+".away", binary)).To(Succeed())
		h.AwaitOutcome(m, testenv.Submitted)
		Expect(h.Submits("second")).To(HaveLen(1))
		h.Await(s, api.ConditionResumed, "True/ConversationContinued")
	})

	It("C082: is reported as a restart and not as another start of the item", func() {
		h := env.NewDemoHost()
		s := h.WorkItem(82)
		aTurn(h, s, "first")
		Eventually(h.Reported).WithArguments(s, "SessionSpawned").Should(Equal(1))
		h.KillHarness(s)
		h.Await(s, api.ConditionReady, "False/Exited")
		h.AwaitOutcome(h.Say(s, "second"), testenv.Submitted)
		Eventually(h.Reported).WithArguments(s, "SessionRespawned").Should(Equal(1))
		Expect(h.Reported(s, "SessionSpawned")).To(Equal(1))
	})

	It("brings the message that caused it exactly once, also when the agent ends meanwhile", func() {
		h := env.NewDemoHost()
		s := h.WorkItem(6)
		aTurn(h, s, "first")
		const rounds = 4
		for i := range rounds {
			h.KillHarness(s)
			h.Await(s, api.ConditionReady, "False/Exited")
			m := h.Say(s, "round "+itoa(i)+".")
			timer := time.NewTimer(time.Duration(rand.IntN(800)) * time.Millisecond)
			<-timer.C
			h.RestartAgent()
			// The agent keeps a harness that ended again and again waiting for some seconds.
			h.AwaitOutcome(m, testenv.Submitted, time.Minute)
		}
		for i := range rounds {
			Expect(h.Submits("round " + itoa(i) + ".")).To(HaveLen(1))
		}
		Expect(h.Events("started")).To(HaveLen(1 + rounds))
		Expect(get(s).Status.Restarts).To(BeEquivalentTo(rounds))
	})
})
