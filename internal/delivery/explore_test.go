package delivery_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/delivery"
	"github.com/theloop-dev/the-loop/internal/harness"
	"github.com/theloop-dev/the-loop/internal/tmux"
)

// point is one state of a delivery and everything around it. Times are seconds before
// now; none is no time.
type point struct {
	// The tmux server.
	dead, off, pasted, submitted bool
	bodies, returns              int
	// The harness: a dialog is open; our text stands in its box; a return was pressed on
	// it; when it reported the prompt.
	dialog, inBox, pressed bool
	taken                  int
	// The agent: when it noted the attempt on its disk, what its newest listing shows, and
	// how far it came in this life.
	noted                      int
	sees                       tmuxView
	progressPasted, progressCR int
	progressEmpty              int
	own                        bool
	before                     harness.Taken
	phase                      delivery.Phase
}

type tmuxView struct{ dead, off, pasted, submitted bool }

const (
	none = -1
	// oldest is where the past ends: what lies further back is as good as this.
	oldest = 4
)

func (s point) view() tmuxView { return tmuxView{s.dead, s.off, s.pasted, s.submitted} }

func (s point) final() bool {
	return s.phase == delivery.Submitted || s.phase == delivery.Typed || s.phase == delivery.Lost
}

// pass lets a second pass.
func (s point) pass() point {
	for _, t := range []*int{&s.taken, &s.noted, &s.progressPasted, &s.progressCR, &s.progressEmpty} {
		if *t != none {
			*t = min(*t+1, oldest)
		}
	}
	return s
}

// journey is one setting in which every order of events is tried.
type journey struct {
	gap      time.Duration
	evidence bool
	// equal: a message with the same text was taken just before.
	equal bool
	// crashes: the agent may start anew, and tmux may not answer.
	crashes bool
	// box: the input box can be seen, and texts can be lost on their way into it.
	box bool
}

const takenWithin = 2 * time.Second

// advance takes the agent one step further and checks what it did.
func (j journey) advance(s point, a answer) (point, error) {
	at := func(ago int) time.Time {
		if ago == none {
			return time.Time{}
		}
		return noon.Add(-time.Duration(ago) * time.Second)
	}
	p := &pane{dead: s.dead, inputOff: s.off, bodies: s.bodies, returns: s.returns, answer: a}
	seen := (&pane{dead: s.sees.dead, inputOff: s.sees.off}).seen()
	for _, m := range []struct {
		set  bool
		mark *string
	}{{s.pasted, &p.pasted}, {s.submitted, &p.submitted}, {s.sees.pasted, &seen.Pasted}, {s.sees.submitted, &seen.Submitted}} {
		if m.set {
			*m.mark = id
		}
	}
	r := delivery.Request{
		ID: id, Text: body, Digest: digest, After: mark(at(max(s.noted, 0)).Add(-time.Millisecond)), Target: ours, Session: seen, WhileBusy: true,
		Begin: func() error {
			s.noted = max(s.noted, 0) // the first time counts
			return nil
		},
		Traits:   harness.Traits{Evidence: j.evidence, SubmitGap: j.gap, TakenWithin: takenWithin, ReadyWithin: takenWithin},
		Progress: delivery.Progress{Pasted: at(s.progressPasted), Submitted: at(s.progressCR), Empty: at(s.progressEmpty), Own: s.own, Before: s.before},
	}
	if j.box {
		r.Empty = func() bool { return !s.inBox && p.bodies == s.bodies }
	}
	if j.evidence {
		r.State = harness.State{Ready: true, Activity: harness.ActivityIdle}
		if s.dialog {
			r.State.Activity = harness.ActivityAwaitingInput
		}
	}
	if j.equal {
		r.State.Taken = append(r.State.Taken, told(noon.Add(-(oldest+1)*time.Second)))
	}
	if s.taken != none {
		r.State.Taken = append(r.State.Taken, told(at(s.taken)))
	}
	step, err := delivery.Advance(context.Background(), p, r, noon)
	if err == nil {
		s.phase = step.Phase
	}
	if bad := j.check(s, p, step, err); bad != nil {
		return s, bad
	}
	ago := func(t time.Time) int {
		if t.IsZero() {
			return none
		}
		return int(noon.Sub(t) / time.Second)
	}
	if err == nil { // what an error leaves behind is not kept
		s.progressPasted, s.progressCR, s.own = ago(step.Progress.Pasted), ago(step.Progress.Submitted), step.Progress.Own
		s.progressEmpty, s.before = ago(step.Progress.Empty), step.Progress.Before
	}
	s.inBox = s.inBox || p.bodies > s.bodies
	if p.returns > s.returns && s.inBox {
		s.inBox, s.pressed = false, true
	}
	s.bodies, s.returns, s.pasted, s.submitted = p.bodies, p.returns, p.pasted == id, p.submitted == id
	return s, nil
}

