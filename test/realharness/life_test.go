package realharness

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/testenv"
)

const (
	// withInstall is time enough for a test that has to install its harness first.
	withInstall = 10 * time.Minute
	// slowly bounds what a slow harness does on a busy host: opencode draws its prompt
	// after 8 to 34 s, and takes 10 s over its first answer.
	slowly = 2 * time.Minute
)

// real is one of the other harnesses.
type real struct {
	name string
	// home prepares a home in which it never ran, beyond what its user must say once, and
	// returns its environment.
	home func(h *testenv.Host) map[string]string
	// shell is the directive by which the model runs a command that is asked for.
	shell func(command string) string
	// args of the harness, so that it asks.
	args []string
	// dialog is what stands in its permission dialog.
	dialog string
}

var codex = real{
	name: "codex",
	home: func(h *testenv.Host) map[string]string {
		config := fmt.Sprintf(`model_provider = "fake"
model = "fake-model"
[model_providers.fake]
name = "fake"
base_url = "%s/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
`, modelURL)
		write(filepath.Join(made(h, "home/.codex"), "config.toml"), config)
		return map[string]string{"FAKE_KEY": "made-up"}
	},
	shell: func(command string) string {
		return fmt.Sprintf(`[[tool exec_command {"cmd":%q,"sandbox_permissions":"require_escalated","justification":"a test"}]]`, command)
	},
	dialog: "Would you like to run the following command?",
}

var opencode = real{
	name: "opencode",
	home: func(*testenv.Host) map[string]string {
		config, err := json.Marshal(map[string]any{
			"model": "fake/m", "small_model": "fake/m", "permission": map[string]string{"bash": "ask"},
			"provider": map[string]any{"fake": map[string]any{
				"npm": "@ai-sdk/openai-compatible", "models": map[string]any{"m": map[string]string{"name": "m"}, "nosuch-1": map[string]string{"name": "gone"}},
				"options": map[string]string{"baseURL": modelURL + "/v1", "apiKey": "made-up"},
			}},
		})
		Expect(err).NotTo(HaveOccurred())
		return map[string]string{
			"OPENCODE_CONFIG_CONTENT": string(config), "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
			"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1,localhost",
		}
	},
	shell:  func(command string) string { return "[[tool bash " + command + "]]" },
	dialog: "Permission required",
}

var gemini = real{
	name: "gemini",
	home: func(h *testenv.Host) map[string]string {
		write(filepath.Join(made(h, "home/.gemini"), "settings.json"), `{
	// How it is paid for is the user's to say, and that it keeps its conversations.
	"security": {"auth": {"selectedType": "gemini-api-key"}},
	"general": {"enableAutoUpdate": false, "sessionRetention": {"enabled": false}},
	"privacy": {"usageStatisticsEnabled": false}
}`)
		return map[string]string{"GEMINI_API_KEY": "made-up", "GOOGLE_GEMINI_BASE_URL": modelURL}
	},
	shell:  func(command string) string { return "[[tool run_shell_command " + command + "]]" },
	dialog: "Allow execution of",
}

// write writes a file of a test.
func write(path, text string) {
	GinkgoHelper()
	Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
}

// host is a host whose sessions run the harness in a checkout and in a new home.
func (r real) host(ctx context.Context, models ...string) *testenv.Host {
	GinkgoHelper()
	path := binary(ctx, r.name)
	h := env.NewHost(func(h *testenv.Host) api.SessionClassSpec {
		out, err := exec.Command("git", "init", "-q", h.Work).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		spec := api.SessionClassSpec{
			Harness:   api.HarnessSpec{Name: r.name, Binary: path, Args: r.args},
			Models:    models,
			Workspace: api.WorkspacePolicy{Root: h.Work},
		}
		vars := r.home(h)
		vars["HOME"], vars["TMPDIR"] = made(h, "home"), made(h, "tmp")
		for name, value := range vars {
			spec.Harness.Env = append(spec.Harness.Env, api.EnvVar{Name: name, Value: value})
		}
		return spec
	})
	DeferCleanup(reportModel)
	return h
}

// atPrompt waits until the harness takes input and does nothing.
func atPrompt(h *testenv.Host, s *api.StandingSession) {
	GinkgoHelper()
	h.Await(s, api.ConditionAcceptingInput, "True/Idle", slowly)
}

