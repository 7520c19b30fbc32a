package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("the command line", func() {
	var w *world
	BeforeEach(func() { w = newWorld() })

	It("tells its version and explains itself", func() {
		out, err := w.command("", "--version").Output()
		Expect(err).NotTo(HaveOccurred())
		Expect(string(out)).To(Equal("fakeharness dev\n"))
		out, err = w.command("", "--help").Output()
		Expect(err).NotTo(HaveOccurred())
		for _, s := range []string{"--session-id UUID", "FAKEHARNESS_BEHAVIOUR", "swallow-cr=N", "trust-dialog"} {
			Expect(string(out)).To(ContainSubstring(s))
		}
	})

	DescribeTable("is refused as the real one refuses it",
		func(says string, args ...string) {
			Expect(w.fails("", args...)).To(ContainSubstring(says))
		},
		Entry(nil, "error: unknown option '--dance'", "--dance"),
		Entry(nil, "error: option '--session-id <value>' argument missing", "--session-id"),
		Entry(nil, "Error: Invalid session ID. Must be a valid UUID.", "--session-id", "abc"),
		Entry(nil, "argument 'sometimes' is invalid", "--permission-mode", "sometimes"),
		Entry(nil, "Error: Invalid JSON provided to --settings", "--settings", "{"),
		Entry(nil, "Error: Settings file not found: /nowhere", "--settings", "/nowhere"),
		Entry(nil, "No conversation found with session ID: "+id1, "--resume", id1),
		Entry(nil, "--fork-session is also specified", "--resume", id1, "--session-id", id1),
		Entry(nil, "No conversation found to continue", "--continue"),
	)

	It("refuses an unknown behaviour with the known ones", func() {
		a := w.run("dance")
		Expect(a.code()).To(Equal(2))
		Expect(a.Output()).To(ContainSubstring(`unknown behaviour "dance": known are alt-screen, `))
		Expect(w.run("exit=x").code()).To(Equal(2))
	})

	It("needs a terminal, or --print", func() {
		out, err := w.command("").CombinedOutput()
		Expect(err).To(HaveOccurred())
		Expect(string(out)).To(ContainSubstring("must be a terminal"))
		out, err = w.command("", "-p", "hello", "--model", "x").Output()
		Expect(err).NotTo(HaveOccurred())
		Expect(string(out)).To(Equal("I received 5 bytes in 1 line: “hello”. This is turn 1.\n"))
	})

	It("accepts what is commonly given to the real one, and sends a prompt behind --", func() {
		a := w.ready("", "--session-id", id1, "--settings", "{}", "--model", "opus", "--effort", "high", "--permission-mode", "plan",
			"--append-system-prompt", "--be-nice", "--disallowedTools", "AskUserQuestion,Edit", "Bash", "--dangerously-skip-permissions",
			"--add-dir", "/a", "/b", "--mcp-config=x", "--strict-mcp-config", "--verbose", "--", "-starts with a dash")
		Expect(a.logs("reply", 1).Text).To(ContainSubstring("“-starts with a dash”"))
		Expect(w.log.Events("started")[0].UID).To(Equal("uid-1"))
		a.shows("opus · high · bypassPermissions")
	})
})

