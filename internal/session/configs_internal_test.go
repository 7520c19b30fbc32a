package session

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/event"
	"github.com/theloop-dev/the-loop/internal/harness"
)

// told keeps the names of events.
type told struct {
	mu    sync.Mutex
	names []string
}

func (t *told) Emit(e event.Event, _ string, _ ...any) {
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
	)
	write := func(text string) { Expect(os.WriteFile(config, []byte(text), 0o600)).To(Succeed()) }
	BeforeEach(func() {
		dir := GinkgoT().TempDir()
		config = filepath.Join(dir, ".claude.json")
		write(good)
		a, err := harness.Get("claude")
		Expect(err).NotTo(HaveOccurred())
		files, err = a.(harness.ConfigSharer).Shared(harness.PrepareOptions{
			Trust: true, Lookup: func(k string) string { return map[string]string{"HOME": dir}[k] },
			LockDir: filepath.Join(dir, "locks"), CopyDir: filepath.Join(dir, "copies"),
		})
		Expect(err).NotTo(HaveOccurred())
		ch := make(chan struct{}, 100)
		tells, changes = &told{}, ch
		c = &Configs{Clock: clock.RealClock{}, Log: logr.Discard(), Host: tells, Changed: func() { ch <- struct{}{} }}
		Expect(c.Check(context.Background(), "claude", files)).To(BeNil())
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- c.Start(ctx) }()
		DeferCleanup(func() { stop(); Expect(<-done).To(Succeed()) })
	})

	It("keeps what is sound, and restores what is left half written, without a look at any session; not for ever", func() {
		const newer = `{"hasCompletedOnboarding": true, "numStartups": 2}`
		write(newer)
		copied := func() string {
			all, _ := filepath.Glob(filepath.Join(filepath.Dir(config), "copies", "*.json"))
			if len(all) != 1 {
				return ""
			}
			b, _ := os.ReadFile(all[0])
			return string(b)
		}
		Eventually(copied).WithTimeout(10 * time.Second).Should(Equal(newer))
		now := func() string { b, _ := os.ReadFile(config); return string(b) }
		for i := range maxRestores {
			write(newer[:10+i])
			Eventually(func() int { return tells.count("host.config_restored") }).WithTimeout(20 * time.Second).Should(Equal(i + 1))
			Expect(now()).To(Equal(newer))
			Eventually(changes).Should(Receive())
		}
		write(newer[:5])
		Eventually(func() int { return tells.count("host.config_broken") }).WithTimeout(20 * time.Second).Should(Equal(maxRestores + 1))
		Eventually(func() string { return c.Check(context.Background(), "claude", files).Message }).Should(ContainSubstring("it was restored 3 times"))
		Expect(now()).To(Equal(newer[:5]))
		Expect(filepath.Glob(config + ".broken-*")).To(HaveLen(maxRestores))
	})

	It("holds starts as soon as it may be broken, and tells it only of what stays so", func() {
		write(`{"a":1,}`)
		o := c.Check(context.Background(), "claude", files)
		Expect(o).NotTo(BeNil())
		Expect(o.Reason).To(Equal(api.ReasonConfigurationBroken))
		Expect(o.Message).To(ContainSubstring("or is being written"))
		Expect(tells.count("host.config_broken")).To(BeZero())
		Eventually(func() int { return tells.count("host.config_broken") }).WithTimeout(20 * time.Second).Should(Equal(1))
		Expect(c.Check(context.Background(), "claude", files).Message).To(ContainSubstring("put the last good one back"))
		By("a file that takes its place by a rename")
		Expect(os.WriteFile(config+".tmp", []byte(good), 0o600)).To(Succeed())
		for len(changes) > 0 {
			<-changes
		}
		Expect(os.Rename(config+".tmp", config)).To(Succeed())
		Eventually(changes).WithTimeout(10 * time.Second).Should(Receive())
		Expect(c.Check(context.Background(), "claude", files)).To(BeNil())
	})
})
