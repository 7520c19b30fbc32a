package session_test

import (
	"fmt"
	"strings"
	"time"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/session"
)

// dimension is one input of Decide with its values, by number. Value 0 is the quiet one.
type dimension struct {
	name string
	size int
}

// The dimensions of Decide's input, in the order of dimensions.
const (
	dDesired = iota
	dHolder
	dPaused
	dGates
	dDelivery
	dRestart
	dRestartRequested
	dObstacle
	dKeepSession
	dKillHarness
	dCanResume
	dStarted
	dRegistered
	dIntended
	dUnrecorded
	dClosed
	dAsked
	dGrace
	dResume
	dProbe
	dBackoff
	dArgsDiffer
	dDraft
	dOccupantKnown
	dClearFailed
	dSwept
	dEndpointsLeft
	dMessageDue
	dDying
	dTidy
	dRetain
	dForce
	dCheckoutMissing
	dRemove
	dVerdict
	dLost
	dAltered
	dCount
)

var (
	now   = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	grace = 5 * time.Second

	desires = []session.Desired{session.DesiredRunning, session.DesiredStopped, session.DesiredCleanedUp, session.DesiredDeleted, session.DesiredParked, "Levitating"}
	holders = []session.Holder{
		session.HolderAbsent, session.HolderUnknown, session.HolderLiveOurs, session.HolderShared, session.HolderDeadOurs,
		session.HolderLiveOther, session.HolderDeadOther, session.HolderLiveForeign, session.HolderDeadForeign,
	}
	deliveries = []api.DeliveryPolicy{api.DeliveryPolicyDeliver, api.DeliveryPolicyHold, api.DeliveryPolicyDrop}
	restarts   = []api.RestartPolicy{api.RestartPolicyAlways, api.RestartPolicyOnMessage, api.RestartPolicyNever}
	modes      = []api.LaunchMode{"", api.LaunchFresh, api.LaunchResume}
	resumes    = []session.Resume{session.ResumeNone, session.ResumePending, session.ResumeProved, session.ResumePending}
	// resumeRefuted is the last of resumes: pending, and its harness ended by itself.
	resumeRefuted = uint8(3)

	gates    = []string{"phase-selection"}
	obstacle = &session.Obstacle{Reason: "InTheWay", Message: "in the way"}

	// asked are the times at which a harness was asked to end: its grace runs, ends now,
	// is over; or the clock has jumped back since.
	asked = []time.Time{now.Add(-time.Second), now.Add(-grace), now.Add(-time.Hour), now.Add(time.Hour)}
	// deadlines are the positions of now to a deadline: none, before, at, after it.
	deadlines = []time.Time{{}, now.Add(7 * time.Second), now, now.Add(-time.Hour)}
)

// Positions in deadlines.
const (
	ahead   = 1
	reached = 2
)

// notRemovable is a checkout that could not be removed.
const notRemovable = 2

// What is known of the file of a conversation, but for that it is as it was.
const (
	uncompared = 1
	altered    = 2
)

// What is known of the model and the effort of a harness that ended, but for nothing to
// ask: it is to be asked, the start is held for its answer, or no longer.
const (
	verdictOutdated = 1
	verdictAwaited  = 2
	verdictLate     = 3
)

var dimensions = [dCount]dimension{
	dDesired: {"desired", 6}, dHolder: {"holder", 9}, dPaused: {"paused", 2}, dGates: {"gates", 2}, dDelivery: {"delivery", 3},
	dRestart: {"restart", 3}, dRestartRequested: {"restartRequested", 2}, dObstacle: {"obstacle", 2}, dKeepSession: {"keepSession", 2},
	dKillHarness: {"killHarness", 2}, dCanResume: {"canResume", 2}, dStarted: {"started", 2}, dRegistered: {"registered", 2},
	dIntended: {"intended", 3}, dUnrecorded: {"unrecorded", 2}, dClosed: {"closed", 2}, dAsked: {"stopRequested", 2}, dGrace: {"grace", 4},
	dResume: {"resume", 4}, dProbe: {"probe", 4}, dBackoff: {"backoff", 4}, dArgsDiffer: {"argsDiffer", 2}, dDraft: {"draft", 2},
	dOccupantKnown: {"occupantKnown", 2}, dClearFailed: {"clearFailed", 2}, dSwept: {"swept", 2}, dEndpointsLeft: {"endpointsLeft", 2},
	dMessageDue: {"messageDue", 2}, dDying: {"dying", 2}, dTidy: {"tidy", 2}, dRetain: {"retain", 4}, dForce: {"force", 2},
	dCheckoutMissing: {"checkoutMissing", 2}, dRemove: {"removeCheckout", 3}, dVerdict: {"verdict", 4}, dLost: {"lost", 2},
	dAltered: {"altered", 3},
}

