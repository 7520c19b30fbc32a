package session_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/session"
)

// given makes an Input: a session of a work item that is wanted to run and was never
// started, on a host where nothing holds its name.
func given(change ...func(*input)) input {
	in := input{
		Desired: session.DesiredRunning, Delivery: api.DeliveryPolicyDeliver, Restart: api.RestartPolicyOnMessage,
		KeepSession: true, KillHarness: true, Grace: grace, Resume: session.ResumeNone, Holder: session.HolderAbsent, Now: now,
		HolderDetail: "attach with tmux attach -r -t =x, end it with tmux kill-session -t =x",
	}
	for _, c := range change {
		c(&in)
	}
	return in
}

// What can be given.
var (
	started = func(in *input) { in.Started, in.CanResume = true, true }
	live    = func(in *input) { started(in); in.Holder = session.HolderLiveOurs }
	swept   = func(in *input) { in.Swept = true }
	oom     = func(in *input) { in.OutOfMemory = true }
	due     = func(in *input) { in.MessageDue = true }
	gated   = func(in *input) { in.Gates = []string{"phase-selection"} }
	closed  = func(in *input) { in.Closed = true }
	pending = func(in *input) { in.Resume = session.ResumePending }
	refuted = func(in *input) { in.Resume, in.ResumeRefuted = session.ResumePending, true }
	restart = func(in *input) { in.RestartRequested = true }
	other   = func(in *input) { in.ArgsDiffer = true }
	left    = func(in *input) { in.RemoveCheckout = true }
	forged  = func(in *input) { in.Altered = "somebody else wrote to it" }
	unsure  = func(in *input) { in.Uncompared = true }
	stuck   = func(in *input) { in.RemovalProblem = "git says no" }
)

func retainedFor(more time.Duration) func(*input) {
	return func(in *input) { in.RetainUntil = now.Add(more) }
}

func holds(h session.Holder) func(*input)       { return func(in *input) { in.Holder = h } }
func wants(d session.Desired) func(*input)      { return func(in *input) { in.Desired = d } }
func policy(r api.RestartPolicy) func(*input)   { return func(in *input) { in.Restart = r } }
func deliver(d api.DeliveryPolicy) func(*input) { return func(in *input) { in.Delivery = d } }

// askedToEnd says how long ago the harness was asked to end.
func askedToEnd(ago time.Duration) func(*input) {
	return func(in *input) { in.StopRequested = now.Add(-ago) }
}

func probed(left time.Duration) func(*input) {
	return func(in *input) { in.ProbeUntil = now.Add(left) }
}

func backoff(left time.Duration) func(*input) {
	return func(in *input) { in.BackoffUntil = now.Add(left) }
}

func intended(mode api.LaunchMode) func(*input) {
	return func(in *input) { in.Intended, in.IntendedMode = true, mode }
}

var obstructed = func(in *input) {
	in.Obstacle = &session.Obstacle{Reason: api.ReasonBinaryMissing, Message: "claude is not on the host"}
}

