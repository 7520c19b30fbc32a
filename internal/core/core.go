// Package core is the verbs: what a person, a program or an agent can do with sessions
// and their messages. Every surface (command line, SDK) calls them; a surface only
// parses and prints. A verb acts through the API alone, so that everything it does can
// be done with kubectl, and the rights of the caller are those of its kubeconfig.
package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

// Core carries out verbs in one namespace, as one caller.
type Core struct {
	// Client reads and writes past any cache: what a verb decides on is what is stored.
	Client client.WithWatch
	// Namespace of the sessions. "" is "default".
	Namespace string
	// Actor is who speaks, for source.actor of messages. "" leaves it out.
	Actor string
	// DryRun has the API server check and admit everything, and store nothing. Nothing is
	// awaited then.
	DryRun bool
	// NoWait returns once what was asked for is stored, without awaiting its outcome.
	NoWait bool
	// Timeout bounds how long an outcome is awaited. 0 is a minute.
	Timeout time.Duration
	// Progress is told what is waited for, at each change, from any goroutine. Nil for
	// nobody.
	Progress func(what string)
	// Clock is for tests; nil is the real one.
	Clock clock.PassiveClock
}

// Session is a session object of either kind.
type Session interface {
	client.Object
	api.HostedSession
}

const (
	// fieldOwner of what the verbs write.
	fieldOwner client.FieldOwner = "the-loop"
	// defaultTimeout of an awaited outcome.
	defaultTimeout = time.Minute
	// rereads bounds how often an object is read again that somebody wrote meanwhile.
	rereads = 8
	// undoWithin bounds how long something that failed may take to be taken back. It runs
	// also when the caller's own time is over.
	undoWithin = 30 * time.Second
)

// Scheme has the kinds that the verbs read and write.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	return s, errors.Join(api.AddToScheme(s), clientgoscheme.AddToScheme(s))
}

func (c *Core) namespace() string { return cmp.Or(c.Namespace, "default") }

func (c *Core) timeout() time.Duration { return cmp.Or(c.Timeout, defaultTimeout) }

func (c *Core) now() time.Time {
	if c.Clock == nil {
		return time.Now()
	}
	return c.Clock.Now()
}

func (c *Core) tell(what string) {
	if c.Progress != nil {
		c.Progress(what)
	}
}

// waits reports whether outcomes are awaited.
func (c *Core) waits() bool { return !c.NoWait && !c.DryRun }

// writer is the client that writes.
func (c *Core) writer() client.Client {
	if c.DryRun {
		return client.NewDryRunClient(c.Client)
	}
	return c.Client
}

// token is an opaque value that was never used before.
func token() string { return uuid.NewString() }

// key names an object of this kind in the namespace.
func (c *Core) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: c.namespace(), Name: name}
}

// change reads an object, has it changed, and writes it under the condition that nobody
// wrote it meanwhile; when somebody did, all of it is done again on what is there now. A
// change that leaves the object as it is writes nothing. It returns whether it wrote.
func (c *Core) change(ctx context.Context, obj Session, mutate func() error) (bool, error) {
	return change(ctx, c, obj, mutate)
}

func change[T client.Object](ctx context.Context, c *Core, obj T, mutate func() error) (bool, error) {
	uid := obj.GetUID()
	for again := 0; ; again++ {
		if again > 0 {
			if err := c.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
				return false, err
			}
			if obj.GetUID() != uid {
				return false, notFound(fmt.Sprintf("%s was deleted and another object has its name", obj.GetName()), "look at it again")
			}
		}
		before, ok := obj.DeepCopyObject().(T)
		if !ok {
			return false, fmt.Errorf("%T is not copied as itself", obj)
		}
		if err := mutate(); err != nil {
			return false, err
		}
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		data, err := client.MergeFrom(before).Data(obj)
		if err != nil {
			return false, err
		}
		if string(data) == "{}" {
			return false, nil
		}
		err = c.writer().Patch(ctx, obj, patch, fieldOwner)
		if apierrors.IsConflict(err) && again < rereads {
			continue
		}
		return err == nil, err
	}
}
