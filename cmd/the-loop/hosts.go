package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/core"
)

func (c *cli) hostsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "hosts", Aliases: []string{"host"}, Short: "Build hosts and their agents"}
	cmd.AddCommand(
		c.hostsList(), c.hostsDrain(),
		c.schedulingVerb("cordon", "Let a host take no more sessions", "takes no more sessions; those that it has go on", api.HostSchedulingCordoned),
		c.schedulingVerb("uncordon", "Let a host take sessions again", "takes sessions", api.HostSchedulingEnabled),
	)
	return c.clusterFlags(cmd)
}

var hostColumns = []column{
	{head: "NAME", flex: 2}, {head: "READY", state: true}, {head: "SCHEDULING"}, {head: "SESSIONS"}, {head: "TMUX", flex: 1}, {head: "HARNESSES", flex: 3}, {head: "AGE"},
	{head: "AGENT", wide: true}, {head: "SOCKET", wide: true},
}

func hostRow(c *cli, h *api.SessionHost, sessions int) []string {
	ready := "Unknown"
	if cond := meta.FindStatusCondition(h.Status.Conditions, api.ConditionHostReady); cond != nil {
		ready = string(cond.Status)
	}
	var harnesses []string
	for _, x := range h.Status.Harnesses {
		if x.Path != "" {
			harnesses = append(harnesses, x.Name)
		}
	}
	return []string{
		h.Name, ready, string(cmp.Or(h.Spec.Scheduling, api.HostSchedulingEnabled)), fmt.Sprint(sessions), dash(h.Status.Tmux.Version), dash(strings.Join(harnesses, ",")), c.age(h.CreationTimestamp.Time),
		dash(h.Status.AgentVersion), dash(h.Status.Tmux.Socket),
	}
}

func (c *cli) hostsList() *cobra.Command {
	l := listFlags{}
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List build hosts", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			k, err := c.core()
			if err != nil {
				return err
			}
			hosts, err := k.ListHosts(cmd.Context())
			if err != nil {
				return err
			}
			sessions, err := k.SessionsOn(cmd.Context(), "")
			if err != nil {
				return err
			}
			bound := map[string]int{}
			for _, s := range sessions {
				bound[s.Placement().HostName]++
			}
			row := func(h *api.SessionHost) []string { return hostRow(c, h, bound[h.Name]) }
			return list(cmd.Context(), c, k, l, hostColumns, hosts, row, &api.SessionHostList{}, "No host: the-loop up, or an agent of its own, makes this machine one.")
		},
	}
	c.listFlags(cmd, &l, false)
	return cmd
}

func (c *cli) schedulingVerb(name, short, what string, want api.HostScheduling) *cobra.Command {
	cmd := &cobra.Command{
		Use: name + " HOST", Short: short, Args: cobra.ExactArgs(1), ValidArgsFunction: c.completeHosts,
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := c.core()
			if err != nil {
				return err
			}
			h, err := k.Host(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			changed, err := k.SetScheduling(cmd.Context(), h, want)
			if err != nil {
				return err
			}
			return c.printHost(h, k.DryRun, changed, what)
		},
	}
	c.changeFlags(cmd, "")
	return cmd
}

func (c *cli) printHost(h *api.SessionHost, dryRun, changed bool, what string) error {
	if done, err := c.printObjects(true, h); done {
		return err
	}
	if !changed {
		what = "unchanged: it " + what
	}
	if dryRun {
		what += " (server dry run)"
	}
	fmt.Fprintf(c.Out, "host %s %s\n", h.Name, what)
	return nil
}

func (c *cli) hostsDrain() *cobra.Command {
	cmd := &cobra.Command{
		Use: "drain HOST", Short: "Let a host take no more sessions, and park those that it has",
		Long: `Let a host take no more sessions, and park those that it has, in all namespaces: their
harnesses are ended, busy or not. They keep their conversations, checkouts and messages,
and go on by themselves when the host is uncordoned; a session never moves to another
host. What is parked is said before it is done; --dry-run=server says it and does nothing.`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: c.completeHosts,
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := c.core()
			if err != nil {
				return err
			}
			h, err := k.Host(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			plan, err := k.DrainPlan(cmd.Context(), h.Name)
			if err != nil {
				return err
			}
			for _, s := range plan {
				c.note("parks %s %s/%s", strings.ToLower(s.SessionKind()), s.GetNamespace(), s.GetName())
			}
			stop := c.progress(k)
			results, err := k.Drain(cmd.Context(), h)
			stop()
			if err != nil {
				return err
			}
			if err := c.report(results); err != nil {
				return err
			}
			if c.output != "" {
				return nil
			}
			return c.printHost(h, k.DryRun, true, "takes no more sessions")
		},
	}
	c.changeFlags(cmd, "its sessions are parked")
	return cmd
}

