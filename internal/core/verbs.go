package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

// result is what a verb returns of a session.
func (c *Core) result(s Session, o Outcome, detail string) Result {
	return Result{Session: s, Name: s.GetName(), Outcome: o, Detail: detail, DryRun: c.DryRun}
}

// startPlan is what a start must write, decided on what is stored.
type startPlan struct {
	// running: the session runs already, and nothing is to be started.
	running bool
	// restart: spec asks for a running session already, so that only a token starts it.
	restart bool
	// unpause: a paused session takes messages again by a start (specification 3.5).
	unpause bool
}

// planStart is pure.
func planStart(s Session) startPlan {
	p := startPlan{unpause: policyOf(s) == api.DeliveryPolicyDrop}
	if s.WantedState() != api.SessionStateRunning && s.WantedState() != "" {
		return p
	}
	p.running = Running(s) == metav1.ConditionTrue
	c := current(s, api.ConditionReady)
	// One that was never looked at is started by its spec alone. What waits for a host, a
	// gate or a person is not helped by a token.
	p.restart = !p.running && c != nil && slices.Contains([]string{
		api.ReasonExited, api.ReasonOOMKilled, api.ReasonCrashLoop, api.ReasonNotStarted, api.ReasonSpawnFailed,
	}, c.Reason)
	return p
}

// Start makes a session run: stopped ones by their spec, ended ones by asking for one
// restart. It never ends what runs. A paused session takes messages again.
func (c *Core) Start(ctx context.Context, s Session) (Result, error) {
	asked := ""
	var plan startPlan
	_, err := c.change(ctx, s, func() error {
		if s.GetDeletionTimestamp() != nil {
			return refuse(ErrFailed, s.GetName()+" is being deleted", "start it again once it is gone")
		}
		plan, asked = planStart(s), ""
		*state(s) = api.SessionStateRunning
		if plan.unpause {
			*policy(s) = api.DeliveryPolicyDeliver
		}
		if plan.restart {
			asked = token()
			annotate(s, api.RestartRequestedAnnotation, asked)
		}
		return nil
	})
	if err != nil {
		return Result{}, err
	}
	if plan.running {
		detail := "nothing was started"
		if plan.unpause {
			return c.result(s, OutcomeDelivering, "it runs, and takes messages again"), nil
		}
		return c.result(s, OutcomeAlreadyRunning, detail), nil
	}
	return c.awaitStart(ctx, s, asked)
}

// awaitStart awaits the outcome of a start.
func (c *Core) awaitStart(ctx context.Context, s Session, asked string) (Result, error) {
	if !c.waits() {
		return c.result(s, OutcomeAccepted, "its start was not awaited"), nil
	}
	p, err := c.await(ctx, s, func() progress { return starting(s, asked) })
	if err != nil {
		return Result{}, err
	}
	if !p.done {
		p = overdue(s, p)
	}
	return c.result(s, p.outcome, p.detail), nil
}

// Restart ends the harness of a session and starts it again, with its conversation.
func (c *Core) Restart(ctx context.Context, s Session) (Result, error) {
	asked := token()
	_, err := c.change(ctx, s, func() error {
		if s.GetDeletionTimestamp() != nil {
			return refuse(ErrFailed, s.GetName()+" is being deleted", "")
		}
		*state(s) = api.SessionStateRunning
		annotate(s, api.RestartRequestedAnnotation, asked)
		return nil
	})
	if err != nil {
		return Result{}, err
	}
	r, err := c.awaitStart(ctx, s, asked)
	if err == nil && r.Outcome == OutcomeStarted {
		r.Outcome = OutcomeRestarted
	}
	return r, err
}

