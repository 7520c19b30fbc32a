package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SessionClass says how sessions run: which harness with which arguments, what
// becomes of the terminal when a session ends, where checkouts live. One class
// may be the default, by the label theloop.dev/default-class=true.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=sessionclasses,scope=Cluster,shortName=sclass,categories=theloop
// +kubebuilder:printcolumn:name="Harness",type=string,JSONPath=`.spec.harness.name`
// +kubebuilder:printcolumn:name="Default",type=string,JSONPath=`.metadata.labels.theloop\.dev/default-class`
// +kubebuilder:printcolumn:name="Permissions",type=string,JSONPath=`.spec.permissions`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Binary",type=string,priority=1,JSONPath=`.spec.harness.binary`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name must be at most 63 characters"
type SessionClass struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec says how sessions of the class run.
	// +required
	Spec SessionClassSpec `json:"spec"`
}

// SessionClassSpec says how sessions run. Every field but harness has a
// default; zero and false are values, not absence.
type SessionClassSpec struct {
	// harness is the coding agent that is hosted.
	// +required
	Harness HarnessSpec `json:"harness"`

	// models that a session may name, by the harness's own names.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]*$`
	Models []string `json:"models,omitempty"`

	// efforts are the effort levels that a session may name.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9][A-Za-z0-9._-]*$`
	Efforts []string `json:"efforts,omitempty"`

	// tmux is what becomes of the terminal session when its harness ends.
	// +optional
	// +kubebuilder:default={}
	Tmux TmuxPolicy `json:"tmux,omitempty"`

	// trust is whether the harness is told beforehand to trust the working
	// directory.
	// +optional
	// +kubebuilder:default={}
	Trust TrustPolicy `json:"trust,omitempty"`

	// plugins is whether the-loop's own plugin is enabled in the harness.
	// +optional
	// +kubebuilder:default={}
	Plugins PluginPolicy `json:"plugins,omitempty"`

	// resources bounds what a session may use of its host. It counts from the next
	// start on.
	// +optional
	Resources SessionResources `json:"resources,omitzero"`

	// workspace is where sessions work.
	// +optional
	// +kubebuilder:default={}
	Workspace WorkspacePolicy `json:"workspace,omitempty"`

	// sessionPerPullRequest says which pull requests of a work item get a
	// session of their own: none, only those in another repository than the work
	// item, or all. It is read by who creates WorkItemSessions from the events of
	// pull requests, which is the GitHub ingress; this version has none. No
	// session that exists is ended by it, and one that a person creates with
	// spec.pullRequest is hosted whatever it says.
	// +optional
	// +kubebuilder:validation:Enum=Never;CrossRepository;Always
	// +kubebuilder:default=Never
	SessionPerPullRequest string `json:"sessionPerPullRequest,omitempty"`

	// interaction is where the agent of a work item asks its questions: WorkItem
	// on the work item, CLI in its own terminal. It decides what the agent is told
	// about that, and WorkItem takes Claude Code the tool with which it would ask
	// in the terminal, unless harness.args say themselves which tools it may not
	// use. It counts from the next start on.
	// +optional
	// +kubebuilder:validation:Enum=WorkItem;CLI
	// +kubebuilder:default=WorkItem
	Interaction string `json:"interaction,omitempty"`

	// prompts are what sessions of work items are told.
	// +optional
	// +kubebuilder:default={}
	Prompts PromptTemplates `json:"prompts,omitempty"`

	// permissions answers the harness's permission dialogs: Ask leaves them to a
	// person at the terminal, Deny and Allow answer them all.
	// +optional
	// +kubebuilder:validation:Enum=Ask;Deny;Allow
	// +kubebuilder:default=Ask
	Permissions string `json:"permissions,omitempty"`

	// announce posts the attach command on the work item when its session is first
	// started. Default true. It is read by who may write on work items, which is
	// the controller with access to GitHub; this version has none, so nothing is
	// posted. status.attachCommand and the event SessionSpawned say the same.
	// +optional
	// +kubebuilder:default=true
	Announce *bool `json:"announce,omitempty"`

	// messages bounds the queue of each session.
	// +optional
	// +kubebuilder:default={}
	Messages MessagePolicy `json:"messages,omitempty"`
}

