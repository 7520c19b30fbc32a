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
	return s.capture(ctx, op, t, "display-message -p "+doneMark+" ; capture-pane -p -J -S "+from+" -t '"+t.pane()+"'")
}

// Screen is what the target's pane shows, and where its cursor stands: the rows as they
// are drawn, a wrapped line as several. What a person looks at in copy mode is not it.
//
// Errors are those of Capture.
func (s *Server) Screen(ctx context.Context, t Target) (Screen, error) {
	const op = "screen"
	if err := t.validate(op, true); err != nil {
		return Screen{}, err
	}
	text, err := s.capture(ctx, op, t, "display-message -p "+doneMark+
		" ; display-message -p -t '"+t.pane()+"' '#{cursor_x} #{cursor_y}' ; capture-pane -p -e -t '"+t.pane()+"'")
	if err != nil {
		return Screen{}, err
	}
	var out Screen
	cursor, rows, _ := strings.Cut(text, "\n")
	if _, err := fmt.Sscanf(cursor, "%d %d", &out.CursorX, &out.CursorY); err != nil {
		return Screen{}, unknown(op, ReasonMalformed, "", fmt.Errorf("the cursor is said to be at %.80q", cursor))
	}
	out.Text = rows
	return out, nil
}

// Screen is the visible part of a pane.
type Screen struct {
	// Text is the rows, one a line, with the SGR attributes with which they are drawn. An
	// attribute that is set in one row holds in the next.
	Text string
	// CursorX and CursorY are the cursor's column and row, from 0.
	CursorX, CursorY int
}

// capture runs commands, of which the first prints doneMark, if the pane is the target's,
// and returns what the others printed.
func (s *Server) capture(ctx context.Context, op string, t Target, commands string) (string, error) {
	a, err := s.ask(ctx, op, command{"if-shell", "-F", "-t", t.pane(), t.paneGuard(nil, nil),
		commands + " ; display-message -p " + endMark, t.refusal(t.pane(), "-")})
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
		return "", fmt.Errorf("tmux %s: %w: %s", op, ErrAbsent, result.Detail)
	}
	return "", fmt.Errorf("tmux %s: %w: %s", op, ErrRefused, result.Detail)
}
