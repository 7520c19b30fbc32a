package v1alpha1

// Condition types of both session kinds. Each has one owner; every condition
// carries observedGeneration.
const (
	// ConditionScheduled (controller): the session is bound to a host.
	ConditionScheduled = "Scheduled"
	// ConditionHostAvailable (controller): the bound host's lease is fresh. Unknown when
	// the host has gone silent: its sessions may well be running.
	ConditionHostAvailable = "HostAvailable"
	// ConditionWorkspaceReady (agent): the working directory is there.
	ConditionWorkspaceReady = "WorkspaceReady"
	// ConditionSessionRunning (agent): a live pane carries the object's UID.
	ConditionSessionRunning = "SessionRunning"
	// ConditionAcceptingInput (agent): the harness can be handed a message now.
	ConditionAcceptingInput = "AcceptingInput"
	// ConditionResumed (agent): the running conversation continues the recorded one.
	ConditionResumed = "Resumed"
	// ConditionChoiceApplied (agent): the next start of the harness gets the model and the
	// effort that spec asks for. False is no obstacle: it is started without the one in
	// question. Absent when spec asks for neither.
	ConditionChoiceApplied = "ChoiceApplied"
	// ConditionReady (controller): what is wanted is so. Its reason is that of the most
	// important thing in the way; for a stopped session that is meant to be stopped it
	// is True with reason Stopped.
	ConditionReady = "Ready"
)

// Condition types of a SessionMessage, all owned by the agent of the session's
// host, but for messages that never find a session.
const (
	// ConditionAccepted: the message has a place in the session's queue
	// (status.sequence).
	ConditionAccepted = "Accepted"
	// ConditionDelivered: the text was pasted into the session's pane.
	ConditionDelivered = "Delivered"
	// ConditionSubmitted: the harness itself said that it took the text as a prompt.
	// Only this is success.
	ConditionSubmitted = "Submitted"
	// ConditionFailed: the message ended without being submitted, and nothing more will
	// be tried.
	ConditionFailed = "Failed"
)

// Condition types of a SessionHost, owned by the controller.
const (
	// ConditionHostReady: the agent renews its lease.
	ConditionHostReady = "Ready"
)

// Reasons of Scheduled and HostAvailable, and what an operator does about each.
const (
	// ReasonBound: nothing to do.
	ReasonBound = "Bound"
	// ReasonNoHost: no SessionHost takes sessions. Start an agent, uncordon a host, or
	// change spec.hostSelector.
	ReasonNoHost = "NoHostAvailable"
	// ReasonHostNotFound: spec.hostName names no SessionHost. Start its agent or delete
	// the session.
	ReasonHostNotFound = "HostNotFound"
	// ReasonLeaseRenewed: nothing to do.
	ReasonLeaseRenewed = "LeaseRenewed"
	// ReasonHeartbeatStopped: the agent is silent. Look at the host; sessions on it are
	// left alone.
	ReasonHeartbeatStopped = "HeartbeatStopped"
	// ReasonNotBound: the session waits for a host.
	ReasonNotBound = "NotBound"
)

