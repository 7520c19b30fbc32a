package realharness

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/fakemodel/server"
	"github.com/theloop-dev/the-loop/test/testenv"
)

var _ = Describe("the real Claude Code", func() {
	It("lives the whole life of a session, from a home in which it never ran to its deletion", func(ctx SpecContext) {
		h := newClaude(ctx)
		s := h.Standing("life", func(s *api.StandingSession) {
			s.Spec.Prompt = "Keep an eye on the build.\nÄ 漢 👩‍👩‍👧 \"quoted\"."
		})

		By("becoming ready without a dialog, because the-loop has answered it in claude's config")
		h.Ready(s)
		config, err := os.ReadFile(filepath.Join(h.Dir, "config", ".claude.json"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(config)).To(ContainSubstring(`"hasTrustDialogAccepted": true`))

		By("taking its first message, byte for byte")
		boot := h.AwaitBoot(s)
		h.AwaitOutcome(boot, testenv.Submitted)
		Expect(boot.Status.Evidence.Type).To(Equal("UserPromptSubmit"))
		Eventually(taken(boot)).Should(HaveLen(1))
		Expect(taken(boot)()[0].Texts).To(ContainElement(ContainSubstring("Ä 漢 👩‍👩‍👧 \"quoted\".")))

		By("taking a message of several lines")
		m := h.Say(s, "[[say The answer.]]\n\tHow are you?\n/help\n!ls\nexit")
		h.AwaitOutcome(m, testenv.Submitted)
		Eventually(taken(m)).Should(HaveLen(1))

		By("taking two messages while it is busy")
		slow := h.Say(s, "[[slow 4s]] Think.")
		h.AwaitOutcome(slow, testenv.Submitted)
		Eventually(taken(slow)).Should(HaveLen(1))
		// One after the other: of two of the same second the name decides which goes first.
		for _, text := range []string{"The first in between.", "The second in between."} {
			h.AwaitOutcome(h.Say(s, text), testenv.Submitted)
		}
		// Claude may join what it queued to one turn: once each, and in their order.
		Eventually(func() string { return strings.Join(allTexts(), "\n") }).Should(
			MatchRegexp(`(?s)The first in between\..*The second in between\.`))
		for _, text := range []string{"The first in between.", "The second in between."} {
			Expect(strings.Count(strings.Join(allTexts(), "\n"), text)).To(Equal(1))
		}

		id := get(s).Status.ConversationID
		By("going on with the conversation after it was killed")
		last := h.Say(s, "[[say Remember this.]]")
		h.AwaitOutcome(last, testenv.Submitted)
		// The turn is over when it is on disk; before, a kill loses it.
		Eventually(transcript(h, id)).Should(ContainSubstring(`"text":"Remember this."`))
		h.KillHarness(s)
		h.Await(s, api.ConditionResumed, "True/ConversationContinued")
		h.Ready(s)
		Expect(get(s).Status.ConversationID).To(Equal(id))
		again := h.Say(s, "Are you back?")
		h.AwaitOutcome(again, testenv.Submitted)
		Eventually(taken(again)).Should(HaveLen(1))
		Expect(taken(again)()[0].Messages).To(BeNumerically(">", taken(m)()[0].Messages))
		Expect(taken(boot)()).To(HaveLen(1))

		By("stopping, and going on with the conversation")
		h.Update(s, func() { s.Spec.State = api.SessionStateStopped })
		h.Await(s, api.ConditionReady, "True/Stopped")
		Expect(h.Pane(s).Dead).To(BeTrue())
		Expect(transcript(h, id)()).To(ContainSubstring("Are you back?"))
		h.Update(s, func() { s.Spec.State = api.SessionStateRunning })
		h.Ready(s)
		h.Await(s, api.ConditionResumed, "True/ConversationContinued")
		Expect(get(s).Status.ConversationID).To(Equal(id))
		after := h.Say(s, "And now?")
		h.AwaitOutcome(after, testenv.Submitted)
		Eventually(taken(after)).Should(HaveLen(1))
		Expect(taken(after)()[0].Messages).To(BeNumerically(">", taken(again)()[0].Messages))

		By("being deleted")
		h.Delete(s)
		h.AwaitGone(s)
	}, SpecTimeout(withInstall))

	It("P51: has its permission dialog answered by a person only, and takes the held message then", func(ctx SpecContext) {
		h := newClaude(ctx, "--permission-mode", "manual")
		s := h.Standing("asked")
		h.Ready(s)
		h.AwaitOutcome(h.AwaitBoot(s), testenv.Submitted)
		made := filepath.Join(h.Work, "made")
		ask := h.Say(s, "[[tool Bash touch "+made+"]]")
		h.AwaitOutcome(ask, testenv.Submitted)
		h.Await(s, api.ConditionAcceptingInput, "False/AwaitingInput")
		held := h.Say(s, "Not into the dialog.")
		h.AwaitOutcome(held, "Held/Held")
		Eventually(func() string { return h.Screen(s.Status.TmuxTarget) }).Should(ContainSubstring("Do you want to proceed?"))
		Consistently(func(g Gomega) {
			g.Expect(made).NotTo(BeAnExistingFile())
			g.Expect(h.Screen(s.Status.TmuxTarget)).To(And(ContainSubstring("Do you want to proceed?"), Not(ContainSubstring("Not into"))))
		}, 2*time.Second, 100*time.Millisecond).Should(Succeed())
		By("answering it at the terminal")
		h.Keys(s.Status.TmuxTarget, "Enter")
		Eventually(func() error { _, err := os.Stat(made); return err }).Should(Succeed())
		h.AwaitOutcome(held, testenv.Submitted)
		Eventually(taken(held)).Should(HaveLen(1))
	}, SpecTimeout(withInstall))

	It("H01: opens on no disclaimer where its arguments ask to run without permissions", func(ctx SpecContext) {
		h := newClaude(ctx, "--dangerously-skip-permissions")
		s := h.Standing("free")
		h.Ready(s)
		made := filepath.Join(h.Work, "made")
		m := h.Say(s, "[[tool Bash touch "+made+"]]")
		h.AwaitOutcome(m, testenv.Submitted)
		Eventually(func() error { _, err := os.Stat(made); return err }).Should(Succeed())
		Eventually(func() []server.Call { return model.Calls(server.KindTool) }).ShouldNot(BeEmpty())
	}, SpecTimeout(withInstall))
})

// allTexts are the newest texts of all turns, in their order.
func allTexts() (out []string) {
	for _, e := range model.Calls(server.KindTurn, server.KindTool) {
		out = append(out, e.Texts...)
	}
	return out
}
