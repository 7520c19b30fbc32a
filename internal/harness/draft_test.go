package harness_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/harness"
)

// recorded is a screen of a real harness, and what is in its input box.
type recorded struct {
	name string
	harness.Screen
	draft harness.Draft
}

// recordings reads testdata/screens/NAME.txt. Each screen begins with a line of the form
// "== 80x24 what was done cursor X Y: expected"; escape characters are written as ␛.
func recordings(name string) (out []recorded) {
	data, err := os.ReadFile(filepath.Join("testdata", "screens", name+".txt"))
	if err != nil {
		panic(err)
	}
	for _, part := range strings.Split("\n"+string(data), "\n== ")[1:] {
		head, text, _ := strings.Cut(part, "\n")
		title, draft, _ := strings.Cut(head, ": ")
		title, cursor, _ := strings.Cut(title, " cursor ")
		r := recorded{name: title, draft: harness.Draft(draft)}
		if _, err := fmt.Sscan(cursor, &r.CursorX, &r.CursorY); err != nil {
			panic(name + ": " + head + ": " + err.Error())
		}
		r.Text = strings.ReplaceAll(text, "␛", "\x1b")
		out = append(out, r)
	}
	return out
}

var _ = Describe("the input box", func() {
	const said, twelve = "Message (Person):\n\nhello", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12"

	for _, version := range []string{"claude-2.1.332", "codex-0.171.0", "gemini-0.61.0"} {
		name, _, _ := strings.Cut(version, "-")
		for _, r := range recordings(version) {
			It(version+" "+r.name, func() {
				Expect(drafter(name).Draft(r.Screen)).To(Equal(r.draft))
			})
		}

		It("P14, P40: "+version+" tells whether a text that was pasted stands behind something that a person has typed", func() {
			const text = "Message (Person):\n\nhello"
			d, led := drafter(name), 0
			for _, r := range recordings(version) {
				unseen := r.draft != harness.DraftTyped || slices.Contains([]string{"draft-pasted-chip", "draft-tall", "draft-tall-blank", "draft-blanks-only", "draft-newlines-only"}, r.name[strings.Index(r.name, " ")+1:])
				Expect(harness.Led(d, r.Screen, text)).To(Equal(!unseen), r.name)
				if !unseen {
					led++
					Expect(harness.Led(d, r.Screen, head(d, r)+"\nand more")).To(BeFalse(), r.name)
				}
			}
			Expect(led).To(BeNumerically(">", 10))
		})

		It("P40: "+version+" takes a row further on of a text that is too tall for the box for what it is", func() {
			d := drafter(name)
			for _, r := range recordings(version) {
				first := strings.TrimPrefix(head(d, r), "!")
				if r.draft != harness.DraftTyped || strings.TrimSpace(first) == "" || first != head(d, r) {
					continue
				}
				tall := strings.Repeat("a line\n", 9) + first + "\nthe end"
				Expect(harness.Led(d, r.Screen, tall)).To(BeFalse(), r.name)
				if len(first) >= 8 {
					Expect(harness.Led(d, r.Screen, "one line and "+first+" go on")).To(BeFalse(), r.name)
				} else {
					Expect(harness.Led(d, r.Screen, "one line\n"+first)).To(BeTrue(), r.name)
				}
			}
		})

		It("P49: "+version+" holds what stands in its box, and nothing else", func() {
			d, held := drafter(name), 0
			for _, r := range recordings(version) {
				rows := d.Rows(r.Screen)
				text := strings.Join(rows, "\n")
				Expect(harness.Holds(d, r.Screen, text+" and more")).To(BeFalse(), r.name)
				Expect(harness.Holds(d, r.Screen, "Message (Person):\n\nhello")).To(BeFalse(), r.name)
				if r.draft != harness.DraftTyped || strings.TrimSpace(text) == "" {
					Expect(harness.Holds(d, r.Screen, text)).To(BeFalse(), r.name)
					continue
				}
				held++
				Expect(harness.Holds(d, r.Screen, text)).To(BeTrue(), r.name)
				if strings.HasSuffix(r.name, " draft-pasted-chip") {
					size := 29                                                  // ends of lines
					lines := strings.Repeat(strings.Repeat("x", 87)+"\n", size) // with the rest 2629 characters
					Expect(harness.Holds(d, r.Screen, lines+strings.Repeat("x", 2629-len(lines)))).To(BeTrue(), r.name)
					Expect(harness.Holds(d, r.Screen, lines+strings.Repeat("x\n", 2628-len(lines)))).To(BeFalse(), r.name)
				}
			}
			Expect(held).To(BeNumerically(">", 10))
		})

		It(version+" is not recognised on a screen of something else", func() {
			for _, s := range []harness.Screen{
				{}, {Text: "\n\n\n", CursorY: 2}, {Text: "$ ", CursorX: 2}, {Text: "$ make\nok\n$ ", CursorX: 2, CursorY: 2},
				{Text: "\x1b[", CursorX: 900, CursorY: 900}, {Text: "❯ 1. Yes\n  2. No", CursorX: 2},
				{Text: "\x1b]8;;http://x", CursorX: 2}, {Text: "\x1b[38;5", CursorY: 1}, {Text: "\xff\xfe\n\x1b", CursorX: 1},
			} {
				Expect(drafter(name).Draft(s)).To(Equal(harness.DraftUnknown), "%q", s.Text)
			}
		})
	}

	DescribeTable("P40: shows a row of a tall text", func(text, row string, led bool) {
		s := harness.Screen{Text: "───\n❯ " + row + "\n  and more\n───", CursorX: 5, CursorY: 2}
		Expect(harness.Led(drafter("claude"), s, text)).To(Equal(led))
	},
		Entry("a whole line", "Message:\n"+strings.Repeat("a\nyes\n", 9), "yes", false),
		Entry("a part of one", "Message:\n"+strings.Repeat("a\nyes, do\n", 9), "yes", true),
		Entry("the end of one that is wrapped", "Message:\n"+strings.Repeat(strings.Repeat("word ", 40)+"end.\n", 3), "end.", false),
		Entry("the middle of one that is wrapped", "Message:\n"+strings.Repeat(strings.Repeat("word ", 40)+"end.\n", 3), "d word word", false),
		Entry("the end of no line", "Message:\n"+strings.Repeat(strings.Repeat("word ", 40)+"end.\n", 3), "ok", true),
		Entry("with marks that take no cell", "Message:\n"+strings.Repeat("a\nhindī हिन्दी e\u0301\u0323tude ❤\ufe0f and more\n", 9), "हिन्दी e\u0301\u0323tude ❤\ufe0f and", false),
		Entry("with tabs", "Message:\n"+strings.Repeat("a\n\tif a {\n\t\treturn\n", 9), "        return", false),
		Entry("after what a person had begun to type", "Message:\n"+strings.Repeat("a\nyes\n", 9), "please Message:", true),
	)

	DescribeTable("P27, P49: holds the text, or does not", func(box, text string, holds bool) {
		s := harness.Screen{Text: "───\n" + box + "\n───\n  -- INSERT --", CursorX: 5, CursorY: 1 + strings.Count(box, "\n")}
		Expect(harness.Holds(drafter("claude"), s, text)).To(Equal(holds))
	},
		Entry("as it was pasted", "❯ Message (Person):\n\n  hello", said, true),
		Entry("wrapped", "❯ Message\n  (Person):\n\n  hello", said, true),
		Entry("and an addition of a person", "❯ Message (Person):\n\n  hello, and", said, false),
		Entry("behind a draft", "❯ please Message (Person):\n\n  hello", said, false),
		Entry("in the mode for the shell", "! Message (Person):\n\n  hello", said, false),
		Entry("but another text of ours, fetched by Up", "❯ Message (Person):\n\n  good morning", said, false),
		Entry("but something of a person's", "❯ ls", said, false),
		Entry("but a part of it", "❯ Message (Person):", said, false),
		Entry("but blanks", "❯    ", said, false),
		Entry("but empty lines", "❯\n\n", said, false),
		Entry("but a hint", "❯ \x1b[2mMessage (Person):\n\n  hello", said, false),
		Entry("but no box", "  no box", said, false),
		Entry("folded, and of its size", "❯ [Pasted text #1 +11 lines]", twelve, true),
		Entry("folded as it was before", "❯ [Pasted text #7 +11 lines]", twelve, true),
		Entry("but a folded paste of a person", "❯ [Pasted text #1 +12 lines]", twelve, false),
		Entry("but a folded paste of a person, and the text is short", "❯ [Pasted text #1 +29 lines]", said, false),
		Entry("but a folded paste that does not tell its size, and the text has lines", "❯ [Pasted text #1]", twelve, false),
		Entry("but a folded paste that does not tell its size, and the text is short", "❯ [Pasted text #1]", "hello", false),
		Entry("folded, one long line", "❯ [Pasted text #1]", strings.Repeat("word ", 200), true),
		Entry("folded, and an addition of a person", "❯ [Pasted text #1 +11 lines] go on", twelve, false),
		Entry("folded, and an addition in the next row", "❯ [Pasted text #1 +11 lines]\n  go on", twelve, false),
		Entry("folded, behind a draft", "❯ see [Pasted text #1 +11 lines]", twelve, false),
		Entry("folded, and another folded one", "❯ [Pasted text #1 +11 lines][Pasted text #2 +3 lines]", twelve, false),
		Entry("but a picture", "❯ [Image #1]", twelve, false),
		Entry("folded, by lines, as in Gemini CLI", "❯ [Pasted Text: 12 lines]", twelve, true),
		Entry("but a folded paste of a line less, as in Gemini CLI", "❯ [Pasted Text: 11 lines]", twelve, false),
		Entry("folded a second time, as in Gemini CLI", "❯ [Pasted Text: 12 lines #2]", twelve, true),
		Entry("folded, by characters", "❯ [Pasted Text: 600 chars]", strings.Repeat("ä", 600), true),
		Entry("folded, by characters of sixteen bits", "❯ [Pasted Text: 1200 chars]", strings.Repeat("😀", 600), true),
		Entry("but a folded paste of other characters", "❯ [Pasted Content 601 chars]", strings.Repeat("ä", 600), false),
		Entry("the end of a tall one", "❯ line\n  line\n  the end", "Message:\n"+strings.Repeat("line\n", 20)+"the end", true),
		Entry("but a row of a tall one", "❯ line line", "Message:\n"+strings.Repeat("line\n", 20)+"the end", false),
		Entry("but a word with which a tall one ends", "❯ yes", "Message:\n"+strings.Repeat("line\n", 20)+"yes", false),
		Entry("but what is the end of one that is not tall", "❯ and the end of it", "Message:\n\nthis, and the end of it", false),
		Entry("but a tall box without its beginning", "  line\n  the end", "Message:\n"+strings.Repeat("line\n", 20)+"the end", false),
	)

	It("is read whole whatever the numbers of a colour are, and past a hyperlink", func() {
		box := "───\n❯ %s\n───"
		for text, want := range map[string]harness.Draft{
			"\x1b[38;5;2mtext":               harness.DraftTyped,
			"\x1b[48;2;2;2;2mtext":           harness.DraftTyped,
			"\x1b[2;38;5;7mhint":             harness.DraftEmpty,
			"\x1b[2mhint\x1b[22m":            harness.DraftEmpty,
			"\x1b[2m\x1b[mtext":              harness.DraftTyped,
			"\x1b[7mh\x1b[0;2mint":           harness.DraftEmpty,
			"\x1b[7mh\x1b[0mint":             harness.DraftTyped,
			"\x1b[7mx\x1b[0m":                harness.DraftTyped,
			"\x1b[7m \x1b[0m":                harness.DraftEmpty,
			"\x1b]8;;u\x1b\\a\x1b]8;;\x1b\\": harness.DraftTyped,
		} {
			s := harness.Screen{Text: fmt.Sprintf(box, text), CursorX: 2, CursorY: 1}
			Expect(drafter("claude").Draft(s)).To(Equal(want), "%q", text)
		}
	})
})

// head is the first row of what stands in the box.
func head(d harness.Drafter, r recorded) string {
	rows := d.Rows(r.Screen)
	if len(rows) == 0 {
		return ""
	}
	return rows[0]
}

func drafter(name string) harness.Drafter {
	GinkgoHelper()
	a, err := harness.Get(name)
	Expect(err).NotTo(HaveOccurred())
	d, ok := a.(harness.Drafter)
	Expect(ok).To(BeTrue())
	return d
}