// Reasons of WorkspaceReady, SessionRunning, AcceptingInput, Resumed and Ready,
// and what an operator does about each.
const (
	// ReasonRunning: nothing to do.
	ReasonRunning = "Running"
	// ReasonStarting: the harness was started and has not shown its prompt yet. When it
	// lasts, attach and look.
	ReasonStarting = "Starting"
	// ReasonStopping: the harness has been asked to end, or is on its way to it.
	ReasonStopping = "Stopping"
	// ReasonStopped: the session is stopped, as wanted.
	ReasonStopped = "Stopped"
	// ReasonExited: the harness ended. It is started again as spec.restartPolicy says.
	ReasonExited = "Exited"
	// ReasonOOMKilled: the harness was ended because memory was short, and is started again
	// as spec.restartPolicy says. The message says by whom, and what to raise.
	ReasonOOMKilled = "OOMKilled"
	// ReasonCrashLoop: the harness keeps ending and is restarted ever more slowly.
	// Attach read-only, or look at its last screen.
	ReasonCrashLoop = "CrashLoopBackOff"
	// ReasonGated: spec.startGates is not empty.
	ReasonGated = "Gated"
	// ReasonPaused: the annotation theloop.dev/paused is set: remove it to go on.
	ReasonPaused = "Paused"
	// ReasonHostDraining: spec.scheduling of the SessionHost is Draining. The session was
	// ended there, with its conversation kept, and goes on by itself when that is Enabled
	// again. One that is to go on elsewhere is deleted and created again.
	ReasonHostDraining = "HostDraining"
	// ReasonOccupied: a live terminal session that is not ours holds the name. The
	// message gives the commands to look at it and to end it.
	ReasonOccupied = "SessionOccupied"
	// ReasonConversationInUse: another session of the host goes on with the conversation
	// that is to be resumed. The message names it: stop or delete one of the two.
	ReasonConversationInUse = "ConversationInUse"
	// ReasonConversationAltered: the file of the conversation that is to be resumed is not as
	// the harness left it: somebody else wrote to it. The message names it and how to accept
	// it as it is (annotation theloop.dev/accept-conversation). Moved away, it is replaced by
	// a fresh conversation.
	ReasonConversationAltered = "ConversationAltered"
	// ReasonTmuxUnknown: tmux did not answer, so nothing is done. See the message; a
	// stopped server goes on with kill -CONT.
	ReasonTmuxUnknown = "TmuxUnknown"
	// ReasonClassNotFound: the SessionClass does not exist, or none is marked default.
	ReasonClassNotFound = "ClassNotFound"
	// ReasonHarnessUnsupported: the class names a harness that cannot be hosted.
	ReasonHarnessUnsupported = "HarnessUnsupported"
	// ReasonBinaryMissing: the harness's executable is not on the host.
	ReasonBinaryMissing = "BinaryMissing"
	// ReasonConfigurationBroken: a configuration file that the sessions of the harness share
	// was broken since it was last sound. Nothing is started into it. One that was left half
	// written is restored; else the message says how to put the last good one back.
	ReasonConfigurationBroken = "ConfigurationBroken"
	// ReasonWaitingForCanary: an upgrade of the-loop changed what it prepares for the harness,
	// and another session of the host goes ahead with that until it has reached its prompt.
	// The message names it: when it asks something, answer it there; to have another go
	// ahead, stop or delete it.
	ReasonWaitingForCanary = "WaitingForCanary"
	// ReasonDirectoryMissing: the working directory does not exist on the host.
	ReasonDirectoryMissing = "DirectoryMissing"
	// ReasonDirectoryPresent: nothing to do.
	ReasonDirectoryPresent = "DirectoryPresent"
	// ReasonPreparingWorkspace: the checkout is being made; a large repository takes its time.
	ReasonPreparingWorkspace = "PreparingWorkspace"
	// ReasonCheckoutReady: nothing to do.
	ReasonCheckoutReady = "CheckoutReady"
	// ReasonCheckoutKept: the checkout should be gone and could not be removed; it is
	// tried again. The message says what is in the way.
	ReasonCheckoutKept = "CheckoutKept"
	// ReasonCheckoutRemoved: nothing to do.
	ReasonCheckoutRemoved = "CheckoutRemoved"
	// ReasonNoSeparateCheckout: the session of a pull request needs a checkout of its
	// own. Set workspace.root of the class.
	ReasonNoSeparateCheckout = "NoSeparateCheckout"
	// ReasonPromptUnreadable: promptFile, promptFrom or a template of the SessionClass
	// could not be read.
	ReasonPromptUnreadable = "PromptUnreadable"
	// ReasonInvalidSpec: the session cannot be started as written; the message says
	// what is allowed.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonSpawnFailed: tmux refused to create the session; tried again.
	ReasonSpawnFailed = "SpawnFailed"
	// ReasonNotStarted: nothing was started yet.
	ReasonNotStarted = "NotStarted"
	// ReasonCleanedUp: everything on the host was removed, as wanted.
	ReasonCleanedUp = "CleanedUp"
	// ReasonIdle: the harness is at its prompt.
	ReasonIdle = "Idle"
	// ReasonBusy: the harness is in a turn; a message is queued by the harness.
	ReasonBusy = "Busy"
	// ReasonAwaitingInput: a dialog of the harness is open and waits for a person:
	// attach and answer. Nothing is typed into it.
	ReasonAwaitingInput = "AwaitingInput"
	// ReasonUsageLimited: the vendor refuses every turn until the account's usage limit is
	// reset. Messages wait until the time that the message names; nothing need be done.
	ReasonUsageLimited = "UsageLimited"
	// ReasonLoginRefused: the vendor does not accept the harness's login. Messages wait:
	// log in again on the host, and restart the session.
	ReasonLoginRefused = "LoginRefused"
	// ReasonNoEvidence: the harness has no way to tell what it does.
	ReasonNoEvidence = "NoEvidence"
	// ReasonNotRunning: there is no harness to take input.
	ReasonNotRunning = "NotRunning"
	// ReasonNotReady: the harness did not reach its prompt in time: attach and look.
	ReasonNotReady = "NotReady"
	// ReasonFreshConversation: the session began a conversation of its own.
	ReasonFreshConversation = "FreshConversation"
	// ReasonConversationContinued: the recorded conversation goes on.
	ReasonConversationContinued = "ConversationContinued"
	// ReasonResumePending: a resume was started and is not proved yet.
	ReasonResumePending = "ResumePending"
	// ReasonResumeFailed: the recorded conversation could not be continued; a fresh one
	// was begun.
	ReasonResumeFailed = "ResumeFailed"
	// ReasonReconciling: the host has not looked at the newest version of the object.
	ReasonReconciling = "Reconciling"
)

