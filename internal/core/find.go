package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/workitem"
)

// RefOf is what the session works on, in one word: its work item, or the pull request
// that it hosts.
func RefOf(s *api.WorkItemSession) workitem.Ref {
	w := s.Spec.WorkItem
	ref := workitem.Ref{Provider: w.Provider, Host: w.Host, Owner: w.Owner, Repo: w.Repo, Number: w.Number}
	if pr := s.Spec.PullRequest; pr != nil {
		ref.Owner, ref.Repo, ref.Number = pr.Owner, pr.Repo, pr.Number
	}
	return ref
}

// IsRef reports whether an argument is written as a work item's reference, and not as
// the name of an object, which holds neither ":" nor "#".
func IsRef(arg string) bool { return strings.ContainsAny(arg, ":#/") }

// WorkItem finds the session of a work item or pull request by its reference
// (github:octo/repo#15) or by its object's name. A standing session is never found
// here: the two kinds have separate names.
func (c *Core) WorkItem(ctx context.Context, arg string) (*api.WorkItemSession, error) {
	if !IsRef(arg) {
		return c.workItemNamed(ctx, arg)
	}
	ref, err := workitem.Parse(arg)
	if err != nil {
		return nil, invalid(err.Error(), "")
	}
	s, err := c.workItemNamed(ctx, ref.ObjectName())
	if err == nil && RefOf(s) == ref {
		return s, nil
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	return c.workItemOf(ctx, ref)
}

func (c *Core) workItemNamed(ctx context.Context, name string) (*api.WorkItemSession, error) {
	s := &api.WorkItemSession{}
	err := c.Client.Get(ctx, c.key(name), s)
	if apierrors.IsNotFound(err) {
		return nil, notFound(fmt.Sprintf("there is no session %q in namespace %s", name, c.namespace()), "the-loop sessions list shows what there is")
	}
	return s, err
}

// workItemOf looks through all sessions: a name is only where one is expected first.
func (c *Core) workItemOf(ctx context.Context, ref workitem.Ref) (*api.WorkItemSession, error) {
	var list api.WorkItemSessionList
	if err := c.Client.List(ctx, &list, client.InNamespace(c.namespace())); err != nil {
		return nil, err
	}
	var found []*api.WorkItemSession
	for i := range list.Items {
		if RefOf(&list.Items[i]) == ref {
			found = append(found, &list.Items[i])
		}
	}
	switch len(found) {
	case 0:
		return nil, notFound(fmt.Sprintf("there is no session for %s in namespace %s", ref, c.namespace()), "the-loop sessions start "+shellWord(ref.String())+" makes one")
	case 1:
		return found[0], nil
	}
	var names []string
	for _, s := range found {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return nil, invalid(fmt.Sprintf("%s is the work of %d sessions", ref, len(found)), "name one of them: "+strings.Join(names, ", "))
}

// Standing finds a standing session by name.
func (c *Core) Standing(ctx context.Context, name string) (*api.StandingSession, error) {
	if err := workitem.StandingName(name); err != nil {
		return nil, invalid(err.Error(), "")
	}
	s := &api.StandingSession{}
	err := c.Client.Get(ctx, c.key(name), s)
	if apierrors.IsNotFound(err) {
		return nil, notFound(fmt.Sprintf("there is no standing session %q in namespace %s", name, c.namespace()),
			"the-loop standing list shows what there is, the-loop standing create "+name+" makes one")
	}
	return s, err
}

// Host finds a host by name.
func (c *Core) Host(ctx context.Context, name string) (*api.SessionHost, error) {
	h := &api.SessionHost{}
	err := c.Client.Get(ctx, client.ObjectKey{Name: name}, h)
	if apierrors.IsNotFound(err) {
		return nil, notFound(fmt.Sprintf("there is no host %q", name), "the-loop hosts list shows what there is")
	}
	return h, err
}

// Message finds a message by name.
func (c *Core) Message(ctx context.Context, name string) (*api.SessionMessage, error) {
	m := &api.SessionMessage{}
	err := c.Client.Get(ctx, c.key(name), m)
	if apierrors.IsNotFound(err) {
		return nil, notFound(fmt.Sprintf("there is no message %q in namespace %s", name, c.namespace()), "the-loop messages list shows what there is")
	}
	return m, err
}

// endpoints are the sessions of a work item's pull requests, by name.
func (c *Core) endpoints(ctx context.Context, parent *api.WorkItemSession) ([]*api.WorkItemSession, error) {
	var list api.WorkItemSessionList
	err := c.Client.List(ctx, &list, client.InNamespace(parent.Namespace), client.MatchingFields{"spec.parentName": parent.Name})
	if err != nil {
		return nil, err
	}
	out := make([]*api.WorkItemSession, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	return out, nil
}

// shellWord makes one word of s in a shell.
func shellWord(s string) string {
	if !strings.ContainsAny(s, " \t\n'\"#$&;|<>()*?[]{}~`\\=") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// noun is how a verb's group is called for a kind of session.
func noun(s Session) string {
	if s.SessionKind() == api.KindStandingSession {
		return "standing"
	}
	return "sessions"
}

// command is a command line of ours about a session.
func command(s Session, verb string) string {
	return "the-loop " + noun(s) + " " + verb + " " + s.GetName()
}
