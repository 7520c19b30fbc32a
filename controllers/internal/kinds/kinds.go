// Package kinds is what the controllers need to serve both kinds of session alike.
package kinds

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
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

// IsFor reports whether a message is for this very object, and not for an earlier one of the
// same name: one that another object was asked for, took or was handed is not.
func IsFor(m *api.SessionMessage, obj Session) bool {
	uids := []types.UID{m.Spec.SessionRef.UID, m.Status.SessionUID}
	for _, o := range m.OwnerReferences {
		if o.Kind == obj.SessionKind() && o.APIVersion == api.GroupVersion.String() {
			uids = append(uids, o.UID)
		}
	}
	return !slices.ContainsFunc(uids, func(uid types.UID) bool { return uid != "" && uid != obj.GetUID() })
}

// Trim is what a cache keeps of an object (cache.Options.DefaultTransform): nothing of who
// manages its fields, and of a message that has ended nothing of its text, which may be long
// and which nobody types any more. What is read from the cache is patched, never updated.
func Trim(obj any) (any, error) {
	if m, ok := obj.(*api.SessionMessage); ok && m.Status.Outcome.Final() {
		m.Spec.Text = ""
	}
	return stripManagedFields(obj)
}

var stripManagedFields = cache.TransformStripManagedFields()

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
