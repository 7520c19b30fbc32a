package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/controllers/internal/apply"
	"github.com/theloop-dev/the-loop/controllers/internal/kinds"
	"github.com/theloop-dev/the-loop/internal/session"
)

// modelReconciler asks the harnesses of this host, one call at a time, about the models
// and efforts of the classes that its sessions use. It is a reconciler of its own: a call
// takes up to three minutes, for which no session and no delivery waits.
type modelReconciler struct {
	client client.Client
	engine *session.Engine
	status *hostStatus
	// verdict is called when a session may be started otherwise now.
	verdict func()
	log     logr.Logger

	// tried is when each was last asked; token is the newest request to ask all of them
	// anew, which came at anew.
	tried map[session.VerdictKey]time.Time
	token string
	anew  time.Time
}

func setupModels(mgr ctrl.Manager, engine *session.Engine, status *hostStatus, hints *hints, log logr.Logger) error {
	r := &modelReconciler{
		client: mgr.GetClient(), engine: engine, status: status, log: log, tried: map[session.VerdictKey]time.Time{},
		verdict: func() { hints.changed(nil, nil, true) },
	}
	toHost := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: engine.HostName}}}
	})
	again := make(chan event.GenericEvent, 1)
	engine.AskAgain = func() {
		select {
		case again <- event.GenericEvent{Object: &api.SessionHost{}}:
		default: // one is on its way
		}
	}
	spec := builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))
	b := ctrl.NewControllerManagedBy(mgr).Named("agent-models").
		For(&api.SessionHost{}, builder.WithPredicates(predicate.AnnotationChangedPredicate{})).
		Watches(&api.SessionClass{}, toHost, spec).
		WatchesRawSource(source.Channel(again, toHost))
	for _, k := range kinds.All {
		b = b.Watches(k.New(), toHost, spec)
	}
	if err := b.WithOptions(controller.Options{MaxConcurrentReconciles: 1, RateLimiter: apply.RateLimiter()}).Complete(r); err != nil {
		return fmt.Errorf("setting up the questions about models: %w", err)
	}
	return nil
}

// Reconcile asks the first question that is due.
func (r *modelReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	host := &api.SessionHost{}
	if err := r.client.Get(ctx, req.NamespacedName, host); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	token := session.Token(host.Annotations[api.ModelsCheckRequestedAnnotation])
	switch requested := token != "" && token != host.Status.LastHandledModelsCheck; {
	case !requested:
		r.token, r.anew = token, time.Time{}
	case r.anew.IsZero() || r.token != token:
		r.token, r.anew = token, r.engine.Clock.Now()
	}
	wanted, err := r.wanted(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	v := session.Verdicts{Known: host.Status.Models, Wanted: wanted, Anew: r.anew, Tried: r.tried, Again: r.engine.AskedAgain()}
	due, wait := v.Next(r.engine.Clock.Now())
	if due == nil {
		return ctrl.Result{RequeueAfter: wait}, client.IgnoreNotFound(r.learn(ctx, req, v, nil))
	}
	answer, err := r.engine.Ask(ctx, *due)
	if err != nil {
		return ctrl.Result{}, err
	}
	key, at := session.KeyOf(answer), r.engine.Clock.Now()
	r.tried[key] = at
	if err := r.learn(ctx, req, v, &answer); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if r.engine.Answered(key, at) {
		r.verdict()
	}
	return ctrl.Result{RequeueAfter: time.Millisecond}, nil
}

// wanted are the questions about the classes that sessions of this host use.
func (r *modelReconciler) wanted(ctx context.Context) (out []session.Probe, err error) {
	names := map[string]bool{}
	for _, k := range kinds.All {
		err := k.Each(ctx, r.client, func(o kinds.Session) {
			if o.GetDeletionTimestamp() == nil {
				names[o.Placement().ClassName] = true
			}
		})
		if err != nil {
			return nil, err
		}
	}
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		class, _, err := classNamed(ctx, r.client, name)
		if err != nil {
			return nil, err
		}
		if class == nil || seen[class.Name] {
			continue
		}
		seen[class.Name] = true
		out = append(out, r.engine.Probes(class)...)
	}
	return out, nil
}

// learn writes an answer down. Without one, all has been asked that was to be.
func (r *modelReconciler) learn(ctx context.Context, req ctrl.Request, v session.Verdicts, answer *api.ModelVerdict) error {
	changed := false
	read := func() (*api.SessionHost, error) {
		host := &api.SessionHost{}
		return host, r.client.Get(ctx, req.NamespacedName, host)
	}
	_, err := r.status.change(ctx, read, func(st *api.SessionHostStatus) {
		before := session.Verdicts{Known: st.Models}
		v.Known = st.Models
		st.Models = v.Learn(answer, r.engine.Clock.Now())
		if answer == nil && !r.anew.IsZero() {
			st.LastHandledModelsCheck = r.token
		}
		changed = answer != nil && session.Verdicts{Known: st.Models}.Verdict(session.KeyOf(*answer)) != before.Verdict(session.KeyOf(*answer))
	})
	if err != nil {
		return err
	}
	if answer != nil {
		r.log.Info("a harness was asked", "class", answer.Class, "kind", answer.Kind, "name", answer.Name, "verdict", answer.Verdict, "message", answer.Message)
	}
	if changed {
		r.verdict()
	}
	return nil
}
