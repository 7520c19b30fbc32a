package session_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/session"
)

// having is a session of this age that has a conversation on record.
func having(uid types.UID, age time.Duration, conversation string, changes ...func(*api.StandingSession)) *api.StandingSession {
	s := &api.StandingSession{ObjectMeta: metav1.ObjectMeta{UID: uid, CreationTimestamp: metav1.NewTime(now.Add(-age))}}
	s.Spec.State, s.Status.ConversationID = api.SessionStateRunning, conversation
	for _, c := range changes {
		c(s)
	}
	return s
}

var (
	runs = func(s *api.StandingSession) {
		meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{Type: api.ConditionSessionRunning, Status: metav1.ConditionTrue})
	}
	starts = func(s *api.StandingSession) {
		s.Status.Launch = &api.Launch{ID: "l1", Mode: api.LaunchResume}
	}
	stopped  = func(s *api.StandingSession) { s.Spec.State = api.SessionStateStopped }
	deleting = func(s *api.StandingSession) { s.DeletionTimestamp = new(metav1.NewTime(now)) }
)

var _ = DescribeTable("R04: Holds: of two sessions with one conversation one has it, and never both", func(a, b *api.StandingSession, aHas, bHas bool) {
	Expect(session.Holds(a, b, "c")).To(Equal(aHas))
	Expect(session.Holds(b, a, "c")).To(Equal(bHas))
	Expect(aHas && bHas && a.UID != b.UID).To(BeFalse(), "neither would ever go on")
},
	Entry("one has it on record", having("a", 0, "c"), having("b", time.Hour, ""), true, false),
	Entry("both: the older", having("a", time.Hour, "c"), having("b", 0, "c"), true, false),
	Entry("both, of one second: one of them", having("a", 0, "c"), having("b", 0, "c"), true, false),
	Entry("both: that which runs", having("a", time.Hour, "c"), having("b", 0, "c", runs), false, true),
	Entry("both: that which starts", having("a", time.Hour, "c"), having("b", 0, "c", starts), false, true),
	Entry("both start: the older", having("a", time.Hour, "c", starts), having("b", 0, "c", starts), true, false),
	Entry("one starts, and the other runs", having("a", time.Hour, "c", starts), having("b", 0, "c", runs), false, true),
	Entry("one that starts something else", having("a", time.Hour, "c"), having("b", 0, "d", starts), true, false),
	Entry("one that is not to run has none", having("a", time.Hour, "c", stopped), having("b", 0, ""), false, false),
	Entry("but as long as it runs", having("a", time.Hour, "c", stopped, runs), having("b", 0, ""), true, false),
	Entry("one that is deleted has none", having("a", time.Hour, "c", deleting), having("b", 0, ""), false, false),
	Entry("but as long as it runs", having("a", time.Hour, "c", deleting, runs), having("b", 0, ""), true, false),
	Entry("another conversation", having("a", time.Hour, "d", runs), having("b", 0, "e"), false, false),
	Entry("itself", having("a", 0, "c", runs), having("a", 0, "c", runs), false, false),
)
