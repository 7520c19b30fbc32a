// Package kinds is what the controllers need to serve both kinds of session alike.
package kinds

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

// Session is a session object of either kind.
type Session interface {
	client.Object
	api.HostedSession
}

// Kind is one kind of session.
type Kind struct {
	// Name is the kind's name, as in a manifest.
	Name string
	// New makes an empty object.
	New func() Session

	list func() client.ObjectList
}

// All are the kinds of session.
var All = []Kind{
	{api.KindStandingSession, func() Session { return &api.StandingSession{} }, func() client.ObjectList { return &api.StandingSessionList{} }},
	{api.KindWorkItemSession, func() Session { return &api.WorkItemSession{} }, func() client.ObjectList { return &api.WorkItemSessionList{} }},
}

// Each calls f for every object of the kind that the options select. The objects are
// the cache's own: f must not change them.
func (k Kind) Each(ctx context.Context, c client.Reader, f func(Session), opts ...client.ListOption) error {
	list := k.list()
	if err := c.List(ctx, list, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		return err
	}
	switch l := list.(type) {
	case *api.StandingSessionList:
		for i := range l.Items {
			f(&l.Items[i])
		}
	case *api.WorkItemSessionList:
		for i := range l.Items {
			f(&l.Items[i])
		}
	}
	return nil
}
