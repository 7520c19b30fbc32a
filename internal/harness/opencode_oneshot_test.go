package harness

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("asking opencode about a model", func() {
	It("leaves no conversation behind and has no tools, with the choice behind the operator's arguments", func() {
		cmd, err := OneShot(opencode{}).OneShot(LaunchOptions{Binary: "/opt/opencode", Args: []string{"--agent", "build"}, Model: "fake/m"})
		Expect(err).NotTo(HaveOccurred())
		Expect(cmd.Argv).To(Equal([]string{"/opt/opencode", "run", "--format", "json", "--print-logs", "--log-level", "ERROR", "--title", "the-loop",
			"--agent", "build", "-m", "fake/m", OneShotPrompt}))
		Expect(cmd.Env).To(ContainElements("OPENCODE_DB=:memory:", `OPENCODE_PERMISSION={"*":"deny"}`))
	})

	DescribeTable("refuses what a launch would refuse", func(words string, o LaunchOptions) {
		if o.Binary == "" && words != "binary" {
			o.Binary = "/opt/opencode"
		}
		_, err := opencode{}.OneShot(o)
		Expect(err).To(MatchError(ContainSubstring(words)))
	},
		Entry("a name that is a flag", "not of the form", LaunchOptions{Model: "--x"}),
		Entry("a model without a provider", "provider/model", LaunchOptions{Model: "m"}),
		Entry("an effort", "no flag for an effort", LaunchOptions{Effort: "high"}),
		Entry("arguments that fight ours", "--session", LaunchOptions{Args: []string{"--session", "ses_1"}}),
		Entry("no binary", "binary", LaunchOptions{}),
	)

	// What 1.18.33 printed.
	const answered = `{"type":"step_start","timestamp":1,"sessionID":"ses_1","part":{"type":"step-start"}}` + "\n" +
		`{"type":"text","timestamp":1,"sessionID":"ses_1","part":{"type":"text","text":"OK"}}` + "\n" +
		`{"type":"step_finish","timestamp":1,"sessionID":"ses_1","part":{"type":"step-finish","reason":"stop","tokens":{"total":15}}}` + "\n"
	const hidden = `{"type":"error","timestamp":1,"sessionID":"ses_1","error":{"name":"UnknownError","data":{"message":"Unexpected server error. Check server logs for details.","ref":"err_75c36fba"}}}` + "\n"
	const logged = `timestamp=2026-11-30T18:54:30.093Z level=ERROR run=de0ee659 message=failed ref=err_75c36fba error="ProviderModelNotFoundError: Model not found: fake/nosuch-1. Did you mean: nosuch-2?" cause="x"` + "\n"
	fails := func(status, message string) string {
		return `{"type":"error","timestamp":1,"sessionID":"ses_1","error":{"name":"APIError","data":{"message":"` + message + `","statusCode":` + status + `,"isRetryable":false}}}` + "\n"
	}
	model := LaunchOptions{Model: "fake/nosuch-1"}

	DescribeTable("judges by its own words", func(o LaunchOptions, exit int, stdout, stderr string, want Verdict, words string) {
		got, message := opencode{}.Verdict(o, Answer{Exit: exit, Stdout: []byte(stdout), Stderr: []byte(stderr)})
		Expect(got).To(Equal(want))
		Expect(message).To(ContainSubstring(words))
	},
		Entry("an answer", model, 0, answered, "", VerdictAccepted, ""),
		Entry("a model that no provider has", model, 1, hidden, logged, VerdictRefused, "Model not found: fake/nosuch-1"),
		Entry("the same words about another model", LaunchOptions{Model: "fake/nosuch"}, 1, hidden, logged, VerdictUnknown, "Unexpected server error"),
		Entry("a model that the service does not know", model, 1, fails("404", "The model `nosuch-1` does not exist or you do not have access to it."), "", VerdictRefused, "does not exist"),
		Entry("the same from Anthropic", model, 1, fails("404", "model: nosuch-1"), "", VerdictRefused, "model: nosuch-1"),
		Entry("the same from Google", model, 1, fails("404", "models/nosuch-1 is not found for API version v1beta"), "", VerdictRefused, "is not found"),
		Entry("the service's words about another model", LaunchOptions{Model: "fake/nosuch"}, 1, fails("404", "model: nosuch-1"), "", VerdictUnknown, ""),
		Entry("a wrong address", model, 1, fails("404", "Not Found: not found"), "", VerdictUnknown, "Not Found"),
		Entry("no login", model, 1, fails("401", "Incorrect API key provided: made-up."), "", VerdictUnknown, "Incorrect API key"),
		Entry("another error of its own", model, 1, hidden, "", VerdictUnknown, "Unexpected server error"),
		Entry("an answer that was cut off", model, 0, answered[:90], "", VerdictUnknown, "exit status 0"),
		Entry("arguments that it does not take", model, 1, "", "opencode run [message..]\n\nrun opencode with a message\n", VerdictUnknown, "exit status 1 without an answer: opencode run"),
	)
})
