package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/delivery"
	"github.com/theloop-dev/the-loop/internal/event"
	"github.com/theloop-dev/the-loop/internal/harness"
	"github.com/theloop-dev/the-loop/internal/text"
	"github.com/theloop-dev/the-loop/internal/tmux"
	"github.com/theloop-dev/the-loop/internal/workitem"
)

// Terminal is what the engine needs of the terminal server; *tmux.Server is it.
type Terminal interface {
	delivery.Terminal
	Hints
	Ensure(ctx context.Context) (tmux.Epoch, error)
	Spawn(ctx context.Context, r tmux.SpawnRequest) (tmux.Spawned, error)
	ClearDead(ctx context.Context, sessionID, uid string, epoch tmux.Epoch) (tmux.Result, error)
	Stamp(ctx context.Context, t tmux.Target, generation string) (tmux.Result, error)
	Retain(ctx context.Context, t tmux.Target) (tmux.Result, error)
	Signal(ctx context.Context, t tmux.Target, sig syscall.Signal) (tmux.Result, error)
	KillSession(ctx context.Context, t tmux.Target) (tmux.Result, error)
	Screen(ctx context.Context, t tmux.Target) (tmux.Screen, error)
	Capture(ctx context.Context, t tmux.Target, history int) (string, error)
	Notice(ctx context.Context, t tmux.Target, code, text string) (tmux.Result, error)
}

// Store is how the engine reads and writes what is kept in the cluster. Errors of a
// write that lost against another writer satisfy apierrors.IsConflict.
type Store interface {
	// SaveSession writes the session's status as it stands in Subject.Object.
	SaveSession(ctx context.Context) error
	// SaveMessage writes the status of one message.
	SaveMessage(ctx context.Context, m *api.SessionMessage) error
	// LiveMessage reads one message past every cache; nil when it is gone.
	LiveMessage(ctx context.Context, m *api.SessionMessage) (*api.SessionMessage, error)
	// EnsureMessage creates a message, or reads the one that is there.
	EnsureMessage(ctx context.Context, m *api.SessionMessage) error
	// ConversationHolder names the session of this host that goes on with a conversation
	// and is not this one, "" for none. It sees what was saved before.
	ConversationHolder(ctx context.Context, conversation string) (string, error)
	// ConfigMapKey reads one key of a ConfigMap.
	ConfigMapKey(ctx context.Context, ref api.NamespacedConfigMapKey) (string, error)
	// Release lets the object go: its finalizer is removed.
	// It is an error that satisfies apierrors.IsNotFound when it was let go before.
	Release(ctx context.Context) error
	// Emit tells of an event of the session. The fields are names and values in turn.
	Emit(e event.Event, message string, fields ...any)
	// EmitAbout tells of an event of the session that is about one of its messages.
	EmitAbout(m *api.SessionMessage, e event.Event, message string, fields ...any)
}

// Subject is one session at one reconcile.
type Subject struct {
	// Object is a copy whose status the engine changes.
	Object api.HostedSession
	// Class is nil when it cannot be found; ClassProblem then says why.
	Class        *api.SessionClass
	ClassProblem string
	// Verdicts are what the harnesses of the host said of models and efforts. They are
	// needed where the session asks for one.
	Verdicts []api.ModelVerdict
	// AnsweredAt are Engine.Answers from before Verdicts were read.
	AnsweredAt map[VerdictKey]time.Time
	// Messages for the session whose outcome is not final, in any order.
	Messages []*api.SessionMessage
	// EndpointsLeft names sessions of pull requests of this item that have something left on
	// their hosts; "" is none.
	EndpointsLeft string
	// SharesCheckout: another object of this host that is wanted Running serves the same
	// work item, and so works in the same checkout.
	SharesCheckout bool
	// Draining: the host is being drained, so nothing is to run on it.
	Draining bool
	Store    Store
	Log      logr.Logger

	// news waits to be told until the status is written.
	news []news
}

