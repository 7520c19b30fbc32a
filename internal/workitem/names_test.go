package workitem_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/workitem"
)

var _ = Describe("the names of a work item", func() {
	DescribeTable("are derived (specification 1.2)",
		func(in, slug, tmux string) {
			Expect(ref(in).Slug()).To(Equal(slug))
			Expect(ref(in).TmuxName()).To(Equal(tmux))
		},
		Entry("plain", "github:octo/repo#15", "github-octo-repo-15", "loop-github-octo-repo-15"),
		Entry("C001 N04 a dot", "github:octo/foo.js#15", "github-octo-foo.js-15", "loop-github-octo-foo_js-15"),
		Entry("its alias", "github:octo/foo_js#15", "github-octo-foo_js-15", "loop-github-octo-foo_js-15"),
		Entry("a host", "github:ghe.corp.example/octo/repo#15",
			"github-ghe.corp.example-octo-repo-15", "loop-github-ghe_corp_example-octo-repo-15"),
		Entry("C005 N04 a host with a port", "github:ghe.corp.example:8443/octo/repo#15",
			"github-ghe.corp.example-8443-octo-repo-15", "loop-github-ghe_corp_example-8443-octo-repo-15"),
		Entry("C006 twins, the one", "github:octo/foo-bar#1", "github-octo-foo-bar-1", "loop-github-octo-foo-bar-1"),
		Entry("C006 twins, the other", "github:octo-foo/bar#1", "github-octo-foo-bar-1", "loop-github-octo-foo-bar-1"),
		Entry("a run of other characters is one dash", "github:oc  to/é!ü#1", "github-oc-to---1", "loop-github-oc-to---1"),
		Entry("N09 nothing but ASCII", "github:日本/語#1", "github-----1", "loop-github-----1"),
	)

	DescribeTable("C006 C007 N05 N20 twins are set apart by a hash, in every combination",
		func(a, b string) {
			x, y := ref(a), ref(b)
			Expect(x.TmuxName()).To(Equal(y.TmuxName()), "not twins")
			names := []string{x.TmuxName(), x.DisambiguatedTmuxName(), y.DisambiguatedTmuxName()}
			for i := range names {
				Expect(names[i]).To(MatchRegexp(tmuxForm.String()))
				for j := range i {
					Expect(names[i]).NotTo(Equal(names[j]))
				}
			}
			Expect(x.ObjectName()).NotTo(Equal(y.ObjectName()))
		},
		Entry("dash at a border", "github:octo/foo-bar#1", "github:octo-foo/bar#1"),
		Entry("dot and underscore", "github:octo/foo.js#1", "github:octo/foo_js#1"),
		Entry("host and owner", "github:a.b/c/d#1", "github:a.b-c/d#1"),
		Entry("number and repo", "github:o/r-1#1", "github:o-r/1#1"),
		Entry("provider and owner", "a-b:c/d#1", "a:b-c/d#1"),
		Entry("characters that vanish", "github:o/é#1", "github:o/ü#1"),
	)

	It("C006 the suffix is 6 hex of sha256 of the ref", func() {
		r := ref("github:octo-foo/bar#1")
		sum := sha256.Sum256([]byte("github:octo-foo/bar#1"))
		Expect(r.DisambiguatedTmuxName()).To(Equal("loop-github-octo-foo-bar-1-" + hex.EncodeToString(sum[:])[:6]))
	})

	It("C006 a disambiguated name is no other work item's name, also when its digits are decimal", func() {
		seen := false
		for n := range 2000 {
			r := ref(fmt.Sprintf("github:octo/repo#%d", n+1))
			sum := sha256.Sum256([]byte(r.String()))
			seen = seen || !strings.ContainsAny(hex.EncodeToString(sum[:])[:6], "abcdef")
			name := r.DisambiguatedTmuxName()
			last := name[strings.LastIndex(name, "-")+1:]
			Expect(last).To(HaveLen(6))
			Expect(last).To(MatchRegexp("[a-f]"))
			Expect(hex.EncodeToString(sum[:])).To(ContainSubstring(last))
		}
		Expect(seen).To(BeTrue(), "no ref met the case")
	})

	It("N10 are bounded, still readable, and still told apart", func() {
		long := strings.Repeat("x", 300)
		a, b := ref("github:"+long+"/a.b#12345"), ref("github:"+long+"/a_b#12345")
		for _, r := range []workitem.Ref{a, b} {
			Expect(r.Slug()).To(MatchRegexp(`^github-x+-[0-9a-f]{10}-12345$`))
			Expect(r.Slug()).To(HaveLen(188))
			Expect(r.TmuxName()).To(MatchRegexp(tmuxForm.String()))
			Expect(r.DisambiguatedTmuxName()).To(MatchRegexp(tmuxForm.String()))
			Expect(r.DisambiguatedTmuxName()).To(HaveLen(200))
		}
		Expect(a.Slug()).NotTo(Equal(b.Slug()))
		Expect(a.TmuxName()).NotTo(Equal(b.TmuxName()))
	})

	It("C002 a recorded target is normalised, once and for all", func() {
		t := workitem.NormalizeTarget("loop-github-octo-foo.js-15")
		Expect(t).To(Equal("loop-github-octo-foo_js-15"))
		Expect(t).To(Equal(ref("github:octo/foo.js#15").TmuxName()))
		Expect(workitem.NormalizeTarget(t)).To(Equal(t))
		Expect(workitem.NormalizeTarget("loop-a:b.c")).To(Equal("loop-a_b_c"))
		Expect(workitem.NormalizeTarget("")).To(BeEmpty())
	})

	DescribeTable("guard every signal (specification 1.2)",
		func(t string, ours bool) { Expect(workitem.OursTarget(t)).To(Equal(ours)) },
		Entry("a work item's", "loop-github-octo-repo-15", true),
		Entry("a standing session's", "loop-standing-supervisor", true),
		Entry("a dot", "loop-github-octo-foo.js-15", false),
		Entry("a colon", "loop-a:0", false),
		Entry("the prefix alone", "loop-", false),
		Entry("the anchor", anchor, false),
		Entry("C094: another program's", "mysession", false),
		Entry("nothing", "", false),
		Entry("a newline at the end", "loop-a\n", false),
		Entry("a pane id", "%1", false),
		Entry("the exact sign", "=loop-a", false),
		Entry("a pattern", "loop-*", false),
	)

	It("are never a standing session's nor the anchor's, for providers made to look like it", func() {
		for _, provider := range []string{"standing", "standing-x", "standing--", "standing-supervisor"} {
			_, err := workitem.New(provider, "", "o", "r", 1)
			Expect(err).To(MatchError(workitem.ErrInvalidRef))
		}
		for _, in := range []string{
			"standin:g/x#1", "stand:ing-x/y#1", "standings:o/r#1", "s:tanding/x#1", "loop:standing/x#1",
			"l:oop/anchor#1", "github:standing/supervisor#1",
		} {
			for _, name := range []string{ref(in).TmuxName(), ref(in).DisambiguatedTmuxName()} {
				Expect(name).NotTo(HavePrefix(workitem.StandingTmuxName("")))
				Expect(name).NotTo(Equal(anchor))
				Expect(workitem.OursTarget(name)).To(BeTrue())
			}
		}
	})
})