var _ = DescribeTable("Decide, row by row of the table of the design", func(in input, action session.Action, reason string) {
	got := session.Decide(in)
	Expect(got.Action).To(Equal(action), got.Message)
	Expect(got.Reason).To(Equal(reason), got.Message)
},
	Entry("lifecycle row Running, gates left: wait (C030, C032)", given(gated), session.ActionNone, api.ReasonGated),
	Entry("lifecycle row Running, gates left: also with a message due", given(gated, started, due), session.ActionNone, api.ReasonGated),
	Entry("lifecycle row Running, gates left: a live holder is left alone", given(gated, live, due), session.ActionNone, api.ReasonRunning),
	Entry("lifecycle row Running, gates gone: started (C031)", given(), session.ActionSpawn, api.ReasonStarting),

	Entry("lifecycle row Running, Unknown: nothing (C171)", given(holds(session.HolderUnknown)), session.ActionNone, api.ReasonTmuxUnknown),
	Entry("lifecycle row Running, Unknown: nothing, started or not", given(started, due, holds(session.HolderUnknown)), session.ActionNone, api.ReasonTmuxUnknown),

	Entry("lifecycle row Running, never started, Absent: spawn (C010)", given(), session.ActionSpawn, api.ReasonStarting),
	Entry("lifecycle row Running, never started, Absent, but the binary is missing (C012)", given(obstructed), session.ActionNone, api.ReasonBinaryMissing),
	Entry("lifecycle row Running, never started, DeadForeign: clear (C014, C170)", given(holds(session.HolderDeadForeign)), session.ActionClear, api.ReasonStarting),
	Entry("lifecycle row Running, never started, DeadOther of nobody: clear", given(holds(session.HolderDeadOther)), session.ActionClear, api.ReasonStarting),
	Entry("lifecycle row Running, never started, DeadOther that is known: not cleared",
		given(holds(session.HolderDeadOther), func(in *input) { in.OccupantKnown = true }), session.ActionNone, api.ReasonOccupied),
	Entry("lifecycle row Running, never started, Dead and cannot be cleared: SessionOccupied, and no loop (C077)",
		given(holds(session.HolderDeadForeign), due, func(in *input) { in.ClearFailed = true }), session.ActionNone, api.ReasonOccupied),
	Entry("lifecycle row Running, never started, LiveForeign: refuse (C013, C168)", given(holds(session.HolderLiveForeign), due), session.ActionNone, api.ReasonOccupied),
	Entry("lifecycle row Running, never started, LiveOther under both names: refuse", given(holds(session.HolderLiveOther)), session.ActionNone, api.ReasonOccupied),

	Entry("lifecycle row Running, started, restart due, Absent: what is left is ended first (T22)", given(started, due), session.ActionSweep, api.ReasonStarting),
	Entry("lifecycle row Running, started, restart due, Absent: respawn (C033)", given(started, due, swept), session.ActionSpawn, api.ReasonStarting),
	Entry("lifecycle row Running, started, restart due, DeadOurs: what is left is ended first", given(started, due, holds(session.HolderDeadOurs)), session.ActionSweep, api.ReasonStarting),
	Entry("lifecycle row Running, started, restart due, DeadOurs: clear", given(started, due, swept, holds(session.HolderDeadOurs)), session.ActionClear, api.ReasonStarting),
	Entry("lifecycle row Running, started, DeadOurs, no message and OnMessage: wait", given(started, holds(session.HolderDeadOurs)), session.ActionNone, api.ReasonExited),
	Entry("lifecycle row Running, started, a message is held: no start", given(started, due, deliver(api.DeliveryPolicyHold)), session.ActionNone, api.ReasonExited),
	Entry("lifecycle row Running, started, Always: respawn", given(started, swept, policy(api.RestartPolicyAlways)), session.ActionSpawn, api.ReasonStarting),
	Entry("lifecycle row Running, started, Always, crash loop (T37)", given(started, swept, policy(api.RestartPolicyAlways), backoff(time.Second)), session.ActionNone, api.ReasonCrashLoop),
	Entry("lifecycle row Running, started, OnMessage, crash loop with the message still due (T37)", given(started, swept, due, backoff(time.Second)), session.ActionNone, api.ReasonCrashLoop),
	Entry("T02: lifecycle row Running, started, out of memory, OnMessage: nothing, with that reason", given(started, swept, oom), session.ActionNone, api.ReasonOOMKilled),
	Entry("T02: lifecycle row Running, started, out of memory, Never: nothing, with that reason", given(started, swept, oom, due, policy(api.RestartPolicyNever)), session.ActionNone, api.ReasonOOMKilled),
	Entry("T02: lifecycle row Running, started, out of memory, Always: respawn", given(started, swept, oom, policy(api.RestartPolicyAlways)), session.ActionSpawn, api.ReasonStarting),
	Entry("T02: lifecycle row Running, started, out of memory again and again: crash loop", given(started, swept, oom, policy(api.RestartPolicyAlways), backoff(time.Second)), session.ActionNone, api.ReasonCrashLoop),
	Entry("lifecycle row Running, started, Never: nothing (C179)", given(started, swept, due, policy(api.RestartPolicyNever)), session.ActionNone, api.ReasonExited),
	Entry("lifecycle row Running, started, Never, and a restart was asked for (C166)", given(started, swept, restart, policy(api.RestartPolicyNever)), session.ActionSpawn, api.ReasonStarting),
	Entry("lifecycle row Running, started, LiveForeign took the name: refuse", given(started, due, holds(session.HolderLiveForeign)), session.ActionNone, api.ReasonOccupied),
	Entry("lifecycle row Running, started, a person's pane keeps the session (T20)", given(started, due, holds(session.HolderShared)), session.ActionNone, api.ReasonExited),

	Entry("lifecycle row Running, started, LiveOurs: nothing to do (C165)", given(live), session.ActionNone, api.ReasonRunning),
	Entry("lifecycle row Running, started, LiveOurs: deliver what is due (C180)", given(live, due), session.ActionDeliver, api.ReasonRunning),
	Entry("lifecycle row Running, started, LiveOurs, Hold: nothing is typed", given(live, due, deliver(api.DeliveryPolicyHold)), session.ActionNone, api.ReasonRunning),
	Entry("lifecycle row Running, started, LiveOurs, Drop: nothing is typed", given(live, due, deliver(api.DeliveryPolicyDrop)), session.ActionNone, api.ReasonRunning),
	Entry("lifecycle row Running, LiveOurs that the record does not know (C021)", given(live, func(in *input) { in.Unrecorded = true }), session.ActionAdopt, api.ReasonRunning),

	Entry("lifecycle row Running, LiveOurs, args differ, message due: terminate (C037)", given(live, due, other), session.ActionTerminate, api.ReasonStopping),
	Entry("lifecycle row Running, LiveOurs, args differ, no message: left alone", given(live, other), session.ActionNone, api.ReasonRunning),
	Entry("lifecycle row Running, LiveOurs, args differ, and a person has a draft", given(live, due, other, func(in *input) { in.Draft = true }), session.ActionNone, api.ReasonRunning),
	Entry("lifecycle row Running, LiveOurs, args differ, and it could not be started again", given(live, due, other, obstructed), session.ActionDeliver, api.ReasonRunning),
	Entry("lifecycle row Running, LiveOurs, args differ: terminating", given(live, due, other, askedToEnd(time.Second)), session.ActionNone, api.ReasonStopping),
	Entry("lifecycle row Running, LiveOurs, args differ: the grace is over", given(live, due, other, askedToEnd(grace)), session.ActionKill, api.ReasonStopping),
	Entry("lifecycle row Running, args differed, ended: respawn", given(started, due, swept, askedToEnd(time.Second)), session.ActionSpawn, api.ReasonStarting),

	Entry("lifecycle row Running, a restart was asked for: terminate", given(live, restart), session.ActionTerminate, api.ReasonStopping),
	Entry("lifecycle row Running, a restart was asked for, and it could not be started again: it runs on", given(live, restart, obstructed), session.ActionNone, api.ReasonRunning),

	Entry("lifecycle row Running, verifying a resume, before the probe time: nothing is typed", given(live, due, pending, probed(time.Second)), session.ActionNone, api.ReasonStarting),
	Entry("lifecycle row Running, verifying a resume, with evidence to come: nothing is typed", given(live, due, pending), session.ActionNone, api.ReasonStarting),
	Entry("lifecycle row Running, verifying a resume, LiveOurs after the probe time: proved", given(live, due, pending, probed(0)), session.ActionDeliver, api.ReasonRunning),
	Entry("T32: Running, dead, and not yet known how it ended: nothing is cleared", given(started, swept, due, refuted, func(in *input) { in.Holder, in.Dying = session.HolderDeadOurs, true }), session.ActionNone, api.ReasonStopping),
	Entry("lifecycle row Running, verifying a resume, dead: a fresh one (C167)", given(started, swept, refuted), session.ActionSpawn, api.ReasonStarting),

	Entry("R14: Running, started, the conversation is not compared yet: what is left is ended first", given(started, due, unsure), session.ActionSweep, api.ReasonStarting),
	Entry("R14: Running, started, the conversation is not compared yet: compare", given(started, swept, due, unsure), session.ActionCompare, api.ReasonStarting),
	Entry("R14: Running, started, it was altered: held", given(started, swept, due, forged), session.ActionNone, api.ReasonConversationAltered),
	Entry("R14: Running, started, it was altered, DeadOurs: its terminal stays to be read",
		given(started, swept, due, forged, holds(session.HolderDeadOurs)), session.ActionNone, api.ReasonConversationAltered),
	Entry("R14: Running, started, it was altered, and nothing calls for a start: as it would be", given(started, swept, forged), session.ActionNone, api.ReasonExited),
	Entry("R14: Running, LiveOurs, whatever its file is: it goes on", given(live, due, forged), session.ActionDeliver, api.ReasonRunning),
	Entry("R14: Running, it was altered, and a fresh conversation is begun anyway", given(started, swept, refuted, forged), session.ActionSpawn, api.ReasonStarting),

	Entry("lifecycle row Stopped, LiveOurs: terminate (C172)", given(live, wants(session.DesiredStopped)), session.ActionTerminate, api.ReasonStopping),
	Entry("lifecycle row Stopped, LiveOurs: the grace runs", given(live, wants(session.DesiredStopped), askedToEnd(time.Second)), session.ActionNone, api.ReasonStopping),
	Entry("lifecycle row Stopped, LiveOurs: KILL by requeue", given(live, wants(session.DesiredStopped), askedToEnd(grace)), session.ActionKill, api.ReasonStopping),
	Entry("lifecycle row Stopped, LiveOurs that the record does not know: stamped and recorded first", given(live, wants(session.DesiredStopped), func(in *input) { in.Unrecorded = true }), session.ActionAdopt, api.ReasonStopping),
	Entry("lifecycle row Stopped, LiveOurs, and the clock jumped back: asked again (T36)", given(live, wants(session.DesiredStopped), askedToEnd(-time.Hour)), session.ActionTerminate, api.ReasonStopping),
	Entry("lifecycle row Stopped, LiveOurs, and two readings of the clock differ a little", given(live, wants(session.DesiredStopped), askedToEnd(-time.Second)), session.ActionNone, api.ReasonStopping),
	Entry("lifecycle row Stopped, ended: sweep", given(started, holds(session.HolderDeadOurs), wants(session.DesiredStopped)), session.ActionSweep, api.ReasonStopping),
	Entry("lifecycle row Stopped, ended: retained by policy", given(started, swept, holds(session.HolderDeadOurs), wants(session.DesiredStopped)), session.ActionClose, api.ReasonStopped),
	Entry("lifecycle row Stopped, ended: closed by policy",
		given(started, swept, holds(session.HolderDeadOurs), wants(session.DesiredStopped), func(in *input) { in.KeepSession = false }), session.ActionKillSession, api.ReasonStopping),
	Entry("lifecycle row Stopped, the harness is to be kept running", given(live, wants(session.DesiredStopped), func(in *input) { in.KillHarness = false }), session.ActionClose, api.ReasonStopped),
	Entry("lifecycle row Stopped, LiveForeign: nothing (C168)", given(wants(session.DesiredStopped), closed, holds(session.HolderLiveForeign)), session.ActionNone, api.ReasonStopped),
	Entry("lifecycle row Stopped, LiveOther: nothing", given(wants(session.DesiredStopped), closed, holds(session.HolderLiveOther)), session.ActionNone, api.ReasonStopped),
	Entry("lifecycle row Stopped, Unknown: not called stopped (C173)", given(started, wants(session.DesiredStopped), holds(session.HolderUnknown)), session.ActionNone, api.ReasonTmuxUnknown),
	Entry("lifecycle row Stopped, and wanted again: respawn (C166)", given(started, swept, closed), session.ActionSpawn, api.ReasonStarting),
	Entry("lifecycle row Stopped with its harness running, and wanted again: taken back", given(live, closed), session.ActionAdopt, api.ReasonRunning),

	Entry("lifecycle row Parked, LiveOurs: terminate (K18)", given(live, wants(session.DesiredParked)), session.ActionTerminate, api.ReasonStopping),
	Entry("lifecycle row Parked, LiveOurs, busy with a message: terminate all the same (K21)", given(live, due, wants(session.DesiredParked)), session.ActionTerminate, api.ReasonStopping),
	Entry("lifecycle row Parked, LiveOurs: the grace runs (K18)", given(live, wants(session.DesiredParked), askedToEnd(time.Second)), session.ActionNone, api.ReasonStopping),
	Entry("lifecycle row Parked, LiveOurs: the grace is over (K21)", given(live, wants(session.DesiredParked), askedToEnd(grace)), session.ActionKill, api.ReasonStopping),
	Entry("lifecycle row Parked, LiveOurs that the record does not know: recorded first", given(live, wants(session.DesiredParked), func(in *input) { in.Unrecorded = true }), session.ActionAdopt, api.ReasonStopping),
	Entry("lifecycle row Parked, LiveOurs of a stopped session that is wanted again: recorded first", given(live, closed, wants(session.DesiredParked)), session.ActionAdopt, api.ReasonStopping),
	Entry("lifecycle row Parked, the harness is to be kept running by a stop: a drain ends it", given(live, wants(session.DesiredParked), func(in *input) { in.KillHarness = false }), session.ActionTerminate, api.ReasonStopping),
	Entry("lifecycle row Parked, ended: sweep", given(started, askedToEnd(time.Second), holds(session.HolderDeadOurs), wants(session.DesiredParked)), session.ActionSweep, api.ReasonStopping),
	Entry("lifecycle row Parked, ended: wait, with the messages (K18)", given(started, swept, due, askedToEnd(time.Second), holds(session.HolderDeadOurs), wants(session.DesiredParked)), session.ActionNone, api.ReasonHostDraining),
	Entry("lifecycle row Parked, never started: not started (K18)", given(wants(session.DesiredParked)), session.ActionNone, api.ReasonHostDraining),
	Entry("lifecycle row Parked, LiveForeign: nothing", given(holds(session.HolderLiveForeign), wants(session.DesiredParked)), session.ActionNone, api.ReasonHostDraining),
	Entry("lifecycle row Parked, Unknown: nothing", given(started, holds(session.HolderUnknown), wants(session.DesiredParked)), session.ActionNone, api.ReasonTmuxUnknown),
	Entry("lifecycle row Parked, and the host is enabled again: it goes on by itself, whatever its restart policy (K18)",
		given(started, swept, askedToEnd(time.Hour), policy(api.RestartPolicyNever)), session.ActionSpawn, api.ReasonStarting),
	Entry("lifecycle row Parked, and the host is enabled again: what had ended by itself before stays as its policy says",
		given(started, swept, policy(api.RestartPolicyNever)), session.ActionNone, api.ReasonExited),

	Entry("lifecycle row CleanedUp, LiveOurs: terminate", given(live, wants(session.DesiredCleanedUp)), session.ActionTerminate, api.ReasonStopping),
	Entry("lifecycle row CleanedUp, LiveOurs that the record does not know: stamped and recorded first", given(live, wants(session.DesiredCleanedUp), func(in *input) { in.Unrecorded = true }), session.ActionAdopt, api.ReasonStopping),
	Entry("lifecycle row CleanedUp, ended: kill the session, whatever is to be kept", given(started, wants(session.DesiredCleanedUp), holds(session.HolderDeadOurs)), session.ActionKillSession, api.ReasonStopping),
	Entry("lifecycle row CleanedUp, killed: sweep processes", given(started, wants(session.DesiredCleanedUp)), session.ActionSweep, api.ReasonStopping),
	Entry("lifecycle row CleanedUp, a person's pane: refused, saying how to force it (T20)", given(started, wants(session.DesiredCleanedUp), holds(session.HolderShared)), session.ActionNone, api.ReasonOccupied),
	Entry("lifecycle row CleanedUp, a person's pane, forced (T20)", given(started, wants(session.DesiredCleanedUp), holds(session.HolderShared), func(in *input) { in.Force = true }), session.ActionKillSession, api.ReasonStopping),
	Entry("lifecycle row CleanedUp, swept: remove the checkout", given(started, swept, left, wants(session.DesiredCleanedUp)), session.ActionRemoveCheckout, api.ReasonStopping),
	Entry("lifecycle row CleanedUp, the checkout cannot be removed: said, and tried again", given(started, swept, left, stuck, wants(session.DesiredCleanedUp)), session.ActionNone, api.ReasonCheckoutKept),
	Entry("lifecycle row CleanedUp, no checkout: clear the record", given(started, swept, wants(session.DesiredCleanedUp)), session.ActionCleanUp, api.ReasonStopping),
	Entry("lifecycle row CleanedUp, stopped before: the record is cleared all the same", given(started, swept, closed, wants(session.DesiredCleanedUp)), session.ActionCleanUp, api.ReasonStopping),
	Entry("lifecycle row CleanedUp, never started: what there is is removed", given(wants(session.DesiredCleanedUp)), session.ActionCleanUp, api.ReasonStopping),
	Entry("lifecycle row CleanedUp, done", given(closed, wants(session.DesiredCleanedUp)), session.ActionNone, api.ReasonCleanedUp),
	Entry("lifecycle row CleanedUp, endpoints first", given(live, wants(session.DesiredCleanedUp), func(in *input) { in.EndpointsLeft = "pr" }), session.ActionNone, api.ReasonStopping),
	Entry("lifecycle row CleanedUp, and wanted again: started afresh", given(closed), session.ActionSpawn, api.ReasonStarting),

	Entry("lifecycle row Stopped, recorded: remove the checkout", given(started, swept, closed, left, wants(session.DesiredStopped), holds(session.HolderDeadOurs)), session.ActionRemoveCheckout, api.ReasonStopping),
	Entry("lifecycle row Stopped, not recorded: the checkout goes last", given(started, swept, left, wants(session.DesiredStopped), holds(session.HolderDeadOurs)), session.ActionClose, api.ReasonStopped),
	Entry("lifecycle row Stopped, the harness left running: its checkout stays (C093)", given(live, closed, left, wants(session.DesiredStopped), func(in *input) { in.KillHarness = false }), session.ActionNone, api.ReasonStopped),
	Entry("lifecycle row Stopped, retained for its time", given(started, swept, closed, wants(session.DesiredStopped), holds(session.HolderDeadOurs), retainedFor(-time.Second)), session.ActionKillSession, api.ReasonStopping),
	Entry("lifecycle row Stopped, retained still", given(started, swept, closed, wants(session.DesiredStopped), holds(session.HolderDeadOurs), retainedFor(time.Second)), session.ActionNone, api.ReasonStopped),
	Entry("lifecycle row Running, ended by itself, not to remain: its terminal is closed", given(started, policy(api.RestartPolicyOnMessage), holds(session.HolderDeadOurs), func(in *input) { in.Tidy = true }), session.ActionKillSession, api.ReasonExited),
	Entry("lifecycle row Running, never started, no checkout: made before the spawn (C140)", given(func(in *input) { in.CheckoutMissing = true }), session.ActionPrepareCheckout, api.ReasonPreparingWorkspace),
	Entry("lifecycle row deleted, endpoints first", given(live, wants(session.DesiredDeleted), func(in *input) { in.EndpointsLeft = "pr" }), session.ActionNone, api.ReasonStopping),
	Entry("lifecycle row deleted, its checkout first", given(started, swept, left, wants(session.DesiredDeleted)), session.ActionRemoveCheckout, api.ReasonStopping),
	Entry("lifecycle row deleted, its checkout cannot be removed: not let go", given(started, swept, left, stuck, wants(session.DesiredDeleted)), session.ActionNone, api.ReasonCheckoutKept),

	Entry("lifecycle row deleted, LiveOurs: as Stopped", given(live, wants(session.DesiredDeleted)), session.ActionTerminate, api.ReasonStopping),
	Entry("lifecycle row deleted, ended: sweep", given(started, wants(session.DesiredDeleted)), session.ActionSweep, api.ReasonStopping),
	Entry("lifecycle row deleted, done: release", given(started, swept, wants(session.DesiredDeleted)), session.ActionRelease, api.ReasonStopped),
	Entry("lifecycle row deleted, never started: release", given(wants(session.DesiredDeleted)), session.ActionRelease, api.ReasonStopped),
	Entry("lifecycle row deleted, LiveForeign: release, and leave it alone", given(wants(session.DesiredDeleted), holds(session.HolderLiveForeign)), session.ActionRelease, api.ReasonStopped),
	Entry("lifecycle row deleted, Unknown: not released (C177)", given(started, swept, wants(session.DesiredDeleted), holds(session.HolderUnknown)), session.ActionNone, api.ReasonTmuxUnknown),

	Entry("a registered conversation waits for its message", given(func(in *input) { in.Registered = true }), session.ActionNone, api.ReasonNotStarted),
	Entry("a registered conversation is healed by its message (C078)", given(due, func(in *input) { in.Registered = true }), session.ActionSpawn, api.ReasonStarting),
	Entry("a registered conversation is started by a restart that is asked for", given(restart, func(in *input) { in.Registered = true }), session.ActionSpawn, api.ReasonStarting),
	Entry("a start that was recorded and did not come to run: swept, for it may have run (C021, R04)", given(intended(api.LaunchFresh)), session.ActionSweep, api.ReasonStarting),
	Entry("a start that was recorded and did not come to run: tried again", given(swept, intended(api.LaunchFresh)), session.ActionSpawn, api.ReasonStarting),
	Entry("hands off, whatever is wanted", given(live, due, wants(session.DesiredDeleted), func(in *input) { in.Paused = true }), session.ActionNone, api.ReasonPaused),
	Entry("a state of a newer version", given(live, wants("Levitating")), session.ActionNone, api.ReasonInvalidSpec),
)

