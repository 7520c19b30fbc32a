package v1alpha1

// Kinds whose objects each host one terminal session.
const (
	KindWorkItemSession = "WorkItemSession"
	KindStandingSession = "StandingSession"
)

// Annotations that people and tools set on a session, or on a host where that is said.
const (
	// RestartRequestedAnnotation asks for one restart. Its value is an opaque token: the
	// session is restarted once for each value that differs from
	// status.lastHandledRestart, and no clock is compared.
	RestartRequestedAnnotation = "theloop.dev/restart-requested"
	// PausedAnnotation takes the agent's hands off: while it is present, whatever its
	// value, the agent neither starts, ends nor types into the session.
	PausedAnnotation = "theloop.dev/paused"
	// ForceCleanupAnnotation with the value "true" lets a cleanup end panes that a person
	// opened in the session's terminal, with what is not saved in them.
	ForceCleanupAnnotation = "theloop.dev/force-cleanup"
	// AcceptConversationAnnotation lets a session go on with a conversation that somebody else
	// wrote to. Its value is the digest of the file that was looked at, as the session's
	// message names it (reason ConversationAltered): what is written to it later is not
	// accepted with it.
	AcceptConversationAnnotation = "theloop.dev/accept-conversation"
	// UndoCleanupAnnotation asks, with an opaque token as its value, that the next
	// checkout of the session be the one that was removed last, with its uncommitted
	// work, instead of a new one. It is done once for each value that differs from
	// status.lastHandledUndo.
	UndoCleanupAnnotation = "theloop.dev/undo-cleanup-requested"
	// ModelsCheckRequestedAnnotation on a SessionHost asks, with an opaque token as its
	// value, that its harnesses be asked anew about all declared models and efforts. It is
	// done once for each value that differs from status.lastHandledModelsCheck.
	ModelsCheckRequestedAnnotation = "theloop.dev/models-check-requested"
	// RecallAnnotation on a SessionMessage, whatever its value, takes the message back: one
	// that was not typed yet ends as Dropped with the reason Recalled. One that was, or may
	// have been, comes to the outcome that is true of it: it was too late.
	RecallAnnotation = "theloop.dev/recall-requested"
	// DeclaredByAnnotation names what declares a StandingSession whose origin is
	// OriginDeclared, as <file>#<path of the entry>. On one of another origin it names
	// what declared it last: the session is no longer declared, and its name may be
	// declared again.
	DeclaredByAnnotation = "theloop.dev/declared-by"
)

// CreatedVersionAnnotation on a SessionMessage is the resourceVersion with which it was
// created: the order of the messages of one session, finer than seconds. The controller
// sets it when it hands the message to the session's host.
const CreatedVersionAnnotation = "theloop.dev/created-version"

// Labels.
const (
	// DefaultClassLabel marks, with the value "true", the SessionClass of sessions that
	// name none.
	DefaultClassLabel = "theloop.dev/default-class"
	// OriginLabel says where the definition of a StandingSession lives: OriginDeclared
	// or OriginCreated.
	OriginLabel = "theloop.dev/origin"
	// HostLabel on a SessionMessage is the host of the session that it is for. The
	// controller sets it, so that an agent watches only its own messages.
	HostLabel = "theloop.dev/host"
)

// Values of OriginLabel.
const (
	// OriginDeclared: the definition lives in a configuration file; deleting the object
	// alone would not last.
	OriginDeclared = "declared"
	// OriginCreated: the object is the definition.
	OriginCreated = "created"
)

// SessionFinalizer holds a session object until its host has let go of the
// terminal session. The controller adds it when it binds the session, before
// anything can be started; the agent removes it.
const SessionFinalizer = "theloop.dev/session"

// LeaseNamespace is where each agent keeps the Lease that shows that its host is
// alive. The Lease has the name of the SessionHost.
const LeaseNamespace = "theloop-system"
