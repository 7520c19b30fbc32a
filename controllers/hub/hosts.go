package hub

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/controllers/internal/apply"
)

// hostGrace is how long a host may be silent, measured on the hub's own clock from
// the moment at which it saw the lease change: the clocks of hosts are not compared.
const hostGrace = 50 * time.Second

// heartbeat is the newest renewal that the hub saw of one host.
type heartbeat struct {
	renewed metav1.MicroTime
	seen    time.Time
	// fresh: the hub itself saw the lease change, so that its agent was alive then.
	fresh bool
}

// hostReconciler owns the condition Ready of hosts.
type hostReconciler struct {
	client client.Client
	clock  clock.PassiveClock

	mu    sync.Mutex
	beats map[types.NamespacedName]heartbeat
}

func setupHosts(mgr ctrl.Manager) error {
	r := &hostReconciler{client: mgr.GetClient(), clock: clock.RealClock{}}
	toHost := func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: o.GetName()}}}
	}
	return ctrl.NewControllerManagedBy(mgr).Named("hub-sessionhost").
		For(&api.SessionHost{}).
		// A renewal is noticed when the host is next judged, and at once only where there
		// was none before.
		Watches(&coordinationv1.Lease{}, handler.EnqueueRequestsFromMapFunc(toHost), builder.WithPredicates(predicate.Funcs{
			UpdateFunc: func(e event.UpdateEvent) bool {
				l, ok := e.ObjectNew.(*coordinationv1.Lease)
				return ok && r.renewed(l)
			},
		})).
		WithOptions(controller.Options{RateLimiter: apply.RateLimiter()}).
		Complete(r)
}

// renewed takes note of a renewal, and reports whether the host was not known to be
// alive before.
func (r *hostReconciler) renewed(l *coordinationv1.Lease) bool {
	key := types.NamespacedName{Name: l.Name}
	r.mu.Lock()
	was, ok := r.beats[key]
	r.mu.Unlock()
	silent := !ok || !was.fresh || r.clock.Since(was.seen) >= hostGrace
	r.beat(key, l)
	return silent
}

// Reconcile judges one host.
func (r *hostReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	host := &api.SessionHost{}
	if err := r.client.Get(ctx, req.NamespacedName, host); err != nil {
		r.forget(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	lease := &coordinationv1.Lease{}
	if err := r.client.Get(ctx, client.ObjectKey{Namespace: api.LeaseNamespace, Name: host.Name}, lease); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	before := hostStatus{Conditions: apply.Owned(host.Status.Conditions, api.ConditionHostReady)}
	beat := r.beat(req.NamespacedName, lease)
	silence := r.clock.Since(beat.seen)
	c := judge(host.Name, meta.FindStatusCondition(host.Status.Conditions, api.ConditionHostReady), silence, beat)
	c.ObservedGeneration, c.LastTransitionTime = host.Generation, metav1.NewTime(r.clock.Now())
	meta.SetStatusCondition(&host.Status.Conditions, c)
	after := hostStatus{Conditions: apply.Owned(host.Status.Conditions, api.ConditionHostReady)}
	err := apply.Status(ctx, r.client, apply.Hub, host.DeepCopy(), before, after, client.ForceOwnership)
	next := hostGrace - silence
	if next <= 0 {
		next = hostGrace
	}
	return ctrl.Result{RequeueAfter: next + time.Second}, client.IgnoreNotFound(err)
}

// hostStatus is the part of a host's status that the hub owns.
type hostStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// beat is the newest renewal that the hub saw.
func (r *hostReconciler) beat(key types.NamespacedName, lease *coordinationv1.Lease) heartbeat {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.beats == nil {
		r.beats = map[types.NamespacedName]heartbeat{}
	}
	var renewed metav1.MicroTime
	if lease.Spec.RenewTime != nil {
		renewed = *lease.Spec.RenewTime
	}
	b, ok := r.beats[key]
	if !ok || !b.renewed.Equal(&renewed) {
		b = heartbeat{renewed: renewed, seen: r.clock.Now(), fresh: ok && !renewed.IsZero()}
		r.beats[key] = b
	}
	return b
}

func (r *hostReconciler) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.beats, key)
}

// judge says what a silence means: never that the host is gone. A hub that has just
// started has seen no renewal yet and repeats what was known before, for the time of the
// grace: a host that has long been silent does not come to life with the hub.
func judge(name string, known *metav1.Condition, silence time.Duration, b heartbeat) metav1.Condition {
	c := metav1.Condition{Type: api.ConditionHostReady, Status: metav1.ConditionTrue, Reason: api.ReasonLeaseRenewed, Message: "the agent renews its lease"}
	switch {
	case b.renewed.IsZero():
		c.Status, c.Reason = metav1.ConditionUnknown, api.ReasonReconciling
		c.Message = "the agent has not taken its lease yet"
	case silence >= hostGrace, !b.fresh && known != nil && known.Reason == api.ReasonHeartbeatStopped:
		c.Status, c.Reason = metav1.ConditionUnknown, api.ReasonHeartbeatStopped
		c.Message = fmt.Sprintf("the agent of host %s has been silent for more than %s; its sessions may well run", name, hostGrace)
	}
	return c
}