var _ = DescribeTable("Decide, how a session is started", func(in input, want plan) {
	got := session.Decide(in)
	want.Action, want.Running, want.Reason, want.Messages = session.ActionSpawn, metav1.ConditionFalse, api.ReasonStarting, session.MessagesWait
	want.Message = got.Message
	Expect(got).To(Equal(want))
},
	Entry("C010: the first time", given(), plan{Mode: api.LaunchFresh, NewConversation: true}),
	Entry("C166: again, where the conversation can go on", given(started, swept, due), plan{Mode: api.LaunchResume}),
	Entry("R09: again, where it cannot", given(started, swept, due, func(in *input) { in.CanResume = false }), plan{Mode: api.LaunchFresh, NewConversation: true}),
	Entry("R01: again, where the conversation is there no more", given(started, swept, due, func(in *input) { in.Lost, in.CanResume = true, false }), plan{Mode: api.LaunchFresh, NewConversation: true, ResumeFailed: true}),
	Entry("R01: after a resume that was cut off", given(started, swept, pending, due), plan{Mode: api.LaunchResume}),
	Entry("C167: after a resume that did not hold", given(started, swept, refuted), plan{Mode: api.LaunchFresh, NewConversation: true, ResumeFailed: true}),
	Entry("after a resume that we ended before it was proved", given(started, swept, pending, askedToEnd(time.Second)), plan{Mode: api.LaunchResume}),
	Entry("after a resume that was stopped before it was proved, and is wanted again", given(started, swept, pending, closed), plan{Mode: api.LaunchResume}),
	Entry("a registered conversation", given(due, func(in *input) { in.Registered, in.CanResume = true, true }), plan{Mode: api.LaunchResume}),
	Entry("what was cleaned up, and is wanted again", given(func(in *input) { in.Remembered, in.CanResume = true, true }), plan{Mode: api.LaunchResume}),
	Entry("a registered conversation that cannot be resumed", given(due, func(in *input) { in.Registered = true }), plan{Mode: api.LaunchFresh, NewConversation: true}),
	Entry("C021: as it was intended: afresh, with the conversation on record", given(swept, intended(api.LaunchFresh)), plan{Mode: api.LaunchFresh, Intended: true}),
	Entry("C021: as it was intended: resumed", given(started, swept, intended(api.LaunchResume)), plan{Mode: api.LaunchResume, Intended: true}),
	Entry("a restart that was asked for", given(started, swept, restart), plan{Mode: api.LaunchResume, Restart: true}),
)

