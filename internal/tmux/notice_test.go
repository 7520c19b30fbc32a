//go:build linux

package tmux

import (
	"context"

	. "github.com/onsi/gomega"
)

var _ = with("Notice", func(bin string) {
	ctx := context.Background()

	It("shows a text in the status line of our session alone, and takes it away again", func() {
		f := started(bin)
		t, _ := f.reader("a")
		f.reader("b")
		before := f.person("display-message", "-p", "-t", "=a:", "#{T:status-right}")
		Expect(outcome(f.Notice(ctx, t, "draft-2", "the-loop: 2 messages wait"))).To(Equal(Done))
		Expect(f.person("display-message", "-p", "-t", "=a:", "#{T:status-right}")).To(Equal(" the-loop: 2 messages wait "))
		Expect(f.session("a").Notice).To(Equal("draft-2"))
		Expect(f.session("b").Notice).To(BeEmpty())
		Expect(f.person("show-options", "-t", "=b:")).NotTo(ContainSubstring("status-right"))
		Expect(outcome(f.Notice(ctx, t, "", ""))).To(Equal(Done))
		Expect(f.session("a").Notice).To(BeEmpty())
		Expect(f.person("show-options", "-t", "=a:")).NotTo(ContainSubstring("status-right"))
		Expect(f.person("display-message", "-p", "-t", "=a:", "#{T:status-right}")).To(Equal(before))
		Expect(outcome(f.Notice(ctx, t, "", ""))).To(Equal(Done), "twice is no harm")
	})

	It("leaves a session alone that is not ours", func() {
		f := started(bin)
		t, _ := f.reader("a")
		t.UID = "somebody-else"
		Expect(outcome(f.Notice(ctx, t, "draft-1", "x"))).To(Equal(Refused))
		Expect(f.session("a").Notice).To(BeEmpty())
	})

	DescribeTable("refuses what tmux could take for a format or a command", func(code, text string) {
		f := started(bin)
		t, _ := f.reader("a")
		_, err := f.Notice(ctx, t, code, text)
		Expect(err).To(MatchError(ContainSubstring("must match")))
	},
		Entry("a format", "x", "#(touch /tmp/pwn)"),
		Entry("a quote", "x", "it's"),
		Entry("a separator", "x", "a ; b"),
		Entry("a code of its own", "X Y", "text"),
		Entry("a text without a code", "", "text"),
		Entry("a code without a text", "x", ""),
	)
})
