package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/fakeharness/faketest"
	"github.com/theloop-dev/the-loop/test/testenv"
)

// heardBy are the bodies that the harness of this process took.
func heardBy(h *testenv.Host, pid int) (out []string) {
	for _, e := range h.Submits("Message (") {
		if e.PID == pid {
			out = append(out, bodies([]faketest.Event{e})...)
		}
	}
	return out
}

var _ = Describe("a message and a fault", func() {
	It("C057 C058 C060: it is neither lost nor repeated when the agent ends before or after it, or while tmux hangs", func() {
		h := env.NewDemoHost()
		s := h.WorkItem(60)
		says(h, s, "delivered before the crash")
		pid := h.HarnessPID(s)

		By("an agent that ends after the message has its place, and before it is typed")
		h.Update(s, func() { s.Spec.DeliveryPolicy = api.DeliveryPolicyHold })
		h.Ready(s)
		m := h.Say(s, "accepted before the crash")
		h.AwaitOutcome(m, "Held/Held")
		Expect(m.Status.Sequence).NotTo(BeZero())
		h.Agent.Kill()
		h.Update(s, func() { s.Spec.DeliveryPolicy = api.DeliveryPolicyDeliver })
		h.StartAgent()
		h.AwaitOutcome(m, testenv.Submitted, time.Minute)

		By("a terminal server that does not answer")
		thaw := h.FreezeServer()
		h.Await(s, api.ConditionReady, "Unknown/TmuxUnknown")
		m = h.Say(s, "said while tmux hangs")
		Eventually(func() int64 { return get(m).Status.Sequence }).ShouldNot(BeZero())
		Expect(h.Outcome(m)()).To(Equal("Queued/Queued"))
		thaw()
		h.AwaitOutcome(m, testenv.Submitted, time.Minute)

		Expect(h.HarnessPID(s)).To(Equal(pid))
		Expect(h.Events("started")).To(HaveLen(1))
		Expect(get(s).Status.Restarts).To(BeZero())
		Expect(heardBy(h, pid)).To(Equal([]string{"delivered before the crash", "accepted before the crash", "said while tmux hangs"}))
		Expect(string(h.Log.Input())).To(MatchRegexp(framed))
	})

	It("C055, P44: it reaches no other session, neither one whose name begins alike nor one that got the numbers of its own", func() {
		h := env.NewDemoHost()
		one, fifteen := h.WorkItem(1), h.WorkItem(15)
		says(h, one, "the first of one")
		says(h, fifteen, "the first of fifteen")
		// Both can be resumed.
		Eventually(answered).WithArguments(h, "the first of one").Should(BeTrue())
		Eventually(answered).WithArguments(h, "the first of fifteen").Should(BeTrue())
		other := h.HarnessPID(fifteen)

		By("with the session of the one gone")
		h.Tmux("kill-session", "-t", "="+get(one).Status.TmuxTarget+":")
		says(h, one, "the second of one")
		Expect(heardBy(h, h.HarnessPID(one))).To(Equal([]string{"the second of one"}))
		Expect(h.HarnessPID(fifteen)).To(Equal(other))
		Expect(heardBy(h, other)).To(Equal([]string{"the first of fifteen"}))

		By("with another terminal server, on which a person has all the numbers")
		Eventually(answered).WithArguments(h, "the second of one").Should(BeTrue())
		recorded := get(fifteen).Status.PaneID
		Expect(syscall.Kill(h.Agent.PID(), syscall.SIGSTOP)).To(Succeed())
		h.SignalServer(syscall.SIGKILL)
		Eventually(gone(other)).Should(BeTrue())
		for i := range 8 {
			typed := filepath.Join(h.Dir, "person-"+itoa(i))
			out, err := exec.Command("tmux", "-u", "-S", h.Socket, "-f", "/dev/null", "new-session", "-d", "-s", "person-"+itoa(i), "cat >"+typed).CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), string(out))
			Eventually(typed).Should(BeARegularFile())
		}
		Expect(h.Tmux("list-panes", "-a", "-F", "#{pane_id}")).To(ContainSubstring(recorded + "\n"))
		m := h.Say(fifteen, "the second of fifteen")
		Expect(syscall.Kill(h.Agent.PID(), syscall.SIGCONT)).To(Succeed())
		h.AwaitOutcome(m, testenv.Submitted, time.Minute)
		Expect(heardBy(h, h.HarnessPID(fifteen))).To(Equal([]string{"the second of fifteen"}))
		for i := range 8 {
			Expect(os.ReadFile(filepath.Join(h.Dir, "person-"+itoa(i)))).To(BeEmpty())
		}
		Expect(h.Submits("of fifteen")).To(HaveLen(2))
	})

	It("C056: a delivery that fails while the session lives is told, tried again, and succeeds", func() {
		h := env.NewDemoHost()
		s := h.WorkItem(56)
		says(h, s, "before")
		pid := h.HarnessPID(s)
		// What is about to be typed is noted on disk first: that cannot be done now.
		noted, err := filepath.Glob(filepath.Join(h.StateDir, "*", string(s.UID), "delivery.json"))
		Expect(err).NotTo(HaveOccurred())
		Expect(noted).To(HaveLen(1))
		Expect(os.Mkdir(noted[0]+".tmp", 0o700)).To(Succeed())
		m := h.Say(s, "tried again")
		Expect(told(h, s, "dispatch.failed", 1)[0]).To(telling("message", m.Name, "will_retry", true))
		Expect(h.Submits("tried again")).To(BeEmpty())
		Expect(os.Remove(noted[0] + ".tmp")).To(Succeed())
		h.AwaitOutcome(m, testenv.Submitted, time.Minute)
		Expect(heardBy(h, pid)).To(Equal([]string{"before", "tried again"}))
		Expect(h.HarnessPID(s)).To(Equal(pid))
		Expect(logged(h.Agent, s, "dispatch.failed")).To(HaveLen(1))
	})

	DescribeTable("C056: what tmux refuses while the session lives is told in the message's status and once as an event, tried again, and succeeds", func(words, script, says string) {
		h := env.NewDemoHost()
		s := h.WorkItem(57)
		instead(h, words, `[ ! -e "$dir/refuses" ] || { `+script+`; }`)
		m := h.Say(s, "before")
		h.AwaitOutcome(m, testenv.Submitted)
		pid, refuses := h.HarnessPID(s), filepath.Join(h.Dir, "refuses")
		Expect(os.WriteFile(refuses, nil, 0o600)).To(Succeed())
		m = h.Say(s, "tried again")
		Expect(told(h, s, "dispatch.failed", 1)[0]).To(telling("message", m.Name, "will_retry", true))
		Eventually(heldFor).WithArguments(m).Should(And(ContainSubstring(says), ContainSubstring("tried again")))
		Expect(get(m).Status.Outcome.Final()).To(BeFalse())
		Expect(h.Submits("tried again")).To(BeEmpty())
		Expect(os.Remove(refuses)).To(Succeed())
		h.AwaitOutcome(m, testenv.Submitted, time.Minute)
		Expect(heardBy(h, pid)).To(Equal([]string{"before", "tried again"}))
		Expect(h.HarnessPID(s)).To(Equal(pid))
		Expect(logged(h.Agent, s, "dispatch.failed")).To(HaveLen(1))
	},
		Entry("a text that it does not load", " load-buffer ", `echo "no space left on device" >&2; exit 1`, "no space left on device"),
		Entry("a text, without a word", " load-buffer ", `exit 1`, "tmux refused it"),
		Entry("what it says to have done, and has not", " load-buffer ", `exit 0`, "exit status 0 without the expected answer"),
	)
})
