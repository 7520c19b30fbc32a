package harness

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("asking gemini about a model", func() {
	DescribeTable("changes nothing, with the choice behind the operator's arguments", func(args, want []string) {
		cmd, err := OneShot(gemini{}).OneShot(LaunchOptions{Binary: "/opt/gemini", Dir: "/probe", Args: args, Model: "gemini-x"})
		Expect(err).NotTo(HaveOccurred())
		Expect(cmd.Argv).To(Equal(append([]string{"/opt/gemini", "-p", OneShotPrompt, "--output-format", "json"}, want...)))
		Expect(cmd.Env).To(ContainElements("GEMINI_CLI_TRUST_WORKSPACE=true", "TMPDIR=/probe"))
	},
		Entry("without arguments", nil, []string{"--approval-mode", "plan", "--model", "gemini-x"}),
		Entry("with some", []string{"--include-directories", "/d"}, []string{"--include-directories", "/d", "--approval-mode", "plan", "--model", "gemini-x"}),
		Entry("with a mode, which it takes once", []string{"--approval-mode=default"}, []string{"--approval-mode=default", "--model", "gemini-x"}),
	)

	DescribeTable("refuses what a launch would refuse, and what could run something", func(words string, o LaunchOptions) {
		if o.Binary == "" && words != "binary" {
			o.Binary = "/opt/gemini"
		}
		_, err := gemini{}.OneShot(o)
		Expect(err).To(MatchError(ContainSubstring(words)))
	},
		Entry("a name that is a flag", "not of the form", LaunchOptions{Model: "--x"}),
		Entry("an effort", "no flag for an effort", LaunchOptions{Effort: "high"}),
		Entry("arguments that fight ours", "--resume", LaunchOptions{Args: []string{"--resume", "latest"}}),
		Entry("a call that may do everything", "--yolo", LaunchOptions{Args: []string{"--yolo"}}),
		Entry("the same as a mode", "--approval-mode", LaunchOptions{Args: []string{"--approval-mode", "yolo"}}),
		Entry("the same in one word", "--approval-mode", LaunchOptions{Args: []string{"--approval-mode=auto_edit"}}),
		Entry("tools", "--allowed-tools", LaunchOptions{Args: []string{"--allowed-tools", "run_shell_command"}}),
		Entry("no binary", "binary", LaunchOptions{}),
	)

	// What 0.61.0 printed.
	const warned = "Warning: 256-color support not detected.\nRipgrep is not available. Falling back to GrepTool.\n"
	const begun = warned + "Error when talking to Gemini API Full report available at: /probe/gemini-client-error-Turn.json "
	const stack = "\n    at classifyGoogleError (file:///opt/gemini/bundle/chunk.js:307292:12)\n"
	const missing = "ModelNotFoundError: models/nosuch-1 is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods."
	model := LaunchOptions{Model: "nosuch-1"}

	DescribeTable("judges by its own words", func(o LaunchOptions, exit int, stdout, stderr string, want Verdict, words string) {
		got, message := gemini{}.Verdict(o, Answer{Exit: exit, Stdout: []byte(stdout), Stderr: []byte(stderr)})
		Expect(got).To(Equal(want))
		Expect(message).To(ContainSubstring(words))
	},
		Entry("an answer", model, 0, `{"session_id": "19a1133c", "response": "OK", "stats": {}}`, warned, VerdictAccepted, ""),
		Entry("a model that is not known", model, 1, "", begun+missing+stack, VerdictRefused, "models/nosuch-1 is not found"),
		Entry("the same words about another model", LaunchOptions{Model: "nosuch"}, 1, "", begun+missing+stack, VerdictUnknown, ""),
		Entry("a wrong address", model, 1, "", begun+"ModelNotFoundError: not found"+stack, VerdictUnknown, "ModelNotFoundError: not found"),
		Entry("a key that is refused", model, 144, "", begun+`_ApiError: {"error":{"code":400,"message":"API key not valid. Please pass a valid API key."}}`+stack, VerdictUnknown, "exit status 144"),
		Entry("arguments that it does not take", model, 1, "", "An unexpected critical error occurred:Error: Invalid approval mode: plan,plan.\n    at loadCliConfig (x)\n", VerdictUnknown, "Invalid approval mode"),
		Entry("an answer that was cut off", model, 0, `{"session_id": "19a1133c", "resp`, warned, VerdictUnknown, "exit status 0 without an answer: Ripgrep"),
		Entry("another program", model, 0, "OK\n", "", VerdictUnknown, "exit status 0"),
	)
})
