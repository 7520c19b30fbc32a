package core

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

// Outcome is what became of a session by a verb, in one word.
type Outcome string

// Outcomes of the verbs.
const (
	OutcomeCreated        Outcome = "created"
	OutcomeStarted        Outcome = "started"
	OutcomeResumed        Outcome = "resumed"
	OutcomeAlreadyRunning Outcome = "already-running"
	OutcomeRestarted      Outcome = "restarted"
	OutcomeStopped        Outcome = "stopped"
	OutcomeNotRunning     Outcome = "not-running"
	OutcomePaused         Outcome = "paused"
	OutcomeHeld           Outcome = "held"
	OutcomeDelivering     Outcome = "delivering"
	OutcomeUnchanged      Outcome = "unchanged"
	OutcomeRegistered     Outcome = "registered"
	OutcomeLinked         Outcome = "linked"
	OutcomeCleaned        Outcome = "cleaned"
	OutcomeUndo           Outcome = "undo-requested"
	OutcomeDeleted        Outcome = "deleted"
	OutcomeReset          Outcome = "reset"
	// OutcomeAccepted: it is stored, and its outcome was not awaited.
	OutcomeAccepted Outcome = "accepted"
	// OutcomeWaiting: it is stored, and something that was asked for is in the way.
	OutcomeWaiting Outcome = "waiting"
	// OutcomeUnconfirmed: it is stored, and did not come about in time.
	OutcomeUnconfirmed Outcome = "unconfirmed"
	OutcomeFailed      Outcome = "failed"
)

// Result is what became of one session.
type Result struct {
	// Session as it was seen last; nil where there is none.
	Session Session `json:"-"`
	Name    string  `json:"name"`
	Outcome Outcome `json:"outcome"`
	// Detail says more, for a person; for a failure what is in the way and what to do.
	Detail string `json:"detail,omitempty"`
	// DryRun: nothing was stored.
	DryRun bool `json:"dryRun,omitempty"`
}

// OK reports whether what was asked for is so, or accepted where it was not awaited.
func (r Result) OK() bool {
	return r.Outcome != OutcomeFailed && r.Outcome != OutcomeUnconfirmed
}

// Err is why the result is not OK: ErrUnconfirmed or ErrFailed.
func (r Result) Err() error {
	switch r.Outcome {
	case OutcomeFailed:
		return refuse(ErrFailed, r.Name+": "+r.Detail, "")
	case OutcomeUnconfirmed:
		return refuse(ErrUnconfirmed, r.Name+": "+r.Detail, "")
	}
	return nil
}

// progress is how far something has come that was asked for.
type progress struct {
	done    bool
	outcome Outcome
	// detail says what it waits for, or more of the outcome.
	detail string
}

func done(o Outcome, detail string) progress { return progress{done: true, outcome: o, detail: detail} }
func waiting(detail string) progress         { return progress{outcome: OutcomeUnconfirmed, detail: detail} }

// current is a condition that is about the newest spec, nil when there is none.
func current(s Session, kind string) *metav1.Condition {
	c := meta.FindStatusCondition(s.HostedStatus().Conditions, kind)
	if c == nil || c.ObservedGeneration != s.GetGeneration() {
		return nil
	}
	return c
}

// obstacles are the reasons for which a start has failed: they go on until a person
// does something.
var obstacles = map[string]bool{
	api.ReasonNoHost: true, api.ReasonHostNotFound: true, api.ReasonHeartbeatStopped: true, api.ReasonClassNotFound: true,
	api.ReasonHarnessUnsupported: true, api.ReasonBinaryMissing: true, api.ReasonDirectoryMissing: true,
	api.ReasonPromptUnreadable: true, api.ReasonInvalidSpec: true, api.ReasonOccupied: true, api.ReasonConversationInUse: true, api.ReasonSpawnFailed: true,
	api.ReasonConversationAltered: true, api.ReasonConfigurationBroken: true,
	api.ReasonNoSeparateCheckout: true, api.ReasonExited: true, api.ReasonOOMKilled: true, api.ReasonCrashLoop: true, api.ReasonTmuxUnknown: true,
}

// holds are the reasons for which a start that is stored waits as it was asked to, or for
// another session: it goes on by itself.
var holds = map[string]bool{api.ReasonPaused: true, api.ReasonGated: true, api.ReasonWaitingForCanary: true}

