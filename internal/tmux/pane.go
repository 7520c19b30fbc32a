package tmux

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// SetInput switches the input of the target's pane on or off, for people and for
// Paste alike. It is how a session whose owner is not known any more is quarantined. Off,
// what anybody types is dropped. Errors are *UnknownError.
func (s *Server) SetInput(ctx context.Context, t Target, on bool) (Result, error) {
	const op = "set-input"
	if err := t.validate(op, true); err != nil {
		return Result{}, err
	}
	flag := "-d"
	if on {
		flag = "-e"
	}
	return s.guarded(ctx, op, t, command{"if-shell", "-F", "-t", t.pane(), t.paneGuard(nil, nil),
		"select-pane " + flag + " -t '" + t.pane() + "' ; display-message -p " + doneMark,
		t.refusal(t.pane(), "-")})
}

// Capture is the text of the target's pane: what is visible, and before it history
// lines of scrollback (0 for none, a negative number for all of it). Lines that the
// terminal wrapped are joined. A dead pane still shows its last lines.
//
// Errors: ErrAbsent when the pane does not exist, ErrRefused when it is not this pane of
// ours any more, else *UnknownError.
func (s *Server) Capture(ctx context.Context, t Target, history int) (string, error) {
	const op = "capture"
	if err := t.validate(op, true); err != nil {
		return "", err
	}
	from := strconv.Itoa(-history)
	if history < 0 {
		from = "-"
	}
	a, err := s.ask(ctx, op, command{"if-shell", "-F", "-t", t.pane(), t.paneGuard(nil, nil),
		"display-message -p " + doneMark + " ; capture-pane -p -J -S " + from + " -t '" + t.pane() + "' ; display-message -p " + endMark,
		t.refusal(t.pane(), "-")})
	if err != nil {
		return "", err
	}
	text, begun := strings.CutPrefix(a.stdout, doneMark+"\n")
	text, ended := strings.CutSuffix(text, endMark+"\n")
	if begun && ended {
		return text, nil
	}
	rest, isRefusal := strings.CutPrefix(a.stdout, refusedMark+"|")
	if !isRefusal {
		return "", s.failure(op, a)
	}
	r, err := parseRefusal(rest)
	if err != nil {
		return "", unknown(op, ReasonMalformed, a.stderr, err)
	}
	result := t.outcome(r, nil)
	if result.Outcome == Gone {
		return "", fmt.Errorf("tmux capture: %w: %s", ErrAbsent, result.Detail)
	}
	return "", fmt.Errorf("tmux capture: %w: %s", ErrRefused, result.Detail)
}
