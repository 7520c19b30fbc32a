package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/theloop-dev/the-loop/internal/faultpoint"
	"github.com/theloop-dev/the-loop/internal/harness/hook"
)

const (
	// stdinWithin bounds the wait for the event's JSON. Harnesses write it at once and
	// close; the bound only keeps a broken one from holding its own prompt up.
	stdinWithin = 2 * time.Second
	// maxErrorFile is the size, in bytes, beyond which no more errors are noted.
	maxErrorFile = 64 << 10
)

// The decisions that end a permission dialog before it opens, as measured.
const (
	decideDeny  = `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"no person is at this terminal: the session's permissions are Deny"}}}`
	decideAllow = `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}`
)

// questionTool asks a person for an answer, not for a permission: allowing it
// cannot answer it, so its dialog is left to open.
const questionTool = "AskUserQuestion"

// hookFlags are the arguments of the hook role.
type hookFlags struct {
	journal, socket, poke, permissions string
}

// runHook notes one event. It returns 0 whatever happens: another status would
// show as an error in the harness, and 2 would block the prompt. What goes wrong is
// noted beside the journal.
func runHook(args []string, stdin io.Reader, stdout io.Writer) (status int) {
	// The harness's own end must not keep the note of it from being written.
	signal.Ignore(syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT, syscall.SIGPIPE)
	var f hookFlags
	defer func() {
		if r := recover(); r != nil {
			noteError(f.journal, fmt.Errorf("panic: %v", r))
		}
	}()
	fs := flag.NewFlagSet("hook", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&f.journal, "journal", "", "")
	fs.StringVar(&f.socket, "socket", "", "")
	fs.StringVar(&f.poke, "poke", "", "")
	fs.StringVar(&f.permissions, "permissions", "Ask", "")
	if err := fs.Parse(args); err != nil {
		noteError(f.journal, err)
	}
	if err := f.handle(stdin, stdout); err != nil {
		noteError(f.journal, err)
	}
	return 0
}

// handle does the work of runHook: the journal first, since it is the truth.
func (f hookFlags) handle(stdin io.Reader, stdout io.Writer) error {
	input, readErr := readWithin(stdin, stdinWithin)
	note, err := hook.Parse(input, faultpoint.Clock().Now())
	if err != nil {
		return errors.Join(err, readErr)
	}
	note.Answered = f.answer(note)
	err = hook.Append(f.journal, note)
	switch note.Answered {
	case "Deny":
		_, werr := io.WriteString(stdout, decideDeny+"\n")
		err = errors.Join(err, werr)
	case "Allow":
		_, werr := io.WriteString(stdout, decideAllow+"\n")
		err = errors.Join(err, werr)
	}
	if f.socket != "" {
		_ = hook.Poke(f.socket, f.poke)
	}
	return err
}

// answer is what this hook answers to the event, "" for nothing.
func (f hookFlags) answer(n hook.Note) string {
	switch {
	case n.Event != "PermissionRequest":
		return ""
	case f.permissions == "Deny":
		return "Deny"
	case f.permissions == "Allow" && n.Tool != questionTool:
		return "Allow"
	}
	return ""
}

// readWithin reads up to the limit of hook.Parse and one byte more, for at most d,
// and returns what there is. What follows is read and dropped, so that the writer
// does not fail.
func readWithin(r io.Reader, d time.Duration) ([]byte, error) {
	type result struct {
		data []byte
		err  error
	}
	chunks := make(chan result, 1)
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := r.Read(buf)
			chunks <- result{append([]byte(nil), buf[:n]...), err}
			if err != nil {
				return
			}
		}
	}()
	deadline := time.After(d)
	var all []byte
	for {
		select {
		case c := <-chunks:
			if room := hook.MaxInput + 1 - len(all); room > 0 {
				all = append(all, c.data[:min(room, len(c.data))]...)
			}
			if errors.Is(c.err, io.EOF) {
				return all, nil
			}
			if c.err != nil {
				return all, fmt.Errorf("reading standard input: %w", c.err)
			}
		case <-deadline:
			return all, fmt.Errorf("standard input was not closed within %s", d)
		}
	}
}

// noteError appends one line to the file beside the journal; there is nobody else
// to tell.
func noteError(journal string, problem error) {
	if journal == "" {
		return
	}
	path := journal + ".err"
	if st, err := os.Stat(path); err == nil && st.Size() > maxErrorFile {
		return
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	text := strings.NewReplacer("\n", "; ", "\r", " ").Replace(problem.Error())
	if len(text) > hook.MaxErrorBytes {
		text = text[:hook.MaxErrorBytes]
	}
	_, _ = fmt.Fprintf(f, "%s %s\n", time.Now().UTC().Format(time.RFC3339Nano), text)
}
