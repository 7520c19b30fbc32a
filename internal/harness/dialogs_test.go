package harness_test

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/harness"
)

var _ = Describe("H19: a dialog that only the screen shows", func() {
	get := func(name string) harness.Adapter {
		GinkgoHelper()
		a, err := harness.Get(name)
		Expect(err).NotTo(HaveOccurred())
		return a
	}
	// found is the name of the dialog on a screen, "none" without one.
	found := func(a harness.Adapter, extra string, s harness.Screen) string {
		GinkgoHelper()
		d, open, err := harness.DialogOn(a, extra, s)
		Expect(err).NotTo(HaveOccurred())
		if !open {
			return "none"
		}
		Expect(d.Leave).NotTo(BeEmpty())
		return d.Name
	}

	// In these recordings the expectation is "DRAFT, DIALOG".
	for _, r := range recordings("claude-2.1.332-dialogs") {
		draft, dialog, _ := strings.Cut(string(r.draft), ", ")
		It("claude-2.1.332 "+r.name, func() {
			Expect(found(get("claude"), "", r.Screen)).To(Equal(dialog))
			Expect(drafter("claude").Draft(r.Screen)).To(Equal(harness.Draft(draft)))
		})
	}

	for _, version := range []string{"claude-2.1.332", "codex-0.171.0", "gemini-0.61.0"} {
		It("is never seen where there is an input box: "+version, func() {
			name, _, _ := strings.Cut(version, "-")
			for _, r := range recordings(version) {
				if r.draft != harness.DraftUnknown {
					Expect(found(get(name), "", r.Screen)).To(Equal("none"), r.name)
				}
			}
		})
	}

	DescribeTable("is known among the other recordings", func(version, screen, want string) {
		name, _, _ := strings.Cut(version, "-")
		seen := 0
		for _, r := range recordings(version) {
			if strings.HasSuffix(r.name, " "+screen) {
				seen++
				Expect(found(get(name), "", r.Screen)).To(Equal(want), r.name)
			}
		}
		Expect(seen).To(BeNumerically(">", 0))
	},
		Entry(nil, "claude-2.1.332", "dialog", "a permission dialog"),
		Entry(nil, "claude-2.1.332", "history-search", "the search in its history"),
		Entry(nil, "claude-2.1.332", "menu-model", "a question"),
		Entry(nil, "claude-2.1.332", "transcript-view", "the transcript"),
		Entry(nil, "codex-0.171.0", "dialog", "a question"),
		Entry(nil, "gemini-0.61.0", "history-search", "the search in its history"),
	)

	It("is not seen in what the model says about one", func() {
		for _, text := range []string{
			"● Then press Enter to confirm · Esc to cancel\n\n───\n❯ \n───\n  auto mode on",
			"● Showing detailed transcript\n  -- VISUAL --\n\n───\n❯ \n───\n  auto mode on",
			"  Enter to confirm · Esc to cancel\n$ ",
		} {
			y := strings.Count(text[:strings.LastIndexAny(text, "❯$")], "\n")
			Expect(found(get("claude"), "", harness.Screen{Text: text, CursorX: 2, CursorY: y})).To(Equal("none"), text)
		}
	})

	It("is of no harness without a list, and of no empty screen", func() {
		s := harness.Screen{Text: "Enter to confirm · Esc to cancel"}
		Expect(found(get("custom"), "", s)).To(Equal("none"))
		Expect(found(get("claude"), "", s)).To(Equal("a question"))
		Expect(found(get("claude"), "", harness.Screen{})).To(Equal("none"))
	})

	Describe("in an operator's own list", func() {
		var path string
		news := harness.Screen{Text: "What is new?\n  Press any key to go on"}
		BeforeEach(func() { path = filepath.Join(GinkgoT().TempDir(), "claude.json") })
		write := func(text string) {
			GinkgoHelper()
			Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
		}

		It("is known from the next look on, without another program", func() {
			Expect(found(get("claude"), path, news)).To(Equal("none"), "there is no list yet")
			write(`{"measured":"9.9","dialogs":[{"name":"the news","leave":"press a key","row":"Press any key"}]}`)
			Expect(found(get("claude"), path, news)).To(Equal("the news"))
			Expect(found(get("custom"), path, news)).To(Equal("the news"))
			write(`{"dialogs":[{"name":"higher up","leave":"read it","row":"^What is new","within":2}]}`)
			Expect(found(get("claude"), path, news)).To(Equal("higher up"))
			write(`{"dialogs":[{"name":"higher up","leave":"read it","row":"^What is new\\?$"}]}`)
			Expect(found(get("claude"), path, news)).To(Equal("none"), "it looks at the lowest row only")
			Expect(os.Remove(path)).To(Succeed())
			Expect(found(get("claude"), path, news)).To(Equal("none"))
		})

		DescribeTable("that is wrong is told, and costs nothing of what is known", func(text, says string) {
			write(text)
			d, open, err := harness.DialogOn(get("claude"), path, harness.Screen{Text: "  Esc to close"})
			Expect(err).To(MatchError(And(ContainSubstring(path), ContainSubstring(says))))
			Expect(open).To(BeTrue())
			Expect(d.Name).To(Equal("a menu"))
		},
			Entry("no JSON", "dialogs:", "reading the dialogs"),
			Entry("an unknown field", `{"dialogs":[{"name":"a","row":"b","colour":"red"}]}`, "colour"),
			Entry("no name", `{"dialogs":[{"row":"b"}]}`, "dialog 1 has no name or no row"),
			Entry("no regular expression", `{"dialogs":[{"name":"a","row":"("}]}`, `the row of dialog "a"`),
			Entry("too much", strings.Repeat(" ", 2<<20), "at most 1 MiB"),
		)

		It("that is a directory is told", func() {
			Expect(os.Mkdir(path, 0o700)).To(Succeed())
			_, _, err := harness.DialogOn(get("claude"), path, news)
			Expect(err).To(MatchError(ContainSubstring("no regular file")))
		})
	})
})
