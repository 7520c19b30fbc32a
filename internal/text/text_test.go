package text_test

import (
	"strings"
	"unicode/utf8"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/text"
)

const family = "👩\u200d👩\u200d👧\u200d👦"

var _ = Describe("Sanitize", func() {
	DescribeTable("each class of character", func(in, want string, replaced int) {
		got, report := text.Sanitize(in)
		Expect(got).To(Equal(want))
		Expect(report.Total(text.Replaced)).To(Equal(replaced))
		Expect(utf8.ValidString(got)).To(BeTrue())

		again, report := text.Sanitize(got)
		Expect(again).To(Equal(got), "a fixed point")
		Expect(report).To(BeZero(), "what was put in its place is not replaced once more")
	},
		Entry("plain text stays", "fix the login page, please", "fix the login page, please", 0),
		Entry("leading blanks and empty lines stay: the frame stands before them", "\n  x", "\n  x", 0),
		Entry("text of many scripts stays", "日本語 ελληνικά हिन्दी עברית", "日本語 ελληνικά हिन्दी עברית", 0),
		Entry("U+FFFD itself stays and is not counted", "a\uFFFDb", "a\uFFFDb", 0),
		Entry("tabs and line feeds stay", "a\tb\nc", "a\tb\nc", 0),

		Entry("P03: CRLF is one line end", "a\r\nb\r\nc", "a\nb\nc", 0),
		Entry("P03: a lone CR, which would submit, is a line end", "a\rb", "a\nb", 0),
		Entry("P03: CR CRLF is two", "a\r\r\nb", "a\n\nb", 0),
		Entry("P03: a CR at the very end is trimmed", "a\r", "a", 0),
		Entry("NEL, line separator and paragraph separator are line ends", "a\u0085b\u2028c\u2029d", "a\nb\nc\nd", 0),

		Entry("P01: the end of a bracketed paste", "ok\x1b[201~\r!touch /tmp/pwn\r", "ok\uFFFD[201~\n!touch /tmp/pwn", 1),
		Entry("P01: the same with the C1 introducer", "ok\u009b201~", "ok\uFFFD201~", 1),
		Entry("P34: NUL", "a\x00b", "a\uFFFDb", 1),
		Entry("C0: interrupt, end of file, backspace, bell, escape", "\x03\x04\x08\x07\x1bx", "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDx", 5),
		Entry("C0: vertical tab and form feed", "a\vb\fc", "a\uFFFDb\uFFFDc", 2),
		Entry("DEL", "a\x7fb", "a\uFFFDb", 1),
		Entry("C1 controls", "a\u0080b\u009fc", "a\uFFFDb\uFFFDc", 2),
		Entry("P34: invalid UTF-8, one for each byte", "a\xffb\xc3(", "a\uFFFDb\uFFFD(", 2),
		Entry("P34: a lone surrogate", "a\xed\xa0\x80b", "a\uFFFD\uFFFD\uFFFDb", 3),
		Entry("P34: an overlong ESC is not one", "\xc0\x9b", "\uFFFD\uFFFD", 2),
		Entry("a text cut off in a character", "日本"[:4], "日\uFFFD", 1),

		Entry("P37: bidirectional overrides and isolates", "a\u202eb\u2066c\u2069d", "a\uFFFDb\uFFFDc\uFFFDd", 3),
		Entry("P37: bidirectional marks", "a\u200eb\u200fc\u061cd", "a\uFFFDb\uFFFDc\uFFFDd", 3),
		Entry("P37: tag characters", "LGTM\U000E0072\U000E006D", "LGTM\uFFFD\uFFFD", 2),
		Entry("P37: zero-width characters", "pass\u200bword\u2060s\ufeff\u200c", "passwords", 0),
		Entry("P37: invisible operators and fillers", "a\u2061b\u2064c\u3164d\u115fe\u034ff\u00adg\u180eh\uffa0i", "abcdefghi", 0),
		Entry("P37: deprecated and interlinear format characters", "a\u206ab\u206fc\ufff9d\ufffbe", "abcde", 0),
		Entry("P37: a text hidden in variation selectors", "😀"+"\U000E0158\U000E0155\U000E015C\ufe01\ufe0d", "😀", 0),
		Entry("P37: a text hidden in repeated emoji styles", "😀\ufe0f\ufe0e\ufe0e\ufe0f\n\ufe0fx", "😀\ufe0f\nx", 0),
		Entry("P37: a joiner between letters", "ad\u200dmin", "admin", 0),
		Entry("P37: a row of joiners", "👩"+strings.Repeat("\u200d", 9)+"👧", "👩\u200d👧", 0),
		Entry("P37: joiners with styles in a row", "👩\u200d\ufe0f\u200d\ufe0f", "👩\ufe0f", 0),
		Entry("P37: a joiner before nothing", "👩\u200d", "👩", 0),

		Entry("P37: emoji of a family are unharmed", family, family, 0),
		Entry("P37: emoji with a style and a joiner are unharmed", "🏳\ufe0f\u200d🌈 ❤\ufe0f\u200d🔥 🏴\u200d☠\ufe0f", "🏳\ufe0f\u200d🌈 ❤\ufe0f\u200d🔥 🏴\u200d☠\ufe0f", 0),
		Entry("P37: skin tones, keycaps and national flags are unharmed", "👍🏽 1\ufe0f\u20e3 🇩🇪", "👍🏽 1\ufe0f\u20e3 🇩🇪", 0),
		Entry("Arabic number signs are to be seen, and stay", "\u0600\u06dd", "\u0600\u06dd", 0),

		Entry("P04: trailing line ends", "do it\n\n\n", "do it", 0),
		Entry("P04: trailing line ends of another system", "do it\r\n\r\n", "do it", 0),
		Entry("P04: trailing blanks and tabs", "do it \t \n", "do it", 0),
		Entry("P04: trailing blanks of other scripts", "do it\u00a0\u2003\u3000\u2800", "do it", 0),
		Entry("P04: a joiner or a style on trailing blanks is none", "👩\u00a0\ufe0f\u200d\u2800", "👩", 0),
		Entry("P04: nor is a joiner before one", "👩\u200d\u2800", "👩", 0),
		Entry("P28: nothing", "", "", 0),
		Entry("P28: blanks alone", " \n\t", "", 0),
		Entry("P29: empty only after it was sanitised", "\u200b\ufeff \u2060\n", "", 0),
	)

	It("P31: keeps a long text whole", func() {
		long := strings.Repeat("0123456789abcdef 😀\n", 1<<16)
		got, report := text.Sanitize(long)
		Expect(got).To(Equal(strings.TrimSuffix(long, "\n")))
		Expect(report).To(BeZero())
	})
})

var _ = DescribeTable("OneLine", func(in, want string) {
	Expect(text.OneLine(in)).To(Equal(want))
},
	Entry("one line", "alice", "alice"),
	Entry("several", "a\r\nb\nc", "a b c"),
	Entry("controls", "a\x1bb", "a\uFFFDb"),
	Entry("ends", " a \n", " a"),
)
