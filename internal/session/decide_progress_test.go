package session_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/session"
)

// world is a small model of what plans do: a harness that obeys or does not, ends by
// itself once, and leaves any trace behind.
type world struct {
	// steps are how far each state is from rest at most, by its number; walking marks
	// the states on the way to the one that is looked at.
	steps map[uint64]uint8
	way   []state
}

// state is what the model knows.
type state struct {
	point
	// crashes is how often a harness may still end right behind its start.
	crashes uint8
}

func (s state) index() uint64 { return s.point.index()*2 + uint64(s.crashes) }

// with gives a dimension another value.
func (s state) with(d int, v uint8) state {
	s.point[d] = v
	return s
}

func (s state) held(h session.Holder) state { return s.with(dHolder, number(holders, h)) }

// cleared sets dimensions to their quiet value.
func (s state) cleared(dims ...int) state {
	for _, d := range dims {
		s.point[d] = 0
	}
	return s
}

const (
	walking  = 255
	maxSteps = 20
)

// ended are the ways in which a live harness can end.
func (s state) ended() []state {
	s = s.cleared(dUnrecorded, dDraft, dArgsDiffer, dClearFailed, dDying).with(dBackoff, ahead)
	return []state{s.held(session.HolderDeadOurs), s.held(session.HolderDeadOurs).with(dDying, 1), s.held(session.HolderAbsent), s.held(session.HolderShared)}
}

// next are the states that a plan leads to; none when the object is gone.
func (s state) next(p plan) []state {
	switch p.Action {
	case session.ActionNone:
		return s.rest(p)
	case session.ActionDeliver:
		return []state{s.with(dMessageDue, 0)}
	case session.ActionSpawn:
		return s.spawned(p)
	case session.ActionClear:
		return []state{s.held(session.HolderAbsent).cleared(dOccupantKnown), s.with(dClearFailed, 1)}
	case session.ActionTerminate:
		s = s.with(dAsked, 1).with(dGrace, 0)
		return append(s.ended(), s)
	case session.ActionKill:
		return s.ended()
	case session.ActionSweep:
		return []state{s.with(dSwept, 1)}
	case session.ActionKillSession:
		return []state{s.held(session.HolderAbsent)}
	case session.ActionClose:
		return []state{s.cleared(dAsked, dGrace, dRestartRequested).with(dClosed, 1)}
	case session.ActionCleanUp:
		return []state{s.cleared(dAsked, dGrace, dRestartRequested, dStarted, dIntended, dResume, dProbe, dSwept).with(dClosed, 1)}
	case session.ActionPrepareCheckout:
		return []state{s.cleared(dCheckoutMissing), s.with(dObstacle, 1)}
	case session.ActionRemoveCheckout:
		return []state{s.cleared(dRemove), s.with(dRemove, notRemovable)}
	case session.ActionCompare:
		return []state{s.cleared(dAltered), s.with(dAltered, altered)}
	case session.ActionAsk:
		return []state{s.with(dVerdict, verdictAwaited), s.cleared(dVerdict)}
	case session.ActionAdopt:
		return []state{s.cleared(dUnrecorded, dClosed, dAsked, dGrace, dIntended).with(dStarted, 1)}
	case session.ActionRelease:
		return nil
	}
	panic("no such action: " + p.Action)
}

// spawned is a start: it holds, or the harness ends at once.
func (s state) spawned(p plan) []state {
	s = s.held(session.HolderLiveOurs).with(dStarted, 1).
		cleared(dIntended, dAsked, dGrace, dClosed, dRestartRequested, dArgsDiffer, dUnrecorded, dSwept, dClearFailed, dResume, dProbe, dBackoff, dVerdict, dAltered)
	out := []state{s}
	if p.Mode == api.LaunchResume {
		s = s.with(dResume, number(resumes, session.ResumePending))
		out = []state{s, s.with(dProbe, ahead)} // with evidence, and without
	}
	if s.crashes > 0 {
		s.crashes--
		out = append(out, s.ended()...)
		if p.Mode == api.LaunchResume {
			out = append(out, s.with(dResume, resumeRefuted).ended()...)
		}
	}
	return out
}

// rest is what comes while nothing is done: messages end, time passes, the harness
// speaks or obeys.
func (s state) rest(p plan) []state {
	if p.Messages == session.MessagesDrop || p.Messages == session.MessagesRefuse {
		s = s.with(dMessageDue, 0)
	}
	live, out := s.holder() == session.HolderLiveOurs, []state(nil)
	if p.Requeue > 0 {
		s = s.cleared(dEndpointsLeft, dDying)
		if s.point[dVerdict] == verdictAwaited {
			s = s.with(dVerdict, verdictLate)
		}
		if s.point[dBackoff] == ahead {
			s = s.with(dBackoff, reached)
		}
		if s.point[dRetain] == ahead && s.point[dClosed] == 1 {
			s = s.with(dRetain, reached)
		}
		if live && s.point[dProbe] == ahead {
			s = s.with(dProbe, reached)
		}
		if live && s.point[dAsked] == 1 && p.Reason == api.ReasonStopping {
			s.point[dGrace] = max(s.point[dGrace], 1)
			out = s.ended()
		}
	}
	if p.Reason == api.ReasonStarting && live && s.point[dProbe] == 0 {
		return append(out, s.with(dResume, number(resumes, session.ResumeProved)))
	}
	return append(out, s)
}