var _ = Describe("conversations", func() {
	var w *world
	BeforeEach(func() { w = newWorld() })

	It("have no file before the first turn, and one that can be resumed after it", func() {
		a := w.ready("", "--session-id", id1)
		Expect(w.conversation(id1)).To(BeNil())
		a.says("hello")
		Eventually(func() []string { return kinds(w.conversation(id1)) }).Should(Equal([]string{"title", "user", "assistant"}))
		a.types("quit\r")
		Expect(a.code()).To(BeZero())
		Expect(a.Output()).To(ContainSubstring("fakeharness --resume " + id1))

		Expect(w.fails("", "--session-id", id1)).To(ContainSubstring("Error: Session ID " + id1 + " is already in use."))

		b := w.ready("", "--resume", id1)
		Expect(w.log.Events("ready")[1].Source).To(Equal("resume"))
		b.shows("hello")
		Expect(b.says("again").Text).To(ContainSubstring("turn 2"))
		Eventually(func() int { return len(w.conversation(id1)) }).Should(Equal(5))
	})

	It("R01: are found from another directory, run there, and stay in the old file", func() {
		w.ready("", "--session-id", id1).says("hello")
		Eventually(func() int { return len(w.conversation(id1)) }).Should(Equal(3))
		w.dir = GinkgoT().TempDir()
		b := w.ready("", "--resume", id1)
		b.says("from elsewhere")
		Eventually(func() int { return len(w.conversation(id1)) }).Should(Equal(5))
		Expect(b.session()["cwd"]).To(Equal(w.dir))
	})

	It("keep model and effort, not the permission mode", func() {
		a := w.ready("", "--session-id", id1, "--model", "opus", "--effort", "low", "--permission-mode", "plan")
		a.says("hello")
		Eventually(func() int { return len(w.conversation(id1)) }).Should(Equal(3))
		a.Close()
		b := w.ready("", "--resume", id1)
		b.shows("opus · low")
		Expect(b.Screen()).NotTo(ContainSubstring("plan"))
	})

	It("can share an id as long as neither has a turn", func() {
		w.ready("", "--session-id", id1)
		w.ready("", "--session-id", id1)
	})

	It("can be forked, and the last one continued", func() {
		w.ready("", "--session-id", id1).says("hello")
		Eventually(func() int { return len(w.conversation(id1)) }).Should(Equal(3))
		const id2 = "11111111-2222-4333-8444-555555555555"
		w.ready("", "--resume", id1, "--session-id", id2, "--fork-session").says("forked")
		Eventually(func() []string { return kinds(w.conversation(id2)) }).Should(Equal([]string{"title", "user", "assistant", "user", "assistant"}))
		Expect(w.conversation(id1)).To(HaveLen(3))
		Expect(w.ready("", "--continue").session()["sessionId"]).To(Equal(id2))
	})

	It("open a picker that waits for a person when the id is none", func() {
		a := w.run("", "--resume", "abc")
		a.shows("Resume a conversation")
		Consistently(a.Done).ShouldNot(BeClosed())
		Expect(w.log.Count("ready")).To(BeZero())
		a.types("\x1b")
		Expect(a.code()).To(BeZero())
	})

	DescribeTable("lie in a folder named after the real path",
		func(name, want string) {
			dir := filepath.Join(GinkgoT().TempDir(), name)
			Expect(os.MkdirAll(dir, 0o700)).To(Succeed())
			w.dir = dir
			w.ready("", "--session-id", id1).says("x")
			var got string
			Eventually(func() string {
				entries, _ := os.ReadDir(filepath.Join(w.home, "projects"))
				if len(entries) == 1 {
					got = entries[0].Name()
				}
				return got
			}).ShouldNot(BeEmpty())
			Expect(got).To(HaveSuffix(want))
			Expect(len(got)).To(BeNumerically("<=", 207))
		},
		Entry("odd characters, by UTF-16 unit", "a.b_c d@ü漢😀", "-a-b-c-d-----"),
		Entry("a long one", strings.Repeat("x", 220), ""),
	)

	It("keep a queued prompt in the file only, and do not send it at a resume", func() {
		a := w.ready("think=60000", "--session-id", id1)
		a.types("one\r")
		a.logs("turn", 1)
		a.types("two\r")
		Eventually(func() []string { return kinds(w.conversation(id1)) }).Should(ContainElement("queue-operation"))
		Expect(a.Cmd.Process.Signal(syscall.SIGTERM)).To(Succeed())
		Expect(a.code()).To(Equal(143))
		b := w.ready("", "--resume", id1)
		Consistently(w.log.Submits).Should(Equal([]string{"one", "two"}))
		Expect(b.says("three").Text).To(ContainSubstring("turn 2"))
	})
})