// point is one combination of all inputs.
type point [dCount]uint8

func (p point) holder() session.Holder { return holders[p[dHolder]] }

// in is the Input of a point.
func (p point) in() session.Input {
	in := session.Input{
		Desired: desires[p[dDesired]], Holder: holders[p[dHolder]], Paused: p[dPaused] == 1, Delivery: deliveries[p[dDelivery]],
		Restart: restarts[p[dRestart]], RestartRequested: p[dRestartRequested] == 1, KeepSession: p[dKeepSession] == 1,
		KillHarness: p[dKillHarness] == 1, Grace: grace, CanResume: p[dCanResume] == 1 && p[dLost] == 0, Lost: p[dLost] == 1, Started: p[dStarted] == 1,
		Registered: p[dRegistered] == 1, Intended: p[dIntended] > 0, IntendedMode: modes[p[dIntended]], Unrecorded: p[dUnrecorded] == 1,
		Closed: p[dClosed] == 1, Resume: resumes[p[dResume]], ResumeRefuted: p[dResume] == resumeRefuted, ProbeUntil: deadlines[p[dProbe]], BackoffUntil: deadlines[p[dBackoff]],
		ArgsDiffer: p[dArgsDiffer] == 1, Draft: p[dDraft] == 1, HolderDetail: "somebody", OccupantKnown: p[dOccupantKnown] == 1,
		ClearFailed: p[dClearFailed] == 1, Swept: p[dSwept] == 1, MessageDue: p[dMessageDue] == 1,
		Dying: p[dDying] == 1, Tidy: p[dTidy] == 1, RetainUntil: deadlines[p[dRetain]], Force: p[dForce] == 1,
		CheckoutMissing: p[dCheckoutMissing] == 1, RemoveCheckout: p[dRemove] > 0,
		Now: now,
	}
	if p[dEndpointsLeft] == 1 {
		in.EndpointsLeft = "that of a pull request"
	}
	switch p[dVerdict] {
	case verdictOutdated:
		in.VerdictOutdated = true
	case verdictAwaited:
		in.VerdictUntil = deadlines[ahead]
	case verdictLate:
		in.VerdictUntil = deadlines[reached]
	}
	switch p[dAltered] {
	case uncompared:
		in.Uncompared = true
	case altered:
		in.Altered = "somebody else wrote to it"
	}
	if p[dRemove] == notRemovable {
		in.RemovalProblem = "git says no"
	}
	if p[dGates] == 1 {
		in.Gates = gates
	}
	if p[dObstacle] == 1 {
		in.Obstacle = obstacle
	}
	if p[dAsked] == 1 {
		in.StopRequested = asked[p[dGrace]]
	}
	return in
}

// index is a number of its own for each point.
func (p point) index() uint64 {
	var n uint64
	for d := range dimensions {
		n = n*uint64(dimensions[d].size) + uint64(p[d])
	}
	return n
}

// String names what is not quiet.
func (p point) String() string {
	out := []string{fmt.Sprintf("desired=%s holder=%s", desires[p[dDesired]], p.holder())}
	for d := dHolder + 1; d < dCount; d++ {
		if p[d] > 0 {
			out = append(out, fmt.Sprintf("%s=%d", dimensions[d].name, p[d]))
		}
	}
	return strings.Join(out, " ")
}

