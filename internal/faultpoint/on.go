//go:build chaos

package faultpoint

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"
)

// On tells whether the points are built in.
const On = true

// At is a point where the program may be killed or stopped.
func At(name string) { _ = Fail(name) }

// Fail is At for a point where an error may come instead; the caller passes it on.
//
// The question is the line "PID NAME", the answer is a line: "go", "kill", "stop", "full"
// (the error of a full disk) or "fail" (any other error). Where nobody answers, it goes on.
func Fail(name string) error {
	switch ask(name) {
	case "kill":
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
		select {}
	case "stop":
		// To this very thread, so that it does not come past the point.
		runtime.LockOSThread()
		_ = unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGSTOP)
		runtime.UnlockOSThread()
	case "full":
		return fmt.Errorf("fault point %s: %w", name, syscall.ENOSPC)
	case "fail":
		return errors.New("fault point " + name + ": an error as asked")
	}
	return nil
}

func ask(name string) string {
	path := os.Getenv(Env)
	if path == "" {
		return ""
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		return ""
	}
	defer func() { _ = c.Close() }()
	if _, err := fmt.Fprintln(c, os.Getpid(), name); err != nil {
		return ""
	}
	line, _ := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSpace(line)
}

// Clock is the clock that may jump.
func Clock() clock.Clock { return jumping{} }

// jumping is the real clock, off by what the file beside the socket says. As when a real
// clock is set, only what the time of day is changes: what is measured between two
// readings, and timers, do not.
type jumping struct{ clock.RealClock }

// Now implements clock.PassiveClock.
func (jumping) Now() time.Time {
	now := time.Now()
	b, err := os.ReadFile(os.Getenv(Env) + ".clock")
	if err != nil {
		return now
	}
	off, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 32)
	if err != nil {
		return now
	}
	return set(now, off)
}

// Since implements clock.PassiveClock.
func (j jumping) Since(t time.Time) time.Duration { return j.Now().Sub(t) }

// set moves the time of day of a reading by whole seconds, and not its place on the
// monotonic clock, which Add would move too. A reading keeps its seconds since 1885 from
// bit 30 of its first word on (the package time, type Time).
func set(now time.Time, seconds int64) time.Time {
	word := (*uint64)(unsafe.Pointer(&now))
	*word += uint64(seconds) << 30 //nolint:gosec // two's complement is what is wanted
	return now
}
