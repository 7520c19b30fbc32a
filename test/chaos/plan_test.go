package chaos

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/faultpoint"
)

var _ = Describe("the schedule of chaos", func() {
	o := Options{Seed: 7, Messages: 10, Sessions: 3, Duration: time.Hour}

	It("is the same for the same seed, and another for another", func() {
		Expect(Plan(o)).To(Equal(Plan(o)))
		other := o
		other.Seed++
		Expect(Plan(other)).NotTo(Equal(Plan(o)))
	})

	It("has every kind of fault in it, at every point, within its time", func() {
		kinds, points, took := map[Kind]bool{}, map[string]bool{}, time.Duration(0)
		for _, m := range Plan(o) {
			kinds[m.Kind], points[m.Point] = true, true
			took += m.Gap
			Expect(m.Session).To(BeNumerically("<", o.Sessions))
		}
		Expect(took).To(BeNumerically("<", o.Duration))
		for _, s := range shares {
			Expect(kinds).To(HaveKey(s.kind))
		}
		for _, p := range faultpoint.Points {
			Expect(points).To(HaveKey(p))
		}
	})

	It("has everything that a short run may have in the run of `make test`", func() {
		kinds := map[Kind]bool{}
		for _, m := range Plan(standard) {
			kinds[m.Kind] = true
		}
		for _, s := range shares {
			if s.short > 0 {
				Expect(kinds).To(HaveKey(s.kind))
			}
		}
	})

	It("does nothing in a short run that takes minutes to recover from", func() {
		short := o
		for short.Seed = range 20 {
			short.Duration = 59 * time.Second
			for _, m := range Plan(short) {
				Expect(m.Kind).NotTo(BeElementOf(KillServer, RestartAPI, Drain))
				Expect(m.For).To(BeNumerically("<=", 2*time.Second))
			}
		}
	})
})
