// Package hub holds the central reconcilers: they bind sessions to hosts, judge
// whether hosts are alive, summarise each session in its condition Ready, hand
// messages to the host of their session and remove them when their time is over.
package hub

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/controllers/internal/apply"
	"github.com/theloop-dev/the-loop/controllers/internal/emit"
	"github.com/theloop-dev/the-loop/controllers/internal/kinds"
)

// workers is how many objects of one kind are worked on at a time.
const workers = 8

// hostIndex finds the sessions bound to one host, sessionIndex the messages for one
// session, parentIndex the sessions of a work item's pull requests.
const (
	hostIndex    = "host"
	sessionIndex = "session"
	parentIndex  = "parent"
)

// ManagerOptions are the options of the hub's manager.
func ManagerOptions(base ctrl.Options) ctrl.Options {
	base.Cache.DefaultTransform = kinds.Trim
	base.Cache.ByObject = map[client.Object]cache.ByObject{
		&coordinationv1.Lease{}: {Namespaces: map[string]cache.Config{api.LeaseNamespace: {}}},
	}
	base.NewClient = func(cfg *rest.Config, o client.Options) (client.Client, error) {
		if o.Cache != nil {
			o.Cache.EnableReadYourWritesConsistency = ptr.To(true)
		}
		return client.New(cfg, o)
	}
	base.Controller.SkipNameValidation = ptr.To(true)
	return base
}

// Setup adds the hub's reconcilers to a manager made with ManagerOptions. What happens to
// sessions is told to log.
func Setup(ctx context.Context, mgr ctrl.Manager, log logr.Logger) error {
	if err := indexFields(ctx, mgr); err != nil {
		return fmt.Errorf("indexing: %w", err)
	}
	placing, emitter := &sync.Mutex{}, emit.New(mgr, "theloop-controller", log)
	for _, k := range kinds.All {
		if err := setupSessions(mgr, k, placing, emitter); err != nil {
			return fmt.Errorf("setting up the reconciler of %s: %w", k.Name, err)
		}
	}
	if err := setupHosts(mgr); err != nil {
		return fmt.Errorf("setting up the reconciler of SessionHost: %w", err)
	}
	if err := setupMessages(mgr, emitter); err != nil {
		return fmt.Errorf("setting up the reconciler of SessionMessage: %w", err)
	}
	return nil
}

func indexFields(ctx context.Context, mgr ctrl.Manager) error {
	for _, k := range kinds.All {
		byHost := func(o client.Object) []string { return []string{o.(kinds.Session).Placement().HostName} }
		if err := mgr.GetFieldIndexer().IndexField(ctx, k.New(), hostIndex, byHost); err != nil {
			return err
		}
	}
	byParent := func(o client.Object) []string { return []string{o.(*api.WorkItemSession).Spec.ParentName} }
	if err := mgr.GetFieldIndexer().IndexField(ctx, &api.WorkItemSession{}, parentIndex, byParent); err != nil {
		return err
	}
	bySession := func(o client.Object) []string {
		ref := o.(*api.SessionMessage).Spec.SessionRef
		return []string{ref.Kind + "/" + ref.Name}
	}
	return mgr.GetFieldIndexer().IndexField(ctx, &api.SessionMessage{}, sessionIndex, bySession)
}

func setupSessions(mgr ctrl.Manager, k kinds.Kind, placing *sync.Mutex, emitter emit.Emitter) error {
	r := &sessionReconciler{client: mgr.GetClient(), reader: mgr.GetAPIReader(), emitter: emitter, clock: clock.RealClock{}, fresh: k.New, placing: placing}
	return ctrl.NewControllerManagedBy(mgr).Named("hub-"+strings.ToLower(k.Name)).
		For(k.New()).
		Watches(&api.SessionHost{}, handler.EnqueueRequestsFromMapFunc(r.ofHost(k)), builder.WithPredicates(hostChanged{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: apply.RateLimiter()}).
		Complete(r)
}

// ofHost names the sessions that a change of a host concerns: its own, and those that
// have none.
func (r *sessionReconciler) ofHost(k kinds.Kind) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		var out []reconcile.Request
		for _, host := range []string{o.GetName(), ""} {
			keys, err := sessionsOn(ctx, r.client, k, host)
			if err != nil {
				continue
			}
			for _, key := range keys {
				out = append(out, reconcile.Request{NamespacedName: key})
			}
		}
		return out
	}
}

// sessionsOn names the sessions of one kind bound to a host.
func sessionsOn(ctx context.Context, c client.Client, k kinds.Kind, host string) ([]types.NamespacedName, error) {
	var out []types.NamespacedName
	err := k.Each(ctx, c, func(o kinds.Session) { out = append(out, client.ObjectKeyFromObject(o)) }, client.MatchingFields{hostIndex: host})
	return out, err
}

// hostChanged passes what sessions depend on: that a host is there, its spec, its
// labels and its condition Ready.
type hostChanged struct{ predicate.Funcs }

// Update implements predicate.Predicate.
func (hostChanged) Update(e event.UpdateEvent) bool {
	was, ok1 := e.ObjectOld.(*api.SessionHost)
	is, ok2 := e.ObjectNew.(*api.SessionHost)
	return ok1 && ok2 && (was.Generation != is.Generation || !equality.Semantic.DeepEqual(was.Labels, is.Labels) ||
		!equality.Semantic.DeepEqual(was.Status.Conditions, is.Status.Conditions))
}
