package durable_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/durable"
)

func TestDurable(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "durable")
}

var _ = Describe("a durable file", func() {
	It("is replaced whole, is nobody else's to read, and leaves nothing beside it, also of a write that was cut off", func() {
		dir := GinkgoT().TempDir()
		path := filepath.Join(dir, "f.json")
		Expect(durable.Write(path, []byte("a longer one"))).To(Succeed())
		Expect(os.WriteFile(path+".tmp", []byte("cut off, and longer than what follows"), 0o600)).To(Succeed())
		Expect(durable.Write(path, []byte("short"))).To(Succeed())
		Expect(os.ReadFile(path)).To(BeEquivalentTo("short"))
		info, err := os.Stat(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))
		Expect(os.ReadDir(dir)).To(HaveLen(1))
	})

	It("stays as it was when it cannot be replaced, and a link is not followed", func() {
		dir := GinkgoT().TempDir()
		path, other := filepath.Join(dir, "f.json"), filepath.Join(dir, "other")
		Expect(durable.Write(path, []byte("old"))).To(Succeed())
		Expect(os.WriteFile(other, []byte("other"), 0o600)).To(Succeed())
		Expect(os.Symlink(other, path+".tmp")).To(Succeed())
		Expect(durable.Write(path, []byte("new"))).NotTo(Succeed())
		Expect(os.ReadFile(path)).To(BeEquivalentTo("old"))
		Expect(os.ReadFile(other)).To(BeEquivalentTo("other"))
	})
})
