package harness

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("R01: a conversation of claude's", func() {
	var projects, path string
	BeforeEach(func() {
		projects = filepath.Join(GinkgoT().TempDir(), "projects")
		path = filepath.Join(projects, "-w-a", conversation+".jsonl")
		Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
		Expect(os.MkdirAll(filepath.Join(projects, "-w-b"), 0o700)).To(Succeed())
	})
	lost := func() bool { return claude{}.Lost(path, conversation) }
	put := func(p string) { Expect(os.WriteFile(p, []byte("{}\n"), 0o600)).To(Succeed()) }

	It("is there where it was, or in any other project", func() {
		put(path)
		Expect(lost()).To(BeFalse())
		Expect(os.Rename(path, filepath.Join(projects, "-w-b", conversation+".jsonl"))).To(Succeed())
		Expect(lost()).To(BeFalse())
	})

	It("is lost when no project has it", func() {
		Expect(lost()).To(BeTrue())
		put(filepath.Join(projects, "-w-b", "other.jsonl"))
		Expect(lost()).To(BeTrue())
	})

	It("is not lost where it cannot be looked for", func() {
		Expect(os.RemoveAll(projects)).To(Succeed())
		Expect(lost()).To(BeFalse(), "its home may not be there just now")
		Expect(claude{}.Lost("", conversation)).To(BeFalse())
		Expect(claude{}.Lost("/x/y/other.jsonl", conversation)).To(BeFalse())
	})
})
