// Package delivery brings one message into one session: gate, paste, submit,
// evidence. It keeps no state of its own: where a delivery stands is told by the
// markers in the tmux server and by what the harness's hooks reported, so that it
// can be continued from any point.
package delivery

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/theloop-dev/the-loop/internal/faultpoint"
	"github.com/theloop-dev/the-loop/internal/harness"
	"github.com/theloop-dev/the-loop/internal/harness/hook"
	"github.com/theloop-dev/the-loop/internal/tmux"
)

// Terminal is what a delivery needs of the tmux server.
type Terminal interface {
	Paste(ctx context.Context, t tmux.Target, delivery string, text []byte) (tmux.Result, error)
	Submit(ctx context.Context, t tmux.Target, delivery string) (tmux.Result, error)
	Resubmit(ctx context.Context, t tmux.Target, delivery string) (tmux.Result, error)
}

// Request is one message and the session it goes to, as last seen.
type Request struct {
	// ID of the delivery: the message's UID. It is the marker in the tmux server.
	ID string
	// Text as it is typed: sanitised and framed.
	Text string
	// Digest of Text, see hook.Digest.
	Digest string
	// After is how far the hooks had told when the delivery was first begun: evidence is
	// behind it.
	After hook.Mark
	// Begin is called right before the text is typed, and keeps it from being typed by an
	// error. nil is no call.
	Begin func() error
	// Target is the pane.
	Target tmux.Target
	// Session is the terminal session in the newest snapshot.
	Session tmux.Session
	// State is what the harness's hooks told, Taken that of earlier launches included.
	State harness.State
	// Traits of the harness.
	Traits harness.Traits
	// Stands looks whether the text, and nothing else, is seen to stand in the input box, not
	// submitted; nil is not known.
	Stands func() bool
	// Empty looks whether the input box is there and nothing stands in it; nil is not known.
	// No carriage return is typed into an empty box: it would take a suggestion of the
	// harness.
	Empty func() bool
	// Led looks whether the text in the input box is the end of something that a person had
	// begun to type; nil is not known. No carriage return is typed then: it would submit that.
	Led func() bool
	// Open names what else is open at the terminal and would take a carriage return, where
	// the harness's own evidence does not tell of it; "" is nothing. nil is not known.
	Open func() string
	// WhileBusy allows to type while the harness is in a turn.
	WhileBusy bool
	// Progress is what this process did for the delivery so far.
	Progress Progress
}

// Progress is how far a delivery came in this process: the zero Progress is right
// after a restart, because the markers stop a repetition.
type Progress struct {
	// Pasted and Submitted are when this process did it, or learnt that it was done.
	Pasted, Submitted time.Time
	// Sent means that the carriage return was sent at Submitted, and not at some time before.
	Sent bool
	// Again is when this process sent, or tried to send, a second carriage return.
	Again time.Time
	// Own means that the text was pasted at Pasted, and not at some time before.
	Own bool
	// Empty is when the input box was last seen to be empty still, after the paste.
	Empty time.Time
	// Before is the newest prompt that the harness was known to have taken at an Own paste;
	// zero is none.
	Before harness.Taken
}

// settled is the time from which on the gap before the carriage return counts: the harness
// had not drawn the text before, so it may not have read it either.
func (p Progress) settled() time.Time {
	if p.Empty.After(p.Pasted) {
		return p.Empty
	}
	return p.Pasted
}

// Phase is where a delivery stands.
type Phase string

// Phases of a delivery.
const (
	// Held: the gate is closed; Detail says by what. After the paste it is the carriage
	// return that waits.
	Held Phase = "Held"
	// Waiting: go on at After, or when the harness reports something.
	Waiting Phase = "Waiting"
	// Submitted (final): the harness said that it took the prompt.
	Submitted Phase = "Submitted"
	// Typed (final): no evidence within the time.
	Typed Phase = "Typed"
	// Lost (final): the pane ended after the paste, without evidence.
	Lost Phase = "Lost"
)

// Step is the result of one Advance.
type Step struct {
	Phase  Phase
	Detail string
	// Refused: the server refused to type what Request.Session allowed: it has changed since.
	Refused bool
	// After is when to look again when Phase is Waiting, and when Held where it is known
	// how long that lasts; zero when only an event tells.
	After time.Duration
	// Progress to hand in the next time.
	Progress Progress
	// Evidence is when the harness took the prompt.
	Evidence time.Time
	// Problem is what failed and keeps the delivery from nothing.
	Problem error
}

