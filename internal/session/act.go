package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/event"
	"github.com/theloop-dev/the-loop/internal/faultpoint"
	"github.com/theloop-dev/the-loop/internal/harness"
	"github.com/theloop-dev/the-loop/internal/harness/launch"
	"github.com/theloop-dev/the-loop/internal/text"
	"github.com/theloop-dev/the-loop/internal/tmux"
)

// carryOut does the one thing that a plan says. again asks for another look at once.
func (t *turn) carryOut(ctx context.Context, plan Plan) (again bool, wait time.Duration, err error) {
	if t.unsure() {
		return false, time.Second, nil
	}
	t.note(plan)
	t.block(plan)
	t.averted(plan)
	switch plan.Action {
	case ActionNone:
		err = t.dispose(ctx, plan)
		return false, t.observed(), err
	case ActionDeliver:
		t.stale = false
		if wait, err = t.deliver(ctx); t.stale && err == nil {
			return true, 0, nil
		}
		return false, Soonest(wait, t.observed()), err
	case ActionSpawn:
		return t.spawn(ctx, plan)
	case ActionClear:
		return t.clear(ctx)
	case ActionTerminate:
		return t.terminate(ctx)
	case ActionKill:
		return t.kill(ctx)
	case ActionSweep:
		return t.sweep(ctx)
	case ActionKillSession:
		return t.killSession(ctx)
	case ActionAsk:
		if t.ask() {
			return false, soonAgain, nil
		}
		return true, 0, nil
	case ActionAdopt:
		return true, 0, t.adopt(ctx)
	case ActionCompare:
		return t.compareConversation(ctx)
	case ActionPrepareCheckout:
		return t.prepareCheckout(ctx)
	case ActionRemoveCheckout:
		return t.removeCheckout()
	case ActionClose, ActionCleanUp:
		t.close(plan.Action == ActionCleanUp)
		return true, 0, nil
	case ActionRelease:
		return t.release(ctx)
	}
	return false, 0, fmt.Errorf("plan has the action %q, which is not known: this is a fault of the agent", plan.Action)
}

// close records that the session is stopped. What is retained of it is to be read only.
func (t *turn) close(cleanUp bool) {
	before := t.status.DeepCopy()
	t.status.ClosedAt, t.status.StopRequestedAt = new(metav1.NewTime(t.now())), nil
	t.handledRestart()
	if t.sight.Holder.Ours() {
		t.status.AttachCommand = t.Terminal.AttachCommand(t.sight.Name, true)
	} else {
		t.status.AttachCommand = ""
	}
	if !cleanUp {
		t.closed(before)
		return
	}
	t.sealEnd()
	t.forgetHost()
	t.ended(before)
	removed := t.removed(before)
	t.tell(event.SessionCleaned, "removed from the host: "+strings.Join(removed, ", "), "removed", removed)
}

// unsureFor is how long tmux may be silent before a session is called unknown: one slow
// answer is nobody's news.
const unsureFor = 8 * time.Second

// unsure reports that tmux has just begun not to answer. Nothing is done then, and
// nothing is said yet.
func (t *turn) unsure() bool {
	return t.sight.Holder == HolderUnknown && t.now().Sub(t.mem.unknownSince) < unsureFor
}

// spawn starts the harness. What is about to be done is written first: a crash in
// between is recognised by the stamp on the session, or by its absence.
func (t *turn) spawn(ctx context.Context, plan Plan) (bool, time.Duration, error) {
	why := "the harness that was to resume it ended by itself"
	if t.mem.cutOff >= maxCutOff {
		why = fmt.Sprintf("%d resumes in a row were cut off", t.mem.cutOff)
	}
	if plan.ResumeFailed && t.lost() {
		why = "the harness kept it in " + text.OneLine(t.state.TranscriptPath) + ", and it is there no more"
	}
	before := t.status.DeepCopy()
	// Only a harness that ended by itself is slowed down.
	t.byItself = before.StartedAt != nil && before.ClosedAt == nil && before.StopRequestedAt == nil && !plan.Restart
	start, problem, err := t.putOnRecord(ctx, plan)
	if err != nil {
		return false, 0, err
	}
	if problem != nil {
		// Nothing is half made: the record says no more than it did.
		before.DeepCopyInto(t.status)
		t.inTheWay(problem)
		return false, unknownRequeue, nil
	}
	if plan.Mode == api.LaunchResume && !plan.Intended {
		t.mem.cutOff++
	} else if plan.Mode == api.LaunchFresh {
		t.mem.cutOff = 0
	}
	t.ended(before)
	if plan.ResumeFailed {
		t.resumeFails(before.ConversationID, why)
	}
	t.choiceChanged(before)
	t.Recorded()
	if plan.Mode == api.LaunchFresh {
		if err := t.supersede(ctx, t.bootKey()); err != nil {
			return false, 0, err
		}
	}
	if start.boot != "" && start.promptFile == "" {
		m := t.bootMessage(start.boot)
		if err := t.Store.EnsureMessage(ctx, m); err != nil {
			return false, 0, t.fail("creating the first message", err)
		}
		t.created(m)
	}
	t.prepare(ctx)
	t.mem.prepared = t.status.Launch.ID
	return t.create(ctx, start.file, plan)
}

