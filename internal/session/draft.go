package session

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/theloop-dev/the-loop/internal/delivery"
	"github.com/theloop-dev/the-loop/internal/harness"
	"github.com/theloop-dev/the-loop/internal/tmux"
)

const (
	// drafted is what is said of a person's draft.
	drafted = "a person has typed something that is not submitted yet: submit or clear it"
	// draftAgain is how soon an input box with something in it is looked at again: nothing
	// tells when it is submitted or cleared.
	draftAgain = time.Second
	// dialogAgain is the same for a dialog, of which the status line tells nothing: it is
	// about what stands in the input box.
	dialogAgain = 2 * time.Second
	// takenFor is how long a text may still be drawn in the input box after the harness said
	// that it took it.
	takenFor = 2 * time.Second
	// unclearFor bounds the wait for an input box to be seen: a harness on a busy machine may
	// just be drawing it. What cannot be seen for longer is a box of another version, which
	// keeps nothing from going on, or has something over it.
	unclearFor = 2 * time.Second
	// soonAgain is how soon it is looked whether what goes by itself is gone.
	soonAgain = 50 * time.Millisecond
)

// plan decides. Whether there is a draft costs a look at the terminal, so it is asked only
// where the answer matters.
func (t *turn) plan(ctx context.Context) (Input, Plan) {
	t.hear(ctx)
	return t.spareDraft(ctx, t.input())
}

// spareDraft decides so that a re-launch for a message waits for what a person has typed.
func (t *turn) spareDraft(ctx context.Context, in Input) (Input, Plan) {
	p := Decide(in)
	if p.Action != ActionTerminate || in.Desired != DesiredRunning || !in.ArgsDiffer || in.RestartRequested || t.pastedStands() {
		return in, p
	}
	draft, open := t.inputBox(ctx)
	unclear := t.unclear(draft, open)
	if in.Draft = draft == harness.DraftTyped || unclear; !in.Draft {
		return in, p
	}
	p = Decide(in)
	if unclear {
		p.Message, p.Requeue = "a message waits for a re-launch with changed arguments, which waits until the input box is seen", soonAgain
		return in, p
	}
	t.kept = len(t.queue)
	return in, p
}

// unclear reports that it is not known yet whether something stands in the input box, and
// will be soon.
func (t *turn) unclear(draft harness.Draft, open string) bool {
	if _, drafter := t.drafter(); drafter == nil {
		return false
	}
	if draft != harness.DraftUnknown || open != "" {
		t.mem.unclearSince = time.Time{}
		return false
	}
	if t.mem.unclearSince.IsZero() {
		t.mem.unclearSince = t.now()
	}
	return t.now().Sub(t.mem.unclearSince) < unclearFor
}

// notify tells who is attached that messages wait for what stands in the input box, in the
// status line of the session, and no longer when they do not.
func (t *turn) notify(ctx context.Context) {
	if !t.sight.Holder.Ours() {
		return
	}
	code, note := "", ""
	switch {
	case t.kept == 1:
		code, note = "draft-1", "the-loop: a message waits: submit or clear the input"
	case t.kept > 1:
		code, note = fmt.Sprintf("draft-%d", t.kept), fmt.Sprintf("the-loop: %d messages wait: submit or clear the input", t.kept)
	}
	if code == t.sight.Session.Notice {
		return
	}
	if res, err := t.Terminal.Notice(ctx, t.target(), code, note); err != nil || res.Outcome != tmux.Done {
		t.Log.V(1).Info("the status line could not be written", "outcome", res.Outcome, "error", err)
	}
}

// pastedStands reports that what stands in the input box may be a text that we typed: it
// is nobody's draft.
func (t *turn) pastedStands() bool {
	s := t.sight.Session
	return t.untaken() != "" || s.Pasted != "" && s.Pasted != s.Submitted
}

// draft looks at the input box. What cannot be seen is unknown.
func (t *turn) draft(ctx context.Context) harness.Draft {
	draft, _ := t.inputBox(ctx)
	return draft
}

// inputBox reads the screen: what is in the input box, and what else is open that takes a text,
// "" for nothing that is known. What cannot be seen is unknown, and nothing.
func (t *turn) inputBox(ctx context.Context) (draft harness.Draft, open string) {
	a, drafter, screen := t.screen(ctx)
	if drafter == nil {
		return harness.DraftUnknown, ""
	}
	dialog, found, err := harness.DialogOn(a, filepath.Join(t.Dir, "dialogs", a.Name()+".json"), screen)
	if err != nil {
		t.Log.Info("a list of dialogs is wrong", "reason", err.Error())
	}
	if found {
		open = dialog.Name + " is open at the terminal, which would take the text: " + dialog.Leave
	}
	return drafter.Draft(screen), open
}

// drafter is the adapter of the harness, and the same where it knows the harness's input
// box, else nil.
func (t *turn) drafter() (harness.Adapter, harness.Drafter) {
	a, err := harness.Get(t.status.Harness)
	if err != nil {
		return nil, nil
	}
	drafter, _ := a.(harness.Drafter)
	return a, drafter
}

// screen is what the terminal shows, with whom to ask about it; without a Drafter it could
// not be seen.
func (t *turn) screen(ctx context.Context) (harness.Adapter, harness.Drafter, harness.Screen) {
	a, drafter := t.drafter()
	if drafter == nil {
		return a, nil, harness.Screen{}
	}
	seen, err := t.Terminal.Screen(ctx, t.target())
	if err != nil {
		t.Log.V(1).Info("the input box could not be looked at", "reason", err.Error())
		return a, nil, harness.Screen{}
	}
	return a, drafter, harness.Screen(seen)
}

// led reports that what stands in the input box begins with something else than the text
// that was pasted.
func (t *turn) led(ctx context.Context, text string) bool {
	_, drafter, screen := t.screen(ctx)
	return drafter != nil && harness.Led(drafter, screen, text)
}

// holds reports that the text that was pasted is seen to stand in the input box, alone.
func (t *turn) holds(ctx context.Context, text string) bool {
	_, drafter, screen := t.screen(ctx)
	return drafter != nil && harness.Holds(drafter, screen, text)
}

// keptOut says why a text must not be typed into the input box now, "" when nothing is in
// the way, and when to look again. It looks only when the text would be typed now.
func (t *turn) keptOut(ctx context.Context, r delivery.Request) (why string, again time.Duration) {
	untaken := t.untaken()
	if closed, _ := delivery.Closed(r, t.now()); closed != "" {
		return untaken, 0
	}
	draft, open := t.inputBox(ctx)
	if untaken != "" && draft == harness.DraftTyped && !t.mem.attempt.Stood {
		t.mem.attempt.Stood = true
		if err := t.mem.attempt.Save(t.attemptPath()); err != nil {
			t.Log.Info("that a text stands in the input box is not noted", "reason", err.Error())
		}
	}
	switch {
	case untaken != "" && (draft != harness.DraftEmpty || !t.mem.attempt.Stood):
		// Of a harness that hangs, the box is empty before it has even read the text.
		return untaken, draftAgain
	case open != "":
		return open, dialogAgain
	case t.unclear(draft, open):
		return "the input box is not seen", soonAgain
	case draft != harness.DraftTyped:
		return "", 0
	case t.justTook():
		return drafted, soonAgain
	}
	return drafted, draftAgain
}

// justTook reports that the harness has just taken a text.
func (t *turn) justTook() bool {
	n := len(t.state.Taken)
	return n > 0 && t.now().Sub(t.state.Taken[n-1].Time).Abs() < takenFor
}
