package harness

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/harness/hook"
)

var _ = Describe("what a harness told, after the clock was set back", func() {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

	It("happened by now at the latest", func() {
		told := State{Started: now.Add(time.Hour), Since: now.Add(time.Second)}
		Expect(told.By(now)).To(Equal(State{Started: now, Since: now}))
	})

	It("stays as it is where it is of the past", func() {
		told := State{Started: now.Add(-time.Hour), Since: now, Taken: []Taken{{Digest: "a", Time: now}}}
		Expect(told.By(now)).To(Equal(told))
		Expect(State{}.By(now)).To(BeZero())
	})

	It("is after a mark by its place", func() {
		at := func(launch string, n int64) hook.Mark { return hook.Mark{Launch: launch, Number: n} }
		s := State{Taken: []Taken{{"a", now, at("l1", 3)}, {"a", now.Add(-time.Hour), at("l2", 2)}, {"b", now, at("l2", 4)}}}
		when, ok := s.TookAfter("a", at("l2", 1))
		Expect(ok).To(BeTrue())
		Expect(when).To(Equal(now.Add(-time.Hour)))
		for _, m := range []hook.Mark{at("l2", 2), at("l1", 3), at("l3", 0)} {
			_, ok = s.TookAfter("a", m)
			Expect(ok).To(BeFalse())
		}
	})

	It("has claude take input as soon as after any other start", func() {
		home := GinkgoT().TempDir()
		p := Process{PID: 1, Lookup: func(name string) string { return map[string]string{"HOME": home}[name] }}
		ahead := State{ConversationID: "c1", Started: time.Now().Add(time.Hour)}
		Expect(claude{}.Recheck(ahead, p).Ready).To(BeFalse())
		started := ahead.By(time.Now())
		Eventually(func() bool { return claude{}.Recheck(started, p).Ready }).WithTimeout(10 * time.Second).Should(BeTrue())
	})
})
