package hub

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/controllers/internal/apply"
	"github.com/theloop-dev/the-loop/controllers/internal/kinds"
	"github.com/theloop-dev/the-loop/internal/event"
)

// endpoints carries the end of a work item's session over to the sessions of its pull
// requests, which go first: a cleanup cleans them up, a deletion deletes them. The agent
// of the item's own session waits for them.
func (r *sessionReconciler) endpoints(ctx context.Context, obj kinds.Session) (bool, time.Duration, error) {
	w, ok := obj.(*api.WorkItemSession)
	if !ok {
		return false, 0, nil
	}
	if w.Spec.ParentName != "" {
		parent, err := r.parent(ctx, w)
		if err != nil {
			return false, 0, err
		}
		if parent == nil {
			return false, 0, r.orphan(ctx, w)
		}
		return false, 0, r.follow(ctx, w, parent)
	}
	if w.DeletionTimestamp == nil && w.Spec.State != api.SessionStateCleanedUp {
		return false, 0, nil
	}
	var children api.WorkItemSessionList
	if err := r.client.List(ctx, &children, client.InNamespace(w.Namespace), client.MatchingFields{parentIndex: w.Name}); err != nil {
		return false, 0, err
	}
	for i := range children.Items {
		if err := r.follow(ctx, &children.Items[i], w); err != nil {
			return false, 0, err
		}
	}
	return false, 0, nil
}

// follow lets a pull request's session end as that of its work item does.
func (r *sessionReconciler) follow(ctx context.Context, child, parent *api.WorkItemSession) error {
	switch {
	case child.DeletionTimestamp != nil:
		return nil
	case parent.DeletionTimestamp != nil:
		if err := r.client.Delete(ctx, child, client.Preconditions{UID: &child.UID}); err != nil {
			return client.IgnoreNotFound(err)
		}
		r.emitter.Emit(child, parent, event.SessionEndedWithParent, "deleted with the session "+parent.Name+" of its work item", "parent", parent.Name, "effect", "deleted")
		return nil
	case parent.Spec.State != api.SessionStateCleanedUp || child.Spec.State == api.SessionStateCleanedUp:
		return nil
	}
	before := child.DeepCopy()
	child.Spec.State = api.SessionStateCleanedUp
	if err := r.client.Patch(ctx, child, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), apply.Hub); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.emitter.Emit(child, parent, event.SessionEndedWithParent, "cleaned up with the session "+parent.Name+" of its work item", "parent", parent.Name, "effect", "cleaned")
	return nil
}

// orphan deletes a pull request's session whose owner is gone for good: a work item's
// session that was never bound goes at once, and not every control plane collects what it
// owned.
func (r *sessionReconciler) orphan(ctx context.Context, child *api.WorkItemSession) error {
	if child.DeletionTimestamp != nil || len(child.OwnerReferences) == 0 {
		return nil // it never had one
	}
	// Not in the cache is not gone.
	err := r.reader.Get(ctx, client.ObjectKey{Namespace: child.Namespace, Name: child.Spec.ParentName}, &api.WorkItemSession{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	r.emitter.Emit(child, nil, event.SessionEndedWithParent, "deleted, because the session "+child.Spec.ParentName+" of its work item is gone", "parent", child.Spec.ParentName, "effect", "deleted")
	return client.IgnoreNotFound(r.client.Delete(ctx, child, client.Preconditions{UID: &child.UID}))
}

// parent is the session of the work item that a pull request's session belongs to, nil
// when there is none.
func (r *sessionReconciler) parent(ctx context.Context, child *api.WorkItemSession) (*api.WorkItemSession, error) {
	parent := &api.WorkItemSession{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: child.Namespace, Name: child.Spec.ParentName}, parent)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return parent, nil
}

// own makes the session of the work item the owner of its pull request's, so that none
// outlives it, and says which host has it.
func (r *sessionReconciler) own(ctx context.Context, obj kinds.Session) (host string, err error) {
	w, ok := obj.(*api.WorkItemSession)
	if !ok || w.Spec.ParentName == "" {
		return "", nil
	}
	parent, err := r.parent(ctx, w)
	if err != nil || parent == nil {
		return "", err
	}
	return parent.Spec.HostName, controllerutil.SetOwnerReference(parent, w, r.client.Scheme())
}
