package agent

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/controllers/internal/apply"
	"github.com/theloop-dev/the-loop/controllers/internal/emit"
	"github.com/theloop-dev/the-loop/controllers/internal/kinds"
	"github.com/theloop-dev/the-loop/internal/event"
	"github.com/theloop-dev/the-loop/internal/session"
)

// store is the cluster as one session's engine sees it.
type store struct {
	client client.Client
	// reader reads past every cache.
	reader  client.Reader
	emitter emit.Emitter
	traces  traces
	obj     kinds.Session
	// saved is the agent's part of the status as it is stored.
	saved *api.HostedSessionStatus
}

// agentConditions are the condition types of a session that the agent owns.
var agentConditions = []string{api.ConditionWorkspaceReady, api.ConditionSessionRunning, api.ConditionAcceptingInput, api.ConditionResumed, api.ConditionChoiceApplied}

// agentPart is the part of a status that the agent owns.
func agentPart(st *api.HostedSessionStatus) *api.HostedSessionStatus {
	part := st.DeepCopy()
	part.ObservedGeneration = 0
	part.Conditions = apply.Owned(st.Conditions, agentConditions...)
	return part
}

// SaveSession implements session.Store. The object given to the engine keeps its own
// status, so that the engine goes on from what it wrote.
func (s *store) SaveSession(ctx context.Context) error {
	part := agentPart(s.obj.HostedStatus())
	answer := s.obj.DeepCopyObject().(kinds.Session)
	if err := apply.Status(ctx, s.client, apply.Agent, answer, s.saved, part, client.ForceOwnership); err != nil {
		return err
	}
	s.saved = part
	return nil
}

// SaveMessage implements session.Store.
func (s *store) SaveMessage(ctx context.Context, m *api.SessionMessage) error {
	status := m.Status.DeepCopy()
	answer := m.DeepCopy()
	err := apply.Status(ctx, s.client, apply.Agent, answer, nil, status)
	if err == nil && status.Outcome.Final() {
		count(m)
		s.traces.delivery(m)
	}
	// A message that was deleted has no status to write.
	return client.IgnoreNotFound(err)
}

// LiveMessage implements session.Store.
func (s *store) LiveMessage(ctx context.Context, m *api.SessionMessage) (*api.SessionMessage, error) {
	live := &api.SessionMessage{}
	err := s.reader.Get(ctx, client.ObjectKeyFromObject(m), live)
	if apierrors.IsNotFound(err) || err == nil && live.UID != m.UID {
		return nil, nil
	}
	return live, err
}

// EnsureMessage implements session.Store.
func (s *store) EnsureMessage(ctx context.Context, m *api.SessionMessage) error {
	if err := s.client.Create(ctx, m, apply.Agent); !apierrors.IsAlreadyExists(err) {
		return err
	}
	// The cache may not have it yet, where the answer to its creation was lost.
	return s.reader.Get(ctx, client.ObjectKeyFromObject(m), m)
}

// ConversationHolder implements session.Store.
func (s *store) ConversationHolder(ctx context.Context, conversation string) (holder string, err error) {
	for _, k := range kinds.All {
		err := k.Each(ctx, s.client, func(o kinds.Session) {
			if holder == "" && session.Holds(o, s.obj, conversation) {
				holder = fmt.Sprintf("%s %s/%s", o.SessionKind(), o.GetNamespace(), o.GetName())
			}
		})
		if err != nil {
			return "", err
		}
	}
	return holder, nil
}

// ConfigMapKey implements session.Store.
func (s *store) ConfigMapKey(ctx context.Context, ref api.NamespacedConfigMapKey) (string, error) {
	cm := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	if err := s.reader.Get(ctx, key, cm); err != nil {
		return "", fmt.Errorf("ConfigMap %s: %w", key, err)
	}
	text, ok := cm.Data[ref.Key]
	if !ok {
		return "", fmt.Errorf("ConfigMap %s has no key %q in its data", key, ref.Key)
	}
	return text, nil
}

// Release implements session.Store: the finalizer is removed, when nothing of the
// session is left on this host that must not be left.
func (s *store) Release(ctx context.Context) error {
	before := s.obj.DeepCopyObject().(client.Object)
	if !controllerutil.RemoveFinalizer(s.obj, api.SessionFinalizer) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	answer := s.obj.DeepCopyObject().(client.Object)
	return s.client.Patch(ctx, answer, patch, apply.Agent)
}

// Emit implements session.Store.
func (s *store) Emit(e event.Event, message string, fields ...any) {
	s.emitter.Emit(s.obj, nil, e, message, fields...)
}

// EmitAbout implements session.Store.
func (s *store) EmitAbout(m *api.SessionMessage, e event.Event, message string, fields ...any) {
	s.emitter.Emit(s.obj, m, e, message, fields...)
}
