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
					Expect(harness.Led(d, r.Screen, d.Head(r.Screen)+"\nand more")).To(BeFalse(), r.name)
				}
			}
			Expect(led).To(BeNumerically(">", 10))
		})

		It("P40: "+version+" takes a row further on of a text that is too tall for the box for what it is", func() {
			d := drafter(name)
			for _, r := range recordings(version) {
				head := strings.TrimPrefix(d.Head(r.Screen), "!")
				if r.draft != harness.DraftTyped || strings.TrimSpace(head) == "" || head != d.Head(r.Screen) {
					continue
				}
				tall := strings.Repeat("a line\n", 9) + head + "\nthe end"
				Expect(harness.Led(d, r.Screen, tall)).To(BeFalse(), r.name)
				if len(head) >= 8 {
					Expect(harness.Led(d, r.Screen, "one line and "+head+" go on")).To(BeFalse(), r.name)
				} else {
					Expect(harness.Led(d, r.Screen, "one line\n"+head)).To(BeTrue(), r.name)
				}
			}
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

func drafter(name string) harness.Drafter {
	GinkgoHelper()
	a, err := harness.Get(name)
	Expect(err).NotTo(HaveOccurred())
	d, ok := a.(harness.Drafter)
	Expect(ok).To(BeTrue())
	return d
}
