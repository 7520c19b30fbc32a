// Package text makes a text fit to be typed into a terminal application. It is
// pure: the same text gives the same bytes on every surface. What becomes of which
// character is the table of Classes; docs/text.md is written from it.
package text

import (
	"strings"
	"unicode/utf8"
)

// Limit is how many bytes of UTF-8 a text may have: 256 KiB, the limit that the API
// puts on spec.text of a SessionMessage. Every edge refuses more, and none cuts a text.
// What is typed can be longer: Replacement takes three bytes.
const Limit = 256 << 10

// Replacement stands visibly where a character was taken out.
const Replacement = '\uFFFD'

// Sanitize returns the text as it may be typed, which is "" when nothing is left of
// it, and what was done to it. Classes says what becomes of which character.
// It is a fixed point: sanitising its result changes nothing and reports nothing.
func Sanitize(s string) (string, Report) {
	var (
		b      strings.Builder
		report Report
		prev   rune
	)
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		at := classOf(r)
		if r == utf8.RuneError && n == 1 {
			at = classInvalid
		}
		out := classes[at].apply(place{r: r, prev: prev, rest: s[i:]})
		if out != r || at == classInvalid {
			report.note(at)
		}
		if out != drop {
			b.WriteRune(out)
			prev = out
		}
	}
	return strings.TrimRightFunc(b.String(), blank), report
}

// OneLine sanitises a text that must stay within one line.
func OneLine(s string) string {
	clean, _ := Sanitize(s)
	return strings.ReplaceAll(clean, "\n", " ")
}
