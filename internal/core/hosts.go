package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

// sortMessages orders messages by session, place in the queue (the new ones last), and
// name.
func sortMessages(list []*api.SessionMessage) {
	place := func(m *api.SessionMessage) int64 {
		if m.Status.Sequence == 0 {
			return math.MaxInt64
		}
		return m.Status.Sequence
	}
	slices.SortFunc(list, func(a, b *api.SessionMessage) int {
		return cmp.Or(
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Spec.SessionRef.Kind, b.Spec.SessionRef.Kind),
			cmp.Compare(a.Spec.SessionRef.Name, b.Spec.SessionRef.Name), cmp.Compare(place(a), place(b)), cmp.Compare(a.Name, b.Name),
		)
	})
}

// ListHosts lists the hosts by name.
func (c *Core) ListHosts(ctx context.Context) ([]*api.SessionHost, error) {
	var list api.SessionHostList
	if err := c.Client.List(ctx, &list); err != nil {
		return nil, err
	}
	return sorted(list.Items), nil
}

// ListClasses lists the session classes by name.
func (c *Core) ListClasses(ctx context.Context) ([]*api.SessionClass, error) {
	var list api.SessionClassList
	if err := c.Client.List(ctx, &list); err != nil {
		return nil, err
	}
	return sorted(list.Items), nil
}

// SetScheduling says whether a host takes sessions. It returns whether that was another
// before.
func (c *Core) SetScheduling(ctx context.Context, h *api.SessionHost, want api.HostScheduling) (bool, error) {
	return change(ctx, c, h, func() error {
		if cmp.Or(h.Spec.Scheduling, api.HostSchedulingEnabled) != want {
			h.Spec.Scheduling = want
		}
		return nil
	})
}

// SessionsOn are the sessions of both kinds that are bound to a host, "" for all that there
// are, in all namespaces.
func (c *Core) SessionsOn(ctx context.Context, host string) ([]Session, error) {
	o := ListOptions{AllNamespaces: true, Host: host}
	standing, err := c.ListStanding(ctx, o)
	if err != nil {
		return nil, err
	}
	items, err := c.ListWorkItems(ctx, o)
	if err != nil {
		return nil, err
	}
	var out []Session
	for _, s := range standing {
		out = append(out, s)
	}
	for _, s := range items {
		out = append(out, s)
	}
	return out, nil
}

// DrainPlan are the sessions that a drain of a host parks: those that are to run.
func (c *Core) DrainPlan(ctx context.Context, host string) ([]Session, error) {
	all, err := c.SessionsOn(ctx, host)
	return slices.DeleteFunc(all, func(s Session) bool {
		return s.WantedState() != api.SessionStateRunning || s.GetDeletionTimestamp() != nil
	}), err
}

// Drain lets a host take no more sessions and parks those that it has: their harnesses are
// ended, which is awaited, and go on with their conversations when the host is no longer
// drained. What they are to be is not changed; a session never moves to another host.
func (c *Core) Drain(ctx context.Context, h *api.SessionHost) ([]Result, error) {
	sessions, err := c.DrainPlan(ctx, h.Name)
	if err != nil {
		return nil, err
	}
	if _, err := c.SetScheduling(ctx, h, api.HostSchedulingDraining); err != nil {
		return nil, err
	}
	return Each(sessions, func(s Session) (Result, error) {
		if !c.waits() {
			return c.result(s, OutcomeAccepted, "its end was not awaited"), nil
		}
		p, err := c.await(ctx, s, func() progress { return parking(s) })
		return c.result(s, p.outcome, p.detail), err
	})
}

// parking is how far a session of a drained host is.
func parking(s Session) progress {
	cond := meta.FindStatusCondition(s.HostedStatus().Conditions, api.ConditionSessionRunning)
	switch {
	case cond == nil:
		return waiting("its host has not looked at it yet")
	case cond.Reason == api.ReasonHostDraining && cond.Status == metav1.ConditionFalse:
		return done(OutcomeStopped, "it goes on when its host is no longer drained")
	case cond.Status == metav1.ConditionFalse:
		return done(OutcomeNotRunning, cond.Message)
	}
	return waiting("its harness is being ended")
}

// CheckModels has the harnesses of a host asked anew about all models and efforts that
// the classes of its sessions declare, and awaits their answers, which are in
// status.models then.
func (c *Core) CheckModels(ctx context.Context, h *api.SessionHost) error {
	asked := token()
	_, err := change(ctx, c, h, func() error {
		annotate(h, api.ModelsCheckRequestedAnnotation, asked)
		return nil
	})
	if err != nil || !c.waits() {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, c.timeout())
	defer cancel()
	c.tell("host " + h.Name + ": its harnesses are asked, one question at a time")
	err = follow(limited, c.Client, h, func() bool { return h.Status.LastHandledModelsCheck == asked })
	switch {
	case errors.Is(err, errGone):
		return notFound("host "+h.Name+" was deleted meanwhile", "")
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil && limited.Err() != nil:
		return refuse(ErrUnconfirmed, fmt.Sprintf("host %s did not ask all its harnesses within %s", h.Name, c.timeout()), "look again later: the-loop models check --cached")
	}
	return err
}

// Named are the names of objects, for completion.
func Named[T client.Object](list []T) []string {
	out := make([]string, len(list))
	for i, o := range list {
		out[i] = o.GetName()
	}
	return out
}