// Reasons of ChoiceApplied. Those of a model go before those of an effort; the message
// tells of both.
const (
	// ReasonApplied: nothing to do. The message warns when the harness's arguments name
	// one too.
	ReasonApplied = "Applied"
	// ReasonModelNotDeclared: spec.models of the SessionClass does not have spec.model, or
	// not any more. Add it there, or choose another.
	ReasonModelNotDeclared = "ModelNotDeclared"
	// ReasonModelRefused: the harness said that it does not know the model or may not use
	// it. Choose another, or have the host ask again with the annotation
	// theloop.dev/models-check-requested.
	ReasonModelRefused = "ModelRefused"
	// ReasonEffortNotDeclared: spec.efforts of the SessionClass does not have spec.effort,
	// or not any more. Add it there, or choose another.
	ReasonEffortNotDeclared = "EffortNotDeclared"
	// ReasonEffortRefused: the harness said that it does not know the effort. Choose
	// another, or have the host ask again.
	ReasonEffortRefused = "EffortRefused"
	// ReasonNotSupported: the harness has no way to be given this model or effort. Leave it
	// out; the message says what the harness takes.
	ReasonNotSupported = "NotSupported"
)

// Reasons of a SessionMessage's conditions.
const (
	// ReasonQueued: waits for its turn.
	ReasonQueued = "Queued"
	// ReasonSequenced: has its place in the queue.
	ReasonSequenced = "Sequenced"
	// ReasonPasted: stands in the pane.
	ReasonPasted = "Pasted"
	// ReasonPromptTaken: the harness's own hook reported the prompt.
	ReasonPromptTaken = "PromptTaken"
	// ReasonTyped: typed and submitted, but the harness gave no evidence that it took it.
	// Attach and look.
	ReasonTyped = "Typed"
	// ReasonHeld: the gate is closed; the message says by what.
	ReasonHeld = "Held"
	// ReasonDropped: spec.deliveryPolicy of the session is Drop.
	ReasonDropped = "Dropped"
	// ReasonQueueFull: messages.maxPending of the session's class are waiting already. Send
	// it again later, or raise the limit.
	ReasonQueueFull = "QueueFull"
	// ReasonRecalled: taken back before it was typed, by the annotation
	// theloop.dev/recall-requested.
	ReasonRecalled = "Recalled"
	// ReasonExpired: spec.expiresAfterSeconds passed before it was pasted.
	ReasonExpired = "Expired"
	// ReasonSessionNotFound: no such session.
	ReasonSessionNotFound = "SessionNotFound"
	// ReasonSessionNotRunning: the session is not running and a message does not start
	// it.
	ReasonSessionNotRunning = "SessionNotRunning"
	// ReasonEmptyText: nothing was left of the text after sanitising.
	ReasonEmptyText = "EmptyText"
	// ReasonSuperseded: a first message that was never typed, replaced by that of a later
	// start.
	ReasonSuperseded = "Superseded"
	// ReasonOutcomeUnknown: it cannot be told whether the text arrived. It is not tried
	// again.
	ReasonOutcomeUnknown = "OutcomeUnknown"
)
