package workitem_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/workitem"
)

// sum is the first n hexadecimal digits of sha256(s).
func sum(n int, s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])[:n]
}

var _ = Describe("the name of a WorkItemSession", func() {
	DescribeTable("is readable, and hashed when something was lost",
		func(in, prefix string, hashed bool) {
			want := prefix
			if hashed {
				want += "-" + sum(10, ref(in).String())
			}
			Expect(ref(in).ObjectName()).To(Equal(want))
			Expect(want).To(MatchRegexp(labelForm.String()))
		},
		Entry("nothing lost", "github:octo/repo#15", "github-octo-repo-15", false),
		Entry("dashes in the repo", "github:octo/foo-bar#1", "github-octo-foo-bar-1", false),
		Entry("dashes at the repo's ends", "github:octo/-r-#1", "github-octo--r--1", false),
		Entry("C006 N20 dashes in the owner", "github:octo-foo/bar#1", "github-octo-foo-bar-1", true),
		Entry("dashes in the provider", "git-hub:octo/bar#1", "git-hub-octo-bar-1", true),
		Entry("a dot", "github:octo/foo.js#15", "github-octo-foo-js-15", true),
		Entry("an underscore", "github:octo/foo_js#15", "github-octo-foo-js-15", true),
		Entry("a capital letter", "github:Octo/Repo#15", "github-octo-repo-15", true),
		Entry("a letter whose lower case is ASCII", "github:\u212aube/repo#15", "github-kube-repo-15", true),
		Entry("a host", "github:ghe.corp:8443/octo/repo#15", "github-ghe-corp-8443-octo-repo-15", true),
		Entry("not ASCII", "github:日本/語#1", "github-1", true),
		Entry("the longest plain number", "github:o/r#999999999", "github-o-r-999999999", false),
		Entry("a number as long as a hash", "github:o/r#1234567890", "github-o-r-1234567890", true),
		Entry("63 characters", "github:o/"+strings.Repeat("r", 52)+"#1", "github-o-"+strings.Repeat("r", 52)+"-1", false),
		Entry("64 characters", "github:o/"+strings.Repeat("r", 53)+"#1", "github-o-"+strings.Repeat("r", 41)+"-1", true),
		Entry("cut at a dash", "github:o/"+strings.Repeat("r", 40)+"-"+strings.Repeat("s", 40)+"#1",
			"github-o-"+strings.Repeat("r", 40)+"-1", true),
	)

	It("N10 keeps the number of the longest ref", func() {
		name := ref("github:" + strings.Repeat("A", 1000) + "/" + strings.Repeat("b", 1000) + "#9223372036854775807").ObjectName()
		Expect(name).To(MatchRegexp(`^github-a+-9223372036854775807-[0-9a-f]{10}$`))
		Expect(name).To(HaveLen(63))
	})

	It("N20 no ref can be made to look like another's hashed name", func() {
		for _, in := range []string{
			"github:octo-foo/bar#1", "github:octo/foo.js#15", "github:Octo/repo#1", "github:o/r#1234567890",
			"github:" + strings.Repeat("x", 70) + "/y#3",
		} {
			victim := ref(in)
			name := victim.ObjectName()
			for _, forged := range forgeries(name) {
				if forged != victim {
					Expect(forged.ObjectName()).NotTo(Equal(name), "%s poses as %s", forged, victim)
				}
			}
		}
	})

	It("N20 a hash of decimal digits alone is not a number", func() {
		// The one form in which a name without a hash could end like one with a hash.
		found := 0
		for n := int64(1); found < 3; n++ {
			victim := ref(fmt.Sprintf("github:Octo/repo#%d", n))
			name := victim.ObjectName()
			last := name[strings.LastIndex(name, "-")+1:]
			number, err := strconv.ParseInt(last, 10, 64)
			if err != nil || number == 0 {
				continue
			}
			found++
			forged, err := workitem.New("github", "", "octo", fmt.Sprintf("repo-%d", n), number)
			Expect(err).NotTo(HaveOccurred())
			Expect(forged.Slug()).To(HaveSuffix("-" + strings.TrimLeft(last, "0")))
			Expect(forged.ObjectName()).NotTo(Equal(name))
		}
	})

	It("C006 differs for every one of the refs that one slug can stand for", func() {
		names := map[string]workitem.Ref{}
		count := 0
		parts := []string{"a", "b", "a-b", "b-a", "-", "a-", "-a", "a.b", "a_b", "A", "1", "a-1", "1-1", "é"}
		for _, provider := range []string{"a", "a-b", "a-", "github"} {
			for _, host := range []string{"", "a.b", "a:1", "a.b:1"} {
				for _, owner := range parts {
					for _, repo := range parts {
						for _, number := range []int64{1, 11, 1234567890} {
							r, err := workitem.New(provider, host, owner, repo, number)
							Expect(err).NotTo(HaveOccurred())
							name := r.ObjectName()
							if twin, taken := names[name]; taken || !labelForm.MatchString(name) {
								Fail(fmt.Sprintf("%s: %q, taken by %s", r, name, twin))
							}
							names[name] = r
							count++
						}
					}
				}
			}
		}
		Expect(names).To(HaveLen(count))
	})
})

