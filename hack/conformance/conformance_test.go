package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/hack/internal/document"
)

func TestConformance(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "conformance")
}

// sample is a test file whose specs stand in a container.
func sample(specs string) string {
	return "package x_test\n\nvar _ = Describe(\"a thing\", func() {\n" + specs + "\n})\n"
}

const list = `groups:
  - title: Cases
    parts:
      - part: One
        items:
          C001: The first.
          C002: The second.
          C004: The fourth.
      - part: Two
        items:
          P01: The failure.
`

// found says by which texts each id is found in a source.
func found(file, source, data string) (map[string][]string, error) {
	GinkgoHelper()
	cases, err := parseCases([]byte(data))
	Expect(err).NotTo(HaveOccurred())
	specs, err := scanDir(map[string]any{file: source})
	Expect(err).NotTo(HaveOccurred())
	by, err := cases.assign(specs)
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for id, specs := range by {
		for _, s := range specs {
			out[id] = append(out[id], s.text)
		}
	}
	return out, nil
}

var _ = Describe("the names of tests", func() {
	DescribeTable("are found", func(source string, want map[string][]string) {
		Expect(found("x_test.go", source, list)).To(Equal(want))
	},
		Entry("in a spec", sample(`It("C001: does it", func() {})`), map[string][]string{"C001": {"a thing: C001: does it"}}),
		Entry("in a spec of a named import", sample(`ginkgo.It("C001", func() {})`), map[string][]string{"C001": {"a thing: C001"}}),
		Entry("several in one, at the end", sample(`It("does it (C001, P01)", func() {})`),
			map[string][]string{"C001": {"a thing: does it (C001, P01)"}, "P01": {"a thing: does it (C001, P01)"}}),
		Entry("as a range, over a gap", sample(`It("C001-C004 all", func() {})`),
			map[string][]string{"C001": {"a thing: C001-C004 all"}, "C002": {"a thing: C001-C004 all"}, "C004": {"a thing: C001-C004 all"}}),
		Entry("as a range with a long dash", sample(`It("C001–C002", func() {})`), map[string][]string{"C001": {"a thing: C001–C002"}, "C002": {"a thing: C001–C002"}}),
		Entry("in a container, once for all in it", sample(`Context("P01", func() { It("does it", nil); It("does more", nil) })`), map[string][]string{"P01": {"a thing: P01"}}),
		Entry("in a table and its rows", sample("DescribeTable(\"C001\", func() {}, Entry(\"C002 a row\", 1), Entry(\"plain\", `C004`))"),
			map[string][]string{"C001": {"a thing: C001"}, "C002": {"a thing: C001: C002 a row"}}),
		Entry("in a row that a function of the test makes", sample(`DescribeTable("x", func() {}, yes("C001", 1), other("C002", 2))`)+"func yes(name string, n int) TableEntry { return Entry(name, n) }\n",
			map[string][]string{"C001": {"a thing: x: C001"}}),
		Entry("in labels", sample(`It("does it", Label("slow", "C002"), func() {})`), map[string][]string{"C002": {"a thing: does it"}}),
		Entry("in a sum", sample(`It(name+": C001 "+end, func() {})`), map[string][]string{"C001": {"a thing: …: C001 …"}}),
		Entry("in a test function", "package x\n\nfunc TestC001_stays(t *testing.T) {}\n\nfunc TestKeepsP01(t *testing.T) {}\n",
			map[string][]string{"C001": {"TestC001_stays"}, "P01": {"TestKeepsP01"}}),
		Entry("in a subtest and a row that has a name", "package x\n\nfunc TestIt(t *testing.T) {\n\tt.Run(\"C001\", nil)\n\t_ = []row{{name: \"P01 a row\"}}\n}\n",
			map[string][]string{"C001": {"C001"}, "P01": {"P01 a row"}}),
		Entry("not in what a test says or is given", sample(`It("does it", func() { By("C001"); say("P01"); f(x{text: "C002"}) })`), map[string][]string{}),
		Entry("not where they are parts of words", sample(`It("0xC001 XP01 C0012 P010", func() {})`), map[string][]string{}),
		Entry("not in what does not run", sample(`PIt("C001", func() {}); It("C002", Pending, func() {}); XDescribe("x", func() { It("P01", nil) })`), map[string][]string{}),
	)

	It("count for nothing where a stand-in is tested", func() {
		Expect(found("test/fakeharness/x_test.go", sample(`It("P01 can be shown", func() {})`), list)).To(BeEmpty())
	})

	DescribeTable("are refused when they name what does not exist, with the place", func(specs, says string) {
		_, err := found("x_test.go", sample(specs), list)
		Expect(err).To(MatchError(ContainSubstring(says)))
	},
		Entry("a typo", `It("C003: does it", func() {})`, "x_test.go:4: C003 does not exist"),
		Entry("a typo in what does not run", `PIt("P02", func() {})`, "P02 does not exist"),
		Entry("a range that ends nowhere", `It("C001-C003", func() {})`, "C001-C003 does not exist"),
		Entry("a range that runs backwards", `It("C004-C001", func() {})`, "C004-C001 does not exist"),
		Entry("a range of two lists", `It("C001-P01", func() {})`, "C001-P01 does not exist"),
	)
})

