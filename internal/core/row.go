package core

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

// Row is one session as every surface shows it (specification 9.3).
type Row struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Ref is what the session works on: github:octo/repo#15, or standing:supervisor.
	Ref string `json:"ref"`
	// Parent is the session of the work item that a pull request's session delivers.
	Parent string `json:"parent,omitempty"`
	// Declared: a configuration file declares the session; DeclaredBy is where.
	Declared    bool   `json:"declared"`
	DeclaredBy  string `json:"declaredBy,omitempty"`
	Description string `json:"description,omitempty"`
	AutoStart   bool   `json:"autoStart"`
	// Wanted is spec.state.
	Wanted api.SessionState `json:"wanted"`
	// Running is True, False, or Unknown when the terminal server or the host does not
	// answer: silence is not absence.
	Running metav1.ConditionStatus `json:"running"`
	// Status in one word: running, stopped, absent (never started) or unknown.
	Status string `json:"status"`
	// Ready and State are status and reason of the condition Ready.
	Ready metav1.ConditionStatus `json:"ready"`
	State string                 `json:"state"`
	// Input is the reason of the condition AcceptingInput.
	Input          string             `json:"input,omitempty"`
	DeliveryPolicy api.DeliveryPolicy `json:"deliveryPolicy"`
	Host           string             `json:"host,omitempty"`
	Harness        string             `json:"harness,omitempty"`
	Model          string             `json:"model,omitempty"`
	Effort         string             `json:"effort,omitempty"`
	Cwd            string             `json:"cwd,omitempty"`
	TmuxTarget     string             `json:"tmuxTarget,omitempty"`
	AttachCommand  string             `json:"attachCommand,omitempty"`
	ConversationID string             `json:"conversationID,omitempty"`
	SlackChannel   string             `json:"slackChannel,omitempty"`
	Restarts       int32              `json:"restarts"`
	Created        time.Time          `json:"created"`
	StartedAt      *metav1.Time       `json:"startedAt,omitempty"`
	LastMessageAt  *metav1.Time       `json:"lastMessageAt,omitempty"`
}

// Words for Row.Status.
const (
	StatusRunning = "running"
	StatusStopped = "stopped"
	StatusAbsent  = "absent"
	StatusUnknown = "unknown"
)

// RowOf is a session's row. It is pure.
func RowOf(s Session) Row {
	st := s.HostedStatus()
	r := Row{
		Kind: s.SessionKind(), Namespace: s.GetNamespace(), Name: s.GetName(), Wanted: cmp.Or(s.WantedState(), api.SessionStateRunning),
		Running: Running(s), Ready: metav1.ConditionUnknown, DeliveryPolicy: policyOf(s), Host: s.Placement().HostName,
		Harness: st.Harness, Model: st.Model, Effort: st.Effort, Cwd: st.WorkingDirectory, TmuxTarget: st.TmuxTarget,
		AttachCommand: st.AttachCommand, ConversationID: st.ConversationID, Restarts: st.Restarts,
		Created: s.GetCreationTimestamp().Time, StartedAt: st.StartedAt, LastMessageAt: st.LastMessageAt,
	}
	if c := meta.FindStatusCondition(st.Conditions, api.ConditionReady); c != nil {
		r.Ready, r.State = c.Status, c.Reason
	}
	if c := meta.FindStatusCondition(st.Conditions, api.ConditionAcceptingInput); c != nil {
		r.Input = c.Reason
	}
	switch o := s.(type) {
	case *api.StandingSession:
		r.Ref, r.Description, r.AutoStart = "standing:"+o.Name, o.Spec.Description, ptr.Deref(o.Spec.AutoStart, true)
		r.Declared = Declared(o)
		if r.Declared {
			r.DeclaredBy = o.Annotations[api.DeclaredByAnnotation]
		}
		r.Cwd = cmp.Or(r.Cwd, o.Spec.Cwd)
		if o.Spec.Slack != nil {
			r.SlackChannel = o.Spec.Slack.Channel
		}
	case *api.WorkItemSession:
		r.Ref, r.Parent = RefOf(o).String(), o.Spec.ParentName
	}
	r.Status = statusWord(r, st)
	return r
}

func statusWord(r Row, st *api.HostedSessionStatus) string {
	switch {
	case r.Running == metav1.ConditionTrue:
		return StatusRunning
	case r.Running == metav1.ConditionUnknown:
		return StatusUnknown
	case st.Launch == nil && st.ConversationID == "":
		return StatusAbsent
	}
	return StatusStopped
}

// Running says whether a live harness is the session's. Unknown is an answer of its own:
// that of a host that is silent, and of a terminal server that does not answer.
func Running(s Session) metav1.ConditionStatus {
	if s.Placement().HostName == "" {
		return metav1.ConditionFalse // nothing is started without a host
	}
	conditions := s.HostedStatus().Conditions
	if c := meta.FindStatusCondition(conditions, api.ConditionHostAvailable); c != nil && c.Status != metav1.ConditionTrue && c.Reason != api.ReasonNotBound {
		return metav1.ConditionUnknown
	}
	c := meta.FindStatusCondition(conditions, api.ConditionSessionRunning)
	if c == nil {
		return metav1.ConditionUnknown
	}
	return c.Status
}

// Declared reports whether a configuration file declares the session.
func Declared(s *api.StandingSession) bool { return s.Labels[api.OriginLabel] == api.OriginDeclared }

// policy is where the session's delivery policy is.
func policy(s Session) *api.DeliveryPolicy {
	switch o := s.(type) {
	case *api.StandingSession:
		return &o.Spec.DeliveryPolicy
	case *api.WorkItemSession:
		return &o.Spec.DeliveryPolicy
	}
	return new(api.DeliveryPolicy)
}

func policyOf(s Session) api.DeliveryPolicy {
	return cmp.Or(*policy(s), api.DeliveryPolicyDeliver)
}

// state is where the session's wanted state is.
func state(s Session) *api.SessionState {
	switch o := s.(type) {
	case *api.StandingSession:
		return &o.Spec.State
	case *api.WorkItemSession:
		return &o.Spec.State
	}
	return new(api.SessionState)
}

// ListOptions choose what is listed.
type ListOptions struct {
	// AllNamespaces lists those of every namespace.
	AllNamespaces bool
	// Host, when given, is the host that they are bound to.
	Host string
}

func (c *Core) listOptions(o ListOptions) []client.ListOption {
	var out []client.ListOption
	if !o.AllNamespaces {
		out = append(out, client.InNamespace(c.namespace()))
	}
	if o.Host != "" {
		out = append(out, client.MatchingFields{"spec.hostName": o.Host})
	}
	return out
}

// ListWorkItems lists the sessions of work items, by namespace and name. No standing
// session is among them.
func (c *Core) ListWorkItems(ctx context.Context, o ListOptions) ([]*api.WorkItemSession, error) {
	var list api.WorkItemSessionList
	if err := c.Client.List(ctx, &list, c.listOptions(o)...); err != nil {
		return nil, err
	}
	return sorted(list.Items), nil
}

// ListStanding lists the standing sessions, by namespace and name.
func (c *Core) ListStanding(ctx context.Context, o ListOptions) ([]*api.StandingSession, error) {
	var list api.StandingSessionList
	if err := c.Client.List(ctx, &list, c.listOptions(o)...); err != nil {
		return nil, err
	}
	return sorted(list.Items), nil
}

// sorted are pointers to the items, by namespace and name.
func sorted[T any, P interface {
	*T
	metav1.Object
}](items []T) []P {
	out := make([]P, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	slices.SortFunc(out, func(a, b P) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out
}
