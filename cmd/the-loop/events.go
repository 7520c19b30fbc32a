package main

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/core"
)

func (c *cli) eventsCommand() *cobra.Command {
	all, follow := false, false
	cmd := &cobra.Command{
		Use: "events [SESSION]", Short: "Show what happened, the newest last",
		Long: `Show what happened to sessions and messages, the newest last. docs/events.md says what
each event means.`,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: c.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := c.core()
			if err != nil {
				return err
			}
			var of core.Session
			if len(args) > 0 {
				if of, err = c.anySession(cmd.Context(), k, args[0]); err != nil {
					return err
				}
			}
			return c.events(cmd.Context(), k, of, all, follow)
		},
	}
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "those of every namespace")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what happens")
	c.outputFlag(cmd.Flags(), "wide", "json", "yaml", "name")
	return c.clusterFlags(cmd)
}

var eventColumns = []column{
	{head: "AGE"}, {head: "TYPE", state: true}, {head: "REASON", flex: 1}, {head: "OBJECT", flex: 2}, {head: "MESSAGE", flex: 4},
}

func (c *cli) eventRow(e *eventsv1.Event) []string {
	kind := map[string]string{api.KindStandingSession: "standing/", api.KindWorkItemSession: "session/", "SessionMessage": "message/"}[e.Regarding.Kind]
	return []string{c.age(happened(e)), e.Type, e.Reason, kind + e.Regarding.Name, dash(e.Note)}
}

// happened is when an event was seen last.
func happened(e *eventsv1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	case !e.DeprecatedLastTimestamp.IsZero():
		return e.DeprecatedLastTimestamp.Time
	}
	return e.CreationTimestamp.Time
}

// events prints what happened to one session, or to everything of ours.
func (c *cli) events(ctx context.Context, k *core.Core, of core.Session, all, follow bool) error {
	var opts []client.ListOption
	if !all {
		opts = append(opts, client.InNamespace(k.Namespace))
	}
	ours := func(e *eventsv1.Event) bool {
		return e.Regarding.APIVersion == api.GroupVersion.String() && (of == nil || e.Regarding.UID == of.GetUID())
	}
	var seen eventsv1.EventList
	if err := k.Client.List(ctx, &seen, opts...); err != nil {
		return err
	}
	var found []*eventsv1.Event
	shown := map[types.UID]string{}
	for i := range seen.Items {
		if e := &seen.Items[i]; ours(e) {
			found, shown[e.UID] = append(found, e), e.ResourceVersion
		}
	}
	slices.SortFunc(found, func(a, b *eventsv1.Event) int {
		return cmp.Or(happened(a).Compare(happened(b)), cmp.Compare(a.Name, b.Name))
	})
	objs := make([]client.Object, len(found))
	t := &table{columns: eventColumns}
	for i, e := range found {
		objs[i], t.rows = e, append(t.rows, c.eventRow(e))
	}
	done, err := c.printObjects(false, objs...)
	if err != nil {
		return err
	}
	wide := c.output == "wide"
	switch {
	case done:
	case len(found) == 0:
		c.note("Nothing has happened in namespace %s, as far as is remembered.", k.Namespace)
	default:
		t.print(c.Out, wide)
	}
	if !follow {
		return nil
	}
	return c.followEvents(ctx, k, opts, ours, shown, t)
}

func (c *cli) followEvents(ctx context.Context, k *core.Core, opts []client.ListOption, ours func(*eventsv1.Event) bool, shown map[types.UID]string, t *table) error {
	// What comes later is not known yet: room for it.
	widths := []int{4, 7, 20, 22, 19}
	if c.output == "wide" {
		widths[4] = 1 << 10
	}
	for ctx.Err() == nil {
		w, err := k.Client.Watch(ctx, &eventsv1.EventList{}, opts...)
		if err != nil {
			return ignoreStop(ctx, err)
		}
		for e := range w.ResultChan() {
			o, ok := e.Object.(*eventsv1.Event)
			if !ok || e.Type == watch.Deleted || !ours(o) || shown[o.UID] == o.ResourceVersion {
				continue
			}
			shown[o.UID] = o.ResourceVersion
			if done, err := c.printObjects(true, o); err != nil {
				return err
			} else if done {
				continue
			}
			t.line(c.Out, c.eventRow(o), widths, colours(c.Out))
		}
		w.Stop()
	}
	return nil
}
