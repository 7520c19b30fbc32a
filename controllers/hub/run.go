package hub

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

// Options of the controller.
type Options struct {
	// Version of the controller, for people.
	Version string
	// LeaderElection lets one of several replicas work.
	LeaderElection bool
	// MetricsAddress serves metrics when it is not "" or "0".
	MetricsAddress string
	// HealthAddress serves /healthz and /readyz when it is not "".
	HealthAddress string
	// Log is told what happens to sessions.
	Log logr.Logger
}

// Run runs the controller until ctx ends.
func Run(ctx context.Context, cfg *rest.Config, o Options) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{api.AddToScheme, corev1.AddToScheme, coordinationv1.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.UserAgent = -1, "theloop-controller/"+o.Version
	metrics := o.MetricsAddress
	if metrics == "" {
		metrics = "0"
	}
	mgr, err := ctrl.NewManager(cfg, ManagerOptions(ctrl.Options{
		Scheme: scheme, Logger: o.Log.V(1), HealthProbeBindAddress: o.HealthAddress,
		Metrics:                       metricsserver.Options{BindAddress: metrics},
		LeaderElection:                o.LeaderElection,
		LeaderElectionID:              "theloop-controller",
		LeaderElectionNamespace:       api.LeaseNamespace,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       new(3 * time.Second),
	}))
	if err != nil {
		return fmt.Errorf("setting up the controller: %w", err)
	}
	if err := Setup(ctx, mgr, o.Log); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
