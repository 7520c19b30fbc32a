package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/durable"
	"github.com/theloop-dev/the-loop/internal/event"
	"github.com/theloop-dev/the-loop/internal/harness"
)

// After an upgrade of ours a harness can begin with a question that it did not ask before,
// about hooks that changed (H05). One session goes ahead of the others with what is prepared
// now; they wait until it has come to its prompt. A host without a history has nothing that a
// harness could compare with, so nothing waits there.

// rollout is what is known of what is prepared for one harness.
type rollout struct {
	// Proved is the digest of what was prepared for a session that came to its prompt, ""
	// before the first did.
	Proved string `json:"proved,omitempty"`
	// Canary goes ahead of the others, nil when none does.
	Canary *canary `json:"canary,omitempty"`

	// passed is the session that did not come to its prompt: where others wait, it is not the
	// next.
	passed types.UID
	// waiting are the sessions that would be started but for the canary.
	waiting map[types.UID]bool
	// asks: the canary stands at a question of its harness; told: that was told of.
	asks, told bool
}

// canary is the session that goes ahead.
type canary struct {
	UID     types.UID `json:"uid"`
	Session string    `json:"session"`
	// Digest is of what it is started with.
	Digest string `json:"digest"`
	// Before is the launch that it had before that one.
	Before string `json:"before,omitempty"`
	// Since is when it was chosen.
	Since time.Time `json:"since,omitzero"`
}

// canaryPatience is for how long after the time that its harness may take a canary that asks
// nothing holds the others: it may be of an account of its own that never comes to its prompt.
const canaryPatience = 5 * time.Minute

// due reports whether what is prepared now still needs a canary.
func (r *rollout) due(digest string) bool {
	return digest != "" && r.Proved != "" && r.Proved != digest
}

// ahead says who or what goes ahead of a session, "" when nothing does: it may be the
// canary. What it says is read by whoever reads the session that waits, so nothing of what
// the canary's terminal shows is in it. others are those for whom it waits.
func (r *rollout) ahead(digest string, uid types.UID) (why string, others []types.UID) {
	if !r.due(digest) {
		return "", nil
	}
	c := r.Canary
	switch {
	case c != nil && c.UID == uid:
		return "", nil
	case c != nil && c.Digest == digest:
		how := "has not reached its prompt yet: when that lasts, attach to it and look"
		if r.asks {
			how = "it asks something: attach to it and answer"
		}
		return fmt.Sprintf("%s goes ahead of the others with what an upgrade of the-loop changed, and %s. To have another go ahead, stop or delete it", c.Session, how), []types.UID{c.UID}
	case r.passed == uid && r.others(uid):
		others = slices.DeleteFunc(slices.Collect(maps.Keys(r.waiting)), func(u types.UID) bool { return u == uid })
		return "it did not come to its prompt with what an upgrade of the-loop changed: another session goes ahead", others
	}
	return "", nil
}

func (r *rollout) others(uid types.UID) bool {
	return len(r.waiting) > 1 || len(r.waiting) == 1 && !r.waiting[uid]
}

// drop forgets a session. wake: what others waited for may be gone; changed: it was the
// canary.
func (r *rollout) drop(uid types.UID) (wake, changed bool) {
	wake = r.waits(uid, false)
	if r.passed == uid {
		r.passed = ""
	}
	if r.Canary == nil || r.Canary.UID != uid {
		return wake, false
	}
	r.leave()
	return true, true
}

// leave gives the place of the canary up.
func (r *rollout) leave() { r.Canary, r.asks, r.told = nil, false, false }

// canaryStep is what a look at the canary means.
type canaryStep string

const (
	canaryGoes   canaryStep = "Goes"
	canaryProved canaryStep = "Proved"
	// canaryEnded: its harness ended before its prompt. canaryGaveUp: it is not being started
	// any more. canaryLate: it did not come to its prompt in time, and asks nothing.
	canaryEnded  canaryStep = "Ended"
	canaryGaveUp canaryStep = "GaveUp"
	canaryLate   canaryStep = "Late"
)

// canarySight is how far the canary has come.
type canarySight struct {
	// launched: the launch on record is the one by which it goes ahead, and came to run.
	launched bool
	// ready: it came to its prompt. asks: it stands at a question of its harness.
	ready, asks bool
	// late: it has had its time.
	late bool
}

