package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/core"
)

func (c *cli) sessionsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "sessions", Aliases: []string{"session"}, Short: "Sessions of work items and of their pull requests",
		Long: `Sessions of work items and of their pull requests. One is named by its reference, such
as github:octo/repo#15, or by the name of its object.`,
	}
	cmd.AddCommand(
		c.sessionsList(), c.sessionsGet(), c.sessionsStart(), c.sessionsRegister(), c.sessionsLinkPR(), c.sessionsReset(), c.sessionsCleanup(),
		c.attachCommand(c.workItem, c.completeWorkItems), c.logsCommand(c.workItem, c.completeWorkItems), c.sayCommand(c.workItem, c.completeWorkItems),
		c.sessionsVerb("stop", "End the harness and keep the conversation", "it is stopped", (*core.Core).Stop),
		c.sessionsVerb("close", "Stop a session whose work is over; its terminal can be read on", "it is stopped", (*core.Core).Stop),
		c.sessionsVerb("restart", "End the harness and start it again, with its conversation", "it runs again", (*core.Core).Restart),
		c.sessionsVerb("pause", "Drop what is said to a session; its terminal is left as it is", "", delivery(api.DeliveryPolicyDrop)),
		c.sessionsVerb("hold", "Keep what is said to a session until it is resumed", "", delivery(api.DeliveryPolicyHold)),
		c.sessionsVerb("resume", "Type what is said to a session again", "", delivery(api.DeliveryPolicyDeliver)),
		c.sessionsVerb("undo-cleanup", "Have the next start bring back the checkout that was removed last", "", func(k *core.Core, ctx context.Context, s core.Session) (core.Result, error) {
			if w, ok := s.(*api.WorkItemSession); ok {
				return k.UndoCleanUp(ctx, w)
			}
			return core.Result{}, fmt.Errorf("%s has no checkout", s.GetName())
		}),
	)
	return c.clusterFlags(cmd)
}

// verb is one that both kinds of session have.
type verb func(k *core.Core, ctx context.Context, s core.Session) (core.Result, error)

func delivery(want api.DeliveryPolicy) verb {
	return func(k *core.Core, ctx context.Context, s core.Session) (core.Result, error) {
		return k.SetDelivery(ctx, s, want)
	}
}

// finder finds a session by what a person calls it.
type finder func(ctx context.Context, k *core.Core, arg string) (core.Session, error)

func (c *cli) workItem(ctx context.Context, k *core.Core, arg string) (core.Session, error) {
	return k.WorkItem(ctx, arg)
}

func (c *cli) standing(ctx context.Context, k *core.Core, arg string) (core.Session, error) {
	return k.Standing(ctx, arg)
}

// find finds all sessions before anything is done to one.
func find(ctx context.Context, k *core.Core, args []string, by finder) ([]core.Session, error) {
	var out []core.Session
	seen := map[string]bool{}
	for _, arg := range args {
		s, err := by(ctx, k, arg)
		if err != nil {
			return nil, err
		}
		if !seen[string(s.GetUID())] {
			out = append(out, s)
		}
		seen[string(s.GetUID())] = true
	}
	return out, nil
}

// sessionsVerb is a verb of work items' sessions that takes one or more of them.
func (c *cli) sessionsVerb(name, short, awaited string, do verb) *cobra.Command {
	cmd := &cobra.Command{
		Use: name + " SESSION...", Short: short, Args: cobra.MinimumNArgs(1), ValidArgsFunction: c.completeWorkItems,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.each(cmd.Context(), args, c.workItem, do)
		},
	}
	c.changeFlags(cmd, awaited)
	return cmd
}

// each carries out a verb for what is named, and prints what became of it.
func (c *cli) each(ctx context.Context, args []string, by finder, do verb) error {
	k, err := c.core()
	if err != nil {
		return err
	}
	sessions, err := find(ctx, k, args, by)
	if err != nil {
		return err
	}
	return c.all(ctx, k, sessions, do)
}

func (c *cli) all(ctx context.Context, k *core.Core, sessions []core.Session, do verb) error {
	stop := c.progress(k)
	results, err := core.Each(sessions, func(s core.Session) (core.Result, error) { return do(k, ctx, s) })
	stop()
	if err != nil {
		return err
	}
	return c.report(results)
}

// one prints what became of one session.
func (c *cli) one(r core.Result, err error) error {
	if err != nil {
		return err
	}
	return c.report([]core.Result{r})
}

