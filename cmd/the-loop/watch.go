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
func watchList[T client.Object](ctx context.Context, c *cli, k *core.Core, l listFlags, t *table, cells func(T) []string, kind client.ObjectList) error {
	var opts []client.ListOption
	if !l.all {
		opts = append(opts, client.InNamespace(k.Namespace))
	}
	if l.host != "" {
		opts = append(opts, client.MatchingFields{"spec.hostName": l.host})
	}
	wide := c.output == "wide"
	colour := colours(c.Out)
	headed := len(t.rows) > 0
	// What was listed is shown again by a watch, and only told when it differs.
	seen := map[types.UID]string{}
	for ctx.Err() == nil {
		w, err := k.Client.Watch(ctx, kind, opts...)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
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
			if done, err := c.printObjects(true, o); err != nil {
				return err
			} else if done {
				continue
			}
			if e.Type == watch.Deleted {
				fmt.Fprintln(c.Out, o.GetName()+" was deleted")
				continue
			}
			row := cells(o)
			t.widen(row)
			if !headed {
				headed = true
				t.print(c.Out, wide)
				continue
			}
			t.line(c.Out, row, t.widths(wide), colour)
		}
		w.Stop()
	}
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
