package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/theloop-dev/the-loop/internal/core"
)

// cli is what the verbs share: where they print, and how they reach the cluster.
type cli struct {
	genericiooptions.IOStreams
	flags clusterFlags
	clock clock.PassiveClock
	// name is how a person calls the program: the-loop, or kubectl loop.
	name string

	output  string
	dryRun  string
	timeout time.Duration
	noWait  bool
	actor   string

	// made is the connection, once it is there.
	made *connected
}

// connected is a cluster that the verbs work with.
type connected struct {
	config    *rest.Config
	client    client.WithWatch
	namespace string
	actor     string
}

// newRoot is the command line. kubectl finds it as the plugin kubectl-loop.
func newRoot(streams genericiooptions.IOStreams) *cobra.Command {
	c := &cli{IOStreams: streams, clock: clock.RealClock{}, name: programName()}
	return c.root()
}

func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use: "the-loop", Short: "Coding agents as real terminal sessions, kept as Kubernetes objects", Version: version,
		Long: `Coding agents as real terminal sessions, kept as Kubernetes objects.

Everything that the verbs do can be done with kubectl alone: docs/cli.md says how, and
what the exit codes mean.`,
		SilenceUsage: true, SilenceErrors: true,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: c.name},
	}
	root.SetIn(c.In)
	root.SetOut(c.Out)
	root.SetErr(c.ErrOut)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &exitError{code: exitRefused, error: fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())}
	})
	root.AddGroup(&cobra.Group{ID: "run", Title: "Run it:"}, &cobra.Group{ID: "work", Title: "Work with sessions:"}, &cobra.Group{ID: "look", Title: "See what is the matter:"})
	group := func(id string, cmds ...*cobra.Command) {
		for _, cmd := range cmds {
			cmd.GroupID = id
			root.AddCommand(cmd)
		}
	}
	group("run", upCommand(), downCommand())
	group("work", c.sessionsCommand(), c.standingCommand(), c.messagesCommand(), c.hostsCommand(), c.classesCommand(), c.modelsCommand())
	group("look", c.statusCommand(), c.explainCommand(), c.eventsCommand(), c.doctorCommand())
	refuseUnknown(root)
	return root
}

// programName is how this program was called.
func programName() string {
	if strings.HasPrefix(filepath.Base(os.Args[0]), "kubectl-loop") {
		return "kubectl loop"
	}
	return "the-loop"
}

// refuseUnknown makes a group without a verb, or with one that there is not, an error
// that says what there is.
func refuseUnknown(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		refuseUnknown(sub)
	}
	if !cmd.HasSubCommands() {
		usage := cmd.Args
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if usage == nil {
				return nil
			}
			if err := usage(cmd, args); err != nil {
				return &exitError{code: exitRefused, error: fmt.Errorf("%s: %w: see %s --help", cmd.CommandPath(), err, cmd.CommandPath())}
			}
			return nil
		}
		return
	}
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var verbs []string
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				verbs = append(verbs, sub.Name())
			}
		}
		slices.Sort(verbs)
		what := "a verb is missing"
		if !cmd.HasParent() && len(args) == 0 {
			return cmd.Help()
		}
		if len(args) > 0 {
			what = fmt.Sprintf("there is no verb %q", args[0])
		}
		return &exitError{code: exitRefused, error: fmt.Errorf("%s: %s: choose one of %s", cmd.CommandPath(), what, strings.Join(verbs, ", "))}
	}
}

// clusterFlags are those of kubectl that say which cluster, as whom and where.
type clusterFlags struct{ kubeconfig, context, namespace, as string }

// loader reads the kubeconfig as kubectl does.
func (f *clusterFlags) loader() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.context}
	overrides.Context.Namespace, overrides.AuthInfo.Impersonate = f.namespace, f.as
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
}

