package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/theloop-dev/the-loop/internal/core"
)

// completeWithin bounds what a person waits for who pressed the tab key.
const completeWithin = 2 * time.Second

// names completes by what names returns, without what is on the line already.
func (c *cli) names(cmd *cobra.Command, args []string, prefix string, names func(ctx context.Context, k *core.Core) []string) ([]string, cobra.ShellCompDirective) {
	k, err := c.core()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
	defer cancel()
	var out []string
	for _, n := range names(ctx, k) {
		if strings.HasPrefix(n, prefix) && !slices.Contains(args, n) {
			out = append(out, n)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func workItems(ctx context.Context, k *core.Core) []string {
	items, _ := k.ListWorkItems(ctx, core.ListOptions{})
	var out []string
	for _, s := range items {
		// A shell's words end at the colon of a reference: the name goes in one piece.
		out = append(out, s.Name)
	}
	return out
}

func standingNames(ctx context.Context, k *core.Core) []string {
	items, _ := k.ListStanding(ctx, core.ListOptions{})
	return core.Named(items)
}

func messageNames(pending bool) func(ctx context.Context, k *core.Core) []string {
	return func(ctx context.Context, k *core.Core) []string {
		items, _ := k.ListMessages(ctx, core.MessageOptions{Pending: pending})
		return core.Named(items)
	}
}

func (c *cli) completeWorkItems(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return c.names(cmd, args, prefix, workItems)
}

func (c *cli) completeStanding(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return c.names(cmd, args, prefix, standingNames)
}

func (c *cli) completeSessions(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return c.names(cmd, args, prefix, func(ctx context.Context, k *core.Core) []string {
		return append(standingNames(ctx, k), workItems(ctx, k)...)
	})
}

func (c *cli) completeExplained(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return c.names(cmd, args, prefix, func(ctx context.Context, k *core.Core) []string {
		return slices.Concat(standingNames(ctx, k), workItems(ctx, k), messageNames(false)(ctx, k))
	})
}

func (c *cli) completeMessages(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return c.names(cmd, args, prefix, messageNames(false))
}

func (c *cli) completePending(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return c.names(cmd, args, prefix, messageNames(true))
}

func (c *cli) completeHosts(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return c.names(cmd, args, prefix, func(ctx context.Context, k *core.Core) []string {
		items, _ := k.ListHosts(ctx)
		return core.Named(items)
	})
}

func (c *cli) completeClasses(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return c.names(cmd, args, prefix, func(ctx context.Context, k *core.Core) []string {
		items, _ := k.ListClasses(ctx)
		return core.Named(items)
	})
}

func (c *cli) completeNamespaces(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return c.names(cmd, args, prefix, func(ctx context.Context, k *core.Core) []string {
		var list corev1.NamespaceList
		if err := k.Client.List(ctx, &list); err != nil {
			return nil
		}
		var out []string
		for i := range list.Items {
			out = append(out, list.Items[i].Name)
		}
		return out
	})
}

func (c *cli) completeContexts(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	raw, err := c.flags.loader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var out []string
	for name := range raw.Contexts {
		if strings.HasPrefix(name, prefix) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, cobra.ShellCompDirectiveNoFileComp
}
