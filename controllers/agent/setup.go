package agent

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/controllers/internal/apply"
	"github.com/theloop-dev/the-loop/controllers/internal/emit"
	"github.com/theloop-dev/the-loop/controllers/internal/kinds"
	"github.com/theloop-dev/the-loop/internal/session"
)

// pendingIndex finds the messages of one session whose outcome is not final.
const pendingIndex = "pendingFor"

func messageKey(kind, name string) string { return kind + "/" + name }

// defaultWorkers is how many sessions of one kind are worked on at a time. What takes time
// comes back as an event; only the sweep after an end may hold one for some seconds. The
// others wait for tmux and the API server, so there are more than processors.
const defaultWorkers = 8

// ManagerOptions are the options of the agent's manager: it sees the sessions and
// messages of its own host and no others, and keeps no secret.
func ManagerOptions(hostName string, base ctrl.Options) ctrl.Options {
	mine := cache.ByObject{Field: fields.OneTermEqualSelector("spec.hostName", hostName)}
	base.Cache.DefaultTransform = kinds.Trim
	base.Cache.ByObject = map[client.Object]cache.ByObject{
		&api.StandingSession{}: mine,
		&api.WorkItemSession{}: mine,
		&api.SessionMessage{}:  {Label: labels.SelectorFromSet(labels.Set{api.HostLabel: hostName})},
		&api.SessionHost{}:     {Field: fields.OneTermEqualSelector("metadata.name", hostName)},
	}
	base.Client.Cache = &client.CacheOptions{
		DisableFor: []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}},
	}
	// A write is seen by the reads after it: nothing is done twice because the cache is
	// behind.
	base.NewClient = func(cfg *rest.Config, o client.Options) (client.Client, error) {
		if o.Cache != nil {
			o.Cache.EnableReadYourWritesConsistency = ptr.To(true)
		}
		return client.New(cfg, o)
	}
	// What a queue holds at start must not wait for what changes later
	// (kubernetes-sigs/controller-runtime issue 3496).
	base.Controller.UsePriorityQueue = ptr.To(false)
	base.Controller.SkipNameValidation = ptr.To(true)
	return base
}

// setup adds the agent's reconcilers, its lister and its host's registration to a
// manager made with ManagerOptions. What happens to sessions is told to log.
func setup(ctx context.Context, mgr ctrl.Manager, engine *session.Engine, host Host, workers int, traces traces, log logr.Logger) error {
	index := func(o client.Object) []string {
		m := o.(*api.SessionMessage)
		if m.Status.Outcome.Final() {
			return nil
		}
		return []string{messageKey(m.Spec.SessionRef.Kind, m.Spec.SessionRef.Name)}
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &api.SessionMessage{}, pendingIndex, index); err != nil {
		return fmt.Errorf("indexing messages: %w", err)
	}
	hints := &hints{client: mgr.GetClient(), log: log}
	engine.Lister.Changed = hints.changed
	engine.KnownUID = hints.known
	engine.Configs.Host = hostEmitter{client: mgr.GetClient(), emitter: emit.New(mgr, "theloop-agent", log), name: host.Name}
	engine.Wake = func() { hints.changed(nil, nil, true) }
	engine.Configs.Changed = engine.Wake
	engine.Jobs = session.NewJobs(func(uid types.UID) { hints.changed([]string{string(uid)}, nil, false) })
	for _, k := range kinds.All {
		if err := setupKind(mgr, engine, host.Name, workers, k, traces, log, hints.channel(k.Name)); err != nil {
			return err
		}
	}
	if err := mgr.Add(engine.Lister); err != nil {
		return err
	}
	if err := mgr.Add(engine.Configs); err != nil {
		return err
	}
	if err := mgr.Add(engine.Jobs); err != nil {
		return err
	}
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		wait.UntilWithContext(ctx, engine.Reap, reapEvery)
		return nil
	})); err != nil {
		return err
	}
	if err := mgr.Add(&pokes{engine: engine, hints: hints}); err != nil {
		return err
	}
	status := &hostStatus{client: mgr.GetClient()}
	if err := setupModels(mgr, engine, status, hints, log); err != nil {
		return err
	}
	return mgr.Add(&registration{Host: host, manager: mgr, status: status})
}

