package session_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/session"
	"github.com/theloop-dev/the-loop/internal/tmux"
)

var errSilent = errors.New("tmux did not answer")

// listing is one answer of a fake source.
type listing struct {
	snap tmux.Snapshot
	err  error
}

// source answers with what a test hands it.
type source struct {
	answer func(context.Context) (tmux.Snapshot, error)
	events chan struct{}

	mu      sync.Mutex
	watched [][]int
}

// Snapshot implements session.Source.
func (s *source) Snapshot(ctx context.Context) (tmux.Snapshot, error) { return s.answer(ctx) }

// Events implements session.Source.
func (s *source) Events(context.Context) <-chan struct{} { return s.events }

// WatchPanes implements session.Source.
func (s *source) WatchPanes(pids []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched = append(s.watched, pids)
}

// change is one call of Changed.
type change struct {
	UIDs, Names []string
	All         bool
}

var everything = change{All: true}

// recorder keeps the calls of Changed.
type recorder struct {
	mu    sync.Mutex
	calls []change
}

func (r *recorder) changed(uids, names []string, all bool) {
	slices.Sort(uids)
	slices.Sort(names)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, change{uids, names, all})
}

// take gives the calls since the last take.
func (r *recorder) take() []change {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.calls
	r.calls = nil
	return out
}

func sessionOf(id, name, uid string, panes ...tmux.Pane) tmux.Session {
	return tmux.Session{ID: id, Name: name, UID: uid, Panes: panes}
}

func alive(id string, pid int) tmux.Pane { return tmux.Pane{ID: id, PID: pid} }

