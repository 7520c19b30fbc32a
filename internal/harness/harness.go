// Package harness knows the coding agents that the-loop can host: one adapter a
// file, each saying as data and small pure functions how its harness is started
// and resumed, how it shows that it is ready, busy or waiting, and how it proves
// that it took a prompt. It knows nothing of Kubernetes and nothing of tmux.
package harness

import (
	"time"

	"github.com/theloop-dev/the-loop/internal/harness/hook"
)

// LaunchOptions is what an adapter needs to build one command line.
type LaunchOptions struct {
	// Binary is the harness's executable, absolute; resolved and checked before.
	Binary string
	// Dir is the working directory of the harness, absolute.
	Dir string
	// Args are the operator's harness arguments, class then session.
	Args []string
	// Model and Effort are "" for the harness's own choice.
	Model, Effort string
	// ConversationID is the conversation to start or to resume; "" for a start where the
	// harness chooses it (Traits.AssignsID).
	ConversationID string
	// Resume continues ConversationID instead of starting it.
	Resume bool
	// HookCommand is the argv prefix of the hook binary for this launch, its first
	// element absolute. An adapter with evidence makes the harness run it on its
	// events, with --permissions Deny or Allow added when Permissions say so.
	HookCommand []string
	// Permissions answers the harness's permission dialogs: PermissionsAsk leaves them to
	// a person.
	Permissions Permissions
	// NoQuestions: nobody sits at the terminal to answer a question, so the harness is not
	// given a tool that asks one there, where it has such a tool.
	NoQuestions bool
	// PromptFile is a 0600 file with the boot prompt; set only for adapters without
	// evidence, which must take it as an argument.
	PromptFile string
	// Custom holds the argv templates of the custom adapter.
	Custom CustomCommand
	// Trust accepts the trust dialog for Dir, where that is done by the command line.
	Trust bool
	// FileDir is a private directory of the session, absolute, for Command.Files.
	FileDir string
	// AcceptBypass silences the harness's own disclaimer about running without
	// permissions, whose default answer ends the harness. Set it only when the
	// operator's arguments ask for that mode and the policy allows to accept it.
	AcceptBypass bool
}

// CustomCommand is the command line of a harness that has no adapter of its own.
// In each element {{conversationID}}, {{promptFile}}, {{model}}, {{effort}} and
// {{dir}} are replaced; an element that is a lone placeholder with an empty value
// is left out together with nothing else.
type CustomCommand struct {
	StartArgs, ResumeArgs []string
}

// Permissions says who answers a permission dialog of the harness.
type Permissions string

const (
	// PermissionsAsk: a person, at the terminal.
	PermissionsAsk Permissions = "Ask"
	// PermissionsDeny: our hook, with no.
	PermissionsDeny Permissions = "Deny"
	// PermissionsAllow: our hook, with yes; a question to a person stays one.
	PermissionsAllow Permissions = "Allow"
)

// Command is one process to start: argv[0] is LaunchOptions.Binary.
type Command struct {
	Argv []string
	// Env is added to the environment, KEY=value.
	Env []string
	// Files must be written, mode 0600, before the process is started.
	Files []File
}

// File is a file that a command line refers to.
type File struct {
	// Path is in LaunchOptions.FileDir; the same for every launch.
	Path string
	Data []byte
}

// Traits are an adapter's answers that do not depend on a session.
type Traits struct {
	// AssignsID: we choose the conversation id before the start.
	AssignsID bool
	// Resumes: a conversation can be continued.
	Resumes bool
	// Evidence: hooks tell readiness and that a prompt was taken. Without it a paste is
	// at best "typed" and the boot prompt goes as an argument.
	Evidence bool
	// ReadyWithin bounds the wait for readiness before the session is called stuck.
	ReadyWithin time.Duration
	// Refusal says why the harness cannot be hosted, "" for one that can.
	Refusal string
	// IdleOnly: nothing may be typed while the harness is in a turn, whatever a class
	// allows. It would cut the answer short, or could not be proved.
	IdleOnly bool
	// Env names the variables by which the harness finds its account and its
	// configuration: they are passed on from the operator's environment.
	Env []string
	// SubmitGap is the pause the harness needs between the paste and the carriage
	// return, SubmitGapPerKiB what it needs in addition for each KiB of text.
	SubmitGap, SubmitGapPerKiB time.Duration
	// LosesReturn: on a busy machine the carriage return can be lost, and a second one
	// submits what stands in the input box. It has no effect without a Drafter.
	LosesReturn bool
	// TakenWithin bounds the wait for the evidence after the carriage return.
	TakenWithin time.Duration
	// Appends: the file in which a conversation is kept (State.TranscriptPath) is only added
	// to, but for what a turn under way takes back of itself. Only of such a file it can be
	// told whether anybody else has written to it.
	Appends bool
}

