package event_test

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/event"
)

var _ = Describe("the catalogue", func() {
	all := event.All()

	It("is sorted, and has each name and each reason once", func() {
		var names, reasons []string
		for _, e := range all {
			names, reasons = append(names, e.Name), append(reasons, e.Reason())
		}
		Expect(names).NotTo(BeEmpty())
		Expect(slices.IsSorted(names)).To(BeTrue())
		Expect(slices.Compact(slices.Clone(names))).To(Equal(names))
		slices.Sort(reasons)
		Expect(slices.Compact(slices.Clone(reasons))).To(Equal(reasons))
	})

	It("has names, actions, fields and explanations of one form", func() {
		for _, e := range all {
			Expect(e.Name).To(MatchRegexp(`^[a-z]+\.[a-z]+(_[a-z]+)*$`))
			Expect(e.Reason()).To(MatchRegexp(`^[A-Z][A-Za-z]{1,127}$`), "the API server takes no other")
			Expect(e.Action).To(MatchRegexp(`^[A-Z][A-Za-z]{1,127}$`), e.Name)
			Expect(e.Help).To(MatchRegexp(`^[A-Z].*\.$`), e.Name)
			Expect(e.Help).NotTo(ContainSubstring("\n"), e.Name)
			Expect(slices.Compact(slices.Sorted(slices.Values(e.Fields)))).To(HaveLen(len(e.Fields)), e.Name)
			for _, f := range e.Fields {
				Expect(f).To(MatchRegexp(`^[a-z]+(_[a-z]+)*$`), e.Name)
				Expect([]string{"event", "session", "warning", "text", "prompt", "body"}).NotTo(ContainElement(f), e.Name)
			}
		}
	})

	It("warns of what failed, and of nothing that went well", func() {
		for _, e := range all {
			if strings.HasSuffix(e.Name, "_failed") || strings.HasSuffix(e.Name, ".failed") {
				Expect(e.Warning).To(BeTrue(), e.Name)
				Expect(e.Fields).To(ContainElement("error"), e.Name)
			}
		}
		Expect(event.SessionSpawned.Warning).To(BeFalse())
	})

	DescribeTable("derives the reason from the name",
		func(e event.Event, want string) { Expect(e.Reason()).To(Equal(want)) },
		Entry("of two words", event.SessionSpawned, "SessionSpawned"),
		Entry("of three", event.SessionResumeFailed, "SessionResumeFailed"),
		Entry("with an abbreviation", event.SessionPRSpawned, "SessionPRSpawned"),
	)

	It("tells of standing sessions by names of their own, where they have one", func() {
		Expect(event.OfStanding(event.SessionClosed)).To(Equal(event.StandingStopped))
		Expect(event.OfStanding(event.SessionRetained)).To(Equal(event.SessionRetained))
		for _, e := range all {
			of := event.OfStanding(e)
			if of.Name == e.Name {
				continue
			}
			Expect(of.Name).To(HavePrefix("standing."))
			Expect(of.Warning).To(Equal(e.Warning), e.Name)
			Expect(of.Fields).To(Equal(e.Fields), "what is told of both is the same, but for the name")
		}
	})
})
