package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/pflag"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/session"
	"github.com/theloop-dev/the-loop/internal/webterminal"
)

// Options of an agent.
type Options struct {
	// HostOptions say how sessions are hosted. HostName "" is the machine's host name.
	session.HostOptions
	// Version of the agent, for people.
	Version string
	// MetricsAddress serves metrics when it is not "" or "0".
	MetricsAddress string
	// Workers is how many sessions of each kind are worked on, and so delivered to, at a
	// time. 0 is 8.
	Workers int
	// OTLPEndpoint is the URL of an OTLP receiver (HTTP) that is told of every delivery, ""
	// for none.
	OTLPEndpoint string
	// WebTerminal shows the host's sessions in a browser, where it is enabled.
	WebTerminal webterminal.Options
	// HealthAddress serves /healthz and /readyz when it is not "".
	HealthAddress string
}

// Flags defines the flags by which a person says how sessions are hosted, the same for the
// agent and for `the-loop up`, which has one.
func (o *Options) Flags(f *pflag.FlagSet) {
	f.StringVar(&o.HostName, "host-name", "", "name of this host's SessionHost (default: the machine's host name)")
	f.StringVar(&o.Shim, "shim", "", "path of loop-shim (default: beside this program, then on PATH)")
	f.StringVar(&o.TmuxBinary, "tmux", "", "tmux to run (default: on PATH)")
	f.StringVar(&o.TmuxSocket, "tmux-socket", "the-loop", "name of the tmux server's socket, or its absolute path")
	f.StringSliceVar(&o.PassEnv, "pass-env", nil, "further variables of this environment that harnesses get, by name")
	f.IntVar(&o.HistoryLimit, "history-limit", 20000, "scrollback of a terminal in lines, which is what bounds the terminal server's memory (docs/memory.md)")
	f.StringVar(&o.CgroupParent, "cgroup-parent", "", "directory of a delegated control group below which sessions get theirs (default: the agent's own; docs/memory.md)")
	f.IntVar(&o.Workers, "workers", defaultWorkers, "how many sessions of each kind are worked on, and so delivered to, at a time (1 to 1000)")
	o.WebTerminal.Flags(f)
}

// Complete fills in what was left out and refuses what cannot work, before anything
// is made.
func (o *Options) Complete() error {
	if o.HostName == "" {
		name, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("the machine has no host name: give one with --host-name: %w", err)
		}
		o.HostName = strings.ToLower(name)
	}
	if problems := validation.IsDNS1123Label(o.HostName); len(problems) > 0 {
		return fmt.Errorf("--host-name %q cannot name a host: %s", o.HostName, strings.Join(problems, "; "))
	}
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	if o.Workers < 1 || o.Workers > 1000 {
		return fmt.Errorf("--workers %d is not a number of sessions from 1 to 1000", o.Workers)
	}
	if err := o.WebTerminal.Complete(); err != nil {
		return err
	}
	return o.HostOptions.Complete()
}

// Run runs an agent until ctx ends, which is no error at any moment. Sessions go on when
// it does.
func Run(ctx context.Context, cfg *rest.Config, o Options) error {
	err := o.open(ctx, cfg)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (o Options) open(ctx context.Context, cfg *rest.Config) error {
	if err := o.Complete(); err != nil {
		return err
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return fmt.Errorf("the state directory cannot be made: %w; choose another with --state-dir", err)
	}
	lock, err := lockDir(ctx, o.Dir)
	if err != nil {
		return err
	}
	defer lock.Release()
	engine, err := session.Open(ctx, o.HostOptions)
	if err != nil {
		return err
	}
	return o.run(ctx, cfg, engine)
}

func (o Options) run(ctx context.Context, cfg *rest.Config, engine *session.Engine) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{api.AddToScheme, corev1.AddToScheme, coordinationv1.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	cfg = rest.CopyConfig(cfg)
	// The server's own fairness limits the agent better than a client that starves.
	cfg.QPS, cfg.UserAgent = -1, "theloop-agent/"+o.Version
	lossy(cfg)
	mgr, err := ctrl.NewManager(cfg, ManagerOptions(o.HostName, ctrl.Options{
		Scheme: scheme, Logger: o.Log.V(1), HealthProbeBindAddress: o.HealthAddress,
		Metrics:                 metricsserver.Options{BindAddress: orOff(o.MetricsAddress)},
		GracefulShutdownTimeout: new(3 * time.Second),
	}))
	if err != nil {
		return fmt.Errorf("setting up the agent: %w", err)
	}
	host, err := o.host(engine)
	if err != nil {
		return err
	}
	if err := host.CheckFree(ctx, mgr.GetAPIReader()); err != nil {
		return err
	}
	traces, closing, err := openTraces(ctx, o.OTLPEndpoint, o.Version, o.HostName, o.Log)
	if err != nil {
		return err
	}
	defer closing()
	if err := setup(ctx, mgr, engine, host, o.Workers, traces, o.Log); err != nil {
		return err
	}
	if err := o.setupWebTerminal(mgr, engine); err != nil {
		return err
	}
	counts := &census{client: mgr.GetClient(), server: engine.ServerMemory}
	if err := metrics.Registry.Register(counts); err != nil {
		return fmt.Errorf("registering the metrics: %w", err)
	}
	defer metrics.Registry.Unregister(counts)
	return mgr.Start(ctx)
}

func orOff(address string) string {
	if address == "" {
		return "0"
	}
	return address
}

// host gathers the facts of this host.
func (o Options) host(engine *session.Engine) (Host, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Host{}, fmt.Errorf("reading the boot id: %w", err)
	}
	boot := strings.TrimSpace(string(b))
	instance, err := o.instance()
	if err != nil {
		return Host{}, err
	}
	return Host{Name: o.HostName, Identity: o.HostName + "/" + boot + "/" + instance, Facts: api.SessionHostStatus{
		Tmux: engine.Tmux, Harnesses: engine.Harnesses(), BootID: boot, AgentInstance: instance, AgentVersion: o.Version,
	}}, nil
}

// instance is a name for this state directory that survives restarts, made once.
func (o Options) instance() (string, error) {
	path := filepath.Join(o.Dir, "instance")
	if b, err := os.ReadFile(path); err == nil && len(b) > 0 {
		return strings.TrimSpace(string(b)), nil
	}
	id := uuid.NewString()
	if err := os.WriteFile(path, []byte(id+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("the state directory cannot be written: %w; choose another with --state-dir", err)
	}
	return id, nil
}
