package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// Each behaviour is tested for what a test of the product relies on.
var _ = Describe("misbehaviour", func() {
	var w *world
	BeforeEach(func() { w = newWorld() })

	Describe("of input", func() {
		It("no-framing: P03 each line end submits", func() {
			a := w.ready("no-framing")
			Expect(a.Output()).NotTo(ContainSubstring("\x1b[?2004h"))
			a.types("one\rtwo\r")
			a.logs("submit", 2)
			Expect(w.log.Submits()).To(Equal([]string{"one", "two"}))
		})

		It("no-framing: P38 a frame that nobody asked for shows as text", func() {
			a := w.ready("no-framing")
			Expect(a.Paste("x")).To(Succeed())
			a.types("\r")
			Expect(a.logs("submit", 1).Text).To(Equal("[200~x[201~"))
			Expect(w.log.Count("frame")).To(BeZero())
		})

		It("framing-late: P06 frames count only later", func() {
			a := w.ready("framing-late=200")
			Expect(a.Output()).NotTo(ContainSubstring("\x1b[?2004h"))
			a.logs("framing-on", 1)
			Expect(a.says("late\nlines").Text).To(ContainSubstring("2 lines"))
		})

		It("flush-input: P11 what came too early is gone", func() {
			a := w.run("flush-input=300,slow-start=100")
			a.types("too early\r")
			a.logs("input-flushed", 1)
			a.types("later\r")
			a.logs("reply", 1)
			Expect(w.log.Submits()).To(ContainElement("later"))
		})

		It("slow-read: P32 all of it comes, slowly", func() {
			a := w.ready("slow-read=64")
			text := strings.Repeat("0123456789", 100)
			a.says(text)
			Expect(w.log.Submits()).To(Equal([]string{text}))
			Expect(w.log.Count("input")).To(BeNumerically(">=", 15))
		})

		It("P31: a megabyte in one line arrives whole", func() {
			a := w.ready("")
			text := strings.Repeat("0123456789abcdef", 1<<16)
			Expect(a.Paste(text)).To(Succeed())
			a.types("\r")
			Expect(a.logs("turn", 1).SHA256).To(Equal(sha(text)))
			a.logs("reply", 1)
		})

		It("fold: P05 a few lines are folded", func() {
			a := w.ready("fold")
			Expect(a.Paste("1\n2\n3\n4\n5")).To(Succeed())
			a.shows("[Pasted text #1 +4 lines]")
			a.types("\r")
			Expect(a.logs("submit", 1).Text).To(Equal("1\n2\n3\n4\n5"))
		})

		It("swallow-cr: P10 carriage returns after a paste are lost, the text stays", func() {
			a := w.ready("swallow-cr=2")
			Expect(a.Paste("hello")).To(Succeed())
			a.types("\r")
			a.logs("enter-held", 1)
			a.types("\r")
			a.logs("enter-held", 2)
			a.shows("❯ hello")
			Expect(w.log.Count("submit")).To(BeZero())
			a.types("\r")
			Expect(a.logs("submit", 1).Text).To(Equal("hello"))
			a.says("the next one is not held")
		})

		It("sticky-paste: P53 every carriage return that comes too soon makes it worse", func() {
			a := w.ready("sticky-paste=300")
			Expect(a.Paste("hello")).To(Succeed())
			for n := 1; n <= 3; n++ {
				a.types("\r")
				a.logs("enter-held", n)
			}
			Eventually(func() int {
				time.Sleep(350 * time.Millisecond)
				a.types("\r")
				time.Sleep(20 * time.Millisecond)
				return w.log.Count("submit")
			}).Should(Equal(1))
		})

		It("burst: P07 a carriage return close behind is a newline", func() {
			a := w.ready("burst=60000")
			a.types("hello\r")
			a.logs("enter-held", 1)
			a.types("x")
			a.shows("  x")
			Expect(w.log.Count("submit")).To(BeZero())
		})

		It("drop-typed: P18 only frames are taken", func() {
			a := w.ready("drop-typed")
			a.types("typed")
			Expect(a.says("pasted").Text).To(ContainSubstring("“pasted”"))
		})

		It("vim: P19 typed letters are commands in normal mode, a paste is text", func() {
			a := w.ready("vim")
			a.shows("-- INSERT --")
			a.types("\x1b")
			Eventually(a.Screen).ShouldNot(ContainSubstring("-- INSERT --"))
			a.types("dd")
			Expect(a.Paste("dd please insert")).To(Succeed())
			a.shows("❯ dd please insert")
			a.types("\r")
			Expect(a.logs("submit", 1).Text).To(Equal("dd please insert"))
		})

		It("vim: P19 a carriage return does not submit in visual mode", func() {
			a := w.ready("vim")
			a.shows("-- INSERT --")
			a.types("\x1b")
			Eventually(a.Screen).ShouldNot(ContainSubstring("-- INSERT --"))
			a.types("v")
			a.shows("-- VISUAL --")
			Expect(a.Paste("hello")).To(Succeed())
			a.shows("❯ hello")
			a.types("\r")
			a.logs("enter-held", 1)
			Expect(w.log.Count("submit")).To(BeZero())
			a.types("\x1b")
			Eventually(a.Screen).ShouldNot(ContainSubstring("-- VISUAL --"))
			a.types("\r")
			Expect(a.logs("submit", 1).Text).To(Equal("hello"))
		})

		It("ghost: P14 a carriage return in the empty box accepts a suggestion", func() {
			a := w.ready("ghost=delete everything")
			a.shows("❯ delete everything")
			a.types("\r")
			a.logs("ghost-accepted", 1)
			Expect(a.logs("submit", 1).Text).To(Equal("delete everything"))
		})
	})

	Describe("of what a text begins and ends with", func() {
		It("swallow-paste: P14 a text never reaches the box, and the carriage return takes the suggestion", func() {
			a := w.ready("swallow-paste,ghost=delete everything")
			Expect(a.Paste("hello")).To(Succeed())
			a.logs("paste-swallowed", 1)
			a.types("\r")
			Expect(a.logs("submit", 1).Text).To(Equal("delete everything"))
			a.says("the next one is not swallowed")
		})

		It("memory: P27 a hash in front makes a note of a message, and is text elsewhere", func() {
			a := w.ready("memory")
			a.types("#1234 fails\r")
			Expect(a.logs("memory", 1).Text).To(Equal("#1234 fails"))
			Expect(w.log.Count("turn")).To(BeZero())
			a.says("see #1234")
		})

		It("complete: P27 an unfinished reference takes the carriage return for a completion", func() {
			a := w.ready("complete")
			a.types("read @src/ma\r")
			Expect(a.logs("enter-held", 1).Why).To(Equal("completed"))
			Expect(w.log.Count("submit")).To(BeZero())
			a.types("\r")
			Expect(a.logs("submit", 1).Text).To(Equal("read @src/ma/completed"))
			a.says("@src/main is read")
		})
	})

	Describe("of the screen", func() {
		It("alt-screen: T14 leaves no transcript behind", func() {
			a := w.ready("alt-screen")
			a.says("hello")
			Eventually(a.Output).Should(ContainSubstring("\x1b[?1049h"))
			a.shows("This is turn 1")
			a.types("quit\r")
			Expect(a.code()).To(BeZero())
			Expect(a.Output()).To(ContainSubstring("\x1b[?1049l"))
		})

		It("redraw: P09 the echo is late, the text is taken", func() {
			a := w.ready("redraw=60000")
			a.says("hello")
			Expect(a.Screen()).NotTo(ContainSubstring("hello"))
			Expect(w.log.Submits()).To(Equal([]string{"hello"}))
		})

		It("indicator-late: P45 a turn does not show", func() {
			a := w.ready("indicator-late=400,think=60000")
			a.types("hello\r")
			a.logs("turn", 1)
			Expect(a.Screen()).NotTo(ContainSubstring("Thinking"))
			a.shows("Thinking")
		})

		It("garbage: odd sequences and titles do not hurt it", func() {
			a := w.ready("garbage")
			a.says("hello")
			Eventually(a.Output).Should(ContainSubstring("\x1b_Gi=31"))
			a.shows("This is turn 1")
		})

		It("extended-keys: P39 are asked for, and the submit is still the byte 0D", func() {
			a := w.ready("extended-keys")
			Eventually(a.Output).Should(ContainSubstring("\x1b[>4;2m"))
			a.types("x\x1b[13u")
			a.logs("unknown-key", 1)
			a.types("\r")
			Expect(a.logs("submit", 1).Text).To(Equal("x"))
		})
	})

	Describe("of turns", func() {
		It("usage-limit: P47 a prompt is taken, and its turn fails with the time of the reset", func() {
			a := w.ready("usage-limit=3600000", "--settings", settings(""))
			a.types("hello\r")
			a.shows("You've hit your 5-hour limit · resets ")
			Eventually(w.hooked).Should(Equal([]string{"SessionStart", "UserPromptSubmit", "StopFailure"}))
		})

		It("usage-limit: P48 ends, with its sentence still on the screen", func() {
			a := w.ready("usage-limit=2000")
			a.says("hello")
			a.shows("5-hour limit")
			Eventually(func() string {
				a.says("hello")
				return a.Screen()
			}).Should(ContainSubstring("I received"))
			a.shows("5-hour limit")
		})

		It("no-login: H23 a prompt is taken, and its turn fails", func() {
			a := w.ready("no-login", "--settings", settings(""))
			a.types("hello\r")
			a.shows("Please run /login")
			Eventually(w.hooked).Should(Equal([]string{"SessionStart", "UserPromptSubmit", "StopFailure"}))
		})

		It("discard: P47 text is accepted and thrown away", func() {
			a := w.ready("discard", "--settings", settings(""))
			a.shows("usage limit")
			a.types("hello\r")
			a.logs("discarded", 1)
			a.shows("the message was not sent")
			Expect(w.hooked()).To(Equal([]string{"SessionStart"}))
		})

		It("discard: P48 ends, with its banner still on the screen", func() {
			a := w.ready("discard=100")
			Eventually(func() int {
				a.types("hello\r")
				time.Sleep(50 * time.Millisecond)
				return w.log.Count("turn")
			}).Should(BeNumerically(">", 0))
			a.shows("usage limit")
		})

		It("is begun by a line of a prompt, whatever surrounds it, and taken back", func() {
			a := w.ready("")
			a.says("[event 1]\nfake: fold=1, vim\n[end]")
			a.shows("-- INSERT --")
			a.says("fake: -vim,-fold")
			Eventually(a.Screen).ShouldNot(ContainSubstring("-- "))
			Expect(a.says("fake: dance").Text).To(ContainSubstring(`unknown behaviour "dance"`))
		})
	})

	Describe("of dialogs", func() {
		It("trust-dialog: a bare carriage return says no", func() {
			a := w.run("trust-dialog", "--settings", settings(""))
			a.shows("❯ 2. No, exit")
			Expect(a.session()).To(BeNil())
			a.types("\r")
			Expect(a.code()).To(Equal(1))
			Expect(w.hooked()).To(Equal([]string{"SessionEnd"}))
		})

		It("trust-dialog: is remembered, by the exact real path", func() {
			a := w.run("trust-dialog")
			a.logs("dialog", 1)
			a.types("\x1b[A\r")
			a.logs("ready", 1)
			w.ready("trust-dialog")
			Expect(w.log.Count("dialog")).To(Equal(1))
			w.dir = GinkgoT().TempDir()
			w.run("trust-dialog").logs("dialog", 2)
		})

		It("trust-dialog: a seeded configuration silences it", func() {
			real, err := filepath.EvalSymlinks(w.dir)
			Expect(err).NotTo(HaveOccurred())
			config, err := json.Marshal(map[string]any{"projects": map[string]any{real: map[string]any{"hasTrustDialogAccepted": true}}})
			Expect(err).NotTo(HaveOccurred())
			Expect(os.MkdirAll(w.home, 0o700)).To(Succeed())
			Expect(os.WriteFile(filepath.Join(w.home, ".claude.json"), config, 0o600)).To(Succeed())
			w.ready("trust-dialog")
		})

		It("dialogs: H01 a chain eats what is typed", func() {
			a := w.run("dialogs=theme+tools+unknown+update")
			a.logs("dialog", 1)
			Expect(a.Paste("lost")).To(Succeed())
			a.logs("dropped", 1)
			for n := 1; n <= 3; n++ {
				a.types("\r")
				a.logs("dialog", n+1)
			}
			a.types("2")
			a.logs("ready", 1)
			Expect(w.log.Count("submit")).To(BeZero())
		})

		It("dialogs=bypass: is silenced by the settings", func() {
			a := w.run("dialogs=bypass")
			a.logs("dialog", 1)
			a.types("\r")
			Expect(a.code()).To(Equal(1))
			w.ready("dialogs=bypass", "--settings", `{"skipDangerousModePermissionPrompt":true}`)
		})

		It("permission-dialog: a delivery's carriage return runs the tool, the text is lost", func() {
			a := w.ready("permission-dialog", "--settings", settings(""))
			a.types("go\r")
			a.logs("dialog", 1)
			Expect(a.Paste("an event")).To(Succeed())
			a.types("\r")
			a.shows("TOOL RAN")
			a.logs("reply", 1)
			Expect(w.log.Events("dialog-answered")[0].Option).To(Equal("Yes"))
			Expect(w.log.Submits()).To(Equal([]string{"go"}))
			Eventually(w.hooked).Should(Equal([]string{"SessionStart", "UserPromptSubmit", "PermissionRequest", "PostToolUse", "Stop"}))
		})

		It("permission-dialog: no is an interrupt", func() {
			a := w.ready("permission-dialog", "--settings", settings(""))
			a.types("go\r")
			a.logs("dialog", 1)
			a.types("3")
			a.logs("interrupted", 1)
			Expect(w.log.Count("tool-ran")).To(BeZero())
			Eventually(a.status).Should(Equal("idle"))
			Expect(w.hooked()).To(Equal([]string{"SessionStart", "UserPromptSubmit", "PermissionRequest"}))
		})

		It("permission-dialog: does not open when everything is allowed", func() {
			a := w.ready("permission-dialog", "--dangerously-skip-permissions")
			a.says("go")
			Expect(w.log.Count("tool-ran")).To(Equal(1))
			Expect(w.log.Count("dialog")).To(BeZero())
		})

		It("permission-dialog: a tool that is not allowed does not exist", func() {
			a := w.ready("permission-dialog=Edit", "--disallowedTools=Edit")
			a.says("go")
			a.shows("No such tool available: Edit")
		})

		It("ctrl-c-is-yes: H06 ^C at a dialog accepts it", func() {
			a := w.run("trust-dialog,ctrl-c-is-yes")
			a.logs("dialog", 1)
			a.types("\x03")
			a.logs("ready", 1)
		})

		It("permission-on-paste: opens between the paste and the carriage return", func() {
			a := w.ready("permission-on-paste")
			Expect(a.Paste("an event")).To(Succeed())
			a.logs("dialog", 1)
			a.types("\r")
			a.logs("tool-ran", 1)
			Expect(w.log.Count("submit")).To(BeZero())
		})

		It("question-dialog: pasted text becomes the answer", func() {
			a := w.ready("question-dialog", "--settings", settings(""))
			a.types("go\r")
			a.logs("dialog", 1)
			Expect(a.session()).To(HaveKeyWithValue("waitingFor", "input needed"))
			Expect(a.Paste("an event while asking")).To(Succeed())
			a.types("\r")
			Expect(a.logs("dialog-answered", 1).Text).To(Equal("an event while asking"))
			a.logs("reply", 1)
			Expect(w.log.Submits()).To(Equal([]string{"go"}))
		})

		It("question-dialog: cannot be asked when the tool is not allowed", func() {
			a := w.ready("question-dialog", "--disallowedTools", "AskUserQuestion")
			a.says("go")
			Expect(w.log.Count("dialog")).To(BeZero())
		})

		It("menu: P51 stays, and takes everything", func() {
			a := w.ready("")
			a.says("fake: menu")
			a.shows("This dialog stays")
			Expect(a.Paste("lost")).To(Succeed())
			a.logs("dropped", 1)
			Eventually(a.status).Should(Equal("waiting"))
			a.types("\x1b")
			Eventually(a.status).Should(Equal("idle"))
		})
	})

	Describe("of conversations", func() {
		It("new-id: goes on under another one and tells nobody", func() {
			a := w.ready("new-id", "--session-id", id1, "--settings", settings(""))
			a.says("hello")
			id := w.log.Events("new-id")[0].ID
			Eventually(a.session).Should(HaveKeyWithValue("sessionId", id))
			Eventually(func() int { return len(w.conversation(id)) }).Should(Equal(3))
			Expect(w.conversation(id1)).To(BeNil())
			Eventually(w.hooked).Should(Equal([]string{"SessionStart", "UserPromptSubmit", "Stop"}))
		})

		It("lose-resume: knows nothing", func() {
			w.ready("", "--session-id", id1).says("hello")
			Eventually(func() int { return len(w.conversation(id1)) }).Should(Equal(3))
			Expect(w.fails("lose-resume,resume-delay=1", "--resume", id1)).To(ContainSubstring("No conversation found"))
		})

		It("burnt-id: can be neither resumed nor reused", func() {
			a := w.ready("burnt-id", "--session-id", id1)
			a.types("hello\r")
			Expect(a.code()).To(Equal(-1))
			Expect(w.fails("resume-delay=1", "--resume", id1)).To(ContainSubstring("No conversation found"))
			Expect(w.fails("", "--session-id", id1)).To(ContainSubstring("already in use"))
		})
	})

	Describe("of the end", func() {
		It("ignore-term, ignore-hup: T22 does so", func() {
			a := w.ready("ignore-term,ignore-hup")
			Expect(a.Cmd.Process.Signal(syscall.SIGTERM)).To(Succeed())
			Expect(a.Cmd.Process.Signal(syscall.SIGHUP)).To(Succeed())
			a.logs("signal", 2)
			a.says("still here")
			a.HangUp()
			a.logs("signal", 3)
			Consistently(a.Done).ShouldNot(BeClosed())
		})

		DescribeTable("exits",
			func(behaviour, then string, code int) {
				a := w.run(behaviour)
				if then != "" {
					a.logs("ready", 1)
					a.types(then + "\r")
				}
				Expect(a.code()).To(Equal(code))
			},
			Entry("at once", "exit=3", "", 3),
			Entry("at once with 0", "exit", "", 0),
			Entry("later", "exit-after=50,exit=4", "", 4),
			Entry("at a prompt", "exit-at-prompt=5", "x", 5),
			Entry("when told", "", "fake: exit=6", 6),
			Entry("later when told", "", "fake: exit=7, exit-after=50", 7),
			Entry("by a crash at once", "crash", "", -1),
			Entry("by a crash later", "crash-after=50", "", -1),
			Entry("by a crash at a prompt", "crash-at-prompt", "x", -1),
			Entry("by a crash when told", "", "fake: crash", -1),
		)

		It("children: start in every way there is", func() {
			a := w.ready("children")
			a.logs("child", 5)
			kinds := []string{}
			for _, e := range w.log.Events("child") {
				kinds = append(kinds, e.Kind)
				DeferCleanup(func() { _ = syscall.Kill(e.PID, syscall.SIGKILL) })
			}
			Expect(kinds).To(ConsistOf("normal", "pgrp", "setsid", "nohup", "daemon-inner"))
			group := func(pid int) int {
				g, err := syscall.Getpgid(pid)
				Expect(err).NotTo(HaveOccurred())
				return g
			}
			for _, e := range w.log.Events("child") {
				same := group(e.PID) == group(a.Cmd.Process.Pid)
				Expect(same).To(Equal(e.Kind == "normal" || e.Kind == "nohup"), e.Kind)
				Expect(syscall.Kill(e.PID, syscall.SIGTERM)).To(Succeed())
			}
		})
	})

	Describe("of the start", func() {
		It("slow-start: H17 nothing for a while", func() {
			begun := time.Now()
			w.ready("slow-start=300")
			Expect(time.Since(begun)).To(BeNumerically(">=", 300*time.Millisecond))
		})

		It("never-ready: draws its prompt and says nothing", func() {
			a := w.run("never-ready", "--settings", settings(""))
			a.logs("not-ready", 1)
			a.shows("❯ Try")
			Consistently(w.hooked).Should(BeEmpty())
			Expect(a.session()).To(BeNil())
		})

		It("spin: burns processor time", func() {
			a := w.ready("spin")
			Eventually(func() bool {
				data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", a.Cmd.Process.Pid))
				f := strings.Fields(string(data))
				return len(f) > 13 && len(f[13]) > 1 // at least 0.1 s
			}).Should(BeTrue())
		})

		DescribeTable("rewrite-config: H09, H10 changes its file all the time",
			func(behaviour string) {
				Expect(os.MkdirAll(w.home, 0o700)).To(Succeed())
				path := filepath.Join(w.home, ".claude.json")
				Expect(os.WriteFile(path, []byte(`{"mine":1}`), 0o600)).To(Succeed())
				w.ready(behaviour)
				Eventually(func() string {
					data, _ := os.ReadFile(path)
					return string(data)
				}).Should(And(ContainSubstring("rewrites-")))
			},
			Entry(nil, "rewrite-config=500"),
			Entry(nil, "rewrite-config-torn=500"),
		)

		It("rewrite-config-times, cut-config: changes its file so often, and leaves it half written", func() {
			Expect(os.MkdirAll(w.home, 0o700)).To(Succeed())
			path := filepath.Join(w.home, ".claude.json")
			Expect(os.WriteFile(path, []byte(`{"mine":1}`), 0o600)).To(Succeed())
			a := w.ready("rewrite-config=500, rewrite-config-times=3")
			a.logs("rewritten", 1)
			Expect(os.ReadFile(path)).To(MatchRegexp(`"rewrites-\d+": 3`))
			a.says("fake: cut-config=5")
			Expect(os.ReadFile(path)).To(HaveLen(5))
		})
	})
})
