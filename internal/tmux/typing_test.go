//go:build linux

package tmux

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/gomega"
)

var _ = with("The client of a paste", func(bin string) {
	ctx := context.Background()

	// pasted has typed text for delivery "d", and hands over the client that waits.
	pasted := func(f *fixture, t Target, text string) *typing {
		GinkgoHelper()
		Expect(outcome(f.Paste(ctx, t, "d", []byte(text)))).To(Equal(Done))
		f.mu.Lock()
		defer f.mu.Unlock()
		Expect(f.typing).To(HaveKey("d"))
		return f.typing["d"]
	}
	waiting := func(f *fixture) func() int {
		return func() int {
			f.mu.Lock()
			defer f.mu.Unlock()
			return len(f.typing)
		}
	}

	It("submits too, so that a delivery costs one invocation", func() {
		dir := GinkgoT().TempDir()
		log := filepath.Join(dir, "log")
		f := started(bin, func(c *Config) {
			c.Binary = script(dir, "tmux", fmt.Sprintf("echo \"$*\" >> %s\nexec %s \"$@\"", log, bin))
		})
		t, got := f.reader("a")
		Expect(os.Truncate(log, 0)).To(Succeed())
		Expect(outcome(f.Paste(ctx, t, "d", []byte("x")))).To(Equal(Done))
		Eventually(got).Should(Equal(bracketed("x")), "the text is there before the return")
		Expect(outcome(f.Submit(ctx, t, "d"))).To(Equal(Done))
		Eventually(got).Should(Equal(bracketed("x") + "\r"))
		ran, err := os.ReadFile(log)
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Count(string(ran), "\n")).To(Equal(1), string(ran))
		Expect(string(ran)).NotTo(ContainSubstring("x\n"), "the text shows in no command line")
		Expect(outcome(f.Submit(ctx, t, "d"))).To(Equal(Already))
	})

	It("submits nothing when its agent ends in between; the marker lets the next one go on", func() {
		f := started(bin)
		t, got := f.reader("a")
		y := pasted(f, t, "x")
		Expect(y.in.Close()).To(Succeed()) // what the kernel does to a killed agent's files
		Eventually(y.done).Should(BeClosed())
		Expect(f.session("a")).To(And(HaveField("Pasted", "d"), HaveField("Submitted", "")))
		Eventually(got).Should(Equal(bracketed("x")), "without the return")
		Expect(outcome(f.Submit(ctx, t, "d"))).To(Equal(Done))
		Eventually(got).Should(Equal(bracketed("x") + "\r"))
		Expect(f.person("list-buffers")).To(BeEmpty())
	})

	It("can be killed: the return then comes by an invocation of its own, once", func() {
		f := started(bin)
		t, got := f.reader("a")
		y := pasted(f, t, "x")
		Expect(syscall.Kill(y.client.Process.Pid, syscall.SIGKILL)).To(Succeed())
		Eventually(y.done).Should(BeClosed())
		Expect(outcome(f.Submit(ctx, t, "d"))).To(Equal(Done))
		Expect(outcome(f.Submit(ctx, t, "d"))).To(Equal(Already))
		Eventually(got).Should(Equal(bracketed("x") + "\r"))
	})

	It("ends after a while, and a return that comes later is still typed", func() {
		f := started(bin)
		t, got := f.reader("a")
		y := pasted(f, t, "x")
		y.lapse.Reset(0)
		Eventually(waiting(f)).Should(BeZero())
		Eventually(y.done).Should(BeClosed())
		Expect(outcome(f.Submit(ctx, t, "d"))).To(Equal(Done))
		Eventually(got).Should(Equal(bracketed("x") + "\r"))
	})

	It("is of no use for another pane", func() {
		f := started(bin)
		t, got := f.reader("a")
		other, gotOther := f.reader("b")
		pasted(f, t, "x")
		Expect(outcome(f.Submit(ctx, other, "d"))).To(Equal(Refused))
		Expect(outcome(f.Submit(ctx, t, "d"))).To(Equal(Done))
		Eventually(got).Should(Equal(bracketed("x") + "\r"))
		Expect(gotOther()).To(BeEmpty())
	})

	It("T06: says unknown when the server hangs in between; the return is typed once", func() {
		f := started(bin)
		t, got := f.reader("a")
		pasted(f, t, "x")
		goOn := f.hang()
		_, err := f.Submit(ctx, t, "d")
		Expect(err).To(MatchError(ErrUnknown))
		goOn()
		Eventually(func() (Outcome, error) { r, err := f.Submit(ctx, t, "d"); return r.Outcome, err }).Should(BeElementOf(Done, Already))
		Eventually(got).Should(Equal(bracketed("x") + "\r"))
		Consistently(got).WithTimeout(200 * time.Millisecond).Should(Equal(bracketed("x") + "\r"))
	})

	It("refuses a return for a pane that died in between", func() {
		f := started(bin)
		t, _ := f.reader("a")
		y := pasted(f, t, "x")
		killPID(f.session("a").Panes[0].PID)
		f.died("a")
		Expect(outcome(f.Submit(ctx, t, "d"))).To(Equal(Refused))
		Expect(y.done).To(BeClosed())
	})
})

var _ = DescribeTable("quote writes what tmux reads back",
	func(arg string) {
		f := started(binaries()[0])
		f.person("set-option", "-g", "@x", "")
		path := filepath.Join(f.dir, "script")
		Expect(os.WriteFile(path, []byte(lines([]command{{"set-option", "-g", "@x", arg}})), 0o600)).To(Succeed())
		f.person("source-file", path)
		Expect(strings.TrimSuffix(f.person("show-options", "-gv", "@x"), "\n")).To(Equal(arg))
	},
	Entry("quotes", `a"b'c`),
	Entry("backslashes", `\n \\ \$ \t`),
	Entry("variables and formats", "$HOME ${HOME} #{pid} #(id) %1 ~/x ~"),
	Entry("separators and comments", "a ; b \\; { c } # d"),
	Entry("nothing", ""),
)
