package text_test

import (
	"encoding/json"
	"fmt"
	"unicode"
	"unicode/utf8"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/text"
	"github.com/theloop-dev/the-loop/internal/text/corpus"
)

var _ = Describe("the published table", func() {
	It("P34, P37: has every character of Unicode in exactly one row, and the code does to it what the row says", func() {
		var wrong []string
		rows := text.Classes()
		for r := rune(0); r <= unicode.MaxRune; r++ {
			if !utf8.ValidRune(r) {
				continue // a surrogate is no character
			}
			if why := judge(rows, r); why != "" && len(wrong) < 20 {
				wrong = append(wrong, fmt.Sprintf("U+%04X: %s", r, why))
			}
		}
		Expect(wrong).To(BeEmpty())
	})

	It("gives in each row an example that is true", func() {
		for _, c := range text.Classes() {
			got, report := text.Sanitize(c.In)
			Expect(got).To(Equal(c.Out), c.Name)
			if c.Effect == text.Replaced || c.Effect == text.Removed {
				Expect(report.Count(c.Name)).To(BeNumerically(">", 0), "the example of %s shows it", c.Name)
				Expect(got).NotTo(Equal(c.In), c.Name)
			}
			if c.Except != "" {
				Expect(c.Effect).NotTo(Equal(text.Replaced), "what is replaced is replaced everywhere: %s", c.Name)
			}
		}
	})

	It("says of each row which characters, why, and what a report calls it, which no other row is called", func() {
		names := map[string]bool{}
		for _, c := range text.Classes() {
			Expect([]string{c.Name, c.Characters, c.Why, c.In, c.Out}).NotTo(ContainElement(BeEmpty()), "%+v", c)
			Expect(names).NotTo(HaveKey(c.Name))
			names[c.Name] = true
		}
	})

	It("cannot be changed by who reads it", func() {
		text.Classes()[0].Name = "changed"
		Expect(text.Classes()[0].Name).NotTo(Equal("changed"))
	})
})

// judge says what is wrong with how a character between two letters is treated.
func judge(rows []text.Class, r rune) string {
	var row *text.Class
	for i := range rows {
		if !rows[i].Has(r) {
			continue
		}
		if row != nil {
			return "is in two rows: " + row.Name + ", " + rows[i].Name
		}
		row = &rows[i]
	}
	if row == nil {
		return "is in no row"
	}
	want, counted := string(r), 0
	switch row.Effect {
	case text.BecomesLineFeed:
		want = "\n"
	case text.Replaced:
		want, counted = "\uFFFD", 1
	case text.Removed:
		want, counted = "", 1
	}
	if row.Name == "emoji style" {
		want, counted = string(r), 0 // behind a letter it stays
	}
	got, report := text.Sanitize("x" + string(r) + "y")
	switch {
	case got != "x"+want+"y":
		return row.Name + ": became " + got
	case report.Count(row.Name) != counted || report.Total(text.Replaced)+report.Total(text.Removed) != counted:
		return row.Name + ": reported as " + report.String()
	case untypeable(got) != "":
		return row.Name + ": " + untypeable(got)
	}
	return ""
}

var _ = DescribeTable("a report", func(in, want string) {
	_, report := text.Sanitize(in)
	Expect(report.String()).To(Equal(want))
	if want == "" {
		Expect(report).To(Equal(text.Report{}))
	} else {
		Expect(report).NotTo(Equal(text.Report{}))
	}
},
	Entry("nothing to tell", "plain\r\n\u2028text \n", ""),
	Entry("P01: one", "a\x1bb", "1 character replaced: escape ×1"),
	Entry("P01, P37: several kinds, in the order of the table", "\u202ea\x1bb\u202c", "3 characters replaced: escape ×1, bidi ×2"),
	Entry("P37: what is taken out", "a\u200bb\u200bc\u200dd", "3 characters removed: joiner ×1, invisible ×2"),
	Entry("P34, P37: both", "\x00\xff\u200b\u009b", "3 characters replaced: control ×1, C1 ×1, invalid UTF-8 ×1; 1 character removed: invisible ×1"),
	Entry("P29: also where nothing is left of the text", "\u200b", "1 character removed: invisible ×1"),
	Entry("U+FFFD that was there before is nobody's doing", "a\uFFFDb", ""),
)

