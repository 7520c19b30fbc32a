package harness

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("the newest lines of a file", func() {
	lines := func(text string, limit int64) (out []string) {
		GinkgoHelper()
		path := filepath.Join(GinkgoT().TempDir(), "f")
		Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
		for _, l := range newestLines(path, limit) {
			out = append(out, string(l))
		}
		return out
	}

	It("are whole, and come first", func() {
		Expect(lines("a\nb\nc\nhalf", 100)).To(Equal([]string{"c", "b", "a"}))
		Expect(lines("aaaa\nb\nc\n", 6)).To(Equal([]string{"c", "b"}))
		Expect(lines("aaaa", 2)).To(BeEmpty())
		Expect(lines("", 2)).To(BeEmpty())
	})

	It("are none of what is no file", func() {
		Expect(newestLines("", 10)).To(BeEmpty())
		Expect(newestLines("relative", 10)).To(BeEmpty())
		Expect(newestLines(GinkgoT().TempDir(), 10)).To(BeEmpty())
	})
})

var _ = Describe("the registry", func() {
	It("C011: refuses cursor with a sentence", func() {
		a, err := Get("cursor")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Traits().Refusal).To(ContainSubstring("cannot be hosted"))
		_, err = a.Command(launchOf(nil))
		Expect(err).To(MatchError(a.Traits().Refusal))
	})
})

var _ = Describe("the gap before the carriage return", func() {
	It("grows with the text where the harness needs that", func() {
		Expect(claude{}.Traits().Gap(1 << 20)).To(Equal(claude{}.Traits().SubmitGap))
		Expect(gemini{}.Traits().Gap(100 << 10)).To(Equal(gemini{}.Traits().SubmitGap + 100*gemini{}.Traits().SubmitGapPerKiB))
	})
})

// variables is an environment of key and value in turn.
func variables(kv ...string) func(string) string {
	return func(key string) string {
		for i := 0; i < len(kv); i += 2 {
			if kv[i] == key {
				return kv[i+1]
			}
		}
		return ""
	}
}
