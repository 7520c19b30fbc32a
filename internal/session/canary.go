package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
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

	// passed is the session whose harness ended before its prompt: where others wait, it is
	// not the next.
	passed types.UID
	// waiting are the sessions that would be started but for the canary.
	waiting map[types.UID]bool
	// note is what the canary says of itself.
	note string
}

// canary is the session that goes ahead.
type canary struct {
	UID     types.UID `json:"uid"`
	Session string    `json:"session"`
	// Digest is of what it is started with.
	Digest string `json:"digest"`
	// Before is the launch that it had before that one.
	Before string `json:"before,omitempty"`
}

// due reports whether what is prepared now still needs a canary.
func (r *rollout) due(digest string) bool {
	return digest != "" && r.Proved != "" && r.Proved != digest
}

// ahead says who or what goes ahead of a session, "" when nothing does: it may be the
// canary. known tells whether there still is such a session.
func (r *rollout) ahead(digest string, uid types.UID, known func(types.UID) bool) string {
	if !r.due(digest) {
		return ""
	}
	c := r.Canary
	switch {
	case c != nil && c.UID == uid:
		return ""
	case c != nil && c.Digest == digest && known(c.UID):
		return fmt.Sprintf("%s goes ahead of the others with what an upgrade of the-loop changed, and has not reached its prompt yet. If it asks something, answer it there; if it does not get there, stop or delete it, and another goes ahead. %s", c.Session, r.note)
	case r.passed == uid && r.others(uid):
		return "its harness ended before its prompt, with what an upgrade of the-loop changed: another session goes ahead"
	}
	return ""
}

func (r *rollout) others(uid types.UID) bool {
	return len(r.waiting) > 1 || len(r.waiting) == 1 && !r.waiting[uid]
}

// canaryStep is what a look at the canary means.
type canaryStep string

const (
	canaryGoes   canaryStep = "Goes"
	canaryProved canaryStep = "Proved"
	// canaryEnded: its harness ended before its prompt. canaryGaveUp: it is not being started
	// any more.
	canaryEnded  canaryStep = "Ended"
	canaryGaveUp canaryStep = "GaveUp"
)

// canaryAt judges the canary by what was decided on it. launched: the launch on record is
// the one by which it goes ahead, and came to run; ready: it came to its prompt.
func canaryAt(in Input, p Plan, launched, ready bool) canaryStep {
	switch {
	case in.Holder == HolderUnknown:
		return canaryGoes // silence is never absence
	case launched && ready && in.Holder == HolderLiveOurs:
		return canaryProved
	case in.Desired != DesiredRunning:
		return canaryGaveUp
	case launched && in.Holder == HolderLiveOurs:
		return canaryGoes
	case launched && !in.Dying:
		return canaryEnded
	case p.Action == ActionNone && p.Reason != api.ReasonStarting && p.Reason != api.ReasonStopping && in.StopRequested.IsZero():
		return canaryGaveUp
	case p.Action == ActionPrepareCheckout, p.Action == ActionDeliver:
		return canaryGaveUp
	}
	return canaryGoes
}

// rollouts are those of a host, by harness. Who goes ahead survives the agent.
type rollouts struct {
	mu      sync.Mutex
	read    bool
	of      map[string]*rollout
	digests map[string]string
}

func (e *Engine) rolloutsFile() string { return filepath.Join(e.Dir, "rollouts.json") }

// rollout runs f on what is known of a harness, and with the digest of what is prepared for
// it now. What f changed and says so is kept.
func (e *Engine) rollout(a harness.Adapter, f func(r *rollout, digest string) (keep bool)) {
	e.rollouts.mu.Lock()
	defer e.rollouts.mu.Unlock()
	rs := &e.rollouts
	if !rs.read {
		rs.read, rs.of, rs.digests = true, map[string]*rollout{}, map[string]string{}
		b, err := os.ReadFile(e.rolloutsFile())
		if err == nil {
			err = json.Unmarshal(b, &rs.of)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			e.HostLog.Info("what was prepared for the harnesses before could not be read: no session goes ahead of the others", "reason", err.Error())
		}
	}
	name := a.Name()
	if _, known := rs.digests[name]; !known {
		rs.digests[name] = e.preparedDigest(a)
	}
	if rs.of[name] == nil {
		rs.of[name] = &rollout{}
	}
	if !f(rs.of[name], rs.digests[name]) {
		return
	}
	b, err := json.Marshal(rs.of)
	if err == nil {
		err = writeWhole(e.rolloutsFile(), b)
	}
	if err != nil {
		e.HostLog.Error(err, "which session goes ahead after an upgrade could not be written down: an agent that starts anew chooses again")
	}
}