// HarnessSpec is one coding agent.
//
// +kubebuilder:validation:XValidation:rule="(self.name == 'custom') == has(self.custom)",message="harness.custom is required for the harness 'custom', and allowed for no other"
// +kubebuilder:validation:XValidation:rule="self.name != 'custom' || has(self.binary)",message="harness.binary is required for the harness 'custom'"
type HarnessSpec struct {
	// name of the adapter: claude (Claude Code), codex, gemini (Gemini CLI),
	// opencode, or custom for any other program. cursor is known and refused.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9-]*$')",message="harness.name must match ^[a-z][a-z0-9-]*$, such as claude or custom"
	Name string `json:"name"`

	// binary is the executable: an absolute path on the host, or a name that is
	// looked up on the agent's PATH. Omitted: the adapter's own.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(/[^\x00-\x1f\x7f]*|[^/\x00-\x1f\x7f-][^/\x00-\x1f\x7f]*)$')`,message="harness.binary must be an absolute path, or a plain name to look up on PATH that does not start with '-', without control characters"
	Binary string `json:"binary,omitempty"`

	// args are given to the harness before those of the model and the effort.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	// +kubebuilder:validation:items:XValidation:rule=`self.matches(r'^[^\x00]*$')`,message="an argument must not contain a NUL character"
	Args []string `json:"args,omitempty"`

	// env is added to the harness's environment.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Env []EnvVar `json:"env,omitempty"`

	// custom holds the command line of a program that has no adapter of its own.
	// +optional
	Custom *CustomHarness `json:"custom,omitempty"`
}

// EnvVar is one environment variable.
type EnvVar struct {
	// name of the variable.
	// +required
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z_][A-Za-z0-9_]*$') && !self.startsWith('LOOP_')",message="an environment variable's name must match ^[A-Za-z_][A-Za-z0-9_]*$ and must not start with LOOP_"
	Name string `json:"name"`
	// value of the variable.
	// +optional
	// +kubebuilder:validation:MaxLength=8192
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[^\x00]*$')`,message="an environment variable's value must not contain a NUL character"
	Value string `json:"value,omitempty"`
}

// CustomHarness is the command line of a program that has no adapter of its
// own. In each argument {{conversationID}}, {{promptFile}}, {{model}},
// {{effort}} and {{dir}} are replaced.
type CustomHarness struct {
	// startArgs start a conversation.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	// +kubebuilder:validation:items:XValidation:rule=`self.matches(r'^[^\x00]*$')`,message="an argument must not contain a NUL character"
	StartArgs []string `json:"startArgs,omitempty"`
	// resumeArgs continue one. Omitted: conversations cannot be resumed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	// +kubebuilder:validation:items:XValidation:rule=`self.matches(r'^[^\x00]*$')`,message="an argument must not contain a NUL character"
	ResumeArgs []string `json:"resumeArgs,omitempty"`
}

// PromptTemplates are what sessions of work items are told. Standing sessions
// have a directive of their own, which no class changes.
type PromptTemplates struct {
	// spawn is the first message of a fresh conversation about a work item. With
	// None it is the item's own spec.prompt, as it is; an item without one is then
	// told nothing. The session of a pull request is told its own spec.prompt, as
	// it is: an event starts it, which is a message of its own.
	// +optional
	// +kubebuilder:default={}
	Spawn PromptTemplate `json:"spawn,omitempty"`
	// event is how an event of the work item is put to its session. It is read by
	// who makes a SessionMessage of the event, which is the GitHub ingress; this
	// version has none. What people say is not put into it. With None a message
	// has the excerpt of the event alone.
	// +optional
	// +kubebuilder:default={}
	Event PromptTemplate `json:"event,omitempty"`
}

