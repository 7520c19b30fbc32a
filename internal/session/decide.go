// Package session is the life of one hosted terminal session: Decide is the pure
// decision from what is wanted and what is seen; Engine looks and acts. Both kinds
// of session share it.
package session

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

// Desired is what the session should be.
type Desired string

// Desired states. Parked is a session that is to run, on a host that is being drained;
// Deleted is an object with a deletion timestamp.
const (
	DesiredRunning   Desired = "Running"
	DesiredParked    Desired = "Parked"
	DesiredStopped   Desired = "Stopped"
	DesiredCleanedUp Desired = "CleanedUp"
	DesiredDeleted   Desired = "Deleted"
)

// Holder is who holds the session's terminal name. Ours means that the stamp on
// the terminal session is the object's UID, or that the stamp is missing and the
// record names this very pane.
type Holder string

// Holders.
const (
	// HolderUnknown: tmux gave no authoritative answer.
	HolderUnknown Holder = "Unknown"
	HolderAbsent  Holder = "Absent"
	// HolderLiveOurs: a live harness of ours.
	HolderLiveOurs Holder = "LiveOurs"
	// HolderShared: our harness ended, but another pane of the same terminal session
	// lives, opened by a person: it is not to be ended to make room.
	HolderShared   Holder = "Shared"
	HolderDeadOurs Holder = "DeadOurs"
	// HolderLiveOther: stamped with the UID of another object.
	HolderLiveOther Holder = "LiveOther"
	HolderDeadOther Holder = "DeadOther"
	// HolderLiveForeign: not stamped at all.
	HolderLiveForeign Holder = "LiveForeign"
	HolderDeadForeign Holder = "DeadForeign"
)

// Ours reports whether the holder is our own session.
func (h Holder) Ours() bool { return h == HolderLiveOurs || h == HolderShared || h == HolderDeadOurs }

// Resume says what is known of a started resume.
type Resume string

// States of a resume.
const (
	// ResumeNone: the newest launch began a conversation of its own.
	ResumeNone Resume = "None"
	// ResumePending: started, neither proved nor given up.
	ResumePending Resume = "Pending"
	// ResumeProved: by the harness's own word, or by having lived for the probe time.
	ResumeProved Resume = "Proved"
)