// writeWhole replaces a file of the agent's own.
func writeWhole(path string, data []byte) error {
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
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
	if t.followCanary(in, plan); !t.goesAhead(in, plan) {
		return true, 0, nil
	}
	again, wait, err = t.carryOut(ctx, plan)
	if plan.Action == ActionSpawn && !again && err == nil {
		t.leaveToOthers()
	}
	return again, wait, err
}

// behindCanary is who goes ahead of the session, nil when nobody does.
func (t *turn) behindCanary() (o *Obstacle) {
	if t.desired() != DesiredRunning || t.launch.adapter == nil {
		return nil
	}
	t.rollout(t.launch.adapter, func(r *rollout, digest string) bool {
		if why := r.ahead(digest, t.Object.GetUID(), t.known); why != "" {
			o = &Obstacle{Reason: api.ReasonWaitingForCanary, Message: why}
		}
		return false
	})
	return o
}

func (t *turn) known(uid types.UID) bool { return t.KnownUID == nil || t.KnownUID(string(uid)) }

// goesAhead makes the session the canary where one is due and none is. It reports false
// when another was quicker.
func (t *turn) goesAhead(in Input, plan Plan) (goes bool) {
	again := plan.Action == ActionTerminate && in.Desired == DesiredRunning && in.StopRequested.IsZero()
	if plan.Action != ActionSpawn && !again {
		return true
	}
	uid := t.Object.GetUID()
	t.rollout(t.launch.adapter, func(r *rollout, digest string) bool {
		goes = r.ahead(digest, uid, t.known) == ""
		if !goes || !r.due(digest) || r.Canary != nil && r.Canary.UID == uid && r.Canary.Digest == digest {
			return false
		}
		o := t.Object
		r.Canary = &canary{UID: uid, Session: strings.ToLower(o.SessionKind()) + "/" + o.GetNamespace() + "/" + o.GetName(), Digest: digest}
		if l := t.status.Launch; l != nil && l.Confirmed {
			r.Canary.Before = l.ID
		}
		r.passed, r.note = "", ""
		delete(r.waiting, uid)
		t.Log.Info("the session goes ahead of the others with what an upgrade changed")
		return true
	})
	return goes
}

// followCanary notes what the newest decision means for the canary, and for those that wait
// for it.
func (t *turn) followCanary(in Input, plan Plan) {
	if t.launch.adapter == nil {
		return
	}
	uid, l, wake := t.Object.GetUID(), t.status.Launch, false
	t.rollout(t.launch.adapter, func(r *rollout, digest string) (keep bool) {
		wake = r.waits(uid, plan.Reason == api.ReasonWaitingForCanary)
		ready := t.state.Ready && in.Holder == HolderLiveOurs && l != nil
		if c := r.Canary; c == nil || c.UID != uid || c.Digest != digest {
			// What this agent launched was prepared as it is now.
			if ready && t.mem.prepared == l.ID && digest != "" && r.Proved != digest {
				r.Proved, r.Canary, wake, keep = digest, nil, true, true
			}
			return keep
		}
		r.note = t.asks()
		switch canaryAt(in, plan, l != nil && l.Confirmed && l.ID != r.Canary.Before, ready) {
		case canaryGoes:
			return false
		case canaryProved:
			r.Proved = digest
			t.Log.Info("the session came to its prompt with what an upgrade changed: the others follow")
		case canaryEnded:
			r.passed = uid
			t.Log.Info("the harness that went ahead of the others ended before its prompt: another goes ahead")
		case canaryGaveUp:
		}
		r.Canary, wake = nil, true
		return true
	})
	if wake && t.Wake != nil {
		go t.Wake()
	}
}

// leaveToOthers gives the place of the canary up: it could not be started.
func (t *turn) leaveToOthers() {
	in := Input{Desired: t.desired(), Holder: HolderAbsent}
	t.followCanary(in, Plan{Action: ActionNone, Reason: api.ReasonSpawnFailed})
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

// asks is what a person does about a canary that does not come to its prompt.
func (t *turn) asks() string {
	if _, reason, why := t.accepting(); reason == api.ReasonAwaitingInput || reason == api.ReasonNotReady {
		return why
	}
	return "Attach: " + t.status.AttachCommand
}

// forgetRollout lets others go ahead of a session that is gone.
func (e *Engine) forgetRollout(uid types.UID) {
	wake := false
	for _, name := range harness.Names() {
		a, err := harness.Get(name)
		if err != nil {
			continue
		}
		e.rollout(a, func(r *rollout, _ string) bool {
			wake = r.waits(uid, false) || wake
			if r.Canary == nil || r.Canary.UID != uid {
				return false
			}
			r.Canary, wake = nil, true
			return true
		})
	}
	if wake && e.Wake != nil {
		go e.Wake()
	}
}
