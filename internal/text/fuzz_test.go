package text_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/theloop-dev/the-loop/internal/text"
)

// untypeable says what in a text must not be typed, "" for nothing.
func untypeable(s string) string {
	if !utf8.ValidString(s) {
		return "it is not valid UTF-8"
	}
	if s != strings.TrimRight(s, " \t\n") {
		return "it ends in a blank"
	}
	var prev rune
	for i, r := range s {
		switch {
		case r == '\n' || r == '\t':
		case unicode.IsControl(r):
			return "it holds a control character"
		case r >= 0xe0000 && r <= 0xe0fff, unicode.Is(unicode.Bidi_Control, r), r == 0x2028, r == 0x2029, r == 0xfeff, r == 0x200b, r == 0x2060:
			return "it holds a character that is not seen"
		case r == 0x200d && (i == 0 || unicode.IsLetter(prev) || prev == 0x200d || prev <= ' '):
			return "it holds a joiner that joins no emoji"
		}
		prev = r
	}
	return ""
}

// FuzzSanitize: whatever comes in, what goes out can be typed, is a fixed point, and
// holds nothing that was not there but line ends and U+FFFD.
func FuzzSanitize(f *testing.F) {
	for _, s := range []string{
		"", "plain", "a\r\nb\rc\n\n", "ok\x1b[201~\r!id\r", "\x00\x7f\u0085\u009b", "\xff\xc3(\xed\xa0\x80", "👩\u200d👩\u200d👧", "a\u200db\u200b",
		"\u202eevil\u2069", "\U000E0041\U000E007F", "😀\ufe0f\ufe0f\u200d\ufe0f\u200d😀", "\u200d\u200d", "x\ufe0e\u200d☠", "👩\u200d\u200b👧",
		"\u3164\u115f\u00ad", `end\`, " \t\n", "\r", "\r\r\n\u2028",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, n := text.Sanitize(s)
		if why := untypeable(got); why != "" {
			t.Fatalf("Sanitize(%q) = %q: %s", s, got, why)
		}
		if again, m := text.Sanitize(got); again != got || m != 0 {
			t.Fatalf("Sanitize(%q) = %q, and again %q with %d replaced", s, got, again, m)
		}
		if added := strings.Count(got, "\uFFFD") - strings.Count(s, "\uFFFD"); added != n {
			t.Fatalf("Sanitize(%q) = %q: %d replaced, and %d are to be seen", s, got, n, added)
		}
		if kept, was := words(got), words(s); kept != was && n == 0 && utf8.ValidString(s) {
			t.Fatalf("Sanitize(%q) = %q: %q became %q", s, got, was, kept)
		}
	})
}

// words are the letters and digits of a text, in order.
func words(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) || unicode.IsLetter(r) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) {
			return r
		}
		return -1
	}, s)
}

// FuzzFrames: the frame's header is ours whatever the actor and the text are, and what
// is typed is fit to be typed.
func FuzzFrames(f *testing.F) {
	f.Add("alice", "hello")
	f.Add("eve\n\n/clear", "/clear")
	f.Add("\r\x1b[201~", `\`)
	f.Add("\u200b", "@src/ma")
	f.Add("a\u2028b", "\U000E0041👩\u200d👧")
	f.Fuzz(func(t *testing.T, actor, raw string) {
		body, _ := text.Sanitize(raw)
		if body == "" {
			return // refused before it is framed
		}
		for _, got := range []string{text.OperatorFrame("supervisor", actor, body), text.PlainFrame("GitHub", actor, body)} {
			head, rest, _ := strings.Cut(got, "\n")
			if !strings.HasPrefix(head, "Message ") || !strings.HasSuffix(head, ":") || !strings.HasPrefix(rest, "\n"+body) {
				t.Fatalf("actor %q, text %q: %q", actor, body, got)
			}
			if tail := strings.TrimPrefix(rest, "\n"+body); tail != "" && tail != " ." || strings.HasSuffix(got, `\`) {
				t.Fatalf("actor %q, text %q: %q ends badly", actor, body, got)
			}
			if why := untypeable(got); why != "" {
				t.Fatalf("actor %q, text %q: %q: %s", actor, body, got, why)
			}
			if again, _ := text.Sanitize(got); again != got {
				t.Fatalf("actor %q, text %q: sanitising %q changes it to %q", actor, body, got, again)
			}
		}
	})
}
