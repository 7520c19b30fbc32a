package session

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/event"
	"github.com/theloop-dev/the-loop/internal/harness"
)

// told keeps the names of events.
type told struct {
	mu    sync.Mutex
	names []string
	// slow is what telling waits for, if anything.
	slow func()
}

func (t *told) Emit(e event.Event, _ string, _ ...any) {
	if t.slow != nil {
		t.slow()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.names = append(t.names, e.Name)
}

func (t *told) count(name string) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.names {
		if s == name {
			n++
		}
	}
	return n
}

var _ = Describe("the watch of what harnesses share (H09)", func() {
	const good = `{"hasCompletedOnboarding": true}`
	var (
		config  string
		files   []harness.SharedConfig
		c       *Configs
		tells   *told
		changes chan struct{}
		ctx     = context.Background()
	)
	// check is what keeps a session from being started, "" for nothing.
	check := func() string {
		if o := c.Check(ctx, "claude", files); o != nil {
			return o.Message
		}
		return ""
	}
	now := func() string { b, _ := os.ReadFile(config); return string(b) }
	copied := func() string {
		all, _ := filepath.Glob(filepath.Join(filepath.Dir(config), "..", "copies", "*.json"))
		if len(all) != 1 {
			return ""
		}
		b, _ := os.ReadFile(all[0])
		return string(b)
	}
	// lookedAt: what is there now is what was looked at last.
	lookedAt := func() bool {
		f := c.known("claude", files[0])
		f.mu.Lock()
		defer f.mu.Unlock()
		return markOf(config).there && markOf(config).same(f.seen[0])
	}
	write := func(text string) { Expect(os.WriteFile(config, []byte(text), 0o600)).To(Succeed()) }
	BeforeEach(func() {
		base := GinkgoT().TempDir()
		dir := filepath.Join(base, "home")
		Expect(os.Mkdir(dir, 0o700)).To(Succeed())
		config = filepath.Join(dir, ".claude.json")
		write(good)
		a, err := harness.Get("claude")
		Expect(err).NotTo(HaveOccurred())
		files, err = a.(harness.ConfigSharer).Shared(harness.PrepareOptions{
			Trust: true, Lookup: func(k string) string { return map[string]string{"HOME": dir}[k] },
			LockDir: filepath.Join(base, "locks"), CopyDir: filepath.Join(base, "copies"),
		})
		Expect(err).NotTo(HaveOccurred())
		ch := make(chan struct{}, 100)
		tells, changes = &told{}, ch
		c = &Configs{Clock: clock.RealClock{}, Log: logr.Discard(), Host: tells, Changed: func() { ch <- struct{}{} }}
	})
	// start watches.
	start := func() {
		GinkgoHelper()
		Expect(check()).To(BeEmpty())
		ctx, stop := context.WithCancel(ctx)
		done := make(chan error)
		go func() { done <- c.Start(ctx) }()
		DeferCleanup(func() { stop(); Expect(<-done).To(Succeed()) })
	}

	It("keeps what is sound, and restores what is left half written, without a look at any session; not for ever", func() {
		start()
		const newer = `{"hasCompletedOnboarding": true, "numStartups": 2}`
		write(newer)
		Eventually(copied).WithTimeout(10 * time.Second).Should(Equal(newer))
		for i := range maxRestores {
			write(newer[:10+i])
			Eventually(func() int { return tells.count("host.config_restored") }).WithTimeout(20 * time.Second).Should(Equal(i + 1))
			Expect(now()).To(Equal(newer))
			Eventually(changes).Should(Receive())
		}
		write(newer[:5])
		Eventually(func() int { return tells.count("host.config_broken") }).WithTimeout(20 * time.Second).Should(Equal(maxRestores + 1))
		Eventually(check).Should(ContainSubstring("it was restored 3 times"))
		Expect(now()).To(Equal(newer[:5]))
		Expect(filepath.Glob(config + ".broken-*")).To(HaveLen(maxRestores))
	})

	It("holds starts as soon as it may be broken, and tells it only of what stays so", func() {
		start()
		write(`{"a":1,}`)
		o := c.Check(context.Background(), "claude", files)
		Expect(o).NotTo(BeNil())
		Expect(o.Reason).To(Equal(api.ReasonConfigurationBroken))
		Expect(o.Message).To(ContainSubstring("or is being written"))
		Expect(tells.count("host.config_broken")).To(BeZero())
		Eventually(func() int { return tells.count("host.config_broken") }).WithTimeout(20 * time.Second).Should(Equal(1))
		Expect(check()).To(ContainSubstring("put the last good one back"))
		By("a file that takes its place by a rename")
		Expect(os.WriteFile(config+".tmp", []byte(good), 0o600)).To(Succeed())
		for len(changes) > 0 {
			<-changes
		}
		Expect(os.Rename(config+".tmp", config)).To(Succeed())
		Eventually(changes).WithTimeout(10 * time.Second).Should(Receive())
		Expect(check()).To(BeEmpty())
	})

	It("goes on in the directory that takes the place of one that was moved away", func() {
		start()
		dir := filepath.Dir(config)
		Expect(os.Rename(dir, dir+".away")).To(Succeed())
		Expect(os.Mkdir(dir, 0o700)).To(Succeed())
		write(good)
		Eventually(lookedAt).WithTimeout(20 * time.Second).Should(BeTrue())
		write(`{"hasCompletedOnboarding": true, "numStartups": 2}`)
		Eventually(lookedAt).WithTimeout(10 * time.Second).Should(BeTrue())
	})

	It("notices that only the mode of a file was changed", func() {
		start()
		mode := os.FileMode(0o600)
		Eventually(func() bool { // whatever the resolution of the clock of the file system
			before := markOf(config)
			mode ^= 0o040
			Expect(os.Chmod(config, mode)).To(Succeed())
			return markOf(config).same(before)
		}).Should(BeFalse())
		Eventually(lookedAt).WithTimeout(10 * time.Second).Should(BeTrue())
	})

	Describe("by a clock that is set", func() {
		var fake *clocktesting.FakePassiveClock
		step := func(d time.Duration) { fake.SetTime(fake.Now().Add(d)) }
		newer := func(n int) string { return fmt.Sprintf(`{"hasCompletedOnboarding": true, "numStartups": %d}`, n) }
		BeforeEach(func() {
			fake = clocktesting.NewFakePassiveClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
			c.Clock = fake
			Expect(check()).To(BeEmpty())
			Expect(copied()).To(Equal(good), "the first one at once")
		})

		It("restores a torn file where no watch is to be had", func() {
			closed, err := fsnotify.NewWatcher()
			Expect(err).NotTo(HaveOccurred())
			Expect(closed.Close()).To(Succeed())
			c.watcher = closed
			write(good[:10])
			Expect(check()).To(ContainSubstring("or is being written"))
			step(configQuiet)
			Expect(check()).To(BeEmpty())
			Expect(tells.names).To(Equal([]string{"host.config_broken", "host.config_restored"}))
			Expect(now()).To(Equal(good))
		})

		It("goes on holding a broken file that cannot be read any more", func() {
			write(`{"a":1,}`)
			Expect(check()).To(ContainSubstring("or is being written"))
			step(configQuiet)
			Expect(check()).To(ContainSubstring("is not valid JSON"))
			Expect(os.Remove(config)).To(Succeed())
			Expect(os.Mkdir(config, 0o700)).To(Succeed())
			Expect(check()).To(ContainSubstring("is not valid JSON"))
			Expect(os.Remove(config)).To(Succeed())
			write(good)
			Expect(check()).To(BeEmpty())
			Expect(tells.names).To(Equal([]string{"host.config_broken"}))
		})

		It("copies what is sound once nobody writes it, or has for long, and not each time", func() {
			write(newer(1))
			Expect(check()).To(BeEmpty())
			Expect(copied()).To(Equal(good))
			step(copyQuiet)
			Expect(check()).To(BeEmpty())
			Expect(copied()).To(Equal(newer(1)))
			var copies []string
			for i := range 12 {
				write(newer(10 + i))
				Expect(check()).To(BeEmpty())
				if last := copied(); len(copies) == 0 || copies[len(copies)-1] != last {
					copies = append(copies, last)
				}
				step(time.Second)
			}
			Expect(copies).To(Equal([]string{newer(1), newer(20)}))
		})

		It("restores what was sound last, also where that was not copied yet", func() {
			write(newer(7))
			Expect(check()).To(BeEmpty())
			write(newer(7)[:45])
			Expect(check()).To(ContainSubstring("or is being written"))
			Expect(copied()).To(Equal(good))
			step(configQuiet)
			Expect(check()).To(BeEmpty())
			Expect(now()).To(Equal(newer(7)))
		})

		It("tells of it while nobody waits for the file", func() {
			tells.slow = func() { check() } // as another Reconcile does
			write(`{"a":1,}`)
			check()
			step(configQuiet)
			done := make(chan string)
			go func() { done <- check() }()
			Eventually(done).WithTimeout(10 * time.Second).Should(Receive(ContainSubstring("is not valid JSON")))
		})
	})
})