// Advance takes a delivery as far as it goes now. Nothing is typed twice: a paste
// and a carriage return each run only if their marker is not there yet, which the
// tmux server itself checks in the same step. An error of the terminal that leaves open
// whether an operation ran is passed on; the delivery goes on from the markers.
func Advance(ctx context.Context, term Terminal, r Request, now time.Time) (Step, error) {
	step := Step{Progress: r.Progress}
	if taken, ok := r.taken(); ok && !r.unpasted() {
		step.Phase, step.Evidence = Submitted, taken
		faultpoint.At(faultpoint.Evidence)
		return step, nil
	}
	if r.unpasted() {
		if done, err := r.open(ctx, term, now, &step); !done || err != nil {
			return step, err
		}
	}
	if step.Progress.Submitted.IsZero() {
		if done, err := r.enter(ctx, term, now, &step); !done || err != nil {
			return step, err
		}
	}
	r.again(ctx, term, now, &step)
	return r.await(now, step), nil
}

// enter submits what was pasted, when the harness has had its time to read it and nothing
// else would take the carriage return.
func (r Request) enter(ctx context.Context, term Terminal, now time.Time, step *Step) (bool, error) {
	if gap := r.Traits.Gap(len(r.Text)) - now.Sub(step.Progress.settled()); gap > 0 && !step.Progress.Pasted.IsZero() {
		step.Phase, step.After = Waiting, gap
		return false, nil
	}
	why, again := r.unsubmittable(), time.Duration(0)
	if why == "" && r.Open != nil && r.Session.Submitted != r.ID {
		why, again = r.Open(), openAgain
	}
	if why != "" {
		step.Phase, step.Detail, step.After = Held, "the text is pasted and not submitted: "+why, again
		return false, nil
	}
	if r.unseen(now, step) {
		return false, nil
	}
	if r.Led != nil && r.Session.Submitted != r.ID && r.Led() {
		step.Phase, step.After = Held, ledAgain
		step.Detail = "the text is pasted and not submitted: a person had begun to type when it came, and it stands behind that: " +
			"attach and delete what stands before it, or clear all and say it again"
		return false, nil
	}
	return r.submit(ctx, term, now, step)
}

// openAgain is how soon it is looked whether a dialog is still open that no hook tells of.
const openAgain = 2 * time.Second

// ledAgain is how soon it is looked again whether something stands before the text.
const ledAgain = time.Second

// emptyAgain is how soon an empty input box is looked at again at the earliest.
const emptyAgain = 100 * time.Millisecond

// unseen waits for the text to appear in the input box, where that can be seen to be empty.
// A harness that draws late is only waited for. One that does not show the text for as long
// as it may take to reach its prompt has lost it, or reads nothing, and a carriage return
// would submit something else (P14).
func (r Request) unseen(now time.Time, step *Step) bool {
	if r.Empty == nil || r.Session.Submitted == r.ID || !r.Empty() {
		return false
	}
	if step.Progress.Pasted.IsZero() {
		step.Progress.Pasted = now // when it was is not known
	}
	step.Progress.Empty = now
	if left := r.Traits.ReadyWithin - now.Sub(step.Progress.Pasted); left > 0 {
		step.Phase, step.After = Waiting, min(left, max(r.Traits.Gap(len(r.Text)), emptyAgain))
		return true
	}
	step.Phase = Typed
	step.Detail = fmt.Sprintf("the text was pasted, and the input box was still empty %s later, so nothing was submitted: "+
		"attach and look; press Enter if the text stands there now, and say it again if it does not", r.Traits.ReadyWithin)
	return true
}

// againAfter is how long after the carriage return a harness that may have lost it has to
// take the text.
const againAfter = 3 * time.Second

// mayRepeat reports that a second carriage return is still to come, if the text stands. Of a
// first one that was sent long ago, or by an earlier process, it is not known what a person
// has done with the text since.
func (r Request) mayRepeat(now time.Time, p Progress) bool {
	return r.Traits.LosesReturn && r.Stands != nil && p.Sent && p.Again.IsZero() && now.Sub(p.Submitted) <= r.Traits.TakenWithin
}

