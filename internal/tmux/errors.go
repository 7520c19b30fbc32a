package tmux

import (
	"errors"
	"strings"
)

var (
	// ErrAbsent is authoritative: the server answered that there is no such session or
	// pane, or nothing listens on the socket and no server process of ours lives.
	ErrAbsent = errors.New("tmux: absent")
	// ErrDuplicate means that the name of a spawn is taken. Nothing was changed.
	ErrDuplicate = errors.New("tmux: the session name is taken")
	// ErrRefused means that the server's own guard did not hold, for the operations
	// that return no Result: another stamp or another epoch. Nothing was done.
	ErrRefused = errors.New("tmux: refused by the guard")
	// ErrUnknown is what every *UnknownError is. The state is not known: do nothing
	// that a live session could suffer from, and ask again later.
	ErrUnknown = errors.New("tmux: no authoritative answer")
)

// The reasons of an UnknownError.
const (
	// ReasonTimeout: no answer in time; the server is stopped, starved or overloaded.
	ReasonTimeout = "timeout"
	// ReasonCanceled: the caller's context ended first.
	ReasonCanceled = "canceled"
	// ReasonExec: the tmux client could not be run.
	ReasonExec = "exec"
	// ReasonKilled: a signal ended the tmux client.
	ReasonKilled = "client-killed"
	// ReasonSocketLost: nothing listens on the socket, but the server's process lives.
	ReasonSocketLost = "socket-lost"
	// ReasonServerLost: the connection broke in the middle ("server exited
	// unexpectedly", "lost server"), which does not say that the server ended.
	ReasonServerLost = "server-lost"
	// ReasonVersionMismatch: client and server do not understand each other, as
	// between tmux <= 3.5a and >= 3.6.
	ReasonVersionMismatch = "version-mismatch"
	// ReasonPermission: this user may not use the socket or the server.
	ReasonPermission = "permission-denied"
	// ReasonFailed: tmux refused the command with a message of its own.
	ReasonFailed = "failed"
	// ReasonNoSentinel: tmux reported success without the line that proves it.
	ReasonNoSentinel = "no-sentinel"
	// ReasonMalformed: the answer is not in the form that was asked for.
	ReasonMalformed = "malformed"
)

// UnknownError means that tmux gave no authoritative answer: it neither proves
// that something exists nor that it does not. errors.Is(err, ErrUnknown) holds.
type UnknownError struct {
	// Op is the operation, as in "snapshot".
	Op string
	// Reason is one of the Reason constants.
	Reason string
	// Stderr is what the tmux client printed, at most 1,000 bytes, or our own remark.
	Stderr string
	// Err is the cause, if there is one: context.DeadlineExceeded, an exec error, ...
	Err error
}

func (e *UnknownError) Error() string {
	var b strings.Builder
	b.WriteString("tmux ")
	b.WriteString(e.Op)
	b.WriteString(": no authoritative answer (")
	b.WriteString(e.Reason)
	b.WriteString(")")
	if e.Stderr != "" {
		b.WriteString(": ")
		b.WriteString(e.Stderr)
	}
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

// Answered reports that tmux did answer, and not as it was asked to: it refused.
func (e *UnknownError) Answered() bool {
	switch e.Reason {
	case ReasonFailed, ReasonPermission, ReasonNoSentinel, ReasonMalformed:
		return true
	}
	return false
}

// Is makes errors.Is(err, ErrUnknown) true.
func (e *UnknownError) Is(target error) bool { return target == ErrUnknown }

// Unwrap gives the cause.
func (e *UnknownError) Unwrap() error { return e.Err }

func unknown(op, reason, stderr string, err error) *UnknownError {
	const most = 1000
	stderr = strings.TrimSpace(stderr)
	if len(stderr) > most {
		stderr = stderr[:most] + "..."
	}
	return &UnknownError{Op: op, Reason: reason, Stderr: stderr, Err: err}
}