func (c *cli) classesCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "classes", Aliases: []string{"class"}, Short: "How sessions run"}
	cmd.AddCommand(c.classesList())
	return c.clusterFlags(cmd)
}

var classColumns = []column{
	{head: "NAME", flex: 2}, {head: "HARNESS"}, {head: "DEFAULT"}, {head: "PERMISSIONS"}, {head: "MODELS", flex: 3}, {head: "EFFORTS", flex: 3}, {head: "AGE"},
	{head: "BINARY", wide: true}, {head: "WORKSPACE", wide: true},
}

func (c *cli) classRow(o *api.SessionClass) []string {
	def := "no"
	if o.Labels[api.DefaultClassLabel] == "true" {
		def = "yes"
	}
	return []string{
		o.Name, o.Spec.Harness.Name, def, dash(o.Spec.Permissions), dash(strings.Join(o.Spec.Models, ",")), dash(strings.Join(o.Spec.Efforts, ",")), c.age(o.CreationTimestamp.Time),
		dash(o.Spec.Harness.Binary), dash(o.Spec.Workspace.Root),
	}
}

func (c *cli) classesList() *cobra.Command {
	l := listFlags{}
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List session classes", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			k, err := c.core()
			if err != nil {
				return err
			}
			classes, err := k.ListClasses(cmd.Context())
			if err != nil {
				return err
			}
			return list(cmd.Context(), c, k, l, classColumns, classes, c.classRow, &api.SessionClassList{}, "No session class: kubectl apply one.")
		},
	}
	c.listFlags(cmd, &l, false)
	return cmd
}

func (c *cli) modelsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "models", Short: "Models and effort levels, and what the harnesses say of them"}
	cmd.AddCommand(c.modelsCheck())
	return c.clusterFlags(cmd)
}

var modelColumns = []column{
	{head: "HOST", flex: 2}, {head: "CLASS", flex: 2}, {head: "KIND"}, {head: "NAME", flex: 2}, {head: "VERDICT", state: true}, {head: "CHECKED"}, {head: "MESSAGE", flex: 4},
	{head: "HARNESS", wide: true},
}

func (c *cli) modelsCheck() *cobra.Command {
	cached := false
	cmd := &cobra.Command{
		Use: "check [HOST...]", Short: "Have harnesses asked about the models and efforts that classes declare", ValidArgsFunction: c.completeHosts,
		Long: `Have the harnesses of hosts asked anew about every model and effort that the classes of
their sessions declare, and show what they say. Each one costs a short call of the
harness; --cached shows the answers that there are. The exit code is 1 when any is
refused.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := c.core()
			if err != nil {
				return err
			}
			hosts, err := c.hostsNamed(cmd.Context(), k, args)
			if err != nil {
				return err
			}
			stop := c.progress(k)
			defer stop()
			for _, h := range hosts {
				if cached {
					continue
				}
				if err := k.CheckModels(cmd.Context(), h); err != nil {
					return err
				}
			}
			return c.printModels(hosts)
		},
	}
	cmd.Flags().BoolVar(&cached, "cached", false, "ask nobody, and show the answers that there are")
	c.changeFlags(cmd, "the harnesses answered")
	cmd.Flags().Lookup("output").Usage = "output format: wide, name, json, yaml"
	return cmd
}

func (c *cli) hostsNamed(ctx context.Context, k *core.Core, args []string) ([]*api.SessionHost, error) {
	if len(args) == 0 {
		return k.ListHosts(ctx)
	}
	var out []*api.SessionHost
	for _, name := range args {
		h, err := k.Host(ctx, name)
		if err != nil {
			return nil, err
		}
		out = append(out, h)
	}
	return out, nil
}

func (c *cli) printModels(hosts []*api.SessionHost) error {
	var refused []string
	t := &table{columns: modelColumns}
	var objs []client.Object
	for _, h := range hosts {
		objs = append(objs, h)
		for _, v := range h.Status.Models {
			if v.Verdict == api.VerdictRefused {
				refused = append(refused, v.Name)
			}
			t.rows = append(t.rows, []string{h.Name, v.Class, string(v.Kind), v.Name, string(v.Verdict), c.age(v.CheckedAt.Time), dash(v.Message), dash(v.Harness)})
		}
	}
	done, err := c.printObjects(false, objs...)
	switch {
	case err != nil:
		return err
	case !done && len(t.rows) == 0:
		c.note("No class of a session declares a model or an effort.")
	case !done:
		t.print(c.Out, c.output == "wide")
	}
	if len(refused) > 0 {
		return fmt.Errorf("refused by their harnesses: %s", strings.Join(refused, ", "))
	}
	return nil
}
