package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/harness/hook"
)

var _ = Describe("gemini's command line", func() {
	options := func(change func(*LaunchOptions)) LaunchOptions {
		return launchOf(func(o *LaunchOptions) {
			o.Trust = true
			if change != nil {
				change(o)
			}
		})
	}

	DescribeTable("is built in one order",
		func(change func(*LaunchOptions), want ...string) {
			cmd, err := gemini{}.Command(options(change))
			Expect(err).NotTo(HaveOccurred())
			Expect(cmd.Argv).To(Equal(append([]string{"/opt/claude"}, want...)))
		},
		Entry("a start", nil, "--session-id", conversation),
		Entry("a resume", func(o *LaunchOptions) { o.Resume = true }, "--resume", conversation),
		Entry("arguments, then model", func(o *LaunchOptions) { o.Args, o.Model = []string{"--policy", "p"}, "gemini-x" },
			"--session-id", conversation, "--policy", "p", "--model", "gemini-x"),
		Entry("what it may do is its own mode", func(o *LaunchOptions) { o.Permissions = PermissionsAllow },
			"--session-id", conversation, "--approval-mode", "yolo"),
		Entry("unless the operator chose one", func(o *LaunchOptions) {
			o.Permissions, o.Args = PermissionsAllow, []string{"--approval-mode=auto_edit"}
		},
			"--session-id", conversation, "--approval-mode=auto_edit"),
	)

	It("is one process, trusts the directory, and knows its hook", func() {
		cmd, err := gemini{}.Command(options(func(o *LaunchOptions) { o.HookCommand = []string{"/a b/shim", "hook"} }))
		Expect(err).NotTo(HaveOccurred())
		Expect(cmd.Env).To(Equal([]string{"GEMINI_CLI_NO_RELAUNCH=true", "npm_@google:registry=off", "LOOP_HOOK='/a b/shim' hook", "GEMINI_CLI_TRUST_WORKSPACE=true"}))
	})

	DescribeTable("refuses what would fight it",
		func(change func(*LaunchOptions), says string) {
			_, err := gemini{}.Command(options(change))
			Expect(err).To(MatchError(ContainSubstring(says)))
		},
		Entry("R09: an id that is a flag", func(o *LaunchOptions) { o.ConversationID = "--help" }, "is not a UUID"),
		Entry("an effort", func(o *LaunchOptions) { o.Effort = "high" }, "no flag for an effort"),
		Entry("a trust dialog", func(o *LaunchOptions) { o.Trust = false }, "--skip-trust"),
		Entry("to deny", func(o *LaunchOptions) { o.Permissions = PermissionsDeny }, "Ask or Allow"),
		Entry("a prompt", func(o *LaunchOptions) { o.Args = []string{"-i", "x"} }, "delivered as a message"),
		Entry("a conversation", func(o *LaunchOptions) { o.Args = []string{"-rlatest"} }, "chosen by the-loop"),
		Entry("no extension", func(o *LaunchOptions) { o.Args = []string{"-e", "none"} }, "leave out the extension"),
		Entry("no hook command", func(o *LaunchOptions) { o.HookCommand = nil }, "no hook command"),
	)

	It("takes the operator's own answer to the trust dialog", func() {
		_, err := gemini{}.Command(options(func(o *LaunchOptions) { o.Trust, o.Args = false, []string{"--skip-trust"} }))
		Expect(err).NotTo(HaveOccurred())
	})
})

