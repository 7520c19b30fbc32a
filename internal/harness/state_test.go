package harness

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("what a harness told, after the clock was set back", func() {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

	It("happened by now at the latest", func() {
		told := State{
			Started: now.Add(time.Hour), Since: now.Add(time.Second),
			Taken: []Taken{{"a", now.Add(-time.Second)}, {"b", now.Add(time.Hour)}},
		}
		Expect(told.By(now)).To(Equal(State{Started: now, Since: now, Taken: []Taken{{"a", now.Add(-time.Second)}, {"b", now}}}))
		Expect(told.Taken[1].Time).To(Equal(now.Add(time.Hour)), "another holder of the State reads it")
	})

	It("stays as it is where it is of the past", func() {
		told := State{Started: now.Add(-time.Hour), Since: now, Taken: []Taken{{"a", now}}}
		Expect(told.By(now)).To(Equal(told))
		Expect(State{}.By(now)).To(BeZero())
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
