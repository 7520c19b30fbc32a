package core

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/workitem"
)

// StartWorkItem starts the session of a work item. One that has none gets one, where it
// is named by its reference: spec is what it is to be, but for the work item itself. For
// one that exists a spec that is not empty is refused.
func (c *Core) StartWorkItem(ctx context.Context, arg string, spec api.WorkItemSessionSpec) (Result, error) {
	s, err := c.WorkItem(ctx, arg)
	if err == nil {
		if !equality.Semantic.DeepEqual(spec, api.WorkItemSessionSpec{}) {
			return Result{}, invalid(fmt.Sprintf("session %s exists, and a start does not change what it is", s.Name), "change it with kubectl edit "+kubectlName(s))
		}
		return c.Start(ctx, s)
	}
	if !errors.Is(err, ErrNotFound) || !IsRef(arg) {
		return Result{}, err
	}
	ref, err := workitem.Parse(arg)
	if err != nil {
		return Result{}, invalid(err.Error(), "")
	}
	made, err := c.newWorkItem(ctx, ref, spec)
	if err != nil {
		return Result{}, err
	}
	return c.awaitStart(ctx, made, "")
}

// itemOf is a reference as a spec has it.
func itemOf(ref workitem.Ref) api.WorkItem {
	return api.WorkItem{Provider: ref.Provider, Host: ref.Host, Owner: ref.Owner, Repo: ref.Repo, Number: ref.Number}
}

func (c *Core) newWorkItem(ctx context.Context, ref workitem.Ref, spec api.WorkItemSessionSpec) (*api.WorkItemSession, error) {
	if !ref.PathSafe() {
		return nil, invalid(fmt.Sprintf("the owner and the name of a repository are letters, digits, dots, dashes and underscores: %s", ref), "")
	}
	spec.WorkItem = itemOf(ref)
	s := &api.WorkItemSession{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace(), Name: ref.ObjectName()}, Spec: spec}
	err := c.writer().Create(ctx, s, fieldOwner)
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil, refuse(ErrExists, fmt.Sprintf("session %s exists already", s.Name), "look at it with the-loop sessions get "+s.Name)
	case apierrors.IsInvalid(err):
		return nil, invalid(err.Error(), "")
	}
	return s, err
}

// Registration is a conversation that a person started by hand.
type Registration struct {
	// ConversationID is the harness's own id of it; Cwd the absolute directory in which it
	// was started.
	ConversationID, Cwd string
	// Host is the SessionHost on which it is. "" is the only one that there is.
	Host string
	// Class is the SessionClass that runs such a harness. "" is the default one.
	Class string
}

// Register takes a conversation that a person started by hand for the session of a work
// item. Nothing is started: the next message resumes it there.
func (c *Core) Register(ctx context.Context, arg string, r Registration) (Result, error) {
	ref, err := workitem.Parse(arg)
	if err != nil {
		return Result{}, invalid(err.Error(), "")
	}
	if r.ConversationID == "" || r.Cwd == "" {
		return Result{}, invalid("a conversation is registered by its id and its directory", "give --conversation and --cwd")
	}
	if there, err := c.WorkItem(ctx, arg); err == nil {
		return Result{}, refuse(ErrExists, fmt.Sprintf("%s has the session %s already", ref, there.Name), "the-loop sessions reset "+there.Name+" forgets it")
	} else if !errors.Is(err, ErrNotFound) {
		return Result{}, err
	}
	if r.Host == "" {
		if r.Host, err = c.onlyHost(ctx); err != nil {
			return Result{}, err
		}
	}
	s, err := c.newWorkItem(ctx, ref, api.WorkItemSessionSpec{
		HostPlacement: api.HostPlacement{ClassName: r.Class, HostName: r.Host},
		Conversation:  &api.RegisteredConversation{ID: r.ConversationID, WorkingDirectory: r.Cwd},
	})
	if err != nil {
		return Result{}, err
	}
	return c.result(s, OutcomeRegistered, "nothing was started: the next message resumes the conversation on host "+r.Host), nil
}

// onlyHost is the name of the host when there is but one.
func (c *Core) onlyHost(ctx context.Context) (string, error) {
	hosts, err := c.ListHosts(ctx)
	switch {
	case err != nil:
		return "", err
	case len(hosts) == 1:
		return hosts[0].Name, nil
	}
	return "", invalid(fmt.Sprintf("a conversation lives on one host, and there are %d", len(hosts)), "name it with --host")
}

// PullRequestRef reads a pull request as it is named beside its work item: 16 and #16
// are in the work item's own repository, a full reference may be in another one
// (specification 1.3).
func PullRequestRef(item workitem.Ref, arg string) (workitem.Ref, error) {
	arg = strings.TrimSpace(arg)
	if number, err := strconv.ParseInt(strings.TrimPrefix(arg, "#"), 10, 64); err == nil {
		return workitem.New(item.Provider, item.Host, item.Owner, item.Repo, number)
	}
	pr, err := workitem.Parse(arg)
	if err != nil {
		return workitem.Ref{}, err
	}
	if pr.Provider != item.Provider || pr.Host != item.Host {
		return workitem.Ref{}, fmt.Errorf("%s is not where %s is: a pull request is on the host of its work item", pr, item)
	}
	return pr, nil
}

