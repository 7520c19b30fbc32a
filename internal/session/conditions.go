package session

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/event"
	"github.com/theloop-dev/the-loop/internal/harness"
)

// lookAgain is how often the hooks' journal is read without a poke while something is
// awaited of the harness.
const lookAgain = 10 * time.Second

// maxMessage bounds a condition's message, in bytes.
const maxMessage = 1024

// set writes one condition of the session, with the generation it is about.
func (t *turn) set(kind string, status metav1.ConditionStatus, reason, message string) {
	if len(message) > maxMessage {
		message = message[:maxMessage-3] + "..."
	}
	meta.SetStatusCondition(&t.status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: t.Object.GetGeneration(), LastTransitionTime: metav1.NewTime(t.now()),
	})
}

func (t *turn) setRunning(status metav1.ConditionStatus, reason, message string) {
	t.set(api.ConditionSessionRunning, status, reason, message)
}

// note writes what a plan says of the session into its conditions.
func (t *turn) note(plan Plan) {
	message := plan.Message
	if t.sight.Twins > 0 {
		message += fmt.Sprintf("; %d more live terminal sessions carry this object's UID: end those that you do not need", t.sight.Twins)
	}
	t.setRunning(plan.Running, plan.Reason, message)
	t.noteWorkspace()
	t.noteChoice()
	if t.sight.Holder == HolderUnknown {
		t.set(api.ConditionAcceptingInput, metav1.ConditionUnknown, api.ReasonTmuxUnknown, "tmux did not answer")
		return
	}
	status, reason, message := t.accepting()
	t.set(api.ConditionAcceptingInput, status, reason, message)
}

func (t *turn) noteWorkspace() {
	switch {
	case t.obst != nil && t.obst.Reason == api.ReasonDirectoryMissing:
		t.set(api.ConditionWorkspaceReady, metav1.ConditionFalse, t.obst.Reason, t.obst.Message)
	case t.launch.checkout != nil:
		t.noteCheckout()
	case t.launch.dir != "":
		t.set(api.ConditionWorkspaceReady, metav1.ConditionTrue, api.ReasonDirectoryPresent, "the working directory is there")
	case meta.FindStatusCondition(t.status.Conditions, api.ConditionWorkspaceReady) == nil:
		t.set(api.ConditionWorkspaceReady, metav1.ConditionUnknown, api.ReasonNotStarted, "the working directory was not looked for yet")
	}
}

// noteCheckout tells of a checkout, unless a job of it has told more.
func (t *turn) noteCheckout() {
	switch {
	case t.launch.dir != "":
		message := "the checkout is at " + t.launch.dir
		if t.strangersHead() {
			message += "; it is not trusted beforehand, because its head is on no branch of the repository: anybody may have written it"
		}
		t.set(api.ConditionWorkspaceReady, metav1.ConditionTrue, api.ReasonCheckoutReady, message)
	case t.obst != nil && t.mem.failed == t.obst:
		t.set(api.ConditionWorkspaceReady, metav1.ConditionFalse, t.obst.Reason, t.obst.Message)
	case t.mem.checkoutGone:
	case t.status.Checkout != nil:
		t.set(api.ConditionWorkspaceReady, metav1.ConditionFalse, api.ReasonDirectoryMissing, "the checkout "+t.status.Checkout.Path+" is gone: it is made again by the next start")
	default:
		t.set(api.ConditionWorkspaceReady, metav1.ConditionFalse, api.ReasonNotStarted, "nothing was checked out yet")
	}
}

// accepting is the condition AcceptingInput, from what is seen and what the hooks
// told.
func (t *turn) accepting() (metav1.ConditionStatus, string, string) {
	tr := t.traits()
	switch {
	case t.sight.Holder != HolderLiveOurs:
		return metav1.ConditionFalse, api.ReasonNotRunning, "no harness runs"
	case t.status.StopRequestedAt != nil:
		return metav1.ConditionFalse, api.ReasonStopping, "the harness has been asked to end"
	case !tr.Evidence:
		return metav1.ConditionTrue, api.ReasonNoEvidence, "this harness has no way to say what it does"
	case t.overdue():
		return metav1.ConditionFalse, api.ReasonNotReady, fmt.Sprintf("the harness did not reach its prompt within %s: it may ask something that the-loop does not know, or still be starting; nothing is typed into it. Attach and look: %s", tr.ReadyWithin, t.status.AttachCommand) + t.mem.words.said()
	case !t.state.Ready:
		return metav1.ConditionFalse, api.ReasonStarting, "the harness has not reached its prompt yet"
	}
	if reason, why, _ := t.refused(); reason != "" {
		return metav1.ConditionFalse, reason, why
	}
	switch t.state.Activity {
	case harness.ActivityAwaitingInput:
		return metav1.ConditionFalse, api.ReasonAwaitingInput, "a dialog of the harness waits for a person: " + t.state.WaitingFor
	case harness.ActivityBusy:
		return metav1.ConditionTrue, api.ReasonBusy, "the harness is in a turn" + t.stalled()
	}
	return metav1.ConditionTrue, api.ReasonIdle, "the harness is at its prompt"
}

