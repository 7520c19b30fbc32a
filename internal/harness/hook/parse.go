package hook

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"
	"unicode/utf8"
)

// Limits of what is read from a harness. They keep one note far below the size
// that a single append writes in one piece.
const (
	// MaxInput is the largest hook input that Parse takes, in bytes. A prompt of
	// that size is far beyond what a delivery may carry.
	MaxInput = 4 << 20
	// MaxFieldBytes bounds an identifier or a path of a Note. A longer one is left
	// out: cut short it would name something else.
	MaxFieldBytes = 4096
	// MaxErrorBytes bounds Note.Error and Note.Message, which are prose and are cut.
	MaxErrorBytes = 1024
)

// ErrTooLarge is returned by Parse for an input over MaxInput.
var ErrTooLarge = errors.New("hook input is larger than 4 MiB")

// Parse reduces the JSON that a harness writes to a hook's standard input to a
// Note with the time now. It reads the fields session_id, transcript_path, cwd,
// hook_event_name, source, reason, prompt, notification_type, tool_name, error and, of a
// turn that failed, last_assistant_message, and ignores all others. The text of the prompt is not kept, only its Digest and
// its length. A field of the wrong type counts as absent: harness versions differ,
// and one odd field must not cost the note. It fails when the input is over
// MaxInput, is no JSON object, or names no event.
func Parse(stdin []byte, now time.Time) (Note, error) {
	if len(stdin) > MaxInput {
		return Note{}, ErrTooLarge
	}
	var in map[string]json.RawMessage
	if err := json.Unmarshal(stdin, &in); err != nil {
		return Note{}, fmt.Errorf("hook input is not a JSON object: %w", err)
	}
	n := Note{
		Time:           now.UTC(),
		Event:          name(in, "hook_event_name"),
		ConversationID: name(in, "session_id"),
		Source:         name(in, "source"),
		Reason:         name(in, "reason"),
		Notification:   name(in, "notification_type"),
		Tool:           name(in, "tool_name"),
		TranscriptPath: name(in, "transcript_path"),
		Dir:            name(in, "cwd"),
		Error:          cut(text(in, "error"), MaxErrorBytes),
	}
	if n.Event == "" {
		return Note{}, errors.New("hook input has no hook_event_name")
	}
	if n.Event == "StopFailure" { // elsewhere it is what the model said
		n.Message = cut(text(in, "last_assistant_message"), MaxErrorBytes)
	}
	if prompt := unmark(text(in, "prompt")); prompt != "" {
		n.PromptDigest, n.PromptBytes = Digest(prompt), len(prompt)
	}
	return n, nil
}

// paste is a prompt that is all one paste, marked as such by the harness.
var paste = regexp.MustCompile(`(?s)^\n*<pasted_content id="([0-9a-f]+)">\n(.*)\n</pasted_content id="([0-9a-f]+)">\n*$`)

// unmark is the prompt as it was pasted. Claude Code 2.1.332 puts tags around a paste
// of four lines or 800 characters and more, depending on a switch of its vendor's.
func unmark(prompt string) string {
	if m := paste.FindStringSubmatch(prompt); m != nil && m[1] == m[3] {
		return m[2]
	}
	return prompt
}

// text is the string field key, "" when it is absent or not a string.
func text(in map[string]json.RawMessage, key string) string {
	var s string
	if err := json.Unmarshal(in[key], &s); err != nil {
		return ""
	}
	return s
}

// name is text for a value that identifies something: all of it or nothing.
func name(in map[string]json.RawMessage, key string) string {
	s := text(in, key)
	if len(s) > MaxFieldBytes {
		return ""
	}
	return s
}

// cut shortens s to at most limit bytes without splitting a character.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
