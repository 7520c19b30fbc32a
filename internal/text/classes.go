package text

import (
	"slices"
	"strings"
	"unicode"
)

// Effect is what becomes of the characters of a class.
type Effect int

// Effects.
const (
	// Stays: the character is typed as it is.
	Stays Effect = iota
	// BecomesLineFeed: a line feed is typed instead. This is not reported: texts of
	// many systems have such line ends throughout.
	BecomesLineFeed
	// Replaced: Replacement is typed instead, so that one sees that something was
	// there.
	Replaced
	// Removed: nothing is typed instead, because there was nothing to be seen.
	Removed
)

// String says it in the words of the published table.
func (e Effect) String() string {
	return [...]string{"stays", "becomes LF", "becomes U+FFFD", "is removed"}[e]
}

// Class is a row of the published table: characters of which the same becomes.
// Every character of Unicode is in exactly one class.
type Class struct {
	// Name is what a Report calls it.
	Name string
	// Characters says, for people, which these are.
	Characters string
	// Effect is what becomes of them,
	Effect Effect
	// Except says where something else becomes of them, "" for nowhere.
	Except string
	// Why is the reason.
	Why string
	// In is an example, of which Sanitize makes Out.
	In, Out string

	// has is nil for what is no character.
	has func(rune) bool
	// except is what becomes of a character at such a place, and whether it is one.
	except func(place) (rune, bool)
}

// Has reports whether the character is in the class. What is no character, such as a
// byte that is not UTF-8, is in none.
func (c Class) Has(r rune) bool { return c.has != nil && c.has(r) }

// Classes returns the rows of the table in their order.
func Classes() []Class { return slices.Clone(classes[:]) }

// place is a character where it stands: behind what was typed before it (0 at the
// beginning), before the rest.
type place struct {
	r, prev rune
	rest    string
}

// drop marks a character that leaves no trace.
const drop rune = -1

func (c *Class) apply(at place) rune {
	if c.except != nil {
		if out, ok := c.except(at); ok {
			return out
		}
	}
	switch c.Effect {
	case Stays:
		return at.r
	case BecomesLineFeed:
		return '\n'
	case Replaced:
		return Replacement
	}
	return drop
}

const (
	classText = iota
	classBlank
	classLineEnd
	classEscape
	classControl
	classC1
	classInvalid
	classBidi
	classTag
	classJoiner
	classStyle
	classInvisible
)

