package delivery_test

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/delivery"
)

var _ = Describe("Attempt", func() {
	var path string
	BeforeEach(func() { path = filepath.Join(GinkgoT().TempDir(), "delivery.json") })
	first := delivery.Attempt{Message: "message-1", Launch: "launch-1", Time: noon}

	It("is read as it was written, and the newest replaces the one before", func() {
		Expect(first.Save(path)).To(Succeed())
		Expect(delivery.LoadAttempt(path)).To(Equal(first))
		second := delivery.Attempt{Message: "message-2", Launch: "launch-1", Time: noon.Add(1), Untaken: true}
		Expect(second.Save(path)).To(Succeed())
		Expect(delivery.LoadAttempt(path)).To(Equal(second), "to the nanosecond: evidence is compared with it")
	})

	It("is none where none was made", func() {
		Expect(delivery.LoadAttempt(path)).To(BeZero())
	})

	It("is nobody else's to read, and leaves nothing beside it", func() {
		Expect(first.Save(path)).To(Succeed())
		info, err := os.Stat(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))
		files, err := os.ReadDir(filepath.Dir(path))
		Expect(err).NotTo(HaveOccurred())
		Expect(files).To(HaveLen(1))
	})

	It("T35: a torn write is replaced, and the attempt before it stays", func() {
		Expect(first.Save(path)).To(Succeed())
		Expect(os.WriteFile(path+".tmp", []byte(`{"message":"mess`), 0o600)).To(Succeed())
		Expect(delivery.LoadAttempt(path)).To(Equal(first))
		Expect(first.Save(path)).To(Succeed())
		Expect(delivery.LoadAttempt(path)).To(Equal(first))
	})

	It("T35: one that cannot be read is not taken for none, and one that cannot be written is told", func() {
		Expect(os.WriteFile(path, []byte("{"), 0o600)).To(Succeed())
		_, err := delivery.LoadAttempt(path)
		Expect(err).To(MatchError(ContainSubstring("nothing is typed")))
		Expect(first.Save(filepath.Join(path, "not", "there"))).To(MatchError(ContainSubstring("nothing is typed")))
	})
})
