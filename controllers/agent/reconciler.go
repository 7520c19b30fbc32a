// Package agent holds the reconcilers of one build host: they make tmux match the
// session objects that are bound to the host. What is decided and done is in
// internal/session; here is what is read from and written to the cluster.
package agent

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/controllers/internal/emit"
	"github.com/theloop-dev/the-loop/controllers/internal/kinds"
	"github.com/theloop-dev/the-loop/internal/session"
)

// +kubebuilder:rbac:groups=theloop.dev,resources=workitemsessions;standingsessions,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=theloop.dev,resources=workitemsessions/status;standingsessions/status;sessionmessages/status;sessionhosts/status,verbs=patch
// +kubebuilder:rbac:groups=theloop.dev,resources=sessionmessages,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=theloop.dev,resources=sessionclasses,verbs=get;list;watch
// +kubebuilder:rbac:groups=theloop.dev,resources=sessionhosts,verbs=get;list;watch;create
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update,namespace=theloop-system
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// sessionReconciler serves one kind of session.
type sessionReconciler struct {
	client   client.Client
	reader   client.Reader
	emitter  emit.Emitter
	traces   traces
	engine   *session.Engine
	hostName string
	log      logr.Logger
	// fresh makes an empty object of the kind.
	fresh func() kinds.Session
}

// Reconcile takes one session as far as it goes now.
func (r *sessionReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	obj := r.fresh()
	if err := r.client.Get(ctx, req.NamespacedName, obj); err != nil {
		// Not in the cache is not deleted: it may be bound to another host now. Nothing is
		// torn down without a deletion timestamp.
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if obj.Placement().HostName != r.hostName || !controllerutil.ContainsFinalizer(obj, api.SessionFinalizer) {
		// Not bound yet, or let go: nothing may be started that could not be ended.
		return ctrl.Result{}, nil
	}
	subject, st, err := r.subject(ctx, obj)
	if err != nil {
		return ctrl.Result{}, err
	}
	wait, err := r.engine.Reconcile(ctx, subject)
	later, saveErr := r.save(ctx, subject, st)
	if err == nil {
		err = saveErr
	}
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: 50 * time.Millisecond}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: session.Soonest(wait, later)}, nil
}

// subject gathers what the engine needs to know.
func (r *sessionReconciler) subject(ctx context.Context, obj kinds.Session) (*session.Subject, *store, error) {
	st := &store{client: r.client, reader: r.reader, emitter: r.emitter, traces: r.traces, obj: obj, saved: agentPart(obj.HostedStatus())}
	s := &session.Subject{Object: obj, Store: st, Log: r.log.WithValues("session", strings.ToLower(obj.SessionKind())+"/"+obj.GetNamespace()+"/"+obj.GetName())}
	var err error
	if s.Class, s.ClassProblem, err = classNamed(ctx, r.client, obj.Placement().ClassName); err != nil {
		return nil, nil, err
	}
	s.AnsweredAt = r.engine.Answers()
	host := &api.SessionHost{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: r.hostName}, host); client.IgnoreNotFound(err) != nil {
		return nil, nil, err
	}
	s.Verdicts, s.Draining = host.Status.Models, host.Spec.Scheduling == api.HostSchedulingDraining
	var list api.SessionMessageList
	key := messageKey(obj.SessionKind(), obj.GetName())
	if err := r.client.List(ctx, &list, client.InNamespace(obj.GetNamespace()), client.MatchingFields{pendingIndex: key}); err != nil {
		return nil, nil, err
	}
	for i := range list.Items {
		m := list.Items[i].DeepCopy()
		if kinds.IsFor(m, obj) {
			s.Messages = append(s.Messages, m)
		}
	}
	if w, ok := obj.(*api.WorkItemSession); ok && w.Spec.PullRequest == nil && (w.Spec.State == api.SessionStateCleanedUp || w.DeletionTimestamp != nil) {
		if s.EndpointsLeft, err = r.endpointsLeft(ctx, w); err != nil {
			return nil, nil, err
		}
	}
	if w, ok := obj.(*api.WorkItemSession); ok && (w.Spec.State != api.SessionStateRunning || w.DeletionTimestamp != nil) {
		if s.SharesCheckout, err = r.sharesCheckout(ctx, w); err != nil {
			return nil, nil, err
		}
	}
	return s, st, nil
}

