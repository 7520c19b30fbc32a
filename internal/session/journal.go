package session

import (
	"path/filepath"
	"strings"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/harness"
	"github.com/theloop-dev/the-loop/internal/harness/hook"
)

// journalPath is where the hooks of one launch leave their notes.
func (t *turn) journalPath(launch string) string {
	return filepath.Join(t.sessionDir(t.Object.GetUID()), launch+".jsonl")
}

// readJournal brings what the hooks told up to date. Prompts taken in earlier
// launches stay known: a delivery that a crash interrupted is recognised by them.
func (t *turn) readJournal() error {
	t.state = harness.State{}
	if t.status.Launch == nil || !t.evidence() {
		return nil
	}
	a := t.launch.adapter // of an adopted session nothing else is on record
	if t.status.Harness != "" {
		var err error
		if a, err = harness.Get(t.status.Harness); err != nil {
			return t.fail("reading the hook journal", err)
		}
	}
	j := &t.mem.journal
	if path := t.journalPath(t.status.Launch.ID); j.path != path {
		earlier, err := t.takenBefore(a, path)
		if err != nil {
			return t.fail("reading the hook journals", err)
		}
		*j = journalState{path: path, mark: hook.Mark{Launch: t.status.Launch.ID}, state: harness.State{Taken: earlier}}
	}
	notes, next, err := hook.Read(j.path, j.offset)
	if err != nil {
		return t.fail("reading the hook journal", err)
	}
	for _, n := range notes {
		j.mark.Number++
		n.Mark = j.mark
		j.state = a.Observe(j.state, n)
	}
	j.state, j.offset = j.state.By(t.now()), next
	if f, ok := a.(harness.StateFile); ok && t.sight.Holder == HolderLiveOurs {
		// What no hook tells, such as an interrupt by a person.
		p := harness.Process{
			PID: t.sight.Pane.PID, Lookup: t.lookupPane,
			ConversationID: t.status.ConversationID, Resume: t.status.Launch.Mode == api.LaunchResume,
		}
		if t.status.StartedAt != nil {
			p.Launched = t.status.StartedAt.Time
		}
		j.state = f.Recheck(j.state, p)
	}
	t.state = j.state
	return nil
}

// told is how far the hooks of the present launch have told.
func (t *turn) told() hook.Mark {
	if j := t.mem.journal; j.mark.Launch == t.status.Launch.ID {
		return j.mark
	}
	return hook.Mark{Launch: t.status.Launch.ID}
}

// takenBefore collects the prompts that launches before this one took.
func (t *turn) takenBefore(a harness.Adapter, current string) ([]harness.Taken, error) {
	paths, err := filepath.Glob(filepath.Join(filepath.Dir(current), "*.jsonl"))
	if err != nil {
		return nil, err
	}
	var taken []harness.Taken
	for _, p := range paths {
		if p == current || strings.HasPrefix(filepath.Base(p), ".") {
			continue
		}
		notes, _, err := hook.Read(p, 0)
		if err != nil {
			return nil, err
		}
		var st harness.State
		for i, n := range notes {
			n.Mark = hook.Mark{Launch: strings.TrimSuffix(filepath.Base(p), ".jsonl"), Number: int64(i + 1)}
			st = a.Observe(st, n)
		}
		taken = append(taken, st.Taken...)
	}
	return taken, nil
}
