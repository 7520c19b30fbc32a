package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/go-logr/logr"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/event"
	"github.com/theloop-dev/the-loop/internal/tmux"
)

// ledger is a Store that keeps what was written of messages, in order.
type ledger struct {
	Store
	writes []string
}

func (l *ledger) SaveMessage(_ context.Context, m *api.SessionMessage) error {
	l.writes = append(l.writes, fmt.Sprintf("%s %d %s", m.Name, m.Status.Sequence, m.Status.Reason))
	return nil
}

func (l *ledger) Emit(event.Event, string, ...any)                           {}
func (l *ledger) EmitAbout(*api.SessionMessage, event.Event, string, ...any) {}

var _ = Describe("the queue of a session", func() {
	var (
		clk   *testingclock.FakeClock
		store *ledger
		mem   *memory
		class *api.SessionClass
		dir   string
	)
	BeforeEach(func() {
		clk = testingclock.NewFakeClock(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))
		store, mem, class, dir = &ledger{}, &memory{}, &api.SessionClass{}, GinkgoT().TempDir()
	})
	message := func(name, version string) *api.SessionMessage {
		m := &api.SessionMessage{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(clk.Now())}}
		if version != "" {
			m.Annotations = map[string]string{api.CreatedVersionAnnotation: version}
		}
		return m
	}
	// look is one look of an agent at copies of the messages, as a cache has them.
	look := func(messages ...*api.SessionMessage) *turn {
		s := &Subject{Object: &api.StandingSession{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "s"}}, Class: class, Store: store, Log: logr.Discard()}
		for _, m := range messages {
			s.Messages = append(s.Messages, m.DeepCopy())
		}
		t := &turn{Engine: &Engine{Clock: clk, Dir: dir}, Subject: s, status: s.Object.HostedStatus(), mem: mem}
		Expect(t.enqueue(context.Background())).To(Succeed())
		return t
	}
	order := func(t *turn) (out []string) {
		for _, m := range t.queue {
			out = append(out, fmt.Sprint(m.Name, " ", m.Status.Sequence))
		}
		return out
	}

	It("orders new messages by the versions with which they were created, which are numbers", func() {
		t := look(message("a", "1000"), message("b", "999"), message("c", "99"))
		Expect(order(t)).To(Equal([]string{"c 1", "b 2", "a 3"}))
	})

	It("orders those whose version is not known by time, then by name", func() {
		late := message("a", "")
		late.CreationTimestamp = metav1.NewTime(clk.Now().Add(time.Second))
		t := look(late, message("c", ""), message("b", "7"))
		Expect(order(t)).To(Equal([]string{"b 1", "c 2", "a 3"}))
	})

	It("keeps the places that it gave, and writes nothing for that alone", func() {
		first := message("first", "20")
		look(first)
		t := look(message("earlier", "10"), first)
		Expect(order(t)).To(Equal([]string{"first 1", "earlier 2"}))
		Expect(store.writes).To(BeEmpty())
	})

	It("writes a place down when the message has waited for a moment", func() {
		t := look(message("a", "1"), message("b", "2"))
		Expect(t.waiting(context.Background())).To(Equal(waitSoon))
		Expect(store.writes).To(BeEmpty())
		clk.Step(waitSoon)
		t = look(message("a", "1"), message("b", "2"))
		Expect(t.waiting(context.Background())).To(BeZero())
		Expect(store.writes).To(Equal([]string{"a 1 Queued", "b 2 Queued"}))
	})

	It("puts no place on record before those of the messages before it", func() {
		t := look(message("a", "1"), message("b", "2"), message("c", "3"))
		Expect(t.saveMessage(context.Background(), t.queue[1])).To(Succeed())
		Expect(store.writes).To(Equal([]string{"a 1 Queued", "b 2 Queued"}))
		Expect(t.saveMessage(context.Background(), t.queue[2])).To(Succeed())
		Expect(store.writes).To(Equal([]string{"a 1 Queued", "b 2 Queued", "c 3 Queued"}))
	})

	It("C060: has the one that was begun first again after a crash, and the others as before", func() {
		messages := []*api.SessionMessage{message("a", "30"), message("b", "20"), message("c", "10")}
		look(messages[0]) // came alone, and was begun
		t := look(messages[0])
		t.status.Launch = &api.Launch{ID: "launch"}
		Expect(t.attempt(t.queue[0])).To(Succeed())
		mem = &memory{}
		Expect(order(look(messages...))).To(Equal([]string{"a 1", "c 2", "b 3"}))
	})

	Context("with the first message of a launch, which comes after another one", func() {
		var boot, early *api.SessionMessage
		BeforeEach(func() {
			early = message("early", "10")
			t := look()
			t.status.Launch = &api.Launch{ID: "launch"}
			boot = t.bootMessage("who you are")
			boot.UID = "uid-boot"
		})
		// at is a look at messages by an agent whose harness is of that launch, and has the
		// text of that message pasted.
		at := func(pasted string, messages ...*api.SessionMessage) *turn {
			t := look(messages...)
			t.status.Launch = &api.Launch{ID: "launch"}
			t.sight = Sighting{Holder: HolderLiveOurs, Session: tmux.Session{Generation: "launch", Pasted: pasted}}
			slices.SortFunc(t.queue, t.byPlace)
			return t
		}
		names := func(t *turn) (out []string) {
			for _, m := range t.queue {
				out = append(out, m.Name)
			}
			return out
		}

		It("has it before the others in the turn in which it was made, and in its place later", func() {
			t := at("", early)
			t.created(boot.DeepCopy())
			Expect(order(t)).To(Equal([]string{boot.Name + " 2", "early 1"}))
			Expect(t.status.LastSequence).To(BeEquivalentTo(2))
			t.created(boot.DeepCopy())
			Expect(order(t)).To(HaveLen(2), "it is there once")
			Expect(order(at("", early, boot))).To(Equal([]string{boot.Name + " 2", "early 1"}))

			By("made in an earlier life of the agent")
			mem = &memory{}
			t = at("", early)
			boot.Status.Sequence = 7
			t.created(boot.DeepCopy())
			Expect(order(t)).To(Equal([]string{boot.Name + " 7", "early 1"}))
			t = at("", early)
			boot.Status.Outcome = api.OutcomeSubmitted
			t.created(boot.DeepCopy())
			Expect(order(t)).To(Equal([]string{"early 1"}))
		})

		It("brings what stands in the input box to its end before it", func() {
			t := at("", early)
			Expect(t.attempt(t.head())).To(Succeed())
			Expect(names(at("uid-early", early, boot))).To(Equal([]string{"early", boot.Name}))
			Expect(names(at("", early, boot))).To(Equal([]string{boot.Name, "early"}), "nothing was typed")
			mem = &memory{}
			Expect(names(at("uid-early", early, boot))).To(Equal([]string{"early", boot.Name}), "by another agent")
			t = at("", early, boot)
			t.snapErr = errors.New("tmux does not answer")
			Expect(t.look()).To(Succeed())
			Expect(names(t)).To(Equal([]string{"early", boot.Name}), "it is not known that nothing was typed")
		})
	})

	It("refuses what is more than may wait, but never what a session is told first", func() {
		class.Spec.Messages.MaxPending = new(int32(2))
		boot, again := message("boot", "1"), message("again", "5")
		boot.Spec.Source.Type, again.Spec.Source.Type = api.SourceBoot, api.SourceBoot
		t := look(boot, message("a", "2"), message("b", "3"), message("c", "4"), again)
		Expect(order(t)).To(Equal([]string{"boot 1", "a 2", "b 3", "again 5"}))
		Expect(store.writes).To(Equal([]string{"c 4 QueueFull"}))
	})

	It("lets those stay that have their place, when the limit becomes smaller", func() {
		messages := []*api.SessionMessage{message("a", "1"), message("b", "2"), message("c", "3")}
		for i, m := range messages {
			m.Status.Sequence = int64(i + 1)
		}
		class.Spec.Messages.MaxPending = new(int32(1))
		t := look(slices.Concat(messages, []*api.SessionMessage{message("d", "4")})...)
		Expect(order(t)).To(Equal([]string{"a 1", "b 2", "c 3"}))
		Expect(store.writes).To(Equal([]string{"d 4 QueueFull"}))
	})
})
