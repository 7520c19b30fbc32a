package main

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/theloop-dev/the-loop/internal/core"
)

// watchList prints a row for each change, until the person ends it.
func watchList[T client.Object](ctx context.Context, c *cli, k *core.Core, l listFlags, t *table, cells func(T) []string, kind client.ObjectList, listed []T) error {
	var opts []client.ListOption
	if !l.all {
		opts = append(opts, client.InNamespace(k.Namespace))
	}
	if l.host != "" {
		opts = append(opts, client.MatchingFields{"spec.hostName": l.host})
	}
	colour := colours(c.Out)
	// What was listed is shown again by a watch, and only told when it differs.
	seen := map[types.UID]string{}
	for _, o := range listed {
		seen[o.GetUID()] = o.GetResourceVersion()
	}
	for ctx.Err() == nil {
		w, err := k.Client.Watch(ctx, kind, opts...)
		if err != nil {
			return ignoreStop(ctx, err)
		}
		for e := range w.ResultChan() {
			o, ok := e.Object.(T)
			if !ok {
				continue
			}
			version := o.GetResourceVersion()
			if e.Type == watch.Deleted {
				version += "-gone"
			}
			if seen[o.GetUID()] == version {
				continue
			}
			seen[o.GetUID()] = version
			if err := showChange(c, t, o, cells, e.Type == watch.Deleted, colour); err != nil {
				return err
			}
		}
		w.Stop()
	}
	return nil
}

// showChange prints one change: the object, or its row, below the heads before the first.
func showChange[T client.Object](c *cli, t *table, o T, cells func(T) []string, gone, colour bool) error {
	if done, err := c.printObjects(true, o); done || err != nil {
		return err
	}
	if gone {
		fmt.Fprintln(c.Out, o.GetName()+" was deleted")
		return nil
	}
	wide, headed, row := c.output == "wide", len(t.rows) > 0, cells(o)
	t.widen(row)
	if !headed {
		t.print(c.Out, wide)
		return nil
	}
	t.line(c.Out, row, t.widths(wide), colour)
	return nil
}

// widen keeps of all rows so far, and of this one, the longest cells: what the widths
// depend on.
func (t *table) widen(row []string) {
	longest := slices.Clone(row)
	for _, r := range t.rows {
		for i, cell := range r {
			if len([]rune(cell)) > len([]rune(longest[i])) {
				longest[i] = cell
			}
		}
	}
	t.rows = [][]string{longest}
}
