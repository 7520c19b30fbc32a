package event

// Hosts. These are about the SessionHost.
var (
	HostConfigBroken = declare(Event{
		Name: "host.config_broken", Action: "Watch", Warning: true, Fields: []string{"harness", "path", "damage", "copy"},
		Help: "A configuration file that the sessions of a harness share was broken: half written, no JSON any more, reset (not by a logout) or gone. Nothing is started into it; `copy` is the last good one.",
	})
	HostConfigRestored = declare(Event{
		Name: "host.config_restored", Action: "Restore", Warning: true, Fields: []string{"harness", "path", "kept"},
		Help: "Such a file, which a writer left half written, was restored from the last good copy; the last three broken ones are kept beside it.",
	})
)

// Sessions. What has a name of its own for standing sessions is told by that name of
// them, and by the name here of the sessions of work items; all else of both.
var (
	SessionRegistered = declare(Event{
		Name: "session.registered", Action: "Bind", Fields: []string{"host", "class"},
		Help: "The session of a work item got its host; from now on something may run.",
	})
	SessionSpawned = declare(Event{
		Name: "session.spawned", Action: "Start", Fields: started("resumed"),
		Help: "The harness of a work item was started for the first time.",
	})
	SessionPRSpawned = declare(Event{
		Name: "session.pr_spawned", Action: "Start", Fields: started("resumed"),
		Help: "The harness of a pull request was started for the first time.",
	})
	SessionRespawned = declare(Event{
		Name: "session.respawned", Action: "Start", Fields: started("resumed"),
		Help: "The harness was started again; one that resumed is told of when it is proved to go on with its conversation.",
	})
	SessionRespawnAverted = declare(Event{
		Name: "session.respawn_averted", Action: "Start", Fields: []string{"tmux_target"},
		Help: "A start was due, and a fresh look found the live harness of the session, which goes on.",
	})
	SessionSpawnFailed = declare(Event{
		Name: "session.spawn_failed", Action: "Start", Warning: true, Fields: []string{"harness", "tmux_target", "reason", "error", "will_retry"},
		Help: "The harness of a work item could not be started, or something is in the way of a start.",
	})
	SessionSpawnDeferred = declare(Event{
		Name: "session.spawn_deferred", Action: "Start", Fields: []string{"gates"},
		Help: "The session is not started while spec.startGates is not empty, or while another goes ahead of it after an upgrade of the-loop.",
	})
	SessionResumeFailed = declare(Event{
		Name: "session.resume_failed", Action: "Resume", Warning: true, Fields: []string{"conversation_id", "error"},
		Help: "The recorded conversation of a work item could not be continued; a fresh one takes its place.",
	})
	SessionHarnessUpdated = declare(Event{
		Name: "session.harness_updated", Action: "Resume", Fields: []string{"harness", "conversation_id"},
		Help: "The recorded conversation goes on with another build of the harness than before: tools that it was used to may be gone.",
	})
	SessionCanaryAsks = declare(Event{
		Name: "session.canary_asks", Action: "Ask", Warning: true, Fields: []string{"harness", "waiting"},
		Help: "The session goes ahead of the others after an upgrade of the-loop, and its harness asks something: they wait until a person has answered there.",
	})
	SessionCanaryLate = declare(Event{
		Name: "session.canary_late", Action: "Start", Warning: true, Fields: []string{"harness"},
		Help: "The session went ahead of the others after an upgrade of the-loop, did not come to its prompt in time and asks nothing that is known: another goes ahead.",
	})
	SessionChoiceChanged = declare(Event{
		Name: "session.choice_changed", Action: "Start", Fields: []string{"old", "new"},
		Help: "The harness is started with another model, effort or other arguments than before.",
	})
	SessionChoiceLeftOut = declare(Event{
		Name: "session.choice_left_out", Action: "Start", Warning: true, Fields: []string{"reason"},
		Help: "The next start of the harness does without the model or the effort that the session asks for; the condition ChoiceApplied says why.",
	})
	SessionPaused = declare(Event{
		Name: "session.paused", Action: "Pause", Fields: []string{"by"},
		Help: "Nothing is done to the session (by annotation), or nothing is typed into it (by deliveryPolicy).",
	})
	SessionResumed = declare(Event{
		Name: "session.resumed", Action: "Resume", Fields: []string{"by"},
		Help: "The pause of the session is over.",
	})
	SessionAwaitingInput = declare(Event{
		Name: "session.awaiting_input", Action: "Ask", Fields: []string{"waiting_for"},
		Help: "A dialog of the harness waits for a person, or it did not reach its prompt in time (`waiting_for` is then `unknown`), or its login was refused (`login`); nothing is typed into it.",
	})
	SessionClosed = declare(Event{
		Name: "session.closed", Action: "Stop", Fields: []string{"tmux_target"},
		Help: "The session of a work item was stopped.",
	})
	SessionRetained = declare(Event{
		Name: "session.retained", Action: "Stop", Fields: []string{"tmux_target"},
		Help: "The terminal of a session that ended is kept, to be read.",
	})
	SessionHarnessTerminated = declare(Event{
		Name: "session.harness_terminated", Action: "Stop", Fields: []string{"tmux_target", "ok", "killed", "error"},
		Help: "The harness was asked to end, and did (ok), with killed when it had to be; or it could not be asked.",
	})
	SessionOOMKilled = declare(Event{
		Name: "session.oom_killed", Action: "End", Warning: true, Fields: []string{"killer", "limit", "tmux_target"},
		Help: "The harness was ended because memory was short; `killer` says by whom, `limit` is the bound of its class.",
	})
	SessionMemoryUnbounded = declare(Event{
		Name: "session.memory_unbounded", Action: "Start", Warning: true, Fields: []string{"limit", "error"},
		Help: "The harness is started without the bound of its memory that its class asks for, which this host cannot keep. It is told once for each cause, and once more after the agent was started anew.",
	})
	SessionReset = declare(Event{
		Name: "session.reset", Action: "Delete", Fields: []string{"removed"},
		Help: "The session of a work item was deleted, and its host has let go of it.",
	})
	SessionCleaned = declare(Event{
		Name: "session.cleaned", Action: "CleanUp", Fields: []string{"removed"},
		Help: "Everything of the session on its host was removed.",
	})
	SessionEndedWithParent = declare(Event{
		Name: "session.ended_with_parent", Action: "Stop", Fields: []string{"parent", "effect"},
		Help: "The session of a pull request is deleted or cleaned up with that of its work item.",
	})
	SessionAbandoned = declare(Event{
		Name: "session.abandoned", Action: "Delete", Warning: true, Fields: []string{"host"},
		Help: "A deleted session was let go without its host, which is gone; whatever still runs there was not ended.",
	})
)

