package session

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

// verdictHold is how long the start of a harness that ended waits to hear whether it still
// takes the model and the effort of its session. It then goes by what was said before.
const verdictHold = time.Minute

// again are the questions that starts wait for.
type again struct {
	mu sync.Mutex
	// since are the times that an answer must not be older than, answered those of the
	// answers, which may say nothing.
	since, answered map[VerdictKey]time.Time
}

// Answers are when the questions were last answered since the agent started. Who reads them
// before status.models has each of these answers in it, and may have newer ones.
func (e *Engine) Answers() map[VerdictKey]time.Time {
	e.again.mu.Lock()
	defer e.again.mu.Unlock()
	return maps.Clone(e.again.answered)
}

// AskedAgain are the questions for which a start waits, each with the time that its answer
// must not be older than.
func (e *Engine) AskedAgain() map[VerdictKey]time.Time {
	e.again.mu.Lock()
	defer e.again.mu.Unlock()
	return maps.Clone(e.again.since)
}

// Answered records that a question was answered, by what is in status.models now. It
// reports whether a start waits for it. One that waits for a newer answer goes on waiting.
func (e *Engine) Answered(key VerdictKey, at time.Time) bool {
	e.again.mu.Lock()
	defer e.again.mu.Unlock()
	since, awaited := e.again.since[key]
	if !at.Before(since) {
		delete(e.again.since, key)
	}
	if e.again.answered == nil {
		e.again.answered = map[VerdictKey]time.Time{}
	}
	e.again.answered[key] = at
	return awaited
}

// askAgain has questions asked, with answers that are not older than since. It reports
// whether there is something to wait for: all may have been answered by now.
func (e *Engine) askAgain(keys []VerdictKey, since time.Time) bool {
	e.again.mu.Lock()
	defer e.again.mu.Unlock()
	if e.again.since == nil {
		e.again.since = map[VerdictKey]time.Time{}
	}
	waits := false
	for _, k := range keys {
		if !e.again.answered[k].Before(since) {
			continue
		}
		waits = true
		if since.After(e.again.since[k]) {
			e.again.since[k] = since
		}
	}
	return waits
}

// outdated are the questions about what the session asks for whose newest answer is older
// than the end of its harness: a model that is served no more may be what ended it. There
// is none about what the harness cannot be asked, or would be asked with other arguments.
// An answer counts where the launch was resolved with it: one that came since does not.
func (t *turn) outdated() (keys []VerdictKey) {
	if t.obst != nil || t.Class == nil || t.mem.endedSince.IsZero() {
		return nil
	}
	asked := map[VerdictKey]bool{}
	for _, c := range t.launch.choices {
		asked[VerdictKey{t.Class.Name, c.kind, c.name}] = true
	}
	if len(asked) == 0 {
		return nil
	}
	for _, p := range t.Probes(t.Class) {
		key := KeyOf(p.Unasked)
		if !asked[key] || p.problem != "" || p.Unasked.ArgsDigest != argsDigest(t.launch.args) {
			continue
		}
		newest := t.AnsweredAt[key]
		if v := t.verdict(t.Subject, &t.launch, chosen{kind: key.Kind, name: key.Name}); v != nil && v.CheckedAt.After(newest) {
			newest = v.CheckedAt.Time
		}
		if newest.Before(t.mem.endedSince) {
			keys = append(keys, key)
		}
	}
	return keys
}

// verdictInto adds what a harness that ended by itself is to be asked before it is started
// again. The start of a session that was stopped, or is carried out from its record, waits
// for nothing.
func (t *turn) verdictInto(in *Input) {
	byItself := in.Started && !in.Intended && !in.Closed && in.StopRequested.IsZero()
	if in.Desired != DesiredRunning || !byItself || t.sight.Holder == HolderLiveOurs || t.sight.Holder == HolderUnknown {
		return
	}
	keys := t.outdated()
	if len(keys) == 0 {
		return
	}
	asked := t.mem.askedFor.Equal(t.mem.endedSince)
	unasked := func(k VerdictKey) bool { return !t.mem.asked[k] }
	switch {
	case asked && t.mem.askedAt.After(t.now().Add(clockJump)): // a clock that jumped back is not to make the wait longer
	case !asked || slices.ContainsFunc(keys, unasked):
		in.VerdictOutdated = true
	default:
		in.VerdictUntil = t.mem.askedAt.Add(verdictHold)
	}
}

// ask has the harness asked again, once for each of its ends about each of what the session
// asks for. answered: there is nothing to wait for, but the answers that came meanwhile call
// for another look.
func (t *turn) ask() (answered bool) {
	keys := t.outdated()
	if !t.mem.askedFor.Equal(t.mem.endedSince) {
		t.mem.asked = map[VerdictKey]bool{}
	}
	t.mem.askedFor, t.mem.askedAt = t.mem.endedSince, t.now()
	var names []string
	for _, k := range keys {
		t.mem.asked[k] = true
		names = append(names, strings.ToLower(string(k.Kind))+" "+k.Name)
	}
	if !t.askAgain(keys, t.mem.endedSince) {
		return true
	}
	t.Log.Info("the harness ended: it is asked again before it is started", "about", names)
	if t.AskAgain != nil {
		t.AskAgain()
	}
	return false
}

// askFirst asks a harness that ended whether it still takes what its session asks for, and
// holds its start for the answer.
func (in Input) askFirst() (Plan, bool) {
	const why = "the harness ended, and is asked whether it still takes the model and the effort of the session before it is started again"
	if in.VerdictOutdated {
		return in.act(ActionAsk, api.ReasonStarting, why), true
	}
	left := until(in.Now, in.VerdictUntil)
	return in.wait(api.ReasonStarting, why+", at "+in.VerdictUntil.UTC().Format(time.RFC3339)+" at the latest", left), left > 0
}
