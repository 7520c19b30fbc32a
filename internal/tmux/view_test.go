//go:build linux

package tmux

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync"

	. "github.com/onsi/gomega"
)

// shownBy collects what a view draws until it ends.
func shownBy(v *View) (text func() string, ended func() bool) {
	var mu sync.Mutex
	var out strings.Builder
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 4096)
		for {
			n, err := v.Read(buf)
			mu.Lock()
			out.Write(buf[:n])
			mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	DeferCleanup(func() {
		v.Close()
		<-done
	})
	text = func() string {
		mu.Lock()
		defer mu.Unlock()
		return out.String()
	}
	ended = func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
	return text, ended
}

var _ = with("View", func(bin string) {
	view := func(f *fixture, t Target) *View {
		GinkgoHelper()
		l, err := f.Look(GinkgoT().Context(), t)
		size := l.Size
		if err != nil { // there is none
			size = Size{80, 24}
		}
		v, err := f.View(t, size)
		Expect(err).NotTo(HaveOccurred())
		return v
	}
	look := func(f *fixture, t Target) Look {
		GinkgoHelper()
		l, err := f.Look(GinkgoT().Context(), t)
		Expect(err).NotTo(HaveOccurred())
		return l
	}

	It("N11: shows exactly this session of two whose names begin alike, read-only and without changing its size", func() {
		f := started(bin)
		a := f.spawn("loop-a-1", "/bin/sh", "-c", "printf READY-ONE; exec sleep infinity")
		b := f.spawn("loop-a-12", "/bin/sh", "-c", "printf READY-TWELVE; exec sleep infinity")
		before := look(f, a).Size
		va, vb := view(f, a), view(f, b)
		one, _ := shownBy(va)
		twelve, _ := shownBy(vb)
		Eventually(one).Should(ContainSubstring("READY-ONE"))
		Eventually(twelve).Should(ContainSubstring("READY-TWELVE"))
		Expect(one()).NotTo(ContainSubstring("TWELVE"))
		Expect(f.person("list-clients", "-t", "=loop-a-1", "-F", "#{client_pid} #{client_readonly}")).To(Equal(strconv.Itoa(va.PID()) + " 1"))
		Expect(look(f, a).Clients).To(Equal([]int{va.PID()}))
		Expect(look(f, a).Size).To(Equal(before))
	})

	It("U12: shows nothing but why, when the session is another one now or none", func() {
		f := started(bin)
		t := f.spawn("a")
		f.spawn("b")
		other := t
		other.UID = newUID()
		text, ended := shownBy(view(f, other))
		Eventually(ended).Should(BeTrue())
		Expect(text()).To(ContainSubstring(refusedMark))
		Expect(f.person("list-clients")).To(BeEmpty())
		gone := t
		gone.SessionID = "$999"
		_, ended = shownBy(view(f, gone))
		Eventually(ended).Should(BeTrue())
	})

	It("U12: ends with its session and goes to no other one", func() {
		f := started(bin)
		t := f.spawn("a", "/bin/sh", "-c", "printf READY; exec sleep infinity")
		f.spawn("b", "/bin/sh", "-c", "printf OTHER; exec sleep infinity")
		text, ended := shownBy(view(f, t))
		Eventually(text).Should(ContainSubstring("READY"))
		Expect(outcome(f.KillSession(GinkgoT().Context(), t))).To(Equal(Done))
		Eventually(ended).Should(BeTrue())
		Expect(text()).NotTo(ContainSubstring("OTHER"))
	})

	It("ends alone when it is closed, by the hang-up of its terminal, also while it is read", func() {
		f := started(bin)
		t := f.spawn("a", "/bin/sh", "-c", "printf READY; exec sleep infinity")
		v := view(f, t)
		text, ended := shownBy(v)
		Eventually(text).Should(ContainSubstring("READY"))
		Expect(v.Resize(look(f, t).Size)).To(Succeed())
		v.Close()
		Expect(v.client.ProcessState.ExitCode()).To(Equal(1), "it was not killed: %s", v.client.ProcessState)
		Eventually(ended).Should(BeTrue())
		Expect(gonePID(v.PID())).To(BeTrue())
		Expect(look(f, t)).To(And(HaveField("Live", true), HaveField("Clients", BeEmpty())))
	})

	It("U07: types every byte as it is, whatever keys it stands for", func() {
		f := started(bin)
		t, got := f.reader("a")
		f.spawn("b")
		v := view(f, t)
		text, _ := shownBy(v)
		Eventually(text).Should(ContainSubstring("READY"))
		// The prefix and what lists, switches and commands sessions behind it, Ctrl-C, Ctrl-D.
		keys := "a\x02s\x02)\x02:kill-server\r\x03\x04\x1a\x7f\t\x1b[3~\x1bOP\x1b[98;5uéü;\n"
		Expect(outcome(f.Keys(GinkgoT().Context(), t, []byte(keys)))).To(Equal(Done))
		Eventually(got).Should(Equal(keys))
		Expect(f.names()).To(ConsistOf("a", "b"))
		Expect(look(f, t).Clients).To(Equal([]int{v.PID()}))
		Expect(f.person("list-buffers")).To(BeEmpty())
	})

	It("U07: sends cursor keys in the form that the application asked for", func() {
		f := started(bin)
		t, got := f.reader("a")
		Expect(outcome(f.Keys(GinkgoT().Context(), t, []byte("\x1bOA\x1b[B;x")))).To(Equal(Done))
		Eventually(got).Should(Equal("\x1b[A\x1b[B;x"))
		asks := f.spawn("b", "/bin/sh", "-c", `stty raw -echo; : >"$0"; printf '\033[?1hREADY'; exec cat >>"$0"`, f.dir+"/b.got")
		f.ready(asks)
		Expect(outcome(f.Keys(GinkgoT().Context(), asks, []byte("\x1bOA\x1b[B;x")))).To(Equal(Done))
		Eventually(func() string { return read(f.dir + "/b.got") }).Should(Equal("\x1bOA\x1bOB;x"))
		Expect(f.person("list-buffers")).To(BeEmpty())
	})

	It("U08: frames a paste where the application asks for it", func() {
		f := started(bin)
		t, got := f.reader("a")
		lines := strings.Repeat("line\n", 2000)
		Expect(outcome(f.PasteKeys(GinkgoT().Context(), t, lines))).To(Equal(Done))
		Eventually(got).Should(Equal(bracketed(lines)))
		plain := f.spawn("b", "/bin/sh", "-c", `stty raw -echo; : >"$0"; printf READY; exec cat >>"$0"`, f.dir+"/b.got")
		f.ready(plain)
		Expect(outcome(f.PasteKeys(GinkgoT().Context(), plain, "x\ny"))).To(Equal(Done))
		Eventually(func() string { return read(f.dir + "/b.got") }).Should(Equal("x\ny"))
	})

	It("W13: types into the recorded pane, and only while it is what a viewer sees", func() {
		f := started(bin)
		t, got := f.reader("a")
		f.person("split-window", "-t", "=a:", "--", "/bin/cat")
		Expect(look(f, t).InFront).To(BeFalse())
		Expect(outcome(f.Keys(GinkgoT().Context(), t, []byte("x")))).To(Equal(Refused))
		f.person("select-pane", "-t", t.PaneID)
		Expect(look(f, t).InFront).To(BeTrue())
		Expect(outcome(f.Keys(GinkgoT().Context(), t, []byte("y")))).To(Equal(Done))
		Eventually(got).Should(Equal("y"))
		f.person("new-window", "-t", "=a:", "--", "/bin/cat")
		Expect(outcome(f.Keys(GinkgoT().Context(), t, []byte("x")))).To(Equal(Refused))
		Consistently(got, "100ms").Should(Equal("y"))
	})

	It("U10: types nothing into a pane that has ended, and says how large and dead it is", func() {
		f := started(bin)
		t := f.ended("a", "echo; echo LAST-WORDS")
		l := look(f, t)
		Expect(l.Live).To(BeFalse())
		Expect(l.Size).To(Equal(Size{200, 51}))
		Expect(outcome(f.Keys(GinkgoT().Context(), t, []byte("x")))).To(Equal(Refused))
		Expect(outcome(f.PasteKeys(GinkgoT().Context(), t, "x"))).To(Equal(Refused))
		Expect(f.person("list-buffers")).To(BeEmpty())
		text, _ := shownBy(view(f, t))
		Eventually(text).Should(ContainSubstring("LAST-WORDS"))
	})

	It("refuses what cannot be a size or keys", func() {
		f := started(bin)
		t := f.spawn("a")
		_, err := f.View(t, Size{0, 30})
		Expect(err).To(MatchError(ContainSubstring("1 to 4096 columns and rows, not 0x30")))
		_, err = f.Keys(context.Background(), t, make([]byte, 4097))
		Expect(err).To(MatchError(ContainSubstring("1 to 4096 are typed at a time")))
		_, err = f.PasteKeys(context.Background(), t, "")
		Expect(err).To(MatchError(ContainSubstring("empty")))
	})
})