var _ = Describe("messages", func() {
	var (
		w *world
		a *agent
	)
	BeforeEach(func() {
		w = newWorld()
		a = w.ready("", "--session-id", id1, "--settings", settings(""))
	})

	DescribeTable("arrive exact",
		func(text, want string) {
			Expect(a.Paste(text)).To(Succeed())
			a.types("\r")
			e := a.logs("submit", 1)
			Expect(e.Text).To(Equal(want))
			Expect(e.SHA256).To(Equal(sha(want)))
			Expect(a.logs("turn", 1).SHA256).To(Equal(sha(want)))
			frame := w.log.Events("frame")[0]
			Expect(frame.Bytes).To(Equal(len(text)))
			Expect(frame.SHA256).To(Equal(sha(text)))
		},
		Entry("one line", "hello", "hello"),
		Entry("many lines", "one\n\n  two\nthree", "one\n\n  two\nthree"),
		Entry("blank ends are trimmed", "  hello \n\n", "hello"),
		Entry("a tab is four blanks", "a\tb", "a    b"),
		Entry("emoji, CJK", "👩‍👩‍👧 漢字 e\u0301", "👩‍👩‍👧 漢字 e\u0301"),
		Entry("a dash in front", "-x", "-x"),
		Entry("a path", "/etc/hosts is odd", "/etc/hosts is odd"),
		Entry("a blank protects from the shell", " !date", "!date"),
		Entry("100 KB", strings.Repeat("0123456789abcdef", 6400), strings.Repeat("0123456789abcdef", 6400)),
		Entry("5,000 lines", strings.Repeat("line\n", 4999)+"line", strings.Repeat("line\n", 4999)+"line"),
		Entry("control characters are taken out", "a\x00b\x07c\x1b[31md\x7f", "abcd"),
	)

	It("can be typed and corrected", func() {
		a.types("helloo\x7f wörl\x7fld\r")
		Expect(a.logs("submit", 1).Text).To(Equal("hello wörld"))
		a.types("gone\x15kept\r")
		Expect(a.logs("submit", 2).Text).To(Equal("kept"))
	})

	It("are folded in the box when they are long, and go whole with one backspace", func() {
		Expect(a.Paste(strings.Repeat("x\n", 300))).To(Succeed())
		a.shows("❯ [Pasted text #1 +300 lines]")
		a.types("\x7f")
		Eventually(a.Screen).ShouldNot(ContainSubstring("Pasted"))
		Expect(a.Paste(strings.Repeat("y\n", 11))).To(Succeed())
		a.shows("[Pasted text #2 +11 lines]")
	})

	It("are logged byte by byte as they came", func() {
		a.types("\x1b[200~a\rb\x1b[201~\r")
		a.logs("submit", 1)
		Expect(string(w.log.Input())).To(Equal("\x1b[200~a\rb\x1b[201~\r"))
	})

	It("come whole through a frame that is cut anywhere", func() {
		const frame = "\x1b[200~grüße\rdu\x1b[201~"
		for at := 0; at < len(frame); {
			n := 1
			if frame[at] == '\x1b' {
				n++ // a lone escape is a key
			}
			a.types(frame[at : at+n])
			at += n
			Eventually(w.log.Input).Should(HaveLen(at))
		}
		a.types("\r")
		Expect(a.logs("submit", 1).Text).To(Equal("grüße\ndu"))
	})

	It("P01: show what an escape in a body would do: it ends the frame", func() {
		a.types("\x1b[200~ok\x1b[201~\r!touch pwn\r\x1b[201~\r")
		a.logs("shell", 1)
		Expect(w.log.Submits()).To(Equal([]string{"ok", "!touch pwn"}))
	})

	It("P28: are not sent when they are empty", func() {
		a.types("\r  \r")
		Expect(a.Paste(" \n ")).To(Succeed())
		a.types("\r")
		a.types("x\r")
		Expect(a.logs("submit", 1).Text).To(Equal("x"))
	})

	It("that are commands run as commands, with no hook, and a shell command is not really run", func() {
		a.types("!touch pwned\r")
		Expect(a.logs("shell", 1).Command).To(Equal("touch pwned"))
		a.types("/nosuch args\r")
		a.shows("Unknown command: /nosuch")
		a.types("  /hel\r")
		a.logs("dialog", 1)
		a.shows("Help")
		a.types("lost\x1b")
		Eventually(a.Screen).ShouldNot(ContainSubstring("Help"))
		a.types("after\r")
		a.logs("reply", 1)
		Expect(filepath.Join(w.dir, "pwned")).NotTo(BeAnExistingFile())
		Eventually(w.hooked).Should(Equal([]string{"SessionStart", "UserPromptSubmit", "Stop"}))
	})

	DescribeTable("that end the program",
		func(text string) {
			a.types(text + "\r")
			Expect(a.code()).To(BeZero())
		},
		Entry(nil, "exit"), Entry(nil, "quit"), Entry(nil, ":q"), Entry(nil, " exit"), Entry(nil, "/exit"), Entry(nil, "/q"),
	)

	It("that only begin with such a word do not", func() {
		Expect(a.says("exit.").Text).To(ContainSubstring("exit."))
		Expect(a.says("exit\nnow").Text).To(ContainSubstring("turn 2"))
	})

	It("that end with a backslash go on in the next line", func() {
		a.types("one\\\rtwo\r")
		Expect(a.logs("submit", 1).Text).To(Equal("one\ntwo"))
	})

	It("that are only the path of an image need a second carriage return", func() {
		Expect(a.Paste("/x/y.png")).To(Succeed())
		a.types("\r")
		a.logs("enter-held", 1)
		Expect(w.log.Count("submit")).To(BeZero())
		a.types("\r")
		Expect(a.logs("submit", 1).Text).To(Equal("/x/y.png"))
	})

	It("merge with what a person has half typed", func() {
		a.types("human draft ")
		Expect(a.Paste("event text")).To(Succeed())
		a.types("\r")
		Expect(a.logs("submit", 1).Text).To(Equal("human draft event text"))
	})

	It("begin a new conversation under another id: /clear", func() {
		a.says("hello")
		a.types("/clear\r")
		id := a.logs("new-id", 1).ID
		Expect(id).NotTo(Equal(id1))
		Eventually(w.hooked).Should(HaveLen(5))
		lines := readLines(w.hooks)
		Expect(lines[3]).To(And(HaveKeyWithValue("hook_event_name", "SessionEnd"), HaveKeyWithValue("reason", "clear"), HaveKeyWithValue("session_id", id1)))
		Expect(lines[4]).To(And(HaveKeyWithValue("hook_event_name", "SessionStart"), HaveKeyWithValue("source", "clear"), HaveKeyWithValue("session_id", id)))
		Eventually(a.session).Should(HaveKeyWithValue("sessionId", id))
		Expect(a.says("anew").Text).To(ContainSubstring("turn 1"))
	})

	It("leave with ^C twice, or ^D", func() {
		a.types("draft\x03")
		a.types("\x03")
		a.shows("Press Ctrl-C again to exit")
		a.types("\x03")
		Expect(a.code()).To(BeZero())
		b := w.ready("")
		b.types("\x04")
		Expect(b.code()).To(BeZero())
	})
})

