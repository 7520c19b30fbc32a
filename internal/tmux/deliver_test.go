//go:build linux

package tmux

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"

	. "github.com/onsi/gomega"
)

var _ = with("Paste and Submit", func(bin string) {
	ctx := context.Background()

	// noBuffers is true when no text was left in the server.
	noBuffers := func(f *fixture) {
		GinkgoHelper()
		Eventually(func() string { return f.person("list-buffers") }).Should(BeEmpty())
	}

	It("types a text once as one bracketed paste, and the return that submits it once and after it", func() {
		f := started(bin)
		t, got := f.reader("a")
		text := "first\nsecond\n\nlast; #{pid} $(id) `id` ' \" \\ ;"
		Expect(outcome(f.Submit(ctx, t, "d1"))).To(Equal(Refused))
		Expect(outcome(f.Paste(ctx, t, "d1", []byte(text)))).To(Equal(Done))
		Expect(outcome(f.Paste(ctx, t, "d1", []byte(text)))).To(Equal(Already))
		Expect(f.session("a")).To(And(HaveField("Pasted", "d1"), HaveField("Submitted", "")))
		Eventually(got).Should(Equal(bracketed(text)))
		Expect(outcome(f.Submit(ctx, t, "d1"))).To(Equal(Done))
		Expect(outcome(f.Submit(ctx, t, "d1"))).To(Equal(Already))
		Expect(outcome(f.Paste(ctx, t, "d1", []byte(text)))).To(Equal(Already))
		Expect(f.session("a")).To(And(HaveField("Pasted", "d1"), HaveField("Submitted", "d1")))
		Expect(outcome(f.Paste(ctx, t, "d2", []byte("next")))).To(Equal(Done))
		r, err := f.Submit(ctx, t, "d0")
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Outcome).To(Equal(Refused))
		Expect(r.Detail).To(ContainSubstring(`pasted="d2"`))
		Expect(outcome(f.Submit(ctx, t, "d2"))).To(Equal(Done))
		Eventually(got).Should(Equal(bracketed(text) + "\r" + bracketed("next") + "\r"))
		noBuffers(f)
	})

	It("sends a second return once, and only for what was submitted", func() {
		f := started(bin)
		t, got := f.reader("a")
		Expect(outcome(f.Paste(ctx, t, "d1", []byte("x")))).To(Equal(Done))
		Expect(outcome(f.Resubmit(ctx, t, "d1"))).To(Equal(Refused))
		Expect(outcome(f.Submit(ctx, t, "d1"))).To(Equal(Done))
		Expect(outcome(f.Resubmit(ctx, t, "d1"))).To(Equal(Done))
		Expect(outcome(f.Resubmit(ctx, t, "d1"))).To(Equal(Refused))
		Expect(outcome(f.Submit(ctx, t, "d1"))).To(Equal(Already))
		Eventually(got).Should(Equal(bracketed("x") + "\r\r"))
		Expect(outcome(f.Paste(ctx, t, "d2", []byte("y")))).To(Equal(Done))
		Expect(outcome(f.Resubmit(ctx, t, "d1"))).To(Equal(Refused))
		noBuffers(f)
	})

	It("P31: brings every printable character and up to 1 MiB byte for byte", func() {
		f := started(bin)
		t, got := f.reader("a")
		var all strings.Builder
		for c := byte(' '); c < 0x7f; c++ {
			all.WriteByte(c)
		}
		all.WriteString("\t\n\n äöü ß € 日本語 한국어 עברית عربى 👩‍👩‍👧‍👦 🇩🇪 e\u0301 \u00a0\u2028 𝕏\n;")
		var big strings.Builder
		for i := 0; big.Len() < 1<<20-100; i++ {
			fmt.Fprintf(&big, "%d: %s\n", i, strings.Repeat("aä日👍", rand.IntN(20)))
		}
		want := ""
		for i, text := range []string{"x", ";", " ", "\n", "-", all.String(), big.String()} {
			Expect(outcome(f.Paste(ctx, t, fmt.Sprint("d", i), []byte(text)))).To(Equal(Done))
			want += bracketed(text)
		}
		Eventually(func() bool { return got() == want }).Should(BeTrue())
		noBuffers(f)
	})

	It("T06: refuses a dead pane, and the server with all sessions survives", func() {
		f := started(bin)
		f.spawn("other")
		t := f.spawn("dead", "/bin/sh", "-c", "exit 1")
		f.died("dead")
		r, err := f.Paste(ctx, t, "d", []byte("x"))
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Outcome).To(Equal(Refused))
		Expect(r.Detail).To(ContainSubstring("dead=true"))
		Expect(outcome(f.Submit(ctx, t, "d"))).To(Equal(Refused))
		Expect(f.snapshot().Epoch).To(Equal(f.epoch))
		Expect(f.names()).To(ConsistOf("other", "dead"))
		noBuffers(f)
	})

	It("T06: 200 pastes into panes that are dying do not harm the server", func() {
		f := started(bin)
		f.spawn("witness")
		var all sync.WaitGroup
		for worker := range 4 {
			all.Go(func() {
				defer GinkgoRecover()
				for i := range 50 {
					// The program ends on its first input, or by itself about when that comes.
					end := fmt.Sprintf("sleep 0.0%02d", rand.IntN(15))
					if i%2 == 0 {
						end = "head -c 1 >/dev/null"
					}
					uid := newUID()
					sp, err := f.Spawn(ctx, SpawnRequest{Name: fmt.Sprintf("w%d-%d", worker, i), UID: uid, Generation: "1", Dir: f.dir, Argv: []string{"/bin/sh", "-c", end}})
					Expect(err).NotTo(HaveOccurred())
					t := Target{UID: uid, SessionID: sp.SessionID, PaneID: sp.PaneID, Epoch: sp.Epoch}
					for _, d := range []string{"d1", "d2", "d3"} {
						Expect(outcome(f.Paste(ctx, t, d, []byte("a\nb\n")))).To(BeElementOf(Done, Refused, NotReady))
						Expect(outcome(f.Submit(ctx, t, d))).To(BeElementOf(Done, Refused))
					}
				}
			})
		}
		all.Wait()
		Expect(f.snapshot().Epoch).To(Equal(f.epoch))
		Expect(f.snapshot().Sessions).To(HaveLen(201))
		noBuffers(f)
	})

	for mode, enter := range map[string][]string{
		"copy mode": {"copy-mode"}, "a tree": {"choose-tree"}, "a clock": {"clock-mode"}, "two modes": {"copy-mode", "choose-tree"},
	} {
		It("P20: leaves "+mode+" first, so that the paste stays one paste", func() {
			f := started(bin)
			t, got := f.reader("a")
			for _, command := range enter {
				f.person(command, "-t", t.PaneID)
			}
			Expect(f.session("a").Panes[0].InMode).To(BeTrue())
			Expect(outcome(f.Paste(ctx, t, "d", []byte("two\nlines")))).To(Equal(Done))
			f.person("copy-mode", "-t", t.PaneID)
			Expect(outcome(f.Submit(ctx, t, "d"))).To(Equal(Done))
			Eventually(got).Should(Equal(bracketed("two\nlines") + "\r"))
		})
	}

	It("refuses while the input is off, and not when it is on again", func() {
		f := started(bin)
		t, got := f.reader("a")
		Expect(outcome(f.SetInput(ctx, t, false))).To(Equal(Done))
		r, err := f.Paste(ctx, t, "d", []byte("x"))
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Outcome).To(Equal(Refused))
		Expect(r.Detail).To(ContainSubstring("inputOff=true"))
		Expect(f.session("a").Pasted).To(BeEmpty())
		Expect(outcome(f.SetInput(ctx, t, true))).To(Equal(Done))
		Expect(outcome(f.Paste(ctx, t, "d", []byte("x")))).To(Equal(Done))
		Expect(outcome(f.SetInput(ctx, t, false))).To(Equal(Done))
		Expect(outcome(f.Submit(ctx, t, "d"))).To(Equal(Refused))
		Expect(outcome(f.SetInput(ctx, t, true))).To(Equal(Done))
		Expect(outcome(f.Submit(ctx, t, "d"))).To(Equal(Done))
		Eventually(got).Should(Equal(bracketed("x") + "\r"))
		noBuffers(f)
	})

	It("N02, C062, P43: types into the recorded pane, whatever a person splits, opens, links, renames or synchronises", func() {
		f := started(bin)
		t, got := f.reader("a")
		shell := filepath.Join(f.dir, "shell")
		f.person("split-window", "-t", "=a:", "cat >"+shell+"1")
		f.person("set-option", "-w", "-t", "=a:", "synchronize-panes", "on")
		f.person("new-window", "-t", "=a:", "cat >"+shell+"2")
		f.person("new-session", "-d", "-t", "=a", "-s", "group")
		f.person("rename-session", "-t", "=a:", "renamed")
		f.spawn("a", "/bin/sh", "-c", "cat >"+shell+"3")
		person := typeLine(f.AttachCommand("group", false))
		Eventually(func() string { return f.person("list-clients", "-F", "#{client_session}") }).Should(Equal("group"))
		Expect(outcome(f.Paste(ctx, t, "d", []byte("x")))).To(Equal(Done))
		Expect(outcome(f.Submit(ctx, t, "d"))).To(Equal(Done))
		Eventually(got).Should(Equal(bracketed("x") + "\r"))
		for _, n := range []string{"1", "2", "3"} {
			Eventually(shell + n).Should(BeAnExistingFile())
			Expect(fileText(shell + n)).To(BeEmpty())
		}
		f.person("detach-client", "-s", "=group")
		Expect(person.wait()).To(Succeed())
	})

	It("N01, C055: types nothing when its session is gone, not even into the prefix twin that a person looks at", func() {
		f := started(bin)
		t, _ := f.reader("loop-a-1")
		_, got := f.reader("loop-a-12")
		person := typeLine(f.AttachCommand("loop-a-12", false))
		Eventually(func() string { return f.person("list-clients", "-F", "#{client_session}") }).Should(Equal("loop-a-12"))
		Expect(outcome(f.KillSession(ctx, t))).To(Equal(Done))
		Expect(outcome(f.Paste(ctx, t, "d", []byte("rm -rf /")))).To(Equal(Gone))
		Expect(outcome(f.Submit(ctx, t, "d"))).To(Equal(Gone))
		Expect(f.session("loop-a-12").Pasted).To(BeEmpty())
		Expect(got()).To(BeEmpty())
		noBuffers(f)
		f.person("detach-client", "-s", "=loop-a-12")
		Expect(person.wait()).To(Succeed())
	})

	It("types nothing into what is left of a session when the pane itself is gone", func() {
		f := started(bin)
		t, _ := f.reader("a")
		shell := filepath.Join(f.dir, "shell")
		f.person("split-window", "-t", "=a:", "cat >"+shell)
		person := typeLine(f.AttachCommand("a", false))
		Eventually(func() string { return f.person("list-clients", "-F", "#{client_session}") }).Should(Equal("a"))
		f.person("kill-pane", "-t", t.PaneID)
		Expect(outcome(f.Paste(ctx, t, "d", []byte("x")))).To(Equal(Gone))
		Expect(outcome(f.Submit(ctx, t, "d"))).To(Equal(Gone))
		Expect(outcome(f.SetInput(ctx, t, false))).To(Equal(Gone))
		_, err := f.Capture(ctx, t, 0)
		Expect(err).To(MatchError(ErrAbsent))
		Expect(fileText(shell)).To(BeEmpty())
		noBuffers(f)
		f.person("detach-client", "-s", "=a")
		Expect(person.wait()).To(Succeed())
	})

	It("types nothing into a pane that a person moved into a session of his own", func() {
		f := started(bin)
		t, got := f.reader("a")
		f.person("split-window", "-t", "=a:")
		f.person("new-session", "-d", "-s", "theirs")
		f.person("join-pane", "-s", t.PaneID, "-t", "=theirs:")
		Expect(outcome(f.Paste(ctx, t, "d", []byte("x")))).To(Equal(Gone))
		Expect(f.session("a").Pasted).To(BeEmpty())
		Expect(got()).To(BeEmpty())
		noBuffers(f)
	})

	It("refuses another stamp and another epoch", func() {
		f := started(bin)
		t, got := f.reader("a")
		other := t
		other.UID = newUID()
		r, err := f.Paste(ctx, other, "d", []byte("x"))
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Outcome).To(Equal(Refused))
		Expect(r.Detail).To(And(ContainSubstring("not ours"), ContainSubstring(t.UID)))
		other = t
		other.Epoch.StartTime--
		Expect(outcome(f.Paste(ctx, other, "d", []byte("x")))).To(Equal(Refused))
		other = t
		other.Epoch.PID++
		Expect(outcome(f.Submit(ctx, other, "d"))).To(Equal(Refused))
		f.person("set-option", "-u", "-t", "=a:", "@loop_uid")
		Expect(outcome(f.Paste(ctx, t, "d", []byte("x")))).To(Equal(Refused))
		f.person("set-option", "-t", "=a:", "@loop_uid", t.UID+"|0")
		Expect(outcome(f.Paste(ctx, t, "d", []byte("x")))).To(Equal(Refused))
		f.person("set-option", "-t", "=a:", "@loop_uid", t.UID)
		Expect(outcome(f.Paste(ctx, t, "d", []byte("x")))).To(Equal(Done))
		Eventually(got).Should(Equal(bracketed("x")))
		noBuffers(f)
	})

	It("T05, P44: a new server voids every target of the old one, though its ids begin anew", func() {
		f := started(bin)
		t := f.spawn("a")
		killPID(f.epoch.PID)
		Eventually(func() (err error) { f.epoch, err = f.Ensure(ctx); return err }).Should(Succeed())
		again, got := f.reader("a")
		Expect(again.PaneID).To(Equal(t.PaneID))
		Expect(again.SessionID).To(Equal(t.SessionID))
		Expect(outcome(f.Paste(ctx, t, "d", []byte("x")))).To(Equal(Refused))
		t.UID = again.UID
		Expect(outcome(f.Paste(ctx, t, "d", []byte("x")))).To(Equal(Refused))
		Expect(outcome(f.KillSession(ctx, t))).To(Equal(Refused))
		Expect(outcome(f.ClearDead(ctx, t.SessionID, t.UID, t.Epoch))).To(Equal(Refused))
		Expect(outcome(f.Signal(ctx, t, 15))).To(Equal(Refused))
		Expect(outcome(f.Retain(ctx, t))).To(Equal(Refused))
		Expect(outcome(f.SetInput(ctx, t, false))).To(Equal(Refused))
		_, err := f.Capture(ctx, t, 0)
		Expect(err).To(MatchError(ErrRefused))
		Expect(got()).To(BeEmpty())
	})

	It("takes a marker that a person has set for what it is", func() {
		f := started(bin)
		t, got := f.reader("a")
		for i, junk := range []string{"x|y", "line\nbreak", "#{pid}", "}", ",", "\x01", "é", " d0"} {
			f.person("set-option", "-t", "=a:", "@loop_pasted", junk)
			Expect(outcome(f.Submit(ctx, t, fmt.Sprint("d", i)))).To(Equal(Refused))
			Expect(outcome(f.Paste(ctx, t, fmt.Sprint("d", i), []byte("x")))).To(Equal(Done))
		}
		Eventually(got).Should(Equal(strings.Repeat(bracketed("x"), 8)))
	})

	It("pastes once when two try the same delivery at once", func() {
		f := started(bin)
		t, got := f.reader("a")
		want := ""
		for round := range 5 {
			outcomes := make(chan Outcome, 4)
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					defer GinkgoRecover()
					outcomes <- outcome(f.Paste(ctx, t, fmt.Sprint("d", round), []byte("x")))
				})
			}
			all.Wait()
			close(outcomes)
			var seen []Outcome
			for o := range outcomes {
				seen = append(seen, o)
			}
			Expect(seen).To(ConsistOf(Done, Already, Already, Already))
			want += bracketed("x")
		}
		Eventually(got).Should(Equal(want))
		noBuffers(f)
	})

	It("T06, C057: says unknown while the server hangs, and trying again afterwards types it once", func() {
		f := started(bin)
		t, got := f.reader("a")
		goOn := f.hang()
		_, err := f.Paste(ctx, t, "d", []byte("x"))
		Expect(err).To(MatchError(ErrUnknown))
		_, err = f.Submit(ctx, t, "d")
		Expect(err).To(MatchError(ErrUnknown))
		goOn()
		Eventually(func() (Outcome, error) { r, err := f.Paste(ctx, t, "d", []byte("x")); return r.Outcome, err }).Should(BeElementOf(Done, Already))
		Eventually(func() (Outcome, error) { r, err := f.Submit(ctx, t, "d"); return r.Outcome, err }).Should(BeElementOf(Done, Already))
		Eventually(got).Should(Equal(bracketed("x") + "\r"))
		noBuffers(f)
	})

	It("removes in time what a killed delivery left in the server, and nothing of anybody else", func() {
		f := started(bin)
		left := bufferName("d1")
		for _, b := range []string{left, "loop-mine", "theirs"} {
			f.person("set-buffer", "-b", b, "text")
		}
		_, err := f.Ensure(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(f.person("list-buffers", "-F", "#{buffer_name}")).To(ContainSubstring(left), "it may be in use")
		f.dropBuffers(ctx, 0)
		Expect(strings.Fields(f.person("list-buffers", "-F", "#{buffer_name}"))).To(ConsistOf("loop-mine", "theirs"))
	})

	It("C051, P22: types for people who may only look", func() {
		f := started(bin)
		t, got := f.reader("a")
		person := typeLine(f.AttachCommand("a", true))
		Eventually(func() string { return f.person("list-clients", "-F", "#{client_session} #{client_readonly}") }).Should(Equal("a 1"))
		person.types("not me")
		Expect(outcome(f.Paste(ctx, t, "d", []byte("x")))).To(Equal(Done))
		Expect(outcome(f.Submit(ctx, t, "d"))).To(Equal(Done))
		Eventually(got).Should(Equal(bracketed("x") + "\r"))
		f.person("detach-client", "-s", "=a")
		Expect(person.wait()).To(Succeed())
	})

	It("P06: types nothing before the application is ready, where tmux can tell", func() {
		f := started(bin)
		if f.olderThan(parseVersion("3.7")) {
			Skip("tmux before 3.7 cannot tell")
		}
		t := f.spawn("a", "/bin/sh", "-c", "exec cat")
		Expect(outcome(f.Paste(ctx, t, "d", []byte("x")))).To(Equal(NotReady))
		Expect(f.session("a").Pasted).To(BeEmpty())
		noBuffers(f)
	})

	It("refuses what cannot be meant, before tmux is asked", func() {
		f := unstarted(bin)
		good := Target{UID: "u", SessionID: "$1", PaneID: "%1", Epoch: Epoch{PID: 2, StartTime: 3}}
		_, err := f.Paste(ctx, good, "d", nil)
		Expect(err).To(MatchError(ContainSubstring("the text is empty")))
		for _, d := range []string{"", "a b", "a;b", "#{x}", "ä", "d\n", strings.Repeat("d", 65)} {
			_, err = f.Paste(ctx, good, d, []byte("x"))
			Expect(err).To(MatchError(ContainSubstring("delivery id")), "%q", d)
			_, err = f.Submit(ctx, good, d)
			Expect(err).To(MatchError(ContainSubstring("delivery id")), "%q", d)
		}
		for _, bad := range []func(*Target){
			func(t *Target) { t.UID = "" }, func(t *Target) { t.UID = "a'b" }, func(t *Target) { t.SessionID = "loop-a-1" },
			func(t *Target) { t.SessionID = "=a:" }, func(t *Target) { t.SessionID = "" }, func(t *Target) { t.PaneID = "" },
			func(t *Target) { t.PaneID = "%1;" }, func(t *Target) { t.PaneID = "$1" }, func(t *Target) { t.Epoch = Epoch{} },
		} {
			t := good
			bad(&t)
			_, err := f.Paste(ctx, t, "d", []byte("x"))
			Expect(err).To(MatchError(ContainSubstring("the target's")), "%+v", t)
			Expect(err).NotTo(MatchError(ErrUnknown))
		}
		Expect(outcome(f.Paste(ctx, good, "d", []byte("x")))).To(Equal(Gone), "without a server nothing is there")
	})
})

