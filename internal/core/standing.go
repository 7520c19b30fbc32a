package core

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/workitem"
)

// CreateStanding creates a standing session and awaits its start. When that fails, by
// whatever, what was created is deleted again, so that the name is free for another
// try; the error says so. A name that exists is refused, whoever made it: a name is one
// session. spec.state Stopped creates the record alone.
func (c *Core) CreateStanding(ctx context.Context, name string, spec api.StandingSessionSpec) (r Result, err error) {
	if err := workitem.StandingName(name); err != nil {
		return Result{}, invalid(err.Error(), "")
	}
	s := &api.StandingSession{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace(), Name: name, Labels: map[string]string{api.OriginLabel: api.OriginCreated}},
		Spec:       spec,
	}
	if err := c.writer().Create(ctx, s, fieldOwner); err != nil {
		return Result{}, c.notCreated(ctx, s, err)
	}
	if spec.State == api.SessionStateStopped || !c.waits() {
		return c.result(s, OutcomeCreated, "its start was not awaited"), nil
	}
	kept := false
	defer func() {
		if !kept {
			// Also when it is a panic that ends this.
			err = errors.Join(err, c.takeBack(ctx, s))
		}
	}()
	r, err = c.awaitStart(ctx, s, "")
	kept = err == nil && r.OK()
	if err == nil && !kept {
		err = refuse(ErrFailed, fmt.Sprintf("standing session %s could not be started and was not kept: %s", name, r.Detail), "")
	}
	return r, err
}

// notCreated explains why an object was not created.
func (c *Core) notCreated(ctx context.Context, s *api.StandingSession, err error) error {
	if apierrors.IsInvalid(err) {
		return invalid(err.Error(), "")
	}
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	there := &api.StandingSession{}
	if getErr := c.Client.Get(ctx, client.ObjectKeyFromObject(s), there); getErr == nil && Declared(there) {
		return refuse(ErrExists, fmt.Sprintf("standing session %s exists: it is declared by %s", s.Name, there.Annotations[api.DeclaredByAnnotation]),
			"choose another name, or start it with the-loop standing start "+s.Name)
	}
	return refuse(ErrExists, fmt.Sprintf("standing session %s exists already", s.Name),
		fmt.Sprintf("choose another name, start it with the-loop standing start %s, or delete it first", s.Name))
}

// takeBack deletes what was created and did not start. It has time of its own: the
// caller's may be over.
func (c *Core) takeBack(ctx context.Context, s *api.StandingSession) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoWithin)
	defer cancel()
	err := c.Client.Delete(ctx, s, client.Preconditions{UID: ptr.To(s.UID)})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err == nil {
		short := *c
		short.Timeout = undoWithin
		var gone bool
		if gone, err = awaitGone(ctx, &short, s, func() string { return "taken back: " + readyMessage(s) }); err == nil && gone {
			return nil
		}
	}
	why := "its host has not let go of it yet"
	if err != nil {
		why = err.Error()
	}
	return refuse(ErrUnconfirmed, fmt.Sprintf("standing session %s is still there: %s", s.Name, why), "kubectl delete standing "+s.Name+" -n "+s.Namespace)
}

func readyMessage(s Session) string {
	for _, c := range s.HostedStatus().Conditions {
		if c.Type == api.ConditionReady {
			return c.Message
		}
	}
	return "nothing is known of it yet"
}

// Deletable refuses a declared session, naming what declares it.
func Deletable(s *api.StandingSession) error {
	if !Declared(s) {
		return nil
	}
	return refuse(ErrDeclared, fmt.Sprintf("standing session %s is declared by %s, so the next the-loop up would bring it back", s.Name, s.Annotations[api.DeclaredByAnnotation]),
		fmt.Sprintf("remove the entry there, or stop it with the-loop standing stop %s", s.Name))
}

// DeleteStanding stops a session, gracefully as Stop does, and removes its record: the
// conversation is forgotten, which is the whole difference. A declared session is
// refused, naming what declares it. When the stop fails, or cannot be confirmed, the
// record is kept.
func (c *Core) DeleteStanding(ctx context.Context, name string) (Result, error) {
	s, err := c.Standing(ctx, name)
	if err != nil {
		return Result{}, err
	}
	if err := Deletable(s); err != nil {
		return Result{}, err
	}
	if !c.waits() {
		// The agent of its host stops it before it lets the object go.
		if err := c.delete(ctx, s); err != nil {
			return Result{}, err
		}
		return c.result(s, OutcomeDeleted, describeEnd(s, true)), nil
	}
	stopped, err := c.Stop(ctx, s)
	if err != nil {
		return Result{}, fmt.Errorf("standing session %s was not deleted, because it could not be stopped: %w", name, err)
	}
	if !stopped.OK() {
		stopped.Detail = "it was not deleted, because it is not known to have stopped: " + stopped.Detail
		return stopped, nil
	}
	if err := c.delete(ctx, s); err != nil {
		return Result{}, err
	}
	gone, err := awaitGone(ctx, c, s, func() string { return readyMessage(s) })
	if err != nil {
		return Result{}, err
	}
	if !gone {
		return c.result(s, OutcomeUnconfirmed, "its host has not let go of it yet: "+readyMessage(s)), nil
	}
	return c.result(s, OutcomeDeleted, "stopped first: "+stopped.Detail), nil
}

// delete deletes this very object and no later one of its name.
func (c *Core) delete(ctx context.Context, o client.Object) error {
	err := c.writer().Delete(ctx, o, client.Preconditions{UID: ptr.To(o.GetUID())})
	if apierrors.IsNotFound(err) {
		return notFound(o.GetName()+" is gone already", "")
	}
	return err
}