// again sends one more carriage return, to a harness that is known to lose one on a busy
// machine, when the text is seen to stand in its input box still, and it does nothing else.
func (r Request) again(ctx context.Context, term Terminal, now time.Time, step *Step) {
	if !r.mayRepeat(now, step.Progress) || now.Sub(step.Progress.Submitted) < againAfter || r.unsubmittable() != "" ||
		r.State.Activity != harness.ActivityIdle || !r.Stands() {
		return
	}
	// A refusal is no news: it was sent before, or the pane ended, which the next look shows.
	// What failed may have been sent: it is tried once.
	if _, err := term.Resubmit(ctx, r.Target, r.ID); err != nil {
		step.Problem = fmt.Errorf("submit again in pane %s: %w", r.Target.PaneID, err)
	}
	step.Progress.Again = now
}

// unpasted reports that neither this process nor the server knows of a paste.
func (r Request) unpasted() bool {
	return r.Progress.Pasted.IsZero() && r.Session.Pasted != r.ID
}

// taken tells when the harness took the text of this delivery. The same text may have been
// taken before from another message, so where this process pasted it, only what came after
// the paste counts: by its place and not by its time, because the clock may be set.
func (r Request) taken() (time.Time, bool) {
	if !r.Progress.Own {
		return r.State.TookAfter(r.Digest, r.After)
	}
	return r.Progress.Took(r.State, r.Digest)
}

// Took tells when a prompt of this digest was taken behind an Own paste.
func (p Progress) Took(s harness.State, digest string) (time.Time, bool) {
	for _, k := range slices.Backward(s.Taken) {
		switch {
		case k.Digest == p.Before.Digest && k.Time.Equal(p.Before.Time):
			return time.Time{}, false
		case k.Digest == digest:
			return k.Time, true
		}
	}
	return time.Time{}, false
}

// unsubmittable says why a carriage return must not be sent into a living pane now, "" when
// nothing speaks against it: a dialog, which may have opened since the paste, would
// take it for its answer.
func (r Request) unsubmittable() string {
	pane, _ := r.Session.Pane(r.Target.PaneID)
	switch {
	case pane.InputOff && !pane.Dead:
		return inputOff
	case r.Traits.Evidence && r.State.Activity == harness.ActivityAwaitingInput:
		return dialog + r.State.WaitingFor
	}
	return ""
}

const (
	inputOff = "the pane takes no input (tmux select-pane -e turns it on)"
	dialog   = "a dialog of the harness waits for a person: "
)

// open passes the gate and pastes.
func (r Request) open(ctx context.Context, term Terminal, now time.Time, step *Step) (bool, error) {
	if why, again := Closed(r, now); why != "" {
		step.Phase, step.Detail, step.After = Held, why, again
		return false, nil
	}
	if r.Begin != nil {
		if err := r.Begin(); err != nil {
			return false, err
		}
	}
	return r.paste(ctx, term, now, step)
}

func (r Request) paste(ctx context.Context, term Terminal, now time.Time, step *Step) (bool, error) {
	faultpoint.At(faultpoint.AttemptWritten)
	res, err := term.Paste(ctx, r.Target, r.ID, []byte(r.Text))
	if err != nil {
		return false, fmt.Errorf("paste into pane %s: %w", r.Target.PaneID, err)
	}
	switch res.Outcome {
	case tmux.Done, tmux.Already:
		step.Progress.Pasted, step.Progress.Own = now, res.Outcome == tmux.Done
		if n := len(r.State.Taken); n > 0 {
			step.Progress.Before = r.State.Taken[n-1]
		}
		faultpoint.At(faultpoint.Pasted)
		return true, nil
	case tmux.NotReady:
		step.Phase, step.Detail = Held, "the application has not enabled bracketed paste yet"
	default:
		step.Phase, step.Detail = Held, "the terminal refused the text: "+string(res.Outcome)+" "+res.Detail
		step.Refused = true
	}
	return false, nil
}

func (r Request) submit(ctx context.Context, term Terminal, now time.Time, step *Step) (bool, error) {
	res, err := term.Submit(ctx, r.Target, r.ID)
	if err != nil {
		return false, fmt.Errorf("submit in pane %s: %w", r.Target.PaneID, err)
	}
	switch res.Outcome {
	case tmux.Done, tmux.Already:
		step.Progress.Submitted, step.Progress.Sent = now, res.Outcome == tmux.Done
		faultpoint.At(faultpoint.Submitted)
		return true, nil
	default:
		step.Phase = Lost
		step.Detail = "the text was pasted, and the pane then refused the carriage return: " + string(res.Outcome) + " " + res.Detail
	}
	return false, nil
}