var _ = with("Capture", func(bin string) {
	ctx := context.Background()

	It("T30: shows what is visible or also the history, in UTF-8, with wrapped lines joined, of dead panes too", func() {
		f := started(bin)
		long := strings.Repeat("0123456789", 30)
		t := f.ended("a", "seq 1 100; echo "+long+"; echo '❯ é日本 😀'; echo LOOP-END")
		text, err := f.Capture(ctx, t, 0)
		Expect(err).NotTo(HaveOccurred())
		Expect(text).To(And(ContainSubstring("\n"+long+"\n"), ContainSubstring("\n❯ é日本 😀\nLOOP-END\n"), Not(ContainSubstring("\n2\n"))))
		text, err = f.Capture(ctx, t, 20)
		Expect(err).NotTo(HaveOccurred())
		Expect(text).NotTo(HavePrefix("1\n"))
		text, err = f.Capture(ctx, t, -1)
		Expect(err).NotTo(HaveOccurred())
		Expect(text).To(HavePrefix("1\n2\n"))
	})

	It("tells the visible rows as they are drawn, and where the cursor stands", func() {
		f := started(bin)
		t := f.spawn("a", "/bin/sh", "-c", `printf 'READY\r\n\033[1mbold\033[0m \033[2mdim\033[0m\r\n%0400d\r\n❯ \033[7mx\033[0m\033[1D' 7; exec sleep infinity`)
		f.ready(t)
		var s Screen
		Eventually(func() (string, error) {
			var err error
			s, err = f.Screen(ctx, t)
			return s.Text, err
		}).Should(ContainSubstring("❯ \x1b[7mx"))
		Expect(s.Text).To(And(HavePrefix("READY\n\x1b[1mbold\x1b[0m"), ContainSubstring("\x1b[2mdim"), Not(ContainSubstring(strings.Repeat("0", 399)+"7"))))
		Expect(s.CursorX).To(Equal(2))
		Expect(strings.Split(s.Text, "\n")[s.CursorY]).To(HavePrefix("❯ "))
		By("seeing past the mode in which a person scrolls")
		f.person("copy-mode", "-t", "=a:")
		again, err := f.Screen(ctx, t)
		Expect(err).NotTo(HaveOccurred())
		Expect(again).To(Equal(s))
		t.UID = "somebody-else"
		_, err = f.Screen(ctx, t)
		Expect(err).To(MatchError(ErrRefused))
	})

	It("N01: shows nothing of another session", func() {
		f := started(bin)
		t := f.spawn("loop-a-1")
		other := f.spawn("loop-a-12", "/bin/sh", "-c", "echo READY; exec sleep infinity")
		f.ready(other)
		Expect(outcome(f.KillSession(ctx, t))).To(Equal(Done))
		_, err := f.Capture(ctx, t, 0)
		Expect(err).To(MatchError(ErrAbsent))
		other.UID = "somebody-else"
		_, err = f.Capture(ctx, other, 0)
		Expect(err).To(MatchError(ErrRefused))
	})
})
