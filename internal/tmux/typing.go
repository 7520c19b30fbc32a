package tmux

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// typingTime is how long the client of a paste waits for its carriage return. It is
	// more than any harness needs between the two; what comes later is an invocation
	// of its own.
	typingTime = 2 * time.Second
	// textFile is where the client of a paste finds the text: its first extra file. Its
	// stdin is what it is to do afterwards.
	textFile = "/proc/self/fd/3"
)

// typing is the tmux client of a paste, which waits at "source-file -" for the commands that
// submit it. So a delivery takes one client instead of two, and there is still a look at
// the harness between the text and the return. When we end, or think better of it, its
// stdin ends without a command, and nothing is submitted.
type typing struct {
	client *exec.Cmd
	kill   context.CancelFunc
	in     *os.File // our ends
	out    *os.File
	lines  *bufio.Reader
	stderr bytes.Buffer
	done   chan struct{} // closed when the client has ended, with err
	err    error
	lapse  *time.Timer
}

// startTyping starts the client with text in textFile.
func (s *Server) startTyping(op string, text []byte, cmds ...command) (*typing, error) {
	args, err := s.argv(append(cmds, command{"display-message", "-p", waitMark}, command{"source-file", "-"}))
	if err != nil {
		return nil, err
	}
	file, err := memoryFile(text)
	if err != nil {
		return nil, fmt.Errorf("tmux %s: keeping the text for the client: %w", op, err)
	}
	defer func() { _ = file.Close() }()
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("tmux %s: %w", op, err)
	}
	defer func() { _ = theirIn.Close() }()
	out, theirOut, err := os.Pipe()
	if err != nil {
		_ = in.Close()
		return nil, fmt.Errorf("tmux %s: %w", op, err)
	}
	defer func() { _ = theirOut.Close() }()
	ctx, cancel := context.WithCancel(context.Background())
	y := &typing{kill: cancel, in: in, out: out, lines: bufio.NewReader(out), done: make(chan struct{})}
	y.client = exec.CommandContext(ctx, s.binary, args...)
	y.client.Env = s.clientEnv
	y.client.Stdin, y.client.Stdout, y.client.Stderr = theirIn, theirOut, &y.stderr
	y.client.ExtraFiles = []*os.File{file}
	y.client.WaitDelay = drainDelay
	if err := y.client.Start(); err != nil {
		cancel()
		_, _ = in.Close(), out.Close()
		return nil, unknown(op, ReasonExec, "", err)
	}
	go func() {
		y.err = y.client.Wait()
		close(y.done)
	}()
	return y, nil
}

// memoryFile is an anonymous file: text on a disk would be one more copy to remove.
func memoryFile(text []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("loop-text", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), "loop-text")
	if _, err := f.Write(text); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// answer is what the client printed until it waits or has ended.
func (y *typing) answer(ctx context.Context, timeout time.Duration) (out string, err error) {
	if err := y.out.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { _ = y.out.SetReadDeadline(time.Now()) })
	defer stop()
	for {
		line, err := y.lines.ReadString('\n')
		if line == waitMark+"\n" || errors.Is(err, io.EOF) {
			return out, nil
		}
		out += line
		if err != nil {
			return out, err
		}
	}
}

// end closes the client's stdin, waits for the client and returns what it left besides
// out. One that does not end is killed.
func (y *typing) end(ctx context.Context, op, out string, timeout time.Duration) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_ = y.in.Close()
	select {
	case <-y.done:
	case <-ctx.Done():
		y.kill()
		<-y.done
	}
	defer y.kill()
	defer func() { _ = y.out.Close() }()
	// The server may hold the pipe of a client that was killed.
	_ = y.out.SetReadDeadline(time.Now().Add(drainDelay))
	rest, _ := io.ReadAll(y.lines)
	return ended(ctx, op, y.err, answer{stdout: out + string(rest), stderr: strings.TrimSpace(y.stderr.String())})
}

// pasteWith runs cmds, which paste text, in a client that then waits for Submit. The answer is
// that of run.
func (s *Server) pasteWith(ctx context.Context, op, delivery string, text []byte, cmds ...command) (answer, error) {
	y, err := s.startTyping(op, text, cmds...)
	if err != nil {
		return answer{}, err
	}
	out, err := y.answer(ctx, s.timeout)
	switch {
	case err != nil: // the server is silent, or we are to stop
		return y.end(ctx, op, out, 0)
	case out != doneMark+"\n":
		return y.end(ctx, op, out, s.timeout)
	}
	s.keepTyping(delivery, y)
	return answer{stdout: out}, nil
}

// keepTyping holds the client for Submit, for typingTime.
func (s *Server) keepTyping(delivery string, y *typing) {
	// One of another life of the server may be left.
	if old := s.takeTyping(delivery, nil); old != nil {
		_, _ = old.end(context.Background(), "paste", "", s.timeout)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	y.lapse = time.AfterFunc(typingTime, func() {
		if s.takeTyping(delivery, y) != nil {
			_, _ = y.end(context.Background(), "paste", "", s.timeout)
		}
	})
	s.typing[delivery] = y
}

// takeTyping returns the client that pasted the delivery, once. which is the one that is
// meant, nil any.
func (s *Server) takeTyping(delivery string, which *typing) *typing {
	s.mu.Lock()
	defer s.mu.Unlock()
	y := s.typing[delivery]
	if y == nil || which != nil && y != which {
		return nil
	}
	delete(s.typing, delivery)
	y.lapse.Stop()
	return y
}

// submitWith runs cmds in the client that pasted the delivery, or where there is none any
// more in a new one. Running them twice is no harm: the marker tells.
func (s *Server) submitWith(ctx context.Context, op, delivery string, cmds ...command) (answer, error) {
	if y := s.takeTyping(delivery, nil); y != nil {
		_, gone := io.WriteString(y.in, lines(cmds))
		a, err := y.end(ctx, op, "", s.timeout)
		if gone == nil && (err != nil || strings.HasPrefix(a.stdout, "LOOP-")) {
			return a, err
		}
	}
	return s.ask(ctx, op, cmds...)
}

// lines writes commands as "source-file" reads them, one a line.
func lines(cmds []command) string {
	var b strings.Builder
	for _, c := range cmds {
		for i, a := range c {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(quote(a))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

var quoting = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "\r", `\r`, "\n", `\n`)

// quote writes an argument for tmux's command parser.
func quote(arg string) string { return `"` + quoting.Replace(arg) + `"` }