var _ = Describe("the name of a standing session", func() {
	DescribeTable("is accepted (specification 1.4)",
		func(name string) {
			Expect(workitem.StandingName(name)).To(Succeed())
			target := workitem.StandingTmuxName(name)
			Expect(target).To(Equal("loop-standing-" + name))
			Expect(target).To(MatchRegexp(tmuxForm.String()))
			Expect(workitem.OursTarget(target)).To(BeTrue())
			Expect(workitem.NormalizeTarget(target)).To(Equal(target))
		},
		Entry("one letter", "a"),
		Entry("a digit first", "7-of-9"),
		Entry("forty characters", strings.Repeat("a", 40)),
		Entry("a word", "supervisor"),
	)

	DescribeTable("is refused, naming the allowed form (C009, N07, N09, N10)",
		func(name string) {
			Expect(workitem.StandingName(name)).To(MatchError(ContainSubstring(workitem.StandingNamePattern)))
		},
		Entry("C009 a newline at the end", "supervisor\n"),
		Entry("a newline at the start", "\nsupervisor"),
		Entry("two lines", "super\nvisor"),
		Entry("nothing", ""),
		Entry("N07 a dash first", "-a"),
		Entry("N07 a dollar", "$1"),
		Entry("N07 an at", "@1"),
		Entry("N07 a percent", "%1"),
		Entry("N07 the exact sign", "=a"),
		Entry("N07 a plus", "+a"),
		Entry("N07 a bang", "!a"),
		Entry("N07 a brace", "{last}"),
		Entry("N07 a blank", " a"),
		Entry("an upper-case letter", "Supervisor"),
		Entry("a dot", "a.b"),
		Entry("an underscore", "a_b"),
		Entry("N09 not ASCII", "é"),
		Entry("N10 forty-one characters", strings.Repeat("a", 41)),
		Entry("N10 three hundred characters", strings.Repeat("a", 300)),
	)
})
