package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/delivery"
	"github.com/theloop-dev/the-loop/internal/harness"
	"github.com/theloop-dev/the-loop/internal/harness/hook"
	"github.com/theloop-dev/the-loop/internal/text"
	"github.com/theloop-dev/the-loop/internal/tmux"
	"github.com/theloop-dev/the-loop/internal/workitem"
)

func (t *turn) setMessage(m *api.SessionMessage, kind string, status metav1.ConditionStatus, reason, message string) {
	if len(message) > maxMessage {
		message = message[:maxMessage-3] + "..."
	}
	meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: m.Generation, LastTransitionTime: metav1.NewTime(t.now()),
	})
}

// finish writes a message's final outcome and takes it out of the queue.
func (t *turn) finish(ctx context.Context, m *api.SessionMessage, o api.MessageOutcome, reason, message string) error {
	m.Status.Outcome, m.Status.Reason = o, reason
	m.Status.FinishedTime = new(metav1.NewMicroTime(t.now()))
	if o == api.OutcomeSubmitted {
		t.setMessage(m, api.ConditionSubmitted, metav1.ConditionTrue, reason, message)
	} else {
		t.setMessage(m, api.ConditionFailed, metav1.ConditionTrue, reason, message)
	}
	if err := t.Store.SaveMessage(ctx, m); err != nil {
		// It may be on record all the same: that is looked up past the cache first.
		t.mem.unsure = m.UID
		return t.fail("recording the outcome of message "+m.Name, err)
	}
	t.queue = slices.DeleteFunc(t.queue, func(q *api.SessionMessage) bool { return q == m })
	delete(t.mem.places, m.UID)
	if t.mem.inflight == m.UID {
		t.mem.inflight, t.mem.progress = "", delivery.Progress{}
	}
	t.finished(m, message)
	return nil
}