var _ = DescribeTable("Decide, what becomes of messages and when it is decided again", func(in input, messages session.Disposition, requeue time.Duration, message string) {
	got := session.Decide(in)
	Expect(got.Messages).To(Equal(messages))
	Expect(got.Requeue).To(Equal(requeue))
	Expect(got.Message).To(ContainSubstring(message))
},
	Entry("it runs", given(live), session.MessagesDeliver, time.Duration(0), "runs"),
	Entry("Hold says so on the messages", given(live, due, deliver(api.DeliveryPolicyHold)), session.MessagesWait, time.Duration(0), "spec.deliveryPolicy is Hold"),
	Entry("Drop", given(live, due, deliver(api.DeliveryPolicyDrop)), session.MessagesDrop, time.Duration(0), "runs"),
	Entry("Drop, not running", given(started, due, deliver(api.DeliveryPolicyDrop), policy(api.RestartPolicyNever)), session.MessagesDrop, time.Duration(0), "Never"),
	Entry("a draft", given(live, due, other, func(in *input) { in.Draft = true }), session.MessagesWait, time.Second, "draft"),
	Entry("C179: stopped", given(wants(session.DesiredStopped), closed, due), session.MessagesRefuse, time.Duration(0), "no terminal session"),
	Entry("C179: ended, and Never", given(started, due, policy(api.RestartPolicyNever)), session.MessagesRefuse, time.Duration(0), api.RestartRequestedAnnotation),
	Entry("C179: ended, Never, and a person's pane lives on", given(started, due, policy(api.RestartPolicyNever), holds(session.HolderShared)), session.MessagesRefuse, time.Duration(0), api.RestartRequestedAnnotation),
	Entry("cleaned up", given(wants(session.DesiredCleanedUp), closed, due), session.MessagesRefuse, time.Duration(0), "removed"),
	Entry("on the way to be stopped they still wait", given(live, due, wants(session.DesiredStopped), askedToEnd(2*time.Second)), session.MessagesWait, 3*time.Second, "killed at 2030-01-02T12:00:03Z"),
	Entry("hands off: they wait", given(live, due, func(in *input) { in.Paused = true }), session.MessagesWait, time.Duration(0), api.PausedAnnotation),
	Entry("tmux is silent: they wait", given(live, due, holds(session.HolderUnknown)), session.MessagesWait, 5*time.Second, "did not answer"),
	Entry("a resume's probe", given(live, due, pending, probed(2*time.Second)), session.MessagesWait, 2*time.Second, "resume"),
	Entry("T37: the delay between starts", given(started, due, backoff(40*time.Second)), session.MessagesWait, 40*time.Second, "2030-01-02T12:00:40Z"),
	Entry("C013, C079: the remedy is named", given(due, holds(session.HolderLiveForeign)), session.MessagesWait, time.Duration(0), "tmux kill-session -t =x"),
	Entry("C015: what could not be cleared is tried again, and not at once", given(due, holds(session.HolderDeadForeign), func(in *input) { in.ClearFailed = true }), session.MessagesWait, 5*time.Second, "could not be cleared"),
	Entry("C012: what is in the way is looked at again", given(due, obstructed), session.MessagesWait, 5*time.Second, "claude is not on the host"),
	Entry("a restart that has to wait is told, and looked at again", given(live, restart, obstructed), session.MessagesDeliver, 5*time.Second, "claude is not on the host"),
)
