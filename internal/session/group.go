package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/cgroup"
	"github.com/theloop-dev/the-loop/internal/event"
	"github.com/theloop-dev/the-loop/internal/harness/launch"
	"github.com/theloop-dev/the-loop/internal/text"
	"github.com/theloop-dev/the-loop/internal/tmux"
)

// Groups makes control groups.
type Groups interface {
	// Make makes the group of a session whose harness the terminal server of that pid will
	// start. An error says what of the wish cannot be kept; the group is that for the rest.
	Make(uid string, limit int64, server int) (cgroup.Group, error)
	// Tidy removes the empty groups of sessions that are not known.
	Tidy(known func(uid string) bool) error
	// Load is the group that is on record in a session's directory, none where there is none.
	Load(dir string) cgroup.Group
}

// group is the control group of the newest launch, none where it has none.
func (t *turn) group() cgroup.Group {
	if t.Groups == nil {
		return cgroup.Group{}
	}
	return t.Groups.Load(t.sessionDir(t.Object.GetUID()))
}

// refusedFile is where the pane process says why the harness is not in its group.
func (t *turn) refusedFile() string {
	return filepath.Join(t.sessionDir(t.Object.GetUID()), "cgroup.refused")
}

// memoryLimit is the bound that the class sets, 0 for none.
func (t *turn) memoryLimit() int64 {
	if t.Class == nil || t.Class.Spec.Resources.Limits.Memory == nil {
		return 0
	}
	return t.Class.Spec.Resources.Limits.Memory.Value()
}

// confine makes the control group in which the harness is to be started. A bound that cannot
// be kept keeps nothing from starting, and is told.
func (t *turn) confine(server tmux.Epoch) (launch.Groups, error) {
	limit := t.memoryLimit()
	if t.Groups == nil {
		return launch.Groups{}, nil
	}
	g, err := t.Groups.Make(string(t.Object.GetUID()), limit, server.PID)
	t.unbounded(limit, err)
	t.mem.killed = 0
	_ = os.Remove(t.refusedFile())
	if err := g.Save(t.sessionDir(t.Object.GetUID())); err != nil {
		return launch.Groups{}, errors.Join(fmt.Errorf("the session's control group cannot be put on record: %w", err), g.Remove())
	}
	groups := launch.Groups{Unified: g.Unified, Legacy: g.Legacy}
	if g.Limit > 0 {
		groups.Refused = t.refusedFile()
	}
	return groups, nil
}

// entered tells, when the pane process says so, that the harness is not in its group.
func (t *turn) entered() {
	why, err := os.ReadFile(t.refusedFile())
	if err != nil || t.group().Limit == 0 || string(why) == t.mem.refused {
		return
	}
	t.mem.refused = string(why)
	t.tellUnbounded(t.group().Limit, text.OneLine(string(why)))
}

// outlived is for how long a harness must have gone on after a child of it was killed for
// memory, so that its own end is another matter, and countKills how often it is looked for one.
const (
	outlived   = 10 * time.Second
	countKills = time.Minute
)

// forgive counts what was killed for memory in the group of a live harness, and puts on record
// what it has outlived, so that its own end, much later, is not taken for that. It says when
// to look again.
func (t *turn) forgive() time.Duration {
	if t.sight.Holder != HolderLiveOurs {
		return 0
	}
	g := t.group()
	if g.IsZero() {
		return 0
	}
	n := g.Killed()
	if n <= g.Kills {
		return countKills
	}
	if n != t.mem.killed {
		t.mem.killed, t.mem.killedAt = n, t.now()
	}
	if left := outlived - t.now().Sub(t.mem.killedAt); left > 0 {
		return left
	}
	g.Kills = n
	if err := g.Save(t.sessionDir(t.Object.GetUID())); err != nil {
		t.Log.Info("what was killed for memory in the session cannot be put on record", "reason", err.Error())
	}
	return countKills
}