// starting judges a start. asked is the token of the restart that the start needed, ""
// when a new spec made it.
func starting(s Session, asked string) progress {
	st := s.HostedStatus()
	if s.GetDeletionTimestamp() != nil {
		return done(OutcomeFailed, "the session is being deleted")
	}
	ready := current(s, api.ConditionReady)
	if asked != "" && st.LastHandledRestart != asked {
		why := "the host has not acted upon it yet"
		if ready != nil && ready.Status != metav1.ConditionTrue {
			why = ready.Message
		}
		if ready != nil && holds[ready.Reason] {
			return done(OutcomeWaiting, ready.Message)
		}
		return waiting(why)
	}
	switch {
	case ready == nil || ready.Reason == api.ReasonReconciling:
		return waiting("the host has not looked at it yet")
	case ready.Status == metav1.ConditionTrue:
		return running(s)
	case holds[ready.Reason]:
		return done(OutcomeWaiting, ready.Message)
	case ready.Reason == api.ReasonNotReady:
		p := running(s)
		p.detail = ready.Message
		return p
	case ready.Reason == api.ReasonNotStarted:
		return done(OutcomeWaiting, ready.Message)
	case obstacles[ready.Reason]:
		return done(OutcomeFailed, ready.Reason+": "+ready.Message)
	}
	return waiting(ready.Message)
}

// running tells of a session that runs whether its conversation goes on.
func running(s Session) progress {
	st := s.HostedStatus()
	if st.Launch != nil && st.Launch.Mode == api.LaunchResume {
		return done(OutcomeResumed, "the recorded conversation goes on")
	}
	if c := meta.FindStatusCondition(st.Conditions, api.ConditionResumed); c != nil && c.Reason == api.ReasonResumeFailed {
		return done(OutcomeStarted, "with a fresh conversation: "+c.Message)
	}
	return done(OutcomeStarted, "")
}

// overdue is what a start came to that was not judged in time: a harness that lives is
// started, though it has not reached its prompt.
func overdue(s Session, p progress) progress {
	if c := current(s, api.ConditionSessionRunning); c != nil && c.Status == metav1.ConditionTrue && c.Reason == api.ReasonRunning {
		return done(OutcomeStarted, "it runs, and has not reached its prompt yet: attach and look: "+command(s, "attach"))
	}
	return p
}

// ending judges how far a session has come to a state that is not Running.
func ending(s Session, want api.SessionState) progress {
	word, reason := OutcomeStopped, api.ReasonStopped
	if want == api.SessionStateCleanedUp {
		word, reason = OutcomeCleaned, api.ReasonCleanedUp
	}
	if s.Placement().HostName == "" {
		return done(word, "it was never bound to a host, so nothing runs")
	}
	ready := current(s, api.ConditionReady)
	switch {
	case ready == nil || ready.Reason == api.ReasonReconciling:
		if c := meta.FindStatusCondition(s.HostedStatus().Conditions, api.ConditionHostAvailable); c != nil && c.Status != metav1.ConditionTrue {
			return silent(c)
		}
		return waiting("the host has not looked at it yet")
	case ready.Status == metav1.ConditionTrue && ready.Reason == reason:
		return done(word, ready.Message)
	case ready.Reason == api.ReasonHeartbeatStopped, ready.Reason == api.ReasonHostNotFound:
		return silent(ready)
	case ready.Reason == api.ReasonPaused, ready.Reason == api.ReasonOccupied, ready.Reason == api.ReasonConversationInUse, ready.Reason == api.ReasonCheckoutKept:
		return done(OutcomeUnconfirmed, ready.Message)
	}
	return waiting(ready.Message)
}

// silent is the progress of what a silent host must do: it is not known, and waiting
// does not help.
func silent(c *metav1.Condition) progress {
	return done(OutcomeUnconfirmed, c.Message+"; what was asked for is stored and done when the host is back")
}

// describeEnd says what an end of the session takes away, for a person who is asked to
// think before it is done.
func describeEnd(s Session, keepCheckout bool) string {
	st := s.HostedStatus()
	var what string
	switch Running(s) {
	case metav1.ConditionTrue:
		what = "ends its live session " + st.TmuxTarget
	case metav1.ConditionUnknown:
		what = "ends its session, if it still runs (its host does not say)"
	default:
		what = "no session runs"
	}
	if st.Checkout != nil {
		if keepCheckout {
			what += fmt.Sprintf("; the checkout %s is kept", st.Checkout.Path)
		} else {
			what += fmt.Sprintf("; removes the checkout %s", st.Checkout.Path)
		}
	}
	return what
}