// LinkPullRequest gives a pull request of a work item a session of its own, which is not
// started yet. It is idempotent. The work item must have a session.
func (c *Core) LinkPullRequest(ctx context.Context, arg, pullRequest string) (Result, error) {
	parent, err := c.WorkItem(ctx, arg)
	if err != nil {
		return Result{}, err
	}
	if parent.Spec.PullRequest != nil {
		return Result{}, invalid(fmt.Sprintf("session %s is itself that of a pull request", parent.Name), "name the work item that it delivers: "+parent.Spec.ParentName)
	}
	item := RefOf(parent)
	pr, err := PullRequestRef(item, pullRequest)
	if err != nil {
		return Result{}, invalid(err.Error(), "")
	}
	if pr == item {
		return Result{}, invalid(fmt.Sprintf("%s cannot be linked to itself", item), "name the pull request that delivers it")
	}
	name := workitem.PullRequestObjectName(item, pr)
	there, err := c.workItemNamed(ctx, name)
	if err == nil {
		return c.result(there, OutcomeUnchanged, "it is linked already"), nil
	}
	if !errors.Is(err, ErrNotFound) {
		return Result{}, err
	}
	s := &api.WorkItemSession{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace(), Name: name},
		Spec: api.WorkItemSessionSpec{
			HostPlacement: api.HostPlacement{ClassName: parent.Spec.ClassName, HostSelector: parent.Spec.HostSelector},
			WorkItem:      parent.Spec.WorkItem,
			PullRequest:   &api.PullRequest{Owner: pr.Owner, Repo: pr.Repo, Number: pr.Number},
			ParentName:    parent.Name,
			State:         api.SessionStateStopped,
		},
	}
	if err := c.writer().Create(ctx, s, fieldOwner); err != nil {
		return Result{}, err
	}
	return c.result(s, OutcomeLinked, fmt.Sprintf("%s delivers %s; its session is started by %s", pr, item, command(s, "start"))), nil
}

// Taking is what the end of a session takes away.
type Taking struct {
	Session *api.WorkItemSession
	// Live is a terminal session that is ended, Checkout a directory that is removed; ""
	// for none. Unknown: the host does not say whether something runs.
	Live, Checkout string
	Unknown        bool
	// Text says all of it, for a person.
	Text string
}

// Takes says what a reset or a cleanup takes away, the sessions of pull requests first,
// as they go first.
func (c *Core) Takes(ctx context.Context, s *api.WorkItemSession, cleanup bool) ([]Taking, error) {
	children, err := c.endpoints(ctx, s)
	if err != nil {
		return nil, err
	}
	var out []Taking
	for _, e := range append(children, s) {
		keep := false
		if !cleanup {
			if keep, err = c.keepsCheckout(ctx, e); err != nil {
				return nil, err
			}
		}
		t := Taking{Session: e, Unknown: Running(e) == metav1.ConditionUnknown, Text: e.Name + ": " + describeEnd(e, keep)}
		if Running(e) == metav1.ConditionTrue {
			t.Live = e.Status.TmuxTarget
		}
		if e.Status.Checkout != nil && !keep {
			t.Checkout = e.Status.Checkout.Path
		}
		out = append(out, t)
	}
	return out, nil
}

// keepsCheckout is what the class of a session says of its checkout.
func (c *Core) keepsCheckout(ctx context.Context, s *api.WorkItemSession) (bool, error) {
	class, err := c.classOf(ctx, s)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil && ptr.Deref(class.Spec.Workspace.KeepCheckoutOnClose, false), err
}

// Reset deletes a session: its harness is ended first, its terminal is retained or closed
// as its class says, and everything that is known of it is forgotten. The result says
// separately that a live session was ended and that a checkout was removed.
func (c *Core) Reset(ctx context.Context, s *api.WorkItemSession) (Result, error) {
	takes, err := c.Takes(ctx, s, false)
	if err != nil {
		return Result{}, err
	}
	if err := c.delete(ctx, s); err != nil {
		return Result{}, err
	}
	if c.DryRun {
		return c.result(s, OutcomeReset, taken(takes, true)), nil
	}
	if c.NoWait {
		return c.result(s, OutcomeAccepted, taken(takes, true)), nil
	}
	gone, err := awaitGone(ctx, c, s, func() string { return readyMessage(s) })
	if err != nil {
		return Result{}, err
	}
	if !gone {
		return c.result(s, OutcomeUnconfirmed, "its host has not let go of it yet: "+readyMessage(s)), nil
	}
	return c.result(s, OutcomeReset, taken(takes, false)), nil
}