// Messages.
var (
	DispatchQueued = declare(Event{
		Name: "dispatch.queued", Action: "Queue", Quiet: true, Fields: []string{"message", "source", "actor", "sequence", "spawn"},
		Help: "A message got its place in the queue of its session, which is started for it where spawn is true.",
	})
	DispatchDropped = declare(Event{
		Name: "dispatch.dropped", Action: "Deliver", Warning: true, Fields: []string{"message", "source", "actor", "reason"},
		Help: "A message ended without being typed.",
	})
	DispatchSucceeded = declare(Event{
		Name: "dispatch.succeeded", Action: "Deliver", Quiet: true, Fields: []string{"message", "source", "actor", "sequence", "via", "evidence", "queued_seconds", "taken_seconds"},
		Help: "A message, or the first prompt of any session, was typed, and the harness took it, as far as it can tell. It was in the queue for `queued_seconds` and then not taken for `taken_seconds`.",
	})
	DispatchDelayed = declare(Event{
		Name: "dispatch.delayed", Action: "Deliver", Warning: true, Fields: []string{"message", "source", "actor", "reason", "waiting", "queued_seconds"},
		Help: "A message has waited for longer than `messages.alertAfterSeconds` of its class, and with it the others of its session, `waiting` in all. It is told once of a message, once more after the agent was started anew, and not while delivery is paused.",
	})
	DispatchFailed = declare(Event{
		Name: "dispatch.failed", Action: "Deliver", Warning: true, Fields: []string{"message", "source", "actor", "reason", "error", "will_retry"},
		Help: "A message could not be typed, or it cannot be told whether the harness took it.",
	})
)