var _ = with("the hub", func(bin string) {
	It("is shared, lists the sessions, is no session of ours, and ends alone", func() {
		f := started(bin)
		f.spawn("loop-a-1")
		argv, env := f.HubCommand(false)
		line := "env " + strings.Join(quoteAll(env), " ") + " " + strings.Join(quoteAll(argv), " ")
		first := typeLine(line)
		Eventually(first.shown).Should(ContainSubstring("loop-a-1"))
		second := typeLine(line)
		Eventually(second.shown).Should(ContainSubstring("loop-a-1"))
		Expect(f.person("list-clients", "-F", "#{client_session} #{client_readonly}")).To(Equal("the-loop-hub 1\nthe-loop-hub 1"))
		Expect(f.names()).To(ConsistOf("loop-a-1"))
		argv, _ = f.HubCommand(true)
		writable := typeLine("env " + strings.Join(quoteAll(env), " ") + " " + strings.Join(quoteAll(argv), " "))
		Eventually(func() string { return f.person("list-clients", "-F", "#{client_readonly}") }).Should(ContainSubstring("0"))
		Expect(f.EndHub(GinkgoT().Context())).To(Succeed())
		for _, t := range []*terminal{first, second, writable} {
			Expect(t.wait()).To(Succeed())
		}
		Expect(f.names()).To(ConsistOf("loop-a-1"))
		Expect(f.EndHub(GinkgoT().Context())).To(Succeed())
	})

	It("starts no server", func() {
		f := unstarted(bin)
		argv, env := f.HubCommand(true)
		lost := typeLine("env " + strings.Join(quoteAll(env), " ") + " " + strings.Join(quoteAll(argv), " "))
		Expect(lost.wait()).NotTo(Succeed())
		Eventually(lost.shown).Should(MatchRegexp("no server running|error connecting"))
	})
})

func quoteAll(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = shellQuote(w)
	}
	return out
}

func read(file string) string {
	data, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	return string(data)
}