var _ = Describe("a busy agent", func() {
	var w *world
	BeforeEach(func() { w = newWorld() })

	It("takes prompts at once, and sends all of them as one turn at the end, with no second hook", func() {
		a := w.ready("think=400", "--settings", settings(""))
		a.types("one\r")
		a.logs("turn", 1)
		a.types("two\r")
		a.types("three\r")
		a.logs("reply", 2)
		Expect(w.log.Events("turn")[1].Text).To(Equal("two\n\nthree"))
		Eventually(w.hooked).Should(Equal([]string{"SessionStart", "UserPromptSubmit", "UserPromptSubmit", "UserPromptSubmit", "Stop", "Stop"}))
		Expect(w.log.Events("submit")[1].Busy).To(BeTrue())
	})

	// queues has a turn under way, and types a command between two prompts behind it.
	queues := func(a *agent) {
		GinkgoHelper()
		a.types("one\r")
		a.logs("turn", 1)
		for _, s := range []string{"two", "!date", "three"} {
			a.types(s + "\r")
			a.logs("submit", map[string]int{"two": 2, "!date": 3, "three": 4}[s])
		}
		a.logs("reply", 3)
		Expect(w.log.Count("shell")).To(Equal(1))
		Expect(w.log.Events("turn")[1].Text).To(Equal("two"))
		Expect(w.log.Events("turn")[2].Text).To(Equal("three"))
	}

	It("runs queued commands when it reaches them", func() { queues(w.ready("think=200")) })

	It("lets no command overtake a prompt whose hook has not answered", func() {
		queues(w.ready("think=3000", "--settings", settings(`[ "$E" != UserPromptSubmit ] || sleep 0.5`)))
	})

	DescribeTable("is interrupted without a Stop hook",
		func(interrupt func(a *agent)) {
			a := w.ready("think=60000", "--settings", settings(""))
			a.types("one\r")
			a.logs("turn", 1)
			Eventually(a.status).Should(Equal("busy"))
			a.shows("✶ Thinking…")
			interrupt(a)
			a.logs("interrupted", 1)
			Eventually(a.status).Should(Equal("idle"))
			a.types("fake: think=1\r")
			a.logs("reply", 1)
			Eventually(w.hooked).Should(Equal([]string{"SessionStart", "UserPromptSubmit", "UserPromptSubmit", "Stop"}))
		},
		Entry("by Esc", func(a *agent) { a.types("\x1b") }),
		Entry("by ^C", func(a *agent) { a.types("\x03") }),
		Entry("by SIGINT", func(a *agent) { _ = a.Cmd.Process.Signal(syscall.SIGINT) }),
	)
})

