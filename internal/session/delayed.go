package session

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/event"
)

// delayed tells that the message whose turn it is, and with it those behind it, waits for
// longer than the class lets it pass in silence: once a message in the life of the agent, and
// not where somebody wanted messages to wait. It returns when that time is over.
func (t *turn) delayed() time.Duration {
	m, after := t.head(), t.alertAfter()
	if m == nil || after == 0 || t.mem.delayed == m.UID || m.Status.AcceptedTime == nil || deliveryOf(t.Object) != api.DeliveryPolicyDeliver {
		return 0
	}
	if t.paused() {
		return 0
	}
	c := meta.FindStatusCondition(m.Status.Conditions, api.ConditionDelivered)
	if c == nil || m.Status.Outcome != api.OutcomeHeld && m.Status.Reason != api.ReasonPasted {
		return 0
	}
	waited := t.now().Sub(m.Status.AcceptedTime.Time)
	if waited < after {
		return after - waited
	}
	t.mem.delayed = m.UID
	t.Store.EmitAbout(m, event.DispatchDelayed, fmt.Sprintf("message %s waits since %s: %s", m.Name, m.Status.AcceptedTime.UTC().Format(time.RFC3339), c.Message),
		"message", m.Name, "source", m.Spec.Source.Type, "actor", m.Spec.Source.Actor, "reason", c.Message, "waiting", len(t.queue), "queued_seconds", waited.Seconds())
	return 0
}

// alertAfter is for how long a message may wait in silence, 0 for ever.
func (t *turn) alertAfter() time.Duration {
	const byDefault = 600
	seconds := int32(byDefault)
	if t.Class != nil {
		seconds = ptr.Deref(t.Class.Spec.Messages.AlertAfterSeconds, byDefault)
	}
	return time.Duration(seconds) * time.Second
}
