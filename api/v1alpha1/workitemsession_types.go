package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// WorkItemSession is one hosted agent session for one work item, such as a
// GitHub issue, or for one pull request that delivers it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=workitemsessions,scope=Namespaced,shortName=worksessions;worksession;wis,categories=theloop
// +kubebuilder:selectablefield:JSONPath=`.spec.hostName`
// +kubebuilder:selectablefield:JSONPath=`.spec.state`
// +kubebuilder:selectablefield:JSONPath=`.spec.parentName`
// +kubebuilder:printcolumn:name="Item",type=string,JSONPath=`.status.item`
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.spec.hostName`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Model",type=string,JSONPath=`.status.model`
// +kubebuilder:printcolumn:name="Input",type=string,JSONPath=`.status.conditions[?(@.type=="AcceptingInput")].reason`
// +kubebuilder:printcolumn:name="Tmux",type=string,JSONPath=`.status.tmuxTarget`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Ready",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Conversation",type=string,priority=1,JSONPath=`.status.conversationID`
// +kubebuilder:printcolumn:name="Attach",type=string,priority=1,JSONPath=`.status.attachCommand`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name must be at most 63 characters: it is used in labels and names of its messages"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.parentName) || self.spec.parentName != self.metadata.name",message="spec.parentName must name another session: that of the work item that the pull request delivers"
type WorkItemSession struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what should run.
	// +required
	Spec WorkItemSessionSpec `json:"spec"`
	// status is what runs.
	// +optional
	Status WorkItemSessionStatus `json:"status,omitempty"`
}

// WorkItemSessionSpec is what should run.
//
// +kubebuilder:validation:XValidation:rule="self.workItem == oldSelf.workItem",message="spec.workItem is immutable: create another session for another work item"
// +kubebuilder:validation:XValidation:rule="has(self.pullRequest) == has(oldSelf.pullRequest) && (!has(self.pullRequest) || self.pullRequest == oldSelf.pullRequest)",message="spec.pullRequest is immutable, and can be neither added nor removed later"
// +kubebuilder:validation:XValidation:rule="has(self.parentName) == has(oldSelf.parentName) && (!has(self.parentName) || self.parentName == oldSelf.parentName)",message="spec.parentName is immutable, and can be neither added nor removed later"
// +kubebuilder:validation:XValidation:rule="has(self.pullRequest) == has(self.parentName)",message="spec.pullRequest and spec.parentName go together: a session for a pull request names the session of the work item that it delivers"
// +kubebuilder:validation:XValidation:rule="!has(self.pullRequest) || self.pullRequest.number != self.workItem.number || self.pullRequest.owner != self.workItem.owner || self.pullRequest.repo != self.workItem.repo",message="spec.pullRequest must be another one than spec.workItem: the session of the work item itself has no pullRequest"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.hostName) || (has(self.hostName) && self.hostName == oldSelf.hostName)",message="spec.hostName is immutable once it is set: delete the session and create it again to move it"
type WorkItemSessionSpec struct {
	HostPlacement `json:",inline"`

	// workItem is the work item that the session is for.
	// +required
	WorkItem WorkItem `json:"workItem"`

	// pullRequest is set when the session hosts one pull request of the work item.
	// +optional
	PullRequest *PullRequest `json:"pullRequest,omitempty"`

	// parentName names the work item's own session, in the same namespace, when
	// pullRequest is set.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$')",message="parentName must be the name of a WorkItemSession: lower-case letters, digits, '-' and '.', starting and ending with a letter or digit"
	ParentName string `json:"parentName,omitempty"`

	// state: Running starts and keeps the session. Stopped ends the harness and
	// keeps the conversation; the terminal is retained or closed as the
	// SessionClass says. CleanedUp ends everything on the host and removes the
	// checkout, uncommitted work included; the object stays as the record.
	// +optional
	// +kubebuilder:validation:Enum=Running;Stopped;CleanedUp
	// +kubebuilder:default=Running
	State SessionState `json:"state,omitempty"`

	// startGates keep the session from being started while the list is not empty.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	StartGates []StartGate `json:"startGates,omitempty"`

	// deliveryPolicy: Deliver types messages into the session, Hold keeps them
	// queued, Drop ends them undelivered (a paused session).
	// +optional
	// +kubebuilder:default=Deliver
	DeliveryPolicy DeliveryPolicy `json:"deliveryPolicy,omitempty"`

	// restartPolicy: OnMessage starts an ended harness again with the next
	// message, Always at once with increasing delays, Never not at all.
	// +optional
	// +kubebuilder:validation:Enum=OnMessage;Always;Never
	// +kubebuilder:default=OnMessage
	RestartPolicy RestartPolicy `json:"restartPolicy,omitempty"`

	// model names one of the models that the SessionClass declares. One that it
	// does not declare, or that the harness refused, is left out: the condition
	// ChoiceApplied says so.
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

	// prompt is what this session is to do, in the words of whoever created it. It
	// becomes a part of the first message of a fresh conversation, as
	// prompts.spawn of the SessionClass says. Omitted: the work item itself is the
	// task. At most 65536 bytes.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="bytes(self).size() <= 65536",message="prompt must be at most 65536 bytes: put more into a file and refer to it"
	Prompt string `json:"prompt,omitempty"`

	// workspace says what is checked out for the session.
	// +optional
	Workspace *SessionWorkspace `json:"workspace,omitempty"`

	// conversation registers a conversation that a person started by hand. Nothing
	// is started at once; the next message resumes it.
	// +optional
	Conversation *RegisteredConversation `json:"conversation,omitempty"`
}

// WorkItem identifies one work item.
type WorkItem struct {
	// provider is the system that holds the work item: github.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9-]*$') && self != 'standing' && !self.startsWith('standing-')",message="provider must match ^[a-z][a-z0-9-]*$, such as github, and must not be 'standing' nor start with 'standing-'"
	Provider string `json:"provider"`
	// host of the provider, with its port when that is not the default. Omitted:
	// github.com.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9-]+([.][A-Za-z0-9-]+)+(:[0-9]+)?|[A-Za-z0-9-]+:[0-9]+)$') && self != 'github.com'",message="host must be a dotted name such as ghe.example.com, with :port if needed, or name:port; leave it out for github.com"
	Host string `json:"host,omitempty"`
	// owner of the repository.
	// +required
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._-]+$') && self != '.' && self != '..'",message="owner must match ^[A-Za-z0-9._-]+$ and must not be '.' or '..'"
	Owner string `json:"owner"`
	// repo is the name of the repository.
	// +required
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._-]+$') && self != '.' && self != '..'",message="repo must match ^[A-Za-z0-9._-]+$ and must not be '.' or '..'"
	Repo string `json:"repo"`
	// number of the issue or pull request.
	// +required
	// +kubebuilder:validation:Minimum=1
	Number int64 `json:"number"`
}

// PullRequest identifies one pull request on the work item's host.
type PullRequest struct {
	// owner of the repository.
	// +required
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._-]+$') && self != '.' && self != '..'",message="owner must match ^[A-Za-z0-9._-]+$ and must not be '.' or '..'"
	Owner string `json:"owner"`
	// repo is the name of the repository.
	// +required
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._-]+$') && self != '.' && self != '..'",message="repo must match ^[A-Za-z0-9._-]+$ and must not be '.' or '..'"
	Repo string `json:"repo"`
	// number of the pull request.
	// +required
	// +kubebuilder:validation:Minimum=1
	Number int64 `json:"number"`
}

// StartGate is one reason not to start a session yet.
type StartGate struct {
	// name of the gate, such as phase-selection. Whoever set it removes it.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')",message="a start gate's name must be lower-case letters, digits and '-', starting and ending with a letter or digit"
	Name string `json:"name"`
}

// SessionWorkspace says what is checked out for a session.
type SessionWorkspace struct {
	// ref is the branch, tag or commit to start from. Omitted: the default branch,
	// or the head of the pull request.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][A-Za-z0-9._/-]*$') && !self.contains('..')",message="workspace.ref must be a plain branch, tag or commit name: it must match ^[A-Za-z0-9][A-Za-z0-9._/-]*$ and not contain '..'"
	Ref string `json:"ref,omitempty"`

	// branch is the branch of the repository to be on. For a pull request it is
	// its head branch, when that is in the repository itself and not in a fork. A
	// branch that is checked out elsewhere on the host is not taken away from
	// there.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][A-Za-z0-9._/-]*$') && !self.contains('..')",message="workspace.branch must be a plain branch name: it must match ^[A-Za-z0-9][A-Za-z0-9._/-]*$ and not contain '..'"
	Branch string `json:"branch,omitempty"`
}

// RegisteredConversation is a conversation that exists already on the host.
type RegisteredConversation struct {
	// id is the harness's own id of the conversation.
	// +required
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$')",message="conversation.id must match ^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
	ID string `json:"id"`
	// workingDirectory is the absolute path of the directory it was started in.
	// +required
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^/[^\x00-\x1f\x7f]*$')`,message="conversation.workingDirectory must be an absolute path without control characters"
	WorkingDirectory string `json:"workingDirectory"`
}

// WorkItemSessionStatus is what runs.
type WorkItemSessionStatus struct {
	HostedSessionStatus `json:",inline"`
	// item is the work item as one word, such as github:octo/repo#15; for a pull
	// request's session, that of the pull request.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Item string `json:"item,omitempty"`
}

// WorkItemSessionList is a list of WorkItemSession.
// +kubebuilder:object:root=true
type WorkItemSessionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WorkItemSession `json:"items"`
}

var _ HostedSession = &WorkItemSession{}

// SessionKind implements HostedSession.
func (s *WorkItemSession) SessionKind() string { return KindWorkItemSession }

// Placement implements HostedSession.
func (s *WorkItemSession) Placement() *HostPlacement { return &s.Spec.HostPlacement }

// WantedState implements HostedSession.
func (s *WorkItemSession) WantedState() SessionState { return s.Spec.State }

// HostedStatus implements HostedSession.
func (s *WorkItemSession) HostedStatus() *HostedSessionStatus { return &s.Status.HostedSessionStatus }
