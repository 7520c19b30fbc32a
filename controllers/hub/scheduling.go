package hub

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/controllers/internal/apply"
	"github.com/theloop-dev/the-loop/controllers/internal/kinds"
	"github.com/theloop-dev/the-loop/internal/event"
)

// placeAgain is how often a host is looked for when none took the session: that another
// session left one is no event of this one.
const placeAgain = 20 * time.Second

// bind gives a session its host, once. The finalizer goes on in the same write: from
// then on something may be started that only its host can end.
func (r *sessionReconciler) bind(ctx context.Context, obj kinds.Session) (bool, time.Duration, error) {
	bound := obj.Placement().HostName != ""
	if bound && (controllerutil.ContainsFinalizer(obj, api.SessionFinalizer) || obj.GetDeletionTimestamp() != nil) {
		r.set(obj, api.ConditionScheduled, metav1.ConditionTrue, api.ReasonBound, "bound to host "+obj.Placement().HostName)
		return false, 0, nil
	}
	if obj.GetDeletionTimestamp() != nil {
		// Never bound, and going: there is nothing to hold it for.
		return true, 0, nil
	}
	r.placing.Lock()
	defer r.placing.Unlock()
	before := obj.DeepCopyObject().(client.Object)
	parentHost, err := r.own(ctx, obj)
	if err != nil {
		return false, 0, err
	}
	if !bound {
		host, why, err := r.choose(ctx, obj, parentHost)
		if err != nil {
			return false, 0, err
		}
		if host == "" {
			r.set(obj, api.ConditionScheduled, metav1.ConditionFalse, api.ReasonNoHost, why)
			return false, placeAgain, nil
		}
		obj.Placement().HostName = host
	}
	controllerutil.AddFinalizer(obj, api.SessionFinalizer)
	if err := r.client.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), apply.Hub); err != nil {
		return false, 0, client.IgnoreNotFound(err)
	}
	if !meta.IsStatusConditionTrue(obj.HostedStatus().Conditions, api.ConditionScheduled) {
		// Not where only the finalizer was lost.
		r.registered(obj)
	}
	r.set(obj, api.ConditionScheduled, metav1.ConditionTrue, api.ReasonBound, "bound to host "+obj.Placement().HostName)
	return false, 0, nil
}

// registered tells that a session got its host.
func (r *sessionReconciler) registered(obj kinds.Session) {
	p := obj.Placement()
	message := "bound to host " + p.HostName
	if s, ok := obj.(*api.StandingSession); ok {
		r.emitter.Emit(obj, nil, event.StandingCreated, message, "host", p.HostName, "class", p.ClassName, "cwd", s.Spec.Cwd, "auto_start", ptr.Deref(s.Spec.AutoStart, true))
		return
	}
	r.emitter.Emit(obj, nil, event.SessionRegistered, message, "host", p.HostName, "class", p.ClassName)
}

// choose picks the least loaded of the hosts that take the session, or says why none
// does. The preferred one goes before all others: the clone that a pull request shares
// with its work item is there.
func (r *sessionReconciler) choose(ctx context.Context, obj kinds.Session, preferred string) (name, why string, err error) {
	selector := labels.Everything()
	if s := obj.Placement().HostSelector; s != nil {
		if selector, err = metav1.LabelSelectorAsSelector(s); err != nil {
			return "", fmt.Sprintf("spec.hostSelector cannot be used: %v", err), nil
		}
	}
	var hosts api.SessionHostList
	if err := r.client.List(ctx, &hosts); err != nil {
		return "", "", err
	}
	type candidate struct {
		name string
		load int
	}
	var open []candidate
	for i := range hosts.Items {
		h := &hosts.Items[i]
		load, err := r.load(ctx, h.Name)
		if err != nil {
			return "", "", err
		}
		if !takes(h, selector, load) {
			continue
		}
		if h.Name == preferred {
			return h.Name, "", nil
		}
		open = append(open, candidate{h.Name, load})
	}
	if len(open) == 0 {
		return "", fmt.Sprintf("none of the %d registered hosts takes the session: start an agent, uncordon a host (kubectl get shost), or change spec.hostSelector", len(hosts.Items)), nil
	}
	best := slices.MinFunc(open, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.load, b.load), cmp.Compare(a.name, b.name))
	})
	return best.name, "", nil
}

// takes reports whether a host takes one more session. One that is silent or was never
// heard of does not: a session is bound once and for all.
func takes(h *api.SessionHost, selector labels.Selector, load int) bool {
	return h.DeletionTimestamp == nil &&
		(h.Spec.Scheduling == "" || h.Spec.Scheduling == api.HostSchedulingEnabled) &&
		meta.IsStatusConditionTrue(h.Status.Conditions, api.ConditionHostReady) &&
		selector.Matches(labels.Set(h.Labels)) &&
		(h.Spec.MaxSessions == nil || load < int(ptr.Deref(h.Spec.MaxSessions, 0)))
}

// load counts the sessions bound to a host.
func (r *sessionReconciler) load(ctx context.Context, host string) (int, error) {
	n := 0
	for _, k := range kinds.All {
		keys, err := sessionsOn(ctx, r.client, k, host)
		if err != nil {
			return 0, err
		}
		n += len(keys)
	}
	return n, nil
}
