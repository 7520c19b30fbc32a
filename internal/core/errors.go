package core

import (
	"errors"
	"strings"
)

// What an Error is about, for errors.Is.
var (
	// ErrInvalid: what was given cannot be used, and nothing was done.
	ErrInvalid = errors.New("invalid")
	// ErrExists: the name is taken.
	ErrExists = errors.New("exists already")
	// ErrDeclared: a configuration file declares the session, and would bring it back.
	ErrDeclared = errors.New("declared")
	// ErrNotFound: there is no such object.
	ErrNotFound = errors.New("not found")
	// ErrNotRunning: the session does not run, and a message starts none.
	ErrNotRunning = errors.New("not running")
	// ErrTooLate: it happened already.
	ErrTooLate = errors.New("too late")
	// ErrElsewhere: the session's terminal is on another host.
	ErrElsewhere = errors.New("on another host")
	// ErrUnconfirmed: what was asked for is stored, and did not come about in time. It may
	// still.
	ErrUnconfirmed = errors.New("not confirmed")
	// ErrFailed: what was asked for was tried and failed.
	ErrFailed = errors.New("failed")
)

// Error is a refusal or a failure, for a person: what, to what, why, and what to do.
type Error struct {
	// Is is one of the errors above.
	Is error
	// Message says what and why.
	Message string
	// Fix is what to do about it, a command where there is one.
	Fix string
}

// Error implements error.
func (e *Error) Error() string {
	if e.Fix == "" {
		return e.Message
	}
	return strings.TrimSuffix(e.Message, ".") + ": " + e.Fix
}

// Unwrap implements errors.Is.
func (e *Error) Unwrap() error { return e.Is }

func refuse(is error, message, fix string) error {
	return &Error{Is: is, Message: message, Fix: fix}
}

func invalid(message, fix string) error  { return refuse(ErrInvalid, message, fix) }
func notFound(message, fix string) error { return refuse(ErrNotFound, message, fix) }
