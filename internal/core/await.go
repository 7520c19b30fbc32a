package core

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

// listOf is an empty list of the kind of an object.
func listOf(obj client.Object) (client.ObjectList, error) {
	switch obj.(type) {
	case *api.StandingSession:
		return &api.StandingSessionList{}, nil
	case *api.WorkItemSession:
		return &api.WorkItemSessionList{}, nil
	case *api.SessionMessage:
		return &api.SessionMessageList{}, nil
	case *api.SessionHost:
		return &api.SessionHostList{}, nil
	}
	return nil, fmt.Errorf("objects of type %T are not watched", obj)
}

// errGone: the object that was followed does not exist any more.
var errGone = errors.New("it is gone")

// follow shows an object to look, again and again at each change, until look says true,
// the object is gone (errGone), or the context ends. obj is what was seen last.
func follow[T client.Object](ctx context.Context, c client.WithWatch, obj T, look func() bool) error {
	uid := obj.GetUID()
	for {
		seen, err := followOnce(ctx, c, obj, uid, look)
		if err != nil || seen {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// followOnce is follow for as long as one watch lasts.
func followOnce[T client.Object](ctx context.Context, c client.WithWatch, obj T, uid types.UID, look func() bool) (bool, error) {
	list, err := listOf(obj)
	if err != nil {
		return false, err
	}
	opts := []client.ListOption{client.MatchingFields{"metadata.name": obj.GetName()}}
	if ns := obj.GetNamespace(); ns != "" {
		opts = append(opts, client.InNamespace(ns))
	}
	w, err := c.Watch(ctx, list, opts...)
	if err != nil {
		return false, err
	}
	defer w.Stop()
	// Read behind the beginning of the watch, so that nothing is missed between them.
	if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); apierrors.IsNotFound(err) {
		return false, errGone
	} else if err != nil {
		return false, err
	}
	if obj.GetUID() != uid {
		return false, errGone
	}
	if look() {
		return true, nil
	}
	return changes(ctx, w, obj, uid, look)
}

// changes shows what a watch tells of an object; false when the watch has come to its end.
func changes[T client.Object](ctx context.Context, w watch.Interface, obj T, uid types.UID, look func() bool) (bool, error) {
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case e, open := <-w.ResultChan():
			if !open || e.Type == watch.Error {
				return false, nil // begun anew, with a read that tells
			}
			o, ok := e.Object.(client.Object)
			if !ok || o.GetUID() != uid {
				continue
			}
			if e.Type == watch.Deleted {
				return false, errGone
			}
			if err := assign(obj, o); err != nil {
				return false, err
			}
			if look() {
				return true, nil
			}
		}
	}
}

// assign copies one object into another of the same kind.
func assign(to, from client.Object) error {
	switch t := to.(type) {
	case *api.StandingSession:
		if f, ok := from.(*api.StandingSession); ok {
			f.DeepCopyInto(t)
			return nil
		}
	case *api.WorkItemSession:
		if f, ok := from.(*api.WorkItemSession); ok {
			f.DeepCopyInto(t)
			return nil
		}
	case *api.SessionMessage:
		if f, ok := from.(*api.SessionMessage); ok {
			f.DeepCopyInto(t)
			return nil
		}
	case *api.SessionHost:
		if f, ok := from.(*api.SessionHost); ok {
			f.DeepCopyInto(t)
			return nil
		}
	}
	return fmt.Errorf("a %T was shown instead of a %T", from, to)
}

// await follows a session until judge says that it is done, at most for the timeout.
// Time that is over is no error, but the progress that was made until then.
func (c *Core) await(ctx context.Context, s Session, judge func() progress) (progress, error) {
	limited, cancel := context.WithTimeout(ctx, c.timeout())
	defer cancel()
	last := waiting("")
	err := follow(limited, c.Client, s, func() bool {
		was := last.detail
		last = judge()
		if !last.done && last.detail != was {
			c.tell(s.GetName() + ": " + last.detail)
		}
		return last.done
	})
	switch {
	case err == nil:
		return last, nil
	case errors.Is(err, errGone):
		return done(OutcomeFailed, "the session was deleted meanwhile"), nil
	case ctx.Err() != nil:
		return last, ctx.Err()
	case limited.Err() != nil:
		last.detail = fmt.Sprintf("not within %s: %s", c.timeout(), last.detail)
		return last, nil
	}
	return last, err
}

// awaitGone follows an object until it is gone, at most for the timeout. It returns
// whether it is, and tells what of it is in the way.
func awaitGone[T client.Object](ctx context.Context, c *Core, obj T, why func() string) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, c.timeout())
	defer cancel()
	last := ""
	err := follow(limited, c.Client, obj, func() bool {
		if w := why(); w != last {
			last = w
			c.tell(obj.GetName() + ": " + w)
		}
		return false
	})
	switch {
	case errors.Is(err, errGone):
		return true, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	case limited.Err() != nil:
		return false, nil
	}
	return false, err
}
