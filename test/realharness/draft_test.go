package realharness

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/testenv"
)

// drafted has a person type into the input box of a session at its prompt: messages wait,
// and so does a re-launch with the arguments of change.
func drafted(h *testenv.Host, s *api.StandingSession, change func(*api.SessionClass)) {
	GinkgoHelper()
	target := get(s).Status.TmuxTarget
	screen := func() string { return h.Screen(target) }
	held := func(half, text string) *api.SessionMessage {
		GinkgoHelper()
		h.Keys(target, "-l", half)
		Eventually(screen, slowly).Should(ContainSubstring(half))
		h.Keys(target, "C-a")
		m := h.Say(s, text)
		h.AwaitOutcome(m, "Held/Held")
		why := func() string {
			return meta.FindStatusCondition(get(m).Status.Conditions, api.ConditionDelivered).Message
		}
		Eventually(why, slowly).Should(ContainSubstring("a person has typed something that is not submitted yet"))
		Consistently(screen, 3*time.Second, 100*time.Millisecond).Should(And(ContainSubstring(half), Not(ContainSubstring(text))))
		h.Keys(target, "C-e")
		return m
	}

	By("holding a message until the person submits")
	m := held("a half-typed draft", "Not into the draft.")
	h.Keys(target, "Enter")
	h.AwaitOutcome(m, testenv.Submitted, slowly)
	Eventually(taken(m), slowly).Should(HaveLen(1))
	Eventually(allTexts, slowly).Should(ContainElement("a half-typed draft"))
	atPrompt(h, s)

	By("holding a message until the person clears the box")
	m = held("another draft", "Nor into this one.")
	h.Keys(target, "C-u")
	h.AwaitOutcome(m, testenv.Submitted, slowly)
	Eventually(taken(m), slowly).Should(HaveLen(1))
	atPrompt(h, s)

	By("not ending the harness for changed arguments before that")
	id, pid := get(s).Status.ConversationID, h.HarnessPID(s)
	h.UpdateClass(h.Class, change)
	m = held("a third draft", "After the re-launch.")
	Expect(h.HarnessPID(s)).To(Equal(pid))
	h.Keys(target, "C-u")
	h.AwaitOutcome(m, testenv.Submitted, slowly)
	Eventually(taken(m), slowly).Should(HaveLen(1))
	h.Await(s, api.ConditionResumed, "True/ConversationContinued", slowly)
	Expect(get(s).Status.ConversationID).To(Equal(id))
	Expect(h.HarnessPID(s)).NotTo(Equal(pid))
}

var _ = Describe("a draft that a person has typed into a real harness", func() {
	It("holds messages and a re-launch of Claude Code", func(ctx SpecContext) {
		h := newClaude(ctx)
		s := h.Standing("drafted")
		h.Ready(s)
		h.AwaitOutcome(h.AwaitBoot(s), testenv.Submitted)
		atPrompt(h, s)
		drafted(h, s, func(c *api.SessionClass) { c.Spec.Harness.Args = []string{"--append-system-prompt", "be brief"} })
	}, SpecTimeout(withInstall))

	It("holds messages and a re-launch of codex", func(ctx SpecContext) {
		h := codex.host(ctx)
		s := h.Standing("drafted")
		h.AwaitOutcome(h.AwaitBoot(s), testenv.Submitted, slowly)
		atPrompt(h, s)
		drafted(h, s, func(c *api.SessionClass) { c.Spec.Harness.Args = []string{"-c", `model_reasoning_summary="none"`} })
	}, SpecTimeout(withInstall))

	It("holds messages and a re-launch of gemini", func(ctx SpecContext) {
		h := gemini.host(ctx)
		s := h.Standing("drafted")
		h.AwaitOutcome(h.AwaitBoot(s), testenv.Submitted, slowly)
		atPrompt(h, s)
		drafted(h, s, func(c *api.SessionClass) { c.Spec.Harness.Args = []string{"--sandbox=false"} })
	}, SpecTimeout(withInstall))
})