// sharesCheckout reports whether another object of this host that is to run serves the
// same work item: a checkout belongs to the item and is not taken from under it.
func (r *sessionReconciler) sharesCheckout(ctx context.Context, w *api.WorkItemSession) (bool, error) {
	var all api.WorkItemSessionList
	if err := r.client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return false, err
	}
	ref := session.RefOf(w)
	return slices.ContainsFunc(all.Items, func(o api.WorkItemSession) bool {
		return o.UID != w.UID && o.DeletionTimestamp == nil && o.Spec.State == api.SessionStateRunning && session.RefOf(&o) == ref
	}), nil
}

// endpointsLeft names the sessions of the work item's pull requests that still have
// something on their hosts, with what is in the way. They may be on other hosts, so the
// API server is asked.
func (r *sessionReconciler) endpointsLeft(ctx context.Context, parent *api.WorkItemSession) (string, error) {
	if parent.DeletionTimestamp == nil && session.CleanedUp(&parent.Status.HostedSessionStatus) {
		return "", nil
	}
	var children api.WorkItemSessionList
	if err := r.reader.List(ctx, &children, client.InNamespace(parent.Namespace), client.MatchingFields{"spec.parentName": parent.Name}); err != nil {
		return "", err
	}
	var left []string
	for i := range children.Items {
		c := &children.Items[i]
		running := meta.FindStatusCondition(c.Status.Conditions, api.ConditionSessionRunning)
		if parent.DeletionTimestamp == nil && (c.Spec.HostName == "" || running != nil && running.Reason == api.ReasonCleanedUp) {
			continue
		}
		if running == nil {
			left = append(left, c.Name)
			continue
		}
		left = append(left, c.Name+" ("+running.Message+")")
	}
	return strings.Join(left, ", "), nil
}

// classNamed finds the class that a session names, or says why there is none.
func classNamed(ctx context.Context, reader client.Reader, name string) (*api.SessionClass, string, error) {
	if name != "" {
		c := &api.SessionClass{}
		err := reader.Get(ctx, client.ObjectKey{Name: name}, c)
		if apierrors.IsNotFound(err) {
			return nil, "SessionClass " + name + " does not exist: create it, or name another in spec.className (kubectl get sclass)", nil
		}
		return c, "", err
	}
	var list api.SessionClassList
	if err := reader.List(ctx, &list, client.MatchingLabels{api.DefaultClassLabel: "true"}); err != nil {
		return nil, "", err
	}
	switch len(list.Items) {
	case 0:
		return nil, "spec.className is empty and no SessionClass has the label " + api.DefaultClassLabel + "=true: set one of the two", nil
	case 1:
		return &list.Items[0], "", nil
	}
	return nil, "spec.className is empty and more than one SessionClass has the label " + api.DefaultClassLabel + "=true: leave it on one", nil
}

// save writes the status, unless nothing changed or only what changes all the time
// did so a moment ago; it then says when to come back. What is on record is told.
func (r *sessionReconciler) save(ctx context.Context, s *session.Subject, st *store) (time.Duration, error) {
	if !controllerutil.ContainsFinalizer(st.obj, api.SessionFinalizer) {
		s.Recorded()
		return 0, nil
	}
	part := agentPart(st.obj.HostedStatus())
	if wait := r.engine.KeepBack(st.obj.GetUID(), part, st.saved); wait > 0 {
		return wait, nil
	}
	if err := st.SaveSession(ctx); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	s.Recorded()
	return 0, nil
}