// forgeries are the valid refs whose parts, joined by dashes, spell this name.
func forgeries(name string) []workitem.Ref {
	var out []workitem.Ref
	words := strings.Split(name, "-")
	for i := 1; i < len(words); i++ {
		for j := i + 1; j < len(words); j++ {
			for k := j + 1; k < len(words); k++ {
				number, err := strconv.ParseInt(strings.Join(words[k:], ""), 10, 64)
				if err != nil {
					number = 1
				}
				r, err := workitem.New(strings.Join(words[:i], "-"), "", strings.Join(words[i:j], "-"), strings.Join(words[j:k], "-"), number)
				if err == nil {
					out = append(out, r)
				}
			}
		}
	}
	whole, err := workitem.New("github", "", "x", name, 1)
	Expect(err).NotTo(HaveOccurred())
	return append(out, whole)
}

var _ = Describe("the name of a pull request's WorkItemSession", func() {
	item, pr := workitem.Ref{Provider: "github", Owner: "octo", Repo: "repo", Number: 15},
		workitem.Ref{Provider: "github", Owner: "octo", Repo: "repo", Number: 16}

	It("is readable and a label", func() {
		Expect(workitem.PullRequestObjectName(item, pr)).To(MatchRegexp(`^github-octo-repo-15-pr16-[0-9a-f]{12}$`))
		long := ref("github:" + strings.Repeat("A", 300) + "/b#9223372036854775807")
		name := workitem.PullRequestObjectName(long, long)
		Expect(name).To(MatchRegexp(labelForm.String()))
		Expect(name).To(HaveLen(63))
	})

	It("differs by parent, by pull request, by their order, and from every ref's own name", func() {
		other := ref("github:octo/other#16")
		names := map[string]bool{}
		for _, n := range []string{
			workitem.PullRequestObjectName(item, pr), workitem.PullRequestObjectName(pr, item),
			workitem.PullRequestObjectName(item, other), workitem.PullRequestObjectName(other, pr),
			workitem.PullRequestObjectName(item, item), item.ObjectName(), pr.ObjectName(), other.ObjectName(),
		} {
			Expect(names).NotTo(HaveKey(n))
			names[n] = true
		}
		name := workitem.PullRequestObjectName(item, pr)
		for _, forged := range forgeries(name) {
			Expect(forged.ObjectName()).NotTo(Equal(name))
		}
	})
})

var _ = Describe("the name of a SessionMessage", func() {
	It("is the same for the same event and session, and for nothing else", func() {
		name := workitem.MessageName("supervisor", "delivery-1", "uid-1")
		Expect(name).To(MatchRegexp(`^supervisor-[0-9a-f]{16}$`))
		Expect(workitem.MessageName("supervisor", "delivery-1", "uid-1")).To(Equal(name))
		Expect(workitem.MessageName("supervisor", "delivery-2", "uid-1")).NotTo(Equal(name))
		Expect(workitem.MessageName("supervisor", "delivery-1", "uid-2")).NotTo(Equal(name))
	})

	It("takes the two inputs with their lengths", func() {
		for _, pair := range [][2][2]string{
			{{"ab", "c"}, {"a", "bc"}}, {{"", "ab"}, {"ab", ""}}, {{"a1:b", "c"}, {"a", "1:bc"}}, {{"a", "b"}, {"b", "a"}},
			{{"x\x00", "y"}, {"x", "\x00y"}},
		} {
			Expect(workitem.MessageName("s", pair[0][0], pair[0][1])).
				NotTo(Equal(workitem.MessageName("s", pair[1][0], pair[1][1])), "%q", pair)
		}
	})

	DescribeTable("is a label whatever the session's name",
		func(session, prefix string) {
			name := workitem.MessageName(session, "k", "u")
			Expect(name).To(MatchRegexp(labelForm.String()))
			Expect(name).To(HavePrefix(prefix + "-"))
			Expect(name).To(HaveLen(len(prefix) + 17))
		},
		Entry("a dash at the end", "a-", "a"),
		Entry("63 characters", strings.Repeat("a", 63), strings.Repeat("a", 46)),
		Entry("cut at a dash", strings.Repeat("a", 45)+"--b", strings.Repeat("a", 45)),
		Entry("nothing", "", "x"),
		Entry("nothing that fits", "é", "x"),
		Entry("capitals and dots", "A.b", "a-b"),
	)
})
