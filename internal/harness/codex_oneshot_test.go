package harness

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("asking codex about a model or an effort", func() {
	It("leaves no conversation behind and runs nothing, with the choice behind the operator's arguments", func() {
		cmd, err := OneShot(codex{}).OneShot(LaunchOptions{Binary: "/opt/codex", Args: []string{"--profile", "work"}, Model: "gpt-5.1-codex", Effort: "high"})
		Expect(err).NotTo(HaveOccurred())
		Expect(cmd.Argv).To(Equal([]string{"/opt/codex", "exec", "--json", "--ephemeral", "--skip-git-repo-check", "--profile", "work",
			"-m", "gpt-5.1-codex", "-c", `model_reasoning_effort="high"`, "-c", "check_for_update_on_startup=false",
			"-c", `sandbox_mode="read-only"`, "-c", `approval_policy="never"`, OneShotPrompt}))
	})

	DescribeTable("refuses what a launch would refuse, and what could run something", func(words string, o LaunchOptions) {
		if o.Binary == "" && words != "binary" {
			o.Binary = "/opt/codex"
		}
		_, err := codex{}.OneShot(o)
		Expect(err).To(MatchError(ContainSubstring(words)))
	},
		Entry("a name that is a flag", "not of the form", LaunchOptions{Model: "--x"}),
		Entry("arguments that fight ours", "--cd", LaunchOptions{Args: []string{"--cd", "/"}}),
		Entry("hooks", "hooks", LaunchOptions{Args: []string{"-c", "hooks.Stop=[]"}}),
		Entry("a call without a sandbox", "--dangerously-bypass-approvals-and-sandbox", LaunchOptions{Args: []string{"--dangerously-bypass-approvals-and-sandbox"}}),
		Entry("another sandbox", "--sandbox", LaunchOptions{Args: []string{"--sandbox=danger-full-access"}}),
		Entry("no binary", "binary", LaunchOptions{}),
	)

	// What 0.171.0 printed.
	const begun = `{"type":"thread.started","thread_id":"01a2"}` + "\n" +
		"{\"type\":\"item.completed\",\"item\":{\"id\":\"item_0\",\"type\":\"error\",\"message\":\"Model metadata for `nosuch-1` not found. Defaulting to fallback metadata\"}}\n" +
		`{"type":"turn.started"}` + "\n"
	fails := func(message string) string {
		return begun + `{"type":"error","message":"` + message + `"}` + "\n" + `{"type":"turn.failed","error":{"message":"` + message + `"}}` + "\n"
	}
	const answered = begun + `{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"OK"}}` + "\n" + `{"type":"turn.completed","usage":{}}` + "\n"
	model, effort := LaunchOptions{Model: "nosuch-1"}, LaunchOptions{Effort: "ultra"}

	DescribeTable("judges by its own words", func(o LaunchOptions, exit int, stdout string, want Verdict, words string) {
		got, message := codex{}.Verdict(o, Answer{Exit: exit, Stdout: []byte(stdout), Stderr: []byte("Reading additional input from stdin...\n")})
		Expect(got).To(Equal(want))
		Expect(message).To(ContainSubstring(words))
	},
		Entry("an answer", model, 0, answered, VerdictAccepted, ""),
		Entry("an answer about an effort", effort, 0, answered, VerdictAccepted, ""),
		Entry("a model that is not known", model, 1, fails("The model `nosuch-1` does not exist or you do not have access to it."), VerdictRefused, "does not exist"),
		Entry("a model that the account does not have", model, 1, fails(`{\"detail\": \"The 'nosuch-1' model is not supported when using Codex with a ChatGPT account.\"}`), VerdictRefused, "ChatGPT account"),
		Entry("the same words about another model", LaunchOptions{Model: "nosuch"}, 1, fails("The model `nosuch-1` does not exist or you do not have access to it."), VerdictUnknown, ""),
		Entry("the same words when an effort was asked about", effort, 1, fails("The model `nosuch-1` does not exist or you do not have access to it."), VerdictUnknown, ""),
		Entry("an effort that the model does not take", effort, 1, fails("Unsupported value: 'ultra' is not supported with the 'm' model."), VerdictRefused, "'ultra'"),
		Entry("a wrong address", model, 1, fails("unexpected status 404 Not Found: the model 'nosuch-1' does not exist, url: http://127.0.0.1/v1/responses"), VerdictUnknown, "404"),
		Entry("no login", model, 1, fails("unexpected status 401 Unauthorized: Incorrect API key provided, url: x"), VerdictUnknown, "401"),
		Entry("overload", model, 1, fails("unexpected status 503 Service Unavailable: overloaded, url: x"), VerdictUnknown, "503"),
		Entry("an answer that was cut off", model, 0, begun, VerdictUnknown, "exit status 0 without an answer: Reading"),
		Entry("an end in the middle of a turn", model, 1, answered, VerdictUnknown, "exit status 1"),
		Entry("another program", model, 0, "OK\n", VerdictUnknown, "exit status 0"),
	)
})
