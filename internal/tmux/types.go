package tmux

import (
	"fmt"
	"time"
)

// Epoch identifies one life of a tmux server. Session, window and pane ids
// restart at zero with every server, so an id means nothing without the epoch
// it was read in.
type Epoch struct {
	// PID is the server's process id, as the server itself reports it.
	PID int
	// StartTime is the server's start, in seconds since 1970.
	StartTime int64
}

// IsZero reports whether no server was seen.
func (e Epoch) IsZero() bool { return e == Epoch{} }

// String is the form kept in records: "<pid>.<start time>".
func (e Epoch) String() string { return fmt.Sprintf("%d.%d", e.PID, e.StartTime) }

// Pane is one pane as the server listed it.
type Pane struct {
	// ID is the pane's own id, "%7". Exact on every tmux version.
	ID string
	// WindowID is the id of its window, "@3".
	WindowID string
	// PID is the process tmux started in the pane; 0 when tmux gave none (a dead
	// pane since tmux 3.8). It is stale when Dead: never signal a dead pane's PID.
	PID int
	// Dead means that tmux holds the pane although its process ended.
	Dead bool
	// Dying means Dead without an exit status or a signal yet. Up to tmux 3.6b Dead only
	// says that the terminal was closed: the process may still be alive, so it is not
	// cleared before it has ended. Never set for tmux 3.2, which reports no signal.
	Dying bool
	// ExitStatus is the exit status of a dead pane, nil when tmux does not say.
	ExitStatus *int
	// ExitSignal is the signal that ended a dead pane, "SIGTERM", whatever form tmux gave
	// it; "" when none is known.
	ExitSignal string
	// InMode means that a mode (copy mode, tree mode, ...) covers the pane.
	InMode bool
	// InputOff means that the pane takes no input (select-pane -d): a paste into it
	// is lost without an error.
	InputOff bool
	// BracketPaste is nil where tmux cannot tell (before 3.7), else whether the
	// application asked for bracketed paste.
	BracketPaste *bool
}

// Session is one tmux session as the server listed it.
type Session struct {
	// ID is the session's id, "$4". Exact on every tmux version.
	ID string
	// Name is a label. It is never an identity.
	Name string
	// UID is the stamp @loop_uid: the UID of the object that owns the session, ""
	// for a session that is not ours (no stamp, or one that no UID can be).
	UID string
	// Generation is the stamp @loop_gen: which launch of the owner this is. This and
	// the four fields below are "?" when somebody set a value that we never write.
	Generation string
	// Pasted and Submitted are the delivery markers @loop_pasted, @loop_submitted.
	Pasted, Submitted string
	// Object is @loop_object, the owner in words.
	Object string
	// Notice is @loop_notice: the code of what Server.Notice shows, "" for nothing.
	Notice string
	// Panes holds every pane of every window of the session, in listing order.
	Panes []Pane
}

// Live reports whether any pane of the session still runs.
func (s Session) Live() bool {
	for _, p := range s.Panes {
		if !p.Dead {
			return true
		}
	}
	return false
}

// Pane returns the pane of the session with this id.
func (s Session) Pane(id string) (Pane, bool) {
	for _, p := range s.Panes {
		if p.ID == id {
			return p, true
		}
	}
	return Pane{}, false
}

// Snapshot is every session of one server at one moment: the only thing that
// tells whether a session exists, lives or died.
type Snapshot struct {
	// Epoch is zero when there is authoritatively no server.
	Epoch Epoch
	// Taken is when the listing was started: the snapshot is at least this new.
	Taken time.Time
	// Sessions excludes the anchor session and the hub.
	Sessions []Session
}

// ByName returns the session with exactly this name.
func (s Snapshot) ByName(name string) (Session, bool) {
	for _, v := range s.Sessions {
		if v.Name == name {
			return v, true
		}
	}
	return Session{}, false
}

// ByUID returns the sessions stamped with this UID; more than one is a fault
// that the caller must report.
func (s Snapshot) ByUID(uid string) []Session {
	var out []Session
	for _, v := range s.Sessions {
		if uid != "" && v.UID == uid {
			out = append(out, v)
		}
	}
	return out
}

// SpawnRequest describes one session to create.
type SpawnRequest struct {
	// Name must match NamePattern.
	Name string
	// UID and Generation are the stamps, [A-Za-z0-9-]{1,64}; UID is also put into the
	// environment of the pane as LOOP_UID.
	UID, Generation string
	// Object says in words whose session this is, "standingsession/default/hello"; kept
	// as @loop_object for people. [A-Za-z0-9/._-]{0,300}.
	Object string
	// Dir is the working directory: absolute and existing, checked before tmux is asked
	// because tmux silently falls back to another one.
	Dir string
	// Argv is executed directly, without a shell: at least two words, the first absolute and
	// without "=". All arguments of one tmux invocation together are limited to 16,000 bytes.
	Argv []string
	// Width and Height of the detached terminal; 0 means 200x50.
	Width, Height int
}

// Spawned says what a spawn created: the ids and the pid are those of Epoch.
type Spawned struct {
	SessionID, WindowID, PaneID string
	PanePID                     int
	Epoch                       Epoch
}

// Child is a process of a session beside those that the server and the pane process
// started.
type Child struct {
	PID int
	// Name is the short name of its program, which it chooses itself.
	Name string
	// Age is how long it has run.
	Age time.Duration
}

// Target addresses one pane that is ours, as it was seen in one epoch. Every
// operation on it is refused inside the server when any of these no longer holds.
type Target struct {
	UID       string
	SessionID string
	PaneID    string
	Epoch     Epoch
}

// Outcome is the word with which the server itself answered a guarded operation.
type Outcome string

const (
	// Done means that the guard held and the operation ran.
	Done Outcome = "Done"
	// Already means that the marker shows that it ran before: nothing was done.
	Already Outcome = "Already"
	// Refused means that the guard did not hold (another stamp, another epoch, dead, live
	// where dead was required, input off): nothing was done. Result.Detail says which.
	Refused Outcome = "Refused"
	// NotReady means that the application has not enabled bracketed paste: nothing was
	// typed. Only tmux 3.7 and newer can tell.
	NotReady Outcome = "NotReady"
	// Gone means authoritatively that the target does not exist any more.
	Gone Outcome = "Gone"
)

// Result is the answer to a guarded operation.
type Result struct {
	Outcome Outcome
	// Detail holds the values that the guard saw, for a condition or a log line.
	Detail string
}
