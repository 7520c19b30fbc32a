package realharness

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/fakemodel/server"
)

var _ = Describe("the real Claude Code", func() {
	It("lives the whole life of a session, from a home in which it never ran to its deletion", func() {
		h := newHost()
		s := h.standing("life", func(s *api.StandingSession) {
			s.Spec.Prompt = "Keep an eye on the build.\nÄ 漢 👩‍👩‍👧 \"quoted\"."
		})

		By("becoming ready without a dialog, because the-loop has answered it in claude's config")
		ready(s)
		config, err := os.ReadFile(filepath.Join(h.dir, "config", ".claude.json"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(config)).To(ContainSubstring(`"hasTrustDialogAccepted": true`))

		By("taking its first message, byte for byte")
		boot := h.boot(s)
		Eventually(outcome(boot)).Should(Equal(submitted))
		Expect(boot.Status.Evidence.Type).To(Equal("UserPromptSubmit"))
		Eventually(taken(boot)).Should(HaveLen(1))
		Expect(taken(boot)()[0].Texts).To(ContainElement(ContainSubstring("Ä 漢 👩‍👩‍👧 \"quoted\".")))

		By("taking a message of several lines")
		m := h.say(s, "[[say The answer.]]\n\tHow are you?\n/help\n!ls\nexit")
		Eventually(outcome(m)).Should(Equal(submitted))
		Eventually(taken(m)).Should(HaveLen(1))

		By("taking two messages while it is busy")
		slow := h.say(s, "[[slow 4s]] Think.")
		Eventually(outcome(slow)).Should(Equal(submitted))
		Eventually(taken(slow)).Should(HaveLen(1))
		// One after the other: of two of the same second the name decides which goes first.
		for _, text := range []string{"The first in between.", "The second in between."} {
			Eventually(outcome(h.say(s, text))).Should(Equal(submitted))
		}
		// Claude may join what it queued to one turn: once each, and in their order.
		Eventually(func() string { return strings.Join(allTexts(), "\n") }).Should(
			MatchRegexp(`(?s)The first in between\..*The second in between\.`))
		for _, text := range []string{"The first in between.", "The second in between."} {
			Expect(strings.Count(strings.Join(allTexts(), "\n"), text)).To(Equal(1))
		}

		id := get(s).Status.ConversationID
		By("going on with the conversation after it was killed")
		last := h.say(s, "[[say Remember this.]]")
		Eventually(outcome(last)).Should(Equal(submitted))
		// The turn is over when it is on disk; before, a kill loses it.
		Eventually(h.transcript(id)).Should(ContainSubstring(`"text":"Remember this."`))
		h.killClaude(s)
		Eventually(condition(s, api.ConditionResumed)).Should(Equal("True/ConversationContinued"))
		ready(s)
		Expect(get(s).Status.ConversationID).To(Equal(id))
		again := h.say(s, "Are you back?")
		Eventually(outcome(again)).Should(Equal(submitted))
		Eventually(taken(again)).Should(HaveLen(1))
		Expect(taken(again)()[0].Messages).To(BeNumerically(">", taken(m)()[0].Messages))
		Expect(taken(boot)()).To(HaveLen(1))

		By("stopping, and going on with the conversation")
		update(s, func() { s.Spec.State = api.SessionStateStopped })
		Eventually(condition(s, api.ConditionReady)).Should(Equal("True/Stopped"))
		Expect(h.pane(s).Dead).To(BeTrue())
		Expect(h.transcript(id)()).To(ContainSubstring("Are you back?"))
		update(s, func() { s.Spec.State = api.SessionStateRunning })
		ready(s)
		Eventually(condition(s, api.ConditionResumed)).Should(Equal("True/ConversationContinued"))
		Expect(get(s).Status.ConversationID).To(Equal(id))
		after := h.say(s, "And now?")
		Eventually(outcome(after)).Should(Equal(submitted))
		Eventually(taken(after)).Should(HaveLen(1))
		Expect(taken(after)()[0].Messages).To(BeNumerically(">", taken(again)()[0].Messages))

		By("being deleted")
		Expect(k8s.Delete(context.Background(), s)).To(Succeed())
		Eventually(func() bool {
			return apierrors.IsNotFound(k8s.Get(context.Background(), client.ObjectKeyFromObject(s), s))
		}).Should(BeTrue())
	})

	It("H06: has its permission dialog answered by a person only, and takes the held message then", func() {
		h := newHost("--permission-mode", "manual")
		s := h.standing("asked", nil)
		ready(s)
		Eventually(outcome(h.boot(s))).Should(Equal(submitted))
		made := filepath.Join(h.work, "made")
		ask := h.say(s, "[[tool Bash touch "+made+"]]")
		Eventually(outcome(ask)).Should(Equal(submitted))
		Eventually(condition(s, api.ConditionAcceptingInput)).Should(Equal("False/AwaitingInput"))
		held := h.say(s, "Not into the dialog.")
		Eventually(outcome(held)).Should(Equal("Held/Held"))
		Eventually(func() string { return h.screen(s.Status.TmuxTarget) }).Should(ContainSubstring("Do you want to proceed?"))
		Consistently(func(g Gomega) {
			g.Expect(made).NotTo(BeAnExistingFile())
			g.Expect(h.screen(s.Status.TmuxTarget)).To(And(ContainSubstring("Do you want to proceed?"), Not(ContainSubstring("Not into"))))
		}, 2*time.Second, 100*time.Millisecond).Should(Succeed())
		By("answering it at the terminal")
		Expect(exec.Command("tmux", "-N", "-S", h.server.Socket(), "send-keys", "-t", "="+s.Status.TmuxTarget+":", "Enter").Run()).To(Succeed())
		Eventually(func() error { _, err := os.Stat(made); return err }).Should(Succeed())
		Eventually(outcome(held)).Should(Equal(submitted))
		Eventually(taken(held)).Should(HaveLen(1))
	})

	It("H01: opens on no disclaimer where its arguments ask to run without permissions", func() {
		h := newHost("--dangerously-skip-permissions")
		s := h.standing("free", nil)
		ready(s)
		made := filepath.Join(h.work, "made")
		m := h.say(s, "[[tool Bash touch "+made+"]]")
		Eventually(outcome(m)).Should(Equal(submitted))
		Eventually(func() error { _, err := os.Stat(made); return err }).Should(Succeed())
		Eventually(func() []server.Call { return model.Calls(server.KindTool) }).ShouldNot(BeEmpty())
	})
})

// allTexts are the newest texts of all turns, in their order.
func allTexts() (out []string) {
	for _, e := range model.Calls(server.KindTurn, server.KindTool) {
		out = append(out, e.Texts...)
	}
	return out
}
