package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-helpers/apimachinery/lease"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/controllers/internal/apply"
	"github.com/theloop-dev/the-loop/controllers/internal/emit"
	"github.com/theloop-dev/the-loop/internal/event"
)

// The lease is renewed four times in its duration, as the kubelet does.
const (
	leaseSeconds = 40
	leaseRenew   = 10 * time.Second
)

// Host is what an agent tells of its host.
type Host struct {
	// Name of the SessionHost, and of its Lease.
	Name string
	// Identity of the agent: the same after a restart on the same state directory, and
	// another one on another machine or directory.
	Identity string
	// Facts is the status that the agent reports.
	Facts api.SessionHostStatus
}

// CheckFree refuses a host name that another live agent holds. It is called before
// anything is done on the host. Whether the other one lives is seen by whether it renews
// its lease: the clocks of two hosts are not compared.
func (h Host) CheckFree(ctx context.Context, c client.Reader) error {
	first, err := h.lease(ctx, c)
	if err != nil || !h.others(first) {
		return err
	}
	tick := time.NewTicker(leaseRenew / 4)
	defer tick.Stop()
	for range 6 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		l, err := h.lease(ctx, c)
		if err != nil || !h.others(l) {
			return err
		}
		if !l.Spec.RenewTime.Equal(first.Spec.RenewTime) {
			return fmt.Errorf("the host name %s is held by another agent (%s), which renews its lease: two agents must not share a host name; stop the other one, or start this one under another --host-name",
				h.Name, ptr.Deref(l.Spec.HolderIdentity, ""))
		}
	}
	return nil
}

// lease reads the host's lease, nil when there is none.
func (h Host) lease(ctx context.Context, c client.Reader) (*coordinationv1.Lease, error) {
	l := &coordinationv1.Lease{}
	err := c.Get(ctx, client.ObjectKey{Namespace: api.LeaseNamespace, Name: h.Name}, l)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the lease of host %s: %w", h.Name, err)
	}
	return l, nil
}

// others reports whether somebody else holds the lease.
func (h Host) others(l *coordinationv1.Lease) bool {
	return l != nil && l.Spec.RenewTime != nil && ptr.Deref(l.Spec.HolderIdentity, "") != "" && *l.Spec.HolderIdentity != h.Identity
}

// registration keeps the SessionHost and its Lease.
type registration struct {
	Host
	manager ctrl.Manager
	status  *hostStatus
}

// hostStatus writes the agent's part of the SessionHost's status. It has two writers, and
// an apply gives up what it leaves out: each changes the whole, one at a time.
type hostStatus struct {
	mu     sync.Mutex
	client client.Client
}

// change reads the SessionHost by read and writes what change makes of its status, unless
// that is nothing.
func (h *hostStatus) change(ctx context.Context, read func() (*api.SessionHost, error), change func(*api.SessionHostStatus)) (*api.SessionHost, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	host, err := read()
	if err != nil {
		return nil, err
	}
	before := host.Status.DeepCopy()
	before.Conditions = nil
	after := before.DeepCopy()
	change(after)
	return host, apply.Status(ctx, h.client, apply.Agent, host, before, after, client.ForceOwnership)
}

// registerAgain is how often a SessionHost that somebody deleted is made anew.
const registerAgain = 30 * time.Second

// Start implements manager.Runnable. It ends with an error when another agent takes the
// lease: two agents must not work on one host.
func (r *registration) Start(ctx context.Context) error {
	host, err := r.register(ctx)
	if err != nil {
		return err
	}
	// A client of its own: a saturated one must not cost the lease.
	cfg := rest.CopyConfig(r.manager.GetConfig())
	cfg.UserAgent += "/lease"
	cs, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	log := r.manager.GetLogger().WithName("lease")
	failing := func() { log.Info("the lease of this host cannot be renewed; sessions are left as they are") }
	ctx, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	var uid atomic.Value
	uid.Store(host.UID)
	go wait.UntilWithContext(ctx, func(ctx context.Context) {
		if host, err := r.register(ctx); err == nil {
			uid.Store(host.UID)
		}
	}, registerAgain)
	taken := false
	lease.NewController(clock.RealClock{}, cs, r.Identity, leaseSeconds, failing, leaseRenew, r.Name, api.LeaseNamespace,
		func(l *coordinationv1.Lease) error {
			if taken && r.others(l) {
				err := fmt.Errorf("another agent (%s) took the host name %s: this one stops, its sessions go on", *l.Spec.HolderIdentity, r.Name)
				lost(err)
				return err
			}
			taken = true
			l.Spec.HolderIdentity = ptr.To(r.Identity)
			l.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: api.GroupVersion.String(), Kind: "SessionHost", Name: r.Name, UID: uid.Load().(types.UID),
			}}
			return nil
		}).Run(ctx)
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// register creates the SessionHost unless it exists, and reports the facts.
func (r *registration) register(ctx context.Context) (*api.SessionHost, error) {
	host, err := r.status.change(ctx, func() (*api.SessionHost, error) { return r.host(ctx) }, func(st *api.SessionHostStatus) {
		models, handled := st.Models, st.LastHandledModelsCheck
		*st = *r.Facts.DeepCopy()
		st.Models, st.LastHandledModelsCheck = models, handled
	})
	if err != nil {
		return nil, fmt.Errorf("registering SessionHost %s: %w", r.Name, err)
	}
	return host, nil
}

// host reads the SessionHost, and creates it unless it exists.
func (r *registration) host(ctx context.Context) (*api.SessionHost, error) {
	c := r.manager.GetClient()
	host := &api.SessionHost{}
	err := c.Get(ctx, client.ObjectKey{Name: r.Name}, host)
	if apierrors.IsNotFound(err) {
		host = &api.SessionHost{ObjectMeta: metav1.ObjectMeta{Name: r.Name, Labels: map[string]string{corev1.LabelHostname: r.Name}}}
		err = c.Create(ctx, host, apply.Agent)
	}
	if apierrors.IsAlreadyExists(err) {
		err = r.manager.GetAPIReader().Get(ctx, client.ObjectKey{Name: r.Name}, host)
	}
	return host, err
}

// hostEmitter tells of what is about the host itself.
type hostEmitter struct {
	client  client.Client
	emitter emit.Emitter
	name    string
}

// Emit implements session.HostEmitter.
func (h hostEmitter) Emit(e event.Event, message string, fields ...any) {
	h.emitter.Emit(h.host(), nil, e, message, fields...)
}

// host is the SessionHost, by its name alone where it is deleted or cannot be read in time,
// which is no reason to be silent: the client waits for the API server.
func (h hostEmitter) host() *api.SessionHost {
	ctx, cancel := context.WithTimeout(context.Background(), hintTimeout)
	defer cancel()
	host := &api.SessionHost{}
	if err := h.client.Get(ctx, client.ObjectKey{Name: h.name}, host); err != nil {
		return &api.SessionHost{ObjectMeta: metav1.ObjectMeta{Name: h.name}}
	}
	return host
}