// unbounded tells, once for each cause, that the bound of the class is not kept.
func (t *turn) unbounded(limit int64, err error) {
	why := ""
	if err != nil && limit > 0 {
		why = err.Error()
	}
	if why != "" && why != t.mem.unbounded {
		t.tellUnbounded(limit, why)
	}
	t.mem.unbounded = why
}

func (t *turn) tellUnbounded(limit int64, why string) {
	t.tell(event.SessionMemoryUnbounded, "the harness runs without the bound of "+quantity(limit)+" for its memory: "+why, "limit", quantity(limit), "error", why)
}

func quantity(bytes int64) string { return resource.NewQuantity(bytes, resource.BinarySI).String() }

// endGroup ends what is left in the session's control group, and removes the group. Where
// somebody has started a terminal server from inside the session, it holds other sessions:
// nothing is ended then. What the agent may not end keeps the session from nothing.
func (t *turn) endGroup(ctx context.Context) ([]int, error) {
	ended, err := cgroup.End(ctx, t.sessionDir(t.Object.GetUID()), leftoverGrace, tmux.IsServer)
	if errors.Is(err, cgroup.ErrRefused) {
		t.Log.Info("not all that is left of the session could be ended", "reason", err.Error())
		return ended, nil
	}
	if errors.Is(err, cgroup.ErrSpared) {
		t.Log.Info("a terminal server was started from inside the session: its control group is left as it is")
		return ended, nil
	}
	return ended, err
}

// outOfMemory finds out whether the harness, which has ended, was ended because memory was
// short.
func (t *turn) outOfMemory(w *words) {
	const killed = 128 + 9 // as a shell says it of its child
	p := t.sight.Pane
	if t.status.StopRequestedAt != nil || p.ExitSignal != "" && p.ExitSignal != "SIGKILL" || p.ExitStatus != nil && *p.ExitStatus != killed {
		return
	}
	if last := t.status.LastTermination; last != nil && last.Reason == api.ReasonOOMKilled && last.LaunchID == w.launch {
		w.oom, w.how = last, last.Message
		return
	}
	g := t.group()
	w.killer, w.limit = g.Killer(), g.Limit
	switch w.killer {
	case cgroup.KillerNone:
		// The group of another one is left until what it counted is on record.
		_ = g.Remove()
		return
	case cgroup.KillerOwn:
		w.how = fmt.Sprintf("by %s, limit %s: raise spec.resources.limits.memory of SessionClass %s, or have it do less at a time", w.killer, quantity(w.limit), t.className())
	default:
		w.how = fmt.Sprintf("by %s: give host %s more memory, run fewer sessions on it, or bound what each takes by spec.resources.limits.memory of its SessionClass", w.killer, t.HostName)
	}
	w.oom = &api.SessionTermination{Reason: api.ReasonOOMKilled, Message: w.how, FinishedAt: metav1.NewTime(t.now()), LaunchID: w.launch}
}

// recordEnd puts on record, and tells, that memory was short: when the next harness is
// started, nothing else says it.
func (t *turn) recordEnd() {
	w := t.mem.words
	if last := t.status.LastTermination; w.oom == nil || last != nil && last.LaunchID == w.launch {
		return
	}
	t.status.LastTermination = w.oom.DeepCopy()
	limit := ""
	if w.limit > 0 {
		limit = quantity(w.limit)
	}
	t.tell(event.SessionOOMKilled, "the harness was ended "+w.how, "killer", string(w.killer), "limit", limit, "tmux_target", t.status.TmuxTarget)
}

func (t *turn) className() string {
	if t.Class == nil {
		return "-"
	}
	return t.Class.Name
}

// ServerMemory is what the terminal server uses, and what the scrollback in it can come to.
func (e *Engine) ServerMemory() (resident, budget int64, err error) {
	snap, err := e.Lister.Latest()
	if err != nil {
		return 0, 0, err
	}
	u, err := e.ServerUsage(snap)
	return u.Resident, u.Budget, err
}