var sessionColumns = []column{
	{head: "ITEM", flex: 3, least: 24}, {head: "STATE", state: true, flex: 1}, {head: "MODEL", flex: 3}, {head: "INPUT", flex: 2}, {head: "TMUX", flex: 4}, {head: "AGE"},
	{head: "NAME", wide: true}, {head: "HOST", wide: true}, {head: "LIVE", wide: true}, {head: "DELIVERY", wide: true}, {head: "CONVERSATION", wide: true}, {head: "ATTACH", wide: true},
}

func (c *cli) sessionRow(s *api.WorkItemSession) []string {
	r := core.RowOf(s)
	model := r.Model
	if r.Effort != "" {
		model = strings.TrimSpace(model + " (" + r.Effort + ")")
	}
	return []string{
		r.Ref, dash(r.State), dash(model), dash(r.Input), dash(r.TmuxTarget), c.age(r.Created),
		r.Name, dash(r.Host), live(r.Running), string(r.DeliveryPolicy), dash(r.ConversationID), dash(r.AttachCommand),
	}
}

// listFlags are those of lists.
type listFlags struct {
	all, watch bool
	host       string
}

func (c *cli) listFlags(cmd *cobra.Command, l *listFlags, namespaced bool) {
	f := cmd.Flags()
	if namespaced {
		f.BoolVarP(&l.all, "all-namespaces", "A", false, "those of every namespace")
	}
	f.BoolVarP(&l.watch, "watch", "w", false, "go on with what changes")
	c.outputFlag(f, "wide", "json", "yaml", "name")
}

func (c *cli) sessionsList() *cobra.Command {
	l := listFlags{}
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List sessions of work items", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			k, err := c.core()
			if err != nil {
				return err
			}
			items, err := k.ListWorkItems(cmd.Context(), core.ListOptions{AllNamespaces: l.all, Host: l.host})
			if err != nil {
				return err
			}
			return list(cmd.Context(), c, k, l, sessionColumns, items, c.sessionRow, &api.WorkItemSessionList{}, "No session of a work item in namespace "+k.Namespace+": the-loop sessions start REF makes one.")
		},
	}
	c.listFlags(cmd, &l, true)
	cmd.Flags().StringVar(&l.host, "host", "", "those of this host")
	return cmd
}

func (c *cli) sessionsGet() *cobra.Command {
	cmd := &cobra.Command{
		Use: "get SESSION", Short: "Show one session", Args: cobra.ExactArgs(1), ValidArgsFunction: c.completeWorkItems,
		RunE: func(cmd *cobra.Command, args []string) error { return c.get(cmd.Context(), args[0], c.workItem) },
	}
	c.outputFlag(cmd.Flags(), "wide", "json", "yaml", "name")
	return cmd
}

// find finds the session that an argument names.
func (c *cli) find(ctx context.Context, by finder, arg string) (*core.Core, core.Session, error) {
	k, err := c.core()
	if err != nil {
		return nil, nil, err
	}
	s, err := by(ctx, k, arg)
	return k, s, err
}

// get shows one session.
func (c *cli) get(ctx context.Context, arg string, by finder) error {
	_, s, err := c.find(ctx, by, arg)
	if err != nil {
		return err
	}
	if done, err := c.printObjects(true, s); done {
		return err
	}
	c.describe(s)
	return nil
}

// describe prints a session for a person.
func (c *cli) describe(s core.Session) {
	r := core.RowOf(s)
	started := "never"
	if r.StartedAt != nil {
		started = c.age(r.StartedAt.Time) + " ago"
	}
	choice := strings.TrimSpace(r.Model + " " + r.Effort)
	declared := ""
	if r.Declared {
		declared = r.DeclaredBy
	}
	for _, f := range [][2]string{
		{"Name", r.Namespace + "/" + r.Name}, {"Ref", r.Ref}, {"Parent", r.Parent}, {"Description", r.Description}, {"Declared by", declared},
		{"Wanted", string(r.Wanted)}, {"Live", live(r.Running)}, {"State", r.State}, {"Input", r.Input}, {"Delivery", string(r.DeliveryPolicy)},
		{"Host", r.Host}, {"Harness", r.Harness}, {"Model", choice}, {"Directory", r.Cwd}, {"Tmux", r.TmuxTarget}, {"Attach", r.AttachCommand},
		{"Conversation", r.ConversationID}, {"Restarts", fmt.Sprint(r.Restarts)}, {"Started", started}, {"Age", c.age(r.Created)},
	} {
		if f[1] != "" {
			fmt.Fprintf(c.Out, "%-14s %s\n", f[0]+":", dash(f[1]))
		}
	}
	const indent = "  "
	fmt.Fprintln(c.Out, "Conditions:")
	for _, cond := range s.HostedStatus().Conditions {
		fmt.Fprintf(c.Out, "%s%-16s %-8s %s\n", indent, cond.Type, cond.Status, cond.Reason)
		if cond.Message != "" {
			fmt.Fprintf(c.Out, "%s%s%s\n", indent, indent, wrapped(dash(cond.Message), tableWidth-2*len(indent), indent+indent))
		}
	}
}

