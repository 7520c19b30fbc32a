//go:build linux

package tmux

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	. "github.com/onsi/gomega"
)

var _ = with("The way of a text", func(bin string) {
	ctx := context.Background()

	It("C050: is a buffer and a framed paste, then a buffer and a paste for the return; no key is sent by name", func() {
		f := started(bin)
		t, got := f.reader("a")
		trace := func() string { return f.person("show-options", "-gqv", "@trace") }
		for _, c := range []string{"load-buffer", "set-buffer", "paste-buffer", "send-keys"} {
			f.person("set-hook", "-g", "after-"+c, "set-option -ga @trace '"+c+" '")
		}
		Expect(outcome(f.Paste(ctx, t, "d", []byte("two\nlines")))).To(Equal(Done))
		Eventually(got).Should(Equal(bracketed("two\nlines")))
		Expect(trace()).To(Equal("load-buffer paste-buffer "))
		Expect(outcome(f.Submit(ctx, t, "d"))).To(Equal(Done))
		Eventually(got).Should(Equal(bracketed("two\nlines") + "\r"))
		Expect(trace()).To(Equal("load-buffer paste-buffer set-buffer paste-buffer "))
		By("which would show a key")
		f.person("send-keys", "-t", t.PaneID, "x")
		Expect(trace()).To(HaveSuffix(" send-keys "))
	})

	It("P20: goes past a person who has scrolled up, and leaves him where he was", func() {
		f := started(bin)
		file := filepath.Join(f.dir, "got")
		t := f.spawn("a", "/bin/sh", "-c", `stty raw -echo; : >"$0"; for i in $(seq 300); do printf 'line %d\r\n' $i; done; printf '\033[?2004hREADY'; exec cat >>"$0"`, file)
		f.ready(t)
		where := func() string {
			return f.person("display-message", "-p", "-t", t.PaneID, "#{pane_mode} #{scroll_position}")
		}
		f.person("copy-mode", "-t", t.PaneID)
		f.person("send-keys", "-t", t.PaneID, "-X", "-N", "57", "scroll-up")
		Expect(where()).To(Equal("copy-mode 57"))
		want := ""
		for _, d := range []string{"d1", "d2"} {
			Expect(outcome(f.Paste(ctx, t, d, []byte("two\nlines")))).To(Equal(Done))
			Expect(where()).To(Equal("copy-mode 57"))
			Expect(outcome(f.Submit(ctx, t, d))).To(Equal(Done))
			Expect(where()).To(Equal("copy-mode 57"))
			want += bracketed("two\nlines") + "\r"
			Eventually(func() string { return fileText(file) }).Should(Equal(want))
		}
		Expect(f.person("show-options", "-p", "-t", t.PaneID)).NotTo(ContainSubstring(scrollOption))
		By("not scrolling for one who looks at the end")
		f.person("copy-mode", "-q", "-t", t.PaneID)
		Expect(outcome(f.Paste(ctx, t, "d3", []byte("x")))).To(Equal(Done))
		Expect(where()).To(Equal(" "))
	})

	It("C054: is its own when texts go to many sessions at the same moment", func() {
		f := started(bin)
		const sessions, rounds = 4, 10
		var all sync.WaitGroup
		var wants [sessions]string
		var gots [sessions]func() string
		for i := range sessions {
			var t Target
			t, gots[i] = f.reader(fmt.Sprint("s", i))
			var want strings.Builder
			for round := range rounds {
				want.WriteString(bracketed(fmt.Sprintf("text %d\nfor session %d", round, i)) + "\r")
			}
			wants[i] = want.String()
			all.Go(func() {
				defer GinkgoRecover()
				for round := range rounds {
					// The same id in each session: not even then is a buffer shared.
					d := fmt.Sprint("d", round)
					Expect(outcome(f.Paste(ctx, t, d, fmt.Appendf(nil, "text %d\nfor session %d", round, i)))).To(Equal(Done))
					Expect(outcome(f.Submit(ctx, t, d))).To(Equal(Done))
				}
			})
		}
		all.Wait()
		for i := range sessions {
			Eventually(gots[i]).Should(Equal(wants[i]))
		}
		Expect(f.person("list-buffers")).To(BeEmpty())
	})
})