// Engine runs the sessions of one host.
type Engine struct {
	Terminal Terminal
	Lister   *Lister
	// HostName is the name of the host's SessionHost.
	HostName string
	// Dir is the agent's state directory, absolute. Each session has a directory in it.
	Dir string
	// Tmux says which terminal server it is.
	Tmux api.HostTmux
	// Shim is the absolute path of the pane process and hook binary.
	Shim string
	// HookSocket is where hooks poke the agent.
	HookSocket string
	// LookPath finds an executable.
	LookPath func(string) (string, error)
	// Getenv reads a variable of the environment that harnesses inherit.
	Getenv func(key string) string
	// Environ is the environment in which the terminal server starts harnesses, before what
	// their class adds.
	Environ []string
	// Passed are those variables of the agent's environment that every start hands to the
	// harness, KEY=value. The terminal server has them too, as they were when it was started.
	Passed []string
	// KnownUID reports whether a UID is that of a session of this host.
	KnownUID func(uid string) bool
	// Sweep ends the processes of a session that are left outside its terminal.
	Sweep func(ctx context.Context, uid string) (ended []int, err error)
	// Groups is where sessions get control groups of their own, nil for nowhere;
	// *cgroup.Host is it.
	Groups Groups
	// ServerUsage is the memory of the terminal server.
	ServerUsage func(tmux.Snapshot) (tmux.Usage, error)
	// AskAgain is called when a start waits for what AskedAgain tells.
	AskAgain func()
	// Wake is called when what kept other sessions from being started may be gone.
	Wake func()
	// Children finds the processes of a session whose age is between two, but for some.
	Children func(uid string, least, most time.Duration, exclude ...int) ([]tmux.Child, error)
	// Jobs runs what takes minutes.
	Jobs *Jobs
	// Configs watches what harnesses share; nil does not.
	Configs *Configs
	Clock   clock.PassiveClock
	// HostLog is for what concerns no single session.
	HostLog logr.Logger

	// Backoff delays automatic starts of a harness that keeps ending.
	Backoff *flowcontrol.Backoff

	memories memories
	again    again
	rollouts rollouts
	// sealing is held from a look at what is on record of a conversation to its change.
	sealing sync.Mutex
	// resuming is held from the look who has a conversation until that is on record.
	resuming sync.Mutex
	// dueUndo is the unsaved work that was found to be due when it was last looked for.
	dueUndo map[string]bool
}

// NewBackoff is the delay between automatic starts: none before the first, then 10
// seconds, doubling up to 5 minutes, forgotten after 10 quiet minutes. Up to a half is
// added by chance, so that harnesses that were in each other's way do not meet again.
func NewBackoff(c clock.Clock) *flowcontrol.Backoff {
	return flowcontrol.NewFakeBackOffWithJitter(10*time.Second, 5*time.Minute, c, 0.5)
}

// turn is one look at a subject.
type turn struct {
	*Engine
	*Subject
	status  *api.HostedSessionStatus
	mem     *memory
	snap    tmux.Snapshot
	snapErr error
	sight   Sighting
	launch  launchSpec
	obst    *Obstacle
	state   harness.State
	queue   []*api.SessionMessage
	// blocked is what the newest plan says to be in the way of a start, nil for nothing.
	blocked *Obstacle
	// startDue: a start was decided on, which a fresh look has to confirm.
	startDue bool
	// fresh: snap was listed in this turn.
	fresh bool
	// stale: the server refused what the snapshot allowed, which a fresh one explains.
	stale bool
	// kept counts the messages that wait for what a person, or we, left in the input box.
	kept int
	// compared: the conversation was compared in this turn with what its harness left.
	compared bool
	// byItself: the launch under way replaces a harness that ended by itself.
	byItself bool
}

// maxSteps bounds the actions of one Reconcile; more wait for the next.
const maxSteps = 12

// Reconcile takes a session as far as it goes now. It returns when to come back
// without an event, 0 for not at all. The status is left in Subject.Object for the
// caller to save.
func (e *Engine) Reconcile(ctx context.Context, s *Subject) (time.Duration, error) {
	t := &turn{Engine: e, Subject: s, status: s.Object.HostedStatus(), mem: e.memories.of(s.Object.GetUID())}
	defer t.compare(t.status.DeepCopy())
	t.launch, t.obst = e.resolve(s)
	if t.obst == nil && t.now().Before(t.mem.retryAt) {
		t.obst = t.mem.failed
	}
	if t.obst == nil {
		t.obst = t.configInTheWay(ctx)
	}
	if err := t.enqueue(ctx); err != nil {
		return 0, err
	}
	wait, err := t.steps(ctx)
	if err != nil {
		return 0, err
	}
	t.notify(ctx)
	wait = Soonest(Soonest(wait, t.seal()), t.forgive())
	later, err := t.waiting(ctx)
	return Soonest(Soonest(wait, later), t.delayed()), err
}

