package harness

import (
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/harness/hook"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// at is noon plus so many seconds.
func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

// fold observes the notes, the first at second 1, the next at second 2 and so on
// unless they have a time.
func fold(notes ...hook.Note) State {
	var s State
	for i, n := range notes {
		if n.Time.IsZero() {
			n.Time = at(i + 1)
		}
		s = claude{}.Observe(s, n)
	}
	return s
}

// Notes as claude's hooks leave them.
func start(source, id string) hook.Note {
	return hook.Note{Event: "SessionStart", Source: source, ConversationID: id, TranscriptPath: "/t/" + id}
}

func prompt(text string) hook.Note {
	return hook.Note{Event: "UserPromptSubmit", ConversationID: "c1", PromptDigest: hook.Digest(text)}
}
func permission(tool string) hook.Note { return hook.Note{Event: "PermissionRequest", Tool: tool} }
func used(tool string) hook.Note       { return hook.Note{Event: "PostToolUse", Tool: tool} }
func notified(kind string) hook.Note   { return hook.Note{Event: "Notification", Notification: kind} }
func ended(reason string) hook.Note    { return hook.Note{Event: "SessionEnd", Reason: reason} }

var (
	started = start("startup", "c1")
	stop    = hook.Note{Event: "Stop"}
)

var _ = DescribeTable("claude's activity after these hooks",
	func(want Activity, waitingFor string, since int, notes ...hook.Note) {
		s := fold(notes...)
		Expect(s.Activity).To(Equal(want))
		Expect(s.WaitingFor).To(Equal(waitingFor))
		Expect(s.Since).To(Equal(at(since)))
	},
	Entry("started", ActivityIdle, "", 1, started),
	Entry("a turn", ActivityBusy, "", 2, started, prompt("a")),
	Entry("a second prompt queued in it does not begin it anew", ActivityBusy, "", 2, started, prompt("a"), prompt("b")),
	Entry("a turn that ended", ActivityIdle, "", 3, started, prompt("a"), stop),
	Entry("a turn that failed", ActivityIdle, "", 3, started, prompt("a"), hook.Note{Event: "StopFailure", Error: "x"}),
	Entry("a dialog", ActivityAwaitingInput, "permission for Bash", 3, started, prompt("a"), permission("Bash")),
	Entry("a dialog of no known tool", ActivityAwaitingInput, "permission prompt", 3, started, prompt("a"), permission("")),
	Entry("a question", ActivityAwaitingInput, "permission for AskUserQuestion", 3, started, prompt("a"), permission("AskUserQuestion")),
	Entry("the late notification of the same dialog", ActivityAwaitingInput, "permission for Bash", 3, started, prompt("a"), permission("Bash"), notified("permission_prompt")),
	Entry("the notification alone", ActivityAwaitingInput, "permission prompt", 3, started, prompt("a"), notified("permission_prompt")),
	Entry("a tool server's dialog", ActivityAwaitingInput, "permission prompt", 3, started, prompt("a"), notified("elicitation_dialog")),
	Entry("another notification", ActivityBusy, "", 2, started, prompt("a"), notified("auth_success")),
	Entry("the tool ran", ActivityBusy, "", 4, started, prompt("a"), permission("Bash"), used("Bash")),
	Entry("the tool ran, known by notification", ActivityBusy, "", 4, started, prompt("a"), notified("permission_prompt"), used("Bash")),
	Entry("another tool's end does not close the dialog", ActivityAwaitingInput, "permission for Bash", 3, started, prompt("a"), permission("Bash"), used("Read")),
	Entry("a tool's end of no known name does", ActivityBusy, "", 4, started, prompt("a"), permission("Bash"), used("")),
	Entry("a second dialog", ActivityAwaitingInput, "permission for Edit", 4, started, prompt("a"), permission("Bash"), permission("Edit")),
	Entry("the turn ended with the dialog", ActivityIdle, "", 4, started, prompt("a"), permission("Bash"), stop),
	Entry("a prompt typed after the dialog", ActivityBusy, "", 4, started, prompt("a"), permission("Bash"), prompt("b")),
	Entry("a dialog that our hook denied", ActivityBusy, "", 2, started, prompt("a"), hook.Note{Event: "PermissionRequest", Tool: "Bash", Answered: "Deny"}),
	Entry("a dialog that our hook allowed", ActivityBusy, "", 2, started, prompt("a"), hook.Note{Event: "PermissionRequest", Tool: "Bash", Answered: "Allow"}),
	Entry("idle for a minute, after an interrupt", ActivityIdle, "", 3, started, prompt("a"), notified("idle_prompt")),
	Entry("idle for a minute, after a cancelled dialog", ActivityIdle, "", 4, started, prompt("a"), permission("Bash"), notified("idle_prompt")),
	Entry("still idle", ActivityIdle, "", 1, started, notified("idle_prompt")),
	Entry("compacted in a turn", ActivityBusy, "", 2, started, prompt("a"), start("compact", "c1")),
	Entry("ended", ActivityUnknown, "", 2, started, ended("other")),
	Entry("cleared: idle all the time", ActivityIdle, "", 1, started, ended("clear"), start("clear", "c2")),
	Entry("an event we did not ask for", ActivityIdle, "", 1, started, hook.Note{Event: "PreCompact"}),
	Entry("started again after an end", ActivityIdle, "", 3, started, ended("other"), start("resume", "c1")),
)

var _ = Describe("what else claude's hooks tell", func() {
	It("knows nothing at first", func() {
		Expect(fold()).To(Equal(State{}))
		Expect(fold(hook.Note{Event: "Unheard"})).To(Equal(State{}))
	})

	DescribeTable("readiness, resume and conversation",
		func(ready, ended, resumed bool, id string, notes ...hook.Note) {
			s := fold(notes...)
			// Whether it takes input already, its file says (Recheck).
			running := s.Ready || !s.Started.IsZero() && !s.Ended
			Expect([]any{running, s.Ended, s.Resumed, s.ConversationID}).To(Equal([]any{ready, ended, resumed, id}))
		},
		Entry("fresh", true, false, false, "c1", started),
		Entry("resumed", true, false, true, "c1", start("resume", "c1")),
		Entry("cleared after a resume: still a launch that resumed", true, false, true, "c2", start("resume", "c1"), ended("clear"), start("clear", "c2")),
		Entry("between the end and the start of a clear", true, false, false, "c1", started, ended("clear")),
		Entry("another conversation picked inside", true, false, true, "c2", started, ended("resume"), start("resume", "c2")),
		Entry("ended", false, true, false, "c1", started, ended("other")),
		Entry("left", false, true, false, "c1", started, ended("prompt_input_exit")),
		Entry("ended at a startup dialog, without a start", false, true, false, "", ended("other")),
		Entry("started again", true, false, true, "c1", started, ended("other"), start("resume", "c1")),
		Entry("a prompt tells the conversation as well", true, false, false, "c9", started, hook.Note{Event: "UserPromptSubmit", ConversationID: "c9"}),
		Entry("a late note of the old one does not", true, false, false, "c2", started, start("clear", "c2"), hook.Note{Event: "Stop", ConversationID: "c1"}),
	)

	It("is not ready by the hook of its start alone: a carriage return would be lost then", func() {
		Expect(fold(started)).To(And(HaveField("Ready", false), HaveField("Started", at(1))))
		Expect(fold(started, start("clear", "c2")).Ready).To(BeTrue())
	})

	It("follows the transcript", func() {
		Expect(fold(started).TranscriptPath).To(Equal("/t/c1"))
		Expect(fold(started, start("clear", "c2"), stop).TranscriptPath).To(Equal("/t/c2"))
	})

	It("keeps what was taken, in order, up to a bound", func() {
		s := fold(started, prompt("a"), prompt("b"))
		Expect(s.Taken).To(Equal([]Taken{{Digest: hook.Digest("a"), Time: at(2)}, {Digest: hook.Digest("b"), Time: at(3)}}))

		notes := []hook.Note{started}
		for i := range 3 * MaxTaken {
			notes = append(notes, prompt(fmt.Sprint(i)))
		}
		s = fold(notes...)
		Expect(s.Taken).To(HaveLen(MaxTaken))
		Expect(s.Taken[MaxTaken-1].Digest).To(Equal(hook.Digest(fmt.Sprint(3*MaxTaken - 1))))
		Expect(s.Taken[0].Digest).To(Equal(hook.Digest(fmt.Sprint(2 * MaxTaken))))
	})

	It("does not change the State that it is given", func() {
		before := fold(started, prompt("a"))
		copied := before
		copied.Taken = slices.Clone(before.Taken)
		claude{}.Observe(before, prompt("b"))
		claude{}.Observe(before, prompt("c"))
		Expect(before).To(Equal(copied))
	})

	It("tells when a text was taken at or after a time", func() {
		s := fold(started, prompt("a"), prompt("b"), prompt("a"))
		when, ok := s.TookSince(hook.Digest("a"), at(3))
		Expect(ok).To(BeTrue())
		Expect(when).To(Equal(at(4)))
		_, ok = s.TookSince(hook.Digest("b"), at(4))
		Expect(ok).To(BeFalse())
	})

	It("keeps a dialog open when the note of a prompt comes that was on its way", func() {
		dialog := permission("Bash")
		dialog.Time = at(3)
		late := prompt("b")
		late.Time = at(3).Add(300 * time.Millisecond)
		s := fold(started, prompt("a"), dialog, late)
		Expect(s.Activity).To(Equal(ActivityAwaitingInput))
		Expect(s.Taken).To(HaveLen(2))
	})
})
