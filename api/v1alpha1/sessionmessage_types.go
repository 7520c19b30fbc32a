package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SessionMessage is one text for one session. Creating it is accepting it: it
// is durable from then on, typed into the session in order and once, and its
// status says truthfully what became of it. Creating it again under the same
// name is a duplicate that the API server refuses.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=sessionmessages,scope=Namespaced,shortName=smsg,categories=theloop
// +kubebuilder:selectablefield:JSONPath=`.spec.sessionRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.sessionRef.kind`
// +kubebuilder:printcolumn:name="Session",type=string,JSONPath=`.spec.sessionRef.name`
// +kubebuilder:printcolumn:name="Seq",type=integer,JSONPath=`.status.sequence`
// +kubebuilder:printcolumn:name="Outcome",type=string,JSONPath=`.status.outcome`
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=`.spec.source.type`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Actor",type=string,priority=1,JSONPath=`.spec.source.actor`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.reason`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name must be at most 63 characters"
type SessionMessage struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the message. It is immutable.
	// +required
	Spec SessionMessageSpec `json:"spec"`
	// status is what became of it.
	// +optional
	Status SessionMessageStatus `json:"status,omitempty"`
}

// SessionMessageSpec is the message.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable: create another SessionMessage"
type SessionMessageSpec struct {
	// sessionRef names the session, in the same namespace.
	// +required
	SessionRef SessionReference `json:"sessionRef"`

	// text is typed into the session. Control characters do not reach the
	// terminal. At most 262144 bytes.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1048576
	// +kubebuilder:validation:XValidation:rule="bytes(self).size() <= 262144",message="text must be at most 262144 bytes: put more into a file in the session's directory and refer to it"
	Text string `json:"text"`

	// source says where the text comes from.
	// +optional
	// +kubebuilder:default={}
	Source MessageSource `json:"source,omitempty"`

	// expiresAfterSeconds ends a message that could not be typed in this time
	// since its creation. Omitted: never.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2592000
	ExpiresAfterSeconds *int32 `json:"expiresAfterSeconds,omitempty"`

	// ttlSecondsAfterFinished is how long the message is kept once it has its
	// final outcome. Default 345600 (4 days), more than the time in which GitHub
	// redelivers.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2592000
	// +kubebuilder:default=345600
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// SessionReference names one session.
type SessionReference struct {
	// kind is WorkItemSession or StandingSession.
	// +required
	// +kubebuilder:validation:Enum=WorkItemSession;StandingSession
	Kind string `json:"kind"`
	// name of the session.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$')",message="sessionRef.name must be the name of a session: lower-case letters, digits, '-' and '.', starting and ending with a letter or digit"
	Name string `json:"name"`
	// uid of the session. Given, the message is only for that very object and not
	// for a later one of the same name.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid,omitempty"`
}

// MessageSourceType is the kind of place that a message comes from.
// +kubebuilder:validation:Enum=Person;Boot;GitHub;Slack;System
type MessageSourceType string

// Message sources.
const (
	// SourcePerson: somebody with access to the cluster.
	SourcePerson MessageSourceType = "Person"
	// SourceBoot: the first message of a fresh conversation, made by the agent.
	SourceBoot MessageSourceType = "Boot"
	// SourceGitHub: a GitHub event.
	SourceGitHub MessageSourceType = "GitHub"
	// SourceSlack: a reply in Slack.
	SourceSlack MessageSourceType = "Slack"
	// SourceSystem: the-loop itself.
	SourceSystem MessageSourceType = "System"
)

// Values of MessageSource.Trust. What is not an operator's is typed in an envelope that says
// where it comes from and that it is data.
const (
	TrustOperator     = "Operator"
	TrustCollaborator = "Collaborator"
	TrustUntrusted    = "Untrusted"
)

// MessageSource says where a message comes from.
type MessageSource struct {
	// type of the source. Default Person.
	// +optional
	// +kubebuilder:default=Person
	Type MessageSourceType `json:"type,omitempty"`
	// id of the event at its source, such as a comment's node id.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ID string `json:"id,omitempty"`
	// url of the event for people.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`
	// actor is who said it.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[^\x00-\x1f\x7f-\x9f]*$')`,message="source.actor must not contain control characters"
	Actor string `json:"actor,omitempty"`
	// trust: Operator for somebody who may steer the session, Collaborator for
	// somebody known, Untrusted for anybody else. The text of the last two is
	// typed in an envelope that says where it comes from and that it is data.
	// +optional
	// +kubebuilder:validation:Enum=Operator;Collaborator;Untrusted
	// +kubebuilder:default=Operator
	Trust string `json:"trust,omitempty"`
}

// MessageOutcome is what became of a message, in one word.
// +kubebuilder:validation:Enum=Queued;Held;Typed;Submitted;Refused;Dropped;Unknown
type MessageOutcome string

// Message outcomes. Only OutcomeSubmitted is success.
const (
	// OutcomeQueued: waits for its turn.
	OutcomeQueued MessageOutcome = "Queued"
	// OutcomeHeld: its turn has come, but the session takes no input now.
	OutcomeHeld MessageOutcome = "Held"
	// OutcomeTyped (final): typed, without evidence that the harness took it.
	OutcomeTyped MessageOutcome = "Typed"
	// OutcomeSubmitted (final): the harness took it as a prompt.
	OutcomeSubmitted MessageOutcome = "Submitted"
	// OutcomeRefused (final): cannot be delivered, and was not.
	OutcomeRefused MessageOutcome = "Refused"
	// OutcomeDropped (final): not delivered, as the session's policy says.
	OutcomeDropped MessageOutcome = "Dropped"
	// OutcomeUnknown (final): it cannot be told whether it arrived.
	OutcomeUnknown MessageOutcome = "Unknown"
)

// Final reports whether nothing more will happen to the message.
func (o MessageOutcome) Final() bool {
	switch o {
	case OutcomeTyped, OutcomeSubmitted, OutcomeRefused, OutcomeDropped, OutcomeUnknown:
		return true
	}
	return false
}

// Expiry is for how many seconds after its creation the message may be typed, and the field
// that says so; 0 is for ever. class is that of its session, nil when there is none. What a
// session is told at its start is typed however late.
func (m *SessionMessage) Expiry(class *SessionClass) (seconds int32, field string) {
	if after := m.Spec.ExpiresAfterSeconds; after != nil {
		return *after, "spec.expiresAfterSeconds"
	}
	if class == nil || class.Spec.Messages.ExpiresAfterSeconds == nil || m.Spec.Source.Type == SourceBoot {
		return 0, ""
	}
	return *class.Spec.Messages.ExpiresAfterSeconds, "messages.expiresAfterSeconds of the session's class"
}

// SessionMessageStatus is what became of a message.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.outcome) || !(oldSelf.outcome in ['Typed','Submitted','Refused','Dropped','Unknown']) || (has(self.outcome) && self.outcome == oldSelf.outcome)",message="status.outcome is final and does not change: look at the message again"
type SessionMessageStatus struct {
	// sequence is the message's place in the queue of its session, given by the
	// agent of the session's host. After a crash of the agent the numbers of
	// finished messages can be given again; those of waiting ones are not.
	// +optional
	Sequence int64 `json:"sequence,omitempty"`

	// sessionUID is the session that took the message into its queue.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	SessionUID types.UID `json:"sessionUID,omitempty"`

	// outcome in one word: Queued and Held are not final; only Submitted is
	// success.
	// +optional
	Outcome MessageOutcome `json:"outcome,omitempty"`

	// reason of the outcome.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`

	// textDigest is the SHA-256 of the text as it was typed, by which the
	// harness's report is recognised.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TextDigest string `json:"textDigest,omitempty"`

	// conversationID is the conversation into which it was typed.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	ConversationID string `json:"conversationID,omitempty"`

	// evidence is the harness's own word that it took the prompt.
	// +optional
	Evidence *MessageEvidence `json:"evidence,omitempty"`

	// acceptedTime is when the message got its place in the queue.
	// +optional
	AcceptedTime *metav1.MicroTime `json:"acceptedTime,omitempty"`

	// deliveredTime is when the text was pasted.
	// +optional
	DeliveredTime *metav1.MicroTime `json:"deliveredTime,omitempty"`

	// finishedTime is when the outcome became final.
	// +optional
	FinishedTime *metav1.MicroTime `json:"finishedTime,omitempty"`

	// conditions: Accepted, Delivered, Submitted, Failed.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MessageEvidence is the harness's own word that it took a prompt.
type MessageEvidence struct {
	// type of the evidence: the name of the hook that reported the prompt.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Type string `json:"type"`
	// time at which the harness reported it.
	// +required
	Time metav1.MicroTime `json:"time"`
}

// SessionMessageList is a list of SessionMessage.
// +kubebuilder:object:root=true
type SessionMessageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SessionMessage `json:"items"`
}
