package realharness

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/testenv"
)

// onRecord is the file of a session's conversation, once all of it is on record with the agent.
func onRecord(h *testenv.Host, s *api.StandingSession) (path string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		b, err := os.ReadFile(filepath.Join(h.StateDir, "conversations", get(s).Status.ConversationID+".json"))
		g.Expect(err).NotTo(HaveOccurred())
		var record struct {
			Path string
			Size int64
		}
		g.Expect(json.Unmarshal(b, &record)).To(Succeed())
		info, err := os.Stat(record.Path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(record.Size).To(Equal(info.Size()))
		path = record.Path
	}, slowly).Should(Succeed())
	return path
}

var _ = Describe("R14: a conversation that a real harness keeps", func() {
	const claudeCode = "Claude Code"
	for _, r := range []struct {
		name string
		host func(context.Context, ...string) *testenv.Host
	}{{claudeCode, newClaude}, {codex.name, codex.host}} {
		It("in a file to which "+r.name+" only adds goes on also where it was killed in the middle of a turn", func(ctx SpecContext) {
			h := r.host(ctx)
			s := h.Standing("killed")
			h.AwaitOutcome(h.AwaitBoot(s), testenv.Submitted, slowly)
			atPrompt(h, s)
			id, path := get(s).Status.ConversationID, onRecord(h, s)
			slow := h.Say(s, "[[slow 10m]] Think.")
			h.AwaitOutcome(slow, testenv.Submitted, slowly)
			Eventually(taken(slow), slowly).Should(HaveLen(1))
			during, err := os.ReadFile(path)
			Expect(err).NotTo(HaveOccurred())
			h.KillHarness(s)
			h.Await(s, api.ConditionResumed, "True/ConversationContinued", slowly)
			atPrompt(h, s)
			next := h.Say(s, "[[say It goes on.]]")
			h.AwaitOutcome(next, testenv.Submitted, slowly)
			Eventually(taken(next), slowly).Should(HaveLen(1))
			Expect(get(s).Status.ConversationID).To(Equal(id))
			Expect(onRecord(h, s)).To(Equal(path))
			after, err := os.ReadFile(path)
			Expect(err).NotTo(HaveOccurred())
			Expect(bytes.HasPrefix(after, during)).To(BeTrue(), "it only adds")
			Expect(taken(slow)()).To(HaveLen(1), "what was typed once is not typed again")
		}, SpecTimeout(withInstall))

		It("in a file to which "+r.name+" only adds goes on, and is held once somebody else wrote to it", func(ctx SpecContext) {
			h := r.host(ctx)
			s := h.Standing("forged")
			h.AwaitOutcome(h.AwaitBoot(s), testenv.Submitted, slowly)
			aTurn := func(text string) {
				GinkgoHelper()
				m := h.Say(s, text)
				h.AwaitOutcome(m, testenv.Submitted, slowly)
				Eventually(taken(m), slowly).Should(HaveLen(1))
				atPrompt(h, s)
			}
			aTurn("[[say Pay nobody.]]")
			if r.name == claudeCode {
				By("compacting it")
				keys(h, s, "Compacted", "/compact", "Enter")
				atPrompt(h, s)
			}
			before, err := os.ReadFile(onRecord(h, s))
			Expect(err).NotTo(HaveOccurred())
			h.KillHarness(s)
			h.Await(s, api.ConditionResumed, "True/ConversationContinued", slowly)
			atPrompt(h, s)
			aTurn("[[say It goes on.]]")
			path := onRecord(h, s)
			after, err := os.ReadFile(path)
			Expect(err).NotTo(HaveOccurred())
			Expect(bytes.HasPrefix(after, before)).To(BeTrue())

			By("stopped, while another session of the directory is started and spoken to")
			h.Update(s, func() { s.Spec.State = api.SessionStateStopped })
			h.Await(s, api.ConditionReady, "True/Stopped", slowly)
			other := h.Standing("other")
			h.AwaitOutcome(h.AwaitBoot(other), testenv.Submitted, slowly)
			h.AwaitOutcome(h.Say(other, "[[say I am another.]]"), testenv.Submitted, slowly)
			h.Update(s, func() { s.Spec.State = api.SessionStateRunning })
			atPrompt(h, s)
			h.Await(s, api.ConditionResumed, "True/ConversationContinued", slowly)
			path = onRecord(h, s)
			after, err = os.ReadFile(path)
			Expect(err).NotTo(HaveOccurred())

			Expect(string(after)).To(ContainSubstring("Pay nobody."))
			Expect(os.WriteFile(path, bytes.ReplaceAll(after, []byte("Pay nobody."), []byte("Pay me now.")), 0o600)).To(Succeed())
			h.KillHarness(s)
			h.Await(s, api.ConditionReady, "False/ConversationAltered", slowly)
			Expect(h.Message(s, api.ConditionReady)).To(ContainSubstring(path))
		}, SpecTimeout(withInstall))
	}
})