// refused says why the vendor refuses the turns of the session, "" when it does not as far
// as is known, and when that ends.
func (t *turn) refused() (reason, why string, ends time.Time) {
	limit, login := t.state.Limited, t.state.LoginRefused
	switch {
	case limit.Holds(t.now()):
		reason, ends = api.ReasonUsageLimited, limit.Ends()
		why = fmt.Sprintf("the harness is at its usage limit, messages wait until %s: %s", ends.UTC().Format(time.RFC3339), limit.Why)
	case login.Holds(t.now()):
		reason, ends = api.ReasonLoginRefused, login.Ends()
		why = fmt.Sprintf("the login of the harness was refused, messages wait, and one is tried at %s; log in again, and restart the session: %s", ends.UTC().Format(time.RFC3339), login.Why)
	default:
		return "", "", time.Time{}
	}
	if t.state.Activity == harness.ActivityAwaitingInput {
		why += "; a dialog of the harness waits for a person: " + t.state.WaitingFor
	}
	return reason, why, ends
}

// observed brings the record up to date with what a live harness told, and says when
// to look again without an event.
func (t *turn) observed() time.Duration {
	if t.sight.Holder != HolderLiveOurs {
		t.status.Activity = nil
		return 0
	}
	if id := t.state.ConversationID; id != "" && t.state.Ready && harness.ValidConversationID(id) {
		// The harness can begin another conversation by itself.
		t.status.ConversationID = id
	}
	t.proveResume()
	if !t.evidence() {
		return 0
	}
	t.status.Activity = &api.Activity{State: api.ActivityState(orElse(string(t.state.Activity), string(harness.ActivityUnknown)))}
	if !t.state.Since.IsZero() {
		t.status.Activity.Since = new(metav1.NewTime(t.state.Since.Truncate(time.Second)))
	}
	if t.state.Ready && t.state.Activity == harness.ActivityIdle && len(t.queue) == 0 {
		if _, _, ends := t.refused(); !ends.IsZero() {
			return ends.Sub(t.now()) // nothing tells that a refusal has ended
		}
		return 0
	}
	if t.state.Ready {
		// A poke can be lost, and an interrupt makes no hook run.
		return lookAgain
	}
	if _, ok := t.launch.adapter.(harness.StateFile); ok && t.status.StartedAt != nil && t.now().Sub(t.status.StartedAt.Time) < t.traits().ReadyWithin {
		// No hook says when it takes input.
		return lookAgainStarting
	}
	return lookAgain
}

// lookAgainStarting is when to look at a harness that has just started.
const lookAgainStarting = 100 * time.Millisecond

func (t *turn) proveResume() {
	c := meta.FindStatusCondition(t.status.Conditions, api.ConditionResumed)
	if c == nil || c.Reason != api.ReasonResumePending || t.status.Launch == nil || t.resumeState() != ResumeProved {
		return
	}
	if t.evidence() && !t.state.Resumed {
		t.set(api.ConditionResumed, metav1.ConditionFalse, api.ReasonFreshConversation, "the harness began a conversation of its own instead")
		t.started(false)
		return
	}
	message := "the recorded conversation goes on"
	if t.status.Launch.Updated {
		message += "; the harness was updated since it was last held, so that tools which it was used to may be gone: begin a fresh one where its calls fail"
		t.tell(event.SessionHarnessUpdated, message, "harness", t.status.Harness, "conversation_id", t.status.ConversationID)
	}
	t.set(api.ConditionResumed, metav1.ConditionTrue, api.ReasonConversationContinued, message)
	t.started(true)
}

const (
	// activityFor is how long a harness must do something else before that is written: most
	// turns of a conversation are nobody's news.
	activityFor = 5 * time.Second
	// booksFor is how long what merely counts is kept back.
	booksFor = 10 * time.Second
)

// KeepBack says for how long a status is not to be written that differs from the stored one
// in nothing but what changes all the time and matters little: what the harness does just
// now, as long as it takes input as before, and what was typed last. 0 is to write it now.
func (e *Engine) KeepBack(uid types.UID, changed, stored *api.HostedSessionStatus) time.Duration {
	mem, now := e.memories.of(uid), e.Clock.Now()
	back := func(since *time.Time, d time.Duration) time.Duration {
		if since.IsZero() {
			*since = now
		}
		return max(0, d-now.Sub(*since))
	}
	var wait time.Duration
	switch {
	case equality.Semantic.DeepEqual(changed, stored):
		mem.activitySince = time.Time{}
		return 0
	case !onlyVolatile(changed, stored):
	case activityOf(changed) != activityOf(stored):
		wait = back(&mem.activitySince, activityFor)
	default:
		mem.activitySince = time.Time{}
		wait = back(&mem.booksSince, booksFor)
	}
	if wait == 0 {
		mem.activitySince, mem.booksSince = time.Time{}, time.Time{}
	}
	return wait
}

func activityOf(st *api.HostedSessionStatus) api.ActivityState {
	if st.Activity == nil {
		return ""
	}
	return st.Activity.State
}

// onlyVolatile reports whether a status differs from the stored one in nothing but what
// changes all the time.
func onlyVolatile(changed, stored *api.HostedSessionStatus) bool {
	quiet := changed.DeepCopy()
	quiet.Activity, quiet.LastMessageAt, quiet.LastSequence = stored.Activity, stored.LastMessageAt, stored.LastSequence
	before := meta.FindStatusCondition(stored.Conditions, api.ConditionAcceptingInput)
	after := meta.FindStatusCondition(quiet.Conditions, api.ConditionAcceptingInput)
	if before != nil && after != nil && before.Status == after.Status && after.Status == metav1.ConditionTrue && before.ObservedGeneration == after.ObservedGeneration {
		*after = *before
	}
	return equality.Semantic.DeepEqual(quiet, stored)
}
