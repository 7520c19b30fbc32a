package tmux

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	// cleanupTime bounds the removal of a buffer that a failed delivery left.
	cleanupTime = time.Second
	// bufferPrefix begins the names of our buffers.
	bufferPrefix = "loop-"
	// bufferAge is how old a buffer is that no delivery uses any more.
	bufferAge = time.Minute
	// paneExited is how tmux 3.7 and newer refuse a paste, before anything is typed, while
	// a process has ended and its pane is not dead yet.
	paneExited = "target pane has exited"
)

// Paste types text into the target's pane as one bracketed paste, once per delivery: the
// session's marker @loop_pasted is set to delivery in the same command, and a second
// Paste of the same delivery answers Already. It does not submit.
//
// delivery is of the form [A-Za-z0-9-]{1,64}. text must not be empty; it arrives byte for
// byte, line feeds included, up to tmux 3.6; newer versions make control characters
// visible. Only the recorded pane is ever typed into, whatever a person splits, opens or
// selects; a mode such as copy mode is left first, because in it a paste would not be
// bracketed and every line would be submitted. A person who had scrolled up is taken back
// to where he was (P20). Where the application has not enabled bracketed paste, tmux 3.7
// and newer answer NotReady; older ones cannot tell, so the caller must know that the
// application is ready.
//
// The whole is one invocation in which nothing comes between the guard and the paste: up
// to tmux 3.3a a paste into a dead pane ends the server with all sessions. An
// *UnknownError leaves open whether it was typed: paste again with the same delivery,
// the marker decides.
func (s *Server) Paste(ctx context.Context, t Target, delivery string, text []byte) (Result, error) {
	const op = "paste"
	if err := validateDelivery(op, t, delivery); err != nil {
		return Result{}, err
	}
	if len(text) == 0 {
		return Result{}, errors.New("tmux paste: the text is empty: there is nothing to type")
	}
	buffer := bufferName(delivery)
	cond := both(
		t.paneGuard([]string{"#{pane_dead}", "#{pane_input_off}"}, []string{"0", "0"}),
		"#{!=:#{"+pastedOption+"},"+delivery+"}")
	// "$" needs its backslash in the inner string, which tmux parses a second time.
	inner := strings.Join([]string{
		"paste-buffer -p -r -d -b " + buffer + " -t \\" + t.pane(),
		"set-option -t \\" + t.session() + " " + pastedOption + " " + delivery,
		"display-message -p " + doneMark}, " ; ")
	then := "set-option -p -F -t '" + t.pane() + "' " + scrollOption + " '#{?#{==:#{pane_mode},copy-mode},#{scroll_position},}' ; " +
		"copy-mode -q -t '" + t.pane() + "' ; if-shell -F -t '" + t.pane() + "' '#{!=:#{bracket_paste_flag},0}' " +
		"'" + inner + "' 'delete-buffer -b " + buffer + " ; display-message -p " + notReadyMark + "'"
	otherwise := "delete-buffer -b " + buffer + " ; " + t.refusal(t.pane(), delivery)
	return s.deliver(ctx, op, buffer, t, func(r refused) bool { return r.pasted }, func() (answer, error) {
		return s.askWith(ctx, op, func() (answer, error) {
			return s.pasteWith(ctx, op, delivery, text,
				command{"load-buffer", "-b", buffer, textFile},
				command{"if-shell", "-F", "-t", t.pane(), cond, then, otherwise},
				t.scrollBack())
		})
	})
}

// scrollBack takes a person who had scrolled up in the pane, and whom a paste took to its
// end, back to where he was. It changes what is shown of the pane and types nothing. tmux 3.7
// and newer refuse it while somebody is attached read-only; he is then at the end.
func (t Target) scrollBack() command {
	return command{"if-shell", "-F", "-t", t.pane(), "#{" + scrollOption + "}",
		"copy-mode -e -t '" + t.pane() + "' ; " +
			"run-shell -C -t '" + t.pane() + "' 'send-keys -t " + t.PaneID + " -X goto-line #{" + scrollOption + "}' ; " +
			"set-option -p -u -t '" + t.pane() + "' " + scrollOption}
}