// Stop ends the harness of a session and keeps its conversation: the next start resumes
// it. What does not run is stopped too, so that nothing starts it.
func (c *Core) Stop(ctx context.Context, s Session) (Result, error) {
	was := metav1.ConditionUnknown
	wrote, err := c.change(ctx, s, func() error {
		if s.WantedState() == api.SessionStateCleanedUp {
			return nil // it is more than stopped
		}
		was = Running(s)
		*state(s) = api.SessionStateStopped
		return nil
	})
	if err != nil {
		return Result{}, err
	}
	if !c.waits() {
		if !wrote {
			return c.result(s, OutcomeUnchanged, "it is to be stopped already"), nil
		}
		return c.result(s, OutcomeAccepted, "its end was not awaited"), nil
	}
	p, err := c.await(ctx, s, func() progress { return ending(s, s.WantedState()) })
	if err != nil {
		return Result{}, err
	}
	if p.outcome == OutcomeStopped && was == metav1.ConditionFalse {
		p.outcome = OutcomeNotRunning
	}
	return c.result(s, p.outcome, p.detail), nil
}

// SetDelivery says what becomes of messages for a session: Drop pauses it (what is said
// meanwhile is dropped), Hold keeps messages queued, Deliver types them again. The
// terminal is not touched.
func (c *Core) SetDelivery(ctx context.Context, s Session, want api.DeliveryPolicy) (Result, error) {
	words := map[api.DeliveryPolicy]struct {
		outcome Outcome
		detail  string
	}{
		api.DeliveryPolicyDrop:    {OutcomePaused, "what is said to it is dropped until it is resumed; its terminal is left as it is"},
		api.DeliveryPolicyHold:    {OutcomeHeld, "what is said to it is kept until it is resumed; its terminal is left as it is"},
		api.DeliveryPolicyDeliver: {OutcomeDelivering, "it takes messages again"},
	}
	w, ok := words[want]
	if !ok {
		return Result{}, invalid(fmt.Sprintf("%q is no delivery policy", want), "choose Deliver, Hold or Drop")
	}
	wrote, err := c.change(ctx, s, func() error {
		if policyOf(s) != want {
			*policy(s) = want
		}
		return nil
	})
	switch {
	case err != nil:
		return Result{}, err
	case !wrote && want == api.DeliveryPolicyDeliver:
		return c.result(s, OutcomeUnchanged, "it was neither paused nor held"), nil
	case !wrote:
		return c.result(s, OutcomeUnchanged, "it is "+string(w.outcome)+" already"), nil
	}
	return c.result(s, w.outcome, w.detail), nil
}

// annotate sets one annotation.
func annotate(o metav1.Object, name, value string) {
	all := o.GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	all[name] = value
	o.SetAnnotations(all)
}

// Each carries out a verb for each of the sessions at the same time, so that one which
// takes its time keeps no other waiting. One failure stops no other: it is a result of
// its own.
func Each[S Session](sessions []S, verb func(S) (Result, error)) ([]Result, error) {
	type answer struct {
		i   int
		r   Result
		err error
	}
	answers := make(chan answer)
	for i, s := range sessions {
		go func() {
			r, err := verb(s)
			answers <- answer{i, r, err}
		}()
	}
	out := make([]Result, len(sessions))
	var problems []error
	for range sessions {
		a := <-answers
		if a.err != nil {
			s := sessions[a.i]
			a.r = Result{Session: s, Name: s.GetName(), Outcome: OutcomeFailed, Detail: a.err.Error()}
			if errors.Is(a.err, context.Canceled) {
				problems = append(problems, a.err)
			}
		}
		out[a.i] = a.r
	}
	if len(problems) > 0 {
		return out, problems[0]
	}
	return out, nil
}

// Errs is nil when all results are OK, else one error that is ErrFailed when any failed,
// and ErrUnconfirmed when all that is missing are confirmations.
func Errs(results []Result) error {
	is, names := ErrUnconfirmed, []string(nil)
	for _, r := range results {
		if r.OK() {
			continue
		}
		names = append(names, r.Name)
		if r.Outcome == OutcomeFailed {
			is = ErrFailed
		}
	}
	if len(names) == 0 {
		return nil
	}
	return refuse(is, fmt.Sprintf("not done for %s", strings.Join(names, ", ")), "")
}
