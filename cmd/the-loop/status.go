package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/theloop-dev/the-loop/internal/core"
	"github.com/theloop-dev/the-loop/internal/text"
)

func (c *cli) statusCommand() *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use: "status", Short: "Say whether what should run runs",
		Long: `Say whether what should run runs. It is ok when every standing session that a start of
everything starts is known to run: those that a configuration file declares with
autoStart, and those of manifests that should run with spec.autoStart. Others are shown
and decide nothing. The exit code is 0 when it is ok, else 1.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			k, err := c.core()
			if err != nil {
				return err
			}
			h, err := k.Status(cmd.Context(), all)
			if err != nil {
				return err
			}
			if done, err := c.encode(h); !done {
				c.printHealth(h)
			} else if err != nil {
				return err
			}
			if !h.OK {
				return &quietError{exitError{code: exitFailed, error: fmt.Errorf("not ok")}}
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "the sessions of every namespace")
	c.outputFlag(cmd.Flags(), "json", "yaml")
	return c.clusterFlags(cmd)
}

func (c *cli) printHealth(h core.Health) {
	word := func(w string) string {
		if colours(c.Out) {
			return paint(w)
		}
		return w
	}
	var down []string
	for _, s := range h.Standing {
		if s.Decides && s.Running != metav1.ConditionTrue {
			down = append(down, s.Name)
		}
	}
	if h.OK {
		fmt.Fprintln(c.Out, word("ok"))
	} else {
		fmt.Fprintln(c.Out, word("failed")+": "+wrapped("not known to run: "+strings.Join(down, ", "), tableWidth-8, "  "))
	}
	fmt.Fprintln(c.Out, "hosts:")
	for _, x := range h.Hosts {
		fmt.Fprintf(c.Out, "  %-24s %-18s %s\n", fit(x.Name, 24), x.Reason, x.Scheduling)
	}
	if len(h.Hosts) == 0 {
		fmt.Fprintln(c.Out, "  none: nothing can be started")
	}
	fmt.Fprintln(c.Out, "sessions:")
	for _, s := range h.Sessions {
		fmt.Fprintf(c.Out, "  %-32s %-12s %s\n", fit(s.Ref, 32), runs(s.Running), fit(dash(s.State), 30))
	}
	if len(h.Sessions) == 0 {
		fmt.Fprintln(c.Out, "  none")
	}
	fmt.Fprintln(c.Out, "standing sessions:")
	for _, s := range h.Standing {
		fmt.Fprintf(c.Out, "  %-24s %-12s %-16s [%s]\n", fit(s.Name, 24), runs(s.Running), fit(dash(s.State), 16), s.Note)
	}
	if len(h.Standing) == 0 {
		fmt.Fprintln(c.Out, "  none")
	}
	if h.Waiting > 0 {
		fmt.Fprintf(c.Out, "messages: %d waiting, %d of them held\n", h.Waiting, h.Held)
	}
}

func runs(s metav1.ConditionStatus) string {
	switch s {
	case metav1.ConditionTrue:
		return "running"
	case metav1.ConditionFalse:
		return "not running"
	}
	return "unknown"
}

func (c *cli) explainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "explain SESSION|MESSAGE", Short: "Say why a session does not run or a message is not delivered, and what helps",
		Long: `Show the chain of gates that a session or a message passes, with the value of each that
was found, and the one command that opens the first that is closed. A name that several
have is written standing/NAME, session/NAME or message/NAME.`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: c.completeExplained,
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := c.core()
			if err != nil {
				return err
			}
			e, err := c.explain(cmd.Context(), k, args[0])
			if err != nil {
				return err
			}
			if done, err := c.encode(e); done {
				return err
			}
			c.printExplanation(e)
			return nil
		},
	}
	c.outputFlag(cmd.Flags(), "json", "yaml")
	return c.clusterFlags(cmd)
}

func (c *cli) explain(ctx context.Context, k *core.Core, arg string) (core.Explanation, error) {
	if name, ok := strings.CutPrefix(arg, "message/"); ok {
		m, err := k.Message(ctx, name)
		if err != nil {
			return core.Explanation{}, err
		}
		return k.ExplainMessage(ctx, m)
	}
	s, err := c.anySession(ctx, k, arg)
	if err == nil {
		return k.ExplainSession(ctx, s)
	}
	if !isNotFound(err) || strings.ContainsAny(arg, "/:#") {
		return core.Explanation{}, err
	}
	m, err := k.Message(ctx, arg)
	if isNotFound(err) {
		return core.Explanation{}, fmt.Errorf("there is neither a session nor a message %q in namespace %s: the-loop status shows what there is", arg, k.Namespace)
	}
	if err != nil {
		return core.Explanation{}, err
	}
	return k.ExplainMessage(ctx, m)
}

func (c *cli) printExplanation(e core.Explanation) {
	fmt.Fprintln(c.Out, wrapped(e.Subject+" "+e.Summary, tableWidth, "  "))
	const nameWidth, stateWidth = 12, 8
	indent := strings.Repeat(" ", nameWidth+stateWidth+4)
	for _, g := range e.Gates {
		state := fmt.Sprintf("%-*s", stateWidth, g.State)
		if colours(c.Out) {
			state = paint(string(g.State)) + state[len(g.State):]
		}
		fmt.Fprintf(c.Out, "  %-*s %s %s\n", nameWidth, g.Name, state, wrapped(text.OneLine(g.Observed), tableWidth-len(indent), indent))
	}
	if b := e.Blocked(); b != nil {
		fix := b.Fix
		if fix == "" {
			fix = "nothing to do: wait, or read what it says"
		}
		fmt.Fprintln(c.Out, "fix: "+fix)
	}
}