var _ = It("a report counts nothing of a class that there is not", func() {
	_, report := text.Sanitize("\x1b")
	Expect(report.Count("no such class")).To(BeZero())
})

// asJSON is a text as it is after it was sent and read as JSON.
func asJSON(s string) string {
	sent, err := json.Marshal(s)
	Expect(err).NotTo(HaveOccurred())
	var got string
	Expect(json.Unmarshal(sent, &got)).To(Succeed())
	return got
}

var _ = Describe("the corpus", func() {
	It("P01, P03, P04, P23, P24, P27, P28, P29, P31, P34, P37, C061: has cases of each, told apart by name, each with its reason", func() {
		ids, names := map[string]bool{}, map[string]bool{}
		for _, c := range corpus.All() {
			Expect(c.Why).NotTo(BeEmpty(), c.Name)
			Expect(c.Name).To(MatchRegexp(`^[a-z0-9]+(-[a-z0-9]+)*$`))
			Expect(names).NotTo(HaveKey(c.Name))
			ids[c.ID], names[c.Name] = true, true
		}
		for _, id := range []string{"P01", "P03", "P04", "P23", "P24", "P27", "P28", "P29", "P31", "P34", "P37", "C061"} {
			Expect(ids).To(HaveKey(id))
		}
	})

	It("C061, P01, P03, P34, P37: comes out fit to be typed, and sanitising it once more changes and reports nothing", func() {
		for _, c := range corpus.All() {
			got, _ := text.Sanitize(c.Text)
			Expect(untypeable(got)).To(BeEmpty(), c.Name)
			again, report := text.Sanitize(got)
			Expect(again == got && report == text.Report{}).To(BeTrue(), c.Name)
		}
	})

	It("P34: gives the same bytes through JSON as directly", func() {
		for _, c := range corpus.All() {
			direct, _ := text.Sanitize(c.Text)
			through, _ := text.Sanitize(asJSON(c.Text))
			Expect(through).To(Equal(direct), c.Name)
		}
	})

	It("P34: a surrogate that JSON tells of is replaced", func() {
		var s string
		Expect(json.Unmarshal([]byte(`"a\ud800b"`), &s)).To(Succeed())
		got, _ := text.Sanitize(s)
		Expect(got).To(Equal("a\uFFFDb"))
	})

	It("P31, P37: keeps what must not be harmed, byte for byte", func() {
		for _, c := range corpus.Unharmed() {
			got, report := text.Sanitize(c.Text)
			Expect(got).To(Equal(c.Text), c.Name)
			Expect(report.String()).To(BeEmpty(), c.Name)
		}
	})

	It("P28, P29: leaves nothing of what is empty, and something of all else", func() {
		names := map[string]bool{}
		for _, c := range corpus.Empty() {
			names[c.Name] = true
		}
		Expect(names).NotTo(BeEmpty())
		for _, c := range corpus.All() {
			got, _ := text.Sanitize(c.Text)
			if names[c.Name] {
				Expect(got).To(BeEmpty(), c.Name)
			} else {
				Expect(got).NotTo(BeEmpty(), c.Name)
			}
		}
	})

	It("P31: has a text of exactly the limit, and those that the API takes can be told apart", func() {
		sizes := map[int]bool{}
		for _, c := range corpus.Accepted(text.Limit) {
			Expect(len(c.Text)).To(BeNumerically("<=", text.Limit))
			sizes[len(c.Text)] = true
		}
		Expect(sizes).To(HaveKey(text.Limit))
		Expect(len(corpus.Accepted(text.Limit))).To(BeNumerically("<", len(corpus.All())))
	})
})
