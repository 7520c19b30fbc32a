package workitem_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/workitem"
)

var _ = Describe("a work item reference", func() {
	DescribeTable("is read (specification 1.1)",
		func(in, written string, want workitem.Ref) {
			got, err := workitem.Parse(in)
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(Equal(want))
			Expect(got.String()).To(Equal(written))
			Expect(ref(written)).To(Equal(want))
			made, err := workitem.New(want.Provider, want.Host, want.Owner, want.Repo, want.Number)
			Expect(err).NotTo(HaveOccurred())
			Expect(made).To(Equal(want))
		},
		Entry("two parts", "github:octo/repo#15", "github:octo/repo#15",
			workitem.Ref{Provider: "github", Owner: "octo", Repo: "repo", Number: 15}),
		Entry("three parts, dotted host", "github:ghe.corp.example/octo/repo#15", "github:ghe.corp.example/octo/repo#15",
			workitem.Ref{Provider: "github", Host: "ghe.corp.example", Owner: "octo", Repo: "repo", Number: 15}),
		Entry("three parts, dotted host with port", "github:ghe.corp:8443/o/r#1", "github:ghe.corp:8443/o/r#1",
			workitem.Ref{Provider: "github", Host: "ghe.corp:8443", Owner: "o", Repo: "r", Number: 1}),
		Entry("three parts, bare host with port", "github:ghe:8443/o/r#1", "github:ghe:8443/o/r#1",
			workitem.Ref{Provider: "github", Host: "ghe:8443", Owner: "o", Repo: "r", Number: 1}),
		Entry("C004 the default host is not kept", "github:github.com/o/r#1", "github:o/r#1",
			workitem.Ref{Provider: "github", Owner: "o", Repo: "r", Number: 1}),
		Entry("blanks around it are dropped", " \tgithub:o/r#1\n", "github:o/r#1",
			workitem.Ref{Provider: "github", Owner: "o", Repo: "r", Number: 1}),
		Entry("leading zeros vanish", "github:o/r#015", "github:o/r#15",
			workitem.Ref{Provider: "github", Owner: "o", Repo: "r", Number: 15}),
		Entry("case is kept", "github:Octo/Repo#1", "github:Octo/Repo#1",
			workitem.Ref{Provider: "github", Owner: "Octo", Repo: "Repo", Number: 1}),
		Entry("the charset of owner and repo is not checked", "github:oc to/r é;$(x)#1", "github:oc to/r é;$(x)#1",
			workitem.Ref{Provider: "github", Owner: "oc to", Repo: "r é;$(x)", Number: 1}),
		Entry("another provider", "jira:ops/board#7", "jira:ops/board#7",
			workitem.Ref{Provider: "jira", Owner: "ops", Repo: "board", Number: 7}),
		Entry("the largest number", "github:o/r#9223372036854775807", "github:o/r#9223372036854775807",
			workitem.Ref{Provider: "github", Owner: "o", Repo: "r", Number: 9223372036854775807}),
	)

	DescribeTable("is refused, naming the expected form and what was wrong",
		func(in, why string) {
			got, err := workitem.Parse(in)
			Expect(err).To(MatchError(workitem.ErrInvalidRef))
			Expect(err).To(MatchError(ContainSubstring(workitem.Form)))
			Expect(err).To(MatchError(ContainSubstring(why)))
			Expect(got).To(BeZero())
		},
		Entry("C003 three parts without a host", "github:octo/repo/sub#15", `the first must be a host (dotted, or with a port), which "octo" is not`),
		Entry("C008 a standing reference", "standing:x", "standing sessions are not work items"),
		Entry("C008 a standing reference in a work item's clothes", "standing:o/r#1", "standing sessions are not work items"),
		Entry("C008 a provider whose targets look like standing ones", "standing-x:o/r#1", `must not begin with "standing-"`),
		Entry("nothing", "", `no "<provider>:"`),
		Entry("a bare path", "octo/repo#15", `no "<provider>:"`),
		Entry("no number sign", "github:octo/repo", `no "#<number>"`),
		Entry("no number", "github:octo/repo#", "not a decimal number"),
		Entry("a signed number", "github:octo/repo#+1", "not a decimal number"),
		Entry("digits that are not ASCII", "github:octo/repo#\u0661", "not a decimal number"),
		Entry("two number signs", "github:octo/re#po#1", "not a decimal number"),
		Entry("number zero", "github:octo/repo#0", "1 or more"),
		Entry("a number too large", "github:octo/repo#9223372036854775808", "too large"),
		Entry("an upper-case provider", "GitHub:octo/repo#1", "lower-case"),
		Entry("a provider with a digit first", "1hub:octo/repo#1", "lower-case"),
		Entry("an empty provider", ":octo/repo#1", "lower-case"),
		Entry("one part", "github:repo#1", "1 parts"),
		Entry("four parts", "github:ghe.corp/a/b/c#1", "4 parts"),
		Entry("an empty owner", "github:/repo#1", "the owner is empty"),
		Entry("an empty repo", "github:octo/#1", "the repo is empty"),
		Entry("an empty host", "github:/octo/repo#1", "must be a host"),
		Entry("C143 a repo of two dots", "github:octo/..#1", `the repo must not be ".."`),
		Entry("C143 an owner of one dot", "github:./repo#1", `the owner must not be "."`),
		Entry("bytes that are not UTF-8", "github:octo/re\xffpo#1", "UTF-8"),
	)

	It("is refused by New under the same rules", func() {
		for _, r := range []workitem.Ref{
			{Provider: "standing", Owner: "o", Repo: "r", Number: 1},
			{Provider: "github", Host: "octo", Owner: "o", Repo: "r", Number: 1},
			{Provider: "github", Owner: "o/x", Repo: "r", Number: 1},
			{Provider: "github", Owner: "o", Repo: "r#2", Number: 1},
			{Provider: "github", Owner: "o", Repo: "..", Number: 1},
			{Provider: "github", Owner: "o", Repo: "r", Number: 0},
			{Provider: "github", Owner: "o", Repo: "r", Number: -1},
			{Provider: "github", Host: "ghe.corp\n", Owner: "o", Repo: "r", Number: 1},
			{Provider: "github\n", Owner: "o", Repo: "r", Number: 1},
		} {
			_, err := workitem.New(r.Provider, r.Host, r.Owner, r.Repo, r.Number)
			Expect(err).To(MatchError(workitem.ErrInvalidRef), "%+v", r)
		}
	})

	It("N10 is refused with a short message, however long it was, and without raw control bytes", func() {
		_, err := workitem.Parse("github:" + strings.Repeat("é", 1<<20) + "\x1b[31m")
		Expect(err).To(HaveOccurred())
		Expect(len(err.Error())).To(BeNumerically("<", 1500))
		_, err = workitem.Parse("\x1b[31mred")
		Expect(err.Error()).NotTo(ContainSubstring("\x1b"))
	})

	It("C004 is equal with and without the default host", func() {
		a, b := ref("github:github.com/o/r#1"), ref("github:o/r#1")
		Expect(a).To(Equal(b))
		Expect(a.String()).To(Equal("github:o/r#1"))
		Expect(a.Slug()).To(Equal(b.Slug()))
		raw := workitem.Ref{Provider: "github", Host: "github.com", Owner: "o", Repo: "r", Number: 1}
		Expect(raw.String()).To(Equal(b.String()))
		Expect(raw.URL()).To(Equal(b.URL()))
		Expect(raw.TmuxName()).To(Equal(b.TmuxName()))
		Expect(raw.ObjectName()).To(Equal(b.ObjectName()))
	})

	DescribeTable("has a page (specification 1.1)",
		func(r workitem.Ref, want string) { Expect(r.URL()).To(Equal(want)) },
		Entry("github.com", workitem.Ref{Provider: "github", Owner: "octo", Repo: "foo.js", Number: 15},
			"https://github.com/octo/foo.js/issues/15"),
		Entry("C005 the port is kept", workitem.Ref{Provider: "github", Host: "ghe.corp:8443", Owner: "o", Repo: "r", Number: 1},
			"https://ghe.corp:8443/o/r/issues/1"),
		Entry("another provider has none", workitem.Ref{Provider: "jira", Owner: "o", Repo: "r", Number: 1}, ""),
		Entry("a blank in the owner", workitem.Ref{Provider: "github", Owner: "o o", Repo: "r", Number: 1}, ""),
		Entry("a newline at the end of the repo", workitem.Ref{Provider: "github", Owner: "o", Repo: "r\n", Number: 1}, ""),
		Entry("a query in the repo", workitem.Ref{Provider: "github", Owner: "o", Repo: "r?x", Number: 1}, ""),
		Entry("C143 two dots", workitem.Ref{Provider: "github", Owner: "o", Repo: "..", Number: 1}, ""),
		Entry("not a host", workitem.Ref{Provider: "github", Host: "evil/x", Owner: "o", Repo: "r", Number: 1}, ""),
	)
})