// canaryAt judges the canary by what was decided on it.
func canaryAt(in Input, p Plan, s canarySight) canaryStep {
	live := s.launched && in.Holder == HolderLiveOurs
	switch {
	case in.Holder == HolderUnknown:
		return canaryGoes // silence is never absence
	case live && s.ready:
		return canaryProved
	case in.Desired != DesiredRunning:
		return canaryGaveUp
	case live && s.asks:
		return canaryGoes // the others would be asked the same
	case s.launched && !live && !in.Dying:
		return canaryEnded
	case !live && p.Action == ActionNone && p.Reason != api.ReasonStarting && p.Reason != api.ReasonStopping:
		return canaryGaveUp
	case !live && (p.Action == ActionPrepareCheckout || p.Action == ActionDeliver):
		return canaryGaveUp
	case s.late:
		return canaryLate
	}
	return canaryGoes
}

// rollouts are those of a host, by rolloutKey. Who goes ahead survives the agent.
type rollouts struct {
	mu      sync.Mutex
	of      map[string]*rollout
	digests map[string]string
}

func (e *Engine) rolloutsFile() string { return filepath.Join(e.Dir, "rollouts.json") }

// rolloutKey names what a harness shares with others that would be asked the same, or come to
// their prompt as well: its kind, and where the class sets one, the program and what decides
// about its account and its configuration.
func rolloutKey(a harness.Adapter, class *api.SessionClass) string {
	if class == nil {
		return a.Name()
	}
	h, own := class.Spec.Harness, []string(nil)
	if h.Binary != a.Binary() && h.Binary != "" {
		own = append(own, h.Binary)
	}
	decides := append([]string{"HOME", "XDG_CONFIG_HOME"}, a.Traits().Env...)
	for _, v := range h.Env {
		if slices.Contains(decides, v.Name) {
			own = append(own, v.Name+"="+v.Value)
		}
	}
	if len(own) == 0 {
		return a.Name()
	}
	slices.Sort(own)
	return a.Name() + "-" + digest(strings.Join(own, "\x00"))
}

// load reads what was known before. It is called with the lock.
func (e *Engine) load() *rollouts {
	rs := &e.rollouts
	if rs.of != nil {
		return rs
	}
	b, err := os.ReadFile(e.rolloutsFile())
	if err == nil {
		err = json.Unmarshal(b, &rs.of)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		e.HostLog.Info("what was prepared for the harnesses before could not be read: no session goes ahead of the others", "reason", err.Error())
	}
	if rs.digests = map[string]string{}; rs.of == nil {
		rs.of = map[string]*rollout{}
	}
	maps.DeleteFunc(rs.of, func(_ string, r *rollout) bool { return r == nil })
	return rs
}

// keep writes what is known down. It is called with the lock.
func (e *Engine) keep() {
	b, err := json.Marshal(e.rollouts.of)
	if err == nil {
		err = durable.Write(e.rolloutsFile(), b)
	}
	if err != nil {
		e.HostLog.Error(err, "which session goes ahead after an upgrade could not be written down: an agent that starts anew chooses again")
	}
}

// rollout runs f on what is known of the harness that the session would be launched with, and
// with the digest of what is prepared for it now. What f changed and says so is kept. f only
// computes: every session of the host waits for it.
func (t *turn) rollout(f func(r *rollout, digest string) (keep bool)) {
	a, e := t.launch.adapter, t.Engine
	e.rollouts.mu.Lock()
	defer e.rollouts.mu.Unlock()
	rs, key := e.load(), rolloutKey(a, t.Class)
	if _, known := rs.digests[a.Name()]; !known {
		rs.digests[a.Name()] = e.preparedDigest(a)
	}
	if rs.of[key] == nil {
		rs.of[key] = &rollout{}
	}
	if f(rs.of[key], rs.digests[a.Name()]) {
		e.keep()
	}
}

// preparedDigest stands for what is of ours in every launch of a harness: arguments,
// environment and files, and the program that its hooks run. "" where it has no hooks.
func (e *Engine) preparedDigest(a harness.Adapter) string {
	if !a.Traits().Evidence {
		return ""
	}
	cmd, err := a.Command(harness.LaunchOptions{
		Binary: "/harness", Dir: "/", ConversationID: trialID, FileDir: "/", Trust: true,
		HookCommand: []string{e.Shim, "hook", "--journal", "/journal", "--socket", e.HookSocket, "--poke", "uid"},
	})
	if err != nil {
		return ""
	}
	shim, err := os.ReadFile(e.Shim)
	if err != nil {
		return ""
	}
	what, err := json.Marshal([]any{cmd.Argv, cmd.Env, cmd.Files, digest(string(shim))})
	if err != nil {
		return ""
	}
	return digest(string(what))
}