// atRest says what is wrong with a state in which nothing more happens, "" when
// nothing is.
func (s state) atRest(p plan) string {
	in := s.in()
	if in.Paused || in.Holder == session.HolderUnknown || in.Desired == "Levitating" {
		return ""
	}
	live := in.Holder == session.HolderLiveOurs
	switch in.Desired {
	case session.DesiredDeleted:
		if in.RemovalProblem != "" {
			return ""
		}
		return "a deleted object is not let go"
	case session.DesiredParked:
		if live || in.Holder == session.HolderDeadOurs && !in.Swept || in.Holder == session.HolderAbsent && (in.Started || in.Intended) && !in.Swept ||
			in.MessageDue && in.Delivery == api.DeliveryPolicyDrop || p.Reason != api.ReasonHostDraining {
			return "it is not parked"
		}
		return ""
	case session.DesiredStopped:
		if !in.Closed || in.MessageDue || live && (in.KillHarness || !retained(&in)) || in.Holder == session.HolderDeadOurs && !retained(&in) ||
			in.RemoveCheckout && in.RemovalProblem == "" && !live && in.Holder != session.HolderShared {
			return "it is not stopped as wanted"
		}
		return ""
	case session.DesiredCleanedUp:
		if in.RemovalProblem != "" || in.Holder == session.HolderShared && !in.Force {
			return ""
		}
		if in.RemoveCheckout || !in.Closed || in.MessageDue || in.Started || in.Intended || in.Holder.Ours() || in.EndpointsLeft != "" {
			return "it is not cleaned up"
		}
		return ""
	}
	if !live {
		return s.notStarted(in, p)
	}
	waits := len(in.Gates) > 0 || in.ArgsDiffer && in.Draft
	switch {
	case in.Closed || in.Unrecorded || !in.StopRequested.IsZero():
		return "the record is not as it is"
	case in.RestartRequested && in.Obstacle == nil && len(in.Gates) == 0:
		return "a restart that was asked for is forgotten"
	case in.MessageDue && in.Delivery != api.DeliveryPolicyHold && !waits:
		return "a message is forgotten"
	}
	return ""
}

// notStarted looks for what keeps a session from being started that is wanted.
func (s state) notStarted(in input, p plan) string {
	occupied := in.Holder != session.HolderAbsent && in.Holder != session.HolderDeadOurs && !(in.Holder == session.HolderDeadForeign ||
		in.Holder == session.HolderDeadOther && !in.OccupantKnown)
	switch {
	case len(in.Gates) == 0 && in.Tidy && in.Holder == session.HolderDeadOurs && !in.Dying && in.Obstacle == nil && !in.ClearFailed && p.Reason != api.ReasonConversationAltered:
		return "a terminal stays that is to be closed"
	case len(in.Gates) > 0 || in.Obstacle != nil || occupied || in.ClearFailed || p.Reason == api.ReasonConversationAltered:
		return ""
	case in.Registered && !in.Started && !in.Intended:
		if messageWaits(&in) || in.RestartRequested {
			return "a registered conversation is forgotten"
		}
		return ""
	case wantedAnew(&in) || in.Restart == api.RestartPolicyAlways || in.Restart == api.RestartPolicyOnMessage && messageWaits(&in):
		return "it is not started: " + p.Message
	case in.Restart == api.RestartPolicyNever && in.MessageDue:
		return "a message waits for ever"
	}
	return ""
}

// walk finds out how many steps a state is from rest at most.
func (w *world) walk(s state) (uint8, error) {
	id := s.index()
	if n, known := w.steps[id]; known {
		if n == walking {
			return 0, fmt.Errorf("goes round in a circle:\n%s", w.story(s))
		}
		return n, nil
	}
	w.steps[id] = walking
	w.way = append(w.way, s)
	p := session.Decide(s.in())
	next := s.next(p)
	var most uint8
	for _, n := range next {
		if n == s {
			if p.Action != session.ActionNone {
				return 0, fmt.Errorf("%s changes nothing:\n%s", p.Action, w.story(s))
			}
			continue // at rest
		}
		steps, err := w.walk(n)
		if err != nil {
			return 0, err
		}
		most = max(most, steps+1)
	}
	if most == 0 && p.Action == session.ActionNone {
		if wrong := s.atRest(p); wrong != "" {
			return 0, fmt.Errorf("comes to rest, and %s:\n%s", wrong, w.story(s))
		}
	}
	if most > maxSteps {
		return 0, fmt.Errorf("is %d steps from rest:\n%s", most, w.story(s))
	}
	w.way = w.way[:len(w.way)-1]
	w.steps[id] = most
	return most, nil
}

// story tells the way to a state.
func (w *world) story(to state) string {
	var out []string
	for _, s := range append(w.way, to) {
		p := session.Decide(s.in())
		out = append(out, fmt.Sprintf("\t%s\n\t\t%s: %s", s.point, p.Action, p.Message))
	}
	return strings.Join(out, "\n")
}

var _ = It("Decide comes to rest from every state, in no more than 20 steps and as wanted", func() {
	w := &world{steps: make(map[uint64]uint8, 1<<21)}
	var most uint8
	for _, s := range spaces {
		s.each(func(p point) bool {
			steps, err := w.walk(state{p, 1})
			if err != nil {
				Expect(err).NotTo(HaveOccurred(), "in the space %q", s.name)
			}
			most = max(most, steps)
			return true
		})
	}
	Expect(most).To(BeNumerically(">", 8), "the model does something")
	AddReportEntry("states", len(w.steps))
	AddReportEntry("longest way", most)
})
