package harness_test

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/harness"
)

var _ = Describe("a harness's update of itself", func() {
	DescribeTable("H04, H15: is off in every start and every resume, whatever stands in the environment",
		func(name, conversation, want string) {
			a, err := harness.Get(name)
			Expect(err).NotTo(HaveOccurred())
			for _, resume := range []bool{false, true} {
				cmd, err := a.Command(harness.LaunchOptions{
					Binary: "/bin/" + name, Dir: "/w", ConversationID: conversation, Resume: resume, Trust: true,
					HookCommand: []string{"/shim", "hook"}, FileDir: "/files",
				})
				Expect(err).NotTo(HaveOccurred())
				Expect(slices.ContainsFunc(append(cmd.Env, cmd.Argv...), func(s string) bool { return strings.Contains(s, want) })).To(BeTrue())
			}
		},
		Entry("Claude Code", "claude", "0f7bb9e0-7b53-4a2f-9e57-30f6ac9d3d11", "DISABLE_AUTOUPDATER=1"),
		Entry("Codex", "codex", "0f7bb9e0-7b53-4a2f-9e57-30f6ac9d3d11", "check_for_update_on_startup=false"),
		Entry("Gemini CLI", "gemini", "0f7bb9e0-7b53-4a2f-9e57-30f6ac9d3d11", "npm_@google:registry=off"),
		Entry("opencode", "opencode", "ses_0123456789", "OPENCODE_DISABLE_AUTOUPDATE=true"),
	)
})
