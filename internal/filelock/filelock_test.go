package filelock

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
)

func TestFilelock(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	RunSpecs(t, "filelock")
}

// gone is the pid of a process that was there.
func gone() int {
	GinkgoHelper()
	cmd := exec.Command("true")
	Expect(cmd.Run()).To(Succeed())
	return cmd.Process.Pid
}

var _ = Describe("a lock", func() {
	var path string
	BeforeEach(func() { path = filepath.Join(GinkgoT().TempDir(), "lock") })

	// lingers has the lock as a child has it that a killed process was about to start.
	lingers := func(pid string) *os.File {
		GinkgoHelper()
		Expect(os.WriteFile(path, []byte(pid), 0o600)).To(Succeed())
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { _ = f.Close() })
		Expect(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)).To(Succeed())
		return f
	}

	It("is held by one at a time, though each removes its file", func() {
		var inside, most, rounds atomic.Int32
		failures := make(chan error, 4)
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for rounds.Load() < 3000 {
					l, err := try(path)
					if err != nil {
						failures <- err
						return
					}
					if l == nil {
						continue
					}
					if n := inside.Add(1); n > 1 {
						most.Store(n)
					}
					for range 20 {
						runtime.Gosched()
					}
					rounds.Add(1)
					inside.Add(-1)
					l.Remove()
				}
			})
		}
		group.Wait()
		Expect(failures).NotTo(Receive())
		Expect(most.Load()).To(BeZero())
		Expect(path).NotTo(BeAnExistingFile())
	})

	It("is waited for until it is free", func(ctx SpecContext) {
		held, err := Acquire(ctx, path)
		Expect(err).NotTo(HaveOccurred())
		got := make(chan *Lock)
		go func() {
			defer GinkgoRecover()
			l, err := Acquire(ctx, path)
			Expect(err).NotTo(HaveOccurred())
			got <- l
		}()
		Consistently(got, 100*time.Millisecond).ShouldNot(Receive())
		held.Release()
		var l *Lock
		Eventually(got).Should(Receive(&l))
		l.Release()
		Expect(path).To(BeARegularFile(), "nobody waits for another file of that name")
	}, SpecTimeout(time.Minute))

	It("is waited for until the context ends, and is its holder's then", func(ctx SpecContext) {
		held, err := Acquire(ctx, path)
		Expect(err).NotTo(HaveOccurred())
		brief, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		_, err = Acquire(brief, path)
		Expect(err).To(MatchError(context.DeadlineExceeded))
		l, err := try(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(l).To(BeNil())
		held.Release()
	}, SpecTimeout(time.Minute))

	It("is refused to a second process by the pid of the first, and free for the next one", func(ctx SpecContext) {
		first, err := Own(ctx, path)
		Expect(err).NotTo(HaveOccurred())
		_, err = Own(ctx, path)
		Expect(err).To(MatchError(&HeldError{Path: path, PID: os.Getpid()}))
		Expect(err).To(MatchError(fmt.Sprintf("process %d holds the lock %s", os.Getpid(), path)))
		first.Release()
		Expect(os.ReadFile(path)).To(BeEmpty(), "nobody reads a stale pid")
		second, err := Own(ctx, path)
		Expect(err).NotTo(HaveOccurred())
		second.Release()
	}, SpecTimeout(time.Minute))

	It("of a process that is gone is waited for while a child of it still has it", func(ctx SpecContext) {
		child := lingers(fmt.Sprintln(gone()))
		time.AfterFunc(200*time.Millisecond, func() { _ = child.Close() })
		l, err := Own(ctx, path)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.ReadFile(path)).To(BeEquivalentTo(fmt.Sprintln(os.Getpid())))
		l.Release()
	}, SpecTimeout(time.Minute))

	DescribeTable("that nobody lets go of is given up", func(ctx SpecContext, pid func() string, want func(pid string) string) {
		said := pid()
		lingers(said)
		_, err := Own(ctx, path)
		Expect(err).To(MatchError(want(said) + " holds the lock " + path))
	},
		Entry("when its process is gone", func() string { return fmt.Sprint(gone()) }, func(pid string) string { return "process " + pid }, SpecTimeout(time.Minute)),
		Entry("when its process has not said who it is", func() string { return "" }, func(string) string { return "another process" }, SpecTimeout(time.Minute)),
		Entry("when its file says something else", func() string { return "-5" }, func(string) string { return "another process" }, SpecTimeout(time.Minute)),
	)

	It("is looked at without a trace", func(ctx SpecContext) {
		Expect(os.WriteFile(path, []byte("4711\n"), 0o600)).To(Succeed())
		Expect(Free(ctx, path)).To(Succeed())
		Expect(os.ReadFile(path)).To(BeEquivalentTo("4711\n"))
		l, err := Own(ctx, path)
		Expect(err).NotTo(HaveOccurred())
		Expect(Free(ctx, path)).To(MatchError(&HeldError{Path: path, PID: os.Getpid()}))
		l.Release()
		Expect(Free(ctx, path)).To(Succeed())
	}, SpecTimeout(time.Minute))

	It("of a process that only looked, or is just being killed, is waited for", func(ctx SpecContext) {
		child := lingers(fmt.Sprintln(os.Getpid()))
		time.AfterFunc(50*time.Millisecond, func() { _ = child.Close() })
		l, err := Own(ctx, path)
		Expect(err).NotTo(HaveOccurred())
		l.Release()
	}, SpecTimeout(time.Minute))

	It("leaves the pid of another's file of that name alone", func(ctx SpecContext) {
		l, err := Own(ctx, path)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.Remove(path)).To(Succeed())
		Expect(os.WriteFile(path, []byte("4711\n"), 0o600)).To(Succeed())
		l.Release()
		Expect(os.ReadFile(path)).To(BeEquivalentTo("4711\n"))
		l.Release()
		Expect(os.ReadFile(path)).To(BeEquivalentTo("4711\n"))
	}, SpecTimeout(time.Minute))

	It("ends the wait for a process that is gone with the context", func(ctx SpecContext) {
		lingers(fmt.Sprintln(gone()))
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, err := Own(ended, path)
		Expect(err).To(MatchError(context.Canceled))
	}, SpecTimeout(time.Minute))

	It("is not taken through a symbolic link, and needs its directory", func(ctx SpecContext) {
		other := filepath.Join(filepath.Dir(path), "other")
		Expect(os.WriteFile(other, []byte("other"), 0o600)).To(Succeed())
		Expect(os.Symlink(other, path)).To(Succeed())
		_, err := Own(ctx, path)
		Expect(err).To(MatchError(unix.ELOOP))
		Expect(os.ReadFile(other)).To(BeEquivalentTo("other"))
		_, err = Acquire(ctx, filepath.Join(path+".d", "lock"))
		Expect(err).To(MatchError(os.ErrNotExist))
	}, SpecTimeout(time.Minute))
})

var _ = Describe("a process", func() {
	It("is about to be gone once it has ended, though nobody has asked how", func() {
		cmd := exec.Command("sleep", "1000")
		Expect(cmd.Start()).To(Succeed())
		pid := cmd.Process.Pid
		Expect(running(pid)).To(BeTrue())
		Expect(cmd.Process.Kill()).To(Succeed())
		Eventually(running).WithArguments(pid).Should(BeFalse())
		_ = cmd.Wait()
		Expect(running(pid)).To(BeFalse())
		Expect(running(0)).To(BeFalse())
		Expect(running(os.Getpid())).To(BeTrue())
	})
})
