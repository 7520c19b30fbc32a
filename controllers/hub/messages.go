package hub

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"k8s.io/utils/keymutex"
	"k8s.io/utils/ptr"
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
	"github.com/theloop-dev/the-loop/controllers/internal/emit"
	"github.com/theloop-dev/the-loop/controllers/internal/kinds"
	catalogue "github.com/theloop-dev/the-loop/internal/event"
)

// sessionWait is how long a message may wait for a session that does not exist yet,
// such as one applied from the same file.
const sessionWait = 60 * time.Second

// messageReconciler hands messages to the host of their session, ends those that have
// no session, and removes finished ones when their time is over.
type messageReconciler struct {
	client  client.Client
	reader  client.Reader
	emitter emit.Emitter
	clock   clock.PassiveClock
	// order keeps the messages of one session from being handed over side by side.
	order keymutex.KeyMutex
}

func setupMessages(mgr ctrl.Manager, emitter emit.Emitter) error {
	r := &messageReconciler{emitter: emitter, client: mgr.GetClient(), reader: mgr.GetAPIReader(), clock: clock.RealClock{}, order: keymutex.NewHashed(16 * workers)}
	b := ctrl.NewControllerManagedBy(mgr).Named("hub-sessionmessage").For(&api.SessionMessage{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: apply.RateLimiter()})
	for _, k := range kinds.All {
		b = b.Watches(k.New(), handler.EnqueueRequestsFromMapFunc(r.ofSession(k.Name)), builder.WithPredicates(boundOrGone{}))
	}
	return b.Complete(r)
}

// boundOrGone passes what messages wait for: that a session gets its host, or is gone.
type boundOrGone struct{ predicate.Funcs }

// Update implements predicate.Predicate.
func (boundOrGone) Update(e event.UpdateEvent) bool {
	was, is := e.ObjectOld.(kinds.Session), e.ObjectNew.(kinds.Session)
	return was.Placement().HostName != is.Placement().HostName
}

func (r *messageReconciler) ofSession(kind string) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		var list api.SessionMessageList
		err := r.client.List(ctx, &list, client.InNamespace(o.GetNamespace()), client.MatchingFields{sessionIndex: kind + "/" + o.GetName()}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil
		}
		var out []reconcile.Request
		for i := range list.Items {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
		return out
	}
}

// Reconcile looks after one message.
func (r *messageReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	m := &api.SessionMessage{}
	if err := r.client.Get(ctx, req.NamespacedName, m); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var wait time.Duration
	var err error
	switch {
	case m.DeletionTimestamp != nil:
	case m.Status.Outcome.Final():
		wait, err = r.expire(ctx, m)
	default:
		wait, err = r.route(ctx, m)
	}
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: 50 * time.Millisecond}, nil
	}
	return ctrl.Result{RequeueAfter: wait}, client.IgnoreNotFound(err)
}

// route hands a message to the host of its session, by a label by which that host's agent
// sees it. Those that were created before it go first.
func (r *messageReconciler) route(ctx context.Context, m *api.SessionMessage) (time.Duration, error) {
	obj, err := r.session(ctx, m)
	if err != nil {
		return 0, err
	}
	if obj == nil {
		if left := sessionWait - r.clock.Since(m.CreationTimestamp.Time); left > 0 && m.Status.SessionUID == "" && len(m.OwnerReferences) == 0 {
			return left, nil
		}
		return 0, r.refuse(ctx, m)
	}
	switch {
	case handed(m, obj):
		return 0, nil
	case obj.GetDeletionTimestamp() != nil:
		return 0, r.refuse(ctx, m)
	case obj.Placement().HostName == "":
		return 0, r.mark(ctx, m)
	}
	key := m.Namespace + "/" + m.Spec.SessionRef.Kind + "/" + m.Spec.SessionRef.Name
	r.order.LockKey(key)
	defer func() { _ = r.order.UnlockKey(key) }()
	waiting, err := r.waiting(ctx, m, obj)
	if err != nil {
		return 0, err
	}
	for _, w := range waiting[:min(len(waiting), handAtOnce)] {
		if err := r.hand(ctx, w, obj); client.IgnoreNotFound(err) != nil {
			return 0, err
		}
	}
	if len(waiting) > handAtOnce {
		return time.Millisecond, nil // others' turn
	}
	return 0, nil
}