func setupKind(mgr ctrl.Manager, engine *session.Engine, hostName string, workers int, k kinds.Kind, traces traces, log logr.Logger, hinted <-chan event.GenericEvent) error {
	r := &sessionReconciler{
		client: mgr.GetClient(), reader: mgr.GetAPIReader(), emitter: emit.New(mgr, "theloop-agent", log),
		engine: engine, hostName: hostName, fresh: k.New, log: log, traces: traces,
	}
	name := strings.ToLower(k.Name)
	err := ctrl.NewControllerManagedBy(mgr).Named("agent-"+name).
		For(k.New(), builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, deleting{}))).
		Watches(&api.SessionMessage{}, handler.EnqueueRequestsFromMapFunc(r.ofMessage(k.Name)), builder.WithPredicates(pending{})).
		Watches(&api.SessionHost{}, handler.EnqueueRequestsFromMapFunc(r.all(k)), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&api.SessionClass{}, handler.EnqueueRequestsFromMapFunc(r.all(k)), builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		WatchesRawSource(source.Channel(hinted, &handler.EnqueueRequestForObject{}, source.WithBufferSize[client.Object, reconcile.Request](1024))).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: apply.RateLimiter()}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the reconciler of %s: %w", k.Name, err)
	}
	return nil
}

// pending passes messages whose outcome is not final, and deletions.
type pending struct{ predicate.Funcs }

// Create implements predicate.Predicate.
func (pending) Create(e event.CreateEvent) bool { return unfinished(e.Object) }

// Update implements predicate.Predicate.
func (pending) Update(e event.UpdateEvent) bool {
	return unfinished(e.ObjectNew) && (e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
		!maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()))
}

func unfinished(o client.Object) bool {
	m, ok := o.(*api.SessionMessage)
	return ok && !m.Status.Outcome.Final()
}

// deleting passes updates that set the deletion timestamp or change the finalizers.
type deleting struct{ predicate.Funcs }

// Create implements predicate.Predicate.
func (deleting) Create(event.CreateEvent) bool { return false }

// Update implements predicate.Predicate.
func (deleting) Update(e event.UpdateEvent) bool {
	return (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil) ||
		len(e.ObjectOld.GetFinalizers()) != len(e.ObjectNew.GetFinalizers())
}

func (r *sessionReconciler) ofMessage(kind string) handler.MapFunc {
	return func(_ context.Context, o client.Object) []reconcile.Request {
		m, ok := o.(*api.SessionMessage)
		if !ok || m.Spec.SessionRef.Kind != kind {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.SessionRef.Name}}}
	}
}

// all are the sessions of this host: what their host or a class says may concern each.
func (r *sessionReconciler) all(k kinds.Kind) handler.MapFunc {
	return func(ctx context.Context, _ client.Object) []reconcile.Request {
		var out []reconcile.Request
		_ = k.Each(ctx, r.client, func(o kinds.Session) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
		})
		return out
	}
}

// pokes turns the pokes of hooks into hints.
type pokes struct {
	engine *session.Engine
	hints  *hints
}

// Start implements manager.Runnable.
func (p *pokes) Start(ctx context.Context) error {
	poked, err := p.engine.Pokes(ctx)
	if err != nil {
		return fmt.Errorf("listening for hooks: %w", err)
	}
	for uid := range poked {
		p.hints.changed([]string{uid}, nil, false)
	}
	return nil
}

// reapEvery is how often what was retained for a time is looked at.
const reapEvery = time.Minute

// hintTimeout bounds the giving of hints, which wait for room in a reconciler's queue, and the
// reading of what an event of the host is about.
const hintTimeout = 5 * time.Second
