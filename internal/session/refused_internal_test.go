package session

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/delivery"
	"github.com/theloop-dev/the-loop/internal/event"
	"github.com/theloop-dev/the-loop/internal/harness"
	"github.com/theloop-dev/the-loop/internal/tmux"
)

// shown is a Terminal that shows one screen.
type shown struct {
	Terminal
	screen tmux.Screen
}

func (s *shown) Screen(context.Context, tmux.Target) (tmux.Screen, error) { return s.screen, nil }

var _ = Describe("a session whose harness is at its prompt", func() {
	var (
		clk  *testingclock.FakeClock
		term *shown
		t    *turn
	)
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	limit := harness.Refusal{Since: noon, Until: noon.Add(2 * time.Hour), Why: "You've hit your 5-hour limit"}
	login := harness.Refusal{Since: noon, Why: "Please run /login"}
	BeforeEach(func() {
		clk, term = testingclock.NewFakeClock(noon), &shown{}
		s := &Subject{Object: &api.StandingSession{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "s"}}, Store: &ledger{}, Log: logr.Discard()}
		t = &turn{Engine: &Engine{Clock: clk, Dir: GinkgoT().TempDir(), Terminal: term}, Subject: s, status: s.Object.HostedStatus(), mem: &memory{}}
		t.status.Harness = "claude"
		t.sight = Sighting{Holder: HolderLiveOurs, Session: tmux.Session{Panes: []tmux.Pane{{ID: "%1"}}}, Pane: tmux.Pane{ID: "%1"}}
		t.state = harness.State{Ready: true, Activity: harness.ActivityIdle}
	})

	DescribeTable("says that its turns are refused", func(change func(), reason, says string, again time.Duration) {
		change()
		status, is, why := t.accepting()
		Expect(status).To(Equal(metav1.ConditionFalse))
		Expect(is).To(Equal(reason))
		Expect(why).To(ContainSubstring(says))
		Expect(t.observed()).To(Equal(again), "nothing else tells that it has ended")

		clk.SetTime(noon.Add(again))
		status, is, _ = t.accepting()
		Expect(status).To(Equal(metav1.ConditionTrue))
		Expect(is).To(Equal(api.ReasonIdle), "P48")
		Expect(t.observed()).To(BeZero())
	},
		Entry("P47: by a usage limit", func() { t.state.Limited = limit }, api.ReasonUsageLimited,
			"messages wait until 2026-11-30T14:00:00Z: You've hit your 5-hour limit", 2*time.Hour),
		Entry("H23: by its login", func() { t.state.LoginRefused = login }, api.ReasonLoginRefused,
			"one is tried at 2026-11-30T12:15:00Z; log in again, and restart the session: Please run /login", harness.RefusalBackOff),
	)

	It("says of the menu that opened for the limit too", func() {
		t.state.Limited, t.state.Activity, t.state.WaitingFor = limit, harness.ActivityAwaitingInput, "dialog open"
		_, is, why := t.accepting()
		Expect(is).To(Equal(api.ReasonUsageLimited))
		Expect(why).To(HaveSuffix("; a dialog of the harness waits for a person: dialog open"))
		clk.SetTime(limit.Until)
		_, is, _ = t.accepting()
		Expect(is).To(Equal(api.ReasonAwaitingInput))
	})

	It("H23: tells people once that its login was refused", func() {
		before := t.status.DeepCopy()
		t.state.LoginRefused = login
		t.note(Plan{})
		t.compare(before)
		t.compare(t.status.DeepCopy())
		var told []string
		for _, n := range t.news {
			if n.event.Name == event.SessionAwaitingInput.Name {
				told = append(told, n.message)
			}
		}
		Expect(told).To(ConsistOf(ContainSubstring("the login of the harness was refused")))
	})

	Describe("with something open at the terminal", func() {
		// kept is why a text is not typed now.
		kept := func(text string) string {
			GinkgoHelper()
			term.screen = tmux.Screen{Text: text, CursorX: 2, CursorY: 1}
			r := delivery.Request{ID: "m", Target: t.target(), Session: t.sight.Session, State: t.state, Traits: t.traits(), WhileBusy: true}
			why, again := t.keptOut(context.Background(), r)
			if again == soonAgain {
				clk.Step(unclearFor)
				why, again = t.keptOut(context.Background(), r)
			}
			if why != "" {
				Expect(again).To(Equal(dialogAgain))
			}
			return why
		}

		It("H19: gets nothing typed into a menu, and into the box once it is closed", func() {
			Expect(kept("  Rewind\n❯ (current)\n  Enter to continue · Esc to cancel")).To(Equal(
				"a question is open at the terminal, which would take the text: answer it, or press Escape"))
			Expect(kept("───\n❯ \n───\n  auto mode on")).To(BeEmpty())
		})

		It("P19: gets nothing typed in vim's visual mode, in which nothing is submitted", func() {
			Expect(kept("───\n❯ \n───\n  -- VISUAL LINE -- auto mode on")).To(HavePrefix("vim's visual mode is open at the terminal"))
			Expect(kept("───\n❯ \n───\n  -- INSERT -- auto mode on")).To(BeEmpty())
		})

		It("H19: knows what an operator adds, from the next message on", func() {
			news := "  What is new\n  Press any key to go on"
			Expect(kept(news)).To(BeEmpty())
			Expect(os.Mkdir(filepath.Join(t.Dir, "dialogs"), 0o700)).To(Succeed())
			list := filepath.Join(t.Dir, "dialogs", "claude.json")
			Expect(os.WriteFile(list, []byte(`{"dialogs":[{"name":"the news","leave":"press a key","row":"Press any key"}]}`), 0o600)).To(Succeed())
			Expect(kept(news)).To(HavePrefix("the news is open at the terminal"))
			Expect(os.WriteFile(list, []byte(`{`), 0o600)).To(Succeed())
			Expect(kept(news)).To(BeEmpty())
		})

		Describe("and its input box is not seen", func() {
			const box, typed, torn = "───\n❯ \n───\n  auto mode on", "───\n❯ a draft\n───\n  auto mode on", "───\n"
			shows := func(text string, x int) { term.screen = tmux.Screen{Text: text, CursorX: x, CursorY: 1} }
			keptOut := func() (string, time.Duration) {
				r := delivery.Request{ID: "m", Target: t.target(), Session: t.sight.Session, State: t.state, Traits: t.traits(), WhileBusy: true}
				return t.keptOut(context.Background(), r)
			}
			relaunch := func() Plan {
				GinkgoHelper()
				in := Input{Desired: DesiredRunning, Holder: HolderLiveOurs, Started: true, Delivery: api.DeliveryPolicyDeliver, KillHarness: true, MessageDue: true, ArgsDiffer: true}
				Expect(Decide(in).Action).To(Equal(ActionTerminate))
				_, p := t.spareDraft(context.Background(), in)
				return p
			}

			It("P40: types nothing before it is drawn, and goes on where it is one that is not known", func() {
				shows(torn, 0)
				why, again := keptOut()
				Expect(why).NotTo(BeEmpty())
				Expect(again).To(Equal(soonAgain))
				shows(typed, 9)
				why, _ = keptOut()
				Expect(why).To(Equal(drafted))
				shows(torn, 0)
				_, again = keptOut()
				Expect(again).To(Equal(soonAgain), "counted anew")
				clk.Step(unclearFor)
				why, _ = keptOut()
				Expect(why).To(BeEmpty())
			})

			It("P40: is not launched anew over a draft that is just being drawn", func() {
				shows(torn, 0)
				p := relaunch()
				Expect(p.Action).To(Equal(ActionNone))
				Expect(p.Requeue).To(Equal(soonAgain))
				Expect(t.kept).To(BeZero(), "nobody is told of a draft that is not seen")
				shows(typed, 9)
				Expect(relaunch()).To(And(HaveField("Action", ActionNone), HaveField("Requeue", draftAgain)))
				shows(box, 2)
				Expect(relaunch().Action).To(Equal(ActionTerminate))
				shows(torn, 0)
				Expect(relaunch().Action).To(Equal(ActionNone))
				clk.Step(unclearFor)
				Expect(relaunch().Action).To(Equal(ActionTerminate))
			})

			It("waits for no box of a harness that is not known to have one", func() {
				t.status.Harness = "custom"
				shows(torn, 0)
				why, _ := keptOut()
				Expect(why).To(BeEmpty())
				Expect(relaunch().Action).To(Equal(ActionTerminate))
			})
		})

		It("P14, P40: does not submit what a person had begun when the text came, says so, and no longer when it is submitted", func() {
			ctx, body := context.Background(), "Message (Person):\n\nhello"
			m := &api.SessionMessage{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "m"}, Spec: api.SessionMessageSpec{Text: "hello"}}
			t.status.Launch = &api.Launch{ID: "l1"}
			for text, led := range map[string]bool{
				"❯ half a Message (Person):\n\n  hello": true, "! touch pwnMessage (Person):\n\n  hello": true, "❯ Mess": true,
				"❯ Message (Person):\n\n  hello": false, "❯ [Pasted text #1 +6 lines]": false, "❯ \x1b[2mTry this": false, "  no box": false,
			} {
				term.screen = tmux.Screen{Text: "───\n" + text + "\n───\n  auto mode on", CursorX: 2, CursorY: 1}
				Expect(t.request(ctx, m, body, "").Led()).To(Equal(led), text)
				Expect(t.request(ctx, m, body, "").Stands()).To(Equal(text == "❯ Message (Person):\n\n  hello"), text)
			}

			why := func() string { return meta.FindStatusCondition(m.Status.Conditions, api.ConditionDelivered).Message }
			t.sight.Session.Pasted, t.mem.attempt.Message, t.mem.inflight = "m", "m", "m"
			t.status.Launch = &api.Launch{}
			done, after, err := t.conclude(ctx, m, delivery.Step{Phase: delivery.Held, Detail: "it stands behind a draft", After: time.Second})
			Expect(err).NotTo(HaveOccurred())
			Expect(done).To(BeFalse())
			Expect(after).To(Equal(time.Second))
			Expect(string(m.Status.Outcome) + "/" + m.Status.Reason).To(Equal("Queued/Pasted"))
			Expect(why()).To(Equal("it stands behind a draft"))
			done, _, err = t.conclude(ctx, m, delivery.Step{Phase: delivery.Submitted, Evidence: noon})
			Expect(err).NotTo(HaveOccurred())
			Expect(done).To(BeTrue())
			Expect(why()).To(HavePrefix("the text was pasted into pane"))
		})
	})
})