var _ = Describe("hooks", func() {
	var w *world
	BeforeEach(func() { w = newWorld() })

	It("get what the real one gives them", func() {
		a := w.ready("", "--session-id", id1, "--model", "m", "--settings", settings(""))
		a.says("grüße")
		Eventually(w.hooked).Should(HaveLen(3))
		lines := readLines(w.hooks)
		for _, l := range lines {
			Expect(l).To(HaveKeyWithValue("session_id", id1))
			Expect(l).To(HaveKeyWithValue("cwd", w.dir))
			Expect(l["transcript_path"]).To(HaveSuffix("/" + id1 + ".jsonl"))
		}
		Expect(lines[0]).To(And(HaveKeyWithValue("source", "startup"), HaveKeyWithValue("model", "m")))
		Expect(lines[1]).To(HaveKeyWithValue("prompt", "grüße"))
		Expect(lines[2]["last_assistant_message"]).To(ContainSubstring("grüße"))
	})

	It("run without a shell when they have arguments", func() {
		out := filepath.Join(w.dir, "out")
		a := w.ready("", "--settings", `{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"/usr/bin/tee","args":["`+out+`"]}]}]}}`)
		_ = a
		Expect(os.ReadFile(out)).To(ContainSubstring(`"hook_event_name":"SessionStart"`))
	})

	It("delay the prompt unless they are asynchronous", func() {
		slow := `{"hooks":{"UserPromptSubmit":[{"hooks":[{"type":"command","command":"sleep 0.3","async":%v}]}]}}`
		a := w.ready("think=1", "--settings", fmt.Sprintf(slow, false))
		a.says("x")
		Expect(w.log.Events("turn")[0].Time.Sub(w.log.Events("submit")[0].Time).Milliseconds()).To(BeNumerically(">=", 300))
		w = newWorld()
		a = w.ready("think=1", "--settings", fmt.Sprintf(slow, true))
		a.types("x\r")
		a.logs("turn", 1)
		Expect(w.log.Count("hook")).To(BeZero())
		a.logs("hook", 1)
	})

	It("are killed at their time limit, with what they started", func() {
		a := w.ready("", "--settings", `{"hooks":{"UserPromptSubmit":[{"hooks":[{"type":"command","command":"sleep 1000 & sleep 1000","timeout":0.2}]}]}}`)
		a.says("x")
		Expect(w.log.Events("hook")[0].Exit).NotTo(BeZero())
	})

	It("are harmless when they fail, and block the prompt with status 2", func() {
		a := w.ready("", "--settings", settings(`case $E in UserPromptSubmit) case $j in *"block me"*) echo no >&2; exit 2;; *) exit 1;; esac;; esac`))
		Expect(a.says("hello").Text).To(ContainSubstring("hello"))
		a.types("block me\r")
		a.shows("operation blocked by hook no")
		Expect(a.says("after").Text).To(ContainSubstring("turn 2"))
		Expect(w.ready("", "--settings", `{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"/nowhere","args":[]}]}]}}`)).NotTo(BeNil())
	})

	It("fail the turn as asked", func() {
		a := w.ready("fail-turn", "--settings", settings(""))
		Expect(a.says("x").Text).To(ContainSubstring("API Error"))
		Eventually(w.hooked).Should(ContainElement("StopFailure"))
	})

	It("are skipped or slow as asked", func() {
		a := w.ready("skip-hook=UserPromptSubmit+Stop,slow-hooks=200", "--settings", settings(""))
		a.says("x")
		a.types("quit\r")
		Expect(a.code()).To(BeZero())
		Expect(w.hooked()).To(Equal([]string{"SessionStart", "SessionEnd"}))
	})

	It("notify late of an open dialog and of idleness", func() {
		a := w.ready("notify-after=50,idle-after=50,permission-dialog", "--settings", settings(""))
		a.types("x\r")
		Eventually(w.hooked).Should(ContainElement("Notification"))
		a.types("\r")
		Eventually(w.hooked).Should(HaveLen(7))
		lines := readLines(w.hooks)
		Expect(lines[3]).To(HaveKeyWithValue("notification_type", "permission_prompt"))
		Expect(lines[6]).To(HaveKeyWithValue("notification_type", "idle_prompt"))
	})
})