// inTheWay says what was found to be in the way of a start that was decided on.
func (t *turn) inTheWay(problem *Obstacle) {
	if problem != nil {
		t.setRunning(metav1.ConditionFalse, problem.Reason, problem.Message)
		t.blocked = problem
	}
}

// start is what a launch needs: its command, and the first message with the file in which
// it is where the harness cannot show that it took one.
type start struct {
	file             launch.File
	boot, promptFile string
}

// putOnRecord puts a launch on record, unless something is in its way.
func (t *turn) putOnRecord(ctx context.Context, plan Plan) (s start, problem *Obstacle, err error) {
	if plan.Mode == api.LaunchResume {
		// Nobody else may claim the conversation before it is on record whose it is.
		t.resuming.Lock()
		defer t.resuming.Unlock()
		if problem, err = t.claim(ctx); problem != nil || err != nil {
			return s, problem, err
		}
	}
	if s.boot, problem = t.intend(ctx, plan); problem != nil {
		return s, problem, nil
	}
	if s.file, s.promptFile, err = t.command(s.boot); err != nil {
		return s, unstartable(err), nil
	}
	if err := t.Store.SaveSession(ctx); err != nil {
		return s, nil, t.fail("recording the launch", err)
	}
	return s, nil, nil
}

// unstartable is what is in the way of a start that cannot be made: what is wanted, or the
// disk.
func unstartable(err error) *Obstacle {
	if disk := (*fs.PathError)(nil); errors.As(err, &disk) {
		return &Obstacle{Reason: api.ReasonSpawnFailed, Message: err.Error()}
	}
	return &Obstacle{Reason: api.ReasonInvalidSpec, Message: err.Error()}
}

// permissions answers the harness's dialogs as the class says; in a stranger's checkout
// nothing is allowed unasked.
func (t *turn) permissions() harness.Permissions {
	if t.launch.perms == harness.PermissionsAllow && t.strangersHead() {
		return harness.PermissionsAsk
	}
	return t.launch.perms
}

// lookupPane reads a variable of the environment of the harness that runs.
func (t *turn) lookupPane(key string) string {
	if key == "LOOP_UID" {
		return string(t.Object.GetUID())
	}
	return t.lookup(key)
}

// lookup reads a variable of the environment in which the harness will run.
func (t *turn) lookup(key string) string {
	for _, kv := range slices.Backward(t.launch.env) {
		if v, ok := strings.CutPrefix(kv, key+"="); ok {
			return v
		}
	}
	return t.Getenv(key)
}

