// Package event is the catalogue of what is told about sessions: each happening has one
// name, by which it stands in the log, in the Kubernetes Events of its object and in the
// counter theloop_events_total. Nothing is told that is not declared here.
package event

import (
	"cmp"
	"slices"
	"strings"
)

// Event is one kind of happening.
type Event struct {
	// Name is what it happened to and what happened, as in session.spawned.
	Name string
	// Action is what was being done, for the Kubernetes Event.
	Action string
	// Warning: somebody may have to do something about it.
	Warning bool
	// Quiet: there is no Kubernetes Event, because it is of each message and the message's
	// own status says it: an Event is a write.
	Quiet bool
	// Fields are the names of what is told with it, beside the session. A field that is
	// empty is left out. None ever carries what a message or a prompt says.
	Fields []string
	// Help says in one line when it is told.
	Help string
}

// Reason is the name as the reason of a Kubernetes Event: SessionSpawned for
// session.spawned.
func (e Event) Reason() string {
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(e.Name, func(r rune) bool { return r == '.' || r == '_' }) {
		if word == "pr" || word == "oom" {
			b.WriteString(strings.ToUpper(word))
			continue
		}
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// Has reports whether the event tells a field of this name.
func (e Event) Has(field string) bool { return slices.Contains(e.Fields, field) }

// catalogue is every event that was declared.
var catalogue []Event

// declare adds an event to the catalogue.
func declare(e Event) Event {
	catalogue = append(catalogue, e)
	return e
}

// All is the catalogue, by name.
func All() []Event {
	return slices.SortedFunc(slices.Values(catalogue), func(a, b Event) int { return cmp.Compare(a.Name, b.Name) })
}

// standing has, for what happens to both kinds of session, the name by which it is told
// of a standing one.
var standing = map[string]Event{
	SessionSpawnFailed.Name:  StandingSpawnFailed,
	SessionResumeFailed.Name: StandingResumeFailed,
	SessionClosed.Name:       StandingStopped,
	SessionReset.Name:        StandingDeleted,
}

// OfStanding is what is told of a standing session where e is told of a work item's.
func OfStanding(e Event) Event {
	if s, ok := standing[e.Name]; ok {
		return s
	}
	return e
}