var _ = Describe("the list of cases", func() {
	It("is sound, and this repository's tests name nothing that is not in it", func() {
		cases, err := parseCases(casesYAML)
		Expect(err).NotTo(HaveOccurred())
		specs, err := scan("../..")
		Expect(err).NotTo(HaveOccurred())
		Expect(cases.assign(specs)).NotTo(BeEmpty())
	})

	DescribeTable("is refused", func(data, says string) {
		_, err := parseCases([]byte(data))
		Expect(err).To(MatchError(ContainSubstring(says)))
	},
		Entry("with an id of another form", "groups: [{parts: [{items: {C1: x}}]}]", `"C1" is not an id`),
		Entry("with an id twice", "groups: [{parts: [{items: {P01: x}}, {items: {P01: y}}]}]", "P01 is there twice"),
		Entry("with a case without words", `groups: [{parts: [{items: {P01: ""}}]}]`, "P01 needs one line"),
		Entry("with a bar, which would break the table", `groups: [{parts: [{items: {P01: "a|b"}}]}]`, "P01 needs one line"),
		Entry("with a field that does not exist", "group: []", "group"),
		Entry("with a lack of nothing", "lacks: {P01: x}", "P01, which does not exist"),
	)

	It("may not say what an open case lacks", func() {
		_, err := found("x_test.go", sample(`It("C001", func() {})`), list+"lacks: {C002: all of it}\n")
		Expect(err).To(MatchError(ContainSubstring("lacks names C002, but no test does")))
	})
})

var _ = Describe("the document", func() {
	var root string
	write := func(name, text string) {
		GinkgoHelper()
		path := filepath.Join(root, name)
		Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
	}
	BeforeEach(func() {
		root = GinkgoT().TempDir()
		write("a/x_test.go", sample(`It("C001: does <it>", func() {}); It("P01", func() {})`))
		write("a/testdata/y_test.go", "not Go")
		write("b/x.go", sample(`It("C002", func() {})`))
	})

	It("says of each case what proves it, and counts", func() {
		Expect(run(root, "docs/c.md", []byte(list+"lacks: {P01: the rest}\n"), false)).To(Succeed())
		doc, err := os.ReadFile(filepath.Join(root, "docs", "c.md"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(doc)).To(And(
			ContainSubstring("## Cases\n\n1 proved, 1 in part, 2 open, of 4.\n"),
			ContainSubstring("### One\n"), ContainSubstring("### Two\n"),
			ContainSubstring("| C001 | The first. | [a/x_test.go](../a/x_test.go): a thing: C001: does &lt;it> |\n"),
			ContainSubstring("| C002 | The second. | *open* |\n"),
			ContainSubstring("| P01 | The failure. | *in part*, open: the rest<br>[a/x_test.go]"),
		))
	})

	It("is called out of date when a test was renamed, and not written then", func() {
		Expect(run(root, "docs/c.md", []byte(list), false)).To(Succeed())
		Expect(run(root, "docs/c.md", []byte(list), true)).To(Succeed())
		write("a/x_test.go", sample(`It("C002: does it", func() {}); It("P01", func() {})`))
		err := run(root, "docs/c.md", []byte(list), true)
		Expect(err).To(MatchError(document.ErrStale))
		Expect(err).To(MatchError(ContainSubstring("- | C001")))
		doc, err := os.ReadFile(filepath.Join(root, "docs", "c.md"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(doc)).To(ContainSubstring("C001: does"))
	})

	It("is called missing when it is", func() {
		Expect(run(root, "docs/c.md", []byte(list), true)).To(MatchError(os.ErrNotExist))
	})

	It("is not written when a test has a typo", func() {
		write("a/x_test.go", sample(`It("C003", func() {})`))
		Expect(run(root, "docs/c.md", []byte(list), false)).To(MatchError(ContainSubstring("a/x_test.go:4: C003")))
		Expect(filepath.Join(root, "docs")).NotTo(BeAnExistingFile())
	})
})
