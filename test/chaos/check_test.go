package chaos

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

// history is what a table is about: two messages of one sender in one session, one in
// another, and what was taken.
type history struct {
	messages []Message
	submits  []Submit
}

func sentBy(session, sender string, n int, o api.MessageOutcome) Message {
	mark := Mark(sender, n)
	return Message{Name: sender + mark, Session: session, Sender: sender, Number: n, Mark: mark, Text: "From us:\n\n" + mark + " hello " + mark, Stored: true, Outcome: o}
}

func took(m Message) Submit { return Submit{Session: m.Session, Text: m.Text} }

var _ = Describe("the checker of chaos", func() {
	a1, a2 := sentBy("a", "x", 1, api.OutcomeSubmitted), sentBy("a", "x", 2, api.OutcomeSubmitted)
	b1 := sentBy("b", "y", 1, api.OutcomeSubmitted)
	with := func(m Message, o api.MessageOutcome) Message { m.Outcome = o; return m }
	gone := a1
	gone.Stored = false
	deleted := gone
	deleted.Deleted = true
	boot := Message{Name: "boot", Session: "a", Text: "the brief", Stored: true, Outcome: api.OutcomeSubmitted}
	other := sentBy("a", "z", 9, api.OutcomeSubmitted)

	DescribeTable("finds", func(h history, want ...Fault) {
		var got []Fault
		for _, v := range Check(h.messages, h.submits) {
			got = append(got, v.Fault)
		}
		Expect(got).To(ConsistOf(anys(want)...))
	},
		Entry("nothing wrong", history{[]Message{a1, a2, b1, boot}, []Submit{took(boot), took(a1), took(b1), took(a2)}}),
		Entry("nothing wrong with what is unknown and was taken, or was not", history{
			[]Message{with(a1, api.OutcomeUnknown), with(a2, api.OutcomeUnknown), with(b1, api.OutcomeTyped)}, []Submit{took(a1), took(b1)}}),
		Entry("nothing wrong with what was refused and dropped", history{[]Message{with(a1, api.OutcomeRefused), with(a2, api.OutcomeDropped)}, nil}),
		Entry("nothing wrong with two senders that overtake each other", history{[]Message{a1, a2, other}, []Submit{took(other), took(a1), took(a2)}}),
		Entry("nothing wrong with two of the same text", history{[]Message{a1, with(a1, api.OutcomeUnknown)}, []Submit{took(a1)}}),
		Entry("nothing wrong with what was deleted, before it was taken or after", history{[]Message{deleted}, nil}),
		Entry("nothing wrong with what was taken and deleted", history{[]Message{deleted}, []Submit{took(deleted)}}),
		Entry("one that was deleted and taken twice", history{[]Message{deleted}, []Submit{took(deleted), took(deleted)}}, Doubled),
		Entry("one that is gone", history{[]Message{gone}, nil}, Lost),
		Entry("one that never ends", history{[]Message{with(a1, api.OutcomeHeld)}, nil}, Lost),
		Entry("one that nobody took into the queue", history{[]Message{with(a1, "")}, nil}, Lost),
		Entry("one that was taken twice", history{[]Message{a1}, []Submit{took(a1), took(a1)}}, Doubled),
		Entry("two of the same text that were taken thrice", history{[]Message{a1, a1}, []Submit{took(a1), took(a1), took(a1)}}, Doubled),
		Entry("a brief that was taken twice", history{[]Message{boot}, []Submit{took(boot), took(boot)}}, Doubled),
		Entry("two that were taken as one", history{[]Message{with(a1, api.OutcomeUnknown), with(a2, api.OutcomeTyped)},
			[]Submit{{Session: "a", Text: a1.Text + a2.Text}}}, Merged),
		Entry("two that were taken as one and called submitted", history{[]Message{a1, a2},
			[]Submit{{Session: "a", Text: a1.Text + a2.Text}}}, Merged, FalseSubmitted, FalseSubmitted),
		Entry("one that was cut", history{[]Message{with(a1, api.OutcomeUnknown)}, []Submit{{Session: "a", Text: a1.Text[:len(a1.Text)-1]}}}, Altered),
		Entry("one to which something was added", history{[]Message{with(a1, api.OutcomeUnknown)}, []Submit{{Session: "a", Text: "x" + a1.Text}}}, Altered),
		Entry("a text that nobody sent", history{[]Message{a1}, []Submit{took(a1), {Session: "a", Text: "rm -r"}}}, Altered),
		Entry("a mark that nobody made", history{nil, []Submit{took(a1)}}, Altered),
		Entry("one that was taken elsewhere", history{[]Message{with(a1, api.OutcomeTyped)}, []Submit{{Session: "b", Text: a1.Text}}}, Misdirected),
		Entry("a brief that was taken elsewhere", history{[]Message{boot}, []Submit{took(boot), {Session: "b", Text: boot.Text}}}, Misdirected),
		Entry("one that was overtaken", history{[]Message{a1, a2}, []Submit{took(a2), took(a1)}}, Reordered),
		Entry("one that is called submitted and was not", history{[]Message{a1}, nil}, FalseSubmitted),
		Entry("one of two of the same text that was not", history{[]Message{a1, a1}, []Submit{took(a1)}}, FalseSubmitted),
		Entry("one that is called refused and was taken", history{[]Message{with(a1, api.OutcomeRefused)}, []Submit{took(a1)}}, FalseRefused),
		Entry("one that is called dropped and was taken", history{[]Message{with(a1, api.OutcomeDropped)}, []Submit{took(a1)}}, FalseRefused),
	)

	It("names the messages of what it finds", func() {
		got := Check([]Message{a1, a2}, []Submit{took(a2), took(a1)})
		Expect(got).To(HaveLen(1))
		Expect(got[0].Messages).To(Equal([]string{a1.Name, a2.Name}))
	})
})

func anys(faults []Fault) []any {
	out := []any{}
	for _, f := range faults {
		out = append(out, f)
	}
	return out
}
