// Package faultpoint names the points in our programs where a crash, a stall or an error
// would matter most. In every normal build a point is nothing: the compiler removes it.
// Built with the tag chaos, a program asks at each point what to do there, and test/chaos
// answers. It says what may go wrong, never what is right.
package faultpoint

// Env names the variable with the path of the unix socket that is asked. Beside it, at
// the path with ".clock" behind it, may be a file with the whole seconds by which the
// clock is off. Without the variable nothing happens at a point.
const Env = "THE_LOOP_FAULTPOINTS"

// The points of the agent, in the order in which one message comes by them.
const (
	// MessageWrite: a message's status is about to be written. An error is one before
	// anything was sent.
	MessageWrite = "message-write"
	// MessageWritten: it is written. An error is an answer that was lost on its way back.
	MessageWritten = "message-written"
	// SessionWrite and SessionWritten are the same two for a session's status.
	SessionWrite   = "session-write"
	SessionWritten = "session-written"
	// Spawning: the launch is on record, and the terminal session is about to be made.
	Spawning = "spawning"
	// Spawned: it is made, and nothing of it is on record yet.
	Spawned = "spawned"
	// AttemptWrite: that a text is about to be typed is about to be noted on the disk. An
	// error is one of the disk.
	AttemptWrite = "attempt-write"
	// AttemptWritten: it is noted, and nothing is typed yet.
	AttemptWritten = "attempt-written"
	// Pasted: the text is typed, and not submitted.
	Pasted = "pasted"
	// Submitted: it is submitted, and the harness has not told that it took it.
	Submitted = "submitted"
	// Evidence: the harness told, and nobody knows of it but the agent.
	Evidence = "evidence"
)

// Points are all of them.
var Points = []string{
	MessageWrite, MessageWritten, SessionWrite, SessionWritten, Spawning, Spawned,
	AttemptWrite, AttemptWritten, Pasted, Submitted, Evidence,
}

// Failing are the points at which an error may come instead.
var Failing = []string{MessageWrite, MessageWritten, SessionWrite, SessionWritten, AttemptWrite}
