package delivery_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/delivery"
)

// forty is a text of forty lines.
func forty() string {
	var lines []string
	for i := range 40 {
		lines = append(lines, fmt.Sprintf("line %d of 40", i+1))
	}
	return strings.Join(lines, "\n")
}

// block is a text of so many bytes whose order can be checked.
func block(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size-100; i++ {
		fmt.Fprintf(&b, "%d äöü 漢字 👍\n", i)
	}
	return b.String() + strings.Repeat(".", size-b.Len())
}

var _ = Describe("a text for a live harness", func() {
	It("P05: of forty lines is one frame, one fold and one submit", func() {
		l := host("fold")
		s := l.say(forty())
		Eventually(s.phase, patience).Should(Equal(delivery.Waiting))
		Eventually(l.screen, patience).Should(ContainSubstring("[Pasted text #1 +39 lines]"))
		Expect(strings.Count(l.screen(), "[Pasted text")).To(Equal(1))
		Expect(s.ends().Phase).To(Equal(delivery.Submitted))
		Expect(l.heard()).To(Equal(typed(forty())))
		Expect(l).To(submitted(forty()))
		Eventually(l.screen, patience).ShouldNot(ContainSubstring("[Pasted text"))
	})

	It("P06: is framed and whole from the moment on in which the harness wants frames, whether or not tmux can tell", func() {
		l := host("framing-late=5000")
		early := "before\nframes"
		Expect(l.deliver(early).Phase).To(Equal(delivery.Submitted))
		Expect(l).To(submitted(early), "one submit and nothing by halves")
		Eventually(l.log.Count, patience).WithArguments("framing-on").Should(Equal(1))
		Expect(l.deliver("with\nframes").Phase).To(Equal(delivery.Submitted))
		Expect(l.heard()).To(HaveSuffix(typed("with\nframes")))
		Expect(l).To(submitted(early, "with\nframes"))
	})

	It("P07: is submitted once it has settled, and once, where a return close behind is a part of it", func() {
		l := host("burst=120")
		l.traits.SubmitGap = 2 * time.Second
		Expect(l.deliver("ten chars.").Phase).To(Equal(delivery.Submitted))
		Expect(l.log.Events("enter-held")).To(BeEmpty())
		Expect(l.heard()).To(Equal(typed("ten chars.")))
		Expect(l).To(submitted("ten chars."))
	})

	It("P09: is taken although its echo is late", func() {
		l := host("redraw=3000")
		Expect(l.deliver("late echo").Phase).To(Equal(delivery.Submitted))
		Expect(l.heard()).To(Equal(typed("late echo")))
		Expect(l).To(submitted("late echo"))
	})

	DescribeTable("P14, P40: that came while a person had begun to type, unseen, does not submit that", func(draft, shown string) {
		l := host("redraw=3000")
		l.person("send-keys", "-t", l.target.PaneID, "-l", draft)
		m := l.say("Message: all of it")
		Eventually(func(g Gomega) {
			g.Expect(m.phase()).To(Equal(delivery.Held))
			g.Expect(l.screen()).To(ContainSubstring(shown + "Message: all of it"))
		}, patience).Should(Succeed())
		Expect(m.step.Detail).To(And(ContainSubstring("pasted and not submitted: a person had begun to type"), ContainSubstring("delete what stands before it")))
		Consistently(m.phase, time.Second, 50*time.Millisecond).Should(Equal(delivery.Held))
		for _, taken := range []string{"submit", "shell"} {
			Expect(l.log.Events(taken)).To(BeEmpty(), taken)
		}
		By("and is submitted when the person has deleted it")
		l.person("send-keys", "-t", l.target.PaneID, "C-u")
		l.person("send-keys", "-t", l.target.PaneID, "BSpace") // out of the mode for the shell
		l.person("send-keys", "-t", l.target.PaneID, "-l", "Message: all of it")
		Expect(m.ends().Phase).To(Equal(delivery.Submitted))
		Expect(l.log.Events("shell")).To(BeEmpty())
	},
		Entry("a draft", "half a thought, ", "❯ half a thought, "),
		Entry("a letter", "M", "❯ M"),
		Entry("a command of the shell", "!touch /tmp/pwn", "❯ !touch /tmp/pwn"),
	)

	It("P14: that was lost is not followed by a return, which would accept a suggestion", func() {
		l := host("ghost=delete everything", "swallow-paste=1")
		l.traits.ReadyWithin = 2 * time.Second
		step := l.deliver("never seen")
		Expect(step.Phase).To(Equal(delivery.Typed))
		Expect(step.Detail).To(And(ContainSubstring("nothing was submitted"), ContainSubstring("attach and look")))
		Eventually(l.log.Count, patience).WithArguments("paste-swallowed").Should(Equal(1))
		Expect(l.heard()).To(Equal(frameBegin + "never seen" + frameEnd))
		Expect(l.log.Events("ghost-accepted")).To(BeEmpty())
		By("and one that stands in the box takes the place of the suggestion")
		l.traits.ReadyWithin = patience
		Expect(l.deliver("seen").Phase).To(Equal(delivery.Submitted))
		Expect(l).To(submitted("seen"))
		Expect(l.log.Events("ghost-accepted")).To(BeEmpty())
	})

	It("P16: reaches a harness at work, whose turn goes on: no escape is typed", func() {
		l := host("think=600000")
		Expect(l.deliver("work on this").Phase).To(Equal(delivery.Submitted))
		Eventually(l.log.Count, patience).WithArguments("turn").Should(Equal(1))
		Expect(l.deliver("and on this").Phase).To(Equal(delivery.Submitted))
		Expect(l.log.Events("submit")[1].Busy).To(BeTrue())
		Expect(l.heard()).To(Equal(typed("work on this", "and on this")))
		Expect(l.log.Events("interrupted")).To(BeEmpty())
	})

	It("P18: reaches a box that takes frames alone", func() {
		l := host("drop-typed")
		l.person("send-keys", "-t", l.target.PaneID, "-l", "keys are ignored")
		Eventually(l.heard, patience).Should(ContainSubstring("keys are ignored"))
		Expect(l.deliver("a frame is not").Phase).To(Equal(delivery.Submitted))
		Expect(l).To(submitted("a frame is not"))
	})

	It("P20: and its return reach a pane that a person has scrolled, who stays where he was", func() {
		l := host("output=300")
		Eventually(l.screen, patience).Should(ContainSubstring("line 300 of 300"))
		l.person("copy-mode", "-e", "-t", l.target.PaneID)
		l.person("send-keys", "-t", l.target.PaneID, "-X", "-N", "100", "scroll-up")
		where := func() string {
			return l.person("display-message", "-p", "-t", l.target.PaneID, "#{pane_mode} #{scroll_position}")
		}
		Expect(where()).To(Equal("copy-mode 100"))
		Expect(l.deliver("two\nlines").Phase).To(Equal(delivery.Submitted))
		Expect(l.heard()).To(Equal(typed("two\nlines")))
		Expect(l).To(submitted("two\nlines"))
		Expect(where()).To(Equal("copy-mode 100"))
		Expect(l.person("capture-pane", "-p", "-S", "-", "-t", l.target.PaneID)).To(ContainSubstring("line 1 of 300"))
	})

	DescribeTable("P32: is whole and in order for a slow reader", func(size int) {
		l := host("slow-read=4096")
		text := block(size)
		Expect(text).To(HaveLen(size))
		Expect(l.deliver(text).Phase).To(Equal(delivery.Submitted))
		Expect(l.heard()).To(Equal(typed(text)))
		Expect(l.log.Submits()[0]).To(Equal(text))
		Expect(l.log.Count("submit")).To(Equal(1))
	},
		Entry("64 KiB", 64<<10),
		Entry("256 KiB, which is the most that a message has", 256<<10),
	)

	It("P38: is in one frame, which shows nowhere as text", func() {
		l := host("think=0")
		texts := []string{"one", "two\nlines", forty()}
		for _, t := range texts {
			Expect(l.deliver(t).Phase).To(Equal(delivery.Submitted))
		}
		Expect(l.heard()).To(Equal(typed(texts...)))
		Expect(l).To(submitted(texts...))
		Expect(l.screen()).NotTo(MatchRegexp(`\[?20[01]~`))
	})

	It("P39, P50: is submitted by the byte 0D, however keys are coded", func() {
		l := host("extended-keys")
		l.person("set-option", "-s", "extended-keys", "always")
		if strings.Contains(l.person("show-options", "-s"), "extended-keys-format") {
			l.person("set-option", "-s", "extended-keys-format", "csi-u")
		}
		Expect(l.deliver("two\nlines").Phase).To(Equal(delivery.Submitted))
		Expect(l.heard()).To(Equal(typed("two\nlines")))
		Expect(l.log.Events("unknown-key")).To(BeEmpty())
		Expect(l).To(submitted("two\nlines"))
	})

	It("P45: is submitted on the harness's word, long before it shows that it works", func() {
		l := host("indicator-late=20000", "think=600000")
		Expect(l.deliver("work").Phase).To(Equal(delivery.Submitted))
		Expect(l.screen()).NotTo(ContainSubstring("Thinking"))
		Expect(l.heard()).To(Equal(typed("work")))
	})

	It("P45: that was taken without a word is called typed, and never typed again", func() {
		l := host("indicator-late=20000", "think=600000", "skip-hook=UserPromptSubmit")
		l.traits.TakenWithin = time.Second
		l.traits.LosesReturn = true
		s := l.say("once")
		Expect(s.ends().Phase).To(Equal(delivery.Typed))
		Eventually(l.log.Submits, patience).Should(Equal([]string{"once"}))
		By("an agent that comes anew")
		s.step = delivery.Step{}
		Expect(s.ends().Phase).To(Equal(delivery.Typed))
		Expect(l.heard()).To(Equal(typed("once")))
	})

	DescribeTable("P49: is submitted by a second return where the box swallowed the first, and is not typed again", func(text string) {
		l := host("swallow-cr=1", "fold")
		l.traits.LosesReturn = true
		Expect(l.deliver(text).Phase).To(Equal(delivery.Submitted))
		Expect(l.log.Events("enter-held")).To(HaveLen(1))
		Expect(l.heard()).To(Equal(typed(text) + "\r"))
		Expect(l).To(submitted(text))
	},
		Entry("a line", "twice pressed"),
		Entry("lines", "twice\n\npressed"),
		Entry("a line that is wrapped", strings.Repeat("twice pressed, ", 12)+"and no more"),
		Entry("a folded one", forty()),
	)

	DescribeTable("that stands in the box still is called typed, with what to do", func(behaviour string) {
		l := host(behaviour)
		l.traits.TakenWithin = 2 * time.Second
		body := block(1500)
		step := l.deliver(body)
		Expect(step.Phase).To(Equal(delivery.Typed))
		Expect(step.Detail).To(And(ContainSubstring("attach and look"), ContainSubstring("press Enter"), ContainSubstring("clear it")))
		Eventually(l.log.Count, patience).WithArguments("enter-held").Should(Equal(1))
		Expect(l.heard()).To(Equal(typed(body)), "neither a second text nor a second return")
		Expect(l.log.Submits()).To(BeEmpty())
	},
		Entry("P49: a return that was swallowed, of a harness that is not known for it", "swallow-cr=1"),
		Entry("P53: a box that is wedged by a return which came too soon", "sticky-paste=600000"),
	)
})
