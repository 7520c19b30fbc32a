package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/controllers/agent"
	"github.com/theloop-dev/the-loop/controllers/hub"
	"github.com/theloop-dev/the-loop/internal/cliconfig"
	"github.com/theloop-dev/the-loop/internal/devcluster"
)

// stopWithin bounds how long a stop takes: Ctrl-C ends everything but the sessions.
const stopWithin = 5 * time.Second

// partsWithin bounds what of it controller and agent take; the rest is the control
// plane's.
const partsWithin = 3 * time.Second

// upOptions are the flags of `up`.
type upOptions struct {
	stateDir        string
	controlPlaneDir string
	kubeconfig      string
	config          string
	sample          bool
	verbose         bool
	requestLog      bool
	readyWithin     time.Duration
	agent           agent.Options

	// file is what was read of config, given which flags a person set.
	file  *cliconfig.Config
	given func(flag string) bool
}

func upCommand() *cobra.Command {
	o := &upOptions{}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run everything on this machine: control plane, controller and agent",
		Long: `Run everything on this machine, in the foreground: a Kubernetes API server with its
etcd, the controller and the agent, under one state directory. Ctrl-C stops it and
leaves the sessions running; the next "the-loop up" takes them over as they are.
"the-loop down" ends everything, sessions included.

Standing sessions that a configuration file declares are applied, and started where
standingSessions.enabled and the entry's autoStart say so. A file that is wrong is
refused before anything is started, with exit code 2. A session that does not run and
whose spec.autoStart is false stays down.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	o.flags(cmd.Flags())
	return cmd
}

func (o *upOptions) flags(f *pflag.FlagSet) {
	o.given = f.Changed
	f.StringVar(&o.stateDir, "state-dir", defaultState(), "directory that keeps everything")
	f.StringVar(&o.controlPlaneDir, "control-plane-dir", "", "directory with kube-apiserver and etcd (make controlplane prints it)")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "work with this existing cluster instead of the embedded control plane")
	f.StringVarP(&o.config, "config", "c", "", "configuration file that declares standing sessions (default: $THE_LOOP_CLI_CONFIG, ./.the-loop/cli-config.yaml, ~/.the-loop/cli-config.yaml)")
	f.BoolVar(&o.sample, "sample", true, "create the sample StandingSession where it does not exist")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "log what is looked at, too")
	f.BoolVar(&o.requestLog, "request-log", false, "log every request to the embedded API server in the state directory")
	f.DurationVar(&o.readyWithin, "ready-within", 2*time.Minute, "how long the sample may take to be ready")
	o.agent.Flags(f)
}

func (o *upOptions) run(ctx context.Context, out io.Writer) (err error) {
	log := logger(o.verbose)
	if err := o.readConfig(log); err != nil {
		return &exitError{code: exitRefused, error: err}
	}
	if err := o.webTerminal(); err != nil {
		return &exitError{code: exitRefused, error: err}
	}
	st, err := openState(o.stateDir)
	if err != nil {
		return err
	}
	o.agent.Dir, o.agent.Version, o.agent.Log = st.agent(), version, log.WithName("agent")
	if err := o.keepHostName(st); err != nil {
		return err
	}
	lock, err := st.take(ctx)
	if err != nil {
		return err
	}
	defer lock.Release()

	// Written before anything is started: who reads it finds this process.
	record := upRecord{PID: os.Getpid(), TmuxSocket: o.agent.TmuxSocket, TmuxBinary: o.agent.TmuxBinary, Kubeconfig: o.kubeconfigPath(st)}
	if err := st.write(record); err != nil {
		return err
	}
	c, err := o.connect(ctx, st, out)
	if err != nil {
		return ignoreStop(ctx, err)
	}
	defer func() { err = errors.Join(err, c.stop(out)) }()
	return o.serve(ctx, c, log, out)
}

// readConfig reads the configuration file, before anything is started.
func (o *upOptions) readConfig(log logr.Logger) (err error) {
	if o.file, err = cliconfig.Load(o.config); err != nil {
		return err
	}
	if o.file.File == "" {
		return nil
	}
	set(&o.agent.Workers, o.file.Routing.MaxConcurrentDispatches, o.given("workers"))
	log.Info("configuration file read", "file", o.file.File, "namedBy", o.file.NamedBy)
	for _, key := range o.file.Ignored {
		log.Info("nothing acts upon this key of the configuration file yet", "key", key.String())
	}
	return nil
}

// keepHostName gives the host the name that it had before: sessions are bound to it,
// and a machine may get another one.
func (o *upOptions) keepHostName(st state) error {
	if o.agent.HostName == "" {
		if b, err := os.ReadFile(st.hostName()); err == nil {
			o.agent.HostName = strings.TrimSpace(string(b))
		}
	}
	if err := o.agent.Complete(); err != nil {
		return err
	}
	if err := os.WriteFile(st.hostName(), []byte(o.agent.HostName+"\n"), 0o600); err != nil {
		return fmt.Errorf("the state directory cannot be written: %w; choose another with --state-dir", err)
	}
	return nil
}

// kubeconfigPath is the kubeconfig of the cluster that is worked with.
func (o *upOptions) kubeconfigPath(st state) string {
	if o.kubeconfig == "" {
		return filepath.Join(st.cluster(), "kubeconfig")
	}
	if abs, err := filepath.Abs(o.kubeconfig); err == nil {
		return abs
	}
	return o.kubeconfig
}

// logger writes a readable log to standard error.
func logger(verbose bool) logr.Logger {
	level := zapcore.InfoLevel
	if verbose {
		level = zapcore.DebugLevel
	}
	log := zap.New(zap.ConsoleEncoder(func(c *zapcore.EncoderConfig) {
		c.EncodeTime = zapcore.TimeEncoderOfLayout(time.TimeOnly)
	}), zap.Level(level), zap.StacktraceLevel(zapcore.PanicLevel))
	ctrl.SetLogger(log)
	klog.SetLogger(log.WithName("client"))
	return log
}

// connection is the cluster that `up` works with, and the identities of its parts.
type connection struct {
	admin, hub, agent *rest.Config
	kubeconfig        string
	cluster           *devcluster.Cluster
}

// done ends when the embedded control plane ends by itself; it never does for an
// existing cluster.
func (c *connection) done() <-chan struct{} {
	if c.cluster == nil {
		return nil
	}
	return c.cluster.Done()
}

func (c *connection) stop(out io.Writer) error {
	if c.cluster == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin-partsWithin)
	defer cancel()
	fmt.Fprintln(out, "Stopping the control plane; sessions stay as they are.")
	return c.cluster.Stop(ctx)
}

// connect starts the embedded control plane, or finds the existing cluster.
func (o *upOptions) connect(ctx context.Context, st state, out io.Writer) (*connection, error) {
	if o.kubeconfig != "" {
		path := o.kubeconfigPath(st)
		cfg, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			return nil, fmt.Errorf("--kubeconfig: %w", err)
		}
		// Each part is what the bindings and the admission policies know it as.
		hub, agent := rest.CopyConfig(cfg), rest.CopyConfig(cfg)
		hub.Impersonate = rest.ImpersonationConfig{UserName: "theloop-controller"}
		agent.Impersonate = rest.ImpersonationConfig{UserName: "theloop-agent:" + o.agent.HostName, Groups: []string{"theloop:agents"}}
		return &connection{admin: cfg, hub: hub, agent: agent, kubeconfig: path}, nil
	}
	if o.controlPlaneDir == "" {
		return nil, errors.New("no control plane: name the directory with kube-apiserver and etcd by --control-plane-dir (make controlplane builds them and prints it), or an existing cluster by --kubeconfig")
	}
	opts := devcluster.Options{
		Dir: st.cluster(), BinDir: o.controlPlaneDir,
		Log: func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) },
	}
	if o.requestLog {
		opts.RequestLog = st.requestLog()
	}
	cluster, err := devcluster.Start(ctx, opts)
	if err != nil {
		return nil, err
	}
	c := &connection{admin: cluster.Config(), kubeconfig: cluster.Kubeconfig(), cluster: cluster}
	if c.hub, err = cluster.ConfigFor("theloop-controller"); err == nil {
		c.agent, err = cluster.ConfigFor("theloop-agent:"+o.agent.HostName, "theloop:agents")
	}
	if err != nil {
		return nil, errors.Join(err, c.stop(out))
	}
	return c, nil
}

// serve installs what is needed, runs controller and agent, shows the sample when it
// is ready, and waits for the end.
func (o *upOptions) serve(ctx context.Context, c *connection, log logr.Logger, out io.Writer) error {
	scheme := runtime.NewScheme()
	utilruntime.Must(api.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	admin, err := client.NewWithWatch(c.admin, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	if err := install(ctx, admin); err != nil {
		return ignoreStop(ctx, err)
	}
	class, err := defaultClass(ctx, admin, filepath.Dir(o.agent.Shim))
	if err != nil {
		return ignoreStop(ctx, err)
	}
	if _, err := exec.LookPath("claude"); err == nil && class == demoClass {
		log.Info("Claude Code is installed now, and the default class still runs the demo harness: kubectl delete sclass " + demoClass + ", then start again")
	}
	log.Info("installed", "kinds", "StandingSession, WorkItemSession, SessionMessage, SessionClass, SessionHost", "defaultClass", class)
	// Before anything can be started by what runs below.
	if err := o.declare(ctx, admin, log, out); err != nil {
		return ignoreStop(ctx, err)
	}

	group, ctx := errgroup.WithContext(ctx)
	part := func(name string, f func() error) {
		group.Go(func() error {
			err := f()
			if err != nil {
				err = fmt.Errorf("%s: %w", name, err)
				log.Error(err, "stopping")
			}
			return err
		})
	}
	part("controller", func() error { return o.controller(ctx, c, log) })
	part("agent", func() error { return agent.Run(ctx, c.agent, o.agent) })
	part("control plane", func() error {
		select {
		case <-ctx.Done():
			return nil
		case <-c.done():
			return fmt.Errorf("it ended by itself: %w", c.cluster.Err())
		}
	})
	part("sample", func() error {
		if err := o.welcome(ctx, c, admin, out); err != nil {
			log.Error(err, "the welcome could not be shown; everything runs all the same")
		}
		return nil
	})
	return awaitParts(ctx, group)
}

// controllerAgain is how soon a controller that lost its lease competes for it again.
const controllerAgain = 5 * time.Second

// controller runs the controller. An existing cluster may have one already: the lease
// decides then, and losing it in an outage is no reason to end.
func (o *upOptions) controller(ctx context.Context, c *connection, log logr.Logger) error {
	opts := hub.Options{Version: version, Log: log.WithName("controller"), LeaderElection: o.kubeconfig != ""}
	for {
		err := hub.Run(ctx, c.hub, opts)
		if err == nil || !opts.LeaderElection || ctx.Err() != nil {
			return err
		}
		log.Error(err, "the controller ended; it is started again", "in", controllerAgain.String())
		select {
		case <-ctx.Done():
		case <-time.After(controllerAgain):
		}
	}
}

// awaitParts waits for the parts, but after a stop no longer than they may take: a manager
// whose cache was never filled does not end by itself.
func awaitParts(ctx context.Context, group *errgroup.Group) error {
	ended := make(chan error, 1)
	go func() { ended <- group.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	timer := time.NewTimer(partsWithin)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
		return cause(ctx)
	}
}

// cause is why a context ended, nil when somebody stopped it.
func cause(ctx context.Context) error {
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// ignoreStop makes no error of having been stopped.
func ignoreStop(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}
