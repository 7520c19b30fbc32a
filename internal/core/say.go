package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/text"
	"github.com/theloop-dev/the-loop/internal/workitem"
)

// Saying is a text for a session.
type Saying struct {
	Text string
	// Files on this machine that the text is about, or that are too long to be said. They are
	// copied into the session's directory, which must be on this machine too, and behind the
	// text a line says of each where it is. The text may be empty then.
	Files []string
	// Key is a natural key of the text, such as a comment's URL: what has the same key is
	// said to a session once. "" is a key of its own for each call.
	Key string
	// ExpiresAfterSeconds ends it when it cannot be typed in this time. Nil is never.
	ExpiresAfterSeconds *int32
}

// Say stores a message for a session that runs. It is durable then, and typed into the
// session in order and once; AwaitMessage tells what became of it. A session that does
// not run is refused, with the command that starts it: a message never starts one here.
// So is a paused one, which would drop it. What has been said under the same key is
// returned as it is.
func (c *Core) Say(ctx context.Context, s Session, saying Saying) (*api.SessionMessage, error) {
	if clean, _ := text.Sanitize(saying.Text); clean == "" && len(saying.Files) == 0 {
		return nil, invalid("there is nothing to say: the text is empty, or blanks and control characters alone", "")
	}
	if len(saying.Text) > text.Limit {
		return nil, invalid(fmt.Sprintf("the text has %d bytes, and %d are the most", len(saying.Text), text.Limit), "put it into a file in the session's directory and refer to it, as --attach FILE does")
	}
	if err := takesMessages(s); err != nil {
		return nil, err
	}
	files, err := c.handOver(ctx, s, saying.Files)
	if err != nil {
		return nil, err
	}
	if files.references != "" {
		saying.Text = strings.TrimPrefix(saying.Text+"\n\n"+files.references, "\n\n")
	}
	m, err := c.store(ctx, s, saying)
	// Without an answer it may be stored all the same.
	if own := (*Error)(nil); errors.As(err, &own) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		files.takeBack()
	}
	return m, err
}

// store stores a message, or finds the one of the same key.
func (c *Core) store(ctx context.Context, s Session, saying Saying) (*api.SessionMessage, error) {
	key := cmp.Or(saying.Key, token())
	m := &api.SessionMessage{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.GetNamespace(), Name: workitem.MessageName(s.GetName(), key, string(s.GetUID()))},
		Spec: api.SessionMessageSpec{
			SessionRef: api.SessionReference{Kind: s.SessionKind(), Name: s.GetName(), UID: s.GetUID()},
			Text:       saying.Text,
			Source:     api.MessageSource{Type: api.SourcePerson, Actor: text.OneLine(c.Actor)},
		},
	}
	m.Spec.ExpiresAfterSeconds = saying.ExpiresAfterSeconds
	err := c.writer().Create(ctx, m, fieldOwner)
	if !apierrors.IsAlreadyExists(err) {
		return m, err
	}
	there, err := c.Message(ctx, m.Name)
	if err != nil {
		return nil, err
	}
	if there.Spec.Text != m.Spec.Text {
		return nil, refuse(ErrExists, fmt.Sprintf("something else was said to %s under this key: message %s", s.GetName(), m.Name), "use another key")
	}
	return there, nil
}

// takesMessages refuses a session to which nothing can be said. One that may run is
// spoken to: the message waits where it does not.
func takesMessages(s Session) error {
	switch {
	case s.GetDeletionTimestamp() != nil:
		return refuse(ErrNotRunning, s.GetName()+" is being deleted", "")
	case s.WantedState() != api.SessionStateRunning && s.WantedState() != "", Running(s) == metav1.ConditionFalse:
		return refuse(ErrNotRunning, fmt.Sprintf("%s does not run, and a message starts no session", s.GetName()), "start it with "+command(s, "start"))
	case policyOf(s) == api.DeliveryPolicyDrop:
		return refuse(ErrNotRunning, fmt.Sprintf("%s is paused, and what is said to it is dropped", s.GetName()), "resume it with "+resumeCommand(s))
	}
	return nil
}

// resumeCommand makes a session take messages again.
func resumeCommand(s Session) string { return command(s, "resume") }

// AwaitMessage follows a message until its outcome is final, at most for the timeout.
// The error is nil only when the harness itself said that it took it (Submitted);
// ErrUnconfirmed when it still waits, ErrFailed for every other end.
func (c *Core) AwaitMessage(ctx context.Context, m *api.SessionMessage) error {
	limited, cancel := context.WithTimeout(ctx, c.timeout())
	defer cancel()
	last := ""
	err := follow(limited, c.Client, m, func() bool {
		if why := Fate(m); why != last && !m.Status.Outcome.Final() {
			last = why
			c.tell(m.Name + ": " + why)
		}
		return m.Status.Outcome.Final()
	})
	switch {
	case errors.Is(err, errGone):
		return refuse(ErrFailed, "message "+m.Name+" was deleted before the harness took it", "")
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil && limited.Err() != nil:
		return refuse(ErrUnconfirmed, fmt.Sprintf("message %s is stored, and was not taken within %s: %s", m.Name, c.timeout(), Fate(m)), "the-loop explain "+m.Name)
	case err != nil:
		return err
	case m.Status.Outcome == api.OutcomeSubmitted:
		return nil
	}
	return refuse(ErrFailed, fmt.Sprintf("message %s was not taken: %s", m.Name, Fate(m)), "")
}

