package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/harness"
	"github.com/theloop-dev/the-loop/internal/harness/hook"
	"github.com/theloop-dev/the-loop/internal/session"
	"github.com/theloop-dev/the-loop/internal/tmux"
)

// Options of an agent.
type Options struct {
	// HostName is the name of this host's SessionHost: a DNS label of at most 63
	// characters. "" is the machine's host name.
	HostName string
	// StateDir is the agent's own directory, absolute. One agent at a time uses it.
	StateDir string
	// Shim is the pane process and hook binary, loop-shim. "" looks beside the running
	// executable, then on PATH.
	Shim string
	// TmuxBinary is the tmux to run; "" looks on PATH.
	TmuxBinary string
	// TmuxSocket is the server's socket: a name such as the-loop, below tmux's own
	// directory, or an absolute path of at most 107 bytes. "" is the-loop.
	TmuxSocket string
	// Version of the agent, for people.
	Version string
	// MetricsAddress serves metrics when it is not "" or "0".
	MetricsAddress string
	// HealthAddress serves /healthz and /readyz when it is not "".
	HealthAddress string
	Log           logr.Logger
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
	if !filepath.IsAbs(o.StateDir) {
		return fmt.Errorf("--state-dir %q must be an absolute path", o.StateDir)
	}
	if err := hook.CheckSocketPath(o.hookSocket()); err != nil {
		return fmt.Errorf("--state-dir is too long: %w", err)
	}
	if o.TmuxSocket == "" {
		o.TmuxSocket = "the-loop"
	}
	if !filepath.IsAbs(o.TmuxSocket) {
		path, err := tmux.DefaultSocket(o.TmuxSocket)
		if err != nil {
			return fmt.Errorf("--tmux-socket: %w", err)
		}
		o.TmuxSocket = path
	}
	return o.findShim()
}

func (o *Options) hookSocket() string { return filepath.Join(o.StateDir, "hooks.sock") }

func (o *Options) findShim() error {
	if o.Shim == "" {
		if self, err := os.Executable(); err == nil {
			o.Shim = filepath.Join(filepath.Dir(self), "loop-shim")
		}
		if _, err := os.Stat(o.Shim); err != nil {
			found, err := exec.LookPath("loop-shim")
			if err != nil {
				return errors.New("loop-shim was found neither beside this program nor on PATH: install it there, or name it with --shim")
			}
			o.Shim = found
		}
	}
	path, err := filepath.Abs(o.Shim)
	if err != nil {
		return err
	}
	if _, err := exec.LookPath(path); err != nil {
		return fmt.Errorf("--shim %s cannot be executed: %w", path, err)
	}
	o.Shim = path
	return nil
}

// Run runs an agent until ctx ends. Sessions go on when it does.
func Run(ctx context.Context, cfg *rest.Config, o Options) error {
	if err := o.Complete(); err != nil {
		return err
	}
	if err := os.MkdirAll(o.StateDir, 0o700); err != nil {
		return fmt.Errorf("the state directory cannot be made: %w; choose another with --state-dir", err)
	}
	release, err := lockDir(o.StateDir)
	if err != nil {
		return err
	}
	defer release()
	server, err := tmux.New(tmux.Config{Binary: o.TmuxBinary, Socket: o.TmuxSocket})
	if err != nil {
		return err
	}
	for _, w := range server.Warnings() {
		o.Log.Info("warning: " + w)
	}
	if _, err := server.Ensure(ctx); err != nil {
		return fmt.Errorf("starting the terminal server: %w", err)
	}
	return o.run(ctx, cfg, server)
}

func (o Options) run(ctx context.Context, cfg *rest.Config, server *tmux.Server) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{api.AddToScheme, corev1.AddToScheme, coordinationv1.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	cfg = rest.CopyConfig(cfg)
	// The server's own fairness limits the agent better than a client that starves.
	cfg.QPS, cfg.UserAgent = -1, "theloop-agent/"+o.Version
	mgr, err := ctrl.NewManager(cfg, ManagerOptions(o.HostName, ctrl.Options{
		Scheme: scheme, Logger: o.Log, HealthProbeBindAddress: o.HealthAddress,
		Metrics:                 metricsserver.Options{BindAddress: orOff(o.MetricsAddress)},
		GracefulShutdownTimeout: new(3 * time.Second),
	}))
	if err != nil {
		return fmt.Errorf("setting up the agent: %w", err)
	}
	host, err := o.host(server)
	if err != nil {
		return err
	}
	if err := host.CheckFree(ctx, mgr.GetAPIReader(), time.Now()); err != nil {
		return err
	}
	if err := Setup(ctx, mgr, o.engine(server), host); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func orOff(address string) string {
	if address == "" {
		return "0"
	}
	return address
}

func (o Options) engine(server *tmux.Server) *session.Engine {
	return &session.Engine{
		Terminal: server,
		Lister:   &session.Lister{Source: server, Log: o.Log.WithName("lister")},
		HostName: o.HostName, Dir: o.StateDir, Shim: o.Shim, HookSocket: o.hookSocket(),
		LookPath: exec.LookPath,
		Sweep: func(ctx context.Context, uid string) ([]int, error) {
			return tmux.EndProcesses(ctx, uid, 2*time.Second)
		},
		Clock: clock.RealClock{}, Backoff: session.NewBackoff(clock.RealClock{}),
	}
}

// host gathers the facts of this host.
func (o Options) host(server *tmux.Server) (Host, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Host{}, fmt.Errorf("reading the boot id: %w", err)
	}
	instance, err := o.instance()
	if err != nil {
		return Host{}, err
	}
	h := Host{Name: o.HostName, Identity: o.HostName + "/" + strings.TrimSpace(string(boot)) + "/" + instance}
	h.Facts = api.SessionHostStatus{
		Tmux:   api.HostTmux{Version: server.Version(), Socket: server.Socket()},
		BootID: strings.TrimSpace(string(boot)), AgentInstance: instance, AgentVersion: o.Version,
	}
	for _, name := range harness.Names() {
		a, err := harness.Get(name)
		if err != nil || a.Binary() == "" {
			continue
		}
		path, err := exec.LookPath(a.Binary())
		if err != nil {
			path = ""
		}
		h.Facts.Harnesses = append(h.Facts.Harnesses, api.HostHarness{Name: name, Path: path})
	}
	return h, nil
}

// instance is a name for this state directory that survives restarts, made once.
func (o Options) instance() (string, error) {
	path := filepath.Join(o.StateDir, "instance")
	if b, err := os.ReadFile(path); err == nil && len(b) > 0 {
		return strings.TrimSpace(string(b)), nil
	}
	id := uuid.NewString()
	if err := os.WriteFile(path, []byte(id+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("the state directory cannot be written: %w; choose another with --state-dir", err)
	}
	return id, nil
}
