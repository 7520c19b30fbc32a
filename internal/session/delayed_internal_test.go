package session

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/event"
)

// alarm is a Store that keeps what is told of messages.
type alarm struct {
	Store
	told []string
}

func (a *alarm) EmitAbout(m *api.SessionMessage, e event.Event, message string, fields ...any) {
	a.told = append(a.told, strings.TrimSpace(fmt.Sprintln(e.Name, m.Name, message, fields)))
}

var _ = Describe("a message that waits for long", func() {
	var (
		clk   *testingclock.FakeClock
		store *alarm
		t     *turn
		s     *api.StandingSession
	)
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	waits := func(name string, since time.Time, why string) *api.SessionMessage {
		m := &api.SessionMessage{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid of " + name)}}
		m.Status.AcceptedTime, m.Status.Outcome, m.Status.Reason = new(metav1.NewMicroTime(since)), api.OutcomeHeld, api.ReasonHeld
		t.setMessage(m, api.ConditionDelivered, metav1.ConditionFalse, api.ReasonHeld, why)
		return m
	}
	BeforeEach(func() {
		clk, store = testingclock.NewFakeClock(noon), &alarm{}
		s = &api.StandingSession{}
		s.Spec.State, s.Spec.DeliveryPolicy = api.SessionStateRunning, api.DeliveryPolicyDeliver
		t = &turn{Engine: &Engine{Clock: clk}, Subject: &Subject{Object: s, Store: store, Log: logr.Discard()}, mem: &memory{}}
	})

	It("P51: is told of once, with what it waits for and how many wait behind it", func() {
		t.queue = []*api.SessionMessage{waits("first", noon, "a dialog of the harness waits for a person: permission for Bash"), waits("second", noon, "")}
		Expect(t.delayed()).To(Equal(10 * time.Minute))
		clk.SetTime(noon.Add(10*time.Minute - time.Second))
		Expect(t.delayed()).To(Equal(time.Second))
		Expect(store.told).To(BeEmpty())
		clk.SetTime(noon.Add(10 * time.Minute))
		Expect(t.delayed()).To(BeZero())
		Expect(t.delayed()).To(BeZero())
		Expect(store.told).To(ConsistOf(And(
			HavePrefix("dispatch.delayed first message first waits since 2026-11-30T12:00:00Z: a dialog of the harness waits for a person: permission for Bash"),
			ContainSubstring("waiting 2 queued_seconds 600"))))
	})

	It("P51: is told of as soon or as late as its class says, or never", func() {
		t.Class = &api.SessionClass{}
		t.Class.Spec.Messages.AlertAfterSeconds = new(int32(0))
		t.queue = []*api.SessionMessage{waits("first", noon.Add(-24*time.Hour), "")}
		Expect(t.delayed()).To(BeZero())
		Expect(store.told).To(BeEmpty())
		t.Class.Spec.Messages.AlertAfterSeconds = new(int32(2))
		Expect(t.delayed()).To(BeZero())
		Expect(store.told).To(HaveLen(1))
	})

	It("P51: is told of too where it stands in the box and its return waits", func() {
		m := waits("first", noon.Add(-time.Hour), "the text is pasted and not submitted: a dialog of the harness waits for a person: ")
		m.Status.Outcome, m.Status.Reason = api.OutcomeQueued, api.ReasonPasted
		t.queue = []*api.SessionMessage{m}
		t.delayed()
		Expect(store.told).To(HaveLen(1))
	})

	It("is not told of where somebody wanted it to wait, nor where nothing keeps it", func() {
		t.queue = []*api.SessionMessage{waits("first", noon.Add(-time.Hour), "")}
		s.Spec.DeliveryPolicy = api.DeliveryPolicyHold
		Expect(t.delayed()).To(BeZero())
		s.Spec.DeliveryPolicy = api.DeliveryPolicyDeliver
		s.Annotations = map[string]string{api.PausedAnnotation: ""}
		Expect(t.delayed()).To(BeZero())
		s.Annotations = nil
		t.queue[0].Status.Outcome, t.queue[0].Status.Reason = api.OutcomeQueued, api.ReasonQueued
		Expect(t.delayed()).To(BeZero())
		t.queue = nil
		Expect(t.delayed()).To(BeZero())
		Expect(store.told).To(BeEmpty())
	})
})