// Checkouts, and the configuration of harnesses.
var (
	WorkspacePrepared = declare(Event{
		Name: "workspace.prepared", Action: "CheckOut", Fields: []string{"strategy", "checkout", "branch", "reused", "restored"},
		Help: "The checkout of the session is there.",
	})
	WorkspaceRefMissed = declare(Event{
		Name: "workspace.ref_missed", Action: "CheckOut", Warning: true, Fields: []string{"checkout", "error"},
		Help: "The checkout is there, at another place of the history than was asked for.",
	})
	WorkspaceCleaned = declare(Event{
		Name: "workspace.cleaned", Action: "CleanUp", Fields: []string{"checkout", "undo"},
		Help: "A checkout was removed; undo is where its unsaved work is kept.",
	})
	WorkspaceCleanupFailed = declare(Event{
		Name: "workspace.cleanup_failed", Action: "CleanUp", Warning: true, Fields: []string{"error"},
		Help: "A checkout could not be removed; it is tried again.",
	})
	WorkspaceTrusted = declare(Event{
		Name: "workspace.trusted", Action: "Prepare", Fields: []string{"harness", "cwd", "applied"},
		Help: "Something was written into the configuration of the harness before a start, so that it opens on no dialog.",
	})
	WorkspaceTrustFailed = declare(Event{
		Name: "workspace.trust_failed", Action: "Prepare", Warning: true, Fields: []string{"harness", "cwd", "error"},
		Help: "The configuration of the harness could not be prepared; the start went on.",
	})
)

// Standing sessions.
var (
	StandingCreated = declare(Event{
		Name: "standing.created", Action: "Bind", Fields: []string{"host", "class", "cwd", "auto_start"},
		Help: "A standing session got its host; from now on something may run.",
	})
	StandingDeleted = declare(Event{
		Name: "standing.deleted", Action: "Delete", Fields: []string{"removed"},
		Help: "A standing session was deleted, and its host has let go of it.",
	})
	StandingStarted = declare(Event{
		Name: "standing.started", Action: "Start", Fields: started(),
		Help: "A standing session was started with a fresh conversation.",
	})
	StandingResumed = declare(Event{
		Name: "standing.resumed", Action: "Start", Fields: started(),
		Help: "A standing session was started and is proved to go on with its conversation.",
	})
	StandingSpawnFailed = declare(Event{
		Name: "standing.spawn_failed", Action: "Start", Warning: true, Fields: []string{"harness", "tmux_target", "reason", "error", "will_retry"},
		Help: "A standing session could not be started, or something is in the way of a start.",
	})
	StandingResumeFailed = declare(Event{
		Name: "standing.resume_failed", Action: "Resume", Warning: true, Fields: []string{"conversation_id", "error"},
		Help: "The recorded conversation of a standing session could not be continued; a fresh one takes its place.",
	})
	StandingStopped = declare(Event{
		Name: "standing.stopped", Action: "Stop", Fields: []string{"tmux_target"},
		Help: "A standing session was stopped; its conversation is kept.",
	})
	StandingStopFailed = declare(Event{
		Name: "standing.stop_failed", Action: "Stop", Warning: true, Fields: []string{"tmux_target", "error"},
		Help: "A standing session could not be stopped; it is tried again.",
	})
	StandingSaid = declare(Event{
		Name: "standing.said", Action: "Deliver", Quiet: true, Fields: []string{"message", "source", "actor", "sequence", "tmux_target", "evidence", "queued_seconds", "taken_seconds"},
		Help: "A message was typed into a standing session, and the harness took it, as far as it can tell.",
	})
)

// started are the fields of a start.
func started(more ...string) []string {
	return append([]string{"harness", "conversation_id", "tmux_target", "cwd", "model", "effort"}, more...)
}