// proceed carries a plan out, unless another session goes ahead.
func (t *turn) proceed(ctx context.Context, in Input, plan Plan) (again bool, wait time.Duration, err error) {
	if t.followCanary(ctx, in, plan); !t.goesAhead(in, plan) {
		return true, 0, nil
	}
	again, wait, err = t.carryOut(ctx, plan)
	if plan.Action == ActionSpawn && !again && err == nil {
		t.leaveToOthers(ctx)
	}
	return again, wait, err
}

// behindCanary is who goes ahead of the session, nil when nobody does.
func (t *turn) behindCanary() (o *Obstacle) {
	if t.desired() != DesiredRunning || t.launch.adapter == nil {
		return nil
	}
	t.dropGone()
	t.rollout(func(r *rollout, digest string) bool {
		if why, _ := r.ahead(digest, t.Object.GetUID()); why != "" {
			o = &Obstacle{Reason: api.ReasonWaitingForCanary, Message: why}
		}
		return false
	})
	return o
}

// dropGone forgets those for whom the session waits and that are none of this host any more:
// let go of by hand, or bound elsewhere. To ask for them can last, so it is done without the
// lock.
func (t *turn) dropGone() {
	var others, gone []types.UID
	t.rollout(func(r *rollout, digest string) bool {
		_, others = r.ahead(digest, t.Object.GetUID())
		return false
	})
	for _, uid := range others {
		if t.KnownUID == nil || t.KnownUID(string(uid)) {
			break
		}
		gone = append(gone, uid)
	}
	if len(gone) == 0 {
		return
	}
	wake := false
	t.rollout(func(r *rollout, _ string) (keep bool) {
		for _, uid := range gone {
			w, changed := r.drop(uid)
			wake, keep = wake || w, keep || changed
		}
		return keep
	})
	t.wake(wake)
}

func (e *Engine) wake(others bool) {
	if others && e.Wake != nil {
		go e.Wake()
	}
}

// goesAhead makes the session the canary where one is due and none is. It reports false
// when another was quicker.
func (t *turn) goesAhead(in Input, plan Plan) (goes bool) {
	again := plan.Action == ActionTerminate && in.Desired == DesiredRunning && in.StopRequested.IsZero()
	if plan.Action != ActionSpawn && !again {
		return true
	}
	uid := t.Object.GetUID()
	t.rollout(func(r *rollout, digest string) bool {
		why, _ := r.ahead(digest, uid)
		goes = why == ""
		if !goes || !r.due(digest) || r.Canary != nil && r.Canary.UID == uid && r.Canary.Digest == digest {
			return false
		}
		o := t.Object
		r.leave()
		r.Canary = &canary{UID: uid, Session: strings.ToLower(o.SessionKind()) + "/" + o.GetNamespace() + "/" + o.GetName(), Digest: digest, Since: t.now()}
		if l := t.status.Launch; l != nil && l.Confirmed {
			r.Canary.Before = l.ID
		}
		r.passed = ""
		delete(r.waiting, uid)
		t.Log.Info("the session goes ahead of the others with what an upgrade changed")
		return true
	})
	return goes
}

// followCanary notes what the newest decision means for the canary, and for those that wait
// for it.
func (t *turn) followCanary(ctx context.Context, in Input, plan Plan) {
	uid := t.Object.GetUID()
	if t.launch.adapter == nil {
		t.wake(t.leaveRollouts(uid, "")) // its class is gone
		return
	}
	// Its class may have been of another harness.
	wake := t.leaveRollouts(uid, rolloutKey(t.launch.adapter, t.Class))
	s, after := t.seeCanary(ctx, in), func() {}
	t.rollout(func(r *rollout, digest string) (keep bool) {
		wake = r.waits(uid, plan.Reason == api.ReasonWaitingForCanary) || wake
		if c := r.Canary; c == nil || c.UID != uid || c.Digest != digest {
			// What this agent launched was prepared as it is now.
			if s.ready && t.mem.prepared == t.status.Launch.ID && digest != "" && r.Proved != digest {
				r.leave()
				r.Proved, wake, keep = digest, true, true
			}
			return keep
		}
		step := canaryAt(in, plan, s)
		if step != canaryGoes {
			after = t.stepCanary(r, digest, step)
			wake = true
			return true
		}
		if r.asks = s.asks; r.asks && !r.told {
			r.told = true
			waiting := len(r.waiting)
			after = func() {
				t.Store.Emit(event.SessionCanaryAsks, "it goes ahead of the others with what an upgrade of the-loop changed, and asks something: they wait until a person has answered; attach: "+t.status.AttachCommand,
					"harness", t.launch.adapter.Name(), "waiting", waiting)
			}
		}
		return keep
	})
	after()
	t.wake(wake)
}

