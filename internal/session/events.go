package session

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/event"
)

// news is an event that is told once what it tells of is on record.
type news struct {
	event   event.Event
	message string
	fields  []any
}

// Recorded tells what the status that was just written says for the first time. What was
// not written is found again at the next look, so that nothing is told twice.
func (s *Subject) Recorded() {
	for _, n := range s.news {
		s.Store.Emit(n.event, n.message, n.fields...)
	}
	s.news = nil
}

// tell keeps an event until the status is written, by the name that it has for the kind of
// session. What happens once, and cannot be found again, is emitted at once instead.
func (s *Subject) tell(e event.Event, message string, fields ...any) {
	if s.standing() {
		e = event.OfStanding(e)
	}
	s.news = append(s.news, news{e, message, fields})
}

func (s *Subject) standing() bool { return s.Object.SessionKind() == api.KindStandingSession }

// started tells of a start. A resume is told of when it is proved.
func (t *turn) started(resumed bool) {
	st := t.status
	message := "attach with: " + st.AttachCommand
	fields := []any{"harness", st.Harness, "conversation_id", st.ConversationID, "tmux_target", st.TmuxTarget, "cwd", st.WorkingDirectory, "model", st.Model, "effort", st.Effort}
	w, _ := t.Object.(*api.WorkItemSession)
	switch {
	case t.standing() && resumed:
		t.tell(event.StandingResumed, message, fields...)
	case t.standing():
		t.tell(event.StandingStarted, message, fields...)
	case st.Restarts > 0:
		t.tell(event.SessionRespawned, message, append(fields, "resumed", resumed)...)
	case w != nil && w.Spec.PullRequest != nil:
		t.tell(event.SessionPRSpawned, message, append(fields, "resumed", resumed)...)
	default:
		t.tell(event.SessionSpawned, message, append(fields, "resumed", resumed)...)
	}
}

// averted tells that a start was decided on, and a fresh look then found our live harness.
// One that is adopted is told of by that.
func (t *turn) averted(plan Plan) {
	if !t.startDue || t.sight.Holder != HolderLiveOurs || plan.Action == ActionAdopt {
		return
	}
	t.startDue = false
	t.Store.Emit(event.SessionRespawnAverted, "the harness that was to be started runs already", "tmux_target", t.sight.Name)
}

// adopted tells what the adoption of a live harness means: that a start which was on
// record happened, or that none is needed.
func (t *turn) adopted(before *api.HostedSessionStatus) {
	l := before.Launch
	same := l != nil && l.ID == t.status.Launch.ID
	switch {
	case same && !l.Confirmed && l.Mode == api.LaunchFresh:
		t.started(false)
	case t.desired() == DesiredRunning && (!same || before.ClosedAt != nil || t.startDue && l.Confirmed):
		t.tell(event.SessionRespawnAverted, "a live harness of the session goes on", "tmux_target", t.sight.Name)
	}
	t.startDue = false
}

// resumeFails tells that a fresh conversation takes the place of the recorded one.
func (t *turn) resumeFails(conversation, why string) {
	t.tell(event.SessionResumeFailed, "the conversation "+conversation+" could not be continued: "+why+"; a fresh one is begun", "conversation_id", conversation, "error", why)
}

// tellSpawnFailed tells why a start failed, or what is in its way.
func (t *turn) tellSpawnFailed(o Obstacle) {
	stays := slices.Contains([]string{api.ReasonHarnessUnsupported, api.ReasonInvalidSpec, api.ReasonNoSeparateCheckout, api.ReasonClassNotFound}, o.Reason)
	harness := t.status.Harness
	if t.launch.adapter != nil {
		harness = t.launch.adapter.Name()
	}
	t.tell(event.SessionSpawnFailed, "the harness is not started: "+o.Message,
		"harness", harness, "tmux_target", t.sight.Name, "reason", o.Reason, "error", o.Message, "will_retry", !stays)
}

// ended tells that the harness ended that was asked to, which before says.
func (t *turn) ended(before *api.HostedSessionStatus) {
	if before.StopRequestedAt == nil {
		return
	}
	t.tell(event.SessionHarnessTerminated, "the harness ended as it was asked to", "tmux_target", before.TmuxTarget, "ok", true, "killed", t.mem.kills > 0)
	t.mem.kills, t.mem.stopFailed = 0, false
}

// stopFails tells, once for a stop, that it does not succeed. It returns the error.
func (t *turn) stopFails(err error) error {
	if err == nil || t.mem.stopFailed {
		return err
	}
	t.mem.stopFailed = true
	message := "the session is not stopped, which is tried again: " + err.Error()
	if t.standing() {
		t.Store.Emit(event.StandingStopFailed, message, "tmux_target", t.status.TmuxTarget, "error", err)
	} else {
		t.Store.Emit(event.SessionHarnessTerminated, message, "tmux_target", t.status.TmuxTarget, "ok", false, "error", err)
	}
	return err
}

