package realharness

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/text"
	"github.com/theloop-dev/the-loop/internal/text/corpus"
	"github.com/theloop-dev/the-loop/test/testenv"
)

// codexFree is a Codex that asks for no permission.
var codexFree = func() real {
	r := codex
	r.args = []string{"--dangerously-bypass-approvals-and-sandbox"}
	return r
}()

// codexTold is what Codex has on disk of its conversations.
func codexTold(h *testenv.Host) func() string {
	return func() string {
		files, err := filepath.Glob(filepath.Join(h.Dir, "home", ".codex", "sessions", "*", "*", "*", "*.jsonl"))
		Expect(err).NotTo(HaveOccurred())
		var all strings.Builder
		for _, f := range files {
			b, err := os.ReadFile(f)
			Expect(err).NotTo(HaveOccurred())
			all.Write(b)
		}
		return all.String()
	}
}

const (
	codexAsksNothing = `"approval_policy":"never"`
	codexTool        = `"type":"function_call"`
	codexShell       = "<user_shell_command>"
	codexPicture     = `"type":"input_image"`
)

// unharmedCodex is unharmed for a Codex that asks for no permission.
func (t *target) unharmedCodex(pid int) {
	GinkgoHelper()
	Expect(t.pwn).NotTo(BeAnExistingFile())
	Expect(t.configured()).To(Equal(t.before))
	Expect(t.h.HarnessPID(t.s)).To(Equal(pid))
	Expect(get(t.s).Status.ConversationID).To(Equal(t.id))
	Expect(t.s.Status.Restarts).To(BeZero())
	told := codexTold(t.h)()
	Expect(told).To(ContainSubstring(codexAsksNothing))
	Expect(strings.Count(told, `"approval_policy":`)).To(Equal(strings.Count(told, codexAsksNothing)))
	for what, mark := range map[string]string{
		"a command of the shell": codexShell, "a tool": codexTool, "a picture": codexPicture, "a file": "nobody-may-read-this",
	} {
		Expect(strings.Contains(told, mark)).To(BeFalse(), what)
	}
	atPrompt(t.h, t.s)
}

var _ = Describe("attacks on the real Codex that asks for no permission", func() {
	It("P01 P03 P04 P23 P24 P27 P31 P34 P37 C061: each text arrives as one prompt, byte for byte, and does nothing else", func(ctx SpecContext) {
		t := aim(codexFree.host(ctx))
		pid := t.h.HarnessPID(t.s)
		for i, c := range corpus.Accepted(text.Limit) {
			if c.Text == "" {
				continue
			}
			// What is too long for a frame of a stranger's is an operator's; the others take turns.
			if len(c.Text) > 4096 || i%2 == 0 {
				t.fire(c, operator)
			} else {
				t.fire(c, stranger)
			}
		}
		t.unharmedCodex(pid)

		By("running what the model orders and what a person types, so that all of this could have happened")
		t.h.AwaitOutcome(t.h.Say(t.s, `[[tool exec_command {"cmd":"touch `+t.pwn+`"}]]`), testenv.Submitted, slowly)
		Eventually(t.pwn, slowly).Should(BeAnExistingFile())
		Expect(os.Remove(t.pwn)).To(Succeed())
		atPrompt(t.h, t.s)
		t.h.Keys(t.s.Status.TmuxTarget, "-l", "!touch "+t.pwn)
		Eventually(func() string { return t.h.Screen(t.s.Status.TmuxTarget) }, slowly).Should(ContainSubstring("\n! touch "))
		Eventually(func() string {
			t.h.Keys(t.s.Status.TmuxTarget, "Enter") // one right behind the text is a line end to Codex
			return t.pwn
		}, slowly, time.Second).Should(BeAnExistingFile())
		Eventually(codexTold(t.h), slowly).Should(And(ContainSubstring(codexTool), ContainSubstring(codexShell)))
	}, SpecTimeout(withInstall))

	It("P27, P40: submit no draft, also not one that would run or open something, and come when it was cleared", func(ctx SpecContext) {
		t := aim(codexFree.host(ctx))
		t.keepsFromDrafts("› ", "! ", "a half-typed draft", "!touch "+t.pwn, "/clear", "@secr")
	}, SpecTimeout(withInstall))
})

var _ = Describe("attacks on what the real Codex asks", func() {
	It("P27, P51: answer no permission dialog, and come when a person has", func(ctx SpecContext) {
		t := aim(codex.host(ctx))
		before := len(turns(0))
		t.h.AwaitOutcome(t.h.Say(t.s, codex.shell("touch "+t.pwn)), testenv.Submitted, slowly)
		t.h.Await(t.s, api.ConditionAcceptingInput, "False/AwaitingInput", slowly)
		waiting := t.keeps("a dialog of the harness waits for a person: ", codex.dialog, answers()...)
		t.h.Keys(t.s.Status.TmuxTarget, "Escape")
		arrive(waiting, before)
		Expect(t.pwn).NotTo(BeAnExistingFile())
	}, SpecTimeout(withInstall))

	It("P11, P51: answer no question of trust at its start, and come when a person has", func(ctx SpecContext) {
		h := codex.host(ctx)
		h.UpdateClass(h.Class, func(c *api.SessionClass) { c.Spec.Trust.Enabled = new(false) })
		t := &target{h: h, s: h.Standing("untrusted"), pwn: filepath.Join(h.Dir, "pwn")}
		const shows = "Trust this folder?"
		Eventually(func() string { return get(t.s).Status.TmuxTarget }).ShouldNot(BeEmpty())
		screen := func() string { return h.Screen(get(t.s).Status.TmuxTarget) }
		Eventually(screen, slowly).Should(ContainSubstring(shows))
		boot, before := h.AwaitBoot(t.s), len(turns(0))
		var waiting []*api.SessionMessage
		for _, a := range answers() {
			waiting = append(waiting, h.Say(t.s, t.aimed(a)))
		}
		Eventually(held(boot), slowly).Should(ContainSubstring("the harness has not reached its prompt"))
		Consistently(screen, 3*time.Second, 200*time.Millisecond).Should(ContainSubstring(shows))
		Expect(turns(before)).To(BeEmpty())
		h.Keys(t.s.Status.TmuxTarget, "Enter")
		h.AwaitOutcome(boot, testenv.Submitted, slowly)
		arrive(waiting, before)
		Expect(t.pwn).NotTo(BeAnExistingFile())
	}, SpecTimeout(withInstall))
})
