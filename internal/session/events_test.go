package session

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/event"
)

// ears is a Store that hears events and has nothing else.
type ears struct {
	Store
	heard []string
}

func (e *ears) Emit(ev event.Event, _ string, _ ...any) { e.heard = append(e.heard, ev.Name) }

func (e *ears) EmitAbout(_ *api.SessionMessage, ev event.Event, _ string, _ ...any) {
	e.heard = append(e.heard, ev.Name)
}

var _ = Describe("what a turn tells", func() {
	var (
		store  *ears
		t      *turn
		object *api.WorkItemSession
	)
	BeforeEach(func() {
		store, object = &ears{}, &api.WorkItemSession{}
		object.Spec.State, object.Generation = api.SessionStateRunning, 1
		t = &turn{Engine: &Engine{Clock: clock.RealClock{}}, Subject: &Subject{Object: object, Store: store, Log: logr.Discard()}, status: &object.Status.HostedSessionStatus, mem: &memory{}}
	})
	// goes takes the session to another reason of SessionRunning.
	goes := func(reason string) {
		before := t.status.DeepCopy()
		t.setRunning(metav1.ConditionFalse, reason, "")
		t.compare(before)
	}
	heard := func() []string {
		defer func() { store.heard = nil }()
		t.Recorded()
		return store.heard
	}

	It("is told once the status is written, and only then", func() {
		goes(api.ReasonPaused)
		Expect(store.heard).To(BeEmpty())
		Expect(heard()).To(ConsistOf("session.paused"))
		Expect(heard()).To(BeEmpty())
		goes(api.ReasonPaused)
		Expect(heard()).To(BeEmpty())
		goes(api.ReasonGated)
		Expect(heard()).To(ConsistOf("session.resumed", "session.spawn_deferred"))
	})

	It("C077: says what is in the way of a start once, until it is another or the session is changed", func() {
		blocked := func(reason string) { t.blocked = &Obstacle{Reason: reason}; goes(reason) }
		blocked(api.ReasonOccupied)
		Expect(heard()).To(ConsistOf("session.spawn_failed"))
		for range 3 {
			blocked(api.ReasonOccupied)
		}
		Expect(heard()).To(BeEmpty())
		blocked(api.ReasonBinaryMissing)
		Expect(heard()).To(ConsistOf("session.spawn_failed"))
		object.Generation++
		blocked(api.ReasonBinaryMissing)
		Expect(heard()).To(ConsistOf("session.spawn_failed"))
		By("and nothing of a start that failed, which was told with it")
		t.mem.failed = &Obstacle{Reason: api.ReasonSpawnFailed}
		t.blocked = t.mem.failed
		goes(api.ReasonSpawnFailed)
		Expect(heard()).To(BeEmpty())
	})

	It("C173: says once that a stop does not succeed, and again of the next", func() {
		object.Spec.State = api.SessionStateStopped
		goes(api.ReasonTmuxUnknown)
		goes(api.ReasonStopping)
		_ = t.stopFails(errors.New("no answer"))
		goes(api.ReasonTmuxUnknown)
		Expect(heard()).To(ConsistOf("session.harness_terminated"))
		t.ended(&api.HostedSessionStatus{StopRequestedAt: new(metav1.NewTime(time.Now()))})
		Expect(heard()).To(ConsistOf("session.harness_terminated"))
		goes(api.ReasonStopping)
		goes(api.ReasonTmuxUnknown)
		Expect(heard()).To(ConsistOf("session.harness_terminated"))
	})

	It("C021: tells of a start that a crash came behind when it is adopted, and of a start that is not needed", func() {
		t.status.Launch = &api.Launch{ID: "one", Mode: api.LaunchFresh}
		before := t.status.DeepCopy()
		t.adopted(before)
		Expect(heard()).To(ConsistOf("session.spawned"))
		before.Launch.Confirmed = true
		t.adopted(before)
		Expect(heard()).To(BeEmpty(), "its pane alone was not on record")
		before.Launch.ID = "two"
		t.adopted(before)
		Expect(heard()).To(ConsistOf("session.respawn_averted"))
	})

	It("C076: tells that a start was averted when a fresh look finds the live harness", func() {
		t.startDue, t.sight.Holder = true, HolderAbsent
		t.averted(Plan{Action: ActionSpawn})
		Expect(store.heard).To(BeEmpty())
		t.sight.Holder = HolderLiveOurs
		t.averted(Plan{Action: ActionDeliver})
		t.averted(Plan{Action: ActionDeliver})
		Expect(store.heard).To(ConsistOf("session.respawn_averted"))
	})

	It("has names of its own for a standing session", func() {
		t.Subject.Object = &api.StandingSession{}
		t.started(true)
		t.started(false)
		t.tell(event.SessionClosed, "")
		t.tell(event.SessionRetained, "")
		Expect(heard()).To(Equal([]string{"standing.resumed", "standing.started", "standing.stopped", "session.retained"}))
	})

	DescribeTable("tells what became of a message",
		func(o api.MessageOutcome, source api.MessageSourceType, want string) {
			object.Status.Harness = "claude"
			t.finished(&api.SessionMessage{Spec: api.SessionMessageSpec{Source: api.MessageSource{Type: source}}, Status: api.SessionMessageStatus{Outcome: o}}, "")
			Expect(store.heard).To(ConsistOf(want))
		},
		Entry("that was taken", api.OutcomeSubmitted, api.SourcePerson, "dispatch.succeeded"),
		Entry("that was typed, without the word of a harness that gives it", api.OutcomeTyped, api.SourcePerson, "dispatch.failed"),
		Entry("of which it is not known", api.OutcomeUnknown, api.SourcePerson, "dispatch.failed"),
		Entry("that was dropped", api.OutcomeDropped, api.SourcePerson, "dispatch.dropped"),
		Entry("that was refused", api.OutcomeRefused, api.SourceBoot, "dispatch.dropped"),
	)

	It("tells of a delivery that is tried again once", func() {
		m := &api.SessionMessage{ObjectMeta: metav1.ObjectMeta{UID: "m"}}
		for range 3 {
			t.dispatchFails(m, context.DeadlineExceeded)
		}
		Expect(store.heard).To(ConsistOf("dispatch.failed"))
	})
})