// intend writes the launch into the status: mode, conversation, name, arguments.
func (t *turn) intend(ctx context.Context, plan Plan) (boot string, problem *Obstacle) {
	st := t.status
	if plan.Mode == api.LaunchFresh {
		var err error
		if boot, err = t.bootText(ctx, t.Subject, t.sight.Name); err != nil {
			return "", &Obstacle{Reason: api.ReasonPromptUnreadable, Message: err.Error()}
		}
	}
	if plan.NewConversation || st.ConversationID == "" {
		st.ConversationID = t.conversationToResume()
		if plan.Mode == api.LaunchFresh {
			st.ConversationID = ""
			if t.launch.adapter.Traits().AssignsID {
				st.ConversationID = harness.NewConversationID()
			}
		}
	}
	if st.Launch == nil || !plan.Intended {
		if st.StartedAt != nil {
			st.Restarts++
		}
		st.Launch = t.newLaunch(plan.Mode)
	}
	t.launch.record(st)
	st.TmuxTarget, st.HostName = t.sight.Name, t.HostName
	st.AttachCommand = t.Terminal.AttachCommand(t.sight.Name, false)
	st.PaneID, st.ServerEpoch, st.Activity = "", "", nil
	st.StopRequestedAt, st.ClosedAt = nil, nil
	t.handledRestart()
	if plan.Mode == api.LaunchResume {
		t.set(api.ConditionResumed, metav1.ConditionUnknown, api.ReasonResumePending, "a resume was started and is not proved yet")
	} else {
		reason, message := api.ReasonFreshConversation, "the session began a conversation of its own"
		if plan.ResumeFailed {
			reason, message = api.ReasonResumeFailed, "the recorded conversation could not be continued; a fresh one was begun"
		}
		t.set(api.ConditionResumed, metav1.ConditionFalse, reason, message)
	}
	return boot, nil
}

// newLaunch is a launch of now, with whether it goes on with what another build began (R11).
func (t *turn) newLaunch(mode api.LaunchMode) *api.Launch {
	l := &api.Launch{ID: uuid.NewString(), Mode: mode, Executable: runtimeDigest(t.launch.binary, nil)}
	if last := t.status.Launch; last != nil && mode == api.LaunchResume {
		l.Updated = last.Executable != "" && last.Executable != l.Executable
	}
	return l
}