var _ = Describe("gemini's home", func() {
	var home string
	prepare := func() Prepared {
		GinkgoHelper()
		done, err := gemini{}.Prepare(context.Background(), PrepareOptions{Lookup: variables("HOME", home)})
		Expect(err).NotTo(HaveOccurred())
		return done
	}
	settings := func(text string) {
		GinkgoHelper()
		Expect(os.MkdirAll(filepath.Join(home, ".gemini"), 0o700)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(home, ".gemini", "settings.json"), []byte(text), 0o600)).To(Succeed())
	}
	BeforeEach(func() { home = GinkgoT().TempDir() })

	It("gets an extension with our hooks, once, and nothing else", func() {
		Expect(prepare().Applied).To(HaveLen(1))
		dir := filepath.Join(home, ".gemini", "extensions", "the-loop-hooks")
		hooks, err := os.ReadFile(filepath.Join(dir, "hooks", "hooks.json"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(hooks)).To(And(ContainSubstring(`"BeforeAgent":[{"hooks":[{"type":"command","name":"the-loop","command":"eval \"$LOOP_HOOK\""`)))
		Expect(os.ReadDir(filepath.Join(home, ".gemini"))).To(HaveLen(1))
		Expect(prepare().Applied).To(BeEmpty())
		Expect(os.WriteFile(filepath.Join(dir, "hooks", "hooks.json"), []byte("{}"), 0o600)).To(Succeed())
		Expect(prepare().Applied).To(HaveLen(1))
		Expect(os.ReadDir(filepath.Join(dir, "hooks"))).To(HaveLen(1))
	})

	It("is where GEMINI_CLI_HOME says, and must be absolute", func() {
		Expect(geminiHome(variables("HOME", "/h", "GEMINI_CLI_HOME", " /g "))).To(Equal("/g/.gemini"))
		_, err := gemini{}.Prepare(context.Background(), PrepareOptions{Lookup: variables()})
		Expect(err).To(MatchError(ContainSubstring("not an absolute path")))
	})

	It("is warned of when it would cost a session", func() {
		Expect(prepare().Warnings).To(ConsistOf(ContainSubstring("selectedType"), ContainSubstring("sessionRetention")))
		settings(`{ // how it is paid for
			"security": {"auth": {"selectedType": "oauth-personal"}}, /* "general": 1 */ "general": {"sessionRetention": {"enabled": false}},
			"x": "a // b /* c \" */"}`)
		Expect(prepare().Warnings).To(BeEmpty())
	})

	It("makes it ready some time after its start, unless it asks for the account", func() {
		ready := func(s State) bool { return gemini{}.Recheck(s, Process{Lookup: variables("HOME", home)}).Ready }
		old := State{Started: time.Now().Add(-time.Minute)}
		Expect(ready(old)).To(BeFalse())
		settings(`{"security":{"auth":{"selectedType":"gemini-api-key"}}}`)
		Expect(ready(old)).To(BeTrue())
		Expect(ready(State{Started: time.Now()})).To(BeFalse())
		Expect(ready(State{})).To(BeFalse())
		old.Ended = true
		Expect(ready(old)).To(BeFalse())
		By("waiting as long again as it took to start")
		slow := func(started, launched time.Duration) bool {
			p := Process{Lookup: variables("HOME", home), Launched: time.Now().Add(-launched)}
			return gemini{}.Recheck(State{Started: time.Now().Add(-started)}, p).Ready
		}
		Expect(slow(5*time.Second, 7*time.Second)).To(BeTrue())
		Expect(slow(5*time.Second, 15*time.Second)).To(BeFalse())
		Expect(slow(31*time.Second, time.Hour)).To(BeTrue())
	})
})

var _ = Describe("gemini's state", func() {
	observe := func(notes ...hook.Note) (s State) {
		for i, n := range notes {
			n.Time = at(i + 1)
			s = gemini{}.Observe(s, n)
		}
		return s
	}
	before := hook.Note{Event: "BeforeAgent", PromptDigest: hook.Digest("a")}
	after := hook.Note{Event: "AfterAgent"}

	It("begins with its start, and is not ready by that", func() {
		s := observe(start("resume", "c1"))
		Expect(s.Started).To(Equal(at(1)))
		Expect(s.Ready).To(BeFalse())
		Expect(s.Resumed).To(BeTrue())
		Expect(s.TranscriptPath).To(Equal("/t/c1"))
	})

	It("knows what was taken", func() {
		Expect(observe(start("startup", "c1"), before).Taken).To(ConsistOf(Taken{Digest: hook.Digest("a"), Time: at(2)}))
	})

	DescribeTable("its activity after these hooks",
		func(want Activity, notes ...hook.Note) { Expect(observe(notes...).Activity).To(Equal(want)) },
		Entry("a turn", ActivityBusy, before),
		Entry("its end", ActivityIdle, before, after),
		Entry("a permission", ActivityAwaitingInput, before, notified("ToolPermission")),
		Entry("another notification", ActivityBusy, before, notified("News")),
		Entry("a tool that was allowed", ActivityBusy, before, notified("ToolPermission"), hook.Note{Event: "AfterTool"}),
		Entry("another conversation", ActivityIdle, before, after, ended("clear")),
		Entry("its end as a process", ActivityUnknown, before, after, ended("exit")),
	)

	DescribeTable("sees a refusal in its file", func(want Activity, lines ...string) {
		path := filepath.Join(GinkgoT().TempDir(), "chat.jsonl")
		Expect(os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600)).To(Succeed())
		s := State{Activity: ActivityAwaitingInput, Since: at(5), TranscriptPath: path}
		Expect(gemini{}.Recheck(s, Process{Lookup: variables()}).Activity).To(Equal(want))
	},
		Entry("a refusal", ActivityIdle, cancelled(6), `{"$set":{}}`),
		Entry("an older one", ActivityAwaitingInput, cancelled(4)),
		Entry("none", ActivityAwaitingInput, `{"type":"user","content":[{"text":"Request cancelled."}]}`, "no JSON"),
	)
})

// cancelled is the line that Gemini writes about a refused permission.
func cancelled(second int) string {
	return fmt.Sprintf(`{"id":"x","timestamp":%q,"type":"info","content":"Request cancelled."}`, at(second).Format(time.RFC3339Nano))
}