// handAtOnce bounds how long one busy session keeps the others waiting.
const handAtOnce = 50

// mark notes the version with which a message was created that has to wait for a host: what
// is changed of it meanwhile does not cost its place.
func (r *messageReconciler) mark(ctx context.Context, m *api.SessionMessage) error {
	if createdVersion(m) != m.ResourceVersion {
		return nil
	}
	before := m.DeepCopy()
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, api.CreatedVersionAnnotation, m.ResourceVersion)
	return r.client.Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), apply.Hub)
}

// createdVersion is the version with which a message was created, or the present one of a
// message that nobody has marked.
func createdVersion(m *api.SessionMessage) string {
	if v := m.Annotations[api.CreatedVersionAnnotation]; v != "" {
		return v
	}
	return m.ResourceVersion
}

// handed reports that a message is with its session's host.
func handed(m *api.SessionMessage, obj kinds.Session) bool {
	return owned(m, obj) && m.Labels[api.HostLabel] == obj.Placement().HostName
}

func owned(m *api.SessionMessage, obj kinds.Session) bool {
	return len(m.OwnerReferences) == 1 && m.OwnerReferences[0].UID == obj.GetUID()
}

// waiting are the messages of a session up to and with m that are still to be handed over,
// in the order in which they were created: the agent takes them in the order in which they
// come, and a creation timestamp tells seconds apart and no less.
func (r *messageReconciler) waiting(ctx context.Context, m *api.SessionMessage, obj kinds.Session) ([]*api.SessionMessage, error) {
	var list api.SessionMessageList
	err := r.client.List(ctx, &list, client.InNamespace(m.Namespace), client.MatchingFields{sessionIndex: m.Spec.SessionRef.Kind + "/" + m.Spec.SessionRef.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	var out []*api.SessionMessage
	for i := range list.Items {
		o := &list.Items[i]
		if o.DeletionTimestamp == nil && !o.Status.Outcome.Final() && kinds.IsFor(o, obj) && !handed(o, obj) && byVersion(o, m) <= 0 {
			out = append(out, o.DeepCopy())
		}
	}
	slices.SortFunc(out, byVersion)
	return out, nil
}

// byVersion orders messages by their creation.
func byVersion(a, b *api.SessionMessage) int {
	n, err := resourceversion.CompareResourceVersion(createdVersion(a), createdVersion(b))
	if err != nil {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	}
	return n
}

// hand labels a message with the host of its session.
func (r *messageReconciler) hand(ctx context.Context, m *api.SessionMessage, obj kinds.Session) error {
	before := m.DeepCopy()
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, api.CreatedVersionAnnotation, createdVersion(m))
	metav1.SetMetaDataLabel(&m.ObjectMeta, api.HostLabel, obj.Placement().HostName)
	m.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: api.GroupVersion.String(), Kind: obj.SessionKind(), Name: obj.GetName(), UID: obj.GetUID(),
	}}
	return r.client.Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), apply.Hub)
}

// session finds a message's session; nil when there is none. A session of the same
// name with another UID than the message asks for, or than took it, is not it.
func (r *messageReconciler) session(ctx context.Context, m *api.SessionMessage) (kinds.Session, error) {
	for _, k := range kinds.All {
		if k.Name != m.Spec.SessionRef.Kind {
			continue
		}
		obj := k.New()
		err := r.client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.SessionRef.Name}, obj)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if !kinds.IsFor(m, obj) {
			return nil, nil
		}
		return obj, nil
	}
	return nil, nil
}