// maxKills is how often a harness is killed before it is called one that does not end:
// some ten seconds.
const maxKills = 20

// killed counts how often the harness was killed.
func (t *turn) killed() {
	if t.mem.kills++; t.mem.kills == maxKills {
		_ = t.stopFails(errors.New("the harness is still there after SIGKILL"))
	}
}

// closed tells of a stop, and of what it left.
func (t *turn) closed(before *api.HostedSessionStatus) {
	t.ended(before)
	t.tell(event.SessionClosed, "the session is stopped", "tmux_target", before.TmuxTarget)
	t.retained()
}

func (t *turn) retained() {
	if t.sight.Holder.Ours() {
		t.tell(event.SessionRetained, "the terminal is retained: "+t.Terminal.AttachCommand(t.sight.Name, true), "tmux_target", t.sight.Name)
	}
}

// removed names what the cleanup of a session took away.
func (t *turn) removed(before *api.HostedSessionStatus) []string {
	var out []string
	if before.TmuxTarget != "" && !t.sight.Holder.Ours() {
		out = append(out, "tmux")
	}
	if t.mem.checkoutGone {
		out = append(out, "workspace")
	}
	return append(out, "session")
}

// choiceChanged tells that a start differs from the one before.
func (t *turn) choiceChanged(before *api.HostedSessionStatus) {
	if before.StartedAt == nil || !t.launch.differs(before) {
		return
	}
	was, is := launched(before), launched(t.status)
	if was == is {
		// Arguments may hold what is nobody's to read in a log.
		was, is = was+" with other arguments", is+" with the arguments of now"
	}
	t.tell(event.SessionChoiceChanged, "started with "+is+"; before with "+was, "old", was, "new", is)
}

// launched is the harness, the model and the effort of a launch.
func launched(st *api.HostedSessionStatus) string {
	return strings.Join([]string{st.Harness, "model " + orElse(st.Model, "-"), "effort " + orElse(st.Effort, "-")}, ", ")
}

// reasonOf is the reason of a condition and the generation that it is about.
func reasonOf(st *api.HostedSessionStatus, kind string) (string, int64) {
	if c := meta.FindStatusCondition(st.Conditions, kind); c != nil {
		return c.Reason, c.ObservedGeneration
	}
	return "", 0
}

// compare tells what changed from the status that the turn began with.
func (t *turn) compare(before *api.HostedSessionStatus) {
	was, wasOf := reasonOf(before, api.ConditionSessionRunning)
	is, isOf := reasonOf(t.status, api.ConditionSessionRunning)
	anew := was != is || wasOf != isOf
	switch {
	case was != api.ReasonPaused && is == api.ReasonPaused:
		t.tell(event.SessionPaused, "nothing is done while the annotation "+api.PausedAnnotation+" is set", "by", "annotation")
	case was == api.ReasonPaused && is != api.ReasonPaused:
		t.tell(event.SessionResumed, "the annotation "+api.PausedAnnotation+" is gone", "by", "annotation")
	}
	switch {
	case t.blocked != nil && t.blocked != t.mem.failed && anew && is == t.blocked.Reason:
		t.tellSpawnFailed(*t.blocked)
	case was != is && is == api.ReasonGated:
		gates := gatesOf(t.Object)
		t.tell(event.SessionSpawnDeferred, fmt.Sprintf("not started while spec.startGates holds %v", gates), "gates", gates)
	case was != is && is == api.ReasonWaitingForCanary:
		t.tell(event.SessionSpawnDeferred, meta.FindStatusCondition(t.status.Conditions, api.ConditionSessionRunning).Message)
	case is == api.ReasonTmuxUnknown && anew && t.desired() != DesiredRunning && t.desired() != DesiredParked && t.status.ClosedAt == nil:
		_ = t.stopFails(errors.New("tmux does not answer"))
	}
	was, _ = reasonOf(before, api.ConditionAcceptingInput)
	switch is, _ = reasonOf(t.status, api.ConditionAcceptingInput); {
	case was == is:
	case is == api.ReasonAwaitingInput:
		t.tell(event.SessionAwaitingInput, "a dialog of the harness waits for a person: "+t.state.WaitingFor, "waiting_for", t.state.WaitingFor)
	case is == api.ReasonNotReady:
		_, _, why := t.accepting()
		t.tell(event.SessionAwaitingInput, why, "waiting_for", "unknown")
	case is == api.ReasonLoginRefused:
		_, why, _ := t.refused()
		t.tell(event.SessionAwaitingInput, why, "waiting_for", "login")
	}
	t.comparePolicy()
}

// comparePolicy tells that the delivery was paused, or is no longer. No record says what
// the policy was: an agent that has just started tells of a pause once more.
func (t *turn) comparePolicy() {
	if t.desired() != DesiredRunning {
		return
	}
	is, was := deliveryOf(t.Object), t.mem.policy
	t.mem.policy = is
	switch {
	case is != api.DeliveryPolicyDeliver && (was == api.DeliveryPolicyDeliver || was == ""):
		t.Store.Emit(event.SessionPaused, "spec.deliveryPolicy is "+string(is)+": no message is typed", "by", "deliveryPolicy")
	case is == api.DeliveryPolicyDeliver && was != api.DeliveryPolicyDeliver && was != "":
		t.Store.Emit(event.SessionResumed, "spec.deliveryPolicy is Deliver: messages are typed", "by", "deliveryPolicy")
	}
}

