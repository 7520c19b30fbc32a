package harness

import (
	"slices"
	"time"

	"github.com/theloop-dev/the-loop/internal/harness/hook"
)

// staleSubmit is how long after a permission dialog opened a UserPromptSubmit may
// still be one that was on its way when it opened. Hooks of a running turn and of a
// prompt that is being queued run side by side, so their notes can change places.
const staleSubmit = time.Second

// Observe folds one hook note into the State.
func (claude) Observe(s State, n hook.Note) State {
	switch n.Event {
	case "SessionStart":
		return claudeStarted(s, n)
	case "UserPromptSubmit":
		return claudeTook(s, n)
	case "PermissionRequest":
		if n.Answered != "" { // by the hook: no dialog opens
			return s.activity(ActivityBusy, n.Time, "")
		}
		return s.activity(ActivityAwaitingInput, n.Time, waitingForTool(n.Tool))
	case "PostToolUse":
		// With several tools at once, another one's end says nothing about the dialog.
		if s.Activity == ActivityAwaitingInput && n.Tool != "" &&
			s.WaitingFor != waitingForPermission && s.WaitingFor != waitingForTool(n.Tool) {
			return s
		}
		return s.activity(ActivityBusy, n.Time, "")
	case "Notification":
		return claudeNotified(s, n)
	case "Stop":
		return s.accepted().activity(ActivityIdle, n.Time, "")
	case "StopFailure":
		return claudeFailed(s, n).activity(ActivityIdle, n.Time, "")
	case "SessionEnd":
		switch n.Reason {
		case "clear", "resume": // another conversation follows in the same process
			return s
		}
		s.Ready, s.Ended = false, true
		return s.activity(ActivityUnknown, n.Time, "")
	}
	return s
}

// What a dialog waits for, when the harness does not name the tool.
const waitingForPermission = "permission prompt"

// waitingForTool is State.WaitingFor of a permission dialog for a tool.
func waitingForTool(tool string) string {
	if tool == "" {
		return waitingForPermission
	}
	return "permission for " + tool
}

// claudeStarted: the harness is at its prompt. With a startup dialog open (trust,
// disclaimer, API key, MCP, imports, settings error) the event does not come.
func claudeStarted(s State, n hook.Note) State {
	s.Ended = false
	s = s.conversation(n)
	switch n.Source {
	case "startup", "resume":
		// A carriage return that comes while this hook still runs is lost, and the text
		// stays in the box; Recheck says when claude takes input.
		s.Started = n.Time
	default:
		s.Ready = true
	}
	switch n.Source {
	case "compact": // in the middle of a turn: the activity stays
		return s
	case "startup":
		s.Resumed = false
	case "resume":
		s.Resumed = true
	}
	return s.activity(ActivityIdle, n.Time, "")
}

// claudeTook: a prompt was taken; while busy the event comes when it is queued.
func claudeTook(s State, n hook.Note) State {
	s = s.conversation(n)
	taken := append(slices.Clone(s.Taken), Taken{Digest: n.PromptDigest, Time: n.Time, Mark: n.Mark})
	s.Taken = taken[max(0, len(taken)-MaxTaken):]
	if s.Activity == ActivityAwaitingInput && n.Time.Sub(s.Since) < staleSubmit {
		return s
	}
	return s.activity(ActivityBusy, n.Time, "")
}

func claudeNotified(s State, n hook.Note) State {
	switch n.Notification {
	case "permission_prompt", "elicitation_dialog":
		// Comes about 6 s after the PermissionRequest, which names the tool.
		if s.Activity == ActivityAwaitingInput {
			return s
		}
		return s.activity(ActivityAwaitingInput, n.Time, waitingForPermission)
	case "idle_prompt": // a minute after the last turn
		return s.activity(ActivityIdle, n.Time, "")
	case "quota_auto_resume_fired": // the limit has been reset, and claude goes on by itself
		s.Limited = Refusal{}
	case "auth_success": // declared by the program, not seen
		s.LoginRefused = Refusal{}
	}
	return s
}

// conversation follows the conversation: a /clear mints a new id.
func (s State) conversation(n hook.Note) State {
	if n.ConversationID != "" {
		s.ConversationID = n.ConversationID
	}
	if n.TranscriptPath != "" {
		s.TranscriptPath = n.TranscriptPath
	}
	return s
}

// activity changes what the harness is doing. Since moves only with a change.
func (s State) activity(a Activity, t time.Time, waitingFor string) State {
	if s.Activity != a || s.WaitingFor != waitingFor {
		s.Since = t
	}
	s.Activity, s.WaitingFor = a, waitingFor
	return s
}