// command builds the command line and the files of a launch. The boot prompt goes
// into a file only for a harness that cannot show that it took a message.
func (t *turn) command(boot string) (launch.File, string, error) {
	st, l := t.status, t.launch
	dir := t.sessionDir(t.Object.GetUID())
	if l.makeDir {
		if err := os.MkdirAll(l.dir, 0o700); err != nil {
			return launch.File{}, "", fmt.Errorf("the working directory could not be made: %w", err)
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return launch.File{}, "", fmt.Errorf("the agent's state directory cannot be written: %w", err)
	}
	promptFile := ""
	if boot != "" && !l.adapter.Traits().Evidence {
		promptFile = filepath.Join(dir, st.Launch.ID+".prompt")
		if err := os.WriteFile(promptFile, []byte(boot), 0o600); err != nil {
			return launch.File{}, "", fmt.Errorf("the boot prompt cannot be written: %w", err)
		}
	}
	opts := t.launchOptions(st.ConversationID, st.Launch.Mode == api.LaunchResume)
	opts.HookCommand = []string{t.Shim, "hook", "--journal", t.journalPath(st.Launch.ID), "--socket", t.HookSocket, "--poke", string(t.Object.GetUID())}
	opts.PromptFile = promptFile
	cmd, err := l.adapter.Command(opts)
	if err != nil {
		return launch.File{}, "", err
	}
	for _, f := range cmd.Files {
		if err := os.WriteFile(f.Path, f.Data, 0o600); err != nil {
			return launch.File{}, "", fmt.Errorf("a file of the launch cannot be written: %w", err)
		}
	}
	return launch.File{
		Argv: cmd.Argv, Env: slices.Concat(t.Passed, l.env, cmd.Env), Dir: l.dir, UID: string(t.Object.GetUID()), Session: st.TmuxTarget,
	}, promptFile, nil
}

// create makes the terminal session.
func (t *turn) create(ctx context.Context, f launch.File, plan Plan) (bool, time.Duration, error) {
	var err error
	epoch := t.snap.Epoch
	if epoch.IsZero() {
		if epoch, err = t.Terminal.Ensure(ctx); err != nil {
			return t.spawnFailed(err)
		}
	}
	t.mem.swept = ""
	if f.Groups, err = t.confine(epoch); err != nil {
		return t.spawnFailed(err)
	}
	path, err := launch.Write(t.sessionDir(t.Object.GetUID()), f)
	if err != nil {
		return t.spawnFailed(fmt.Errorf("the file of the launch cannot be written: %w", err))
	}
	if err := t.reopen(); err != nil {
		_ = os.Remove(path)
		return t.spawnFailed(err)
	}
	obj := t.Object
	faultpoint.At(faultpoint.Spawning)
	spawned, err := t.Terminal.Spawn(ctx, tmux.SpawnRequest{
		Name: t.status.TmuxTarget, UID: string(obj.GetUID()), Generation: t.status.Launch.ID,
		Object: strings.ToLower(obj.SessionKind()) + "/" + obj.GetNamespace() + "/" + obj.GetName(),
		Dir:    f.Dir, Argv: []string{t.Shim, "exec", path},
	})
	switch {
	case errors.Is(err, tmux.ErrDuplicate):
		// Somebody was quicker: a fresh look decides by who it was, once (C016).
		_ = os.Remove(path)
		if t.mem.duplicates++; t.mem.duplicates > 1 {
			t.mem.duplicates = 0
			return t.spawnFailed(err)
		}
		return true, 0, nil
	case errors.Is(err, tmux.ErrUnknown):
		// It may have happened: the stamp will tell.
		return false, time.Second, t.fail("starting the harness", err)
	case err != nil:
		_ = os.Remove(path)
		return t.spawnFailed(err)
	}
	faultpoint.At(faultpoint.Spawned)
	t.mem.failed, t.mem.retries, t.mem.duplicates = nil, 0, 0
	if t.byItself {
		t.Backoff.Next(string(obj.GetUID()), t.now())
	}
	t.status.PaneID, t.status.ServerEpoch = spawned.PaneID, spawned.Epoch.String()
	t.confirm()
	t.Log.Info("harness started", "terminal", t.status.TmuxTarget, "mode", plan.Mode, "conversation", t.status.ConversationID)
	t.startDue, t.mem.kills, t.mem.stopFailed = false, 0, false
	if plan.Mode == api.LaunchFresh {
		t.started(false)
	}
	return true, 0, nil
}

// spawnFailed says why a start failed, and tries it again ever more slowly, up to once
// in five minutes.
func (t *turn) spawnFailed(err error) (bool, time.Duration, error) {
	return t.startFailed(api.ReasonSpawnFailed, err)
}

// startFailed is spawnFailed with another reason.
func (t *turn) startFailed(reason string, err error) (bool, time.Duration, error) {
	t.mem.failed = &Obstacle{Reason: reason, Message: err.Error()}
	wait := min(5*time.Minute, unknownRequeue<<min(t.mem.retries, 6))
	t.mem.retries++
	t.mem.retryAt = t.now().Add(wait)
	t.setRunning(metav1.ConditionFalse, reason, err.Error())
	t.tellSpawnFailed(*t.mem.failed)
	return false, wait, nil
}

func (t *turn) confirm() {
	t.status.Launch.Confirmed = true
	t.status.StartedAt = new(metav1.NewTime(t.now()))
	t.mem.swept = ""
}

// adopt takes a live session of ours into the record: after a crash between the
// start and its record, or when a session is wanted again that was left running.
func (t *turn) adopt(ctx context.Context) error {
	st := t.status
	before := st.DeepCopy()
	if t.sight.Session.UID == "" {
		// The record alone says that it is ours: say it on the thing itself again.
		id := orElse(t.record().LaunchID, "adopted")
		res, err := t.Terminal.Stamp(ctx, t.target(), id)
		if err == nil && res.Outcome == tmux.Refused {
			err = errors.New("refused: " + res.Detail)
		}
		if err != nil {
			return t.fail("stamping the terminal", err)
		}
		t.sight.Session.Generation = id
	}
	if st.Launch == nil || st.Launch.ID != t.sight.Session.Generation {
		st.Launch = &api.Launch{ID: orElse(t.sight.Session.Generation, "adopted"), Mode: api.LaunchFresh}
	}
	if !st.Launch.Confirmed || st.StartedAt == nil {
		t.confirm()
	}
	st.PaneID, st.ServerEpoch, st.TmuxTarget, st.HostName = t.sight.Pane.ID, t.snap.Epoch.String(), t.sight.Name, t.HostName
	st.AttachCommand = t.Terminal.AttachCommand(t.sight.Name, false)
	st.ClosedAt, st.StopRequestedAt = nil, nil
	t.adopted(before)
	t.Log.Info("live session adopted", "terminal", st.TmuxTarget, "pane", st.PaneID, "pid", t.sight.Pane.PID)
	return nil
}

func orElse(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

func (t *turn) clear(ctx context.Context) (bool, time.Duration, error) {
	res, err := t.Terminal.ClearDead(ctx, t.sight.Session.ID, t.sight.Session.UID, t.snap.Epoch)
	if err != nil {
		return false, time.Second, t.fail("clearing the dead terminal session", err)
	}
	if res.Outcome != tmux.Done && res.Outcome != tmux.Gone {
		t.mem.uncleared, t.mem.unclearedAt = t.sight.Session.ID, t.now()
	}
	return true, 0, nil
}

// terminate asks the harness to end. The pane is retained first, so that its last
// screen can be read.
func (t *turn) terminate(ctx context.Context) (bool, time.Duration, error) {
	if _, err := t.Terminal.Retain(ctx, t.target()); err != nil {
		return false, time.Second, t.stopFails(t.fail("retaining the terminal", err))
	}
	if _, err := t.Terminal.Signal(ctx, t.target(), syscall.SIGTERM); err != nil {
		return false, time.Second, t.stopFails(t.fail("ending the harness", err))
	}
	t.mem.stopRequested = t.now()
	t.status.StopRequestedAt = new(metav1.NewTime(t.mem.stopRequested))
	return true, 0, nil
}

func (t *turn) kill(ctx context.Context) (bool, time.Duration, error) {
	if _, err := t.Terminal.Signal(ctx, t.target(), syscall.SIGKILL); err != nil {
		return false, time.Second, t.stopFails(t.fail("killing the harness", err))
	}
	t.killed()
	return false, killRequeue, nil
}

func (t *turn) sweep(ctx context.Context) (bool, time.Duration, error) {
	ended, err := t.Sweep(ctx, string(t.Object.GetUID()))
	if err != nil {
		return false, time.Second, t.fail("ending what the harness left behind", err)
	}
	escaped, err := t.endGroup(ctx)
	if err != nil {
		return false, time.Second, t.fail("ending what the harness left behind", err)
	}
	if ended = append(ended, escaped...); len(ended) > 0 {
		t.Log.Info("ended processes that the harness left behind", "pids", ended)
		t.unseal()
	}
	t.mem.swept = noLaunch
	if t.status.Launch != nil {
		t.mem.swept = t.status.Launch.ID
	}
	return true, 0, nil
}

func (t *turn) killSession(ctx context.Context) (bool, time.Duration, error) {
	res, err := t.Terminal.KillSession(ctx, t.target())
	if err == nil && res.Outcome == tmux.Refused {
		err = errors.New("refused: " + res.Detail)
	}
	if err != nil {
		return false, time.Second, t.stopFails(t.fail("closing the terminal session", err))
	}
	t.status.AttachCommand = ""
	return true, 0, nil
}

// release lets the object go. What became of its messages is told first, and its files
// go first: nobody would look for them afterwards. Where its terminal is retained, its
// empty directory stays as the sign that it was ours.
func (t *turn) release(ctx context.Context) (bool, time.Duration, error) {
	if err := t.dispose(ctx, Plan{Messages: MessagesRefuse, Message: "it was deleted"}); err != nil {
		return false, 0, err
	}
	dir := t.sessionDir(t.Object.GetUID())
	if err := t.group().Remove(); err != nil {
		t.Log.Error(err, "removing the session's control group")
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Log.Error(err, "removing the session's state directory")
	}
	t.dropSeals()
	if t.sight.Holder.Ours() {
		if err := t.leaveSign(dir); err != nil {
			t.Log.Error(err, "keeping the sign of a retained terminal")
		}
	}
	switch err := t.Store.Release(ctx); {
	case apierrors.IsNotFound(err):
		// It was, and told of, before the cache knew.
		t.Forget(t.Object.GetUID())
		return false, 0, nil
	case err != nil:
		return false, 0, t.fail("letting go", err)
	}
	t.ended(t.status)
	t.retained()
	removed := t.removed(t.status)
	t.tell(event.SessionReset, "deleted; its host has let go of it", "removed", removed)
	t.Forget(t.Object.GetUID())
	return false, 0, nil
}

// handledRestart echoes the restart token.
func (t *turn) handledRestart() {
	if token := t.restartToken(); token != "" {
		t.status.LastHandledRestart = token
	}
}

// forgetHost clears what the record says of this host; the portable part stays.
func (t *turn) forgetHost() {
	st := t.status
	st.TmuxTarget, st.PaneID, st.ServerEpoch, st.AttachCommand, st.WorkingDirectory = "", "", "", "", ""
	st.Activity, st.Launch, st.StartedAt = nil, nil, nil
}