// Gap is the pause between the paste of a text of so many bytes and the carriage
// return.
func (t Traits) Gap(size int) time.Duration {
	const kib = 1 << 10
	return t.SubmitGap + t.SubmitGapPerKiB*time.Duration(size)/kib
}

// StateFile is implemented by an adapter whose harness shows what it does in other
// ways than by its hooks too: in files that it keeps, or in its process. An interrupted
// turn, for one, fires no hook.
type StateFile interface {
	// Recheck corrects a State by what is seen there, also a State of which no hook has
	// told yet. What says nothing newer leaves the State as it is.
	Recheck(s State, p Process) State
}

// Process is the living process of one launch.
type Process struct {
	// PID is the process of the pane. The harness is that process or below it.
	PID int
	// Launched is when it was started, to the second; zero when that is not known.
	Launched time.Time
	// ConversationID is the one that was launched, "" when the harness chooses it; Resume
	// that it was to be continued.
	ConversationID string
	Resume         bool
	// Lookup gives environment variables as the harness sees them, "" when unset; with a
	// LOOP_UID in it, only files of a process with the same LOOP_UID count.
	Lookup func(key string) string
}

// Adapter is one harness. Implementations are stateless.
type Adapter interface {
	// Name is the value of SessionClass.spec.harness.name.
	Name() string
	// Binary is the executable's default name, looked up on PATH.
	Binary() string
	Traits() Traits
	// Command builds the command line of one launch. It refuses what the harness would
	// refuse or misread (a conversation id that could be taken for a flag), naming the
	// allowed form.
	Command(LaunchOptions) (Command, error)
	// Observe folds one hook note into what is known of the harness.
	Observe(State, hook.Note) State
}

// Activity is what the harness is doing.
type Activity string

const (
	// ActivityUnknown: no evidence either way.
	ActivityUnknown Activity = "Unknown"
	// ActivityIdle: at its prompt.
	ActivityIdle Activity = "Idle"
	// ActivityBusy: in a turn; further prompts are queued by the harness.
	ActivityBusy Activity = "Busy"
	// ActivityAwaitingInput: a dialog is open. Nothing may be typed: a carriage return
	// would answer it, as was measured in every harness.
	ActivityAwaitingInput Activity = "AwaitingInput"
)

// State is what the hooks of one launch have told so far. The zero State is a
// harness that has said nothing.
type State struct {
	// Started is when the harness said that it starts; with a StateFile it is Ready only
	// once that says so too. Some say nothing before their first prompt.
	Started time.Time
	// Ready: the harness reached its prompt in this launch.
	Ready bool
	// Ended: the harness said that it ends.
	Ended bool
	// ConversationID is the conversation that runs now, "" when unknown. It can differ
	// from the one launched: /clear mints a new one.
	ConversationID string
	// Resumed: the harness said that it continues a stored conversation.
	Resumed bool
	// Activity since Since; WaitingFor names the dialog when AwaitingInput.
	Activity   Activity
	Since      time.Time
	WaitingFor string
	// Taken are the prompts taken, oldest first; at most MaxTaken are kept.
	Taken []Taken
	// TranscriptPath is where the harness keeps the conversation, "" when unknown.
	TranscriptPath string
	// Limited is the account's usage limit, LoginRefused its login that was not accepted,
	// as the newest failed turn told; a turn that was answered clears both. They are of one
	// launch: a new process has its own login.
	Limited, LoginRefused Refusal
}

// By is the State with no beginning in it that is later than now: what was told has
// happened. The clock may have been set back since, and nobody waits until it is that late
// again.
func (s State) By(now time.Time) State {
	bound := func(t time.Time) time.Time {
		if t.After(now) {
			return now
		}
		return t
	}
	s.Started, s.Since = bound(s.Started), bound(s.Since)
	return s
}

// MaxTaken bounds State.Taken.
const MaxTaken = 64

// Taken is one prompt that the harness took.
type Taken struct {
	Digest string
	Time   time.Time
	// Mark is where the harness told it.
	Mark hook.Mark
}

// TookAfter reports when the harness told, behind m, that it took a prompt with this digest.
func (s State) TookAfter(digest string, m hook.Mark) (time.Time, bool) {
	for _, k := range s.Taken {
		if k.Digest == digest && k.After(m) {
			return k.Time, true
		}
	}
	return time.Time{}, false
}

// After reports that it was told behind m, in the same launch.
func (k Taken) After(m hook.Mark) bool {
	return k.Mark.Launch == m.Launch && k.Mark.Number > m.Number
}

// TookSince reports when the harness took a prompt with this digest at or after t.
func (s State) TookSince(digest string, t time.Time) (time.Time, bool) {
	for _, k := range s.Taken {
		if k.Digest == digest && !k.Time.Before(t) {
			return k.Time, true
		}
	}
	return time.Time{}, false
}