// Fate says in words what became of a message.
func Fate(m *api.SessionMessage) string {
	if m.Status.Outcome == "" {
		return "its session's host has not seen it yet"
	}
	out := string(m.Status.Outcome)
	for _, kind := range []string{api.ConditionFailed, api.ConditionSubmitted, api.ConditionDelivered, api.ConditionAccepted} {
		if cond := meta.FindStatusCondition(m.Status.Conditions, kind); cond != nil {
			return out + ": " + cond.Message
		}
	}
	return out
}

// MessageOptions choose what is listed.
type MessageOptions struct {
	AllNamespaces bool
	// Session, when given, is the one that they are for.
	Session Session
	// Pending leaves out those whose outcome is final.
	Pending bool
}

// ListMessages lists messages, by session, then by their place in its queue, the new
// ones last.
func (c *Core) ListMessages(ctx context.Context, o MessageOptions) ([]*api.SessionMessage, error) {
	var opts []client.ListOption
	switch {
	case o.Session != nil:
		opts = append(opts, client.InNamespace(o.Session.GetNamespace()), client.MatchingFields{"spec.sessionRef.name": o.Session.GetName(), "spec.sessionRef.kind": o.Session.SessionKind()})
	case !o.AllNamespaces:
		opts = append(opts, client.InNamespace(c.namespace()))
	}
	var list api.SessionMessageList
	if err := c.Client.List(ctx, &list, opts...); err != nil {
		return nil, err
	}
	var out []*api.SessionMessage
	for i := range list.Items {
		if m := &list.Items[i]; !o.Pending || !m.Status.Outcome.Final() {
			out = append(out, m)
		}
	}
	sortMessages(out)
	return out, nil
}

// Recall takes back a message that was not typed yet. One that no host has is deleted. The
// agent of the host that has it is asked for its word, which is awaited, at most for the
// timeout: nil when nothing of it was or will be typed; ErrTooLate when it came to another
// end; ErrUnconfirmed when the agent did not say in time.
func (c *Core) Recall(ctx context.Context, name string) (*api.SessionMessage, error) {
	for again := 0; ; again++ {
		m, err := c.Message(ctx, name)
		if err != nil {
			return nil, err
		}
		if err := recallable(m); err != nil {
			return m, err
		}
		if m.Labels[api.HostLabel] != "" {
			return m, c.askBack(ctx, m)
		}
		err = c.writer().Delete(ctx, m, client.Preconditions{UID: ptr.To(m.UID), ResourceVersion: ptr.To(m.ResourceVersion)})
		if apierrors.IsConflict(err) && again < rereads {
			continue // something became of it meanwhile
		}
		return m, err
	}
}

// askBack asks the agent that has a message not to type it.
func (c *Core) askBack(ctx context.Context, m *api.SessionMessage) error {
	before := m.DeepCopy()
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, api.RecallAnnotation, token())
	if err := c.writer().Patch(ctx, m, client.MergeFrom(before), fieldOwner); err != nil || c.DryRun {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, c.timeout())
	defer cancel()
	err := follow(limited, c.Client, m, func() bool { return m.Status.Outcome.Final() })
	switch {
	case errors.Is(err, errGone):
		return refuse(ErrFailed, "message "+m.Name+" was deleted by somebody before its agent said whether it was typed", "")
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil && limited.Err() != nil:
		return refuse(ErrUnconfirmed, fmt.Sprintf("message %s is asked back, and its agent did not say within %s whether it was typed", m.Name, c.timeout()), "the-loop explain "+m.Name)
	case err != nil:
		return err
	case m.Status.Outcome == api.OutcomeDropped && m.Status.Reason == api.ReasonRecalled:
		return nil
	}
	return recallable(m)
}

// recallable refuses what is too late to be recalled. It is pure.
func recallable(m *api.SessionMessage) error {
	typed := m.Status.DeliveredTime != nil || meta.IsStatusConditionTrue(m.Status.Conditions, api.ConditionDelivered)
	switch {
	case m.Status.Outcome == api.OutcomeSubmitted, m.Status.Outcome == api.OutcomeTyped, m.Status.Outcome == api.OutcomeUnknown, typed:
		return refuse(ErrTooLate, fmt.Sprintf("it is too late to recall message %s, which was typed into the session (%s)", m.Name, cmp.Or(m.Status.Outcome, api.OutcomeQueued)),
			"say something that takes it back")
	case m.Status.Outcome.Final():
		return refuse(ErrTooLate, fmt.Sprintf("there is nothing to recall of message %s, which ended without being typed: %s", m.Name, Fate(m)), "")
	}
	return nil
}

// ahead are the messages of the same session that come before this one and are not
// finished.
func (c *Core) ahead(ctx context.Context, m *api.SessionMessage) ([]*api.SessionMessage, error) {
	var list api.SessionMessageList
	err := c.Client.List(ctx, &list, client.InNamespace(m.Namespace), client.MatchingFields{"spec.sessionRef.name": m.Spec.SessionRef.Name, "spec.sessionRef.kind": m.Spec.SessionRef.Kind})
	if err != nil {
		return nil, err
	}
	var out []*api.SessionMessage
	for i := range list.Items {
		o := &list.Items[i]
		if o.UID == m.UID || o.Status.Outcome.Final() || o.Status.Sequence == 0 {
			continue
		}
		if m.Status.Sequence == 0 || o.Status.Sequence < m.Status.Sequence {
			out = append(out, o)
		}
	}
	sortMessages(out)
	return out, nil
}