// check is what must hold for every single step. s still is the point before it, but
// for its phase.
func (j journey) check(s point, p *pane, step delivery.Step, err error) error {
	switch typed := p.bodies + p.returns - s.bodies - s.returns; {
	case err != nil && p.answer == "":
		return err
	case p.bodies > 1 || p.returns > 1:
		return fmt.Errorf("typed twice: %d texts, %d returns", p.bodies, p.returns)
	case len(p.wrong) > 0:
		return fmt.Errorf("typed something else: %q", p.wrong)
	case typed > 0 && (s.dead || s.off || j.evidence && s.dialog):
		return fmt.Errorf("typed where nothing may be typed")
	case typed > 0 && s.noted == none:
		return fmt.Errorf("typed before it was noted")
	case typed > 1 && j.gap > 0:
		return fmt.Errorf("typed text and return in one go")
	case j.intoEmpty(s, p):
		return fmt.Errorf("a return into an empty box")
	case p.returns > p.bodies:
		return fmt.Errorf("a return without a text")
	case p.answer != "":
		return nil // there is no step
	case step.Phase == delivery.Submitted && s.taken == none:
		return fmt.Errorf("a success without evidence")
	case step.Phase == delivery.Submitted && typed > 0:
		return fmt.Errorf("typed with the evidence there")
	case (step.Phase == delivery.Typed || step.Phase == delivery.Lost) && s.taken != none:
		return fmt.Errorf("%s with the evidence there", step.Phase)
	case j.neverSeen(s, p, step):
		return nil // it was lost, or submitted by a person without a word of the harness
	case step.Phase == delivery.Typed && (p.returns == 0 || j.evidence && noon.Sub(step.Progress.Submitted) < takenWithin):
		return fmt.Errorf("given up too early")
	case step.Phase == delivery.Lost && (p.bodies == 0 || !s.dead && !s.off):
		return fmt.Errorf("lost, and it is not")
	case step.Phase == delivery.Held && step.Detail == "":
		return fmt.Errorf("held without a reason")
	case step.Phase == delivery.Waiting && step.After <= 0:
		return fmt.Errorf("waits without an end")
	case step.Phase == "":
		return fmt.Errorf("no phase")
	}
	return nil
}

// intoEmpty reports a return that was typed into a box that was seen to be empty.
func (j journey) intoEmpty(s point, p *pane) bool {
	return j.box && p.returns > s.returns && !s.inBox && p.bodies == s.bodies
}

// neverSeen reports that a text was given up that did not appear in its time.
func (j journey) neverSeen(s point, p *pane, step delivery.Step) bool {
	return j.box && !s.inBox && p.returns == 0 && step.Phase == delivery.Typed && noon.Sub(step.Progress.Pasted) >= takenWithin
}

// next are the points that one event leads to, by the name of the event.
func (j journey) next(s point) (map[string]point, error) {
	out := map[string]point{"a second passes": s.pass()}
	answers := []answer{""}
	if j.crashes {
		restarted := s
		restarted.progressPasted, restarted.progressCR, restarted.own, restarted.before, restarted.sees = none, none, false, harness.Taken{}, s.view()
		restarted.progressEmpty = none
		out["the agent starts anew"] = restarted
		answers = append(answers, lost, unheard)
	}
	for _, a := range answers {
		next, err := j.advance(s, a)
		if err != nil {
			return nil, fmt.Errorf("advance with the answer %q: %w", a, err)
		}
		out["advance "+string(a)] = next
	}
	looked := s
	looked.sees = s.view()
	out["the agent lists"] = looked
	if s.dead {
		return out, nil
	}
	for name, change := range map[string]func(*point){
		"the pane dies":    func(s *point) { s.dead = true },
		"input is toggled": func(s *point) { s.off = !s.off },
		"a dialog toggles": func(s *point) { s.dialog = !s.dialog },
		"a person presses Enter": func(s *point) {
			if s.inBox && !s.dialog {
				s.inBox, s.pressed = false, true
			}
		},
		"the harness reports": func(s *point) {
			if s.pressed && j.evidence {
				s.pressed, s.taken = false, 0
			}
		},
		"the harness swallows it": func(s *point) { s.pressed = false },
		"the text is lost":        func(s *point) { s.inBox = s.inBox && !j.box },
	} {
		next := s
		change(&next)
		out[name] = next
	}
	return out, nil
}

