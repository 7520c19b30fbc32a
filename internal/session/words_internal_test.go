package session

import (
	"context"
	"errors"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/harness"
	"github.com/theloop-dev/the-loop/internal/tmux"
)

// printed is a Terminal that shows a text, and counts how often it was read.
type printed struct {
	Terminal
	text  string
	reads int
}

func (p *printed) Capture(context.Context, tmux.Target, int) (string, error) {
	p.reads++
	if p.text == "" {
		return "", errors.New("it is gone")
	}
	return p.text, nil
}

var _ = Describe("what a harness left on its terminal", func() {
	var (
		term *printed
		t    *turn
	)
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	BeforeEach(func() {
		term = &printed{text: "\x1b[31mclaude: cannot open /etc/x\x1b[0m\r\n\n  no such file  \n\nPane is dead (status 3, Mon Nov 30 12:00:00 2026)\n"}
		s := &Subject{Object: &api.StandingSession{}}
		t = &turn{Engine: &Engine{Clock: testingclock.NewFakeClock(noon), Terminal: term}, Subject: s, status: s.Object.HostedStatus(), mem: &memory{endedSince: noon}}
		t.status.Harness, t.status.StartedAt = "claude", new(metav1.NewTime(noon.Add(-time.Second)))
		t.sight = Sighting{Holder: HolderDeadOurs, Session: tmux.Session{Generation: "one"}, Pane: tmux.Pane{ID: "%1", Dead: true, ExitStatus: new(3)}}
	})
	// told is what a decision says of it.
	told := func() string {
		t.hear(context.Background())
		return Decide(Input{Desired: DesiredRunning, Started: true, Holder: t.sight.Holder, Restart: api.RestartPolicyOnMessage,
			HowEnded: t.mem.words.how, LastWords: t.mem.words.said()}).Message
	}

	It("T12: is told with its exit status when it never came to its prompt, once", func() {
		const want = "the harness ended with exit status 3; the next message starts it again; the last lines of its terminal: �[31mclaude: cannot open /etc/x�[0m / no such file"
		Expect(told()).To(Equal(want))
		Expect(told()).To(Equal(want))
		Expect(term.reads).To(Equal(1))
		By("still when its terminal was closed")
		t.sight.Holder, t.sight.Session, t.sight.Pane = HolderAbsent, tmux.Session{}, tmux.Pane{}
		Expect(told()).To(Equal(want))
	})

	It("T12: is its end alone when there was a conversation, which is nobody's to read", func() {
		t.state.Started = noon
		t.sight.Pane.ExitStatus, t.sight.Pane.ExitSignal = nil, "SIGKILL"
		Expect(told()).To(Equal("the harness ended by SIGKILL; the next message starts it again"))
		Expect(term.reads).To(BeZero())
	})

	DescribeTable("T12: of one that tells nothing of itself", func(lived time.Duration, reads int) {
		t.status.Harness, t.status.StartedAt = "custom", new(metav1.NewTime(noon.Add(-lived)))
		Expect(told()).To(HavePrefix("the harness ended with exit status 3"))
		Expect(term.reads).To(Equal(reads))
	},
		Entry("is told when it ended at once", time.Second, 1),
		Entry("may be a conversation when it lived", time.Minute, 0),
	)

	It("is nothing before it is known how it ended, or where it cannot be read", func() {
		t.sight.Pane.Dying, t.sight.Pane.ExitStatus = true, nil
		Expect(told()).NotTo(ContainSubstring("status"))
		Expect(term.reads).To(BeZero())
		t.sight.Pane.Dying, term.text = false, ""
		Expect(told()).To(HaveSuffix("starts it again"))
	})

	It("is bounded, in lines and in bytes", func() {
		term.text = strings.Repeat("x\n", 50)
		Expect(strings.Count(told(), "x")).To(BeNumerically("<=", 12+len("exit")))
		t.mem.words = words{}
		term.text = strings.Repeat("é", 1000)
		said := told()
		Expect(len(said)).To(BeNumerically("<", 750))
		Expect(said).To(HaveSuffix("...é" + strings.Repeat("é", 299)))
	})

	It("H07: is a question that holds up the start, once, until it comes to its prompt", func() {
		t.sight.Holder = HolderLiveOurs
		term.text = "Try the new renderer?\n❯ 1. Yes\n"
		accepting := func() string {
			t.hear(context.Background())
			_, _, why := t.accepting()
			return why
		}
		Expect(accepting()).To(Equal("the harness has not reached its prompt yet"))
		t.status.StartedAt = new(metav1.NewTime(noon.Add(-time.Hour)))
		Expect(accepting()).To(HaveSuffix("; the last lines of its terminal: Try the new renderer? / ❯ 1. Yes"))
		term.text = "something else"
		Expect(accepting()).To(HaveSuffix("Yes"), "a screen can change all the time")
		t.state.Ready, t.state.Activity = true, harness.ActivityIdle
		Expect(accepting()).To(Equal("the harness is at its prompt"))
		t.hear(context.Background())
		Expect(t.mem.words.last).To(BeEmpty())
	})

	It("H18: is not needed to name the children that a long turn waits for", func() {
		t.sight.Holder, t.HostName = HolderLiveOurs, "build-1"
		t.state.Ready, t.state.Activity, t.state.Since = true, harness.ActivityBusy, noon.Add(-time.Minute)
		t.sight.Pane.PID = 5
		var all []tmux.Child
		looked := 0
		t.Children = func(_ string, least, most time.Duration, exclude ...int) ([]tmux.Child, error) {
			looked++
			Expect([]time.Duration{least, most}).To(Equal([]time.Duration{5 * time.Minute, time.Hour}), "older ones are servers of the harness")
			Expect(exclude).To(Equal([]int{5}))
			return all, nil
		}
		accepting := func() string { _, _, why := t.accepting(); return why }
		Expect(accepting()).To(Equal("the harness is in a turn"))
		Expect(looked).To(BeZero())
		t.state.Since = noon.Add(-time.Hour)
		for i := range 7 {
			all = append(all, tmux.Child{PID: 10 + i, Name: "sleep\n"})
		}
		const want = "the harness is in a turn since 2026-11-30T11:00:00Z, and what it started in it still runs: " +
			"sleep (pid 10), sleep (pid 11), sleep (pid 12), sleep (pid 13), sleep (pid 14); if one of them holds it up, end that one alone on host build-1: kill 10"
		Expect(accepting()).To(Equal(want))
		all = nil
		Expect(accepting()).To(Equal(want))
		Expect(looked).To(Equal(1), "not at every look")
		t.mem.stallAt = noon.Add(-time.Minute)
		Expect(accepting()).To(Equal("the harness is in a turn"))
	})
})
