package delivery_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/delivery"
	"github.com/theloop-dev/the-loop/internal/harness"
	"github.com/theloop-dev/the-loop/internal/harness/hook"
	"github.com/theloop-dev/the-loop/internal/tmux"
)

func TestDelivery(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "delivery")
}

const (
	id     = "message-1"
	body   = "Message (GitHub):\n\nlook"
	digest = "digest-of-body"
)

var (
	noon  = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	epoch = tmux.Epoch{PID: 77, StartTime: 1000}
	ours  = tmux.Target{UID: "uid-1", SessionID: "$1", PaneID: "%1", Epoch: epoch}
)

// pane is one pane of a tmux server, with the session's delivery markers: they are
// looked at and set in the same step in which something is typed, as the server does.
type pane struct {
	gone, dead, inputOff, plain bool
	pasted, submitted           string
	again                       bool

	// bodies and returns count what was typed, wrong what else was.
	bodies, returns int
	wrong           []string
	// answer stands for the server's way to us; nil is a good one.
	answer answer
}

// answer is what can happen to a command.
type answer string

const (
	// lost: it did not run, and there is no answer.
	lost answer = "lost"
	// unheard: it ran, and its answer was lost.
	unheard answer = "unheard"
)

var unanswered = &tmux.UnknownError{Op: "test", Reason: tmux.ReasonTimeout}

// guard is the part of the guard that both operations share.
func (p *pane) guard(t tmux.Target) tmux.Outcome {
	switch {
	case p.gone:
		return tmux.Gone
	case t != ours, p.dead, p.inputOff:
		return tmux.Refused
	}
	return tmux.Done
}

func (p *pane) run(operation func() tmux.Outcome) (tmux.Result, error) {
	if p.answer == lost {
		return tmux.Result{}, unanswered
	}
	o := operation()
	if p.answer == unheard {
		return tmux.Result{}, unanswered
	}
	return tmux.Result{Outcome: o, Detail: "as the test says"}, nil
}

// Paste implements delivery.Terminal.
func (p *pane) Paste(_ context.Context, t tmux.Target, delivery string, text []byte) (tmux.Result, error) {
	return p.run(func() tmux.Outcome {
		switch o := p.guard(t); {
		case o != tmux.Done:
			return o
		case p.pasted == delivery:
			return tmux.Already
		case p.plain:
			return tmux.NotReady
		}
		p.pasted = delivery
		if string(text) != body || delivery != id {
			p.wrong = append(p.wrong, string(text))
		}
		p.bodies++
		return tmux.Done
	})
}

// Submit implements delivery.Terminal.
func (p *pane) Submit(_ context.Context, t tmux.Target, delivery string) (tmux.Result, error) {
	return p.run(func() tmux.Outcome {
		switch o := p.guard(t); {
		case o != tmux.Done:
			return o
		case p.submitted == delivery:
			return tmux.Already
		case p.pasted != delivery:
			return tmux.Refused
		}
		p.submitted = delivery
		p.returns++
		return tmux.Done
	})
}

// Resubmit implements delivery.Terminal.
func (p *pane) Resubmit(_ context.Context, t tmux.Target, delivery string) (tmux.Result, error) {
	return p.run(func() tmux.Outcome {
		if o := p.guard(t); o != tmux.Done || p.submitted != delivery || p.again {
			return tmux.Refused
		}
		p.again = true
		p.returns++
		return tmux.Done
	})
}

// seen is the session as a listing shows it now.
func (p *pane) seen() tmux.Session {
	s := tmux.Session{ID: ours.SessionID, Name: "loop-x", UID: ours.UID, Pasted: p.pasted, Submitted: p.submitted}
	if !p.gone {
		s.Panes = []tmux.Pane{{ID: ours.PaneID, PID: 4242, Dead: p.dead, InputOff: p.inputOff}}
	}
	return s
}

// traits are those of a harness with evidence.
var traits = harness.Traits{Evidence: true, SubmitGap: time.Second, TakenWithin: 10 * time.Second}

// request is a delivery to a pane whose harness is at its prompt; change adapts it.
func request(p *pane, change ...func(*delivery.Request)) delivery.Request {
	r := delivery.Request{
		ID: id, Text: body, Digest: digest, After: mark(noon.Add(-time.Minute)), Target: ours, Session: p.seen(),
		State: harness.State{Ready: true, Activity: harness.ActivityIdle}, Traits: traits, WhileBusy: true,
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

// mark is a place in what the hooks told that is told by its time.
func mark(at time.Time) hook.Mark { return hook.Mark{Number: at.UnixMilli()} }

// told is the harness's word that it took the text.
func told(at time.Time) harness.Taken { return harness.Taken{Digest: digest, Time: at, Mark: mark(at)} }

// took adds the harness's word that it took the text.
func took(at time.Time) func(*delivery.Request) {
	return func(r *delivery.Request) {
		r.State.Taken = append(r.State.Taken, told(at))
	}
}
