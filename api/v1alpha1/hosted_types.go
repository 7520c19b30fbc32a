package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SessionState is what a session should be.
type SessionState string

// States of a session.
const (
	SessionStateRunning   SessionState = "Running"
	SessionStateStopped   SessionState = "Stopped"
	SessionStateCleanedUp SessionState = "CleanedUp"
)

// DeliveryPolicy is what becomes of messages for a session.
// +kubebuilder:validation:Enum=Deliver;Drop;Hold
type DeliveryPolicy string

// Delivery policies.
const (
	DeliveryPolicyDeliver DeliveryPolicy = "Deliver"
	DeliveryPolicyDrop    DeliveryPolicy = "Drop"
	DeliveryPolicyHold    DeliveryPolicy = "Hold"
)

// RestartPolicy is when an ended harness is started again.
type RestartPolicy string

// Restart policies.
const (
	RestartPolicyAlways    RestartPolicy = "Always"
	RestartPolicyOnMessage RestartPolicy = "OnMessage"
	RestartPolicyNever     RestartPolicy = "Never"
)

// HostPlacement says which build host runs a session.
type HostPlacement struct {
	// className names the SessionClass that says how the session runs. Omitted:
	// the class labelled theloop.dev/default-class=true.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$')",message="className must be the name of a SessionClass: lower-case letters, digits, '-' and '.', starting and ending with a letter or digit"
	ClassName string `json:"className,omitempty"`

	// hostSelector limits the hosts on which the session may run by the labels of
	// their SessionHost. Omitted: any host.
	// +optional
	HostSelector *metav1.LabelSelector `json:"hostSelector,omitempty"`

	// hostName is the SessionHost that runs the session. The controller sets it
	// once, when it binds the session; set it yourself to choose. It never changes
	// afterwards: a conversation and a checkout live on one host.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$')",message="hostName must be the name of a SessionHost: lower-case letters, digits, '-' and '.', starting and ending with a letter or digit"
	HostName string `json:"hostName,omitempty"`
}

// LaunchMode says how a harness was started.
// +kubebuilder:validation:Enum=Fresh;Resume
type LaunchMode string

// Launch modes.
const (
	// LaunchFresh begins a conversation.
	LaunchFresh LaunchMode = "Fresh"
	// LaunchResume continues the recorded conversation.
	LaunchResume LaunchMode = "Resume"
)

// Launch is one start of the harness. It is recorded before the terminal
// session is created, so that a crash in between is recognised by its id.
type Launch struct {
	// id is unique for each start, and stamped on the terminal session.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id"`
	// mode is Fresh for a new conversation, Resume for the continued one.
	// +required
	Mode LaunchMode `json:"mode"`
	// confirmed: the start was seen to have happened. Until then it is an intent.
	// +optional
	Confirmed bool `json:"confirmed,omitempty"`
	// executable is 16 hexadecimal digits of a digest of path, size and time
	// of the harness's executable: two that differ are two builds.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Executable string `json:"executable,omitempty"`
	// updated: the conversation was held by another build of the harness
	// before, so that tools which it was used to may be gone.
	// +optional
	Updated bool `json:"updated,omitempty"`
}

// ActivityState is what a harness is doing.
// +kubebuilder:validation:Enum=Idle;Busy;AwaitingInput;Unknown
type ActivityState string