// ends runs the delivery with nothing more going wrong.
func (j journey) ends(s point) error {
	s.dialog, s.off = false, false
	begun := s.bodies > 0
	for range 12 {
		s.sees = s.view()
		var err error
		if s, err = j.advance(s, ""); err != nil {
			return err
		}
		if s.final() {
			if !begun && j.evidence && s.phase != delivery.Submitted {
				return fmt.Errorf("nothing went wrong, and it is %s", s.phase)
			}
			return nil
		}
		if s.pressed && j.evidence {
			s.pressed, s.taken = false, 0
		}
		s = s.pass()
	}
	return fmt.Errorf("does not end: %+v", s)
}

// explore visits every point that can be reached.
func (j journey) explore() (visited int, err error) {
	start := point{taken: none, noted: none, progressPasted: none, progressCR: none, progressEmpty: none}
	type trail struct {
		from  point
		event string
	}
	came := map[point]trail{start: {}}
	story := func(s point) (out []string) {
		for s != start {
			out = append([]string{came[s].event}, out...)
			s = came[s].from
		}
		return out
	}
	for queue := []point{start}; len(queue) > 0; queue = queue[1:] {
		s := queue[0]
		if s.final() {
			continue // the message is done and never comes back
		}
		next, err := j.next(s)
		if err != nil {
			return len(came), fmt.Errorf("%w\nafter %q\nat %+v", err, story(s), s)
		}
		if !s.dead {
			if err := j.ends(s); err != nil {
				return len(came), fmt.Errorf("%w\nafter %q\nfrom %+v", err, story(s), s)
			}
		}
		for event, n := range next {
			if _, known := came[n]; !known {
				came[n] = trail{s, event}
				queue = append(queue, n)
			}
		}
	}
	return len(came), nil
}

var _ = DescribeTable("every order of events: text and return are each typed at most once, and the end is told truly (C180, P10, P14, P40, P45)",
	func(j journey) {
		visited, err := j.explore()
		Expect(err).NotTo(HaveOccurred())
		Expect(visited).To(BeNumerically(">", 200))
		AddReportEntry("points", visited)
	},
	Entry("with a gap, crashes and lost answers", journey{gap: time.Second, evidence: true, crashes: true}),
	Entry("without a gap", journey{evidence: true, crashes: true}),
	Entry("without evidence", journey{gap: time.Second, crashes: true}),
	Entry("with the input box in sight", journey{gap: time.Second, evidence: true, crashes: true, box: true}),
	Entry("behind a message of the same text", journey{gap: time.Second, evidence: true, equal: true, crashes: true}),
)

var _ = Describe("the fake", func() {
	It("keeps its markers as the server does", func() {
		p := &pane{}
		result := func(r tmux.Result, err error) tmux.Outcome {
			GinkgoHelper()
			Expect(err).NotTo(HaveOccurred())
			return r.Outcome
		}
		ctx := context.Background()
		Expect(result(p.Submit(ctx, ours, id))).To(Equal(tmux.Refused))
		Expect(result(p.Paste(ctx, ours, id, []byte(body)))).To(Equal(tmux.Done))
		Expect(result(p.Paste(ctx, ours, id, []byte(body)))).To(Equal(tmux.Already))
		Expect(result(p.Submit(ctx, ours, id))).To(Equal(tmux.Done))
		Expect(result(p.Submit(ctx, ours, id))).To(Equal(tmux.Already))
	})
})
