package hub

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/controllers/internal/apply"
	"github.com/theloop-dev/the-loop/controllers/internal/emit"
	"github.com/theloop-dev/the-loop/controllers/internal/kinds"
	"github.com/theloop-dev/the-loop/internal/event"
	"github.com/theloop-dev/the-loop/internal/session"
)

// +kubebuilder:rbac:groups=theloop.dev,resources=workitemsessions;standingsessions,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=theloop.dev,resources=workitemsessions,verbs=delete
// +kubebuilder:rbac:groups=theloop.dev,resources=workitemsessions/status;standingsessions/status;sessionhosts/status;sessionmessages/status,verbs=patch
// +kubebuilder:rbac:groups=theloop.dev,resources=sessionmessages,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=theloop.dev,resources=sessionhosts,verbs=get;list;watch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;list;watch;create;update,namespace=theloop-system
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch,namespace=theloop-system
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// goneQuarantine is how long a host must be gone before its sessions are let go.
const goneQuarantine = 40 * time.Second

// sessionReconciler binds sessions of one kind and owns their condition Ready.
type sessionReconciler struct {
	client  client.Client
	reader  client.Reader
	emitter emit.Emitter
	clock   clock.PassiveClock
	fresh   func() kinds.Session
	// placing is held while a host is chosen, so that none gets more than it takes.
	placing *sync.Mutex
	// gone is when the host of a deleted session was first seen not to exist.
	gone sync.Map
}

// step is one part of a reconcile. It stops the ones behind it by a wait or an error.
type step func(ctx context.Context, obj kinds.Session) (stop bool, wait time.Duration, err error)

// Reconcile takes one session through the steps, and writes what they found.
func (r *sessionReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	obj := r.fresh()
	if err := r.client.Get(ctx, req.NamespacedName, obj); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := hubPart(obj)
	var wait time.Duration
	for _, s := range []step{r.letGo, r.endpoints, r.bind, r.hostAvailable, r.summarise} {
		stop, w, err := s(ctx, obj)
		if apierrors.IsConflict(err) {
			return ctrl.Result{RequeueAfter: 50 * time.Millisecond}, nil
		}
		if err != nil {
			return ctrl.Result{}, err
		}
		wait = session.Soonest(wait, w)
		if stop {
			return ctrl.Result{RequeueAfter: wait}, nil
		}
	}
	answer := obj.DeepCopyObject().(kinds.Session)
	err := apply.Status(ctx, r.client, apply.Hub, answer, before, hubPart(obj), client.ForceOwnership)
	return ctrl.Result{RequeueAfter: wait}, client.IgnoreNotFound(err)
}

// sessionStatus is the part of a session's status that the hub owns.
type sessionStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Item               string             `json:"item,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

func hubPart(obj kinds.Session) sessionStatus {
	st := obj.HostedStatus()
	part := sessionStatus{
		ObservedGeneration: st.ObservedGeneration,
		Conditions:         apply.Owned(st.Conditions, api.ConditionScheduled, api.ConditionHostAvailable, api.ConditionReady),
	}
	if w, ok := obj.(*api.WorkItemSession); ok {
		part.Item = w.Status.Item
	}
	return part
}

func (r *sessionReconciler) set(obj kinds.Session, kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&obj.HostedStatus().Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: obj.GetGeneration(),
		LastTransitionTime: metav1.NewTime(r.clock.Now()),
	})
}

// letGo releases a deleted session whose host is proved gone, because no agent is
// left to do it: its SessionHost does not exist, and has not for a while.
func (r *sessionReconciler) letGo(ctx context.Context, obj kinds.Session) (bool, time.Duration, error) {
	deleted := obj.GetDeletionTimestamp()
	if deleted == nil || !controllerutil.ContainsFinalizer(obj, api.SessionFinalizer) {
		return deleted != nil && len(obj.GetFinalizers()) == 0, 0, nil
	}
	err := r.reader.Get(ctx, client.ObjectKey{Name: obj.Placement().HostName}, &api.SessionHost{})
	if !apierrors.IsNotFound(err) {
		r.gone.Delete(obj.GetUID())
		return false, 0, err
	}
	since, _ := r.gone.LoadOrStore(obj.GetUID(), r.clock.Now())
	if left := goneQuarantine - r.clock.Since(since.(time.Time)); left > 0 {
		return false, left, nil
	}
	r.gone.Delete(obj.GetUID())
	before := obj.DeepCopyObject().(client.Object)
	controllerutil.RemoveFinalizer(obj, api.SessionFinalizer)
	host := obj.Placement().HostName
	if err := r.client.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), apply.Hub); err != nil {
		return true, 0, client.IgnoreNotFound(err)
	}
	r.emitter.Emit(obj, nil, event.SessionAbandoned, "the host "+host+" is gone; whatever still runs there was not ended", "host", host)
	return true, 0, nil
}

// hostAvailable repeats what is known of the host.
func (r *sessionReconciler) hostAvailable(ctx context.Context, obj kinds.Session) (bool, time.Duration, error) {
	name := obj.Placement().HostName
	if name == "" {
		r.set(obj, api.ConditionHostAvailable, metav1.ConditionUnknown, api.ReasonNotBound, "the session is not bound to a host")
		return false, 0, nil
	}
	host := &api.SessionHost{}
	switch err := r.client.Get(ctx, client.ObjectKey{Name: name}, host); {
	case apierrors.IsNotFound(err):
		r.set(obj, api.ConditionHostAvailable, metav1.ConditionFalse, api.ReasonHostNotFound,
			"SessionHost "+name+" does not exist: start its agent, or delete the session")
		return false, 0, nil
	case err != nil:
		return false, 0, err
	}
	c := meta.FindStatusCondition(host.Status.Conditions, api.ConditionHostReady)
	if c == nil {
		c = &metav1.Condition{Status: metav1.ConditionUnknown, Reason: api.ReasonReconciling, Message: "the host was not judged yet"}
	}
	r.set(obj, api.ConditionHostAvailable, c.Status, c.Reason, c.Message)
	return false, 0, nil
}

// summarise writes Ready and, once the agent has seen the newest spec, the observed
// generation.
func (r *sessionReconciler) summarise(_ context.Context, obj kinds.Session) (bool, time.Duration, error) {
	if w, ok := obj.(*api.WorkItemSession); ok {
		w.Status.Item = session.RefOf(w).String()
	}
	c := Ready(obj)
	r.set(obj, api.ConditionReady, c.Status, c.Reason, c.Message)
	if c.Reason != api.ReasonReconciling {
		obj.HostedStatus().ObservedGeneration = obj.GetGeneration()
	}
	return false, 0, nil
}
