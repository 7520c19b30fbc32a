package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mailbox gives what the pane process reacts to.
type mailbox struct {
	// signals are those to act on. SIGINT and SIGQUIT are among them only when a
	// process sent them (where the architecture allows telling).
	signals chan os.Signal
	// children has an element when a child may have ended.
	children chan os.Signal
}

// openMailbox takes the signals over from their default actions. The stop signals
// are taken as well and given to nobody, so that the pane process never stops.
func openMailbox() (mailbox, error) {
	const room = 64 // more than can come in while one is handled
	m := mailbox{signals: make(chan os.Signal, room), children: make(chan os.Signal, 1)}
	signal.Notify(m.signals, unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT,
		unix.SIGUSR1, unix.SIGUSR2, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	signal.Notify(m.children, unix.SIGCHLD)
	for _, sig := range []unix.Signal{unix.SIGINT, unix.SIGQUIT} {
		if err := dropFromTerminal(sig); err != nil {
			return mailbox{}, err
		}
	}
	return m, nil
}

// sigaction is the kernel's struct of that name, larger than on any architecture,
// of which only the first word, the handler, is looked at.
type sigaction struct {
	handler uintptr
	rest    [7]uint64
}

const sigsetBytes = 8

// dropFromTerminal makes the terminal's own sig (a ^C or ^\ typed where the
// terminal turns those into signals) not reach this program, because the harness
// has received it already: such a signal goes to the whole foreground group. Only
// the handler itself is told who sent a signal, and package os/signal does not pass
// that on; so a few instructions stand before the runtime's handler and return at
// once when it was the kernel.
func dropFromTerminal(sig unix.Signal) error {
	if filterPC == 0 {
		signal.Ignore(sig)
		return nil
	}
	var act sigaction
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), 0, uintptr(unsafe.Pointer(&act)), sigsetBytes, 0, 0)
	if errno != 0 {
		return fmt.Errorf("reading the handler of %s: %w", unix.SignalName(sig), errno)
	}
	if runtimeHandler != 0 && runtimeHandler != act.handler {
		return fmt.Errorf("the handler of %s is not the one expected", unix.SignalName(sig))
	}
	runtimeHandler, act.handler = act.handler, filterPC
	_, _, errno = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&act)), 0, sigsetBytes, 0, 0)
	if errno != 0 {
		return fmt.Errorf("setting the handler of %s: %w", unix.SignalName(sig), errno)
	}
	return nil
}

// defaultAction gives the signal its default action behind the back of the Go
// runtime, which would turn SIGQUIT, SIGABRT, SIGSEGV and others into a traceback
// and exit status 2. All zero is the default action with no flags.
func defaultAction(sig unix.Signal) {
	var act sigaction
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&act)), 0, sigsetBytes, 0, 0)
}

// terminalGone reports whether the terminal on standard input was hung up.
func terminalGone() bool {
	fds := []unix.PollFd{{Fd: 0}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 1 && fds[0].Revents&unix.POLLHUP != 0
}

// endLike returns the harness's exit status, or ends this process by the signal
// that ended the harness, so that whoever waits for the pane process learns the
// same. It leaves no core dump of this process: the harness had its own.
func endLike(ws syscall.WaitStatus) int {
	if !ws.Signaled() {
		return ws.ExitStatus()
	}
	sig := ws.Signal()
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	defaultAction(sig)
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), sig)
	const signalBase = 128 // what a shell reports, should we still be here
	return signalBase + int(sig)
}