// clusterFlags gives a command and those below it the flags of kubectl.
func (c *cli) clusterFlags(cmd *cobra.Command) *cobra.Command {
	f := cmd.PersistentFlags()
	f.StringVar(&c.flags.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster (default: $KUBECONFIG, ~/.kube/config, that of the-loop up)")
	f.StringVar(&c.flags.context, "context", "", "context of the kubeconfig")
	f.StringVarP(&c.flags.namespace, "namespace", "n", "", "namespace (default: that of the context)")
	f.StringVar(&c.flags.as, "as", "", "user to act as")
	_ = cmd.RegisterFlagCompletionFunc("namespace", c.completeNamespaces)
	_ = cmd.RegisterFlagCompletionFunc("context", c.completeContexts)
	return cmd
}

// outputFlag adds -o.
func (c *cli) outputFlag(f *pflag.FlagSet, formats ...string) {
	f.StringVarP(&c.output, "output", "o", "", "output format: "+strings.Join(formats, ", "))
}

// changeFlags are those of verbs that change something.
func (c *cli) changeFlags(cmd *cobra.Command, awaited string) {
	f := cmd.Flags()
	f.StringVar(&c.dryRun, "dry-run", "none", "server: the API server checks everything and stores nothing; none")
	f.Lookup("dry-run").NoOptDefVal = "server"
	c.outputFlag(f, "name", "json", "yaml")
	if awaited != "" {
		f.BoolVar(&c.noWait, "no-wait", false, "return once it is stored, without waiting until "+awaited)
		f.DurationVar(&c.timeout, "timeout", time.Minute, "how long to wait until "+awaited)
	}
}

// checkFlags refuses what no verb knows.
func (c *cli) checkFlags() error {
	if !slices.Contains([]string{"", "none", "server"}, c.dryRun) {
		return refusal("--dry-run=%s is not known: choose server or none", c.dryRun)
	}
	if !slices.Contains([]string{"", "wide", "json", "yaml", "name"}, c.output) {
		return refusal("-o %s is not known: choose wide, json, yaml or name", c.output)
	}
	if c.timeout < 0 {
		return refusal("--timeout must not be negative")
	}
	return nil
}

// refusal is an error for something that cannot be used.
func refusal(format string, args ...any) error {
	return &exitError{code: exitRefused, error: fmt.Errorf(format, args...)}
}

// core connects to the cluster and makes what carries out the verbs.
func (c *cli) core() (*core.Core, error) {
	if err := c.checkFlags(); err != nil {
		return nil, err
	}
	k, err := c.connect()
	if err != nil {
		return nil, err
	}
	return &core.Core{
		Client: k.client, Namespace: k.namespace, Actor: cmp.Or(c.actor, k.actor), DryRun: c.dryRun == "server",
		NoWait: c.noWait, Timeout: c.timeout, Clock: c.clock,
	}, nil
}

func (c *cli) connect() (*connected, error) {
	if c.made != nil {
		return c.made, nil
	}
	c.ownCluster()
	loader := c.flags.loader()
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, &exitError{code: exitRefused, error: fmt.Errorf("no cluster to work with (%w): start one with the-loop up, or name a kubeconfig with --kubeconfig or $KUBECONFIG", err)}
	}
	// A person's verb is few requests, and none of them should wait for the others.
	config.QPS, config.Burst = 100, 200
	k := &connected{config: config, actor: os.Getenv("USER")}
	if k.namespace, _, err = loader.Namespace(); err != nil {
		return nil, err
	}
	if raw, err := loader.RawConfig(); err == nil {
		name := cmp.Or(c.flags.context, raw.CurrentContext)
		if x := raw.Contexts[name]; x != nil && x.AuthInfo != "" {
			k.actor = x.AuthInfo
		}
	}
	if c.flags.as != "" {
		k.actor = c.flags.as
	}
	scheme, err := core.Scheme()
	if err != nil {
		return nil, err
	}
	// A verb prints its answer and its errors, and nothing of how the client works.
	ctrl.SetLogger(logr.Discard())
	if k.client, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("the cluster at %s cannot be reached: %w", config.Host, err)
	}
	c.made = k
	return k, nil
}

// ownCluster falls back to the cluster of `the-loop up`, where the person names no other.
func (c *cli) ownCluster() {
	if c.flags.kubeconfig != "" || os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != "" {
		return
	}
	if _, err := os.Stat(clientcmd.RecommendedHomeFile); err == nil {
		return
	}
	if r, err := state(defaultState()).read(); err == nil {
		if _, err := os.Stat(r.Kubeconfig); err == nil {
			c.flags.kubeconfig = r.Kubeconfig
		}
	}
}

// patience is how long a verb may be silent.
const patience = 2 * time.Second

// progress tells what is waited for, on stderr, when it takes longer than two seconds.
// stop ends it.
func (c *cli) progress(k *core.Core) (stop func()) {
	var mu sync.Mutex
	last, told, over := "", "", false
	tell := func() {
		if !over && last != told && last != "" {
			told = last
			fmt.Fprintln(c.ErrOut, "waiting: "+told)
		}
	}
	impatient := false
	timer := time.AfterFunc(patience, func() {
		mu.Lock()
		defer mu.Unlock()
		impatient = true
		tell()
	})
	k.Progress = func(what string) {
		mu.Lock()
		defer mu.Unlock()
		if last = what; impatient {
			tell()
		}
	}
	return func() {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		over = true
	}
}

// colours reports whether w is a terminal that shows colours.
func colours(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// Exit codes.
const (
	exitFailed      = 1   // it was tried and failed, or is not so
	exitRefused     = 2   // what was given cannot be used, and nothing was done
	exitUnconfirmed = 3   // it is stored, and was not seen to come about in time
	exitInterrupted = 130 // Ctrl-C
)

// exitError is an error with an exit code of its own.
type exitError struct {
	error
	code int
}

func (e *exitError) Unwrap() error { return e.error }

// quietError has an exit code, and was told already.
type quietError struct{ exitError }

func exitCode(err error) int {
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	if e, ok := errors.AsType[*quietError](err); ok {
		return e.code
	}
	switch {
	case errors.Is(err, core.ErrInvalid), errors.Is(err, core.ErrExists), errors.Is(err, core.ErrDeclared):
		return exitRefused
	case errors.Is(err, core.ErrUnconfirmed):
		return exitUnconfirmed
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitFailed
}
