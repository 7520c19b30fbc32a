package chaos

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

// Message is one message as it was sent, and what its object says became of it.
type Message struct {
	Name string
	// Session and Sender it is of; Number is its place among those of its sender, who sent
	// each when the one before was stored. A Sender of "" has no order.
	Session, Sender string
	Number          int
	// Text is what the harness must take, byte for byte. It has Mark in it, which no other
	// text has; "" is a text that is known as a whole only.
	Text, Mark string
	// Stored: the API server has it. Deleted: somebody was to delete it, so that it may be
	// gone, and may have been submitted before.
	Stored, Deleted bool
	Outcome         api.MessageOutcome
}

// Submit is one text that a harness took, in the order in which it was taken.
type Submit struct {
	Time          time.Time
	Session, Text string
}

// Fault is what went wrong with a message.
type Fault string

// Faults. All of them are to be 0.
const (
	// Lost: it was accepted and is gone, or never came to an end.
	Lost Fault = "lost"
	// Doubled: it was submitted more often than it was sent.
	Doubled Fault = "doubled"
	// Merged: it was submitted together with another one.
	Merged Fault = "merged"
	// Altered: what was submitted is not what was sent, or was sent by nobody.
	Altered Fault = "altered"
	// Misdirected: it was submitted in another session.
	Misdirected Fault = "misdirected"
	// Reordered: it was submitted after a later one of the same sender.
	Reordered Fault = "reordered"
	// FalseSubmitted: it is called Submitted, and was not.
	FalseSubmitted Fault = "falsely submitted"
	// FalseRefused: it is called Refused or Dropped, and was submitted.
	FalseRefused Fault = "falsely refused"
)

// Faults are all of them, as they are listed.
var Faults = []Fault{Lost, Doubled, Merged, Altered, Misdirected, Reordered, FalseSubmitted, FalseRefused}

// Violation is one fault, of these messages; none are named when nobody sent the text.
type Violation struct {
	Fault    Fault
	Messages []string
	Detail   string
}

// Mark makes what tells a message apart wherever it turns up.
func Mark(sender string, n int) string { return fmt.Sprintf("[[%s.%d]]", sender, n) }

var marks = regexp.MustCompile(`\[\[[a-z0-9-]+\.[0-9]+\]\]`)

// bundle is the messages with one text for one session: they cannot be told apart.
type bundle struct {
	messages  []Message
	submitted int
}

func (b *bundle) names() []string {
	var out []string
	for _, m := range b.messages {
		out = append(out, m.Name)
	}
	return out
}

// Check joins what was sent, what is said of it and what harnesses took.
func Check(messages []Message, submits []Submit) []Violation {
	c := checker{byMark: map[string]*bundle{}, byText: map[string]*bundle{}}
	for _, m := range messages {
		c.add(m)
	}
	last := map[string]Message{} // of a session and a sender, the latest that was taken
	for _, s := range submits {
		b := c.attribute(s)
		if b == nil {
			continue
		}
		b.submitted++
		m := b.messages[0]
		if len(b.messages) > 1 || m.Sender == "" {
			continue
		}
		key := m.Session + " " + m.Sender
		if before, ok := last[key]; ok && before.Number > m.Number {
			c.found(Reordered, []string{m.Name, before.Name}, fmt.Sprintf("%s was taken after %s", m.Mark, before.Mark))
			continue
		}
		last[key] = m
	}
	for _, key := range slices.Sorted(maps.Keys(c.byText)) {
		c.judge(c.byText[key])
	}
	return c.violations
}

type checker struct {
	byMark, byText map[string]*bundle
	violations     []Violation
}

func (c *checker) found(f Fault, names []string, detail string) {
	c.violations = append(c.violations, Violation{f, names, detail})
}

func (c *checker) add(m Message) {
	key := m.Session + "\x00" + m.Text
	b := c.byText[key]
	if b == nil {
		b = &bundle{}
		c.byText[key] = b
	}
	b.messages = append(b.messages, m)
	if m.Mark != "" {
		c.byMark[m.Mark] = b
	}
}

// attribute finds what a submitted text is, nil when it is none that was sent.
func (c *checker) attribute(s Submit) *bundle {
	found := slices.Compact(slices.Sorted(slices.Values(marks.FindAllString(s.Text, -1))))
	var names []string
	for _, mark := range found {
		if b := c.byMark[mark]; b != nil {
			names = append(names, b.names()...)
		}
	}
	at := fmt.Sprintf("at %s in %s: %.300q", s.Time.Format(time.RFC3339Nano), s.Session, s.Text)
	switch {
	case len(found) > 1:
		c.found(Merged, names, at)
		return nil
	case len(found) == 0:
		return c.unmarked(s, at)
	case c.byMark[found[0]] == nil:
		c.found(Altered, nil, at)
		return nil
	}
	b := c.byMark[found[0]]
	switch m := b.messages[0]; {
	case m.Session != s.Session:
		c.found(Misdirected, names, "meant for "+m.Session+", taken "+at)
		return nil
	case m.Text != s.Text:
		c.found(Altered, names, at)
		return nil
	}
	return b
}

func (c *checker) unmarked(s Submit, at string) *bundle {
	if b := c.byText[s.Session+"\x00"+s.Text]; b != nil {
		return b
	}
	for key, b := range c.byText {
		if _, text, _ := strings.Cut(key, "\x00"); text == s.Text {
			c.found(Misdirected, b.names(), "meant for "+b.messages[0].Session+", taken "+at)
			return nil
		}
	}
	c.found(Altered, nil, at)
	return nil
}

// judge compares what is said of the messages of a bundle with how often their text was
// taken.
func (c *checker) judge(b *bundle) {
	var sure, perhaps int
	for _, m := range b.messages {
		switch {
		case !m.Stored && m.Deleted:
			perhaps++
		case !m.Stored:
			c.found(Lost, []string{m.Name}, "its object is gone")
		case !m.Outcome.Final():
			c.found(Lost, []string{m.Name}, "it never came to an end: "+cmp.Or(string(m.Outcome), "it has no outcome"))
			perhaps++
		case m.Outcome == api.OutcomeSubmitted:
			sure++
		case m.Outcome == api.OutcomeTyped, m.Outcome == api.OutcomeUnknown:
			perhaps++
		}
	}
	detail := fmt.Sprintf("%d of this text were sent, %d are called Submitted and %d may be, %d were", len(b.messages), sure, perhaps, b.submitted)
	switch {
	case b.submitted > len(b.messages):
		c.found(Doubled, b.names(), detail)
	case b.submitted > sure+perhaps:
		c.found(FalseRefused, b.names(), detail)
	case b.submitted < sure:
		c.found(FalseSubmitted, b.names(), detail)
	}
}