// Input is everything that a decision depends on.
type Input struct {
	Desired  Desired
	Paused   bool
	Gates    []string
	Delivery api.DeliveryPolicy
	Restart  api.RestartPolicy
	// RestartRequested: the restart token differs from the one handled last.
	RestartRequested bool

	// Obstacle is why the session cannot be started as it is written, nil when it can.
	Obstacle *Obstacle

	// KeepSession and KillHarness are the class's policy for a stopped session.
	KeepSession, KillHarness bool
	// Tidy: the terminal of a harness that ended by itself is closed.
	Tidy bool
	// RetainUntil is when the retained terminal of a stopped session is closed, zero for
	// never.
	RetainUntil time.Time
	// Force: a cleanup closes also panes that a person opened in our terminal session.
	Force bool
	// Grace between SIGTERM and SIGKILL.
	Grace time.Duration
	// CanResume: policy, harness and a well-formed conversation id allow a resume.
	CanResume bool

	// Lost: the conversation on record is not on the host any more.
	Lost bool

	// Uncompared: whether the conversation on record is still as its harness left it is to be
	// found out before it is gone on with. Altered says how it is not, and what a person does.
	Uncompared bool
	Altered    string

	// Started: the harness of this record ran at some time.
	Started bool
	// Registered: a conversation was registered by hand and never started by us.
	Registered bool
	// Remembered: a conversation is on record from an earlier time on a host, though
	// nothing else is: the session was cleaned up since.
	Remembered bool
	// Intended: a launch was recorded that never came to run.
	Intended bool
	// IntendedMode is the mode of that launch.
	IntendedMode api.LaunchMode
	// Unrecorded: a live session of ours differs from what the record says of it.
	Unrecorded bool
	// Closed: the session was stopped as wanted, and not started since.
	Closed bool
	// StopRequested is when the harness was asked to end, zero when it was not.
	StopRequested time.Time
	// Resume is what is known of the newest launch's resume.
	Resume Resume
	// ResumeRefuted: the harness that was to resume ended by itself with an exit status,
	// so that the conversation cannot be continued. It stays so until the next launch,
	// also when the dead terminal session has been cleared.
	ResumeRefuted bool
	// HowEnded says how the harness ended, as in "with exit status 3", and LastWords what
	// else a person should know of it; "" is nothing.
	HowEnded, LastWords string
	// OutOfMemory: it was ended because memory was short.
	OutOfMemory bool
	// Transcript is the file in which the harness keeps the conversation, "" when that is
	// not known.
	Transcript string
	// Dying: the terminal of our harness is closed, and its process has not been seen to
	// end yet: how it ended is not known.
	Dying bool
	// ProbeUntil is when a pending resume without evidence counts as proved.
	ProbeUntil time.Time
	// BackoffUntil is the earliest time of the next automatic start.
	BackoffUntil time.Time
	// ArgsDiffer: the live harness was launched with other arguments than it would be
	// now.
	ArgsDiffer bool
	// VerdictOutdated: the harness ended by itself, and said nothing since of the model or
	// the effort that the session asks for. VerdictUntil is until when the start is held
	// for the answer, zero for not at all.
	VerdictOutdated bool
	VerdictUntil    time.Time
	// Draft: a person has typed something that is not submitted yet.
	Draft bool

	Holder Holder
	// HolderDetail names the holder for people.
	HolderDetail string
	// OccupantKnown: a Dead- or LiveOther occupant belongs to an object of this host.
	OccupantKnown bool
	// ClearFailed: the dead occupant could not be cleared a moment ago.
	ClearFailed bool
	// Swept: no process of the session is left outside its terminal.
	Swept bool
	// EndpointsLeft names sessions of pull requests of this item that have something left on
	// their hosts; "" is none.
	EndpointsLeft string
	// CheckoutMissing: the checkout in which the harness is to be started is not there.
	CheckoutMissing bool
	// RemoveCheckout: there is a checkout, and it is not to outlive the session.
	RemoveCheckout bool
	// RemovalProblem is why it could not be removed a moment ago.
	RemovalProblem string
	// MessageDue: a message is next in the queue.
	MessageDue bool

	Now time.Time
}

// Obstacle is why a session cannot be started.
type Obstacle struct {
	Reason, Message string
}

// Action is the one thing to do.
type Action string

// Actions.
const (
	// ActionNone: nothing; Reason and Message say why.
	ActionNone Action = "None"
	// ActionSpawn creates the terminal session with Plan.Mode.
	ActionSpawn Action = "Spawn"
	// ActionClear ends the dead occupant of the name.
	ActionClear Action = "Clear"
	// ActionTerminate asks our harness to end (SIGTERM) and starts the grace period.
	ActionTerminate Action = "Terminate"
	// ActionKill ends our harness (SIGKILL).
	ActionKill Action = "Kill"
	// ActionSweep ends processes of ours outside the terminal, after the harness.
	ActionSweep Action = "Sweep"
	// ActionKillSession closes our dead terminal session.
	ActionKillSession Action = "KillSession"
	// ActionClose records that the session is stopped, as wanted.
	ActionClose Action = "Close"
	// ActionCompare compares the conversation with what its harness left.
	ActionCompare Action = "Compare"
	// ActionPrepareCheckout makes the checkout in which the harness is to be started.
	ActionPrepareCheckout Action = "PrepareCheckout"
	// ActionRemoveCheckout removes the checkout, and keeps what was not committed.
	ActionRemoveCheckout Action = "RemoveCheckout"
	// ActionCleanUp clears what the record says of this host.
	ActionCleanUp Action = "CleanUp"
	// ActionRelease lets the object go.
	ActionRelease Action = "Release"
	// ActionAsk has the harness asked about the model and the effort of the session.
	ActionAsk Action = "Ask"
	// ActionAdopt records a live session of ours that the record does not know yet.
	ActionAdopt Action = "Adopt"
	// ActionDeliver takes the next message as far as it goes.
	ActionDeliver Action = "Deliver"
)

// Disposition is what becomes of messages that are not being delivered.
type Disposition string