func (c *cli) sessionsStart() *cobra.Command {
	spec, promptFile := api.WorkItemSessionSpec{}, ""
	cmd := &cobra.Command{
		Use: "start SESSION...", Short: "Start sessions, and make those that there are not yet", ValidArgsFunction: c.completeWorkItems,
		Long: `Start sessions. A stopped one goes on with its conversation, an ended one is started
again, a paused one takes messages again. A work item without a session gets one when it
is named by its reference; the flags say what it is to be.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := c.core()
			if err != nil {
				return err
			}
			if spec.Prompt, err = promptOf(spec.Prompt, promptFile); err != nil {
				return err
			}
			stop := c.progress(k)
			var results []core.Result
			for _, arg := range args {
				r, err := k.StartWorkItem(cmd.Context(), arg, spec)
				if err != nil {
					stop()
					_ = c.report(results)
					return err
				}
				results = append(results, r)
			}
			stop()
			return c.report(results)
		},
	}
	f := cmd.Flags()
	f.StringVar(&spec.ClassName, "class", "", "SessionClass that it runs by (default: the default one)")
	f.StringVar(&spec.HostName, "host", "", "host that runs it (default: the least loaded one)")
	f.StringVar(&spec.Model, "model", "", "model, one of those that the class declares")
	f.StringVar(&spec.Effort, "effort", "", "effort level, one of those that the class declares")
	f.StringVar(&spec.Prompt, "prompt", "", "what it is told first")
	f.StringVar(&promptFile, "prompt-file", "", "file on this machine with what it is told first")
	_ = cmd.RegisterFlagCompletionFunc("class", c.completeClasses)
	_ = cmd.RegisterFlagCompletionFunc("host", c.completeHosts)
	c.changeFlags(cmd, "it runs")
	return cmd
}

// promptOf is a prompt that is given as a text or by a file, not both.
func promptOf(prompt, file string) (string, error) {
	if file == "" {
		return prompt, nil
	}
	if prompt != "" {
		return "", refusal("give --prompt or --prompt-file, not both: there is no precedence between them")
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", refusal("--prompt-file: %w", err)
	}
	return string(b), nil
}

func (c *cli) sessionsRegister() *cobra.Command {
	r := core.Registration{}
	cmd := &cobra.Command{
		Use: "register REF --conversation ID --cwd DIR", Short: "Take a conversation that was started by hand for a work item's session",
		Long: `Take a conversation that was started by hand for the session of a work item. Nothing is
started: the next message resumes the conversation in its directory.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := c.core()
			if err != nil {
				return err
			}
			return c.one(k.Register(cmd.Context(), args[0], r))
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.ConversationID, "conversation", "", "the harness's own id of the conversation (required)")
	f.StringVar(&r.Cwd, "cwd", "", "absolute directory in which it was started (required)")
	f.StringVar(&r.Host, "host", "", "host on which it is (default: the only one)")
	f.StringVar(&r.Class, "class", "", "SessionClass that runs such a harness (default: the default one)")
	_ = cmd.RegisterFlagCompletionFunc("class", c.completeClasses)
	_ = cmd.RegisterFlagCompletionFunc("host", c.completeHosts)
	c.changeFlags(cmd, "")
	return cmd
}

func (c *cli) sessionsLinkPR() *cobra.Command {
	pr := ""
	cmd := &cobra.Command{
		Use: "link-pr SESSION --pull-request PR", Short: "Give a pull request of a work item a session of its own, not started yet",
		Args: cobra.ExactArgs(1), ValidArgsFunction: c.completeWorkItems,
		RunE: func(cmd *cobra.Command, args []string) error {
			if pr == "" {
				return refusal("which pull request? --pull-request 16 is one of the work item's repository, a reference may be in another one")
			}
			k, err := c.core()
			if err != nil {
				return err
			}
			return c.one(k.LinkPullRequest(cmd.Context(), args[0], pr))
		},
	}
	cmd.Flags().StringVar(&pr, "pull-request", "", "16, #16, or a reference such as github:octo/other#16 (required)")
	c.changeFlags(cmd, "")
	return cmd
}

