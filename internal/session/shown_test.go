package session_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/session"
	"github.com/theloop-dev/the-loop/internal/tmux"
)

// listed is a terminal server that was listed once.
type listed struct {
	snap tmux.Snapshot
	err  error
}

func (l listed) Snapshot(context.Context) (tmux.Snapshot, error) { return l.snap, l.err }
func (listed) Events(context.Context) <-chan struct{}            { return nil }
func (listed) WatchPanes([]int)                                  {}

var _ = Describe("what a person is shown of a session", func() {
	epoch := tmux.Epoch{PID: 7, StartTime: 8}
	object := func(change func(*api.StandingSession)) *api.StandingSession {
		s := &api.StandingSession{ObjectMeta: metav1.ObjectMeta{Name: "fox", UID: "mine"}}
		s.Status.PaneID = "%2"
		change(s)
		return s
	}
	shown := func(s *api.StandingSession, sessions ...tmux.Session) (session.Shown, bool) {
		GinkgoHelper()
		e := &session.Engine{Lister: &session.Lister{Source: listed{snap: tmux.Snapshot{Taken: time.Now(), Epoch: epoch, Sessions: sessions}}}}
		_, err := e.Lister.Refresh(context.Background())
		Expect(err).NotTo(HaveOccurred())
		out, ok, err := e.Shown(s)
		Expect(err).NotTo(HaveOccurred())
		return out, ok
	}
	live := tmux.Session{ID: "$1", Name: "loop-standing-fox", UID: "mine", Panes: []tmux.Pane{{ID: "%1", PID: 5}, {ID: "%2", PID: 6}}}
	dead := tmux.Session{ID: "$9", Name: "loop-standing-fox-old", UID: "mine", Panes: []tmux.Pane{{ID: "%9", Dead: true}}}

	It("is the recorded pane of the terminal with its stamp, the live one of several", func() {
		other := tmux.Session{ID: "$3", Name: "loop-standing-fox", UID: "another", Panes: []tmux.Pane{{ID: "%3", PID: 9}}}
		out, ok := shown(object(func(*api.StandingSession) {}), other, dead, live)
		Expect(ok).To(BeTrue())
		Expect(out).To(Equal(session.Shown{Target: tmux.Target{UID: "mine", SessionID: "$1", PaneID: "%2", Epoch: epoch}}))
		_, ok = shown(object(func(*api.StandingSession) {}), other)
		Expect(ok).To(BeFalse())
		_, ok = shown(object(func(*api.StandingSession) {}))
		Expect(ok).To(BeFalse())
	})

	DescribeTable("U10: is a record when the session has ended or is to end", func(change func(*api.StandingSession), terminal tmux.Session, want string) {
		out, ok := shown(object(change), terminal)
		Expect(ok).To(BeTrue())
		Expect(out.Ended).To(Equal(want))
	},
		Entry("it runs", func(*api.StandingSession) {}, live, ""),
		Entry("its harness ended", func(*api.StandingSession) {}, dead, "its harness has ended"),
		Entry("a person's own pane is left of it", func(s *api.StandingSession) { s.Status.PaneID = "%7" }, live, "the pane of its harness is gone"),
		Entry("it is to stop", func(s *api.StandingSession) { s.Spec.State = api.SessionStateStopped }, live, "it is stopped"),
		Entry("it is being deleted", func(s *api.StandingSession) { s.DeletionTimestamp = new(metav1.Now()) }, live, "it is being deleted"),
	)

	It("is not known while the terminal server does not answer", func() {
		e := &session.Engine{Lister: &session.Lister{Source: listed{err: tmux.ErrUnknown}}}
		_, _ = e.Lister.Refresh(context.Background())
		_, ok, err := e.Shown(object(func(*api.StandingSession) {}))
		Expect(err).To(MatchError(tmux.ErrUnknown))
		Expect(ok).To(BeFalse())
	})
})
