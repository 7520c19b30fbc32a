package session

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/cgroup"
	"github.com/theloop-dev/the-loop/internal/text"
)

const (
	// maxLastLines and maxLastWords bound what is kept of a terminal, in lines and bytes.
	maxLastLines = 12
	maxLastWords = 600
	// atOnce is how soon a harness that tells nothing of itself must have ended to have had
	// no conversation.
	atOnce = 5 * time.Second
	// stallFor is how long a turn may last before what was started in it is named, and
	// stallAgain how often it is looked for.
	stallFor   = 5 * time.Minute
	stallAgain = 30 * time.Second
	// maxChildren is how many are named.
	maxChildren = 5
)

// words are what a harness left on its terminal that no hook tells.
type words struct {
	// launch they are of; how it ended, as in "with exit status 3", "" when that is not known.
	launch, how string
	// oom is the record of an end because memory was short, by whom and at which limit in
	// bytes, 0 for none; nil for any other end.
	oom    *api.SessionTermination
	killer cgroup.Killer
	limit  int64
	// last lines of the terminal of a harness that never came to its prompt: an error, or a
	// question. What a terminal shows of a conversation is nobody's to read in a status.
	last string
}

// hear reads how the harness ended, and what it shows instead of its prompt: once for each
// launch, because a screen can change all the time (T12, H07). Whether it was in its group is
// asked before that is removed.
func (t *turn) hear(ctx context.Context) {
	t.entered()
	w, launch := &t.mem.words, t.sight.Session.Generation
	switch {
	case t.sight.Holder == HolderLiveOurs && (w.launch != launch || w.how != "" || t.state.Ready):
		*w = words{launch: launch}
	case t.sight.Holder == HolderLiveOurs && w.last == "" && t.overdue():
		w.last = t.lastLines(ctx)
	case t.sight.Holder == HolderDeadOurs && !t.sight.Pane.Dying && (w.launch != launch || w.how == ""):
		*w = words{launch: launch, how: t.sight.exit()}
		t.outOfMemory(w)
		if t.hadNoConversation() {
			w.last = t.lastLines(ctx)
		}
	}
	t.recordEnd()
}

// overdue reports that a live harness has not come to its prompt in time.
func (t *turn) overdue() bool {
	tr := t.traits()
	return tr.Evidence && !t.state.Ready && t.status.StartedAt != nil && t.now().Sub(t.status.StartedAt.Time) > tr.ReadyWithin
}

func (t *turn) hadNoConversation() bool {
	if t.evidence() {
		return t.state.Started.IsZero()
	}
	return t.status.StartedAt != nil && t.mem.endedSince.Sub(t.status.StartedAt.Time) < atOnce
}

// exit is how the harness ended, "" when tmux does not say.
func (s Sighting) exit() string {
	switch {
	case s.Pane.ExitSignal != "":
		return "by " + s.Pane.ExitSignal
	case s.Pane.ExitStatus != nil:
		return fmt.Sprintf("with exit status %d", *s.Pane.ExitStatus)
	}
	return ""
}

// lastLines are the last lines of the terminal, as one; "" when that is not known. Where tmux
// says that a pane is dead, it has moved the first row into the scrollback for that.
func (t *turn) lastLines(ctx context.Context) string {
	seen, err := t.Terminal.Capture(ctx, t.target(), maxLastLines)
	if err != nil {
		return ""
	}
	var lines []string
	for line := range strings.Lines(seen) {
		line = strings.TrimSpace(text.OneLine(line))
		if line != "" && !strings.HasPrefix(line, "Pane is dead") { // which tmux wrote
			lines = append(lines, line)
		}
	}
	out := strings.Join(lines[max(0, len(lines)-maxLastLines):], " / ")
	if len(out) > maxLastWords {
		out = out[len(out)-maxLastWords:]
		out = "..." + strings.TrimLeftFunc(out, func(r rune) bool { return r == utf8.RuneError })
	}
	return out
}

// said is what a person is told beside what is done about it.
func (w words) said() string {
	if w.last == "" {
		return ""
	}
	return "; the last lines of its terminal: " + w.last
}

// stalled names what was started in a turn that lasts long, and runs since: a child that
// waits for a terminal holds up its turn for ever (H18). "" is nothing.
func (t *turn) stalled() string {
	lasts := t.now().Sub(t.state.Since)
	if t.state.Since.IsZero() || lasts < stallFor {
		return ""
	}
	if t.now().Sub(t.mem.stallAt) < stallAgain {
		return t.mem.stall
	}
	t.mem.stall, t.mem.stallAt = "", t.now()
	all, err := t.Children(string(t.Object.GetUID()), stallFor, lasts, t.sight.Pane.PID)
	if err != nil || len(all) == 0 {
		return ""
	}
	var names []string
	for _, c := range all[:min(len(all), maxChildren)] {
		names = append(names, fmt.Sprintf("%s (pid %d)", text.OneLine(c.Name), c.PID))
	}
	t.mem.stall = fmt.Sprintf(" since %s, and what it started in it still runs: %s; if one of them holds it up, end that one alone on host %s: kill %d",
		t.state.Since.UTC().Format(time.RFC3339), strings.Join(names, ", "), t.HostName, all[0].PID)
	return t.mem.stall
}