func deliveryOf(obj api.HostedSession) api.DeliveryPolicy {
	policy := api.DeliveryPolicyDeliver
	switch s := obj.(type) {
	case *api.StandingSession:
		policy = s.Spec.DeliveryPolicy
	case *api.WorkItemSession:
		policy = s.Spec.DeliveryPolicy
	}
	return api.DeliveryPolicy(orElse(string(policy), string(api.DeliveryPolicyDeliver)))
}

func gatesOf(obj api.HostedSession) (names []string) {
	if w, ok := obj.(*api.WorkItemSession); ok {
		for _, g := range w.Spec.StartGates {
			names = append(names, g.Name)
		}
	}
	return names
}

// block notes what keeps the session from being started, if the plan says so.
func (t *turn) block(plan Plan) {
	t.blocked = nil
	if plan.Action != ActionNone || t.desired() != DesiredRunning || t.sight.Holder == HolderLiveOurs {
		return
	}
	switch {
	case t.obst != nil && plan.Reason == t.obst.Reason && plan.Message == t.obst.Message:
		t.blocked = t.obst
	case plan.Reason == api.ReasonOccupied, plan.Reason == api.ReasonConversationAltered:
		t.blocked = &Obstacle{Reason: plan.Reason, Message: plan.Message}
	}
}

// queued tells that a message has its place.
func (t *turn) queued(m *api.SessionMessage) {
	if m.Spec.Source.Type == api.SourceBoot {
		return // the start is told of
	}
	runs := meta.IsStatusConditionTrue(t.status.Conditions, api.ConditionSessionRunning)
	t.Store.EmitAbout(m, event.DispatchQueued, "message "+m.Name+" is queued",
		"message", m.Name, "source", m.Spec.Source.Type, "actor", m.Spec.Source.Actor, "sequence", m.Status.Sequence, "spawn", !runs && !t.standing())
}

// finished tells what became of a message.
func (t *turn) finished(m *api.SessionMessage, why string) {
	src := m.Spec.Source
	fields := []any{"message", m.Name, "source", src.Type, "actor", src.Actor}
	switch m.Status.Outcome {
	case api.OutcomeSubmitted:
		t.succeeded(m, "harness")
	case api.OutcomeTyped:
		if !t.evidence() {
			t.succeeded(m, "none")
			return
		}
		t.Store.EmitAbout(m, event.DispatchFailed, "message "+m.Name+" was typed, and the harness did not say that it took it", append(fields, "reason", m.Status.Reason, "error", why, "will_retry", false)...)
	case api.OutcomeUnknown:
		t.Store.EmitAbout(m, event.DispatchFailed, "message "+m.Name+": "+why, append(fields, "reason", m.Status.Reason, "error", why, "will_retry", false)...)
	case api.OutcomeDropped, api.OutcomeRefused:
		t.Store.EmitAbout(m, event.DispatchDropped, "message "+m.Name+" was not typed: "+why, append(fields, "reason", m.Status.Reason)...)
	}
}

func (t *turn) succeeded(m *api.SessionMessage, evidence string) {
	src := m.Spec.Source
	fields := []any{"message", m.Name, "source", src.Type, "actor", src.Actor, "sequence", m.Status.Sequence, "evidence", evidence,
		"queued_seconds", between(m.Status.AcceptedTime, m.Status.DeliveredTime), "taken_seconds", between(m.Status.DeliveredTime, m.Status.FinishedTime)}
	if t.standing() && src.Type != api.SourceBoot {
		t.Store.EmitAbout(m, event.StandingSaid, "message "+m.Name+" was typed", append(fields, "tmux_target", t.status.TmuxTarget)...)
		return
	}
	t.Store.EmitAbout(m, event.DispatchSucceeded, "message "+m.Name+" was typed", append(fields, "via", "tmux")...)
}

// between is the time from a to b in seconds, nil when one is not known.
func between(a, b *metav1.MicroTime) any {
	if a == nil || b == nil {
		return nil
	}
	return b.Sub(a.Time).Seconds()
}

// dispatchFails tells, once for a message, that its delivery failed and is tried again.
func (t *turn) dispatchFails(m *api.SessionMessage, err error) {
	if t.mem.failing == m.UID {
		return
	}
	t.mem.failing = m.UID
	t.Store.EmitAbout(m, event.DispatchFailed, "message "+m.Name+" could not be typed, which is tried again: "+err.Error(),
		"message", m.Name, "source", m.Spec.Source.Type, "actor", m.Spec.Source.Actor, "error", err, "will_retry", true)
}