// Dispositions.
const (
	// MessagesWait keeps them queued.
	MessagesWait Disposition = "Wait"
	// MessagesDeliver types them in order.
	MessagesDeliver Disposition = "Deliver"
	// MessagesDrop ends them undelivered, by policy.
	MessagesDrop Disposition = "Drop"
	// MessagesRefuse ends them undelivered: the session does not run.
	MessagesRefuse Disposition = "Refuse"
)

// Plan is what to do now.
type Plan struct {
	Action Action
	// Mode of the launch when Action is ActionSpawn.
	Mode api.LaunchMode
	// NewConversation mints a new conversation id for the launch.
	NewConversation bool
	// Intended: the launch carries out the recorded intent, under its id.
	Intended bool
	// ResumeFailed: the launch replaces one whose resume failed.
	ResumeFailed bool
	// Restart: the launch answers the restart token.
	Restart bool

	// Running, Reason and Message become the condition SessionRunning.
	Running metav1.ConditionStatus
	Reason  string
	Message string

	// Messages is what becomes of the session's messages meanwhile.
	Messages Disposition
	// Requeue is when to decide again without an event; 0 is never.
	Requeue time.Duration
}

// unknownRequeue is how soon an unanswered question is put again.
const unknownRequeue = 5 * time.Second

// clockJump is what two readings of a clock may differ by without a jump.
const clockJump = 2 * time.Second

// killRequeue is how soon a killed process is looked for again.
const killRequeue = 500 * time.Millisecond

// Decide says what to do. It has no side effect and no memory. Its invariants, over
// all inputs: nothing that is not ours is ended, typed into or spawned over, but for
// a dead occupant in which nothing runs; an unknown holder yields no action; a plan
// without an action says why.
func Decide(in Input) Plan {
	if in.Paused {
		return in.wait(api.ReasonPaused, "the annotation "+api.PausedAnnotation+" is set: remove it to go on", 0)
	}
	if in.Holder == HolderUnknown {
		return in.wait(api.ReasonTmuxUnknown, "tmux did not answer, so nothing is done: "+in.HolderDetail, unknownRequeue)
	}
	switch in.Desired {
	case DesiredStopped, DesiredDeleted:
		return in.stop()
	case DesiredCleanedUp:
		return in.cleanUp()
	case DesiredRunning, DesiredParked:
		p := in.run()
		if in.Desired == DesiredParked {
			p = in.park()
		}
		if in.Delivery == api.DeliveryPolicyDrop {
			p.Messages = MessagesDrop
		}
		return p
	}
	return in.wait(api.ReasonInvalidSpec, fmt.Sprintf("spec.state %q is not known to this agent: upgrade it", in.Desired), 0)
}

// run keeps the session running.
func (in Input) run() Plan {
	if in.Holder == HolderLiveOurs {
		return in.live()
	}
	if in.Holder == HolderDeadOurs && in.Dying {
		return in.wait(api.ReasonStopping, "the harness is ending", killRequeue)
	}
	if len(in.Gates) > 0 {
		return in.wait(api.ReasonGated, fmt.Sprintf("not started while spec.startGates holds %v", in.Gates), 0)
	}
	due, plan := in.startDue()
	if !due && in.Tidy && in.Holder == HolderDeadOurs {
		return in.act(ActionKillSession, api.ReasonExited, "the harness ended; its terminal session is closed, as the class says")
	}
	if !due {
		return plan
	}
	return in.start()
}

// live looks after a harness that runs.
func (in Input) live() Plan {
	switch {
	case !in.StopRequested.IsZero() && !in.Closed:
		return in.terminate("the harness is being ended to be started anew")
	case in.Unrecorded, in.Closed:
		return in.act(ActionAdopt, api.ReasonRunning, "a live session of ours is taken into the record")
	case len(in.Gates) > 0:
		p := in.wait(api.ReasonRunning, fmt.Sprintf("left running although spec.startGates holds %v", in.Gates), 0)
		p.Running = metav1.ConditionTrue
		return p
	case in.RestartRequested && in.Obstacle == nil:
		return in.terminate("a restart was asked for")
	case in.Resume == ResumePending && (in.ProbeUntil.IsZero() || until(in.Now, in.ProbeUntil) > 0):
		p := in.wait(api.ReasonStarting, "a resume was started and is not proved yet", until(in.Now, in.ProbeUntil))
		p.Running = metav1.ConditionTrue
		return p
	}
	return in.serve()
}