// space is a part of all combinations: those of the named states and holders, in which
// the named dimensions vary and all others are said to make no difference. That they
// make none is tested with it, see scrambled.
type space struct {
	name    string
	desired []session.Desired
	holders []session.Holder
	varies  []int
	// fixed are values that all points of the space have.
	fixed map[int]uint8
	// quiet are dimensions that make a difference and have no value here but the quiet one:
	// other spaces have the others.
	quiet []int
	// repeats is how often each point is tried with other values of what makes no
	// difference; 0 is once.
	repeats int
}

// notLive are what decides whether and how a session is started that does not live.
var notLive = []int{
	dRegistered, dStarted, dIntended, dClosed, dRestartRequested, dAsked, dResume, dRestart, dBackoff, dMessageDue, dDelivery, dObstacle,
}

// notHere are what the spaces of sessions that do not live leave to others.
var notHere = []int{dGates, dDying, dVerdict, dAltered}

// resumed are what decides whether a start goes on with a conversation; unhurried what
// decides whether there is one, which other spaces have.
var (
	resumed   = []int{dRegistered, dStarted, dIntended, dClosed, dRestartRequested, dAsked, dResume, dMessageDue, dSwept, dCanResume, dLost, dTidy}
	unhurried = []int{dGates, dDying, dVerdict, dRestart, dBackoff, dDelivery, dObstacle, dClearFailed, dCheckoutMissing}
)

func plus(a []int, b ...int) []int { return append(a[:len(a):len(a)], b...) }

func only(h ...session.Holder) []session.Holder { return h }

// spaces together are the whole product of Decide's inputs.
var spaces = []space{
	{name: "paused", desired: desires, holders: holders, fixed: map[int]uint8{dPaused: 1}, repeats: 500},
	{name: "tmux unknown", desired: desires, holders: only(session.HolderUnknown), repeats: 2000},
	{name: "a state of a newer version", desired: desires[5:], holders: holders, repeats: 200},
	{name: "stopped or deleted", desired: []session.Desired{session.DesiredStopped, session.DesiredDeleted}, holders: holders, quiet: []int{dEndpointsLeft},
		varies: []int{dKeepSession, dKillHarness, dAsked, dGrace, dStarted, dIntended, dSwept, dClosed, dUnrecorded, dRetain, dRemove}, repeats: 2},
	{name: "stopped, whatever its endpoints do", desired: []session.Desired{session.DesiredStopped}, holders: holders,
		varies: []int{dKeepSession, dKillHarness, dAsked, dGrace, dStarted, dSwept, dClosed}, fixed: map[int]uint8{dEndpointsLeft: 1},
		quiet: []int{dIntended, dUnrecorded, dRetain, dRemove}},
	{name: "deleted, and its endpoints are not", desired: []session.Desired{session.DesiredDeleted}, holders: holders,
		fixed: map[int]uint8{dEndpointsLeft: 1}, repeats: 2000},
	{name: "parked", desired: []session.Desired{session.DesiredParked}, holders: holders,
		varies: []int{dAsked, dGrace, dStarted, dIntended, dSwept, dClosed, dUnrecorded, dDelivery, dMessageDue}, repeats: 3},
	{name: "cleaned up", desired: []session.Desired{session.DesiredCleanedUp}, holders: holders,
		varies: []int{dAsked, dGrace, dStarted, dIntended, dSwept, dClosed, dEndpointsLeft, dUnrecorded, dForce, dRemove}, repeats: 3},
	{name: "running and live", desired: desires[:1], holders: only(session.HolderLiveOurs),
		varies: []int{dGates, dAsked, dGrace, dClosed, dUnrecorded, dRestartRequested, dObstacle, dResume, dProbe, dDelivery, dMessageDue, dArgsDiffer, dDraft}, repeats: 2},
	{name: "running, not live and gated", desired: desires[:1], holders: only(session.HolderAbsent, session.HolderShared, session.HolderDeadOurs,
		session.HolderLiveOther, session.HolderDeadOther, session.HolderLiveForeign, session.HolderDeadForeign),
		varies: []int{dDelivery, dMessageDue}, fixed: map[int]uint8{dGates: 1}, quiet: []int{dDying}, repeats: 2000},
	{name: "running and dying", desired: desires[:1], holders: only(session.HolderDeadOurs),
		varies: []int{dDelivery, dMessageDue}, fixed: map[int]uint8{dDying: 1}, repeats: 2000},
	{name: "running and to be asked first", desired: desires[:1], holders: only(session.HolderAbsent, session.HolderDeadOurs),
		varies: plus(notLive, dTidy), fixed: map[int]uint8{dVerdict: verdictOutdated}, quiet: notHere},
	{name: "running and asked first", desired: desires[:1], holders: only(session.HolderAbsent, session.HolderDeadOurs),
		varies: plus(notLive, dTidy), fixed: map[int]uint8{dVerdict: verdictAwaited}, quiet: notHere},
	{name: "running and asked first, without an answer in time", desired: desires[:1], holders: only(session.HolderAbsent),
		varies: plus(notLive, dSwept, dCanResume), fixed: map[int]uint8{dVerdict: verdictLate}, quiet: plus(notHere, dCheckoutMissing, dLost)},
	{name: "running and absent", desired: desires[:1], quiet: notHere, holders: only(session.HolderAbsent), varies: plus(notLive, dSwept, dCanResume, dCheckoutMissing, dLost)},
	{name: "running, and its conversation not compared yet", desired: desires[:1], holders: only(session.HolderAbsent, session.HolderDeadOurs),
		varies: resumed, fixed: map[int]uint8{dAltered: uncompared}, quiet: unhurried},
	{name: "running, and its conversation altered", desired: desires[:1], holders: only(session.HolderAbsent, session.HolderDeadOurs),
		varies: resumed, fixed: map[int]uint8{dAltered: altered}, quiet: unhurried},
	{name: "running and dead", desired: desires[:1], quiet: notHere, holders: only(session.HolderDeadOurs), varies: plus(notLive, dSwept, dClearFailed, dTidy)},
	{name: "running and occupied by a dead other", desired: desires[:1], quiet: notHere, holders: only(session.HolderDeadOther), varies: plus(notLive, dOccupantKnown, dClearFailed)},
	{name: "running and occupied by a dead stranger", desired: desires[:1], quiet: notHere, holders: only(session.HolderDeadForeign), varies: plus(notLive, dClearFailed)},
	{name: "running and occupied by the living", desired: desires[:1], quiet: notHere,
		holders: only(session.HolderShared, session.HolderLiveOther, session.HolderLiveForeign), varies: notLive},
}

