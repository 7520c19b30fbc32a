package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/testenv"
)

// schedules sets spec.scheduling of a host.
func schedules(h *testenv.Host, scheduling api.HostScheduling) {
	GinkgoHelper()
	host := &api.SessionHost{ObjectMeta: metav1.ObjectMeta{Name: h.Name}}
	h.Update(host, func() { host.Spec.Scheduling = scheduling })
}

var _ = Describe("a host that is being drained", func() {
	It("K18 K21: parks its sessions, busy or not, with conversation and messages, starts nothing, and lets them go on by themselves", func() {
		h := env.NewDemoHost()
		behaves(h, h.Class, "think=600000")
		busy := h.WorkItem(61, func(s *api.WorkItemSession) { s.Spec.Prompt = "A long one." })
		h.AwaitOutcome(h.AwaitBoot(busy), testenv.Submitted)
		behaves(h, h.Class)
		idle := h.Standing("idle", func(s *api.StandingSession) { s.Spec.RestartPolicy = api.RestartPolicyNever })
		h.AwaitOutcome(h.AwaitBoot(idle), testenv.Submitted)
		dead := h.WorkItem(62)
		aTurn(h, dead, "before it ended")
		h.KillHarness(dead)
		h.Await(dead, api.ConditionReady, "False/Exited")
		ids := map[string]string{busy.Name: get(busy).Status.ConversationID, idle.Name: get(idle).Status.ConversationID}

		schedules(h, api.HostSchedulingDraining)
		for _, s := range []testenv.Session{busy, idle, dead} {
			h.Await(s, api.ConditionReady, "False/HostDraining")
			Expect(h.Message(s, api.ConditionReady)).To(ContainSubstring("goes on by itself"))
		}
		Expect(h.Pane(busy).Dead).To(BeTrue())
		Expect(h.Pane(idle).Dead).To(BeTrue())
		waits := h.Say(busy, "while it is parked")
		late := h.WorkItem(63)
		h.Await(late, api.ConditionReady, "False/HostDraining")
		free := h.Standing("free", func(s *api.StandingSession) {
			s.Spec.HostName = ""
			s.Spec.HostSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/hostname": h.Name}}
		})
		h.Await(free, api.ConditionReady, "False/NoHostAvailable")
		h.RestartAgent()
		h.Await(idle, api.ConditionReady, "False/HostDraining")
		starts := len(h.Events("started"))

		schedules(h, api.HostSchedulingEnabled)
		for _, s := range []testenv.Session{busy, idle} {
			h.Await(s, api.ConditionResumed, "True/ConversationContinued")
		}
		h.Ready(late)
		h.Ready(free)
		h.AwaitOutcome(waits, testenv.Submitted)
		Expect(get(busy).Status.ConversationID).To(Equal(ids[busy.Name]))
		Expect(get(idle).Status.ConversationID).To(Equal(ids[idle.Name]))
		h.Await(dead, api.ConditionReady, "False/Exited")
		Expect(h.Events("started")).To(HaveLen(starts+4), "not the one that had ended by itself before")
	})
})