var _ = Describe("Lister", func() {
	var (
		src  *source
		rec  *recorder
		l    *session.Lister
		next listing
		ctx  context.Context
	)
	BeforeEach(func() {
		ctx = context.Background()
		src, rec = &source{}, &recorder{}
		src.answer = func(context.Context) (tmux.Snapshot, error) { return next.snap, next.err }
		l = &session.Lister{Source: src, Changed: rec.changed}
	})
	server := tmux.Epoch{PID: 77, StartTime: 1}
	// see lists sessions.
	see := func(epoch tmux.Epoch, sessions ...tmux.Session) []change {
		GinkgoHelper()
		next = listing{snap: tmux.Snapshot{Epoch: epoch, Taken: time.Now(), Sessions: sessions}}
		got, err := l.Refresh(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(Equal(next.snap))
		latest, err := l.Latest()
		Expect(err).NotTo(HaveOccurred())
		Expect(latest).To(Equal(next.snap))
		return rec.take()
	}
	fail := func() []change {
		GinkgoHelper()
		next = listing{err: errSilent}
		_, err := l.Refresh(ctx)
		Expect(err).To(MatchError(errSilent))
		return rec.take()
	}

	It("has nothing to say before the first listing", func() {
		_, err := l.Latest()
		Expect(err).To(MatchError(ContainSubstring("has not been listed yet")))
	})

	It("tells of everything at the first answer, also when there is no session and no server", func() {
		Expect(see(tmux.Epoch{})).To(ConsistOf(everything))
		Expect(see(tmux.Epoch{})).To(BeEmpty())
	})

	It("tells of everything when another life of the server begins (T05, P44)", func() {
		a := sessionOf("$1", "loop-a", "a", alive("%1", 11))
		see(server, a)
		Expect(see(tmux.Epoch{PID: 78, StartTime: 2}, a)).To(ConsistOf(everything))
		Expect(see(tmux.Epoch{})).To(ConsistOf(everything))
	})

	It("tells of everything once when tmux falls silent, and when it answers again (T06)", func() {
		a := sessionOf("$1", "loop-a", "a", alive("%1", 11))
		see(server, a)
		Expect(fail()).To(ConsistOf(everything))
		_, err := l.Latest()
		Expect(err).To(MatchError(errSilent), "silence is never the state before it")
		Expect(fail()).To(BeEmpty())
		Expect(see(server, a)).To(ConsistOf(everything))
		Expect(see(server, a)).To(BeEmpty())
	})

	It("tells of everything when the very first listing fails", func() {
		Expect(fail()).To(ConsistOf(everything))
	})

	DescribeTable("difference", func(before, after []tmux.Session, uids, names []string) {
		see(server, before...)
		got := see(server, after...)
		if len(names) == 0 {
			Expect(got).To(BeEmpty())
			return
		}
		Expect(got).To(ConsistOf(change{UIDs: uids, Names: names}))
	},
		Entry("none", []tmux.Session{sessionOf("$1", "loop-a", "a")}, []tmux.Session{sessionOf("$1", "loop-a", "a")}, nil, nil),
		Entry("none but the order", []tmux.Session{sessionOf("$1", "loop-a", "a"), sessionOf("$2", "loop-b", "b")},
			[]tmux.Session{sessionOf("$2", "loop-b", "b"), sessionOf("$1", "loop-a", "a")}, nil, nil),
		Entry("a session came", nil, []tmux.Session{sessionOf("$1", "loop-a", "a")}, []string{"a"}, []string{"loop-a"}),
		Entry("a session that is not ours came", nil, []tmux.Session{sessionOf("$1", "loop-a", "")}, nil, []string{"loop-a"}),
		Entry("a session went", []tmux.Session{sessionOf("$1", "loop-a", "a"), sessionOf("$2", "loop-b", "b")},
			[]tmux.Session{sessionOf("$2", "loop-b", "b")}, []string{"a"}, []string{"loop-a"}),
		Entry("a pane died", []tmux.Session{sessionOf("$1", "loop-a", "a", alive("%1", 11)), sessionOf("$2", "loop-b", "b")},
			[]tmux.Session{sessionOf("$1", "loop-a", "a", tmux.Pane{ID: "%1", Dead: true}), sessionOf("$2", "loop-b", "b")}, []string{"a"}, []string{"loop-a"}),
		Entry("an exit status became known", []tmux.Session{sessionOf("$1", "loop-a", "a", tmux.Pane{ID: "%1", Dead: true, Dying: true})},
			[]tmux.Session{sessionOf("$1", "loop-a", "a", tmux.Pane{ID: "%1", Dead: true, ExitStatus: new(0)})}, []string{"a"}, []string{"loop-a"}),
		Entry("the same name under another id", []tmux.Session{sessionOf("$1", "loop-a", "a")}, []tmux.Session{sessionOf("$2", "loop-a", "b")},
			[]string{"a", "b"}, []string{"loop-a", "loop-a"}),
		Entry("renamed: whoever waits for the old name is told too", []tmux.Session{sessionOf("$1", "loop-a", "")}, []tmux.Session{sessionOf("$1", "mine", "")},
			nil, []string{"loop-a", "mine"}),
		Entry("stamped anew: the former owner is told too", []tmux.Session{sessionOf("$1", "loop-a", "a")}, []tmux.Session{sessionOf("$1", "loop-a", "b")},
			[]string{"a", "b"}, []string{"loop-a", "loop-a"}),
		Entry("the stamp was taken off", []tmux.Session{sessionOf("$1", "loop-a", "a")}, []tmux.Session{sessionOf("$1", "loop-a", "")},
			[]string{"a"}, []string{"loop-a", "loop-a"}),
	)

	It("watches the living panes of what is ours, and no other process", func() {
		see(server,
			sessionOf("$1", "loop-a", "a", alive("%1", 11), tmux.Pane{ID: "%2", PID: 12, Dead: true}, alive("%3", 13)),
			sessionOf("$2", "theirs", "", alive("%4", 14)), sessionOf("$3", "loop-b", "b", alive("%5", 0), alive("%6", 1)))
		Expect(src.watched).To(Equal([][]int{{11, 13}}))
		fail()
		Expect(src.watched).To(HaveLen(1), "an unanswered listing takes nothing off the watch")
	})

	It("needs no Changed", func() {
		l.Changed = nil
		next = listing{snap: tmux.Snapshot{Taken: time.Now()}}
		Expect(l.Refresh(ctx)).To(Equal(next.snap))
		next = listing{err: errSilent}
		_, err := l.Refresh(ctx)
		Expect(err).To(MatchError(errSilent))
	})

	Describe("two listings that overtake each other", func() {
		// overtake begins a listing, lets a newer one finish, and then the older one.
		overtake := func(older, newer listing) []change {
			GinkgoHelper()
			begun, finish := make(chan struct{}), make(chan struct{})
			src.answer = func(context.Context) (tmux.Snapshot, error) {
				began := time.Now()
				close(begun)
				<-finish
				older.snap.Taken = began
				return older.snap, older.err
			}
			done := make(chan struct{})
			go func() {
				defer GinkgoRecover()
				defer close(done)
				_, err := l.Refresh(ctx)
				if older.err == nil {
					Expect(err).NotTo(HaveOccurred())
				}
			}()
			<-begun
			src.answer = func(context.Context) (tmux.Snapshot, error) {
				newer.snap.Taken = time.Now()
				return newer.snap, newer.err
			}
			_, err := l.Refresh(ctx)
			Expect(errors.Is(err, newer.err)).To(BeTrue())
			rec.take()
			close(finish)
			<-done
			return rec.take()
		}
		old := listing{snap: tmux.Snapshot{Epoch: server, Sessions: []tmux.Session{sessionOf("$1", "loop-old", "old")}}}
		current := listing{snap: tmux.Snapshot{Epoch: server, Sessions: []tmux.Session{sessionOf("$1", "loop-new", "new")}}}
		silent := listing{err: errSilent}

		It("keeps the newer snapshot", func() {
			Expect(overtake(old, current)).To(BeEmpty())
			latest, err := l.Latest()
			Expect(err).NotTo(HaveOccurred())
			Expect(latest.Sessions).To(Equal(current.snap.Sessions))
		})
		It("keeps the newer snapshot against an older error", func() {
			Expect(overtake(silent, current)).To(BeEmpty())
			_, err := l.Latest()
			Expect(err).NotTo(HaveOccurred())
		})
		It("keeps the newer error against an older snapshot: silence is not absence", func() {
			Expect(overtake(old, silent)).To(BeEmpty())
			_, err := l.Latest()
			Expect(err).To(MatchError(errSilent))
		})
	})

	It("learns nothing of the server from a caller who goes away", func() {
		see(server, sessionOf("$1", "loop-a", "a"))
		gone, cancel := context.WithCancel(ctx)
		cancel()
		src.answer = func(ctx context.Context) (tmux.Snapshot, error) { return tmux.Snapshot{}, ctx.Err() }
		_, err := l.Refresh(gone)
		Expect(err).To(MatchError(context.Canceled))
		_, err = l.Latest()
		Expect(err).NotTo(HaveOccurred())
		Expect(rec.take()).To(BeEmpty())
	})

	It("is safe when many ask while it lists", func() {
		var n atomic.Int64
		src.answer = func(context.Context) (tmux.Snapshot, error) {
			now := time.Now()
			if i := n.Add(1); i%7 == 0 {
				return tmux.Snapshot{}, errSilent
			}
			return tmux.Snapshot{Epoch: server, Taken: now, Sessions: []tmux.Session{sessionOf("$1", "loop-a", "a", alive("%1", int(n.Load())))}}, nil
		}
		src.events = make(chan struct{})
		l.Interval = time.Millisecond
		running, stop := context.WithCancel(ctx)
		var all sync.WaitGroup
		all.Go(func() { _ = l.Start(running) })
		for range 4 {
			all.Go(func() {
				var newest time.Time
				for range 200 {
					_, _ = l.Refresh(running)
					if snap, err := l.Latest(); err == nil {
						if snap.Taken.Before(newest) {
							panic("an older snapshot came back")
						}
						newest = snap.Taken
					}
				}
			})
		}
		all.Go(func() {
			for range 100 {
				src.events <- struct{}{}
			}
		})
		Eventually(n.Load).Should(BeNumerically(">", 900))
		stop()
		all.Wait()
	})
})

// startLister runs a lister in a bubble, in which time passes only while everybody
// waits. listings gives the number of listings so far.
func startLister(t *testing.T, takes time.Duration, err error, events chan struct{}) (listings func() int64) {
	var n atomic.Int64
	src := &source{events: events, answer: func(context.Context) (tmux.Snapshot, error) {
		if n.Add(1) > 1000 {
			panic("the lister spins")
		}
		taken := time.Now()
		time.Sleep(takes)
		return tmux.Snapshot{Taken: taken}, err
	}}
	l := &session.Lister{Source: src}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- l.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return n.Load
}

func TestListerLists(t *testing.T) {
	for name, c := range map[string]struct {
		takes time.Duration
		err   error
		in    time.Duration
		want  int64
	}{
		"at once":                              {want: 1},
		"every second":                         {in: 10*time.Second + time.Millisecond, want: 11},
		"every second while that costs little": {takes: 50 * time.Millisecond, in: 10 * time.Second, want: 10},
		"less often when it takes long":        {takes: 100 * time.Millisecond, in: 10 * time.Second, want: 5},
		"but at least every five seconds":      {takes: 500 * time.Millisecond, in: 21 * time.Second, want: 4},
		"every second while there is no answer, however long it takes to know that": {
			takes: 2 * time.Second, err: errSilent, in: 10 * time.Second, want: 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listings := startLister(t, c.takes, c.err, nil)
				time.Sleep(c.in)
				synctest.Wait()
				if got := listings(); got != c.want {
					t.Errorf("%d listings, want %d", got, c.want)
				}
			})
		})
	}
}

func TestListerHurriesForEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(chan struct{})
		listings := startLister(t, 0, nil, events)
		synctest.Wait()
		for want := int64(2); want < 5; want++ {
			events <- struct{}{}
			synctest.Wait()
			if got := listings(); got != want {
				t.Fatalf("%d listings, want %d", got, want)
			}
		}
		// The regular listing is due a second after the last one, whatever caused that.
		time.Sleep(time.Second - time.Millisecond)
		synctest.Wait()
		if got := listings(); got != 4 {
			t.Fatalf("%d listings before the interval is over", got)
		}
	})
}

func TestListerGoesOnWhenTheEventsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(chan struct{})
		listings := startLister(t, 0, nil, events)
		synctest.Wait()
		close(events)
		time.Sleep(5*time.Second + time.Millisecond)
		synctest.Wait()
		if got := listings(); got < 6 || got > 7 {
			t.Errorf("%d listings in five seconds: a closed channel must not spin", got)
		}
	})
}
