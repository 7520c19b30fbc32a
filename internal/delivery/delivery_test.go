package delivery_test

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/delivery"
	"github.com/theloop-dev/the-loop/internal/harness"
	"github.com/theloop-dev/the-loop/internal/tmux"
)

var _ = Describe("Advance", func() {
	var p *pane
	BeforeEach(func() { p = &pane{} })

	// advance takes one step and checks that nothing was typed twice.
	advance := func(r delivery.Request, now time.Time) delivery.Step {
		GinkgoHelper()
		step, err := delivery.Advance(context.Background(), p, r, now)
		Expect(err).NotTo(HaveOccurred())
		Expect(p.bodies).To(BeNumerically("<=", 1))
		Expect(p.returns).To(BeNumerically("<=", 1))
		Expect(p.wrong).To(BeEmpty())
		return step
	}
	with := func(progress delivery.Progress) func(*delivery.Request) {
		return func(r *delivery.Request) { r.Progress = progress }
	}

	It("goes from paste over the gap to the carriage return, and waits for the evidence", func() {
		step := advance(request(p), noon)
		Expect(step.Phase).To(Equal(delivery.Waiting))
		Expect(step.After).To(Equal(traits.SubmitGap))
		Expect([]int{p.bodies, p.returns}).To(Equal([]int{1, 0}), "never in one go: the return would be taken for a part of the paste")

		early := advance(request(p, with(step.Progress)), noon.Add(traits.SubmitGap/4))
		Expect(early.After).To(Equal(traits.SubmitGap * 3 / 4))
		Expect(p.returns).To(BeZero())

		long := advance(request(p, with(step.Progress), func(r *delivery.Request) { r.Traits.SubmitGapPerKiB = 1024 * time.Second }), noon.Add(traits.SubmitGap))
		Expect(long.After).To(Equal(time.Duration(len(request(p).Text))*time.Second), "a harness that needs longer for a longer text")
		Expect(p.returns).To(BeZero())

		now := noon.Add(traits.SubmitGap)
		step = advance(request(p, with(step.Progress)), now)
		Expect([]int{p.bodies, p.returns}).To(Equal([]int{1, 1}))
		Expect(step.Phase).To(Equal(delivery.Waiting))
		Expect(step.After).To(Equal(traits.TakenWithin))
		Expect(step.Progress).To(Equal(delivery.Progress{Pasted: noon, Submitted: now, Sent: true, Own: true}))

		at := now.Add(time.Second)
		step = advance(request(p, with(step.Progress), took(at)), at)
		Expect(step.Phase).To(Equal(delivery.Submitted))
		Expect(step.Evidence).To(Equal(at))
	})

	It("submits at once where the harness needs no gap", func() {
		step := advance(request(p, func(r *delivery.Request) { r.Traits.SubmitGap = 0 }), noon)
		Expect(step.Phase).To(Equal(delivery.Waiting))
		Expect([]int{p.bodies, p.returns}).To(Equal([]int{1, 1}))
	})

	Describe("a harness that loses carriage returns", func() {
		// submitted is right behind the carriage return; what stands is what is seen then.
		sent, looks := noon.Add(traits.SubmitGap), 0
		again := func(change ...func(*delivery.Request)) delivery.Request {
			progress := delivery.Progress{Pasted: noon, Submitted: sent, Sent: true, Own: true}
			return request(p, append([]func(*delivery.Request){with(progress), func(r *delivery.Request) {
				r.Traits.LosesReturn = true
				r.Stands = func() bool { looks++; return true }
			}}, change...)...)
		}
		BeforeEach(func() {
			looks = 0
			p.pasted, p.submitted, p.bodies, p.returns = id, id, 1, 1
		})
		step := func(r delivery.Request, now time.Time) delivery.Step {
			GinkgoHelper()
			out, err := delivery.Advance(context.Background(), p, r, now)
			Expect(err).NotTo(HaveOccurred())
			Expect(p.bodies).To(Equal(1))
			return out
		}

		It("gets one more when its text stands, and never a third", func() {
			out := step(again(), sent.Add(time.Second))
			Expect(out.Phase).To(Equal(delivery.Waiting))
			Expect(out.After).To(Equal(2 * time.Second))
			Expect([]int{looks, p.returns}).To(Equal([]int{0, 1}), "it has time first")
			out = step(again(), sent.Add(3*time.Second))
			Expect([]int{looks, p.returns}).To(Equal([]int{1, 2}))
			out = step(again(with(out.Progress)), sent.Add(6*time.Second))
			Expect([]int{looks, p.returns}).To(Equal([]int{1, 2}))
			Expect(out.Phase).To(Equal(delivery.Waiting))
			Expect(out.After).To(Equal(traits.TakenWithin-3*time.Second), "counted from the second one")
			step(again(), sent.Add(7*time.Second))
			Expect(p.returns).To(Equal(2), "an agent that was restarted does not know, and the marker does")
		})

		It("is not known to have got one that failed, and gets no other", func() {
			p.answer = lost
			out := step(again(), sent.Add(3*time.Second))
			Expect(out.Phase).To(Equal(delivery.Waiting))
			Expect(out.Problem).To(MatchError(ContainSubstring("submit again in pane %1")))
			Expect(out.Progress.Again).To(Equal(sent.Add(3 * time.Second)))
			p.answer = ""
			out = step(again(with(out.Progress)), sent.Add(5*time.Second))
			Expect([]int{looks, p.returns}).To(Equal([]int{1, 1}))
			Expect(out.Problem).NotTo(HaveOccurred())
			Expect(step(again(with(out.Progress)), sent.Add(3*time.Second+traits.TakenWithin)).Phase).To(Equal(delivery.Typed))
		})

		It("gets none where an earlier process sent the first: the text may be a person's by now", func() {
			r := again(with(delivery.Progress{}))
			out := step(r, sent.Add(4*time.Second))
			Expect(out.Progress).To(And(HaveField("Submitted", sent.Add(4*time.Second)), HaveField("Sent", false)))
			out = step(again(with(out.Progress)), sent.Add(8*time.Second))
			Expect([]int{looks, p.returns}).To(Equal([]int{0, 1}))
			Expect(out.After).To(Equal(traits.TakenWithin - 4*time.Second))
		})

		DescribeTable("gets it only while a text may still be taken", func(since time.Duration, returns int) {
			step(again(), sent.Add(since))
			Expect(p.returns).To(Equal(returns))
		},
			Entry("at the end of that time", traits.TakenWithin, 2),
			Entry("behind it, as when the agent was stopped: the text may be a person's by now", traits.TakenWithin+time.Second, 1),
		)

		DescribeTable("gets none", func(change func(*delivery.Request)) {
			step(again(change), sent.Add(5*time.Second))
			Expect(p.returns).To(Equal(1))
		},
			Entry("P27: when its text is not seen to stand in its box, alone", func(r *delivery.Request) { r.Stands = func() bool { return false } }),
			Entry("when its box cannot be read", func(r *delivery.Request) { r.Stands = nil }),
			Entry("when it is another harness", func(r *delivery.Request) { r.Traits.LosesReturn = false }),
			Entry("P51: while a dialog is open", func(r *delivery.Request) { r.State.Activity = harness.ActivityAwaitingInput }),
			Entry("in a turn", func(r *delivery.Request) { r.State.Activity = harness.ActivityBusy }),
			Entry("when it has taken the text", took(sent.Add(time.Second))),
			Entry("when the pane is not what it was", func(r *delivery.Request) { r.Target.Epoch.StartTime++ }),
		)
	})

	DescribeTable("the gate: nothing is typed, and it is said why", func(why string, change func(*pane, *delivery.Request)) {
		r := request(p)
		change(p, &r)
		step := advance(r, noon)
		Expect(step.Phase).To(Equal(delivery.Held))
		Expect(step.Detail).To(ContainSubstring(why))
		Expect(step.Progress).To(BeZero())
		Expect([]int{p.bodies, p.returns}).To(Equal([]int{0, 0}))
	},
		Entry("P11: the harness has not reached its prompt", "not reached its prompt", func(_ *pane, r *delivery.Request) { r.State.Ready = false }),
		Entry("P51: a dialog is open", "a dialog of the harness waits for a person: permission for Bash", func(_ *pane, r *delivery.Request) {
			r.State.Activity, r.State.WaitingFor = harness.ActivityAwaitingInput, "permission for Bash"
		}),
		Entry("busy, and the class delivers to idle ones only", "in a turn", func(_ *pane, r *delivery.Request) {
			r.State.Activity, r.WhileBusy = harness.ActivityBusy, false
		}),
		Entry("busy, and the harness would not take it as a message", "a message of its own", func(_ *pane, r *delivery.Request) {
			r.State.Activity, r.Traits.IdleOnly = harness.ActivityBusy, true
		}),
		Entry("the pane is gone from the listing", "gone", func(p *pane, r *delivery.Request) { p.gone = true; r.Session = p.seen() }),
		Entry("the harness has ended", "has ended", func(p *pane, r *delivery.Request) { p.dead = true; r.Session = p.seen() }),
		Entry("a person switched the pane's input off", "select-pane -e", func(p *pane, r *delivery.Request) { p.inputOff = true; r.Session = p.seen() }),
		Entry("P44: the listing is older than the end of the pane, and the server refuses", "Gone", func(p *pane, _ *delivery.Request) { p.gone = true }),
		Entry("P44: the same for a pane that is dead", "Refused", func(p *pane, _ *delivery.Request) { p.dead = true }),
		Entry("P43: another pane than the recorded one", "gone", func(_ *pane, r *delivery.Request) { r.Target.PaneID = "%2" }),
		Entry("P44: another life of the server", "Refused", func(_ *pane, r *delivery.Request) { r.Target.Epoch.StartTime++ }),
		Entry("the application has not switched bracketed paste on", "bracketed paste", func(p *pane, _ *delivery.Request) { p.plain = true }),
		Entry("a harness without evidence is still not typed into when it has ended", "has ended", func(p *pane, r *delivery.Request) {
			r.Traits, r.State = harness.Traits{}, harness.State{}
			p.dead = true
			r.Session = p.seen()
		}),
	)

	DescribeTable("the gate is open", func(change func(*delivery.Request)) {
		Expect(advance(request(p, change), noon).Phase).To(Equal(delivery.Waiting))
		Expect(p.bodies).To(Equal(1))
	},
		Entry("busy, where the class delivers to busy ones", func(r *delivery.Request) { r.State.Activity = harness.ActivityBusy }),
		Entry("ready, and no word on what it does", func(r *delivery.Request) { r.State.Activity = harness.ActivityUnknown }),
		Entry("no evidence to wait for", func(r *delivery.Request) { r.Traits.Evidence, r.State = false, harness.State{} }),
	)

	It("goes on when the gate opens", func() {
		p.plain = true
		Expect(advance(request(p), noon).Phase).To(Equal(delivery.Held))
		p.plain = false
		Expect(advance(request(p), noon).Phase).To(Equal(delivery.Waiting))
		Expect(p.bodies).To(Equal(1))
	})

	DescribeTable("between the paste and the carriage return, which would answer a dialog",
		func(why string, close, open func(*pane, *delivery.Request)) {
			step := advance(request(p), noon)
			now := noon.Add(traits.SubmitGap)
			r := request(p, with(step.Progress))
			close(p, &r)
			held := advance(r, now)
			Expect(held.Phase).To(Equal(delivery.Held))
			Expect(held.Detail).To(And(ContainSubstring("pasted and not submitted"), ContainSubstring(why)))
			Expect(held.Progress).To(Equal(step.Progress))
			Expect(p.returns).To(BeZero())

			r = request(p, with(held.Progress))
			open(p, &r)
			Expect(advance(r, now.Add(time.Hour)).Phase).To(Equal(delivery.Waiting))
			Expect([]int{p.bodies, p.returns}).To(Equal([]int{1, 1}))
		},
		Entry("a dialog opens", "permission for Edit", func(_ *pane, r *delivery.Request) {
			r.State.Activity, r.State.WaitingFor = harness.ActivityAwaitingInput, "permission for Edit"
		}, func(*pane, *delivery.Request) {}),
		Entry("the input is switched off", "select-pane -e", func(p *pane, r *delivery.Request) { p.inputOff = true; r.Session = p.seen() },
			func(p *pane, r *delivery.Request) { p.inputOff = false; r.Session = p.seen() }),
	)

	It("a restart does not open a dialog's gate", func() {
		p.pasted = id
		r := request(p, func(r *delivery.Request) { r.State.Activity = harness.ActivityAwaitingInput })
		Expect(advance(r, noon).Phase).To(Equal(delivery.Held))
		Expect(p.returns).To(BeZero())
	})

	Describe("after a crash, from the markers alone (the zero Progress)", func() {
		It("before the paste: pastes", func() {
			Expect(advance(request(p), noon).Phase).To(Equal(delivery.Waiting))
			Expect(p.bodies).To(Equal(1))
		})
		It("after the paste: submits, and pastes no second time", func() {
			p.pasted = id
			Expect(advance(request(p), noon).Phase).To(Equal(delivery.Waiting))
			Expect([]int{p.bodies, p.returns}).To(Equal([]int{0, 1}))
		})
		It("after the paste, which the listing does not show yet: the server says so", func() {
			old := p.seen()
			p.pasted = id
			step := advance(request(p, func(r *delivery.Request) { r.Session = old }), noon)
			Expect(step.Phase).To(Equal(delivery.Waiting))
			Expect(step.After).To(Equal(traits.SubmitGap), "how long ago it was pasted is not known")
			Expect(p.bodies).To(BeZero())
		})
		It("after the carriage return: waits for the evidence anew", func() {
			p.pasted, p.submitted = id, id
			step := advance(request(p), noon)
			Expect(step.Phase).To(Equal(delivery.Waiting))
			Expect(step.After).To(Equal(traits.TakenWithin))
			Expect([]int{p.bodies, p.returns}).To(Equal([]int{0, 0}))
		})
		It("with the evidence there: is done, and types nothing", func() {
			p.pasted, p.submitted = id, id
			step := advance(request(p, took(noon.Add(-time.Second))), noon)
			Expect(step.Phase).To(Equal(delivery.Submitted))
			Expect([]int{p.bodies, p.returns}).To(Equal([]int{0, 0}))
		})
		It("when a person pressed Enter meanwhile: is done, and types nothing", func() {
			p.pasted = id
			Expect(advance(request(p, took(noon.Add(-time.Second))), noon).Phase).To(Equal(delivery.Submitted))
			Expect(p.returns).To(BeZero())
		})
		It("with the pane gone: is lost, and types nothing", func() {
			p.pasted, p.gone = id, true
			Expect(advance(request(p), noon).Phase).To(Equal(delivery.Lost))
			Expect([]int{p.bodies, p.returns}).To(Equal([]int{0, 0}))
		})
		It("with another delivery pasted since: is lost, and types nothing", func() {
			p.pasted = "message-2"
			r := request(p, with(delivery.Progress{Pasted: noon.Add(-time.Hour)}))
			Expect(advance(r, noon).Phase).To(Equal(delivery.Lost))
			Expect([]int{p.bodies, p.returns}).To(Equal([]int{0, 0}))
		})
	})

	Describe("evidence", func() {
		It("counts from the moment in which the delivery was begun", func() {
			p.pasted = id
			r := request(p, took(noon.Add(100*time.Millisecond)), func(r *delivery.Request) { r.After = mark(noon) })
			Expect(advance(r, noon.Add(time.Minute)).Phase).To(Equal(delivery.Submitted))
		})
		It("A delivery that cannot be noted is not begun", func() {
			r := request(p, func(r *delivery.Request) { r.Begin = func() error { return errors.New("disk full") } })
			_, err := delivery.Advance(context.Background(), p, r, noon)
			Expect(err).To(MatchError("disk full"))
			Expect(p.bodies).To(BeZero())
		})
		It("older than the message is of another one", func() {
			p.pasted = id
			Expect(advance(request(p, took(noon.Add(-time.Hour))), noon).Phase).To(Equal(delivery.Waiting))
			Expect(p.returns).To(Equal(1))
		})
		It("without a paste is of another one: the text is pasted", func() {
			Expect(advance(request(p, took(noon.Add(-time.Second))), noon).Phase).To(Equal(delivery.Waiting))
			Expect(p.bodies).To(Equal(1))
		})
		It("of an equal text taken just before does not stand for this one", func() {
			before := took(noon.Add(-time.Millisecond)) // the message before had the same text
			step := advance(request(p, before), noon)
			now := noon.Add(traits.SubmitGap)
			step = advance(request(p, before, with(step.Progress)), now)
			Expect(step.Phase).To(Equal(delivery.Waiting))
			Expect(p.returns).To(Equal(1), "it is submitted all the same")
			Expect(advance(request(p, before, with(step.Progress)), now.Add(traits.TakenWithin)).Phase).To(Equal(delivery.Typed))
			Expect(advance(request(p, before, took(now), with(step.Progress)), now).Phase).To(Equal(delivery.Submitted))
		})
		DescribeTable("T36: is what comes after the paste, though the clock is set meanwhile", func(by time.Duration) {
			before := took(noon.Add(by)) // the message before had the same text
			step := advance(request(p, before), noon)
			now := noon.Add(traits.SubmitGap)
			step = advance(request(p, before, with(step.Progress)), now)
			Expect(step.Phase).To(Equal(delivery.Waiting), "nothing was taken yet")
			Expect(p.returns).To(Equal(1))
			at := now.Add(by)
			step = advance(request(p, before, took(at), with(step.Progress)), now.Add(time.Second))
			Expect(step.Phase).To(Equal(delivery.Submitted))
			Expect(step.Evidence).To(Equal(at))
		},
			Entry("back", -time.Hour),
			Entry("forth", time.Hour),
		)
		It("is seen also where the oldest of many prompts is forgotten for it", func() {
			many := func(r *delivery.Request) {
				for i := range harness.MaxTaken {
					took(noon.Add(time.Duration(i-harness.MaxTaken) * time.Second))(r)
				}
			}
			step := advance(request(p, many), noon)
			now := noon.Add(traits.SubmitGap)
			step = advance(request(p, many, with(step.Progress)), now)
			Expect(step.Phase).To(Equal(delivery.Waiting))
			forgets := func(r *delivery.Request) { r.State.Taken = r.State.Taken[1:] }
			Expect(advance(request(p, many, took(now), forgets, with(step.Progress)), now).Phase).To(Equal(delivery.Submitted))
		})
		It("of another text is of another message", func() {
			p.pasted, p.submitted = id, id
			r := request(p, func(r *delivery.Request) { r.State.Taken = []harness.Taken{{Digest: "another", Time: noon}} })
			Expect(advance(r, noon).Phase).To(Equal(delivery.Waiting))
		})
		It("P45: late is none: it is typed, and nothing is sent again", func() {
			progress := delivery.Progress{Pasted: noon, Submitted: noon}
			p.pasted, p.submitted = id, id
			almost := advance(request(p, with(progress)), noon.Add(traits.TakenWithin-1))
			Expect(almost.Phase).To(Equal(delivery.Waiting))
			Expect(almost.After).To(Equal(time.Duration(1)))
			step := advance(request(p, with(progress)), noon.Add(traits.TakenWithin))
			Expect(step.Phase).To(Equal(delivery.Typed))
			Expect(step.Detail).To(ContainSubstring("attach and look"))
			Expect([]int{p.bodies, p.returns}).To(Equal([]int{0, 0}))
		})
		It("P10: none to be had is typed, never success", func() {
			r := request(p, func(r *delivery.Request) { r.Traits = harness.Traits{}; r.State = harness.State{} })
			step := advance(r, noon)
			Expect(step.Phase).To(Equal(delivery.Typed))
			Expect([]int{p.bodies, p.returns}).To(Equal([]int{1, 1}))
		})
	})

	Describe("tmux does not answer", func() {
		DescribeTable("the error is passed on as what it is, and the delivery goes on",
			func(a answer, submit bool) {
				r := request(p)
				if submit {
					step := advance(r, noon)
					r = request(p, with(step.Progress))
				}
				now := noon.Add(traits.SubmitGap)
				p.answer = a
				step, err := delivery.Advance(context.Background(), p, r, now)
				Expect(errors.Is(err, tmux.ErrUnknown)).To(BeTrue())
				Expect(err).To(MatchError(ContainSubstring("pane %1")))
				Expect(step.Progress).To(Equal(r.Progress))

				p.answer = ""
				step = advance(request(p, with(step.Progress)), now)
				if !submit {
					step = advance(request(p, with(step.Progress)), now.Add(traits.SubmitGap))
				}
				Expect(step.Phase).To(Equal(delivery.Waiting))
				Expect([]int{p.bodies, p.returns}).To(Equal([]int{1, 1}))
			},
			Entry("the paste did not run", lost, false), Entry("the paste ran", unheard, false),
			Entry("the carriage return was not sent", lost, true), Entry("the carriage return was sent", unheard, true),
		)
	})

	It("is lost when the pane ends behind the paste, or refuses the return", func() {
		for _, end := range []func(){func() { p.gone = true }, func() { p.dead = true }, func() { p.inputOff = true }} {
			*p = pane{}
			step := advance(request(p), noon)
			r := request(p, with(step.Progress)) // the listing is older than the end
			end()
			step = advance(r, noon.Add(traits.SubmitGap))
			Expect(step.Phase).To(Equal(delivery.Lost))
			Expect(step.Detail).To(ContainSubstring("refused the carriage return"))
		}
	})
})
