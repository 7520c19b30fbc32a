package oneshot_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/harness/oneshot"
)

func TestOneShot(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "oneshot")
}

// ended reports that a process does not run: nobody may have asked yet how it ended.
func ended(pid string) (bool, error) {
	if _, err := strconv.Atoi(pid); err != nil {
		return false, err
	}
	state, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return true, nil
	}
	return strings.Contains(string(state), ") Z "), err
}

var _ = Describe("one run", func() {
	run := func(ctx context.Context, timeout time.Duration, script string) oneshot.Result {
		return oneshot.Run(ctx, oneshot.Call{Argv: []string{"/bin/sh", "-c", script}, Env: []string{"A=1", "A=2"}, Dir: GinkgoT().TempDir(), Timeout: timeout})
	}

	It("gives exit status and output, and nothing but the environment that was given", func(ctx SpecContext) {
		r := run(ctx, time.Minute, `echo "$A $HOME"; echo oops >&2; read -r line; echo "end:$line"; exit 3`)
		Expect(r).To(Equal(oneshot.Result{Exit: 3, Stdout: []byte("2 \nend:\n"), Stderr: []byte("oops\n")}))
	})

	It("has a session of its own, without a terminal", func(ctx SpecContext) {
		r := run(ctx, time.Minute, `read -r stat < /proc/$$/stat; echo "$stat"; ( : < /dev/tty ) 2>/dev/null && echo tty`)
		words := strings.Fields(string(r.Stdout))
		Expect(words[4:6]).To(HaveEach(words[0]), "its group and its session are its own")
		Expect(string(r.Stdout)).NotTo(ContainSubstring("tty"))
	})

	It("ends the whole group in time, and does not wait for what holds the output open", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		began := time.Now()
		r := run(ctx, 300*time.Millisecond, `trap '' TERM; sleep 60 & echo $! > `+filepath.Join(dir, "pid")+`; wait`)
		Expect(time.Since(began)).To(BeNumerically("<", 10*time.Second))
		Expect(r.Problem).To(Equal("no answer within 300ms"))
		text, err := os.ReadFile(filepath.Join(dir, "pid"))
		Expect(err).NotTo(HaveOccurred())
		Eventually(ended).WithArguments(strings.TrimSpace(string(text))).Should(BeTrue())
	}, SpecTimeout(time.Minute))

	It("ends what the process leaves behind", func(ctx SpecContext) {
		r := run(ctx, time.Minute, `sleep 60 >/dev/null 2>&1 & echo $!`)
		Expect(r.Problem).To(BeEmpty())
		Eventually(ended).WithArguments(strings.TrimSpace(string(r.Stdout))).Should(BeTrue())
	}, SpecTimeout(time.Minute))

	It("is cut off with its context", func(ctx SpecContext) {
		short, cancel := context.WithCancel(ctx)
		time.AfterFunc(100*time.Millisecond, cancel)
		Expect(run(short, time.Minute, `exec sleep 60`).Problem).To(Equal("it was cut off"))
	}, SpecTimeout(time.Minute))

	It("tells a signal from an answer", func(ctx SpecContext) {
		Expect(run(ctx, time.Minute, `kill -KILL $$`).Problem).To(Equal("it ended with signal: " + syscall.SIGKILL.String()))
	})

	It("keeps a bounded part of the output, and lets the process write on", func(ctx SpecContext) {
		r := run(ctx, time.Minute, `head -c 1000000 /dev/zero; echo done >&2`)
		Expect(r.Problem).To(BeEmpty())
		kept := len(r.Stdout) // the bytes themselves would be a long failure
		Expect(kept).To(Equal(oneshot.MaxOutput))
		Expect(string(r.Stderr)).To(Equal("done\n"))
	})

	It("says why it cannot be started", func(ctx SpecContext) {
		r := oneshot.Run(ctx, oneshot.Call{Argv: []string{"/does/not/exist"}, Dir: "/", Timeout: time.Minute})
		Expect(r.Problem).To(ContainSubstring("no such file"))
	})
})