func (c *cli) sessionsReset() *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use: "reset SESSION... | --all", Short: "End sessions and forget everything of them", ValidArgsFunction: c.completeWorkItems,
		Long: `End sessions and delete their objects: the harness is ended first, the terminal is
retained or closed as the class says, the checkout is removed unless the class keeps it,
and the conversation is forgotten. What is taken away is said before it is done; nothing
is done when one of the names is wrong. --dry-run=server says it and does nothing.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return refusal("name the sessions to reset, or all of them with --all, not both")
			}
			return c.destroy(cmd.Context(), args, all, false, func(k *core.Core, ctx context.Context, s core.Session) (core.Result, error) {
				if w, ok := s.(*api.WorkItemSession); ok {
					return k.Reset(ctx, w)
				}
				return core.Result{}, fmt.Errorf("%s is no session of a work item", s.GetName())
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "every session of a work item in the namespace")
	c.changeFlags(cmd, "it is gone")
	return cmd
}

// destroy says what a verb takes away, and does it then.
func (c *cli) destroy(ctx context.Context, args []string, all, cleanup bool, do verb) error {
	k, err := c.core()
	if err != nil {
		return err
	}
	sessions, err := find(ctx, k, args, c.workItem)
	if err != nil {
		return err
	}
	if all {
		items, err := k.ListWorkItems(ctx, core.ListOptions{})
		if err != nil {
			return err
		}
		for _, s := range items {
			// Those of pull requests go with the one of their work item.
			if s.Spec.ParentName == "" {
				sessions = append(sessions, s)
			}
		}
		if len(sessions) == 0 {
			c.note("There is no session of a work item in namespace %s.", k.Namespace)
		}
	}
	for _, s := range sessions {
		if err := c.sayWhat(ctx, k, s, cleanup); err != nil {
			return err
		}
	}
	return c.all(ctx, k, sessions, do)
}

// sayWhat says what the end of a session takes away.
func (c *cli) sayWhat(ctx context.Context, k *core.Core, s core.Session, cleanup bool) error {
	w, ok := s.(*api.WorkItemSession)
	if !ok {
		return nil
	}
	takes, err := k.Takes(ctx, w, cleanup)
	for _, t := range takes {
		c.note("%s", t.Text)
	}
	return err
}

func (c *cli) sessionsCleanup() *cobra.Command {
	force := false
	cmd := &cobra.Command{
		Use: "cleanup SESSION...", Short: "End everything of a finished work item on its hosts, its checkout included", ValidArgsFunction: c.completeWorkItems,
		Long: `End everything of a work item on its hosts, the sessions of its pull requests first:
terminals and checkouts, whatever the class retains. What was not committed or not pushed
is kept for a week (undo-cleanup brings it back). The object stays as the record, so that
nothing starts it again by itself. What is taken away is said before it is done;
--dry-run=server says it and does nothing.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := c.core()
			if err != nil {
				return err
			}
			for _, arg := range args {
				s, err := k.WorkItem(cmd.Context(), arg)
				if err != nil {
					if core.IsRef(arg) && isNotFound(err) {
						c.note("%s: there is no record of it; what its hosts have of it is removed", arg)
						continue
					}
					return err
				}
				if err := c.sayWhat(cmd.Context(), k, s, true); err != nil {
					return err
				}
			}
			stop := c.progress(k)
			defer stop()
			var results []core.Result
			for _, arg := range args {
				r, err := k.CleanUp(cmd.Context(), arg, force)
				if err != nil {
					return err
				}
				results = append(results, r)
			}
			return c.report(results)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "end panes that a person opened in its terminal, too, with what is not saved in them")
	c.changeFlags(cmd, "it is cleaned up")
	return cmd
}

// list prints a list, and goes on with what changes where that is asked for.
func list[T client.Object](ctx context.Context, c *cli, k *core.Core, l listFlags, columns []column, items []T, row func(T) []string, kind client.ObjectList, empty string) error {
	objs := make([]client.Object, len(items))
	for i, o := range items {
		objs[i] = o
	}
	done, err := c.printObjects(false, objs...)
	if err != nil {
		return err
	}
	t := &table{columns: columns}
	if l.all {
		t.columns = append([]column{{head: "NAMESPACE", flex: 2}}, columns...)
	}
	cells := func(o T) []string {
		if l.all {
			return append([]string{o.GetNamespace()}, row(o)...)
		}
		return row(o)
	}
	if !done {
		for _, o := range items {
			t.rows = append(t.rows, cells(o))
		}
		if len(items) == 0 {
			c.note("%s", empty)
		} else {
			t.print(c.Out, c.output == "wide")
		}
	}
	if !l.watch {
		return nil
	}
	return watchList(ctx, c, k, l, t, cells, kind, items)
}
