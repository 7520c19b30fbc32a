// Package text makes a text fit to be typed into a terminal application. It is
// pure: the same text gives the same bytes on every surface.
package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Replacement stands visibly where a character was taken out.
const Replacement = '\uFFFD'

// Sanitize returns the text as it may be typed, and how many characters were
// replaced. It is a fixed point: sanitising its result changes nothing.
//
//	CRLF, lone CR, NEL, U+2028, U+2029   become LF (a CR would submit)
//	TAB, LF                              stay
//	other C0, DEL, C1                    become U+FFFD (ESC would end the paste)
//	invalid UTF-8                        becomes U+FFFD, one for each byte
//	bidi controls, tag characters        become U+FFFD (text that is not what it seems)
//	characters that nobody sees          vanish, but for an emoji's joiner and variation
//	trailing line ends and blanks        are trimmed (they would add empty lines)
func Sanitize(s string) (string, int) {
	var b strings.Builder
	b.Grow(len(s))
	replaced := 0
	var prev rune
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == '\r' && i+n < len(s) && s[i+n] == '\n' {
			i += n
			continue
		}
		out := clean(r, n, prev, s[i+n:])
		if out == Replacement && r != Replacement || r == utf8.RuneError && n == 1 {
			replaced++
		}
		if out != drop {
			b.WriteRune(out)
			prev = out
		}
		i += n
	}
	return strings.TrimRight(b.String(), " \t\n"), replaced
}

// drop marks a character that leaves no trace.
const drop rune = -1

func clean(r rune, size int, prev rune, rest string) rune {
	switch {
	case r == utf8.RuneError && size == 1:
		return Replacement
	case r == '\r' || r == 0x85 || r == 0x2028 || r == 0x2029:
		return '\n'
	case r == '\n' || r == '\t':
		return r
	case r < 0x20 || r >= 0x7f && r <= 0x9f:
		return Replacement
	case r < 0x7f:
		return r
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x61c, r >= 0xe0000 && r <= 0xe007f:
		return Replacement
	case r == joiner:
		if next, _ := utf8.DecodeRuneInString(rest); (pictographic(prev) || prev == emojiStyle) && pictographic(next) {
			return r
		}
		return drop
	case r == textStyle || r == emojiStyle:
		// One behind a character chooses how it looks; more would be a hidden text.
		if prev <= ' ' || prev == textStyle || prev == emojiStyle {
			return drop
		}
		return r
	case invisible(r):
		return drop
	}
	return r
}

const (
	joiner     = 0x200d
	textStyle  = 0xfe0e
	emojiStyle = 0xfe0f
)

// invisible reports whether a character leaves no trace on a screen: what Unicode says
// may be ignored, format characters and the variation selectors, in which whole texts
// can be hidden from the people who read along.
func invisible(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) &&
		!unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}

// pictographic is a superset of what an emoji's joiner stands between: pictures and
// their skin tones. Letters are not in it.
func pictographic(r rune) bool {
	return r >= 0x1f000 && r <= 0x1faff || r >= 0x2190 && r <= 0x2bff || r == 0x3030 || r == 0xa9 || r == 0xae
}

// OperatorFrame puts the line that a standing session's operator is introduced
// with above a text, so that the first character that the harness sees is ours:
// no text can then be a command of the harness, a shell escape or a memory note.
func OperatorFrame(session, actor, body string) string {
	if actor = OneLine(actor); actor == "" {
		actor = "kubectl"
	}
	return "Message from your operator (" + actor + ") to standing session `" + session + "`:\n\n" + endSafe(body)
}

// BootFrame introduces the first message of a conversation, see OperatorFrame.
func BootFrame(body string) string {
	return "From the-loop, at the start of this conversation:\n\n" + endSafe(body)
}

// PlainFrame introduces a text for a work item's session, see OperatorFrame.
func PlainFrame(source, actor, body string) string {
	who := OneLine(source)
	if actor = OneLine(actor); actor != "" {
		who += ", " + actor
	}
	return "Message (" + who + "):\n\n" + endSafe(body)
}

// endSafe keeps the end of a text from taking the submitting carriage return for
// itself: a trailing backslash turns it into a line end, and a last word that a
// harness offers to complete (a file, a person, a command) lets it choose from the
// list.
func endSafe(body string) string {
	word := body[strings.LastIndexAny(body, " \t\n")+1:]
	if strings.HasSuffix(word, `\`) || strings.Contains(word, "@") || strings.HasPrefix(word, "/") || strings.HasPrefix(word, "$") {
		return body + " ."
	}
	return body
}

// OneLine sanitises a text that must stay within one line.
func OneLine(s string) string {
	clean, _ := Sanitize(s)
	return strings.ReplaceAll(clean, "\n", " ")
}