// serve hands a running harness its messages.
func (in Input) serve() Plan {
	p := in.wait(api.ReasonRunning, "the session runs", 0)
	if in.Delivery == api.DeliveryPolicyHold {
		p.Message += ", and its messages are held: spec.deliveryPolicy is Hold"
	}
	if in.RestartRequested {
		p.Message += "; the restart that was asked for waits, because it could not be started again: " + in.Obstacle.Message
		p.Requeue = unknownRequeue
	}
	if in.Delivery != api.DeliveryPolicyDeliver {
		return p
	}
	p.Messages = MessagesDeliver
	if !in.MessageDue {
		return p
	}
	// What could not be started again is not ended.
	if !in.ArgsDiffer || in.Obstacle != nil {
		p.Action = ActionDeliver
		return p
	}
	if in.Draft {
		p.Messages = MessagesWait
		p.Message, p.Requeue = "a message waits for a re-launch with changed arguments, which waits for a draft: "+drafted, draftAgain
		return p
	}
	return in.terminate("the next message needs a re-launch with changed arguments")
}

// startDue says whether the session is to be started now, and if not, why.
func (in Input) startDue() (bool, Plan) {
	switch {
	case in.Registered && !in.Started && !in.Intended && !in.RestartRequested:
		if in.MessageDue && in.Delivery == api.DeliveryPolicyDeliver {
			return true, Plan{}
		}
		return false, in.wait(api.ReasonNotStarted, "a registered conversation is resumed by its next message", 0)
	case !in.Started, in.Intended, in.Closed, in.RestartRequested, !in.StopRequested.IsZero():
		return true, Plan{}
	case in.refuted():
		return true, Plan{}
	}
	switch in.Restart {
	case api.RestartPolicyAlways:
		return in.backedOff()
	case api.RestartPolicyOnMessage:
		if in.MessageDue && in.Delivery == api.DeliveryPolicyDeliver {
			return in.backedOff()
		}
		return false, in.wait(in.endReason(), in.ended("the harness ended", "the next message starts it again"), 0)
	}
	p := in.wait(in.endReason(), in.ended("the harness ended", "spec.restartPolicy is Never: set the annotation "+api.RestartRequestedAnnotation+" to start it again"), 0)
	p.Messages = MessagesRefuse
	return false, p
}

// backedOff lets an automatic start go when its delay is over. A message that waits for
// a harness that ends at once would else start it without end.
func (in Input) backedOff() (bool, Plan) {
	if wait := until(in.Now, in.BackoffUntil); wait > 0 {
		return false, in.wait(api.ReasonCrashLoop, in.ended("the harness keeps ending", "it is started again at "+in.BackoffUntil.UTC().Format(time.RFC3339)), wait)
	}
	return true, Plan{}
}

// endReason is the reason of a session whose harness ended and is not to be started again.
func (in Input) endReason() string {
	if in.OutOfMemory {
		return api.ReasonOOMKilled
	}
	return api.ReasonExited
}

// ended says what became of the harness, how it ended, and what is next.
func (in Input) ended(what, next string) string {
	if in.HowEnded != "" {
		what += " " + in.HowEnded
	}
	return what + "; " + next + in.LastWords
}

