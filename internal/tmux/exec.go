package tmux

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

const (
	// maxArgvBytes bounds the arguments of one invocation: tmux sends them to the
	// server in one message of 16 KB ("command too long" beyond).
	maxArgvBytes = 16000
	// maxArgs bounds their number: tmux 3.7 and newer refuse more than 1,000.
	maxArgs = 1000
	// drainDelay bounds the wait for a killed client's pipes. Since 3.3a a client passes
	// its stdout to the server, so that a hung server holds the pipe open.
	drainDelay = 500 * time.Millisecond
)

// command is one tmux command with its arguments, verbatim.
type command []string

// answer is what one run of the tmux client left.
type answer struct {
	code   int
	stdout string
	stderr string
}

// argv makes the arguments of one invocation: commands are separated by ";", so
// that an argument that ends in ";" would be read as a separator: its last byte is
// escaped. All commands of one invocation run without anything in between.
func (s *Server) argv(cmds []command) ([]string, error) {
	args := []string{"-u", "-N", "-S", s.socket}
	for i, c := range cmds {
		if i > 0 {
			args = append(args, ";")
		}
		for _, a := range c {
			args = append(args, escapeArg(a))
		}
	}
	size := 0
	for _, a := range args {
		if strings.IndexByte(a, 0) >= 0 {
			return nil, fmt.Errorf("tmux %s: an argument holds a NUL byte, which no argument can", cmds[0][0])
		}
		size += len(a) + 1
	}
	if size > maxArgvBytes {
		return nil, fmt.Errorf("tmux %s: the arguments take %d bytes, but tmux takes at most %d: pass long text in a file",
			cmds[0][0], size, maxArgvBytes)
	}
	if len(args) > maxArgs {
		return nil, fmt.Errorf("tmux %s: %d arguments, but tmux takes at most %d", cmds[0][0], len(args), maxArgs)
	}
	return args, nil
}

// escapeArg keeps a trailing ";" from ending the command.
func escapeArg(a string) string {
	if strings.HasSuffix(a, ";") {
		return a[:len(a)-1] + `\;`
	}
	return a
}

// run runs the tmux client once. Its error is an *UnknownError, or plain for
// arguments that were refused before tmux was asked. Whether the answer means
// anything is for the caller to find out.
func (s *Server) run(ctx context.Context, op string, cmds ...command) (answer, error) {
	return s.runWith(ctx, op, nil, cmds...)
}

// runWith is run for a client that finds texts in its extra files, /proc/self/fd/3 and on.
func (s *Server) runWith(ctx context.Context, op string, texts [][]byte, cmds ...command) (answer, error) {
	args, err := s.argv(cmds)
	if err != nil {
		return answer{}, err
	}
	files, closing, err := memoryFiles(texts)
	if err != nil {
		return answer{}, fmt.Errorf("tmux %s: keeping the text for the client: %w", op, err)
	}
	defer closing()
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, s.binary, args...)
	cmd.Env = s.clientEnv
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = &stdout, &stderr, files
	cmd.WaitDelay = drainDelay
	err = cmd.Run()
	return ended(ctx, op, err, answer{stdout: stdout.String(), stderr: strings.TrimSpace(stderr.String())})
}

// ended is what a client that ended with err left: its answer with the exit status, or
// an *UnknownError.
func ended(ctx context.Context, op string, err error, a answer) (answer, error) {
	if ctxErr := ctx.Err(); ctxErr != nil && err != nil {
		return a, unknown(op, contextReason(ctxErr), a.stderr, ctxErr)
	}
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return a, nil
	case errors.As(err, &exit) && exit.Exited():
		a.code = exit.ExitCode()
		return a, nil
	case errors.As(err, &exit):
		return a, unknown(op, ReasonKilled, a.stderr, err)
	default:
		return a, unknown(op, ReasonExec, a.stderr, err)
	}
}

func contextReason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return ReasonTimeout
	}
	return ReasonCanceled
}

// ask runs the client once, and once more when the socket was lost and the server
// made it anew. A lost socket that stays lost is an error; an answer that says that no
// server listens is then the truth.
func (s *Server) ask(ctx context.Context, op string, cmds ...command) (answer, error) {
	return s.askWith(ctx, op, func() (answer, error) { return s.run(ctx, op, cmds...) })
}

// askWith is ask for a client that is run by run.
func (s *Server) askWith(ctx context.Context, op string, run func() (answer, error)) (answer, error) {
	a, err := run()
	if err != nil || classify(s.socket, a) != noServer {
		return a, err
	}
	state, err := s.reviveSocket(ctx, op)
	if err != nil || state == serverDead {
		return a, err
	}
	a, err = run()
	if err == nil && classify(s.socket, a) == noServer {
		err = unknown(op, ReasonSocketLost, a.stderr, nil)
	}
	return a, err
}