var classes = [...]Class{
	classText: {
		Name: "text", Characters: "everything that is to be seen: letters, digits, signs, emoji, U+FFFD itself", Effect: Stays,
		Why: "It is what was said.",
		In:  "naïve 日本語 👍🏽 🇩🇪 1\ufe0f\u20e3", Out: "naïve 日本語 👍🏽 🇩🇪 1\ufe0f\u20e3", has: visible,
	},
	classBlank: {
		Name: "blank", Characters: "LF, TAB, SPACE and the other blanks of Unicode, U+2800", Effect: Stays,
		Except: "at the end of the text, where they are removed without a report",
		Why:    "A harness takes a line end at the end of a paste for one more line, and trims blanks, so that its word would not equal our text.",
		In:     "\tdo it \n\n", Out: "\tdo it",
		has: func(r rune) bool { return blank(r) && !lineEnd(r) && !unicode.IsControl(r) || r == '\n' || r == '\t' },
	},
	classLineEnd: {
		Name: "line end", Characters: "CR, NEL (U+0085), U+2028, U+2029", Effect: BecomesLineFeed,
		Except: "CR before LF, which is removed: CRLF is one line end",
		Why:    "A carriage return submits, and a CRLF would become two line ends.",
		In:     "a\r\nb\rc\u2028d", Out: "a\nb\nc\nd",
		has: lineEnd, except: func(at place) (rune, bool) { return drop, at.r == '\r' && strings.HasPrefix(at.rest, "\n") },
	},
	classEscape: {
		Name: "escape", Characters: "ESC (U+001B)", Effect: Replaced,
		Why: "It begins what a terminal obeys, such as the end of a paste: all behind it would be keys.",
		In:  "ok\x1b[201~\r!id", Out: "ok\uFFFD[201~\n!id",
		has: func(r rune) bool { return r == 0x1b },
	},
	classControl: {
		Name: "control", Characters: "the other C0 controls (NUL, Ctrl-C, backspace, …) and DEL", Effect: Replaced,
		Why: "They are keys: they interrupt, delete, or end the input.",
		In:  "a\x00b\x03\x7f", Out: "a\uFFFDb\uFFFD\uFFFD",
		has: func(r rune) bool {
			return (r < 0x20 || r == 0x7f) && r != 0x1b && r != '\r' && r != '\n' && r != '\t'
		},
	},
	classC1: {
		Name: "C1", Characters: "the C1 controls (U+0080 to U+009F) but NEL", Effect: Replaced,
		Why: "Some terminals obey U+009B as they obey ESC and [.",
		In:  "ok\u009b201~", Out: "ok\uFFFD201~",
		has: func(r rune) bool { return r >= 0x80 && r <= 0x9f && r != 0x85 },
	},
	classInvalid: {
		Name: "invalid UTF-8", Characters: "each byte that is not part of UTF-8; surrogates are not", Effect: Replaced,
		Why: "The same text must be the same bytes on every surface, and JSON can hold no others.",
		In:  "a\xff\xc3(", Out: "a\uFFFD\uFFFD(",
	},
	classBidi: {
		Name: "bidi", Characters: "marks, embeddings, overrides and isolates of text direction (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069)",
		Effect: Replaced,
		Why:    "They make a text look like another one to the person who reads along. Hebrew and Arabic need none to be read.",
		In:     "invoice_\u202efdp.exe", Out: "invoice_\uFFFDfdp.exe",
		has: func(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) },
	},
	classTag: {
		Name: "tag", Characters: "tag characters (U+E0000 to U+E007F)", Effect: Replaced,
		Why: "A sentence in them is read by a model and seen by nobody. (The flags of England, Scotland and Wales are written with them, and become a black flag.)",
		In:  "LGTM\U000E0072\U000E006D", Out: "LGTM\uFFFD\uFFFD",
		has: tag,
	},
	classJoiner: {
		Name: "joiner", Characters: "the zero-width joiner (U+200D)", Effect: Removed,
		Except: "between two emoji, where it stays: families, professions and flags are made with it",
		Why:    "In words it is not seen, and makes one word look like another.",
		In:     "ad\u200dmin 👩\u200d👧", Out: "admin 👩\u200d👧",
		has: func(r rune) bool { return r == joiner }, except: joins,
	},
	classStyle: {
		Name: "emoji style", Characters: "U+FE0E and U+FE0F, which choose how a character looks", Effect: Removed,
		Except: "one right behind a character that is to be seen, where it stays",
		Why:    "A row of them is a hidden text.",
		In:     "❤\ufe0f\ufe0e\ufe0f", Out: "❤\ufe0f",
		has: style, except: styles,
	},
	classInvisible: {
		Name: "invisible", Characters: "all other characters that leave nothing on a screen: zero-width spaces, the byte order mark, soft hyphens, " +
			"fillers, variation selectors, format characters and what Unicode lets one ignore",
		Effect: Removed,
		Why:    "Whole texts can be hidden in them.",
		In:     "pass\u200bwo\u00adrd\ufeff", Out: "password",
		has: func(r rune) bool {
			return unseen(r) && !tag(r) && !style(r) && r != joiner && !unicode.Is(unicode.Bidi_Control, r)
		},
	},
}

// classOf is the class of a character; those that most texts consist of first.
func classOf(r rune) int {
	switch {
	case r > ' ' && r < 0x7f:
		return classText
	case r == ' ' || r == '\n' || r == '\t':
		return classBlank
	}
	for i := range classes {
		if classes[i].Has(r) {
			return i
		}
	}
	return classInvalid // what no row knows is not typed
}

const (
	joiner     = 0x200d
	textStyle  = 0xfe0e
	emojiStyle = 0xfe0f
	// noDots is white space that Unicode counts among the Braille patterns.
	noDots = 0x2800
)

func visible(r rune) bool { return !unicode.IsControl(r) && !blank(r) && !unseen(r) }

func blank(r rune) bool { return unicode.IsSpace(r) || r == noDots }

func lineEnd(r rune) bool { return r == '\r' || r == 0x85 || r == 0x2028 || r == 0x2029 }

func tag(r rune) bool { return r >= 0xe0000 && r <= 0xe007f }

func style(r rune) bool { return r == textStyle || r == emojiStyle }

// unseen reports whether a character leaves no trace on a screen: what Unicode says
// may be ignored, format characters and the variation selectors, in which whole texts
// can be hidden from the people who read along. Some Arabic number signs are format
// characters that are to be seen.
func unseen(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) &&
		!unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}

// joins tells the joiner within an emoji.
func joins(at place) (rune, bool) {
	for _, next := range at.rest {
		return joiner, (pictographic(at.prev) || at.prev == emojiStyle) && pictographic(next)
	}
	return drop, false
}

// styles tells a style that has a character to choose for.
func styles(at place) (rune, bool) {
	return at.r, at.prev != 0 && !blank(at.prev) && !style(at.prev)
}

// pictographic is a superset of what an emoji's joiner stands between: pictures and
// their skin tones. Letters are not in it.
func pictographic(r rune) bool {
	return (r >= 0x1f000 && r <= 0x1faff || r >= 0x2190 && r <= 0x2bff || r == 0x3030 || r == 0xa9 || r == 0xae) && r != noDots
}
