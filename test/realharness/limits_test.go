package realharness

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/testenv"
)

// resetWithin bounds the wait for the end of a limit of 20 s: the harness names it to the
// minute, and wake-ups are spread over another.
const resetWithin = 4 * time.Minute

// held is why a message waits.
func held(m *api.SessionMessage) func() string {
	return func() string {
		c := meta.FindStatusCondition(get(m).Status.Conditions, api.ConditionDelivered)
		if c == nil || m.Status.Outcome != api.OutcomeHeld {
			return ""
		}
		return c.Message
	}
}

// keys types something at the terminal of a session, and waits until its screen says so.
func keys(h *testenv.Host, s *api.StandingSession, says string, keys ...string) {
	GinkgoHelper()
	target := get(s).Status.TmuxTarget
	h.Keys(target, keys...)
	Eventually(func() string { return h.Screen(target) }, slowly).Should(ContainSubstring(says))
}

var _ = Describe("a real harness whose turns are refused", func() {
	It("P47, P48: Claude Code at its usage limit says until when, keeps what comes meanwhile, and takes it after the reset", func(ctx SpecContext) {
		h := newClaude(ctx)
		h.UpdateClass(h.Class, func(c *api.SessionClass) { // only a subscription has such a limit
			vars := c.Spec.Harness.Env
			for i := range vars {
				if vars[i].Name == "ANTHROPIC_AUTH_TOKEN" {
					vars[i] = api.EnvVar{Name: "CLAUDE_CODE_OAUTH_TOKEN", Value: "sk-ant-oat01-made-up"}
				}
			}
			c.Spec.Harness.Env = append(vars, api.EnvVar{Name: "HTTPS_PROXY", Value: "http://127.0.0.1:9"}, api.EnvVar{Name: "NO_PROXY", Value: "127.0.0.1"})
		})
		s := h.Standing("limited")
		h.Ready(s)
		h.AwaitOutcome(h.AwaitBoot(s), testenv.Submitted)
		atPrompt(h, s)

		By("running into the limit")
		first := h.Say(s, "[[limit 20s]] One turn too many.")
		h.AwaitOutcome(first, testenv.Submitted)
		h.Await(s, api.ConditionAcceptingInput, "False/UsageLimited", slowly)
		Expect(h.Message(s, api.ConditionAcceptingInput)).To(ContainSubstring("You've hit your 5-hour limit · resets "))
		reached := model.Calls()[len(model.Calls())-1].Time

		By("keeping what comes meanwhile")
		parked := h.Say(s, "After the reset.")
		Eventually(held(parked), slowly).Should(And(HavePrefix("the harness is at its usage limit, until "), ContainSubstring("You've hit your 5-hour limit")))

		By("taking it after the reset, although the sentence stays on the screen")
		h.AwaitOutcome(parked, testenv.Submitted, resetWithin)
		Expect(parked.Status.Evidence.Time.Time).To(BeTemporally(">=", reached.Add(20*time.Second)))
		Expect(h.Screen(get(s).Status.TmuxTarget)).To(ContainSubstring("You've hit your 5-hour limit"))
		Eventually(taken(parked), slowly).Should(HaveLen(1))
		atPrompt(h, s)
	}, SpecTimeout(withInstall))

	It("P47: Codex at the limit of its plan says until when, and keeps what comes meanwhile", func(ctx SpecContext) {
		h := codex.host(ctx)
		s := h.Standing("limited")
		h.AwaitOutcome(h.AwaitBoot(s), testenv.Submitted, slowly)
		atPrompt(h, s)
		h.AwaitOutcome(h.Say(s, "[[limit 2h]] One turn too many."), testenv.Submitted, slowly)
		h.Await(s, api.ConditionAcceptingInput, "False/UsageLimited", slowly)
		Expect(h.Message(s, api.ConditionAcceptingInput)).To(ContainSubstring("hit your usage limit"))
		parked := h.Say(s, "After the reset.")
		Eventually(held(parked), slowly).Should(HavePrefix("the harness is at its usage limit, until "))
		Expect(taken(parked)()).To(BeEmpty())
	}, SpecTimeout(withInstall))

	It("H23: Claude Code whose login is refused says so, and keeps what comes meanwhile", func(ctx SpecContext) {
		h := newClaude(ctx)
		s := h.Standing("refused")
		h.Ready(s)
		h.AwaitOutcome(h.AwaitBoot(s), testenv.Submitted)
		atPrompt(h, s)
		h.AwaitOutcome(h.Say(s, "[[fail 401]] Who are you?"), testenv.Submitted)
		h.Await(s, api.ConditionAcceptingInput, "False/LoginRefused", slowly)
		Expect(h.Message(s, api.ConditionAcceptingInput)).To(And(ContainSubstring("log in again"), ContainSubstring("Please run /login")))
		kept := h.Say(s, "After the login.")
		Eventually(held(kept), slowly).Should(HavePrefix("the login of the harness was refused"))
		Expect(taken(kept)()).To(BeEmpty())
	}, SpecTimeout(withInstall))

	It("H19, P19: Claude Code gets nothing typed into what only its screen shows, and the message after that", func(ctx SpecContext) {
		h := newClaude(ctx)
		write(h.Dir+"/config/settings.json", `{"editorMode":"vim"}`)
		s := h.Standing("hidden")
		h.Ready(s)
		h.AwaitOutcome(h.AwaitBoot(s), testenv.Submitted)
		atPrompt(h, s)
		for _, c := range []struct{ opens, shows, says string }{
			{"C-r", "Filter history", "the search in its history is open at the terminal"},
			{"C-o", "Showing detailed transcript", "the transcript is open at the terminal"},
		} {
			By(c.says)
			keys(h, s, c.shows, c.opens)
			m := h.Say(s, "Not into it: "+c.opens)
			Eventually(held(m), slowly).Should(And(HavePrefix(c.says), HaveSuffix("press Escape")))
			Expect(h.Screen(s.Status.TmuxTarget)).NotTo(ContainSubstring("Not into it: " + c.opens))
			h.Keys(s.Status.TmuxTarget, "Escape")
			h.AwaitOutcome(m, testenv.Submitted, slowly)
			Eventually(taken(m), slowly).Should(HaveLen(1))
			atPrompt(h, s)
		}

		By("the transcript of a turn under way, whose last row begins otherwise")
		h.AwaitOutcome(h.Say(s, "[[slow 10s]] Think."), testenv.Submitted, slowly)
		keys(h, s, "working · Showing detailed transcript", "C-o")
		seen := h.Say(s, "Not into the transcript.")
		Eventually(held(seen), slowly).Should(And(HavePrefix("the transcript is open at the terminal"), HaveSuffix("press Escape")))
		h.Keys(s.Status.TmuxTarget, "Escape")
		h.AwaitOutcome(seen, testenv.Submitted, slowly)
		Eventually(taken(seen), slowly).Should(HaveLen(1))
		atPrompt(h, s)

		By("vim's visual mode, in which a carriage return submits nothing")
		keys(h, s, "-- INSERT --", "i")
		h.Keys(s.Status.TmuxTarget, "BSpace", "Escape")
		Eventually(func() string { return h.Screen(s.Status.TmuxTarget) }).ShouldNot(ContainSubstring("-- INSERT --"))
		keys(h, s, "-- VISUAL", "v")
		m := h.Say(s, "Not in visual mode.")
		Eventually(held(m), slowly).Should(And(HavePrefix("vim's visual mode is open at the terminal"), HaveSuffix("press Escape")))
		h.Keys(s.Status.TmuxTarget, "Escape")
		h.AwaitOutcome(m, testenv.Submitted, slowly)
		Eventually(taken(m), slowly).Should(HaveLen(1), "in normal mode a paste is text: dd and x are no commands")
	}, SpecTimeout(withInstall))
})
