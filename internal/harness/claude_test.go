package harness

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const conversation = "0b8e4a52-8f5e-4c47-9d1f-2a1f3c4d5e6f"

// launchOf are the options of an ordinary launch, changed by f.
func launchOf(f func(*LaunchOptions)) LaunchOptions {
	o := LaunchOptions{
		Binary: "/opt/claude", Dir: "/work", ConversationID: conversation,
		HookCommand: []string{"/opt/loop-shim", "hook", "--journal", "/run/l/x.jsonl", "--socket", "/run/l/s", "--poke", "uid/3"},
	}
	if f != nil {
		f(&o)
	}
	return o
}

// argvOf is the command line without the value of the last --settings, and that
// value.
func argvOf(o LaunchOptions) (argv []string, settings string) {
	GinkgoHelper()
	cmd, err := claude{}.Command(o)
	Expect(err).NotTo(HaveOccurred())
	n := len(cmd.Argv)
	Expect(cmd.Argv[n-2]).To(Equal("--settings"))
	return cmd.Argv[:n-2], cmd.Argv[n-1]
}

var _ = Describe("claude's command line", func() {
	DescribeTable("is built in one order",
		func(change func(*LaunchOptions), want ...string) {
			argv, _ := argvOf(launchOf(change))
			Expect(argv).To(Equal(want))
		},
		Entry("a start", nil, "/opt/claude", "--session-id", conversation),
		Entry("a resume", func(o *LaunchOptions) { o.Resume = true }, "/opt/claude", "--resume", conversation),
		Entry("arguments, then model, then effort", func(o *LaunchOptions) {
			o.Args, o.Model, o.Effort = []string{"--permission-mode", "plan", "--disallowedTools=AskUserQuestion"}, "opus[1m]", "high"
		}, "/opt/claude", "--session-id", conversation, "--permission-mode", "plan", "--disallowedTools=AskUserQuestion", "--model", "opus[1m]", "--effort", "high"),
		Entry("without the tool that asks at the terminal, as one word, so that it takes no other for a tool", func(o *LaunchOptions) {
			o.NoQuestions, o.Model = true, "haiku"
		}, "/opt/claude", "--session-id", conversation, "--model", "haiku", "--disallowedTools=AskUserQuestion"),
		Entry("without that tool at a resume, too", func(o *LaunchOptions) { o.NoQuestions, o.Resume = true, true },
			"/opt/claude", "--resume", conversation, "--disallowedTools=AskUserQuestion"),
		Entry("an operator who says which tools it may not use has the last word", func(o *LaunchOptions) {
			o.NoQuestions, o.Args = true, []string{"--disallowedTools=Bash"}
		}, "/opt/claude", "--session-id", conversation, "--disallowedTools=Bash"),
		Entry("also in the other form of the flag", func(o *LaunchOptions) {
			o.NoQuestions, o.Args = true, []string{"--disallowed-tools", "Bash", "Edit"}
		}, "/opt/claude", "--session-id", conversation, "--disallowed-tools", "Bash", "Edit"),
		Entry("an operator's own model stays where it is", func(o *LaunchOptions) { o.Args = []string{"--model", "haiku"} },
			"/opt/claude", "--session-id", conversation, "--model", "haiku"),
		Entry("a value that looks like a forbidden flag is a value", func(o *LaunchOptions) { o.Args = []string{"--append-system-prompt", "-p", "--add-dir", "a", "b"} },
			"/opt/claude", "--session-id", conversation, "--append-system-prompt", "-p", "--add-dir", "a", "b"),
		Entry("upper case is a UUID as well", func(o *LaunchOptions) { o.ConversationID = strings.ToUpper(conversation) },
			"/opt/claude", "--session-id", strings.ToUpper(conversation)),
	)

	It("does not change the caller's arguments", func() {
		args := make([]string, 2, 16)
		args[0], args[1] = "--model", "haiku"
		argvOf(launchOf(func(o *LaunchOptions) { o.Args = args }))
		Expect(args).To(Equal([]string{"--model", "haiku"}))
	})

	It("switches self-updates off", func() {
		cmd, err := claude{}.Command(launchOf(nil))
		Expect(err).NotTo(HaveOccurred())
		Expect(cmd.Env).To(Equal([]string{"DISABLE_AUTOUPDATER=1"}))
	})

	DescribeTable("refuses what claude would refuse or misread",
		func(change func(*LaunchOptions), says ...string) {
			_, err := claude{}.Command(launchOf(change))
			for _, s := range says {
				Expect(err).To(MatchError(ContainSubstring(s)))
			}
		},
		Entry("C074: an id that is a flag", func(o *LaunchOptions) { o.ConversationID = "--evil" }, `"--evil"`, "^[A-Za-z0-9]"),
		Entry("R09: an id that is a flag, at a resume", func(o *LaunchOptions) { o.ConversationID, o.Resume = "--help", true }, "^[A-Za-z0-9]"),
		Entry("no id", func(o *LaunchOptions) { o.ConversationID = "" }, "is not of the form"),
		Entry("an id that is no UUID", func(o *LaunchOptions) { o.ConversationID = "abc" }, "is not a UUID"),
		Entry("a resume of what is no UUID: it would open a picker", func(o *LaunchOptions) { o.ConversationID, o.Resume = "abc", true }, "is not a UUID"),
		Entry("a UUID in another form", func(o *LaunchOptions) { o.ConversationID = strings.ReplaceAll(conversation, "-", "") }, "is not a UUID"),
		Entry("a line end behind the id", func(o *LaunchOptions) { o.ConversationID = conversation + "\n" }, "is not of the form"),
		Entry("a model that is a flag", func(o *LaunchOptions) { o.Model = "--help" }, `model "--help"`),
		Entry("a model with a blank", func(o *LaunchOptions) { o.Model = "a b" }, `model "a b"`),
		Entry("H20: an effort that claude would ignore", func(o *LaunchOptions) { o.Effort = "ultra" }, `no effort "ultra"`, "low, medium, high, xhigh, max"),
		Entry("an effort that is a flag", func(o *LaunchOptions) { o.Effort = "-x" }, `effort "-x"`),
		Entry("unknown permissions", func(o *LaunchOptions) { o.Permissions = "Maybe" }, "Ask, Deny or Allow"),
		Entry("no hook command", func(o *LaunchOptions) { o.HookCommand = nil }, "no hook command"),
		Entry("no binary", func(o *LaunchOptions) { o.Binary = "" }, "binary is not set"),
		Entry("NUL in an argument", func(o *LaunchOptions) { o.Args = []string{"--name", "a\x00"} }, "NUL byte"),
		Entry("an argument over the kernel's limit", func(o *LaunchOptions) { o.Args = []string{"--name", strings.Repeat("x", 128<<10)} }, "the kernel takes 131071"),
	)

	DescribeTable("refuses arguments that would fight ours, naming them",
		func(says string, args ...string) {
			_, err := claude{}.Command(launchOf(func(o *LaunchOptions) { o.Args = args }))
			Expect(err).To(MatchError(ContainSubstring(says)))
		},
		Entry(nil, "--session-id is not allowed", "--session-id", conversation),
		Entry(nil, "--session-id is not allowed", "--session-id="+conversation),
		Entry(nil, "--resume is not allowed", "--verbose", "--resume"),
		Entry(nil, "--resume is not allowed", "--resume=x"),
		Entry(nil, "-r is not allowed", "-r", "x"),
		Entry(nil, "-rx is not allowed", "-rx"),
		Entry("R05", "--continue is not allowed: the last conversation of a directory can be somebody else's", "--continue"),
		Entry(nil, "-c is not allowed", "-c"),
		Entry(nil, "-cp is not allowed", "-cp"),
		Entry(nil, "--fork-session is not allowed", "--fork-session"),
		Entry(nil, "--from-pr is not allowed", "--from-pr", "1"),
		Entry(nil, "--print is not allowed", "--print"),
		Entry(nil, "-p is not allowed", "-p"),
		Entry(nil, "-p is not allowed", "--model", "opus", "-p"),
		Entry(nil, "--bare is not allowed", "--bare"),
		Entry(nil, "--no-session-persistence is not allowed", "--no-session-persistence"),
		Entry(nil, "-- is not allowed", "--", "hello"),
		Entry(nil, `"hello" stands before any flag`, "hello"),
		Entry(nil, `"" stands before any flag`, ""),
		Entry(nil, "--append-system-prompt has no value", "--append-system-prompt"),
		Entry(nil, "--settings has no value", "--verbose", "--settings"),
	)
})

