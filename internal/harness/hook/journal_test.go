package hook_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/harness/hook"
)

var _ = Describe("the journal", func() {
	var path string
	note := func(event string) hook.Note { return hook.Note{Time: noon, Event: event} }
	add := func(text string) {
		GinkgoHelper()
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		Expect(err).NotTo(HaveOccurred())
		_, err = f.WriteString(text)
		Expect(err).NotTo(HaveOccurred())
		Expect(f.Close()).To(Succeed())
	}
	BeforeEach(func() { path = filepath.Join(GinkgoT().TempDir(), "journal") })

	It("gives notes back in order, each once", func() {
		Expect(hook.Append(path, note("a"))).To(Succeed())
		Expect(hook.Append(path, note("b"))).To(Succeed())
		notes, next, err := hook.Read(path, 0)
		Expect(err).NotTo(HaveOccurred())
		Expect(notes).To(Equal([]hook.Note{note("a"), note("b")}))

		notes, again, err := hook.Read(path, next)
		Expect(err).NotTo(HaveOccurred())
		Expect(notes).To(BeEmpty())
		Expect(again).To(Equal(next))

		Expect(hook.Append(path, note("c"))).To(Succeed())
		notes, _, err = hook.Read(path, next)
		Expect(err).NotTo(HaveOccurred())
		Expect(notes).To(Equal([]hook.Note{note("c")}))
	})

	It("is private", func() {
		Expect(hook.Append(path, note("a"))).To(Succeed())
		st, err := os.Stat(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(st.Mode().Perm()).To(Equal(os.FileMode(0o600)))
	})

	It("has no notes when there is no file", func() {
		notes, next, err := hook.Read(path, 17)
		Expect(err).NotTo(HaveOccurred())
		Expect(notes).To(BeEmpty())
		Expect(next).To(BeZero())
	})

	It("says when it cannot be read or written", func() {
		_, _, err := hook.Read(GinkgoT().TempDir(), 0)
		Expect(err).To(MatchError(ContainSubstring("reading the hook journal")))
		Expect(hook.Append(filepath.Join(path, "x"), note("a"))).To(MatchError(ContainSubstring("opening the hook journal")))
	})

	It("leaves a torn last line for the next read", func() {
		Expect(hook.Append(path, note("a"))).To(Succeed())
		add(`{"time":"2026-01-02T12:00:00Z","event":"b"`)
		notes, next, err := hook.Read(path, 0)
		Expect(err).NotTo(HaveOccurred())
		Expect(notes).To(HaveLen(1))
		add("}\n")
		notes, _, err = hook.Read(path, next)
		Expect(err).NotTo(HaveOccurred())
		Expect(notes).To(HaveLen(1))
		Expect(notes[0].Event).To(Equal("b"))
	})

	It("T38: closes the line of a writer that was cut off, so that only that one is lost", func() {
		add(`{"time":"2026-01-02T12:00:00Z","ev`)
		Expect(hook.Append(path, note("b"))).To(Succeed())
		page, err := hook.ReadPage(path, 0)
		Expect(err).NotTo(HaveOccurred())
		Expect(page.Notes).To(Equal([]hook.Note{note("b")}))
		Expect(page.Corrupt).To(Equal(1))
	})

	It("passes over corrupt lines and counts them", func() {
		Expect(hook.Append(path, note("a"))).To(Succeed())
		add("garbage\n\n\x00\xff\n{}\n[]\n")
		Expect(hook.Append(path, note("b"))).To(Succeed())
		page, err := hook.ReadPage(path, 0)
		Expect(err).NotTo(HaveOccurred())
		Expect(page.Notes).To(Equal([]hook.Note{note("a"), note("b")}))
		Expect(page.Corrupt).To(Equal(4))
		Expect(page.More).To(BeFalse())
	})

	It("begins anew when the journal was replaced by a shorter one", func() {
		Expect(hook.Append(path, note("a"))).To(Succeed())
		notes, next, err := hook.Read(path, 4096)
		Expect(err).NotTo(HaveOccurred())
		Expect(notes).To(HaveLen(1))
		Expect(next).To(BeNumerically("<", 4096))
	})

	It("is read in pages, whatever stands in it", func() {
		Expect(hook.Append(path, note("a"))).To(Succeed())
		add(strings.Repeat("x", 33<<20) + "\n")
		Expect(hook.Append(path, note("b"))).To(Succeed())
		notes, next, err := hook.Read(path, 0)
		Expect(err).NotTo(HaveOccurred())
		Expect(notes).To(Equal([]hook.Note{note("a"), note("b")}))
		st, err := os.Stat(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(next).To(Equal(st.Size()))
	})

	It("never mixes the lines of 64 processes", func() {
		const processes = 64
		self, err := os.Executable()
		Expect(err).NotTo(HaveOccurred())
		var wg sync.WaitGroup
		for range processes {
			wg.Go(func() {
				defer GinkgoRecover()
				cmd := exec.Command(self)
				cmd.Env = append(os.Environ(), appendTo+"="+path)
				out, err := cmd.CombinedOutput()
				Expect(err).NotTo(HaveOccurred(), string(out))
			})
		}
		wg.Wait()
		page, err := hook.ReadPage(path, 0)
		Expect(err).NotTo(HaveOccurred())
		Expect(page.Corrupt).To(BeZero())
		Expect(page.Notes).To(HaveLen(processes * notesEach))
		by := map[string][]string{}
		for _, n := range page.Notes {
			by[n.ConversationID] = append(by[n.ConversationID], n.Source)
		}
		Expect(by).To(HaveLen(processes))
		for _, order := range by {
			Expect(strings.Join(order, " ")).To(Equal("0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19"))
		}
	})
})