// PromptTemplate is one text with placeholders. $work_item, $event, $action,
// $repository, $delivery_id, $payload_excerpt, $interaction_directive,
// $graph_context and, in a spawn prompt, $task (the item's spec.prompt) are
// replaced, also written as ${work_item}; $$ is a dollar sign, and unknown
// names stay. A text without $interaction_directive gets the directive at its
// end, one without $task the task behind that.
//
// A template is a reference and not a text in the class. It is prose of many
// lines that other people write, review and release than those who may change
// how harnesses are started, and classes share it; as with parametersRef of a
// GatewayClass, a class, which has no namespace, names that of what it refers
// to. It is read at each use, so a changed ConfigMap counts from then on.
// Whoever may write it speaks to the sessions of the class.
//
// +kubebuilder:validation:XValidation:rule="(has(self.from) && self.from == 'ConfigMap') == has(self.configMapKeyRef)",message="configMapKeyRef is required with from: ConfigMap, and allowed with no other"
type PromptTemplate struct {
	// from is where the template is: BuiltIn is the-loop's own text, ConfigMap is
	// configMapKeyRef, None is no text around what is to be said.
	// +optional
	// +kubebuilder:validation:Enum=BuiltIn;ConfigMap;None
	// +kubebuilder:default=BuiltIn
	From PromptTemplateSource `json:"from,omitempty"`
	// configMapKeyRef is one key of a ConfigMap, with a text of at most 65536
	// bytes.
	// +optional
	ConfigMapKeyRef *NamespacedConfigMapKey `json:"configMapKeyRef,omitempty"`
}

// PromptTemplateSource is where a template is.
type PromptTemplateSource string

// Places of a template.
const (
	PromptBuiltIn   PromptTemplateSource = "BuiltIn"
	PromptConfigMap PromptTemplateSource = "ConfigMap"
	PromptNone      PromptTemplateSource = "None"
)

// NamespacedConfigMapKey is one key of one ConfigMap, for what has no namespace
// itself.
type NamespacedConfigMapKey struct {
	// namespace of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	ConfigMapKey `json:",inline"`
}

// TmuxPolicy is what becomes of the terminal session when its harness ends.
type TmuxPolicy struct {
	// remainOnExit keeps the pane and its scrollback when the harness ends by
	// itself, until it is started again.
	// +optional
	// +kubebuilder:default=true
	RemainOnExit *bool `json:"remainOnExit,omitempty"`
	// keepSessionOnClose retains the terminal session of a stopped session, to be
	// read.
	// +optional
	// +kubebuilder:default=true
	KeepSessionOnClose *bool `json:"keepSessionOnClose,omitempty"`
	// killHarnessOnClose ends the harness in a retained terminal session.
	// +optional
	// +kubebuilder:default=true
	KillHarnessOnClose *bool `json:"killHarnessOnClose,omitempty"`
	// harnessKillGraceSeconds is the time between SIGTERM and SIGKILL; 0 is none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	// +kubebuilder:default=5
	HarnessKillGraceSeconds *int32 `json:"harnessKillGraceSeconds,omitempty"`
	// resumeOnRespawn continues the recorded conversation when an ended harness is
	// started again.
	// +optional
	// +kubebuilder:default=true
	ResumeOnRespawn *bool `json:"resumeOnRespawn,omitempty"`
	// resumeProbeSeconds is how long a resumed harness without evidence of its own
	// must live before the resume is believed; 0 is at once.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=600
	// +kubebuilder:default=2
	ResumeProbeSeconds *int32 `json:"resumeProbeSeconds,omitempty"`
	// retainedSecondsAfterClose ends a retained terminal session after this time.
	// Omitted: never.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	RetainedSecondsAfterClose *int32 `json:"retainedSecondsAfterClose,omitempty"`
}

// TrustPolicy is whether the harness is told beforehand to trust directories.
type TrustPolicy struct {
	// enabled records the trust before each start. A trusted checkout may grant
	// tool permissions through its own settings: set false to opt out.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`
	// scope: Directory trusts the working directory alone, WorkspaceRoot the
	// workspace root besides.
	// +optional
	// +kubebuilder:validation:Enum=WorkspaceRoot;Directory
	// +kubebuilder:default=WorkspaceRoot
	Scope string `json:"scope,omitempty"`
	// acceptBypassPermissions accepts the harness's disclaimer: Auto when its
	// arguments already ask to bypass permissions.
	// +optional
	// +kubebuilder:validation:Enum=Auto;Always;Never
	// +kubebuilder:default=Auto
	AcceptBypassPermissions string `json:"acceptBypassPermissions,omitempty"`
}

