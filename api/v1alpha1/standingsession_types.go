package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// StandingSession is one long-lived agent session that belongs to no work
// item: it is addressed by name and runs until it is stopped.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=standingsessions,scope=Namespaced,shortName=standing,categories=theloop
// +kubebuilder:selectablefield:JSONPath=`.spec.hostName`
// +kubebuilder:selectablefield:JSONPath=`.spec.state`
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.spec.hostName`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Input",type=string,JSONPath=`.status.conditions[?(@.type=="AcceptingInput")].reason`
// +kubebuilder:printcolumn:name="Restarts",type=integer,JSONPath=`.status.restarts`
// +kubebuilder:printcolumn:name="Tmux",type=string,JSONPath=`.status.tmuxTarget`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Conversation",type=string,priority=1,JSONPath=`.status.conversationID`
// +kubebuilder:printcolumn:name="Attach",type=string,priority=1,JSONPath=`.status.attachCommand`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9][a-z0-9-]{0,39}$') && !self.metadata.name.endsWith('-')",message="metadata.name must match ^[a-z0-9][a-z0-9-]{0,39}$: at most 40 lower-case letters, digits and '-', neither starting nor ending with '-'"
type StandingSession struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what should run.
	// +required
	Spec StandingSessionSpec `json:"spec"`
	// status is what runs.
	// +optional
	Status StandingSessionStatus `json:"status,omitempty"`
}

// StandingSessionSpec is what should run.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.hostName) || (has(self.hostName) && self.hostName == oldSelf.hostName)",message="spec.hostName is immutable once it is set: delete the session and create it again to move it"
// +kubebuilder:validation:XValidation:rule="[has(self.prompt), has(self.promptFile), has(self.promptFrom)].filter(x, x).size() <= 1",message="set at most one of spec.prompt, spec.promptFile and spec.promptFrom: there is no precedence between them"
type StandingSessionSpec struct {
	HostPlacement `json:",inline"`

	// state is Running for a session that should run, Stopped for one whose
	// harness should be ended with its conversation kept, so that the next start
	// resumes it.
	// +optional
	// +kubebuilder:validation:Enum=Running;Stopped
	// +kubebuilder:default=Running
	State SessionState `json:"state,omitempty"`

	// autoStart says whether the session belongs to what must run for the-loop to
	// be healthy, and whether a start of everything starts it. Default true.
	// +optional
	// +kubebuilder:default=true
	AutoStart *bool `json:"autoStart,omitempty"`

	// description is for people.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Description string `json:"description,omitempty"`

	// harnessArgs are arguments for the harness. Omitted: those of the
	// SessionClass. An empty list: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	// +kubebuilder:validation:items:XValidation:rule=`self.matches(r'^[^\x00]*$')`,message="an argument must not contain a NUL character"
	HarnessArgs []string `json:"harnessArgs,omitzero"`

	// model names one of the models that the SessionClass declares. Omitted: the
	// harness's own choice. One that is not declared, or that the harness refused,
	// is left out: the condition ChoiceApplied says so.
	// +optional
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]*$`
	// +kubebuilder:validation:MaxLength=128
	Model string `json:"model,omitempty"`

	// effort names one of the effort levels that the SessionClass declares. It is
	// left out as a model is.
	// +optional
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9._-]*$`
	// +kubebuilder:validation:MaxLength=64
	Effort string `json:"effort,omitempty"`

	// cwd is the working directory on the host: absolute, or below the home
	// directory with a leading "~/". It must exist. Omitted: the workspace root of
	// the SessionClass.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(/|~$|~/)[^\x00-\x1f\x7f]*$')`,message="spec.cwd must be an absolute path, or start with ~/, without control characters"
	Cwd string `json:"cwd,omitempty"`

	// prompt is the operator's brief. It is typed into a fresh conversation, after
	// what every standing session is told. At most 65536 bytes.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="bytes(self).size() <= 65536",message="prompt must be at most 65536 bytes: put more into a file and refer to it"
	Prompt string `json:"prompt,omitempty"`

	// promptFile is a file on the host with the brief, read at each fresh start. A
	// file that cannot be read fails this session alone.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(/|~/)[^\x00-\x1f\x7f]*$')`,message="spec.promptFile must be an absolute path, or start with ~/, without control characters"
	PromptFile string `json:"promptFile,omitempty"`

	// promptFrom is a place in the cluster with the brief, read at each fresh
	// start.
	// +optional
	PromptFrom *PromptSource `json:"promptFrom,omitempty"`

	// deliveryPolicy: Deliver types messages into the session, Hold keeps them
	// queued, Drop ends them undelivered.
	// +optional
	// +kubebuilder:default=Deliver
	DeliveryPolicy DeliveryPolicy `json:"deliveryPolicy,omitempty"`

	// restartPolicy: Always starts an ended harness again, with increasing delays;
	// Never leaves it ended. A message never starts a standing session.
	// +optional
	// +kubebuilder:validation:Enum=Always;Never
	// +kubebuilder:default=Always
	RestartPolicy RestartPolicy `json:"restartPolicy,omitempty"`

	// slack gives the session a Slack thread of its own.
	// +optional
	Slack *StandingSessionSlack `json:"slack,omitempty"`
}

// PromptSource is a place in the cluster that holds a prompt.
type PromptSource struct {
	// configMapKeyRef is one key of a ConfigMap in the session's namespace.
	// +required
	ConfigMapKeyRef ConfigMapKey `json:"configMapKeyRef"`
}

// ConfigMapKey is one key of one ConfigMap.
type ConfigMapKey struct {
	// name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// key in its data.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// StandingSessionSlack binds a standing session to a Slack thread.
type StandingSessionSlack struct {
	// enabled opens a thread for the session.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// channel in which the thread is opened. Omitted: that of the Slack
	// configuration.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Channel string `json:"channel,omitempty"`
}

// StandingSessionStatus is what runs.
type StandingSessionStatus struct {
	HostedSessionStatus `json:",inline"`
}

// StandingSessionList is a list of StandingSession.
// +kubebuilder:object:root=true
type StandingSessionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []StandingSession `json:"items"`
}

var _ HostedSession = &StandingSession{}

// SessionKind implements HostedSession.
func (s *StandingSession) SessionKind() string { return KindStandingSession }

// Placement implements HostedSession.
func (s *StandingSession) Placement() *HostPlacement { return &s.Spec.HostPlacement }

// WantedState implements HostedSession.
func (s *StandingSession) WantedState() SessionState { return s.Spec.State }

// HostedStatus implements HostedSession.
func (s *StandingSession) HostedStatus() *HostedSessionStatus { return &s.Status.HostedSessionStatus }
