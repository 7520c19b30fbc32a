package session

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/ptr"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/workitem"
)

// enqueue gives every new message its place. Only this agent gives numbers for this
// session, so their order is that in which it first saw the messages; those seen
// together are ordered by creation, the boot message first. What can be typed at once is
// not written down for that alone: one that is found again after a crash gets the same
// place, because the one that was begun goes first and the others by creation.
func (t *turn) enqueue(ctx context.Context) error {
	for _, m := range t.Messages {
		if !m.Status.Outcome.Final() {
			t.queue = append(t.queue, m)
		}
		t.mem.sequence = max(t.mem.sequence, m.Status.Sequence)
	}
	t.mem.sequence = max(t.mem.sequence, t.status.LastSequence)
	// Without the journal nothing is typed, which says so; the rest goes on.
	_ = t.recall()
	t.places()
	slices.SortFunc(t.queue, t.byPlace)
	if t.paused() {
		return nil
	}
	ahead := 0
	for _, m := range slices.Clone(t.queue) {
		anew, first := m.Status.Sequence == 0, m.Spec.Source.Type == api.SourceBoot
		if anew {
			t.place(m)
		}
		if first {
			continue // nobody sent it, and it keeps nobody out
		}
		if !anew || ahead < t.maxPending() {
			ahead++
			if anew {
				t.queued(m)
			}
			continue
		}
		why := fmt.Sprintf("%d messages wait for the session already, and messages.maxPending of its class allows no more: send it again later", ahead)
		if err := t.finish(ctx, m, api.OutcomeRefused, api.ReasonQueueFull, why); err != nil {
			delete(t.mem.places, m.UID) // it has none
			return err
		}
	}
	t.status.LastSequence = t.mem.sequence
	return nil
}

// created puts the first message of a launch, which was just made, into the queue: the harness
// may come to its prompt while this turn still goes on.
func (t *turn) created(boot *api.SessionMessage) {
	if boot.Status.Outcome.Final() || slices.ContainsFunc(t.queue, func(m *api.SessionMessage) bool { return m.UID == boot.UID }) {
		return
	}
	if boot.Status.Sequence == 0 {
		t.place(boot)
		t.status.LastSequence = t.mem.sequence
	}
	t.queue = append(t.queue, boot)
	slices.SortFunc(t.queue, t.byPlace)
}

func (t *turn) paused() bool {
	_, paused := t.Object.GetAnnotations()[api.PausedAnnotation]
	return paused
}

// place is what is known of a message that has its place, before that is on record.
type place struct {
	sequence int64
	since    time.Time
}

// places puts messages back into the places that they got in this life of the agent.
func (t *turn) places() {
	for uid := range t.mem.places {
		if !slices.ContainsFunc(t.queue, func(m *api.SessionMessage) bool { return m.UID == uid && m.Status.Sequence == 0 }) {
			delete(t.mem.places, uid)
		}
	}
	for _, m := range t.queue {
		if p, ok := t.mem.places[m.UID]; ok {
			t.setPlace(m, p)
		}
	}
}

// place gives a new message the next place.
func (t *turn) place(m *api.SessionMessage) {
	t.mem.sequence++
	p := place{t.mem.sequence, t.now()}
	if t.mem.places == nil {
		t.mem.places = map[types.UID]place{}
	}
	t.mem.places[m.UID] = p
	t.setPlace(m, p)
}

func (t *turn) setPlace(m *api.SessionMessage, p place) {
	m.Status.Sequence, m.Status.SessionUID, m.Status.AcceptedTime = p.sequence, t.Object.GetUID(), new(metav1.NewMicroTime(p.since))
	m.Status.Outcome, m.Status.Reason = api.OutcomeQueued, api.ReasonQueued
	t.setMessage(m, api.ConditionAccepted, metav1.ConditionTrue, api.ReasonSequenced, "the message has its place in the queue")
}

// maxPending is how many messages may wait for the session.
func (t *turn) maxPending() int {
	const byDefault = 100
	if t.Class == nil {
		return byDefault
	}
	return int(ptr.Deref(t.Class.Spec.Messages.MaxPending, byDefault))
}

// byPlace orders messages: what stands in the input box, then the first message of the
// present launch before all others, then by sequence, new ones behind, of these the one that
// was begun before a crash first and the others by age.
func (t *turn) byPlace(a, b *api.SessionMessage) int {
	last := func(m *api.SessionMessage) int64 {
		if m.Status.Sequence == 0 {
			return math.MaxInt64
		}
		return m.Status.Sequence
	}
	return cmp.Or(
		cmp.Compare(t.notStanding(a), t.notStanding(b)),
		cmp.Compare(t.notFirst(a), t.notFirst(b)),
		cmp.Compare(last(a), last(b)),
		cmp.Compare(t.notBegun(a), t.notBegun(b)),
		byCreation(a, b),
	)
}

// byCreation orders messages by the versions with which they were created, or where those
// are not known by time and name.
func byCreation(a, b *api.SessionMessage) int {
	if n, err := resourceversion.CompareResourceVersion(createdVersion(a), createdVersion(b)); err == nil {
		return n
	}
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

func createdVersion(m *api.SessionMessage) string { return m.Annotations[api.CreatedVersionAnnotation] }

// notFirst is 0 for the first message of the present launch alone: its name proves
// that it is the one that we made.
func (t *turn) notFirst(m *api.SessionMessage) int {
	obj := t.Object
	if t.status.Launch != nil && m.Spec.Source.Type == api.SourceBoot && m.Name == workitem.MessageName(obj.GetName(), t.bootKey(), string(obj.GetUID())) {
		return 0
	}
	return 1
}

// notStanding is 0 for the message whose text was pasted into the present harness: whatever
// else would be typed waits for it, and it for nothing.
func (t *turn) notStanding(m *api.SessionMessage) int {
	a := t.mem.attempt
	if a.Message == string(m.UID) && t.status.Launch != nil && a.Launch == t.status.Launch.ID && t.attempted(m) {
		return 0
	}
	return 1
}

// notBegun is 0 for the message whose delivery was begun last.
func (t *turn) notBegun(m *api.SessionMessage) int {
	if t.mem.attempt.Message == string(m.UID) {
		return 0
	}
	return 1
}

// head is the message whose turn it is.
func (t *turn) head() *api.SessionMessage {
	if len(t.queue) == 0 {
		return nil
	}
	return t.queue[0]
}

// saveMessage writes the status of a message that stays in the queue. Those before it that
// are not on record yet go first: a place on record must not put it before them.
func (t *turn) saveMessage(ctx context.Context, m *api.SessionMessage) error {
	for _, q := range t.queue {
		if _, unsaved := t.mem.places[q.UID]; !unsaved && q != m {
			continue
		}
		if err := t.Store.SaveMessage(ctx, q); err != nil {
			return err
		}
		delete(t.mem.places, q.UID)
		if q == m {
			return nil
		}
	}
	return nil
}

// waitSoon is how long a message may wait before its status says that it does.
const waitSoon = 2 * time.Second

// waiting writes down what has its place and waits for longer than a moment. It returns
// when to look again.
func (t *turn) waiting(ctx context.Context) (wait time.Duration, err error) {
	for _, m := range t.queue {
		p, unsaved := t.mem.places[m.UID]
		if !unsaved {
			continue
		}
		if left := waitSoon - t.now().Sub(p.since); left > 0 {
			wait = Soonest(wait, left)
			continue
		}
		if err := t.saveMessage(ctx, m); err != nil {
			return 0, t.fail("giving message "+m.Name+" its place", err)
		}
	}
	return wait, nil
}
