package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/testenv"
)

var _ = Describe("a stop around the first turn", func() {
	const brief = "Read the plan."

	It("R12: before it was taken leaves a fresh conversation, which is told its brief", func() {
		h := env.NewDemoHost("slow-start=600000")
		s := h.WorkItem(12, func(s *api.WorkItemSession) { s.Spec.Prompt = brief })
		first := h.AwaitBoot(s)
		Eventually(h.Events).WithArguments("started").Should(HaveLen(1))
		id := get(s).Status.ConversationID
		want(s, api.SessionStateStopped)
		h.Await(s, api.ConditionReady, "True/Stopped")
		h.AwaitOutcome(first, "Refused/SessionNotRunning")
		behaves(h, h.Class)
		want(s, api.SessionStateRunning)
		h.Ready(s)
		Eventually(h.Submits).WithArguments(brief).Should(HaveLen(1))
		Expect(get(s).Status.ConversationID).NotTo(Equal(id))
		aTurn(h, s, "and then")
		Expect(h.Submits(brief)).To(HaveLen(1))
	})

	It("R12: after it was taken leaves a conversation that goes on, and hears no brief again", func() {
		h := env.NewDemoHost("think=600000")
		s := h.WorkItem(13, func(s *api.WorkItemSession) { s.Spec.Prompt = brief })
		h.AwaitOutcome(h.AwaitBoot(s), testenv.Submitted)
		id := get(s).Status.ConversationID
		want(s, api.SessionStateStopped)
		h.Await(s, api.ConditionReady, "True/Stopped")
		behaves(h, h.Class)
		want(s, api.SessionStateRunning)
		h.Await(s, api.ConditionResumed, "True/ConversationContinued")
		aTurn(h, s, "and then")
		Expect(h.Submits(brief)).To(HaveLen(1))
		Expect(get(s).Status.ConversationID).To(Equal(id))
	})
})

var _ = Describe("the last turn before an end", func() {
	It("R13: is in the conversation that goes on: the harness is asked to end, and gets the time to write it", func() {
		h := env.NewDemoHost()
		behaves(h, h.Class, "flush-late=600000")
		s := h.WorkItem(13)
		h.AwaitOutcome(h.Say(s, "the last words"), testenv.Submitted)
		Eventually(h.Events).WithArguments("reply").Should(HaveLen(1))
		Expect(answered(h, "the last words")).To(BeFalse(), "the harness has not written it yet")
		id := get(s).Status.ConversationID
		want(s, api.SessionStateStopped)
		h.Await(s, api.ConditionReady, "True/Stopped")
		Expect(answered(h, "the last words")).To(BeTrue())
		Expect(h.Events("signal")).To(ConsistOf(HaveField("Signal", "SIGTERM")))
		want(s, api.SessionStateRunning)
		h.Await(s, api.ConditionResumed, "True/ConversationContinued")
		Expect(get(s).Status.ConversationID).To(Equal(id))
	})
})

var _ = Describe("sessions that share one database", SpecPriority(1), func() {
	const sessions, late = 8, 2 * time.Minute
	// lock makes a harness of the host's class that ends with a zero when another one is at
	// the database, as some do.
	lock := func(h *testenv.Host) {
		GinkgoHelper()
		locked := script(h, "locked", `exec 9>"$dir/database"
flock -n 9 || { echo "database is locked"; exit 0; }
sleep 0.1
exec 9>&-
exec "$harness" "$@"`)
		h.UpdateClass(h.Class, func(c *api.SessionClass) { c.Spec.Harness.Binary = locked })
	}
	start := func(h *testenv.Host) (all []*api.WorkItemSession) {
		GinkgoHelper()
		for i := range sessions {
			all = append(all, h.WorkItem(int64(i)+1, func(s *api.WorkItemSession) {
				s.Spec.RestartPolicy, s.Spec.Prompt = api.RestartPolicyAlways, "The brief of "+s.Name+"."
			}))
		}
		for _, s := range all {
			h.Ready(s, late)
			Eventually(h.Submits, late).WithArguments("The brief of " + s.Name + ".").Should(HaveLen(1))
		}
		return all
	}

	It("R15: that lock each other out at the start are tried again, ever more slowly and apart, until all run", func() {
		h := env.NewDemoHost()
		lock(h)
		for _, s := range start(h) {
			aTurn(h, s, "a turn of "+s.Name)
			Expect(h.Submits("The brief of " + s.Name + ".")).To(HaveLen(1))
		}
	})

	It("R15: that lock each other out when all are resumed at once lose no conversation", func() {
		h := env.NewDemoHost()
		all, ids := start(h), map[string]string{}
		for _, s := range all {
			Eventually(answered).WithArguments(h, "The brief of "+s.Name+".").Should(BeTrue())
			ids[s.Name] = get(s).Status.ConversationID
		}
		lock(h)
		for _, s := range all {
			h.KillHarness(s)
		}
		for _, s := range all {
			Eventually(func() int64 { return int64(get(s).Status.Restarts) }, late).Should(BeNumerically(">", 0))
			h.Await(s, api.ConditionResumed, "True/ConversationContinued", late)
			h.Ready(s, late)
			Expect(get(s).Status.ConversationID).To(Equal(ids[s.Name]), s.Name)
			Expect(h.Submits("The brief of " + s.Name + ".")).To(HaveLen(1))
			Expect(h.Reported(s, "SessionResumeFailed")).To(BeZero())
		}
	})

	It("R15: a resume that ends without a turn, and calls that a success, is a failure of the start and not of the conversation", func() {
		h := env.NewDemoHost()
		s := h.WorkItem(15)
		aTurn(h, s, "first")
		id := get(s).Status.ConversationID
		behaves(h, h.Class, "exit=0")
		h.KillHarness(s)
		h.Await(s, api.ConditionReady, "False/Exited")
		m := h.Say(s, "second")
		h.Await(s, api.ConditionReady, "False/CrashLoopBackOff")
		Expect(h.Outcome(m)()).NotTo(HavePrefix("Submitted"))
		behaves(h, h.Class)
		h.AwaitOutcome(m, testenv.Submitted, time.Minute)
		h.Await(s, api.ConditionResumed, "True/ConversationContinued")
		Expect(get(s).Status.ConversationID).To(Equal(id))
		Expect(h.Submits("second")).To(HaveLen(1))
		Expect(h.Reported(s, "SessionResumeFailed")).To(BeZero())
	})
})
