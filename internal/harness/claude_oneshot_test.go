package harness

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("asking claude about a model or an effort", func() {
	It("puts the question before the operator's arguments and the choice behind them", func() {
		cmd, err := OneShot(claude{}).OneShot(launchOf(func(o *LaunchOptions) {
			o.Args, o.Model, o.Effort = []string{"--permission-mode", "plan"}, "opus[1m]", "high"
		}))
		Expect(err).NotTo(HaveOccurred())
		Expect(cmd.Argv).To(Equal([]string{"/opt/claude", "-p", OneShotPrompt, "--output-format", "json", "--tools", "", "--no-session-persistence",
			"--permission-mode", "plan", "--model", "opus[1m]", "--effort", "high"}))
		Expect(cmd.Files).To(BeEmpty())
	})

	DescribeTable("refuses what a launch would refuse", func(change func(*LaunchOptions), words string) {
		_, err := claude{}.OneShot(launchOf(change))
		Expect(err).To(MatchError(ContainSubstring(words)))
	},
		Entry("a name that is a flag", func(o *LaunchOptions) { o.Model = "--x" }, "not of the form"),
		Entry("an effort that it ignores", func(o *LaunchOptions) { o.Effort = "ultra" }, "low, medium, high, xhigh, max"),
		Entry("arguments that fight ours", func(o *LaunchOptions) { o.Args = []string{"--resume", "x"} }, "--resume"),
		Entry("no binary", func(o *LaunchOptions) { o.Binary = "" }, "binary"),
	)

	// What 2.1.332 printed, less what is not looked at.
	const refused = `{"type":"result","subtype":"success","is_error":true,"api_error_status":404,"api_error_type":"not_found_error","result":"There's an issue with the selected model (nosuch-1). It may not exist or you may not have access to it. Run --model to pick a different model."}`
	model := LaunchOptions{Model: "nosuch-1"}
	effort := LaunchOptions{Effort: "high"}
	DescribeTable("judges by its own words", func(o LaunchOptions, exit int, stdout, stderr string, want Verdict, words string) {
		got, message := claude{}.Verdict(o, Answer{Exit: exit, Stdout: []byte(stdout), Stderr: []byte(stderr)})
		Expect(got).To(Equal(want))
		Expect(message).To(ContainSubstring(words))
	},
		Entry("an answer", model, 0, `{"type":"result","is_error":false,"result":"OK"}`, `[claude-code:unrecognized_model] {"model":"nosuch-1"}`, VerdictAccepted, ""),
		Entry("an answer about an effort", effort, 0, `{"type":"result","is_error":false,"result":"I cannot do that"}`, "", VerdictAccepted, ""),
		Entry("a model that is not known", model, 1, refused, "", VerdictRefused, "selected model (nosuch-1)"),
		Entry("the same words about the harness's own model", LaunchOptions{Model: "nosuch"}, 1, refused, "", VerdictUnknown, ""),
		Entry("the same words when an effort was asked about", effort, 1, refused, "", VerdictUnknown, ""),
		Entry("the same words for any other 404: a wrong address", model, 1, `{"type":"result","is_error":true,"api_error_status":404,"result":"There's an issue with the selected model (nosuch-1)."}`, "", VerdictUnknown, ""),
		Entry("an effort that is not known", effort, 0, `{"type":"result","is_error":false,"result":"OK"}`, "Warning: Unknown --effort value 'high' — ignoring it and using the default effort. Valid values: low.\nmore", VerdictRefused, "Unknown --effort value 'high'"),
		Entry("an effort that the model does not take", effort, 1, `{"type":"result","is_error":true,"api_error_status":400,"result":"API Error: 400 This model does not support the effort parameter."}`, "", VerdictRefused, "effort parameter"),
		Entry("a bad request for another reason", effort, 1, `{"type":"result","is_error":true,"api_error_status":400,"result":"API Error: 400 no credit"}`, "", VerdictUnknown, "no credit"),
		Entry("no login", model, 1, `{"type":"result","is_error":true,"api_error_status":403,"result":"Failed to authenticate. API Error: 403 no access"}`, "", VerdictUnknown, "403"),
		Entry("overload", model, 1, `{"type":"result","is_error":true,"api_error_status":529,"result":"API Error: 529"}`, "", VerdictUnknown, "529"),
		Entry("an older version without the flags", model, 1, "", "error: unknown option '--tools'\n", VerdictUnknown, "exit status 1 without an answer: error: unknown option '--tools'"),
		Entry("an answer that was cut off", model, 0, `{"type":"result","is_err`, "", VerdictUnknown, "exit status 0"),
		Entry("another program", model, 0, `{"ok":true}`, "", VerdictUnknown, "exit status 0"),
		Entry("an error with exit status 0", model, 0, `{"type":"result","is_error":true,"result":"x"}`, "", VerdictUnknown, "x"),
	)
})
