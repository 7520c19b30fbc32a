package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/testenv"
)

// half is what a person types and does not submit.
const half = "a half-typed draft"

// drafting makes a work item's session at whose prompt a person has typed half.
func drafting(number int64, behaviour ...string) (*testenv.Host, *api.WorkItemSession) {
	GinkgoHelper()
	h := env.NewDemoHost(behaviour...)
	s := h.WorkItem(number)
	h.Ready(s)
	h.AwaitOutcome(h.Say(s, "the first message"), testenv.Submitted)
	Eventually(h.Events).WithArguments("reply").Should(HaveLen(1))
	typeDraft(h, s)
	return h, s
}

func typeDraft(h *testenv.Host, s *api.WorkItemSession) {
	GinkgoHelper()
	h.Keys(get(s).Status.TmuxTarget, "-l", half)
	Eventually(h.Screen).WithArguments(s.Status.TmuxTarget).Should(ContainSubstring("❯ " + half))
}

// heldFor is why a message is held.
func heldFor(m *api.SessionMessage) string {
	if c := meta.FindStatusCondition(get(m).Status.Conditions, api.ConditionDelivered); c != nil {
		return c.Message
	}
	return ""
}

var _ = Describe("a draft that a person has typed", func() {
	It("holds a message until it is submitted, says so in the status line, and is never merged with it", func() {
		h, s := drafting(81)
		statusLine := func() string {
			return h.Tmux("display-message", "-p", "-t", "="+get(s).Status.TmuxTarget+":", "#{T:status-right}")
		}
		m := h.Say(s, "not into the draft")
		h.AwaitOutcome(m, "Held/Held")
		Eventually(statusLine).Should(ContainSubstring("a message waits: submit or clear the input"))
		next := h.Say(s, "nor the next")
		Eventually(statusLine).Should(ContainSubstring("2 messages wait"))
		Expect(heldFor(m)).To(Equal("a person has typed something that is not submitted yet: submit or clear it"))
		Consistently(h.Screen, 3*time.Second, 100*time.Millisecond).WithArguments(s.Status.TmuxTarget).Should(
			And(ContainSubstring("❯ "+half), Not(ContainSubstring("not into"))))
		h.Keys(s.Status.TmuxTarget, "Enter")
		h.AwaitOutcome(m, testenv.Submitted)
		h.AwaitOutcome(next, testenv.Submitted)
		Eventually(statusLine).ShouldNot(ContainSubstring("the-loop"))
		Expect(h.Submits(half)).To(ConsistOf(HaveField("Text", half)))
		Expect(h.Submits("not into the draft")).To(HaveLen(1))
		Expect(h.Submits("nor the next")).To(HaveLen(1))
	})

	It("holds a message until it is cleared, also when the agent was started anew meanwhile", func() {
		h, s := drafting(82)
		m := h.Say(s, "not into the draft")
		h.AwaitOutcome(m, "Held/Held")
		h.RestartAgent()
		h.Ready(s)
		Consistently(h.Submits, 2*time.Second, 100*time.Millisecond).WithArguments("not into").Should(BeEmpty())
		Expect(h.Outcome(m)()).To(Equal("Held/Held"))
		h.Keys(s.Status.TmuxTarget, "C-u")
		h.AwaitOutcome(m, testenv.Submitted)
		Expect(h.Submits("not into the draft")).To(HaveLen(1))
		Expect(h.Submits(half)).To(BeEmpty())
	})

	It("keeps the harness from being ended for changed arguments", func() {
		h, s := drafting(83)
		pid := h.HarnessPID(s)
		conversation := get(s).Status.ConversationID
		h.UpdateClass(h.Class, func(c *api.SessionClass) { c.Spec.Harness.Args = []string{"--append-system-prompt", "be brief"} })
		m := h.Say(s, "after the re-launch")
		h.AwaitOutcome(m, "Held/Held")
		Expect(heldFor(m)).To(ContainSubstring("a re-launch with changed arguments, which waits for a draft: a person has typed something"))
		Consistently(func() int { return h.HarnessPID(s) }, 3*time.Second, 100*time.Millisecond).Should(Equal(pid))
		Expect(h.Screen(s.Status.TmuxTarget)).To(ContainSubstring("❯ " + half))
		h.Keys(s.Status.TmuxTarget, "C-u")
		h.AwaitOutcome(m, testenv.Submitted)
		h.Await(s, api.ConditionResumed, "True/ConversationContinued")
		Expect(get(s).Status.ConversationID).To(Equal(conversation))
		Expect(get(s).Status.HarnessArgs).To(Equal([]string{"--append-system-prompt", "be brief"}))
		got := h.Submits("after the re-launch")
		Expect(got).To(HaveLen(1))
		Expect(got[0].PID).NotTo(Equal(pid))
		Expect(got[0].PID).To(Equal(h.HarnessPID(s)))
		Expect(h.Submits(half)).To(BeEmpty())
	})

	It("holds a message while the harness is busy, and no message that comes after another", func() {
		h, s := drafting(84, "think=1500")
		h.Keys(s.Status.TmuxTarget, "C-u")
		one, two := h.Say(s, "the second message"), h.Say(s, "the third message")
		h.AwaitOutcome(one, testenv.Submitted)
		h.AwaitOutcome(two, testenv.Submitted)
		typeDraft(h, s)
		m := h.Say(s, "not into the draft")
		h.AwaitOutcome(m, "Held/Held")
		h.Keys(s.Status.TmuxTarget, "C-u")
		h.AwaitOutcome(m, testenv.Submitted)
		Expect(h.Submits(half)).To(BeEmpty())
	})

	It("P53: is not what a delivery left: that is called so, and the next message goes when a person has cleared it", func() {
		h := env.NewDemoHost("swallow-cr=2")
		s := h.WorkItem(85)
		h.Ready(s)
		left := h.Say(s, "left in the box")
		h.AwaitOutcome(left, "Typed/Typed", time.Minute)
		m := h.Say(s, "not behind it")
		h.AwaitOutcome(m, "Held/Held")
		Expect(heldFor(m)).To(ContainSubstring("an earlier message was typed and not taken"))
		Consistently(h.Submits, 2*time.Second, 100*time.Millisecond).WithArguments("").Should(BeEmpty())
		h.Keys(get(s).Status.TmuxTarget, "C-u")
		h.AwaitOutcome(m, testenv.Submitted)
		Expect(h.Submits("")).To(ConsistOf(HaveField("Text", And(ContainSubstring("not behind it"), Not(ContainSubstring("left in the box"))))))
	})
})