// PluginPolicy is whether the-loop's own plugin is enabled in the harness.
type PluginPolicy struct {
	// enabled writes the plugin into the harness's user settings where it is
	// absent.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`
	// marketplaceRepo is the repository of the plugin marketplace, owner/repo;
	// empty skips it.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$')",message="plugins.marketplaceRepo must be owner/repo, or empty"
	MarketplaceRepo *string `json:"marketplaceRepo,omitempty"`
}

// SessionResources bounds what a session may use of its host.
type SessionResources struct {
	// limits are what a session may use at most.
	// +optional
	Limits ResourceLimits `json:"limits,omitzero"`
}

// ResourceLimits are what a session may use at most.
type ResourceLimits struct {
	// memory that the harness and all that it starts may use together, as 4Gi, at
	// least 16Mi. Beyond it the kernel ends the session, which is reported as
	// OOMKilled, and no other. Omitted: no bound. Where the agent of the host
	// cannot keep it, the session runs without, and the event
	// session.memory_unbounded says why.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 16777216 : isQuantity(self) && quantity(self).compareTo(quantity('16Mi')) >= 0 && quantity(self).compareTo(quantity('1Pi')) <= 0",message="resources.limits.memory must be an amount of memory from 16Mi to 1Pi, as 512Mi or 4Gi (a small m is a thousandth of a byte)"
	Memory *resource.Quantity `json:"memory,omitempty"`
}

// WorkspacePolicy is where sessions work.
type WorkspacePolicy struct {
	// root is the directory on the host below which sessions work: absolute, or
	// starting with "~/". A work item's session works in a checkout of its
	// repository below it, a standing session without a cwd in the root itself.
	// Omitted: nothing is checked out, a work item's session gets an empty
	// directory of its own, and a standing session works in the home directory of
	// the agent's user.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(/|~$|~/)[^\x00-\x1f\x7f]*$')`,message="workspace.root must be an absolute path, or start with ~/, without control characters"
	Root string `json:"root,omitempty"`
	// strategy: Worktree shares one clone between sessions, Clone gives each its
	// own. Checkouts that exist keep theirs.
	// +optional
	// +kubebuilder:validation:Enum=Worktree;Clone
	// +kubebuilder:default=Worktree
	Strategy string `json:"strategy,omitempty"`
	// cloneProtocol is how repositories are fetched.
	// +optional
	// +kubebuilder:validation:Enum=HTTPS;SSH
	// +kubebuilder:default=HTTPS
	CloneProtocol string `json:"cloneProtocol,omitempty"`
	// keepCheckoutOnClose keeps the checkout of a stopped or deleted session. A
	// cleanup removes it all the same.
	// +optional
	// +kubebuilder:default=false
	KeepCheckoutOnClose *bool `json:"keepCheckoutOnClose,omitempty"`
	// undoCleanupSeconds is how long the unsaved work of a removed checkout,
	// uncommitted or not pushed, can be restored. Default 604800 (7 days); 0 keeps
	// nothing.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	// +kubebuilder:default=604800
	UndoCleanupSeconds *int32 `json:"undoCleanupSeconds,omitempty"`
}

// MessagePolicy bounds the queue of each session.
type MessagePolicy struct {
	// maxPending is how many messages may wait for one session. Default 100. One
	// more is refused with the reason QueueFull.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +kubebuilder:default=100
	MaxPending *int32 `json:"maxPending,omitempty"`
	// expiresAfterSeconds ends a message that could not be typed in this time
	// since its creation, where the message itself says nothing. Omitted: never.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2592000
	ExpiresAfterSeconds *int32 `json:"expiresAfterSeconds,omitempty"`
	// alertAfterSeconds is for how long the message whose turn it is may wait, for
	// a dialog say, until the event dispatch.delayed tells of it. Default 600.
	// Zero: for ever.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2592000
	// +kubebuilder:default=600
	AlertAfterSeconds *int32 `json:"alertAfterSeconds,omitempty"`
	// deliverWhileBusy types messages while the harness is in a turn; it queues
	// them itself. False waits until it is idle.
	// +optional
	// +kubebuilder:default=true
	DeliverWhileBusy *bool `json:"deliverWhileBusy,omitempty"`
}

// SessionClassList is a list of SessionClass.
// +kubebuilder:object:root=true
type SessionClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SessionClass `json:"items"`
}
