// Package oneshot runs a harness once, without a terminal, to ask it something. It is
// the only way in which the agent itself starts a harness; sessions are started by the
// terminal server.
package oneshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

// MaxOutput is how much is kept of each of the two outputs, in bytes; the rest is read
// and thrown away.
const MaxOutput = 256 << 10

// drainFor is how long the outputs are read on when the process has ended: something
// that it left behind may hold them open.
const drainFor = 2 * time.Second

// Call is one run.
type Call struct {
	// Argv is the command line; its first element is absolute.
	Argv []string
	// Env is the whole environment, KEY=value; the last of equal keys wins.
	Env []string
	// Dir is the working directory, absolute.
	Dir string
	// Timeout bounds the run.
	Timeout time.Duration
}

// Result is what became of a run.
type Result struct {
	// Problem is why there is no answer, "" when the process ended by itself: it could not
	// be started, did not end in time, or was ended by a signal.
	Problem string
	// Exit is the exit status when there is no Problem.
	Exit           int
	Stdout, Stderr []byte
}

// Run runs a call to its end. The process has no terminal, no input, and a session and
// process group of its own, which is killed as a whole in the end: when the process has
// ended, at the timeout, or when ctx ends.
func Run(ctx context.Context, c Call) Result {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	var stdout, stderr bounded
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.Dir, c.Env, &stdout, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = drainFor
	err := cmd.Run()
	if cmd.Process != nil {
		// What it left behind is nobody's.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	r := Result{Stdout: stdout.kept.Bytes(), Stderr: stderr.kept.Bytes()}
	var exit *exec.ExitError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		r.Problem = fmt.Sprintf("no answer within %s", c.Timeout)
	case ctx.Err() != nil:
		r.Problem = "it was cut off"
	case errors.As(err, &exit) && !exit.Exited():
		r.Problem = "it ended with " + exit.String()
	case errors.As(err, &exit):
		r.Exit = exit.ExitCode()
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		r.Problem = err.Error()
	}
	return r
}

// bounded keeps the beginning of what is written to it. The buffer is not embedded: its
// ReadFrom would take everything.
type bounded struct{ kept bytes.Buffer }

// Write implements io.Writer and never fails: the writer is not to notice.
func (b *bounded) Write(p []byte) (int, error) {
	if room := MaxOutput - b.kept.Len(); room > 0 {
		b.kept.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
