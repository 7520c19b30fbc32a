package harness

import (
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/harness/hook"
)

var _ = Describe("opencode's command line", func() {
	options := func(change func(*LaunchOptions)) LaunchOptions {
		return launchOf(func(o *LaunchOptions) {
			o.ConversationID, o.FileDir = "", "/state/a b"
			if change != nil {
				change(o)
			}
		})
	}

	DescribeTable("is built in one order",
		func(change func(*LaunchOptions), want ...string) {
			cmd, err := opencode{}.Command(options(change))
			Expect(err).NotTo(HaveOccurred())
			Expect(cmd.Argv).To(Equal(append([]string{"/opt/claude"}, want...)))
		},
		Entry("a start", nil),
		Entry("a resume", func(o *LaunchOptions) { o.Resume, o.ConversationID = true, "ses_dd54A" }, "-s", "ses_dd54A"),
		Entry("arguments, then model", func(o *LaunchOptions) { o.Args, o.Model = []string{"--agent", "plan"}, "p/m" }, "--agent", "plan", "-m", "p/m"),
	)

	It("brings the plugin along by which it tells what it does", func() {
		cmd, err := opencode{}.Command(options(func(o *LaunchOptions) { o.Permissions = PermissionsAllow }))
		Expect(err).NotTo(HaveOccurred())
		Expect(cmd.Env).To(ContainElement("OPENCODE_TUI_CONFIG=/state/a b/opencode-tui.json"))
		Expect(cmd.Files).To(HaveLen(2))
		Expect(cmd.Files[0].Path).To(Equal("/state/a b/opencode-hook.js"))
		Expect(string(cmd.Files[0].Data)).To(ContainSubstring("export default"))
		var tui struct{ Plugin [][]any }
		Expect(json.Unmarshal(cmd.Files[1].Data, &tui)).To(Succeed())
		Expect(tui.Plugin).To(HaveLen(1))
		Expect(tui.Plugin[0][0]).To(Equal("file:///state/a%20b/opencode-hook.js"))
		Expect(tui.Plugin[0][1]).To(HaveKeyWithValue("hook", And(ContainElement("--journal"), ContainElements("--permissions", "Allow"))))
	})

	DescribeTable("refuses what would fight it",
		func(change func(*LaunchOptions), says string) {
			_, err := opencode{}.Command(options(change))
			Expect(err).To(MatchError(ContainSubstring(says)))
		},
		Entry("R09: a resume of something else", func(o *LaunchOptions) { o.Resume, o.ConversationID = true, "--help" }, "is not of the form ^ses_"),
		Entry("an effort", func(o *LaunchOptions) { o.Effort = "high" }, "no flag for an effort"),
		Entry("a model without its provider", func(o *LaunchOptions) { o.Model = "m" }, "provider/model"),
		Entry("a project or a command", func(o *LaunchOptions) { o.Args = []string{"serve"} }, "stands before any flag"),
		Entry("no plugins", func(o *LaunchOptions) { o.Args = []string{"--pure"} }, "plugin"),
		Entry("a conversation", func(o *LaunchOptions) { o.Args = []string{"--session=ses_x"} }, "chosen by the-loop"),
		Entry("no directory", func(o *LaunchOptions) { o.FileDir = "" }, "no directory"),
		Entry("no hook command", func(o *LaunchOptions) { o.HookCommand = nil }, "no hook command"),
	)
})

var _ = Describe("opencode's state", func() {
	observe := func(notes ...hook.Note) (s State) {
		for i, n := range notes {
			n.Time = at(i + 1)
			s = opencode{}.Observe(s, n)
		}
		return s
	}
	note := func(event string) hook.Note { return hook.Note{Event: event, ConversationID: "ses_1"} }

	It("is ready before it has a conversation, and has one with its first prompt", func() {
		s := observe(hook.Note{Event: "SessionStart", Source: "startup"})
		Expect(s.Ready).To(BeTrue())
		Expect(s.ConversationID).To(BeEmpty())
		s = observe(hook.Note{Event: "SessionStart", Source: "startup"}, note("UserPromptSubmit"), start("switch", "ses_1"))
		Expect(s.ConversationID).To(Equal("ses_1"))
		Expect(s.Activity).To(Equal(ActivityBusy))
		Expect(s.Taken).To(HaveLen(1))
	})

	It("is resumed when it begins with a conversation", func() {
		s := observe(start("resume", "ses_1"))
		Expect(s.Resumed).To(BeTrue())
		Expect(s.ConversationID).To(Equal("ses_1"))
	})

	DescribeTable("its activity after these notes",
		func(want Activity, notes ...hook.Note) { Expect(observe(notes...).Activity).To(Equal(want)) },
		Entry("a turn", ActivityBusy, note("Busy")),
		Entry("its end", ActivityIdle, note("Busy"), note("Stop")),
		Entry("a permission", ActivityAwaitingInput, note("Busy"), permission("bash")),
		Entry("one that was answered at the terminal", ActivityBusy, note("Busy"), permission("bash"), note("Busy")),
		Entry("a dialog", ActivityAwaitingInput, note("Stop"), note("Dialog")),
		Entry("a dialog that was closed", ActivityIdle, note("Dialog"), note("Stop")),
		Entry("an unknown note", ActivityIdle, note("Stop"), note("Dream")),
		Entry("its end as a process", ActivityUnknown, note("Stop"), ended("other")),
	)
})
