package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SessionHost is one build host and its agent. The agent creates it and
// reports what the host has; whether the host is alive is told by the Lease of
// the same name, and summarised by the controller in the condition Ready.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=sessionhosts,scope=Cluster,shortName=shost,categories=theloop
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Scheduling",type=string,JSONPath=`.spec.scheduling`
// +kubebuilder:printcolumn:name="Tmux",type=string,JSONPath=`.status.tmux.version`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Socket",type=string,priority=1,JSONPath=`.status.tmux.socket`
// +kubebuilder:printcolumn:name="Agent",type=string,priority=1,JSONPath=`.status.agentInstance`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name must be at most 63 characters: it is used as a label value"
type SessionHost struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what administrators decide about the host.
	// +optional
	// +kubebuilder:default={}
	Spec SessionHostSpec `json:"spec,omitempty"`
	// status is what the agent reports.
	// +optional
	Status SessionHostStatus `json:"status,omitempty"`
}

// HostScheduling says whether a host takes sessions.
// +kubebuilder:validation:Enum=Enabled;Cordoned;Draining
type HostScheduling string

// Scheduling of a host.
const (
	HostSchedulingEnabled  HostScheduling = "Enabled"
	HostSchedulingCordoned HostScheduling = "Cordoned"
	HostSchedulingDraining HostScheduling = "Draining"
)

// SessionHostSpec is what administrators decide about a host.
type SessionHostSpec struct {
	// scheduling: Enabled takes new sessions, Cordoned does not. Draining does not
	// either, and parks the sessions that the host has, such as for a restart of
	// the machine: their harnesses are asked to end, busy or not, and killed after
	// the grace of their SessionClass (tmux.harnessKillGraceSeconds). Each keeps
	// its conversation, checkout and messages, says so with the reason
	// HostDraining, and goes on by itself when scheduling is Enabled or Cordoned
	// again. What had ended by itself before is not started by that.
	// +optional
	// +kubebuilder:default=Enabled
	Scheduling HostScheduling `json:"scheduling,omitempty"`
	// maxSessions bounds the sessions bound to the host. Omitted: no bound.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	MaxSessions *int32 `json:"maxSessions,omitempty"`
}

// SessionHostStatus is what the agent reports of its host.
type SessionHostStatus struct {
	// tmux is the host's terminal server.
	// +optional
	Tmux HostTmux `json:"tmux,omitempty"`
	// harnesses that the agent can host.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Harnesses []HostHarness `json:"harnesses,omitempty"`
	// bootID identifies the boot of the host's kernel.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	BootID string `json:"bootID,omitempty"`
	// agentInstance identifies the agent's process.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	AgentInstance string `json:"agentInstance,omitempty"`
	// agentVersion is the version of the agent.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	AgentVersion string `json:"agentVersion,omitempty"`
	// models is what the harnesses of the host said of the models and efforts
	// that SessionClasses declare: for the classes of sessions of this host, each
	// one asked alone by one cheap call, and again after a day. A verdict can keep
	// a session from being started with a model or an effort; it never offers one
	// that its class does not declare.
	// +optional
	// +listType=map
	// +listMapKey=class
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=512
	Models []ModelVerdict `json:"models,omitempty"`
	// lastHandledModelsCheck is the newest value of the annotation
	// theloop.dev/models-check-requested for which all models and efforts have
	// been asked about anew.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	LastHandledModelsCheck string `json:"lastHandledModelsCheck,omitempty"`
	// conditions: Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// HostTmux is a host's terminal server.
type HostTmux struct {
	// version that tmux reports.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`
	// socket of our server, absolute.
	// +optional
	// +kubebuilder:validation:MaxLength=107
	Socket string `json:"socket,omitempty"`
}

// HostHarness is one harness of a host.
type HostHarness struct {
	// name of the adapter.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// path of the executable; empty when it is not installed.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Path string `json:"path,omitempty"`
}

// ChoiceKind is what a session can choose of its harness.
// +kubebuilder:validation:Enum=Model;Effort
type ChoiceKind string

// Kinds of choices.
const (
	// ChoiceModel is one of spec.models of a SessionClass.
	ChoiceModel ChoiceKind = "Model"
	// ChoiceEffort is one of spec.efforts of a SessionClass.
	ChoiceEffort ChoiceKind = "Effort"
)

// Verdict is what a harness said of a model or an effort.
// +kubebuilder:validation:Enum=Accepted;Refused;Unknown
type Verdict string

// Verdicts.
const (
	// VerdictAccepted: the harness answered with it.
	VerdictAccepted Verdict = "Accepted"
	// VerdictRefused: the harness said that it does not know it or may not use it.
	VerdictRefused Verdict = "Refused"
	// VerdictUnknown: the harness could not be asked, or its answer was about
	// something else. Nothing is withheld for it.
	VerdictUnknown Verdict = "Unknown"
)

// ModelVerdict is what a harness said of one model or effort. It counts for a
// day, for sessions with the same arguments, environment and executable.
type ModelVerdict struct {
	// class is the SessionClass that declares it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Class string `json:"class"`
	// kind is Model or Effort.
	// +required
	Kind ChoiceKind `json:"kind"`
	// name of the model or the effort.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name"`
	// harness is the adapter that was asked.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Harness string `json:"harness,omitempty"`
	// argsDigest is the beginning, 16 hexadecimal digits, of the SHA-256 of the
	// harness arguments, joined by NUL.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	ArgsDigest string `json:"argsDigest,omitempty"`
	// runtimeDigest is the same of what else the answer depends on: the executable
	// (its real path, size and time of change) and the environment of the class.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	RuntimeDigest string `json:"runtimeDigest,omitempty"`
	// verdict: Accepted, Refused, or Unknown.
	// +required
	Verdict Verdict `json:"verdict"`
	// checkedAt is when the harness was asked.
	// +required
	CheckedAt metav1.Time `json:"checkedAt"`
	// message is what the harness said, or why it could not be asked. At most 256
	// bytes.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}

// SessionHostList is a list of SessionHost.
// +kubebuilder:object:root=true
type SessionHostList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SessionHost `json:"items"`
}