// refuse ends a message that has no session. It looks again past the cache: the agent
// may have had the last word. Nobody else writes its status any more.
func (r *messageReconciler) refuse(ctx context.Context, m *api.SessionMessage) error {
	live := &api.SessionMessage{}
	if err := r.reader.Get(ctx, client.ObjectKeyFromObject(m), live); err != nil {
		return err
	}
	if live.UID != m.UID || live.Status.Outcome.Final() {
		return nil
	}
	now := r.clock.Now()
	outcome, reason := api.OutcomeRefused, api.ReasonSessionNotFound
	message := "there is no " + m.Spec.SessionRef.Kind + " " + m.Namespace + "/" + m.Spec.SessionRef.Name + " that this message is for"
	if live.Status.DeliveredTime != nil || live.Labels[api.HostLabel] != "" {
		// What a host had, and never said the end of, may have been typed there.
		outcome, reason = api.OutcomeUnknown, api.ReasonOutcomeUnknown
		message = "the text was typed, and the session was gone before its harness said that it took it"
	}
	st := messageStatus{Outcome: outcome, Reason: reason, FinishedTime: new(metav1.NewMicroTime(now))}
	meta.SetStatusCondition(&st.Conditions, metav1.Condition{
		Type: api.ConditionFailed, Status: metav1.ConditionTrue, Reason: reason, ObservedGeneration: m.Generation,
		LastTransitionTime: metav1.NewTime(now), Message: message,
	})
	if err := apply.Status(ctx, r.client, apply.Hub, live, nil, st, client.ForceOwnership); err != nil {
		return err
	}
	r.refused(live, outcome, reason, message)
	return nil
}

// refused tells what became of a message that has no session.
func (r *messageReconciler) refused(m *api.SessionMessage, outcome api.MessageOutcome, reason, why string) {
	src := m.Spec.Source
	if outcome == api.OutcomeUnknown {
		r.emitter.Emit(m, nil, catalogue.DispatchFailed, why, "source", src.Type, "actor", src.Actor, "reason", reason, "error", why, "will_retry", false)
		return
	}
	r.emitter.Emit(m, nil, catalogue.DispatchDropped, why, "source", src.Type, "actor", src.Actor, "reason", reason)
}

// messageStatus is the part of a message's status that the hub writes.
type messageStatus struct {
	Outcome      api.MessageOutcome `json:"outcome,omitempty"`
	Reason       string             `json:"reason,omitempty"`
	FinishedTime *metav1.MicroTime  `json:"finishedTime,omitempty"`
	Conditions   []metav1.Condition `json:"conditions,omitempty"`
}

// expire removes a finished message when its time is over. It looks again past the
// cache, and deletes what it has seen and nothing newer.
func (r *messageReconciler) expire(ctx context.Context, m *api.SessionMessage) (time.Duration, error) {
	left, ok := r.left(m)
	if !ok || left > 0 {
		return left, nil
	}
	live := &api.SessionMessage{}
	if err := r.reader.Get(ctx, client.ObjectKeyFromObject(m), live); err != nil {
		return 0, err
	}
	if left, ok = r.left(live); !ok || left > 0 || live.UID != m.UID {
		return left, nil
	}
	return 0, r.client.Delete(ctx, live, client.Preconditions{UID: ptr.To(live.UID), ResourceVersion: ptr.To(live.ResourceVersion)})
}

// left is how long a finished message is still kept; false when it is not finished.
func (r *messageReconciler) left(m *api.SessionMessage) (time.Duration, bool) {
	if !m.Status.Outcome.Final() || m.Status.FinishedTime == nil {
		return 0, false
	}
	ttl := time.Duration(ptr.Deref(m.Spec.TTLSecondsAfterFinished, 345600)) * time.Second
	return max(0, m.Status.FinishedTime.Add(ttl).Sub(r.clock.Now())), true
}