var _ = Describe("claude's settings", func() {
	It("are exactly these", func() {
		_, got := argvOf(launchOf(nil))
		golden := filepath.Join("testdata", "claude-settings.json")
		if os.Getenv("UPDATE_GOLDEN") != "" {
			Expect(os.WriteFile(golden, []byte(got+"\n"), 0o644)).To(Succeed())
		}
		want, err := os.ReadFile(golden)
		Expect(err).NotTo(HaveOccurred())
		Expect(got + "\n").To(Equal(string(want)))
	})

	It("have our answer to permission dialogs in the hook's arguments", func() {
		for _, p := range []Permissions{PermissionsDeny, PermissionsAllow} {
			_, got := argvOf(launchOf(func(o *LaunchOptions) { o.Permissions = p }))
			Expect(strings.Count(got, `"--permissions","`+string(p)+`"`)).To(Equal(len(claudeEvents)))
		}
		_, got := argvOf(launchOf(func(o *LaunchOptions) { o.Permissions = PermissionsAsk }))
		Expect(got).NotTo(ContainSubstring("--permissions"))
	})

	It("accept the bypass disclaimer only when told so", func() {
		_, got := argvOf(launchOf(func(o *LaunchOptions) { o.Args = []string{"--dangerously-skip-permissions"} }))
		Expect(got).NotTo(ContainSubstring("skipDangerous"))
		_, got = argvOf(launchOf(func(o *LaunchOptions) { o.AcceptBypass = true }))
		Expect(got).To(ContainSubstring(`"skipDangerousModePermissionPrompt":true`))
	})

	ours := func(got string) map[string]json.RawMessage {
		GinkgoHelper()
		var s map[string]json.RawMessage
		Expect(json.Unmarshal([]byte(got), &s)).To(Succeed())
		return s
	}
	merged := func(given ...string) map[string]json.RawMessage {
		GinkgoHelper()
		argv, got := argvOf(launchOf(func(o *LaunchOptions) { o.Args = given }))
		Expect(argv).NotTo(ContainElement(HavePrefix("--settings")), "one flag only: what two of them mean is not known")
		return ours(got)
	}

	DescribeTable("keep an operator's own",
		func(args ...string) {
			s := merged(args...)
			Expect(s["env"]).To(MatchJSON(`{"X":"<1>"}`))
			var hooks map[string][]json.RawMessage
			Expect(json.Unmarshal(s["hooks"], &hooks)).To(Succeed())
			Expect(hooks["PreToolUse"]).To(HaveLen(1))
			Expect(hooks["Stop"]).To(HaveLen(2))
			Expect(hooks["Stop"][0]).To(MatchJSON(`{"hooks":[{"type":"command","command":"say done"}]}`))
			Expect(hooks["SessionStart"]).To(HaveLen(1))
		},
		Entry("inline", "--settings", operators),
		Entry("inline, joined", "--verbose", "--settings="+operators),
		Entry("among others", "--model", "opus", "--settings", "  "+operators, "--verbose"),
	)

	It("keep an operator's file, relative to the working directory", func() {
		dir := GinkgoT().TempDir()
		Expect(os.WriteFile(filepath.Join(dir, "s.json"), []byte(operators), 0o600)).To(Succeed())
		for _, name := range []string{"s.json", filepath.Join(dir, "s.json")} {
			_, got := argvOf(launchOf(func(o *LaunchOptions) { o.Dir, o.Args = dir, []string{"--settings", name} }))
			Expect(ours(got)["env"]).To(MatchJSON(`{"X":"<1>"}`))
		}
	})

	DescribeTable("refuse an operator's that cannot be merged",
		func(says string, args ...string) {
			_, err := claude{}.Command(launchOf(func(o *LaunchOptions) { o.Dir, o.Args = "testdata", args }))
			Expect(err).To(MatchError(ContainSubstring(says)))
		},
		Entry("no JSON", "is not a JSON object", "--settings", `{"a":`),
		Entry("a missing file", "neither a JSON object nor a readable file", "--settings", "missing.json"),
		Entry("a directory", "no regular file", "--settings", "."),
		Entry("nothing", "no regular file", "--settings="),
		Entry("twice", "given twice", "--settings", "{}", "--settings={}"),
		Entry("hooks of another type", `"hooks" that are not an object`, "--settings", `{"hooks":[]}`),
		Entry("a hook list of another type", `"Stop" that are not a list`, "--settings", `{"hooks":{"Stop":{}}}`),
		Entry("hooks off", "disableAllHooks", "--settings", `{"disableAllHooks":true}`),
	)

	It("refuse a file that is too large for a command line", func() {
		dir := GinkgoT().TempDir()
		Expect(os.WriteFile(filepath.Join(dir, "s.json"), []byte(`{"a":"`+strings.Repeat("x", maxSettingsFile)+`"}`), 0o600)).To(Succeed())
		_, err := claude{}.Command(launchOf(func(o *LaunchOptions) { o.Args = []string{"--settings", filepath.Join(dir, "s.json")} }))
		Expect(err).To(MatchError(ContainSubstring("larger than 65536 bytes")))
	})

	It("take null hooks for none", func() {
		Expect(merged("--settings", `{"hooks":null}`)).To(HaveKey("hooks"))
	})
})

// operators are settings of an operator's own.
const operators = `{"env":{"X":"<1>"},"hooks":{"Stop":[{"hooks":[{"type":"command","command":"say done"}]}],"PreToolUse":[{"matcher":"Bash","hooks":[]}]}}`
