package core

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

// Health is the state of everything.
type Health struct {
	// OK: what should run runs, and is known to.
	OK       bool             `json:"ok"`
	Hosts    []HostHealth     `json:"hosts"`
	Sessions []Row            `json:"sessions"`
	Standing []StandingHealth `json:"standingSessions"`
	// Waiting counts the messages whose outcome is not final yet, Held those of them that
	// wait for a person or a policy.
	Waiting int `json:"waiting"`
	Held    int `json:"held"`
}

// HostHealth is one host.
type HostHealth struct {
	Name       string                 `json:"name"`
	Ready      metav1.ConditionStatus `json:"ready"`
	Reason     string                 `json:"reason"`
	Scheduling api.HostScheduling     `json:"scheduling"`
}

// StandingHealth is one standing session, and what it means for the whole.
type StandingHealth struct {
	Row
	// Decides: the whole is not OK unless the session runs.
	Decides bool `json:"decides"`
	// Note says where the session comes from: declared, applied or created.
	Note string `json:"note"`
}

// Status looks at everything in the namespace, or in all of them, and at the hosts.
func (c *Core) Status(ctx context.Context, all bool) (Health, error) {
	h := Health{OK: true}
	hosts, err := c.ListHosts(ctx)
	if err != nil {
		return h, err
	}
	for _, host := range hosts {
		h.Hosts = append(h.Hosts, hostHealth(host))
	}
	items, err := c.ListWorkItems(ctx, ListOptions{AllNamespaces: all})
	if err != nil {
		return h, err
	}
	for _, s := range items {
		h.Sessions = append(h.Sessions, RowOf(s))
	}
	standing, err := c.ListStanding(ctx, ListOptions{AllNamespaces: all})
	if err != nil {
		return h, err
	}
	for _, s := range standing {
		row := standingHealth(s)
		if row.Decides && row.Running != metav1.ConditionTrue {
			h.OK = false
		}
		h.Standing = append(h.Standing, row)
	}
	messages, err := c.ListMessages(ctx, MessageOptions{AllNamespaces: all, Pending: true})
	if err != nil {
		return h, err
	}
	h.Waiting = len(messages)
	for _, m := range messages {
		if m.Status.Outcome == api.OutcomeHeld {
			h.Held++
		}
	}
	return h, nil
}

func hostHealth(h *api.SessionHost) HostHealth {
	out := HostHealth{Name: h.Name, Ready: metav1.ConditionUnknown, Reason: api.ReasonReconciling, Scheduling: h.Spec.Scheduling}
	if c := meta.FindStatusCondition(h.Status.Conditions, api.ConditionHostReady); c != nil {
		out.Ready, out.Reason = c.Status, c.Reason
	}
	return out
}

// standingHealth is pure. The whole depends on what a start of everything would have
// started (specification, C187): what a configuration file declares with autoStart, also
// when somebody stopped it, and what a manifest says should run with autoStart. A session
// that was created by hand is reported and decides nothing.
func standingHealth(s *api.StandingSession) StandingHealth {
	row := RowOf(s)
	h := StandingHealth{Row: row, Note: "applied"}
	switch s.Labels[api.OriginLabel] {
	case api.OriginDeclared:
		h.Decides, h.Note = row.AutoStart, "declared"
	case api.OriginCreated:
		h.Note = "created"
	default:
		h.Decides = row.AutoStart && row.Wanted == api.SessionStateRunning
	}
	if !row.AutoStart {
		h.Note += ", not auto-started"
	}
	return h
}