// each calls f with every point of the space, and stops when it returns false.
func (s space) each(f func(point) bool) {
	var start point
	for d, v := range s.fixed {
		start[d] = v
	}
	for _, desired := range s.desired {
		for _, holder := range s.holders {
			p := start
			p[dDesired], p[dHolder] = number(desires, desired), number(holders, holder)
			for {
				if !f(p) {
					return
				}
				if !s.step(&p) {
					break
				}
			}
		}
	}
}

// step counts the varying dimensions one up; false after the last combination.
func (s space) step(p *point) bool {
	for _, d := range s.varies {
		if p[d]++; int(p[d]) < dimensions[d].size {
			return true
		}
		p[d] = 0
	}
	return false
}

// scrambled gives what makes no difference in this space other values.
func (s space) scrambled(p point, random *uint64) point {
	for d := dHolder + 1; d < dCount; d++ {
		if _, fixed := s.fixed[d]; fixed || d == dPaused || contains(s.quiet, d) || contains(s.varies, d) {
			continue
		}
		*random ^= *random << 13
		*random ^= *random >> 7
		*random ^= *random << 17
		p[d] = uint8(*random % uint64(dimensions[d].size))
	}
	return p
}

func contains(list []int, d int) bool {
	for _, v := range list {
		if v == d {
			return true
		}
	}
	return false
}

func number[T comparable](list []T, v T) uint8 {
	for i := range list {
		if list[i] == v {
			return uint8(i)
		}
	}
	panic(fmt.Sprintf("%v is not in %v", v, list))
}