// Submit sends the carriage return that submits what Paste typed, once per delivery: only
// when @loop_pasted is this delivery and @loop_submitted is not, in one command that
// sets the latter. Submitted before is Already; never pasted, or something else
// pasted since, is Refused. It is a step of its own because an application that reads
// text and return at once takes the return for a part of the paste, and because a dialog
// may have opened since. The tmux client that pasted runs it when it comes within 2 s;
// else it is an invocation of its own.
func (s *Server) Submit(ctx context.Context, t Target, delivery string) (Result, error) {
	return s.carriageReturn(ctx, "submit", t, delivery, submittedOption,
		[]string{"#{" + pastedOption + "}"}, []string{delivery}, func(r refused) bool { return r.submitted })
}

// Resubmit sends a second carriage return for a delivery that was submitted, once: some
// harnesses lose the first one on a busy machine. It is for a text that was seen to stand
// in the input box still. One that was sent before is Refused.
func (s *Server) Resubmit(ctx context.Context, t Target, delivery string) (Result, error) {
	return s.carriageReturn(ctx, "resubmit", t, delivery, resubmittedOption,
		[]string{"#{" + pastedOption + "}", "#{" + submittedOption + "}"}, []string{delivery, delivery}, nil)
}

// carriageReturn sends one, once for a delivery and marker, where the formats have these
// values.
func (s *Server) carriageReturn(ctx context.Context, op string, t Target, delivery, marker string, formats, values []string, already func(refused) bool) (Result, error) {
	if err := validateDelivery(op, t, delivery); err != nil {
		return Result{}, err
	}
	buffer := bufferName(delivery)
	cond := both(
		t.paneGuard(append([]string{"#{pane_dead}", "#{pane_input_off}"}, formats...), append([]string{"0", "0"}, values...)),
		"#{!=:#{"+marker+"},"+delivery+"}")
	then := strings.Join([]string{
		// A mode stays as it is: what is not to be framed reaches the application all the same.
		"paste-buffer -d -b " + buffer + " -t '" + t.pane() + "'",
		"set-option -t '" + t.session() + "' " + marker + " " + delivery,
		"display-message -p " + doneMark}, " ; ")
	otherwise := "delete-buffer -b " + buffer + " ; " + t.refusal(t.pane(), delivery)
	cmds := []command{
		{"set-buffer", "-b", buffer, "\r"},
		{"if-shell", "-F", "-t", t.pane(), cond, then, otherwise},
	}
	return s.deliver(ctx, op, buffer, t, already, func() (answer, error) {
		return s.submitWith(ctx, op, delivery, cmds...)
	})
}

// deliver runs a guarded paste and sees to it that no text stays in a buffer: the server
// deletes it on every path but that of an error.
func (s *Server) deliver(ctx context.Context, op, buffer string, t Target, already func(refused) bool, run func() (answer, error)) (Result, error) {
	var r Result
	a, err := run()
	if err == nil {
		r, err = s.read(op, a, t, already)
	}
	var u *UnknownError
	if errors.As(err, &u) && u.Stderr == paneExited {
		r, err = Result{Outcome: Refused, Detail: paneExited}, nil
	}
	if err != nil || r.Outcome == Gone || r.Detail == paneExited {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		_, _ = s.run(ctx, op, command{"delete-buffer", "-b", buffer})
	}
	return r, err
}

func validateDelivery(op string, t Target, delivery string) error {
	if !uidRegexp.MatchString(delivery) {
		return fmt.Errorf("tmux %s: the delivery id %q is not of the form %s", op, delivery, uidRegexp)
	}
	return t.validate(op, true)
}

// bufferName is unique for each call: two that overlap must not take each other's
// buffer away.
func bufferName(delivery string) string {
	return bufferPrefix + delivery + "-" + rand.Text()
}

// bufferPattern is what bufferName makes.
var bufferPattern = regexp.MustCompile(`^` + bufferPrefix + `[A-Za-z0-9-]{1,64}-[A-Z2-7]{26}$`)

// dropBuffers deletes what deliveries left whose process was killed in the middle: the text
// would stay in the server's memory, for everybody to read. Failures are left to the
// next time.
func (s *Server) dropBuffers(ctx context.Context, age time.Duration) {
	a, err := s.run(ctx, "drop-buffers", command{"list-buffers", "-F", "#{buffer_created}|#{buffer_name}"})
	if err != nil || a.code != 0 {
		return
	}
	for line := range strings.Lines(a.stdout) {
		created, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "|")
		at, err := strconv.ParseInt(created, 10, 64)
		if err == nil && time.Since(time.Unix(at, 0)) >= age && bufferPattern.MatchString(name) {
			_, _ = s.run(ctx, "drop-buffers", command{"delete-buffer", "-b", name})
		}
	}
}