// steps looks, decides and acts until nothing is left to do now.
func (t *turn) steps(ctx context.Context) (time.Duration, error) {
	if t.snap, t.snapErr = t.Lister.Latest(); errors.Is(t.snapErr, errNotListed) {
		t.snap, t.snapErr = t.Lister.Refresh(ctx)
		t.fresh = true
	}
	for range maxSteps {
		if err := t.look(); err != nil {
			return 0, err
		}
		if err := t.credit(ctx); err != nil {
			return 0, err
		}
		if !t.fresh && t.unproved() {
			t.snap, t.snapErr = t.Lister.Refresh(ctx)
			t.fresh = true
			continue
		}
		// What is taken back or too old is no reason to start anything.
		expiry, err := t.expire(ctx)
		if err != nil {
			return 0, err
		}
		in, plan := t.plan(ctx)
		if plan.Action != ActionNone && plan.Action != ActionDeliver && !t.fresh {
			// Decided on what may be a second old: look again before anything is done. What is
			// typed is guarded in the server itself, and a listing costs more than typing.
			t.startDue = plan.Action == ActionSpawn
			t.snap, t.snapErr = t.Lister.Refresh(ctx)
			t.fresh = true
			continue
		}
		if plan.Action == ActionDeliver && t.now().Sub(t.mem.sealedAt) > sealAgain {
			t.seal()
		}
		again, wait, err := t.proceed(ctx, in, plan)
		if err != nil || !again {
			return Soonest(expiry, Soonest(plan.Requeue, wait)), err
		}
		t.snap, t.snapErr = t.Lister.Refresh(ctx)
		t.fresh = true
	}
	return time.Second, nil
}

