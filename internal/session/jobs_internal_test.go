package session

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

var _ = Describe("Jobs", func() {
	var (
		j    *Jobs
		told chan types.UID
		stop context.CancelFunc
		over chan struct{}
	)
	BeforeEach(func() {
		told, over = make(chan types.UID, 16), make(chan struct{})
		j = NewJobs(func(uid types.UID) { told <- uid })
		ctx, cancel := context.WithCancel(context.Background())
		stop = cancel
		go func() {
			defer close(over)
			_ = j.Start(ctx)
		}()
		Eventually(func() bool { j.mu.Lock(); defer j.mu.Unlock(); return j.base != nil }).Should(BeTrue())
		DeferCleanup(func() { stop(); Eventually(over).Should(BeClosed()) })
	})
	answer := func(v any, err error) func(context.Context) (any, error) {
		return func(context.Context) (any, error) { return v, err }
	}

	It("runs one job for a session, tells its end, and gives its outcome once", func() {
		release, begun := make(chan struct{}), 0
		slow := func(context.Context) (any, error) { begun++; <-release; return "made", nil }
		_, finished := j.run("a", "prepare", slow)
		Expect(finished).To(BeFalse())
		_, finished = j.run("a", "prepare", slow)
		Expect(finished).To(BeFalse(), "it is under way")
		close(release)
		Eventually(told).Should(Receive(Equal(types.UID("a"))))
		o, finished := j.run("a", "prepare", slow)
		Expect(finished).To(BeTrue())
		Expect(o).To(Equal(outcome{value: "made"}))
		Expect(begun).To(Equal(1))
		_, finished = j.run("a", "prepare", answer(nil, errors.New("no")))
		Expect(finished).To(BeFalse(), "the next call begins anew")
		Eventually(told).Should(Receive())
		o, _ = j.run("a", "prepare", nil)
		Expect(o.err).To(MatchError("no"))
	})

	It("begins nothing of another kind while one is under way, and drops what nobody wants any more", func() {
		release := make(chan struct{})
		_, _ = j.run("a", "prepare", func(context.Context) (any, error) { <-release; return nil, nil })
		_, finished := j.run("a", "remove", answer("removed", nil))
		Expect(finished).To(BeFalse())
		Consistently(told, 50*time.Millisecond).ShouldNot(Receive())
		close(release)
		Eventually(told).Should(Receive())
		_, finished = j.run("a", "remove", answer("removed", nil))
		Expect(finished).To(BeFalse())
		Eventually(told).Should(Receive(), "it begins without being asked twice")
		o, finished := j.run("a", "remove", nil)
		Expect(finished).To(BeTrue())
		Expect(o.value).To(Equal("removed"))
	})

	It("forgets what is over of a session that is gone", func() {
		_, _ = j.run("a", "prepare", answer("made", nil))
		Eventually(told).Should(Receive())
		j.forget("a")
		Expect(j.running).To(BeEmpty())
	})

	It("runs a few at a time, and ends with its context", func() {
		running := make(chan struct{}, 100)
		for _, uid := range []types.UID{"a", "b", "c", "d", "e", "f"} {
			_, _ = j.run(uid, "prepare", func(ctx context.Context) (any, error) {
				running <- struct{}{}
				<-ctx.Done()
				return nil, ctx.Err()
			})
		}
		Eventually(running).Should(HaveLen(maxJobs))
		Consistently(running, 50*time.Millisecond).Should(HaveLen(maxJobs))
		stop()
		Eventually(over).Should(BeClosed())
		o, finished := j.run("g", "prepare", answer(nil, nil))
		Expect(finished).To(BeTrue())
		Expect(o.err).To(MatchError(errJobsIdle))
	})
})