func (r Request) await(now time.Time, step Step) Step {
	if !r.Traits.Evidence {
		step.Phase, step.Detail = Typed, "this harness has no way to say that it took a prompt"
		return step
	}
	last := step.Progress.Submitted
	if step.Progress.Again.After(last) {
		last = step.Progress.Again
	}
	if left := r.Traits.TakenWithin - now.Sub(last); left > 0 {
		step.Phase, step.After = Waiting, left
		if r.mayRepeat(now, step.Progress) {
			step.After = min(left, max(againAfter-now.Sub(step.Progress.Submitted), time.Second))
		}
		return step
	}
	step.Phase = Typed
	step.Detail = fmt.Sprintf("the harness did not report the prompt within %s of the carriage return: attach and look; "+
		"press Enter if the text stands in the input box, or clear it", r.Traits.TakenWithin)
	if why, _ := r.refused(now); why != "" {
		step.Detail += "; " + why
	}
	return step
}

// Closed says what keeps a text from being typed now, "" when nothing does, and when to
// look again where it is known how long that lasts.
func Closed(r Request, now time.Time) (why string, again time.Duration) {
	why = r.shut()
	refusal, again := r.refused(now)
	switch {
	case refusal == "" || !r.listens():
		return why, 0
	case why != "": // a menu that was opened for the limit, say: both must end
		return refusal + "; " + why, again
	}
	return refusal, again
}

// listens reports that the harness is there and has said that it takes input.
func (r Request) listens() bool {
	pane, ok := r.Session.Pane(r.Target.PaneID)
	return ok && !pane.Dead && r.Traits.Evidence && r.State.Ready
}

// refused says that the vendor would refuse the turn, "" when it would not, and for how
// long: the harness would take the text, and nobody would answer it.
func (r Request) refused(now time.Time) (why string, left time.Duration) {
	for _, k := range []struct {
		harness.Refusal
		what, hint string
	}{
		{r.State.Limited, "the harness is at its usage limit", ""},
		{r.State.LoginRefused, "the login of the harness was refused", "; log in again, and restart the session"},
	} {
		if k.Since.IsZero() {
			continue
		}
		ends := k.Ends().Add(spread(r.ID))
		if left = ends.Sub(now); left <= 0 {
			if r.State.Activity == harness.ActivityBusy {
				return k.what + " until a moment ago, and the turn that shows whether it still is has not ended", 0
			}
			continue
		}
		until := "until " + ends.UTC().Format(time.RFC3339)
		if !k.Ends().Equal(k.Until) {
			until = "and tried again at " + ends.UTC().Format(time.RFC3339)
		}
		return fmt.Sprintf("%s, %s: %s%s", k.what, until, k.Why, k.hint), left
	}
	return "", 0
}

// maxSpread bounds by how much later than a refusal's end a message is typed. The
// sessions of one account share that end, and would all begin in the same second.
const maxSpread = time.Minute

// spread is the same for a delivery each time.
func spread(id string) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return time.Duration(h.Sum32()%uint32(maxSpread/time.Second)) * time.Second
}

// shut says what is in the way at the harness itself, "" when nothing is.
func (r Request) shut() string {
	pane, ok := r.Session.Pane(r.Target.PaneID)
	switch {
	case !ok:
		return "the pane of the harness is gone"
	case pane.Dead:
		return "the harness has ended"
	case pane.InputOff:
		return inputOff
	case !r.Traits.Evidence:
		return ""
	case !r.State.Ready:
		return "the harness has not reached its prompt yet"
	case r.State.Activity == harness.ActivityAwaitingInput:
		return dialog + r.State.WaitingFor
	case r.State.Activity == harness.ActivityBusy && r.Traits.IdleOnly:
		return "the harness is in a turn, and would not take the text as a message of its own"
	case r.State.Activity == harness.ActivityBusy && !r.WhileBusy:
		return "the harness is in a turn, and the session's class delivers only to an idle one"
	}
	return ""
}
