package hub

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

var _ = Describe("takes", func() {
	// host is a live one in zone a.
	host := func(change ...func(*api.SessionHost)) *api.SessionHost {
		h := &api.SessionHost{}
		h.Name, h.Labels = "build-1", map[string]string{"zone": "a"}
		h.Status.Conditions = []metav1.Condition{is(api.ConditionHostReady, yes, api.ReasonLeaseRenewed)}
		for _, c := range change {
			c(h)
		}
		return h
	}
	scheduling := func(s api.HostScheduling) func(*api.SessionHost) {
		return func(h *api.SessionHost) { h.Spec.Scheduling = s }
	}
	room := func(n int32) func(*api.SessionHost) {
		return func(h *api.SessionHost) { h.Spec.MaxSessions = ptr.To(n) }
	}
	ready := func(status metav1.ConditionStatus, reason string) func(*api.SessionHost) {
		return func(h *api.SessionHost) {
			h.Status.Conditions = []metav1.Condition{is(api.ConditionHostReady, status, reason)}
		}
	}
	zone := func(z string) labels.Selector { return labels.SelectorFromSet(labels.Set{"zone": z}) }

	DescribeTable("a host", func(h *api.SessionHost, selector labels.Selector, load int, want bool) {
		Expect(takes(h, selector, load)).To(Equal(want))
	},
		Entry("that lives", host(), labels.Everything(), 0, true),
		Entry("that is enabled", host(scheduling(api.HostSchedulingEnabled)), labels.Everything(), 0, true),
		Entry("that is cordoned", host(scheduling(api.HostSchedulingCordoned)), labels.Everything(), 0, false),
		Entry("that is drained", host(scheduling(api.HostSchedulingDraining)), labels.Everything(), 0, false),
		Entry("that is being deleted", host(func(h *api.SessionHost) { h.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }), labels.Everything(), 0, false),
		Entry("that is silent: a session is bound for good", host(ready(unknown, api.ReasonHeartbeatStopped)), labels.Everything(), 0, false),
		Entry("whose agent never took its lease", host(ready(unknown, api.ReasonReconciling)), labels.Everything(), 0, false),
		Entry("that was not judged yet", host(func(h *api.SessionHost) { h.Status.Conditions = nil }), labels.Everything(), 0, false),
		Entry("that is not ready", host(ready(no, api.ReasonHeartbeatStopped)), labels.Everything(), 0, false),
		Entry("with the labels that are asked for", host(), zone("a"), 0, true),
		Entry("with other labels", host(), zone("b"), 0, false),
		Entry("when nothing can match", host(), labels.Nothing(), 0, false),
		Entry("without a limit", host(), labels.Everything(), 100000, true),
		Entry("with room", host(room(2)), labels.Everything(), 1, true),
		Entry("that is full", host(room(2)), labels.Everything(), 2, false),
		Entry("that is more than full", host(room(2)), labels.Everything(), 3, false),
		Entry("with room for none: zero is a value", host(room(0)), labels.Everything(), 0, false),
	)
})