// start makes the name free and spawns.
func (in Input) start() Plan {
	if in.Obstacle != nil {
		return in.wait(in.Obstacle.Reason, in.Obstacle.Message, unknownRequeue)
	}
	if p, held := in.askFirst(); held && (in.Holder == HolderAbsent || in.Holder == HolderDeadOurs) {
		return p
	}
	switch in.Holder {
	case HolderShared:
		return in.wait(api.ReasonExited, "the harness has ended, and a pane that a person opened keeps its terminal session: close that pane to have it started again", 0)
	case HolderLiveForeign, HolderLiveOther:
		return in.wait(api.ReasonOccupied, in.HolderDetail, 0)
	case HolderDeadOther:
		if in.OccupantKnown {
			return in.wait(api.ReasonOccupied, in.HolderDetail, 0)
		}
		return in.clear()
	case HolderDeadForeign:
		return in.clear()
	case HolderAbsent:
		if in.sweepDue() {
			return in.act(ActionSweep, api.ReasonStarting, "ending what the harness left behind")
		}
		if p, held := in.compareFirst(); held {
			return p
		}
	case HolderDeadOurs:
		if !in.Swept {
			return in.act(ActionSweep, api.ReasonStarting, "ending what the harness left behind")
		}
		if p, held := in.compareFirst(); held {
			return p
		}
		return in.clear()
	}
	return in.spawn()
}

// compareFirst keeps a session from a conversation that somebody else may have written. It
// comes after the sweep, with which the harness's own last write is done, and before the
// terminal is cleared, which is then still there to be read.
func (in Input) compareFirst() (Plan, bool) {
	switch resumes := in.spawned().Mode == api.LaunchResume; {
	case resumes && in.Uncompared:
		return in.act(ActionCompare, api.ReasonStarting, "comparing the conversation with what its harness left"), true
	case resumes && in.Altered != "":
		return in.wait(api.ReasonConversationAltered, in.Altered, unknownRequeue), true
	}
	return Plan{}, false
}

func (in Input) clear() Plan {
	if in.ClearFailed {
		why := "the dead terminal session of this name could not be cleared"
		if in.HolderDetail != "" {
			why += ": " + in.HolderDetail
		}
		return in.wait(api.ReasonOccupied, why, unknownRequeue)
	}
	return in.act(ActionClear, api.ReasonStarting, "clearing the dead terminal session of this name")
}

func (in Input) spawn() Plan {
	if in.CheckoutMissing {
		return in.act(ActionPrepareCheckout, api.ReasonPreparingWorkspace, "making the checkout")
	}
	return in.spawned()
}

// spawned is the launch, with the conversation that it begins or goes on with.
func (in Input) spawned() Plan {
	p := in.act(ActionSpawn, api.ReasonStarting, "starting the harness")
	p.Restart = in.RestartRequested
	switch {
	case in.Intended && (in.IntendedMode == api.LaunchFresh || in.CanResume):
		p.Mode, p.Intended = in.IntendedMode, true
	case in.refuted(), in.Lost && (in.Started || in.Registered || in.Remembered):
		p.Mode, p.NewConversation, p.ResumeFailed = api.LaunchFresh, true, true
	case (in.Started || in.Registered || in.Remembered) && in.CanResume:
		p.Mode = api.LaunchResume
	default:
		p.Mode, p.NewConversation = api.LaunchFresh, true
	}
	return p
}

// refuted reports that the newest launch was a resume that failed: its harness ended by
// itself. One that was cut off, with its terminal server or by a signal, or that we
// ended before it was proved, is tried again.
func (in Input) refuted() bool {
	return in.Resume == ResumePending && in.ResumeRefuted && in.StopRequested.IsZero() && !in.Closed
}

// sweepDue reports whether processes of an earlier launch may be left outside the
// terminal. A launch that never came to be seen may have left some, too: the terminal
// server can end right behind it.
func (in Input) sweepDue() bool { return (in.Started || in.Intended) && !in.Swept }

func (in Input) act(a Action, reason, message string) Plan {
	return Plan{Action: a, Running: in.running(), Reason: reason, Message: message, Messages: MessagesWait}
}

func (in Input) wait(reason, message string, requeue time.Duration) Plan {
	return Plan{Action: ActionNone, Running: in.running(), Reason: reason, Message: message, Messages: MessagesWait, Requeue: requeue}
}

// running is the status of SessionRunning: whether a live harness is ours.
func (in Input) running() metav1.ConditionStatus {
	switch in.Holder {
	case HolderLiveOurs:
		return metav1.ConditionTrue
	case HolderUnknown:
		return metav1.ConditionUnknown
	}
	return metav1.ConditionFalse
}

func until(now, then time.Time) time.Duration {
	if then.IsZero() {
		return 0
	}
	return max(0, then.Sub(now))
}
