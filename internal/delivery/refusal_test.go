package delivery_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/delivery"
	"github.com/theloop-dev/the-loop/internal/harness"
)

var _ = Describe("a harness whose turns are refused", func() {
	var p *pane
	BeforeEach(func() { p = &pane{} })
	advance := func(r delivery.Request, now time.Time) delivery.Step {
		GinkgoHelper()
		step, err := delivery.Advance(context.Background(), p, r, now)
		Expect(err).NotTo(HaveOccurred())
		return step
	}
	reset := noon.Add(3 * time.Hour)
	limit := harness.Refusal{Since: noon.Add(-time.Minute), Until: reset, Why: "You've hit your 5-hour limit · resets 3pm (UTC)"}
	limited := func(r *delivery.Request) { r.State.Limited = limit }
	// wakes is when a held message is looked at again.
	wakes := func(r delivery.Request) time.Time {
		GinkgoHelper()
		_, again := delivery.Closed(r, noon)
		Expect(again).To(BeNumerically(">", 0))
		return noon.Add(again)
	}

	It("P47: keeps the message of a harness at its usage limit, and says until when", func() {
		step := advance(request(p, limited), noon)
		Expect(step.Phase).To(Equal(delivery.Held))
		Expect(step.Detail).To(And(HavePrefix("the harness is at its usage limit, until 2030-01-02T15:00:"), ContainSubstring(limit.Why)))
		Expect(step.After).To(BeNumerically("~", 3*time.Hour, time.Minute))
		Expect(p.bodies).To(BeZero())
		Expect(advance(request(p, limited), noon.Add(time.Hour)).Detail).To(Equal(step.Detail), "what is said stays as it is while it holds")
	})

	It("P48: types it when the time has come, whatever the harness still says", func() {
		at := wakes(request(p, limited))
		Expect(at).To(And(BeTemporally(">=", reset), BeTemporally("<", reset.Add(time.Minute))))
		Expect(advance(request(p, limited), at.Add(-time.Nanosecond)).Phase).To(Equal(delivery.Held))
		Expect(p.bodies).To(BeZero())
		Expect(advance(request(p, limited), at).Phase).To(Equal(delivery.Waiting))
		Expect(p.bodies).To(Equal(1))
	})

	It("P48: wakes the sessions of one account one after the other, each always at its time", func() {
		at := map[time.Time]bool{}
		for i := range 40 {
			named := func(r *delivery.Request) { r.ID = fmt.Sprintf("message-%d", i) }
			first := wakes(request(p, limited, named))
			Expect(wakes(request(p, limited, named))).To(Equal(first))
			Expect(first).To(And(BeTemporally(">=", reset), BeTemporally("<", reset.Add(time.Minute))))
			at[first] = true
		}
		Expect(len(at)).To(BeNumerically(">", 20))
	})

	DescribeTable("P48: a refusal without an end of its own is tried again", func(change func(*delivery.Request), says string) {
		r := request(p, change)
		step := advance(r, noon)
		Expect(step.Phase).To(Equal(delivery.Held))
		Expect(step.Detail).To(And(HavePrefix(says), ContainSubstring("tried again at 2030-01-02T12:1")))
		Expect(wakes(r)).To(And(BeTemporally(">=", noon.Add(harness.RefusalBackOff)), BeTemporally("<", noon.Add(harness.RefusalBackOff+time.Minute))))
		Expect(advance(r, wakes(r)).Phase).To(Equal(delivery.Waiting))
	},
		Entry("a limit", func(r *delivery.Request) { r.State.Limited = harness.Refusal{Since: noon, Why: "429"} }, "the harness is at its usage limit"),
		Entry("H23: a login", func(r *delivery.Request) {
			r.State.LoginRefused = harness.Refusal{Since: noon, Why: "Please run /login"}
		},
			"the login of the harness was refused"),
	)

	It("H23: says what to do about a login that was refused", func() {
		r := request(p, func(r *delivery.Request) {
			r.State.LoginRefused = harness.Refusal{Since: noon, Why: "Please run /login"}
		})
		Expect(advance(r, noon).Detail).To(HaveSuffix("Please run /login; log in again, and restart the session"))
	})

	It("H19: says of the menu too that it opened for the limit", func() {
		r := request(p, limited, func(r *delivery.Request) {
			r.State.Activity, r.State.WaitingFor = harness.ActivityAwaitingInput, "dialog open"
		})
		Expect(advance(r, noon).Detail).To(And(HavePrefix("the harness is at its usage limit"), HaveSuffix("; a dialog of the harness waits for a person: dialog open")))
		step := advance(r, reset.Add(time.Hour))
		Expect(step.Phase).To(Equal(delivery.Held), "the menu still would take the carriage return for its answer")
		Expect(step.Detail).To(HavePrefix("a dialog of the harness waits for a person"))
	})

	DescribeTable("is not spoken of where something else is in the way first", func(says string, change func(*delivery.Request)) {
		why, again := delivery.Closed(request(p, limited, change), noon)
		Expect(why).To(Equal(says))
		Expect(again).To(BeZero())
	},
		Entry("a harness that has ended", "the harness has ended", func(r *delivery.Request) { r.Session.Panes[0].Dead = true }),
		Entry("one that starts", "the harness has not reached its prompt yet", func(r *delivery.Request) { r.State.Ready = false }),
		Entry("a pane that is gone", "the pane of the harness is gone", func(r *delivery.Request) { r.Session.Panes = nil }),
		Entry("one that says nothing of itself", "", func(r *delivery.Request) { r.Traits.Evidence = false }),
	)

	// The limit is learnt from the answer to a prompt, so one text has always been typed.
	Describe("with a text that was typed before the limit was known", func() {
		var typed delivery.Progress
		BeforeEach(func() {
			p.pasted, p.submitted, p.bodies, p.returns = id, id, 1, 1
			typed = delivery.Progress{Pasted: noon, Submitted: noon.Add(time.Second), Own: true}
		})
		after := func(r *delivery.Request) {
			r.Progress = typed
			r.State.Limited = harness.Refusal{Since: noon.Add(2 * time.Second), Until: reset, Why: "the limit"}
		}

		It("is submitted when the harness took it: its turn failed, and that is told of the session", func() {
			step := advance(request(p, after, took(noon.Add(1500*time.Millisecond))), noon.Add(3*time.Second))
			Expect(step.Phase).To(Equal(delivery.Submitted))
		})

		It("P47: is not called submitted when the harness discarded it, and not typed again", func() {
			step := advance(request(p, after), noon.Add(5*time.Second))
			Expect(step.Phase).To(Equal(delivery.Waiting))
			step = advance(request(p, after), noon.Add(11*time.Second))
			Expect(step.Phase).To(Equal(delivery.Typed))
			Expect(step.Detail).To(And(ContainSubstring("did not report the prompt"), ContainSubstring("; the harness is at its usage limit, until ")))
			Expect([]int{p.bodies, p.returns}).To(Equal([]int{1, 1}))
		})

		It("gets its carriage return at the limit too: nobody else's text may be glued to it", func() {
			p.submitted, p.returns, typed.Submitted = "", 0, time.Time{}
			advance(request(p, after), noon.Add(3*time.Second))
			Expect(p.returns).To(Equal(1))
		})
	})
})