// Soonest is the shorter of two waits, where 0 means never.
func Soonest(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// Named reports whether one of these is a terminal name that the session may have.
func Named(obj api.HostedSession, names []string) bool {
	n := namesOf(obj)
	return slices.Contains(names, n.Preferred) || slices.Contains(names, n.Disambiguated)
}

// Forget drops what is remembered of a session whose object is gone.
func (e *Engine) Forget(uid types.UID) {
	e.memories.forget(uid)
	e.Backoff.DeleteEntry(string(uid))
	e.forgetRollout(uid)
	if e.Jobs != nil {
		e.Jobs.forget(uid)
	}
}

// sessionDir is where a session's journal and launch files are.
func (e *Engine) sessionDir(uid types.UID) string {
	return filepath.Join(e.Dir, "sessions", string(uid))
}

func (t *turn) now() time.Time { return t.Clock.Now() }

// look finds the session in the snapshot and reads what its hooks told.
func (t *turn) look() error {
	t.sight = Sighting{Holder: HolderUnknown}
	if t.snapErr != nil {
		t.sight.Detail = t.snapErr.Error()
	} else {
		t.sight = Sight(t.snap, t.record(), namesOf(t.Object), t.KnownUID, t.Terminal)
	}
	switch {
	case t.sight.Holder == HolderLiveOurs:
		t.mem.endedSince = time.Time{}
	case t.sight.Holder != HolderUnknown && t.mem.endedSince.IsZero():
		t.mem.endedSince = t.now()
	}
	if t.sight.Holder != HolderUnknown {
		t.mem.unknownSince = time.Time{}
	} else if t.mem.unknownSince.IsZero() {
		t.mem.unknownSince = t.now()
	}
	// What stands in the input box is known now, as far as tmux answered.
	slices.SortFunc(t.queue, t.byPlace)
	return t.readJournal()
}

func (t *turn) record() Record {
	r := Record{UID: string(t.Object.GetUID()), Target: workitem.NormalizeTarget(t.status.TmuxTarget), PaneID: t.status.PaneID, Epoch: t.status.ServerEpoch}
	if t.status.Launch != nil {
		r.LaunchID = t.status.Launch.ID
	}
	return r
}

// namesOf derives the terminal names of a session. The disambiguated name of a
// standing session tells namespaces apart.
func namesOf(obj api.HostedSession) Names {
	switch s := obj.(type) {
	case *api.StandingSession:
		n := workitem.StandingTmuxName(s.Name)
		sum := sha256.Sum256([]byte(s.Namespace + "/" + s.Name))
		return Names{Preferred: n, Disambiguated: n + "-" + hex.EncodeToString(sum[:3])}
	case *api.WorkItemSession:
		ref := RefOf(s)
		return Names{Preferred: ref.TmuxName(), Disambiguated: ref.DisambiguatedTmuxName()}
	}
	return Names{}
}

// RefOf is the reference that a WorkItemSession serves: its pull request's when it
// has one, else its work item's.
func RefOf(s *api.WorkItemSession) workitem.Ref {
	w := s.Spec.WorkItem
	ref := workitem.Ref{Provider: w.Provider, Host: w.Host, Owner: w.Owner, Repo: w.Repo, Number: w.Number}
	if pr := s.Spec.PullRequest; pr != nil {
		ref.Owner, ref.Repo, ref.Number = pr.Owner, pr.Repo, pr.Number
	}
	return ref
}

// input gathers everything that the decision depends on.
func (t *turn) input() Input {
	st := t.status
	in := Input{
		Desired: t.desired(), Delivery: api.DeliveryPolicyDeliver, Restart: api.RestartPolicyNever,
		RestartRequested: t.restartToken() != "" && t.restartToken() != st.LastHandledRestart,
		Obstacle:         t.obst, KeepSession: true, KillHarness: true,
		Closed: st.ClosedAt != nil, Resume: ResumeNone,
		Holder: t.sight.Holder, HolderDetail: t.sight.Detail, OccupantKnown: t.sight.OccupantKnown,
		ClearFailed: t.mem.uncleared != "" && t.mem.uncleared == t.sight.Session.ID && t.now().Sub(t.mem.unclearedAt) < unknownRequeue, EndpointsLeft: t.EndpointsLeft,
		MessageDue: t.head() != nil, HowEnded: t.mem.words.how, OutOfMemory: t.mem.words.oom != nil, LastWords: t.mem.words.said(), Transcript: text.OneLine(t.state.TranscriptPath), Now: t.now(),
	}
	_, in.Paused = t.Object.GetAnnotations()[api.PausedAnnotation]
	in.Force = t.Object.GetAnnotations()[api.ForceCleanupAnnotation] == "true"
	in.CheckoutMissing = t.launch.checkout != nil && t.launch.dir == ""
	in.RemoveCheckout = t.removalOf(in.Desired) != ""
	if t.now().Sub(t.mem.removalAt) < removalRetry {
		in.RemovalProblem = t.mem.removalProblem
	}
	switch s := t.Object.(type) {
	case *api.StandingSession:
		in.Delivery, in.Restart = s.Spec.DeliveryPolicy, s.Spec.RestartPolicy
	case *api.WorkItemSession:
		in.Delivery, in.Restart = s.Spec.DeliveryPolicy, s.Spec.RestartPolicy
		in.Registered = s.Spec.Conversation != nil
		for _, g := range s.Spec.StartGates {
			in.Gates = append(in.Gates, g.Name)
		}
	}
	resumeAllowed := true
	in.Grace = 5 * time.Second
	if t.Class != nil {
		p := t.Class.Spec.Tmux
		in.KeepSession, in.KillHarness = ptr.Deref(p.KeepSessionOnClose, true), ptr.Deref(p.KillHarnessOnClose, true)
		in.Grace = time.Duration(ptr.Deref(p.HarnessKillGraceSeconds, 5)) * time.Second
		resumeAllowed = ptr.Deref(p.ResumeOnRespawn, true)
		in.Tidy = !ptr.Deref(p.RemainOnExit, true)
		in.RetainUntil = t.retainUntil(p.RetainedSecondsAfterClose)
	}
	t.recordInto(&in, resumeAllowed)
	t.verdictInto(&in)
	if in.Obstacle == nil {
		in.Obstacle = t.behindCanary()
	}
	return in
}

// desired is what the session should be.
func (t *turn) desired() Desired {
	if t.Object.GetDeletionTimestamp() != nil {
		return DesiredDeleted
	}
	want := Desired(t.Object.WantedState())
	if want == DesiredRunning && t.Draining {
		return DesiredParked
	}
	return want
}

// removalRetry is how long a checkout that could not be removed is left before it is tried
// again.
const removalRetry = 30 * time.Second

// noLaunch stands for the launch of a record that names none.
const noLaunch = "none"

// maxCutOff is how many resumes in a row may be cut off before a fresh conversation is
// begun: something in the conversation itself may end the harness.
const maxCutOff = 3

// dyingFor is how long tmux may take to say how a harness ended. Some never tell.
const dyingFor = 5 * time.Second

// recordInto adds what the record and the hooks say of the launches.
func (t *turn) recordInto(in *Input, resumeAllowed bool) {
	st, ours := t.status, t.sight.Holder.Ours()
	in.Started, in.Remembered = st.StartedAt != nil || ours, st.Launch == nil && st.ConversationID != ""
	in.StopRequested = t.stopRequested()
	in.Swept = t.mem.swept == noLaunch
	if l := st.Launch; l != nil {
		in.Intended, in.IntendedMode = !l.Confirmed && !ours, l.Mode
		in.Swept = t.mem.swept == l.ID
		if l.Mode == api.LaunchResume && (l.Confirmed || ours) {
			in.Resume, in.ResumeRefuted = t.resumeState(), t.resumeRefuted()
		}
	}
	if in.Resume == ResumeProved {
		t.mem.cutOff = 0
	}
	in.Dying = t.sight.Pane.Dying && t.now().Sub(t.mem.endedSince) < dyingFor
	if in.Resume == ResumePending && !t.evidence() {
		in.ProbeUntil = t.probeUntil()
	}
	in.Unrecorded = t.sight.Holder == HolderLiveOurs && (t.sight.Session.UID == "" || st.StartedAt == nil || st.Launch == nil || !st.Launch.Confirmed ||
		st.PaneID != t.sight.Pane.ID || st.ServerEpoch != t.snap.Epoch.String() || st.TmuxTarget != t.sight.Name)
	if t.obst == nil {
		// It costs building a command line, and is asked only where something is started.
		in.CanResume, in.Lost = t.canResume(resumeAllowed)
		in.Uncompared, in.Altered = t.comparedAs(in.CanResume)
		// A text that was pasted is brought to its end before the harness is.
		in.ArgsDiffer = t.launch.differs(st) && t.mem.progress.Pasted.IsZero() && (t.head() == nil || !t.attempted(t.head()))
	}
	if !t.mem.endedSince.IsZero() {
		// An entry that was quiet for long enough is forgotten.
		t.Backoff.GC()
		in.BackoffUntil = t.mem.endedSince.Add(t.Backoff.Get(string(t.Object.GetUID())))
	}
}

// stopRequested is when the harness was asked to end, zero when it was not. The status
// keeps no fractions of a second, and the grace is not to lose one.
func (t *turn) stopRequested() time.Time {
	at := t.status.StopRequestedAt
	if at == nil {
		return time.Time{}
	}
	if exact := t.mem.stopRequested; exact.Truncate(time.Second).Equal(at.Truncate(time.Second)) {
		return exact
	}
	return at.Time
}

// resumable reports whether the harness would take the recorded conversation's id.
func (t *turn) resumable() bool {
	id, l := t.conversationToResume(), t.launch
	if !l.adapter.Traits().Resumes || !harness.ValidConversationID(id) || t.status.Harness != "" && t.status.Harness != l.adapter.Name() {
		return false
	}
	if last := t.status.Launch; last != nil && last.Mode == api.LaunchFresh && (t.mem.journal.offset > 0 || !l.adapter.Traits().AssignsID) && len(t.state.Taken) == 0 {
		// Nothing was said in it: the harness has not kept it.
		return false
	}
	opts := t.launchOptions(id, true)
	opts.HookCommand = []string{t.Shim}
	_, err := l.adapter.Command(opts)
	return err == nil
}

// launchOptions are those of a start or a resume of a conversation, but for what a real
// start has of its own.
func (t *turn) launchOptions(conversation string, resume bool) harness.LaunchOptions {
	l := t.launch
	return harness.LaunchOptions{
		Binary: l.binary, Dir: l.dir, Args: l.args, Model: l.model, Effort: l.effort, ConversationID: conversation, Resume: resume,
		Permissions: t.permissions(), NoQuestions: asksOnWorkItem(t.Object, t.Class), Custom: l.custom, Trust: t.trusts(), FileDir: t.sessionDir(t.Object.GetUID()),
	}
}

// maxToken is the longest restart token that is echoed as it is, in bytes.
const maxToken = 256

// restartToken is the restart token.
func (t *turn) restartToken() string {
	return Token(t.Object.GetAnnotations()[api.RestartRequestedAnnotation])
}

// Token is a token as it is echoed; a longer one stands for its digest.
func Token(token string) string {
	if len(token) <= maxToken {
		return token
	}
	sum := sha256.Sum256([]byte(token))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (t *turn) conversationToResume() string {
	if t.status.ConversationID != "" {
		return t.status.ConversationID
	}
	if w, ok := t.Object.(*api.WorkItemSession); ok && w.Spec.Conversation != nil {
		return w.Spec.Conversation.ID
	}
	return ""
}

// resumeState says what is known of the newest launch, which was a resume. The
// condition was set to pending with the launch itself.
func (t *turn) resumeState() Resume {
	if c := meta.FindStatusCondition(t.status.Conditions, api.ConditionResumed); c != nil && c.Reason != api.ReasonResumePending {
		return ResumeProved
	}
	if t.evidence() {
		if t.state.Ready || t.state.Resumed {
			return ResumeProved
		}
		return ResumePending
	}
	if t.sight.Holder == HolderLiveOurs && !t.now().Before(t.probeUntil()) {
		return ResumeProved
	}
	return ResumePending
}

// resumeRefuted reports that the newest launch, a resume, cannot be gone on with: its
// harness failed by itself, or too many were cut off before it. An end that calls itself
// a success says nothing against the conversation: a harness whose database was locked
// ends so (R15).
func (t *turn) resumeRefuted() bool {
	p, launch := t.sight.Pane, t.status.Launch.ID
	if t.sight.Holder == HolderDeadOurs && t.sight.Session.Generation == launch && p.ExitStatus != nil && *p.ExitStatus != 0 && p.ExitSignal == "" {
		t.mem.refuted = launch // remembered, because the dead terminal is cleared
	}
	return t.mem.refuted == launch || t.mem.cutOff >= maxCutOff
}

func (t *turn) probeUntil() time.Time {
	if t.status.StartedAt == nil {
		return t.now().Add(time.Second)
	}
	probe := 2 * time.Second
	if t.Class != nil {
		probe = time.Duration(ptr.Deref(t.Class.Spec.Tmux.ResumeProbeSeconds, 2)) * time.Second
	}
	return t.status.StartedAt.Add(probe)
}

// evidence reports whether the launched harness tells of itself.
func (t *turn) evidence() bool { return t.traits().Evidence }

// traits are those of the harness that was launched, else of the one that would be.
func (t *turn) traits() harness.Traits {
	if a, err := harness.Get(t.status.Harness); err == nil {
		return a.Traits()
	}
	if t.launch.adapter != nil {
		return t.launch.adapter.Traits()
	}
	return harness.Traits{}
}

func (t *turn) target() tmux.Target {
	return tmux.Target{UID: string(t.Object.GetUID()), SessionID: t.sight.Session.ID, PaneID: t.sight.Pane.ID, Epoch: t.snap.Epoch}
}

// fail wraps an error of one action with what it was done to.
func (t *turn) fail(what string, err error) error {
	return fmt.Errorf("%s of %s %s/%s: %w", what, t.Object.SessionKind(), t.Object.GetNamespace(), t.Object.GetName(), err)
}