var _ = Describe("the session file", func() {
	It("says what the program is doing, and goes with it", func() {
		w := newWorld()
		a := w.ready("", "--session-id", id1)
		s := a.session()
		Expect(s).To(And(HaveKeyWithValue("sessionId", id1), HaveKeyWithValue("status", "idle"), HaveKeyWithValue("cwd", w.dir), HaveKeyWithValue("kind", "interactive")))
		Expect(s["procStart"]).To(MatchRegexp(`^\d+$`))
		a.types("fake: permission-dialog\r")
		Eventually(a.status).Should(Equal("waiting"))
		Expect(a.session()).To(HaveKeyWithValue("waitingFor", "permission prompt"))
		a.types("\r")
		Eventually(a.status).Should(Equal("idle"))
		Expect(a.Cmd.Process.Signal(syscall.SIGTERM)).To(Succeed())
		Expect(a.code()).To(Equal(143))
		Expect(a.session()).To(BeNil())
		b := w.ready("")
		b.Close()
		Expect(b.session()).NotTo(BeNil(), "SIGKILL leaves it behind")
	})
})

var _ = Describe("the end", func() {
	var w *world
	BeforeEach(func() { w = newWorld() })

	DescribeTable("by a signal: flushed, with its hook and its status",
		func(s syscall.Signal, code int) {
			a := w.ready("flush-late=60000", "--session-id", id1, "--settings", settings(""))
			a.says("hello")
			Eventually(a.status).Should(Equal("idle"))
			Expect(a.Cmd.Process.Signal(s)).To(Succeed())
			Expect(a.code()).To(Equal(code))
			Expect(kinds(w.conversation(id1))).To(Equal([]string{"title", "user", "assistant"}))
			lines := readLines(w.hooks)
			Expect(lines[len(lines)-1]).To(And(HaveKeyWithValue("hook_event_name", "SessionEnd"), HaveKeyWithValue("reason", "other")))
			Expect(w.log.Events("exit")[0].Code).To(Equal(code))
		},
		Entry(nil, syscall.SIGTERM, 143), Entry(nil, syscall.SIGHUP, 129), Entry(nil, syscall.SIGINT, 0),
	)

	It("leaves the terminal as it was", func() {
		a := w.ready("")
		a.types("quit\r")
		Expect(a.code()).To(BeZero())
		Expect(a.Output()).To(HaveSuffix("\x1b[?2004l\x1b[?25h"))
	})

	It("R13: by SIGKILL directly after the first reply loses the turn and burns the id", func() {
		a := w.ready("flush-late=60000,think=1", "--session-id", id1)
		a.says("hello")
		a.Close()
		Expect(kinds(w.conversation(id1))).To(Equal([]string{"title"}))
		Expect(w.fails("resume-delay=1", "--resume", id1)).To(ContainSubstring("No conversation found"))
		Expect(w.fails("", "--session-id", id1)).To(ContainSubstring("already in use"))
	})

	It("by SIGKILL in a long turn keeps the user's text", func() {
		a := w.ready("think=60000", "--session-id", id1)
		a.types("hello\r")
		Eventually(func() []string { return kinds(w.conversation(id1)) }).Should(Equal([]string{"title", "user"}))
		a.Close()
		w.ready("", "--resume", id1).shows("hello")
	})
})