// taken says what was taken away, or is to be.
func taken(takes []Taking, ahead bool) string {
	ended, removed, unknown := []string(nil), []string(nil), 0
	for _, t := range takes {
		if t.Live != "" {
			ended = append(ended, t.Live)
		}
		if t.Checkout != "" {
			removed = append(removed, t.Checkout)
		}
		if t.Unknown {
			unknown++
		}
	}
	did := func(past, future string) string {
		if ahead {
			return future
		}
		return past
	}
	var out []string
	if len(ended) > 0 {
		out = append(out, did("ended the live session ", "ends the live session ")+strings.Join(ended, ", "))
	}
	if len(removed) > 0 {
		out = append(out, did("removed the checkout ", "removes the checkout ")+strings.Join(removed, ", "))
	}
	if unknown > 0 {
		out = append(out, "a host did not say whether a session ran")
	}
	if len(out) == 0 {
		return "nothing ran"
	}
	return strings.Join(out, "; ")
}

// CleanUp ends everything of a work item on its hosts, the sessions of its pull requests
// first, and removes its checkouts. The object stays as the record, so that nothing
// starts it again by itself. force also ends panes that a person opened in its terminal.
// What exists on a host without a record is found by the reference alone.
func (c *Core) CleanUp(ctx context.Context, arg string, force bool) (Result, error) {
	s, err := c.WorkItem(ctx, arg)
	if errors.Is(err, ErrNotFound) && IsRef(arg) {
		ref, err := workitem.Parse(arg)
		if err != nil {
			return Result{}, invalid(err.Error(), "")
		}
		if s, err = c.newWorkItem(ctx, ref, api.WorkItemSessionSpec{State: api.SessionStateCleanedUp}); err != nil {
			return Result{}, err
		}
		return c.awaitCleanUp(ctx, s, nil)
	}
	if err != nil {
		return Result{}, err
	}
	takes, err := c.Takes(ctx, s, true)
	if err != nil {
		return Result{}, err
	}
	_, err = c.change(ctx, s, func() error {
		s.Spec.State = api.SessionStateCleanedUp
		if force {
			annotate(s, api.ForceCleanupAnnotation, "true")
		}
		return nil
	})
	if err != nil {
		return Result{}, err
	}
	return c.awaitCleanUp(ctx, s, takes)
}

func (c *Core) awaitCleanUp(ctx context.Context, s *api.WorkItemSession, takes []Taking) (Result, error) {
	if c.DryRun {
		return c.result(s, OutcomeCleaned, taken(takes, true)), nil
	}
	if c.NoWait {
		return c.result(s, OutcomeAccepted, taken(takes, true)), nil
	}
	p, err := c.await(ctx, s, func() progress { return ending(s, api.SessionStateCleanedUp) })
	if err != nil {
		return Result{}, err
	}
	if p.outcome == OutcomeCleaned {
		p.detail = taken(takes, false)
	}
	return c.result(s, p.outcome, p.detail), nil
}

// UndoCleanUp asks that the next start of a session work in the checkout that was removed
// last, with its uncommitted work.
func (c *Core) UndoCleanUp(ctx context.Context, s *api.WorkItemSession) (Result, error) {
	_, err := c.change(ctx, s, func() error {
		if s.Status.Checkout != nil && s.Spec.State == api.SessionStateRunning {
			return refuse(ErrFailed, fmt.Sprintf("session %s works in the checkout %s", s.Name, s.Status.Checkout.Path), "clean it up first: "+command(s, "cleanup"))
		}
		annotate(s, api.UndoCleanupAnnotation, token())
		return nil
	})
	if err != nil {
		return Result{}, err
	}
	return c.result(s, OutcomeUndo, "the next start brings back what was removed last: "+command(s, "start")), nil
}

// classOf finds the class that says how a session runs.
func (c *Core) classOf(ctx context.Context, s Session) (*api.SessionClass, error) {
	name := s.Placement().ClassName
	if name != "" {
		class := &api.SessionClass{}
		err := c.Client.Get(ctx, client.ObjectKey{Name: name}, class)
		if apierrors.IsNotFound(err) {
			return nil, notFound(fmt.Sprintf("there is no SessionClass %q", name), "the-loop classes list shows what there is")
		}
		return class, err
	}
	var list api.SessionClassList
	if err := c.Client.List(ctx, &list, client.MatchingLabels{api.DefaultClassLabel: "true"}); err != nil {
		return nil, err
	}
	switch len(list.Items) {
	case 0:
		return nil, notFound("no SessionClass is the default one", "label one: kubectl label sclass NAME "+api.DefaultClassLabel+"=true")
	case 1:
		return &list.Items[0], nil
	}
	return nil, invalid(fmt.Sprintf("%d SessionClasses are labelled as the default one", len(list.Items)), "leave the label "+api.DefaultClassLabel+" on one")
}
