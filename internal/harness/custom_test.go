package harness

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/harness/hook"
)

var _ = Describe("the custom adapter", func() {
	template := CustomCommand{
		StartArgs:  []string{"start", "--id={{conversationID}}", "--model={{model}}", "{{effort}}", "{{promptFile}}", "in {{dir}}, {{conversationID}}"},
		ResumeArgs: []string{"resume", "{{conversationID}}"},
	}
	options := func(change func(*LaunchOptions)) LaunchOptions {
		o := LaunchOptions{Binary: "/bin/agent", Dir: "/work", ConversationID: "conv-1", Custom: template}
		if change != nil {
			change(&o)
		}
		return o
	}

	DescribeTable("fills its templates in",
		func(change func(*LaunchOptions), want ...string) {
			cmd, err := custom{}.Command(options(change))
			Expect(err).NotTo(HaveOccurred())
			Expect(cmd.Argv).To(Equal(want))
			Expect(cmd.Env).To(BeEmpty())
		},
		Entry("empty lone placeholders are left out, others become empty", nil,
			"/bin/agent", "start", "--id=conv-1", "--model=", "in /work, conv-1"),
		Entry("all of them", func(o *LaunchOptions) { o.Model, o.Effort, o.PromptFile = "m", "high", "/p" },
			"/bin/agent", "start", "--id=conv-1", "--model=m", "high", "/p", "in /work, conv-1"),
		Entry("arguments follow, as they are", func(o *LaunchOptions) { o.Args = []string{"{{model}}", "--x"} },
			"/bin/agent", "start", "--id=conv-1", "--model=", "in /work, conv-1", "{{model}}", "--x"),
		Entry("a resume", func(o *LaunchOptions) { o.Resume = true }, "/bin/agent", "resume", "conv-1"),
		Entry("a value is not a template", func(o *LaunchOptions) { o.Dir = "/{{model}}" },
			"/bin/agent", "start", "--id=conv-1", "--model=", "in /{{model}}, conv-1"),
		Entry("an empty element stays", func(o *LaunchOptions) { o.Custom.StartArgs = []string{"", "x"} }, "/bin/agent", "", "x"),
		Entry("no template at all", func(o *LaunchOptions) { o.Custom.StartArgs = nil }, "/bin/agent"),
	)

	DescribeTable("refuses what would be dropped or misread",
		func(change func(*LaunchOptions), says string) {
			_, err := custom{}.Command(options(change))
			Expect(err).To(MatchError(ContainSubstring(says)))
		},
		Entry("an unknown placeholder", func(o *LaunchOptions) { o.Custom.StartArgs = []string{"a", "{{colour}}"} }, "startArgs[1]: unknown placeholder {{colour}}: known are"),
		Entry("an id that is a flag", func(o *LaunchOptions) { o.ConversationID = "-x" }, "is not of the form"),
		Entry("a model that is a flag", func(o *LaunchOptions) { o.Model = "-x" }, "is not of the form"),
		Entry("a model without a place", func(o *LaunchOptions) { o.Resume, o.Model = true, "m" }, "a model is given, but resumeArgs have no {{model}}"),
		Entry("an effort without a place", func(o *LaunchOptions) { o.Custom.StartArgs, o.Effort = nil, "high" }, "an effort is given"),
		Entry("a boot prompt without a place", func(o *LaunchOptions) { o.Custom.StartArgs, o.PromptFile = nil, "/p" }, "a boot prompt is given, but startArgs have no {{promptFile}}"),
		Entry("a resume without a template", func(o *LaunchOptions) { o.Resume, o.Custom.ResumeArgs = true, nil }, "has no resumeArgs"),
		Entry("R05: a resume of the last conversation", func(o *LaunchOptions) { o.Resume, o.Custom.ResumeArgs = true, []string{"--continue"} }, "must name its conversation"),
		Entry("NUL", func(o *LaunchOptions) { o.Args = []string{"\x00"} }, "NUL byte"),
		Entry("no binary", func(o *LaunchOptions) { o.Binary = "" }, "binary is not set"),
	)

	It("has no evidence and learns nothing from hooks", func() {
		Expect(custom{}.Traits().Evidence).To(BeFalse())
		s := State{Ready: true, Activity: ActivityBusy}
		Expect(custom{}.Observe(s, hook.Note{Event: "SessionEnd"})).To(Equal(s))
	})
})

var _ = Describe("the registry", func() {
	It("knows every adapter by its name, once", func() {
		seen := map[string]bool{}
		for _, name := range Names() {
			a, err := Get(name)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Name()).To(Equal(name))
			Expect(seen[name]).To(BeFalse())
			seen[name] = true
			t := a.Traits()
			if t.Refusal != "" {
				continue
			}
			Expect(t.ReadyWithin).To(BeNumerically(">=", time.Second))
			Expect(t.TakenWithin).To(BeNumerically(">=", time.Second))
		}
		Expect(Names()).To(ContainElements("claude", "custom"))
	})

	It("names the known ones to who asks for another", func() {
		_, err := Get("claud")
		Expect(err).To(MatchError(`unknown harness "claud": known are claude, codex, opencode, gemini, cursor, custom`))
	})
})

var _ = Describe("conversation ids", func() {
	It("are minted valid and different", func() {
		a, b := NewConversationID(), NewConversationID()
		Expect(a).NotTo(Equal(b))
		Expect(ValidConversationID(a)).To(BeTrue())
		Expect(checkUUID(a)).To(Succeed())
	})

	DescribeTable("are valid when they can be taken for nothing else",
		func(id string, valid bool) { Expect(ValidConversationID(id)).To(Equal(valid)) },
		Entry(nil, "ses_1.a-B", true),
		Entry(nil, "", false),
		Entry(nil, "-a", false),
		Entry(nil, ".a", false),
		Entry(nil, "_a", false),
		Entry(nil, "a/b", false),
		Entry(nil, "a b", false),
		Entry(nil, "a\n", false),
		Entry(nil, "é", false),
	)
})