var _ = Describe("the screen", func() {
	It("looks like this", func() {
		w := newWorld()
		a := w.ready("", "--session-id", id1, "--model", "opus")
		a.says("hello there")
		Expect(a.Paste("one\ntwo")).To(Succeed())
		a.shows("  two")
		a.shows("idle · turn 1")
		got := strings.ReplaceAll(a.Screen(), w.dir, "DIR")
		golden := filepath.Join("testdata", "screen.txt")
		if os.Getenv("UPDATE_GOLDEN") != "" {
			Expect(os.WriteFile(golden, []byte(got+"\n"), 0o644)).To(Succeed())
		}
		want, err := os.ReadFile(golden)
		Expect(err).NotTo(HaveOccurred())
		Expect(skeleton(got + "\n")).To(Equal(skeleton(string(want))))
	})

	It("is redrawn whole at every size", func() {
		w := newWorld()
		a := w.ready("", "--session-id", id1)
		a.says("hello there, this is a text of some length that has to be wrapped when it gets narrow")
		for _, size := range [][2]int{{40, 24}, {100, 30}, {25, 10}, {120, 8}, {80, 24}} {
			Expect(a.Resize(size[0], size[1])).To(Succeed())
			Eventually(func() string {
				s := a.Screen()
				rule := strings.Repeat("─", size[0]-1)
				if strings.Count(s, "❯ Try") != 1 || strings.Count(s, rule) != 2 || strings.Count(s, "idle · turn 1") != 1 {
					return fmt.Sprintf("at %v:\n%s", size, s)
				}
				return ""
			}).Should(BeEmpty())
		}
	})

	It("stays in order while much is written", func() {
		w := newWorld()
		a := w.ready("")
		a.types("fake: output=500\r")
		a.logs("reply", 1)
		a.shows("line 500 of 500")
		a.types("draft")
		a.shows("❯ draft")
		Expect(strings.Count(a.Screen(), "❯ draft")).To(Equal(1))
	})

	It("shows nothing of what a message could do to a terminal", func() {
		w := newWorld()
		a := w.ready("")
		n := len(a.Output())
		a.says("a\u009b31mb\u202ec")
		Expect(a.Output()[n:]).NotTo(Or(ContainSubstring("\u009b"), ContainSubstring("\u202e")))
	})
})

// skeleton is a screen without what depends on the length of a directory's name.
func skeleton(screen string) string {
	return regexp.MustCompile(` *│|─+[╮╯]`).ReplaceAllString(screen, "")
}

var _ = Describe("the binary", func() {
	It("starts quickly enough for a version probe", func() {
		Expect(exec.Command(program, "--version").Run()).To(Succeed())
	})
})
