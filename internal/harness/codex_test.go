package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/harness/hook"
)

// codexArgv is the command line without the hooks.
func codexArgv(o LaunchOptions) (argv, hooks []string) {
	GinkgoHelper()
	cmd, err := codex{}.Command(o)
	Expect(err).NotTo(HaveOccurred())
	n := len(cmd.Argv) - 2*len(codexHooks) - 2
	return cmd.Argv[:n], cmd.Argv[n:]
}

var _ = Describe("codex's command line", func() {
	update := []string{"--no-daemon", "-c", "check_for_update_on_startup=false"}

	DescribeTable("is built in one order",
		func(change func(*LaunchOptions), want []string) {
			argv, _ := codexArgv(launchOf(change))
			Expect(argv).To(Equal(append([]string{"/opt/claude"}, want...)))
		},
		Entry("a start", func(o *LaunchOptions) { o.ConversationID = "" }, update),
		Entry("a resume", func(o *LaunchOptions) { o.Resume = true }, append([]string{"resume", conversation}, update...)),
		Entry("arguments, then model, then effort", func(o *LaunchOptions) {
			o.Args, o.Model, o.Effort = []string{"-s", "read-only", "-c", "tui.notifications=false"}, "gpt-x", "high"
		}, append([]string{"-s", "read-only", "-c", "tui.notifications=false", "-m", "gpt-x", "-c", `model_reasoning_effort="high"`}, update...)),
		Entry("trust, for this directory", func(o *LaunchOptions) { o.Trust, o.Dir = true, `/w/ä "q" \` },
			append(append([]string{}, update...), "-c", `projects={"/w/ä \"q\" \\"={trust_level="trusted"}}`)),
	)

	It("sets the hooks, and the trust in them alone", func() {
		_, hooks := codexArgv(launchOf(func(o *LaunchOptions) {
			o.HookCommand = []string{"/tmp/hx/loop-shim", "hook", "--journal", "/tmp/hx/c4.jsonl", "--permissions", "Ask"}
		}))
		const command = "/tmp/hx/loop-shim hook --journal /tmp/hx/c4.jsonl --permissions Ask"
		Expect(hooks).To(ContainElement(fmt.Sprintf(`hooks.Stop=[{hooks=[{type="command",command=%q,timeout=10}]}]`, command)))
		Expect(hooks).To(ContainElement(HavePrefix(`hooks.PreToolUse=[{matcher="request_user_input",hooks=[`)))
		// What Codex 0.171.0 itself wrote into its config when a person trusted this hook.
		Expect(hooks[len(hooks)-1]).To(And(HavePrefix("hooks.state={"),
			ContainSubstring(`"/<session-flags>/config.toml:stop:0:0"={trusted_hash="sha256:e5055ede0652df55562b22827a4401f5cef4221fb33b04a949b5100369631b72"}`),
			ContainSubstring(`"/<session-flags>/config.toml:session_start:0:0"={trusted_hash="sha256:29622a25b1d2b34d04077b5aee1f643cdf0e8b59d1f3bb4e73c0b5d4d2f9bcd0"}`)))
		Expect(hooks).NotTo(ContainElement(ContainSubstring("bypass")))
	})

	It("gives the hook's words to the shell as they are, and the answer to permissions", func() {
		_, hooks := codexArgv(launchOf(func(o *LaunchOptions) {
			o.HookCommand, o.Permissions = []string{"/a b/shim", "it's"}, PermissionsDeny
		}))
		Expect(hooks[1]).To(ContainSubstring(`command="'/a b/shim' 'it'\\''s' --permissions Deny"`))
	})

	DescribeTable("refuses what would fight it",
		func(change func(*LaunchOptions), says string) {
			_, err := codex{}.Command(launchOf(change))
			Expect(err).To(MatchError(ContainSubstring(says)))
		},
		Entry("R09: a resume without a UUID", func(o *LaunchOptions) { o.Resume, o.ConversationID = true, "--last" }, "is not a UUID"),
		Entry("a subcommand", func(o *LaunchOptions) { o.Args = []string{"exec"} }, "stands before any flag"),
		Entry("another directory", func(o *LaunchOptions) { o.Args = []string{"--cd=/x"} }, "working directory"),
		Entry("the same in short", func(o *LaunchOptions) { o.Args = []string{"-C/x"} }, "working directory"),
		Entry("other hooks", func(o *LaunchOptions) { o.Args = []string{"-c", "hooks.Stop=[]"} }, "hooks tell"),
		Entry("no hooks", func(o *LaunchOptions) { o.Args = []string{"--config=features.hooks=false"} }, "hooks tell"),
		Entry("other hooks, attached to the flag", func(o *LaunchOptions) { o.Args = []string{"-chooks.Stop=[]"} }, "hooks tell"),
		Entry("no hooks in another way", func(o *LaunchOptions) { o.Args = []string{"--disable", "hooks"} }, "hooks tell"),
		Entry("a flag without its value", func(o *LaunchOptions) { o.Args = []string{"-c"} }, "has no value"),
		Entry("a prompt", func(o *LaunchOptions) { o.Args = []string{"--search", "--", "hi"} }, "typed as a prompt"),
		Entry("no hook command", func(o *LaunchOptions) { o.HookCommand = nil }, "no hook command"),
		Entry("unknown permissions", func(o *LaunchOptions) { o.Permissions = "Maybe" }, `permissions are "Maybe"`),
		Entry("a model that is a flag", func(o *LaunchOptions) { o.Model = "--x" }, "is not of the form"),
	)
})

var _ = Describe("codex's state", func() {
	observe := func(notes ...hook.Note) (s State) {
		for i, n := range notes {
			n.Time = at(i + 1)
			s = codex{}.Observe(s, n)
		}
		return s
	}

	It("follows the hooks, which begin with the first prompt", func() {
		s := observe(start("resume", "c2"), prompt("a"))
		Expect(s.Ready).To(BeTrue())
		Expect(s.Resumed).To(BeTrue())
		Expect(s.ConversationID).To(Equal("c1"), "that of the newest note")
	})

	DescribeTable("its activity after these hooks",
		func(want Activity, notes ...hook.Note) { Expect(observe(notes...).Activity).To(Equal(want)) },
		Entry("a turn", ActivityBusy, start("startup", "c1"), prompt("a")),
		Entry("its end", ActivityIdle, start("startup", "c1"), prompt("a"), stop),
		Entry("a permission", ActivityAwaitingInput, prompt("a"), permission("Bash")),
		Entry("a permission that we answered", ActivityBusy, prompt("a"), hook.Note{Event: "PermissionRequest", Answered: "Deny"}),
		Entry("a tool that was allowed", ActivityBusy, prompt("a"), permission("Bash"), used("Bash")),
		Entry("a question", ActivityAwaitingInput, prompt("a"), hook.Note{Event: "PreToolUse", Tool: "request_user_input"}),
		Entry("another tool", ActivityBusy, prompt("a"), hook.Note{Event: "PreToolUse", Tool: "Bash"}),
	)

	Describe("as its process shows it", func() {
		var dir string
		hold := func(id string) {
			GinkgoHelper()
			locks := filepath.Join(dir, "thread-writer-locks")
			Expect(os.MkdirAll(locks, 0o700)).To(Succeed())
			f, err := os.Create(filepath.Join(locks, id+".lock"))
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(f.Close)
		}
		BeforeEach(func() { dir = GinkgoT().TempDir() })
		const older, newer = "01a22ab6-4363-7280-a9d9-6e66c261deb1", "01a22ab7-6dc8-7760-b78d-f16883468c4d"

		It("is ready, and has a conversation, once it holds that one's lock", func() {
			Expect(codex{}.Recheck(State{}, Process{PID: os.Getpid()})).To(Equal(State{}))
			hold(newer)
			s := codex{}.Recheck(State{}, Process{PID: os.Getpid()})
			Expect(s.Ready).To(BeTrue())
			Expect(s.ConversationID).To(Equal(newer))
			Expect(s.Resumed).To(BeFalse())
			Expect(s.Activity).To(Equal(ActivityIdle))
		})

		It("is found below the process of the pane", func() {
			hold(newer)
			Expect(codex{}.Recheck(State{}, Process{PID: os.Getppid()}).ConversationID).To(Equal(newer))
		})

		It("is resumed when it holds the lock of what was to be resumed", func() {
			hold(older)
			hold(newer)
			s := codex{}.Recheck(State{}, Process{PID: os.Getpid(), ConversationID: older, Resume: true})
			Expect(s.ConversationID).To(Equal(older))
			Expect(s.Resumed).To(BeTrue())
			s = codex{}.Recheck(State{}, Process{PID: os.Getpid(), ConversationID: conversation, Resume: true})
			Expect(s.ConversationID).To(Equal(newer), "the newest")
			Expect(s.Resumed).To(BeFalse())
		})

		DescribeTable("its turn ended as its file says", func(want Activity, lines ...string) {
			path := filepath.Join(dir, "rollout.jsonl")
			Expect(os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600)).To(Succeed())
			s := State{Ready: true, Activity: ActivityAwaitingInput, WaitingFor: "x", Since: at(5), TranscriptPath: path}
			s = codex{}.Recheck(s, Process{})
			Expect(s.Activity).To(Equal(want))
		},
			Entry("an interrupt", ActivityIdle, rollout("task_started", 4), rollout("turn_aborted", 6), rollout("token_count", 7)),
			Entry("its end", ActivityIdle, rollout("task_complete", 6)),
			Entry("an older end", ActivityAwaitingInput, rollout("task_complete", 4)),
			Entry("another turn since", ActivityAwaitingInput, rollout("task_complete", 6), rollout("task_started", 7)),
			Entry("nothing that says so", ActivityAwaitingInput, `{"type":"response_item"}`, "no JSON", ""),
		)
	})
})

// rollout is a line of codex's file of a conversation.
func rollout(kind string, second int) string {
	return fmt.Sprintf(`{"timestamp":%q,"type":"event_msg","payload":{"type":%q}}`, at(second).Format(time.RFC3339Nano), kind)
}