// life is that of a session of one of the other harnesses.
func (r real) life(ctx context.Context) {
	h := r.host(ctx)
	s := h.Standing("life", func(s *api.StandingSession) {
		s.Spec.Prompt = "Keep an eye on the build.\nÄ 漢 👩‍👩‍👧 \"quoted\"."
	})

	By("taking its first message without a dialog, byte for byte")
	boot := h.AwaitBoot(s)
	h.AwaitOutcome(boot, testenv.Submitted, slowly)
	Eventually(taken(boot), slowly).Should(HaveLen(1))
	Expect(taken(boot)()[0].Texts).To(ContainElement(ContainSubstring("Ä 漢 👩‍👩‍👧 \"quoted\".")))
	h.Ready(s)
	atPrompt(h, s)
	id := get(s).Status.ConversationID
	Expect(id).NotTo(BeEmpty())

	By("taking a message of several lines, and a long one")
	for _, text := range []string{"[[say The answer.]]\n\tHow are you?\n/help\n!ls\nexit", strings.Repeat("A line of a long text, äöü.\n", 700)} {
		m := h.Say(s, text)
		h.AwaitOutcome(m, testenv.Submitted, slowly)
		Eventually(taken(m), slowly).Should(HaveLen(1))
	}

	By("taking two messages that came while it was busy")
	slow := h.Say(s, "[[slow 4s]] Think.")
	h.AwaitOutcome(slow, testenv.Submitted, slowly)
	for _, text := range []string{"One that came meanwhile.", "Another that came meanwhile."} {
		m := h.Say(s, text)
		h.AwaitOutcome(m, testenv.Submitted, slowly)
		Eventually(taken(m), slowly).Should(HaveLen(1))
	}

	By("going on with the conversation after it was killed")
	atPrompt(h, s)
	h.KillHarness(s)
	h.Await(s, api.ConditionResumed, "True/ConversationContinued", slowly)
	atPrompt(h, s)
	Expect(get(s).Status.ConversationID).To(Equal(id))
	again := h.Say(s, "Are you back?")
	h.AwaitOutcome(again, testenv.Submitted, slowly)
	Eventually(taken(again), slowly).Should(HaveLen(1))
	Expect(taken(again)()[0].Messages).To(BeNumerically(">", taken(slow)()[0].Messages))
	Expect(taken(boot)()).To(HaveLen(1))

	By("stopping, and going on with the conversation")
	atPrompt(h, s)
	h.Update(s, func() { s.Spec.State = api.SessionStateStopped })
	h.Await(s, api.ConditionReady, "True/Stopped", slowly)
	Expect(h.Pane(s).Dead).To(BeTrue())
	h.Update(s, func() { s.Spec.State = api.SessionStateRunning })
	h.Await(s, api.ConditionResumed, "True/ConversationContinued", slowly)
	atPrompt(h, s)
	Expect(get(s).Status.ConversationID).To(Equal(id))
	after := h.Say(s, "And now?")
	h.AwaitOutcome(after, testenv.Submitted, slowly)
	Eventually(taken(after), slowly).Should(HaveLen(1))
	Expect(taken(after)()[0].Messages).To(BeNumerically(">", taken(again)()[0].Messages))

	By("being deleted")
	h.Delete(s)
	h.AwaitGone(s)
}

// asked has a permission dialog open, refused and answered at the terminal only.
func (r real) asked(ctx context.Context) {
	h := r.host(ctx)
	s := h.Standing("asked")
	h.AwaitOutcome(h.AwaitBoot(s), testenv.Submitted, slowly)
	atPrompt(h, s)
	file := filepath.Join(h.Work, "made")
	ask := h.Say(s, r.shell("touch "+file))
	h.AwaitOutcome(ask, testenv.Submitted, slowly)
	h.Await(s, api.ConditionAcceptingInput, "False/AwaitingInput", slowly)
	held := h.Say(s, "Not into the dialog.")
	h.AwaitOutcome(held, "Held/Held")
	Eventually(func() string { return h.Screen(s.Status.TmuxTarget) }).Should(ContainSubstring(r.dialog))
	Consistently(func(g Gomega) {
		g.Expect(file).NotTo(BeAnExistingFile())
		g.Expect(h.Screen(s.Status.TmuxTarget)).To(And(ContainSubstring(r.dialog), Not(ContainSubstring("Not into"))))
	}, 2*time.Second, 100*time.Millisecond).Should(Succeed())

	By("answering it at the terminal")
	h.Keys(s.Status.TmuxTarget, "Enter")
	Eventually(func() error { _, err := os.Stat(file); return err }, slowly).Should(Succeed())
	h.AwaitOutcome(held, testenv.Submitted, slowly)
	Eventually(taken(held), slowly).Should(HaveLen(1))

	By("refusing the next one at the terminal, of which no hook tells")
	atPrompt(h, s)
	refused := filepath.Join(h.Work, "refused")
	h.AwaitOutcome(h.Say(s, r.shell("touch "+refused)), testenv.Submitted, slowly)
	h.Await(s, api.ConditionAcceptingInput, "False/AwaitingInput", slowly)
	next := h.Say(s, "After the refusal.")
	Eventually(func() string { return h.Screen(s.Status.TmuxTarget) }, slowly).Should(ContainSubstring(r.dialog))
	h.Keys(s.Status.TmuxTarget, "Escape")
	h.AwaitOutcome(next, testenv.Submitted, slowly)
	Eventually(taken(next), slowly).Should(HaveLen(1))
	Expect(refused).NotTo(BeAnExistingFile())
}

var _ = Describe("the other real harnesses", func() {
	for _, r := range []real{codex, opencode, gemini} {
		It(r.name+" lives the whole life of a session, from a home in which it never ran to its deletion", func(ctx SpecContext) {
			r.life(ctx)
		}, SpecTimeout(withInstall))

		It("P51: "+r.name+" has its permission dialog answered by a person only, and takes the held message then", func(ctx SpecContext) {
			r.asked(ctx)
		}, SpecTimeout(withInstall))
	}

	It("C011: cursor is refused with a sentence, and nothing is made for it", func() {
		h := env.NewHost(func(h *testenv.Host) api.SessionClassSpec {
			return api.SessionClassSpec{Harness: api.HarnessSpec{Name: "cursor"}, Workspace: api.WorkspacePolicy{Root: h.Work}}
		})
		s := h.Standing("refused")
		h.Await(s, api.ConditionSessionRunning, "False/HarnessUnsupported")
		Expect(h.Message(s, api.ConditionSessionRunning)).To(ContainSubstring("cursor-agent cannot be hosted"))
		Expect(h.Snapshot().ByUID(string(s.UID))).To(BeEmpty())
		Expect(filepath.Join(h.StateDir, "sessions", string(s.UID))).NotTo(BeADirectory())
	})
})
