package main

import (
	"context"

	"github.com/spf13/cobra"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/core"
)

func (c *cli) standingCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "standing", Short: "Standing sessions, which belong to no work item and are named by name"}
	cmd.AddCommand(
		c.standingList(), c.standingGet(), c.standingCreate(), c.standingDelete(),
		c.attachCommand(c.standing, c.completeStanding), c.logsCommand(c.standing, c.completeStanding), c.sayCommand(c.standing, c.completeStanding),
		c.standingVerb("start", "Start standing sessions", "it runs", true, (*core.Core).Start),
		c.standingVerb("stop", "End the harness and keep the conversation", "it is stopped", true, (*core.Core).Stop),
		c.standingVerb("restart", "End the harness and start it again, with its conversation", "it runs again", false, (*core.Core).Restart),
		c.standingVerb("pause", "Drop what is said to a session; its terminal is left as it is", "", false, delivery(api.DeliveryPolicyDrop)),
		c.standingVerb("hold", "Keep what is said to a session until it is resumed", "", false, delivery(api.DeliveryPolicyHold)),
		c.standingVerb("resume", "Type what is said to a session again", "", false, delivery(api.DeliveryPolicyDeliver)),
	)
	return c.clusterFlags(cmd)
}

var standingColumns = []column{
	{head: "NAME", flex: 3, least: 24}, {head: "HARNESS", flex: 1}, {head: "STATE", state: true, flex: 1}, {head: "LIVE", state: true}, {head: "INPUT", flex: 2}, {head: "DECLARED"}, {head: "TMUX", flex: 4}, {head: "AGE"},
	{head: "HOST", wide: true}, {head: "SLACK", wide: true}, {head: "CWD", wide: true}, {head: "DELIVERY", wide: true}, {head: "CONVERSATION", wide: true}, {head: "DESCRIPTION", wide: true},
}

func (c *cli) standingRow(s *api.StandingSession) []string {
	r := core.RowOf(s)
	declared := "no"
	if r.Declared {
		declared = "yes"
	}
	return []string{
		r.Name, dash(r.Harness), dash(r.State), live(r.Running), dash(r.Input), declared, dash(r.TmuxTarget), c.age(r.Created),
		dash(r.Host), dash(r.SlackChannel), dash(r.Cwd), string(r.DeliveryPolicy), dash(r.ConversationID), dash(r.Description),
	}
}

func (c *cli) standingList() *cobra.Command {
	l := listFlags{}
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List standing sessions", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			k, err := c.core()
			if err != nil {
				return err
			}
			items, err := k.ListStanding(cmd.Context(), core.ListOptions{AllNamespaces: l.all, Host: l.host})
			if err != nil {
				return err
			}
			return list(cmd.Context(), c, k, l, standingColumns, items, c.standingRow, &api.StandingSessionList{}, "No standing session in namespace "+k.Namespace+": the-loop standing create NAME makes one.")
		},
	}
	c.listFlags(cmd, &l, true)
	cmd.Flags().StringVar(&l.host, "host", "", "those of this host")
	return cmd
}

func (c *cli) standingGet() *cobra.Command {
	cmd := &cobra.Command{
		Use: "get NAME", Short: "Show one standing session", Args: cobra.ExactArgs(1), ValidArgsFunction: c.completeStanding,
		RunE: func(cmd *cobra.Command, args []string) error { return c.get(cmd.Context(), args[0], c.standing) },
	}
	c.outputFlag(cmd.Flags(), "wide", "json", "yaml", "name")
	return cmd
}

// newStanding are the flags of create.
type newStanding struct {
	spec                                  api.StandingSessionSpec
	promptFile, slackChannel              string
	harnessArgs                           []string
	noArgs, slack, noStart, noStartBySelf bool
}

