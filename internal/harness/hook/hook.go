// Package hook is what a harness's hook leaves for the agent: one JSON line a
// hook call in the journal of the session's launch, and a poke at the agent's
// socket so that it looks at once. The journal is the truth and survives an agent
// that is away; the poke only hurries it. The package has no dependency outside
// the standard library but for the tables of Unicode's normal forms, because the hook
// binary must start in milliseconds.
package hook

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Note is one hook call, reduced to what the agent decides by. Field values come
// from the harness's JSON on the hook's standard input (see Parse).
type Note struct {
	// Time is when the hook ran.
	Time time.Time `json:"time"`
	// Event is the harness's own hook name, "SessionStart", "UserPromptSubmit", ...
	Event string `json:"event"`
	// ConversationID is the harness's session_id.
	ConversationID string `json:"conversationID,omitempty"`
	// Source is SessionStart's source: startup, resume, clear.
	Source string `json:"source,omitempty"`
	// Reason is SessionEnd's reason.
	Reason string `json:"reason,omitempty"`
	// PromptDigest is Digest of the prompt that the harness took, never its text.
	PromptDigest string `json:"promptDigest,omitempty"`
	// PromptBytes is the length of that prompt in bytes.
	PromptBytes int `json:"promptBytes,omitempty"`
	// Notification is Notification's notification_type.
	Notification string `json:"notification,omitempty"`
	// Tool is the tool that a permission or tool event is about.
	Tool string `json:"tool,omitempty"`
	// TranscriptPath and Dir are the harness's transcript_path and cwd.
	TranscriptPath string `json:"transcriptPath,omitempty"`
	Dir            string `json:"dir,omitempty"`
	// Error is StopFailure's error, cut to MaxErrorBytes.
	Error string `json:"error,omitempty"`
	// Message is what the harness shows of a turn that failed, with StopFailure only, cut
	// to MaxErrorBytes.
	Message string `json:"message,omitempty"`
	// Answered is set when the hook itself answered a PermissionRequest: "Allow" or
	// "Deny". The harness then opens no dialog, so the note is not a wait.
	Answered string `json:"answered,omitempty"`
	// Mark is the note's place, which its reader knows.
	Mark Mark `json:"-"`
}

// Mark is a place in what the hooks of a session told. What came after it is told by it and
// by no time: the clock may be set.
type Mark struct {
	// Launch in whose journal it is, and the number of the note there, from 1.
	Launch string
	Number int64
}

// Digest is the digest by which a delivered text is recognised in what the
// harness says it took: hexadecimal SHA-256 of the text with LF line ends, a tab
// as four spaces, blank ends trimmed and characters decomposed, because harnesses were
// measured to change exactly those. Claude Code 2.1.332 composes what it does not fold.
func Digest(text string) string {
	t := strings.ReplaceAll(text, "\r\n", "\n")
	t = strings.ReplaceAll(t, "\r", "\n")
	t = strings.ReplaceAll(t, "\t", "    ")
	sum := sha256.Sum256([]byte(decomposed(strings.TrimSpace(t))))
	return hex.EncodeToString(sum[:])
}

// decomposed is the canonical decomposition of a text. norm.NFD gives that but for more than
// 30 marks on one character, into which it puts a joiner that no harness puts there.
func decomposed(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) {
		return text
	}
	out := make([]byte, 0, len(text)+len(text)/2)
	marks := 0 // where those at the end of out begin
	for i, r := range text {
		p := norm.NFD.PropertiesString(text[i:])
		switch d := p.Decomposition(); {
		case d != nil:
			p = norm.NFD.Properties(d)
			if p.CCC() == 0 {
				out, marks = append(ordered(out, marks), d[:p.Size()]...), len(out)+p.Size()
				d = d[p.Size():]
			}
			out = append(out, d...)
		case p.CCC() != 0:
			out = append(out, text[i:i+p.Size()]...)
		case r >= 0xac00 && r <= 0xd7a3: // a syllable of Hangul has no entry in the tables
			out = norm.NFD.AppendString(ordered(out, marks), string(r))
			marks = len(out)
		default:
			out = utf8.AppendRune(ordered(out, marks), r)
			marks = len(out)
		}
	}
	return string(ordered(out, marks))
}

// ordered puts the marks at the end of a text into their canonical order.
func ordered(text []byte, marks int) []byte {
	if utf8.RuneCount(text[marks:]) < 2 {
		return text
	}
	runes := []rune(string(text[marks:]))
	slices.SortStableFunc(runes, func(a, b rune) int {
		return cmp.Compare(norm.NFD.PropertiesString(string(a)).CCC(), norm.NFD.PropertiesString(string(b)).CCC())
	})
	return append(text[:marks], string(runes)...)
}