// Activity is what the harness is doing, as its own hooks tell.
type Activity struct {
	// state is Idle at the prompt, Busy in a turn, AwaitingInput at a dialog that
	// waits for a person, Unknown without evidence.
	// +required
	State ActivityState `json:"state"`
	// since is when the state was entered.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// SessionCheckout is the checkout in which a session works.
type SessionCheckout struct {
	// path of the directory on the host.
	// +required
	// +kubebuilder:validation:MaxLength=4096
	Path string `json:"path"`
	// root is the workspace root that it is below, where it is found again when
	// the class has another by then.
	// +required
	// +kubebuilder:validation:MaxLength=4096
	Root string `json:"root"`
	// branch that was checked out at first; empty for a detached head.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Branch string `json:"branch,omitempty"`
}

// SessionTermination is an end of a harness that somebody else made.
type SessionTermination struct {
	// reason: OOMKilled when memory was short.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`
	// message says who ended it and what can be done about it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// finishedAt is when it was seen to have ended.
	// +required
	FinishedAt metav1.Time `json:"finishedAt"`
	// launchID is the id of the start that it was the end of.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	LaunchID string `json:"launchID,omitempty"`
}

// HostedSessionStatus is what is known of one hosted terminal session. The
// agent of its host writes it, but for observedGeneration and the conditions
// Scheduled, HostAvailable and Ready, which the controller writes.
type HostedSessionStatus struct {
	// observedGeneration is the generation of the object that the condition Ready
	// is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// tmuxTarget is the name of the terminal session. It is a label for people;
	// the session is recognised by the UID stamped on it.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	TmuxTarget string `json:"tmuxTarget,omitempty"`

	// paneID is the tmux pane that runs the harness; messages are typed into it
	// and no other.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	PaneID string `json:"paneID,omitempty"`

	// serverEpoch identifies the life of the tmux server in which paneID is valid.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ServerEpoch string `json:"serverEpoch,omitempty"`

	// attachCommand is the command that attaches a terminal to the session, on its
	// host.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	AttachCommand string `json:"attachCommand,omitempty"`

	// conversationID is the harness's own id of the conversation, with which it is
	// resumed.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	ConversationID string `json:"conversationID,omitempty"`

	// launch is the newest start of the harness, completed or intended.
	// +optional
	Launch *Launch `json:"launch,omitempty"`

	// harness is the adapter with which the session was launched.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Harness string `json:"harness,omitempty"`

	// harnessArgs, model and effort are those of the newest launch.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	HarnessArgs []string `json:"harnessArgs,omitempty"`
	// model of the newest launch; empty for the harness's own choice.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Model string `json:"model,omitempty"`
	// effort of the newest launch; empty for the harness's own choice.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Effort string `json:"effort,omitempty"`

	// workingDirectory is where the harness was started.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	WorkingDirectory string `json:"workingDirectory,omitempty"`

	// checkout is the directory that the-loop made for the session's repository;
	// absent when there is none.
	// +optional
	Checkout *SessionCheckout `json:"checkout,omitempty"`

	// hostName is the host that has the session.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	HostName string `json:"hostName,omitempty"`

	// startedAt is when the harness was last started.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// stopRequestedAt is when the harness was asked to end; it starts the grace
	// period.
	// +optional
	StopRequestedAt *metav1.Time `json:"stopRequestedAt,omitempty"`

	// closedAt is when the session was last stopped as wanted; empty while it is
	// meant to run.
	// +optional
	ClosedAt *metav1.Time `json:"closedAt,omitempty"`

	// lastTermination is the newest end of the harness that was not its own doing
	// nor ours; it stays when the harness is started again.
	// +optional
	LastTermination *SessionTermination `json:"lastTermination,omitempty"`

	// lastMessageAt is when a message was last typed into the session, to the
	// minute.
	// +optional
	LastMessageAt *metav1.Time `json:"lastMessageAt,omitempty"`

	// lastSequence is the highest sequence number given to a message.
	// +optional
	LastSequence int64 `json:"lastSequence,omitempty"`

	// restarts counts the starts of the harness after the first.
	// +optional
	Restarts int32 `json:"restarts"`

	// activity is what the harness is doing; reported with a delay of some
	// seconds.
	// +optional
	Activity *Activity `json:"activity,omitempty"`

	// lastHandledRestart is the newest value of the annotation
	// theloop.dev/restart-requested that was acted upon.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	LastHandledRestart string `json:"lastHandledRestart,omitempty"`

	// lastHandledUndo is the newest value of the annotation
	// theloop.dev/undo-cleanup-requested that was acted upon.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	LastHandledUndo string `json:"lastHandledUndo,omitempty"`

	// conditions: Scheduled, HostAvailable, WorkspaceReady, SessionRunning,
	// AcceptingInput, Resumed, ChoiceApplied, Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// HostedSession is what WorkItemSession and StandingSession have in common,
// for the code that serves both.
// +kubebuilder:object:generate=false
type HostedSession interface {
	metav1.Object
	GetUID() types.UID
	// SessionKind is the object's kind.
	SessionKind() string
	// Placement is the part of the spec that places the session.
	Placement() *HostPlacement
	// WantedState is spec.state.
	WantedState() SessionState
	// HostedStatus is the shared status, to be read and changed in place.
	HostedStatus() *HostedSessionStatus
}