// dispose does to the waiting messages what a plan says when none is delivered now.
func (t *turn) dispose(ctx context.Context, plan Plan) error {
	if err := t.recall(); err != nil {
		return err
	}
	ends := plan.Messages == MessagesDrop || plan.Messages == MessagesRefuse
	for _, m := range slices.Clone(t.queue) {
		if ends && t.attempted(m) {
			if err := t.conclusion(ctx, m, "the text was typed, and the session then was to take no more messages before the harness said that it took it"); err != nil {
				return err
			}
			continue
		}
		if plan.Messages == MessagesDrop && t.notFirst(m) == 0 {
			continue // what the session is told at its start is nobody's message to drop
		}
		var err error
		switch plan.Messages {
		case MessagesDrop:
			err = t.finish(ctx, m, api.OutcomeDropped, api.ReasonDropped, "spec.deliveryPolicy of the session is Drop")
		case MessagesRefuse:
			err = t.finish(ctx, m, api.OutcomeRefused, api.ReasonSessionNotRunning, "the session does not run, and a message does not start it: "+plan.Message)
		case MessagesWait:
			if plan.Reason == api.ReasonRunning || plan.Reason == api.ReasonHostDraining {
				err = t.hold(ctx, m, plan.Message)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// expire ends messages that waited too long or were taken back, but not one that was
// already typed. It returns when the next one is too old. Without the journal of deliveries
// none is ended: what was typed is not known.
func (t *turn) expire(ctx context.Context) (time.Duration, error) {
	if !t.mem.recalled {
		return 0, nil
	}
	var next time.Duration
	for _, m := range slices.Clone(t.queue) {
		if t.attempted(m) {
			continue
		}
		if t.recalled(m) {
			if err := t.withdraw(ctx, m); err != nil {
				return 0, err
			}
			continue
		}
		after, of := m.Expiry(t.Class)
		if after == 0 {
			continue
		}
		left := m.CreationTimestamp.Add(time.Duration(after) * time.Second).Sub(t.now())
		if left > 0 {
			next = Soonest(next, left)
			continue
		}
		if err := t.finish(ctx, m, api.OutcomeRefused, api.ReasonExpired, of+" passed before the message could be typed"); err != nil {
			return 0, err
		}
	}
	return next, nil
}

// recalled reports that a message was taken back. What a session is told at its start is
// nobody's message to take back.
func (t *turn) recalled(m *api.SessionMessage) bool {
	_, asked := m.Annotations[api.RecallAnnotation]
	return asked && m.Spec.Source.Type != api.SourceBoot
}

func (t *turn) withdraw(ctx context.Context, m *api.SessionMessage) error {
	return t.finish(ctx, m, api.OutcomeDropped, api.ReasonRecalled, "it was taken back before it was typed")
}

// hold says on a message why it waits.
func (t *turn) hold(ctx context.Context, m *api.SessionMessage, why string) error {
	if t.attempted(m) {
		return nil // it stands in the pane, and its status says so
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, api.ConditionDelivered); m.Status.Outcome == api.OutcomeHeld && c != nil && c.Message == why {
		return nil
	}
	m.Status.Outcome, m.Status.Reason = api.OutcomeHeld, api.ReasonHeld
	t.setMessage(m, api.ConditionDelivered, metav1.ConditionFalse, api.ReasonHeld, why)
	return t.saveMessage(ctx, m)
}

// stands says on a message that was pasted why it is not submitted.
func (t *turn) stands(ctx context.Context, m *api.SessionMessage, why string) error {
	c := meta.FindStatusCondition(m.Status.Conditions, api.ConditionDelivered)
	if m.Status.Reason == api.ReasonPasted && c != nil && c.Message == why {
		return nil
	}
	m.Status.Outcome, m.Status.Reason = api.OutcomeQueued, api.ReasonPasted
	t.setMessage(m, api.ConditionDelivered, metav1.ConditionTrue, api.ReasonPasted, why)
	return t.saveMessage(ctx, m)
}

// evidenceSoon is how long a pasted text may wait for evidence before its status says
// that it was pasted.
const evidenceSoon = 2 * time.Second

// deliver takes the messages as far as they go now, one after the other.
func (t *turn) deliver(ctx context.Context) (time.Duration, error) {
	if err := t.settle(ctx); err != nil {
		return 0, err
	}
	for m := t.head(); m != nil; m = t.head() {
		done, after, err := t.deliverOne(ctx, m)
		if err != nil || !done {
			return after, err
		}
		if t.obst == nil && t.launch.differs(t.status) {
			// The next one is decided on again: it needs a re-launch before it.
			return time.Millisecond, nil
		}
	}
	return 0, nil
}

// deliverOne advances one message. done means that the next may go.
func (t *turn) deliverOne(ctx context.Context, m *api.SessionMessage) (done bool, wait time.Duration, err error) {
	body, digest := t.typed(m)
	if body == "" {
		return true, 0, t.finish(ctx, m, api.OutcomeRefused, api.ReasonEmptyText, "nothing is left of the text without blanks and without what is not typed (docs/text.md)")
	}
	if gone, err := t.begin(ctx, m); err != nil || gone {
		return gone, 0, err
	}
	request := t.request(ctx, m, body, digest)
	if t.mem.progress.Pasted.IsZero() && t.sight.Session.Pasted != string(m.UID) {
		if why, again := t.keptOut(ctx, request); why != "" {
			if again == soonAgain {
				return false, again, nil // what is in the way goes by itself
			}
			if again == draftAgain {
				t.kept = len(t.queue)
			}
			return false, again, t.hold(ctx, m, why)
		}
	}
	step, err := delivery.Advance(ctx, t.Terminal, request, t.now())
	if err != nil {
		wait, err = t.undelivered(ctx, m, err)
		return false, wait, err
	}
	if step.Problem != nil {
		t.Log.Info("a part of a delivery failed, and is not tried again", "message", m.Name, "reason", step.Problem.Error())
	}
	if m.Status.DeliveredTime == nil && !step.Progress.Pasted.IsZero() {
		t.notePasted(m, digest, step.Progress.Pasted)
	}
	t.mem.progress = step.Progress
	if step.Refused && !t.fresh {
		t.stale = true
		return false, 0, nil
	}
	return t.conclude(ctx, m, step)
}

// unproved reports that a message in the queue was begun, and that what became of it is
// told by the terminal alone.
func (t *turn) unproved() bool {
	id := t.mem.attempt.Message
	return id != "" && (string(t.mem.inflight) != id || t.mem.progress.Pasted.IsZero()) &&
		slices.ContainsFunc(t.queue, func(m *api.SessionMessage) bool { return string(m.UID) == id })
}

// request is the delivery of a message as the session was last seen.
func (t *turn) request(ctx context.Context, m *api.SessionMessage, body, digest string) delivery.Request {
	box := sync.OnceValues(func() (harness.Draft, string) { return t.inputBox(ctx) })
	return delivery.Request{
		ID: string(m.UID), Text: body, Digest: digest, After: t.after(m), Target: t.target(), Begin: func() error { return t.attempt(m) },
		Session: t.sight.Session, State: t.state, Traits: t.traits(), WhileBusy: t.whileBusy(), Progress: t.mem.progress,
		Stands: func() bool { return t.holds(ctx, body) },
		Empty: func() bool {
			draft, _ := box()
			return draft == harness.DraftEmpty
		},
		Led: func() bool { return t.led(ctx, body) },
		Open: func() string {
			draft, open := box()
			if draft != harness.DraftUnknown {
				return "" // the box is there: the text in it may speak of anything
			}
			return open
		},
	}
}

// undelivered is what becomes of a delivery that failed for now.
func (t *turn) undelivered(ctx context.Context, m *api.SessionMessage, err error) (time.Duration, error) {
	if !errors.Is(err, tmux.ErrUnknown) {
		t.dispatchFails(m, err)
		return 0, t.fail("delivering message "+m.Name, err)
	}
	t.Log.Info("delivery waits for tmux", "message", m.Name, "reason", err.Error())
	// An answer is no silence: what tmux refuses while the session lives is told.
	if u := (*tmux.UnknownError)(nil); !errors.As(err, &u) || !u.Answered() {
		return time.Second, nil
	}
	t.dispatchFails(m, err)
	why := "tmux refused it, which is tried again: " + err.Error()
	if t.attempted(m) {
		return time.Second, t.stands(ctx, m, "the text is pasted and not known to be submitted: "+why)
	}
	return time.Second, t.hold(ctx, m, why)
}

// attemptPath is where the newest delivery that was begun is noted.
func (t *turn) attemptPath() string {
	return filepath.Join(t.sessionDir(t.Object.GetUID()), "delivery.json")
}

// attempt notes, through to the disk, that m is about to be typed.
func (t *turn) attempt(m *api.SessionMessage) error {
	if t.mem.attempt.Message == string(m.UID) && t.mem.attempt.Launch == t.status.Launch.ID {
		return nil
	}
	at := t.told()
	a := delivery.Attempt{Message: string(m.UID), Launch: at.Launch, Time: t.now(), Notes: at.Number}
	if err := os.MkdirAll(filepath.Dir(t.attemptPath()), 0o700); err != nil {
		return err
	}
	if err := a.Save(t.attemptPath()); err != nil {
		return err
	}
	t.mem.attempt = a
	return nil
}

// after is how far the hooks had told when the typing of m was begun, as far as is known.
func (t *turn) after(m *api.SessionMessage) hook.Mark {
	if t.mem.attempt.Message != string(m.UID) {
		return t.told()
	}
	return t.mem.attempt.Mark()
}

// recall reads the newest attempt, once in the life of this process.
func (t *turn) recall() error {
	if t.mem.recalled {
		return nil
	}
	a, err := delivery.LoadAttempt(t.attemptPath())
	if err != nil {
		return t.fail("looking at earlier deliveries", err)
	}
	t.mem.attempt, t.mem.recalled = a, true
	return nil
}

// attempted reports whether m may have been typed already. In the terminal session in
// which it was begun, the marker tells: without it nothing was typed.
func (t *turn) attempted(m *api.SessionMessage) bool {
	a := t.mem.attempt
	if a.Message != string(m.UID) {
		return m.Status.DeliveredTime != nil
	}
	here := t.sight.Holder.Ours() && t.sight.Session.Generation == a.Launch
	return !here || t.sight.Session.Pasted == a.Message || !t.mem.progress.Pasted.IsZero() && t.mem.inflight == m.UID
}

// untaken says that the text of an earlier message may still stand in the input box:
// the next one would be glued to it.
func (t *turn) untaken() string {
	a, s := t.mem.attempt, t.sight.Session
	// One that was deleted or lost between the text and the return has left its text too.
	left := a.Message != "" && s.Pasted == a.Message && s.Submitted != a.Message &&
		!slices.ContainsFunc(t.queue, func(m *api.SessionMessage) bool { return string(m.UID) == a.Message })
	if !a.Untaken && !left || t.status.Launch == nil || a.Launch != t.status.Launch.ID {
		return ""
	}
	if slices.ContainsFunc(t.state.Taken, func(k harness.Taken) bool { return k.After(a.Mark()) }) {
		return ""
	}
	return "an earlier message was typed and not taken, and may still stand in the input box: attach, and submit it or clear it; where nothing stands, submit anything by hand"
}

// settle ends what can no longer be finished, before any other delivery begins: a
// message that was typed into a harness that has ended. It is submitted where the
// harness said so, else it is unknown; it is never typed again.
func (t *turn) settle(ctx context.Context) error {
	if err := t.recall(); err != nil {
		return err
	}
	if t.status.Launch != nil && t.mem.attempt.Launch == t.status.Launch.ID {
		return nil
	}
	for _, m := range slices.Clone(t.queue) {
		if t.attempted(m) {
			if err := t.conclusion(ctx, m, "the harness ended after the text was typed and before it said that it took it; it is not typed again"); err != nil {
				return err
			}
		}
	}
	return nil
}

// conclusion is the final outcome of a message that was, or may have been, typed.
func (t *turn) conclusion(ctx context.Context, m *api.SessionMessage, why string) error {
	if at, ok := t.took(m); ok {
		return t.submitted(ctx, m, at)
	}
	return t.finish(ctx, m, api.OutcomeUnknown, api.ReasonOutcomeUnknown, why)
}

// took tells when a harness said that it took m, which was, or may have been, typed.
func (t *turn) took(m *api.SessionMessage) (time.Time, bool) {
	_, digest := t.typed(m)
	if t.mem.inflight == m.UID && t.mem.progress.Own {
		return t.mem.progress.Took(t.state, digest)
	}
	if t.mem.attempt.Message != string(m.UID) && m.Status.DeliveredTime != nil {
		return t.state.TookSince(digest, m.Status.DeliveredTime.Time)
	}
	return t.state.TookAfter(digest, t.mem.attempt.Mark())
}

// credit ends a message that was taken before its harness ended: it is no reason to start
// another one.
func (t *turn) credit(ctx context.Context) error {
	if t.sight.Holder == HolderLiveOurs || t.sight.Holder == HolderUnknown {
		return nil
	}
	if err := t.recall(); err != nil {
		return err
	}
	for _, m := range slices.Clone(t.queue) {
		if !t.attempted(m) {
			continue
		}
		if at, ok := t.took(m); ok {
			if err := t.submitted(ctx, m, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// supersede ends first messages of earlier launches that were never typed: another
// fresh conversation gets one of its own.
func (t *turn) supersede(ctx context.Context, key string) error {
	for _, m := range slices.Clone(t.queue) {
		// What may have been typed is brought to its end by evidence, not by this.
		if m.Spec.Source.Type != api.SourceBoot || m.Spec.Source.ID == key || m.Status.Outcome.Final() || t.attempted(m) {
			continue
		}
		if err := t.finish(ctx, m, api.OutcomeDropped, api.ReasonSuperseded, "another fresh conversation was begun, with a first message of its own"); err != nil {
			return err
		}
	}
	return nil
}

// begin makes m the delivery under way. A message that another life of the agent may
// have finished, or that was taken back, is looked up first.
func (t *turn) begin(ctx context.Context, m *api.SessionMessage) (gone bool, err error) {
	same := t.mem.inflight == m.UID && t.mem.launch == t.status.Launch.ID
	if same && t.mem.unsure != m.UID {
		return false, nil
	}
	live, err := t.Store.LiveMessage(ctx, m)
	if err != nil {
		return false, t.fail("reading message "+m.Name, err)
	}
	if live == nil || live.DeletionTimestamp != nil || live.Status.Outcome.Final() {
		t.queue = slices.DeleteFunc(t.queue, func(q *api.SessionMessage) bool { return q == m })
		return true, nil
	}
	if t.recalled(live) && !t.attempted(m) {
		return true, t.withdraw(ctx, m)
	}
	if t.mem.unsure = ""; !same {
		t.mem.inflight, t.mem.launch, t.mem.progress = m.UID, t.status.Launch.ID, delivery.Progress{}
	}
	return false, nil
}

func (t *turn) notePasted(m *api.SessionMessage, digest string, at time.Time) {
	m.Status.TextDigest, m.Status.ConversationID = digest, t.status.ConversationID
	m.Status.DeliveredTime = new(metav1.NewMicroTime(at))
	t.setMessage(m, api.ConditionDelivered, metav1.ConditionTrue, api.ReasonPasted, t.pasted(m))
	if last := t.status.LastMessageAt; last == nil || at.Sub(last.Time) >= time.Minute {
		t.status.LastMessageAt = new(metav1.NewTime(at.Truncate(time.Minute)))
	}
}

// pasted is what there is to say of a message that was.
func (t *turn) pasted(m *api.SessionMessage) string {
	what := "the text was pasted into pane " + t.status.PaneID
	if _, report := text.Sanitize(m.Spec.Text); report != (text.Report{}) {
		what += "; " + report.String()
	}
	return what
}

// conclude writes what a step of a delivery came to.
func (t *turn) conclude(ctx context.Context, m *api.SessionMessage, step delivery.Step) (bool, time.Duration, error) {
	switch step.Phase {
	case delivery.Held:
		if t.attempted(m) {
			return false, step.After, t.stands(ctx, m, step.Detail)
		}
		return false, step.After, t.hold(ctx, m, step.Detail)
	case delivery.Submitted:
		return true, 0, t.submitted(ctx, m, step.Evidence)
	case delivery.Typed:
		if t.evidence() {
			t.mem.attempt.Untaken, t.mem.attempt.Stood = true, t.draft(ctx) == harness.DraftTyped
			if err := t.mem.attempt.Save(t.attemptPath()); err != nil {
				return false, 0, t.fail("noting that message "+m.Name+" was not taken", err)
			}
		}
		return true, 0, t.finish(ctx, m, api.OutcomeTyped, api.ReasonTyped, step.Detail)
	case delivery.Lost:
		return true, 0, t.finish(ctx, m, api.OutcomeUnknown, api.ReasonOutcomeUnknown, step.Detail)
	}
	if since := t.now().Sub(step.Progress.Pasted); since < evidenceSoon {
		return false, min(step.After, evidenceSoon-since), nil
	}
	if m.Status.Reason != api.ReasonPasted {
		m.Status.Outcome, m.Status.Reason = api.OutcomeQueued, api.ReasonPasted
		return false, step.After, t.saveMessage(ctx, m)
	}
	return false, step.After, nil
}

func (t *turn) submitted(ctx context.Context, m *api.SessionMessage, at time.Time) error {
	if m.Status.DeliveredTime == nil {
		pasted := at
		if p := t.mem.progress; t.mem.inflight == m.UID && !p.Pasted.IsZero() && p.Pasted.Before(at) {
			pasted = p.Pasted
		}
		_, digest := t.typed(m)
		t.notePasted(m, digest, pasted)
	}
	t.setMessage(m, api.ConditionDelivered, metav1.ConditionTrue, api.ReasonPasted, t.pasted(m)) // whatever kept it from being submitted
	m.Status.Evidence = &api.MessageEvidence{Type: "UserPromptSubmit", Time: metav1.NewMicroTime(at)}
	return t.finish(ctx, m, api.OutcomeSubmitted, api.ReasonPromptTaken, "the harness reported that it took the prompt")
}

func (t *turn) whileBusy() bool {
	return t.Class == nil || ptr.Deref(t.Class.Spec.Messages.DeliverWhileBusy, true)
}

// typed is the text as it is typed, and its digest.
func (t *turn) typed(m *api.SessionMessage) (string, string) {
	body, _ := text.Sanitize(m.Spec.Text)
	if body == "" {
		return "", ""
	}
	switch {
	case m.Spec.Source.Type == api.SourceBoot:
		body = text.BootFrame(body)
	case m.Spec.Source.Trust != "" && m.Spec.Source.Trust != api.TrustOperator:
		src := m.Spec.Source
		body = text.Envelope(text.Provenance{
			Source: string(src.Type), Actor: src.Actor, URL: src.URL, Trust: src.Trust, Nonce: text.Nonce(string(m.UID)),
		}, body)
	case t.Object.SessionKind() == api.KindStandingSession:
		body = text.OperatorFrame(t.Object.GetName(), m.Spec.Source.Actor, body)
	default:
		body = text.PlainFrame(string(m.Spec.Source.Type), m.Spec.Source.Actor, body)
	}
	return body, hook.Digest(body)
}

// bootKey tells the first messages of launches apart.
func (t *turn) bootKey() string { return "boot/" + t.status.Launch.ID }

// bootMessage is the first message of a fresh conversation. Its name comes from the
// launch, so that it is made once however often the start is tried.
func (t *turn) bootMessage(body string) *api.SessionMessage {
	obj := t.Object
	key := t.bootKey()
	return &api.SessionMessage{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: obj.GetNamespace(),
			Name:      workitem.MessageName(obj.GetName(), key, string(obj.GetUID())),
			Labels:    map[string]string{api.HostLabel: t.HostName},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: api.GroupVersion.String(), Kind: obj.SessionKind(), Name: obj.GetName(), UID: obj.GetUID(),
			}},
		},
		Spec: api.SessionMessageSpec{
			SessionRef: api.SessionReference{Kind: obj.SessionKind(), Name: obj.GetName(), UID: obj.GetUID()},
			Text:       body,
			Source:     api.MessageSource{Type: api.SourceBoot, ID: key, Actor: "the-loop"},
		},
	}
}