// stepCanary notes that the canary is none any more, and returns what tells of it.
func (t *turn) stepCanary(r *rollout, digest string, step canaryStep) (after func()) {
	r.leave()
	switch step {
	case canaryProved:
		r.Proved = digest
		return func() {
			t.Log.Info("the session came to its prompt with what an upgrade changed: the others follow")
		}
	case canaryEnded:
		r.passed = t.Object.GetUID()
		return func() {
			t.Log.Info("the harness that went ahead of the others ended before its prompt: another goes ahead")
		}
	case canaryLate:
		r.passed = t.Object.GetUID()
		return func() {
			t.Store.Emit(event.SessionCanaryLate, "it went ahead of the others with what an upgrade of the-loop changed, did not come to its prompt in time and asks nothing that is known: another goes ahead; attach and look: "+t.status.AttachCommand,
				"harness", t.launch.adapter.Name())
		}
	}
	return func() {
		t.Log.Info("the session that went ahead of the others is not being started: another goes ahead")
	}
}

// seeCanary looks how far the session has come, and more closely where it is the canary.
func (t *turn) seeCanary(ctx context.Context, in Input) (s canarySight) {
	var c *canary
	t.rollout(func(r *rollout, digest string) bool {
		if r.Canary != nil && r.Canary.UID == t.Object.GetUID() && r.Canary.Digest == digest {
			c = new(*r.Canary)
		}
		return false
	})
	l := t.status.Launch
	s.ready = t.state.Ready && in.Holder == HolderLiveOurs && l != nil
	if c == nil {
		return s
	}
	since := c.Since
	if s.launched = l != nil && l.Confirmed && l.ID != c.Before; s.launched && t.status.StartedAt != nil && t.status.StartedAt.After(since) {
		since = t.status.StartedAt.Time
	}
	s.late = t.now().Sub(since) > t.launch.adapter.Traits().ReadyWithin+canaryPatience
	if s.launched && !s.ready && in.Holder == HolderLiveOurs {
		if s.asks = t.state.Activity == harness.ActivityAwaitingInput; !s.asks {
			_, open := t.inputBox(ctx)
			s.asks = open != ""
		}
	}
	return s
}

// leaveToOthers gives the place of the canary up: it could not be started.
func (t *turn) leaveToOthers(ctx context.Context) {
	in := Input{Desired: t.desired(), Holder: HolderAbsent}
	t.followCanary(ctx, in, Plan{Action: ActionNone, Reason: api.ReasonSpawnFailed})
}

// waits notes whether a session waits for the canary. It reports that the last one that
// another stood back for does no more.
func (r *rollout) waits(uid types.UID, waits bool) (last bool) {
	switch {
	case waits && !r.waiting[uid]:
		if r.waiting == nil {
			r.waiting = map[types.UID]bool{}
		}
		r.waiting[uid] = true
	case !waits && r.waiting[uid]:
		delete(r.waiting, uid)
		return r.passed != "" && !r.others(r.passed)
	}
	return false
}

// leaveRollouts forgets a session in all rollouts but that of one key. It reports whether
// what others waited for may be gone.
func (e *Engine) leaveRollouts(uid types.UID, but string) (wake bool) {
	e.rollouts.mu.Lock()
	defer e.rollouts.mu.Unlock()
	keep := false
	for key, r := range e.load().of {
		if key == but {
			continue
		}
		w, changed := r.drop(uid)
		wake, keep = wake || w, keep || changed
	}
	if keep {
		e.keep()
	}
	return wake
}

// forgetRollout lets others go ahead of a session that is gone.
func (e *Engine) forgetRollout(uid types.UID) { e.wake(e.leaveRollouts(uid, "")) }
