package seal_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/harness/seal"
)

func TestSeal(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "seal")
}

const much = 1 << 20

var now = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

var _ = Describe("R14: a seal", func() {
	var path, record string
	BeforeEach(func() {
		dir := GinkgoT().TempDir()
		path, record = filepath.Join(dir, "c.jsonl"), filepath.Join(dir, "state", "seal.json")
	})
	put := func(text string) {
		GinkgoHelper()
		Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
	}
	// sealed is the seal of a file with this text, kept and read again.
	sealed := func(text string, closed bool) seal.Seal {
		GinkgoHelper()
		put(text)
		s := &seal.Seal{Path: path}
		Expect(s.Extend(much, now)).To(BeFalse())
		s.Closed = closed
		Expect(s.Save(record)).To(Succeed())
		s, err := seal.Load(record)
		Expect(err).NotTo(HaveOccurred())
		return *s
	}
	compare := func(s seal.Seal, at string) *seal.Check {
		c := seal.Compare(s, at)
		for !c.Done {
			c.Step(7)
		}
		return c
	}

	DescribeTable("tells what was done to a file", func(closed bool, becomes, says string) {
		s := sealed("one line\nanother line\n", closed)
		put(becomes)
		if says == "" {
			Expect(compare(s, path).Altered).To(BeEmpty())
			return
		}
		Expect(compare(s, path).Altered).To(ContainSubstring(says))
	},
		Entry("nothing", false, "one line\nanother line\n", ""),
		Entry("nothing, and it is to stay so", true, "one line\nanother line\n", ""),
		Entry("its own harness added to it", false, "one line\nanother line\nmore\n", ""),
		Entry("somebody added to it after the end", true, "one line\nanother line\nmore\n", "5 bytes were added after the harness had ended"),
		Entry("a line is another, of the same length", false, "one LINE\nanother line\n", "its first 22 bytes are others"),
		Entry("a line is another, and more follow", false, "one LINE\nanother line\nmore and more\n", "its first 22 bytes are others"),
		Entry("the last byte is another", false, "one line\nanother lin3\n", "are others"),
		Entry("its end was cut off", false, "one line\n", "it has 9 bytes and had 22"),
		Entry("all of it was", false, "", "it has 0 bytes and had 22"),
	)

	It("reads what was added once, in steps, to the digest of the whole", func() {
		text := strings.Repeat("a line\n", 100)
		put(text)
		s := &seal.Seal{Path: path}
		for more := true; more; {
			var err error
			more, err = s.Extend(64, now)
			Expect(err).NotTo(HaveOccurred())
			Expect(s.Save(record)).To(Succeed())
			s, err = seal.Load(record)
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(*s).To(Equal(sealed(text, false)))
		Expect(s.Size).To(BeEquivalentTo(700))
		Expect(s.At).To(Equal(now))

		By("reading nothing again")
		put(strings.Repeat("X", 700) + "more")
		Expect(s.Extend(much, now)).To(BeFalse())
		Expect(s.Size).To(BeEquivalentTo(704))
		Expect(compare(*s, path).Altered).To(ContainSubstring("are others"))
	})

	It("is none where there is none, and an error where it cannot be read", func() {
		Expect(seal.Load(record)).To(BeNil())
		put("no JSON")
		_, err := seal.Load(path)
		Expect(err).To(MatchError(ContainSubstring(path)))
	})

	It("finds a file that was moved, and says nothing of one that is gone", func() {
		s := sealed("one line\n", true)
		Expect(os.Rename(path, path+".moved")).To(Succeed())
		Expect(compare(s, path).Altered).To(BeEmpty())
		Expect(compare(s, path+".moved").Altered).To(BeEmpty())
		Expect(os.WriteFile(path+".moved", []byte("another\n"), 0o600)).To(Succeed())
		Expect(compare(s, path+".moved").Altered).NotTo(BeEmpty())
	})

	It("waits for nobody where a pipe stands in the place of the file", func() {
		s := sealed("one line\n", false)
		Expect(os.Remove(path)).To(Succeed())
		Expect(syscall.Mkfifo(path, 0o600)).To(Succeed())
		c := compare(s, path)
		Expect(c.Altered).To(ContainSubstring("no regular file"))
		Expect(c.Whole).To(BeEmpty(), "there is nothing to accept")
		Expect(c.Unread).To(BeTrue())
		Expect(c.Stands()).To(BeFalse(), "it is looked at again")
	})

	It("is made anew of what a person accepts, and of nothing that came later", func() {
		s := sealed("one line\n", true)
		put("one LINE\nmore\n")
		c := compare(s, path)
		Expect(c.Altered).NotTo(BeEmpty())
		Expect(c.Stands()).To(BeTrue())
		accepted, err := c.Accept(now)
		Expect(err).NotTo(HaveOccurred())
		Expect(accepted.Digest).To(Equal(c.Whole))
		Expect(compare(*accepted, path).Altered).To(BeEmpty())
		put("one LINE\nmore\nand more\n")
		Expect(c.Stands()).To(BeFalse())
		Expect(compare(*accepted, path).Altered).To(ContainSubstring("9 bytes were added"))
	})
})