func (c *cli) standingCreate() *cobra.Command {
	n := newStanding{}
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Create a standing session and start it",
		Long: `Create a standing session and start it. When it cannot be started, what was created is
deleted again, so that the name is free for another try. A name that exists is refused.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := n.complete(cmd); err != nil {
				return err
			}
			k, err := c.core()
			if err != nil {
				return err
			}
			stop := c.progress(k)
			r, err := k.CreateStanding(cmd.Context(), args[0], n.spec)
			stop()
			return c.one(r, err)
		},
	}
	f := cmd.Flags()
	f.StringVar(&n.spec.ClassName, "class", "", "SessionClass that it runs by (default: the default one)")
	f.StringVar(&n.spec.HostName, "host", "", "host that runs it (default: the least loaded one)")
	f.StringVar(&n.spec.Cwd, "cwd", "", "directory on the host in which it works (default: that of the class)")
	f.StringVar(&n.spec.Prompt, "prompt", "", "the brief")
	f.StringVar(&n.promptFile, "prompt-file", "", "file on this machine with the brief")
	f.StringVar(&n.spec.Description, "description", "", "what it is for, for people")
	f.StringVar(&n.spec.Model, "model", "", "model, one of those that the class declares")
	f.StringVar(&n.spec.Effort, "effort", "", "effort level, one of those that the class declares")
	f.StringArrayVar(&n.harnessArgs, "harness-arg", nil, "argument for the harness, instead of those of the class; once for each")
	f.BoolVar(&n.noArgs, "no-harness-args", false, "no arguments for the harness, not those of the class either")
	f.BoolVar(&n.slack, "slack", false, "give it a Slack thread")
	f.StringVar(&n.slackChannel, "slack-channel", "", "channel of that thread")
	f.BoolVar(&n.noStartBySelf, "no-auto-start", false, "no start of everything starts it")
	f.BoolVar(&n.noStart, "no-start", false, "create it stopped")
	_ = cmd.RegisterFlagCompletionFunc("class", c.completeClasses)
	_ = cmd.RegisterFlagCompletionFunc("host", c.completeHosts)
	c.changeFlags(cmd, "it runs")
	return cmd
}

// complete makes the spec of the flags.
func (n *newStanding) complete(_ *cobra.Command) (err error) {
	if n.spec.Prompt, err = promptOf(n.spec.Prompt, n.promptFile); err != nil {
		return err
	}
	switch {
	case n.noArgs && len(n.harnessArgs) > 0:
		return refusal("give --harness-arg or --no-harness-args, not both")
	case n.noArgs:
		n.spec.HarnessArgs = []string{}
	case len(n.harnessArgs) > 0:
		n.spec.HarnessArgs = n.harnessArgs
	}
	if n.slack || n.slackChannel != "" {
		n.spec.Slack = &api.StandingSessionSlack{Enabled: n.slack, Channel: n.slackChannel}
	}
	if n.noStartBySelf {
		n.spec.AutoStart = new(false)
	}
	if n.noStart {
		n.spec.State = api.SessionStateStopped
	}
	return nil
}

func (c *cli) standingDelete() *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete NAME...", Short: "Stop standing sessions and forget them, their conversations included", ValidArgsFunction: c.completeStanding,
		Long: `Stop standing sessions, and delete their objects. The conversation is forgotten, which
is the difference from stop. A declared session is refused: the next the-loop up would
bring it back. When one cannot be stopped, it is kept.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := c.core()
			if err != nil {
				return err
			}
			sessions, err := find(cmd.Context(), k, args, c.standing)
			if err != nil {
				return err
			}
			for _, s := range sessions {
				if o, ok := s.(*api.StandingSession); ok {
					if err := core.Deletable(o); err != nil {
						return err
					}
				}
			}
			for _, s := range sessions {
				c.note("%s: its conversation %s is forgotten", s.GetName(), dash(s.HostedStatus().ConversationID))
			}
			stop := c.progress(k)
			defer stop()
			var results []core.Result
			for _, s := range sessions {
				r, err := k.DeleteStanding(cmd.Context(), s.GetName())
				if err != nil {
					return err
				}
				results = append(results, r)
			}
			return c.report(results)
		},
	}
	c.changeFlags(cmd, "it is gone")
	return cmd
}

// standingVerb is a verb of standing sessions. Where many is true, it can be asked for
// all of them, in so many words.
func (c *cli) standingVerb(name, short, awaited string, many bool, do verb) *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use: name + " NAME...", Short: short, ValidArgsFunction: c.completeStanding,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				if many {
					return refusal("name the sessions to %s, or all of them with --all, not both", name)
				}
				return refusal("name the sessions to %s", name)
			}
			if all {
				return c.allStanding(cmd.Context(), do)
			}
			return c.each(cmd.Context(), args, c.standing, do)
		},
	}
	if many {
		cmd.Use = name + " NAME... | --all"
		cmd.Flags().BoolVar(&all, "all", false, "every standing session in the namespace")
	}
	c.changeFlags(cmd, awaited)
	return cmd
}

func (c *cli) allStanding(ctx context.Context, do verb) error {
	k, err := c.core()
	if err != nil {
		return err
	}
	items, err := k.ListStanding(ctx, core.ListOptions{})
	if err != nil {
		return err
	}
	sessions := make([]core.Session, len(items))
	for i, s := range items {
		sessions[i] = s
	}
	if len(sessions) == 0 {
		c.note("There is no standing session in namespace %s.", k.Namespace)
	}
	return c.all(ctx, k, sessions, do)
}
