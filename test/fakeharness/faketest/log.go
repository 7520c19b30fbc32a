// Package faketest helps tests to drive the fakeharness and to see what it saw: its
// log as typed events, a terminal to start it on, and a screen that shows what a
// person would see there.
package faketest

import (
	"bytes"
	"encoding/json"
	"os"
	"time"
)

// Event is one line of a fakeharness's log. Fields that an event does not have are
// zero. The names of the events:
//
//	started         the program began: Argv, UID (its LOOP_UID), Cwd, Behaviour
//	ready           it reached its prompt: ID, Source
//	input           Raw bytes came from the terminal
//	frame           a bracketed paste is complete: Bytes, SHA256 and Lines of its body
//	                with carriage returns turned into line ends
//	enter-held      a carriage return did not submit: Why
//	submit          a message left the input box: Text, Bytes, SHA256, Busy
//	turn, reply     a turn began (Text, SHA256, Number), was answered (Text)
//	shell, command  a message was taken for one: Command; memory for a note: Text
//	paste-swallowed a paste was thrown away
//	discarded       a message was thrown away at the usage limit
//	hook            a hook ran: Hook, Exit, Millis; hook-skipped when it did not
//	dialog          a dialog opened: Kind; then dialog-answered (Option, Text) or
//	                dialog-cancelled
//	dropped         input was thrown away by a dialog
//	tool-ran        a tool ran: Tool; tool-denied when a hook denied it
//	new-id          another conversation: ID
//	interrupted     the turn was interrupted
//	ghost-accepted  a carriage return took the suggestion
//	signal          a signal came: Signal
//	child           a child of the behaviour children lives (PID is the child's): Kind
//	exit            the program ends: Code
type Event struct {
	Time      time.Time `json:"t"`
	PID       int       `json:"pid"`
	Event     string    `json:"event"`
	Argv      []string  `json:"argv"`
	UID       string    `json:"uid"`
	Cwd       string    `json:"cwd"`
	Behaviour string    `json:"behaviour"`
	ID        string    `json:"id"`
	Source    string    `json:"source"`
	Raw       []byte    `json:"raw"`
	Bytes     int       `json:"bytes"`
	SHA256    string    `json:"sha256"`
	Lines     int       `json:"lines"`
	Text      string    `json:"text"`
	Busy      bool      `json:"busy"`
	Why       string    `json:"why"`
	Number    int       `json:"number"`
	Command   string    `json:"command"`
	Hook      string    `json:"hook"`
	Exit      int       `json:"exit"`
	Millis    int64     `json:"millis"`
	Kind      string    `json:"kind"`
	Option    string    `json:"option"`
	Tool      string    `json:"tool"`
	Signal    string    `json:"signal"`
	Code      int       `json:"code"`
}

// Log is the path of a fakeharness's log (FAKEHARNESS_LOG). Several programs may
// share one.
type Log string

// All are the events so far, in order; none when there is no file yet.
func (l Log) All() []Event {
	data, err := os.ReadFile(string(l))
	if err != nil {
		return nil
	}
	var out []Event
	for _, line := range bytes.Split(data, []byte{'\n'}) {
		var e Event
		if json.Unmarshal(line, &e) == nil && e.Event != "" {
			out = append(out, e)
		}
	}
	return out
}

// Events are the events with this name, in order.
func (l Log) Events(name string) []Event {
	var out []Event
	for _, e := range l.All() {
		if e.Event == name {
			out = append(out, e)
		}
	}
	return out
}

// Count is the number of events with this name.
func (l Log) Count(name string) int { return len(l.Events(name)) }

// Submits are the texts of all messages that left the input box, in order.
func (l Log) Submits() []string {
	out := []string{}
	for _, e := range l.Events("submit") {
		out = append(out, e.Text)
	}
	return out
}

// Input is every byte that came from the terminal, in order.
func (l Log) Input() []byte {
	var out []byte
	for _, e := range l.Events("input") {
		out = append(out, e.Raw...)
	}
	return out
}
