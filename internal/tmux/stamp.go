package tmux

import (
	"context"
	"fmt"
)

// Stamp puts the target's UID and a generation on a session that has lost its stamp:
// only while the session has none, and only if it holds the target's pane in the
// target's epoch, which is all that tells then whose it is. Done means stamped; a
// session with any stamp is Refused. Errors are *UnknownError.
func (s *Server) Stamp(ctx context.Context, t Target, generation string) (Result, error) {
	const op = "stamp"
	if err := t.validate(op, true); err != nil {
		return Result{}, err
	}
	if !uidRegexp.MatchString(generation) {
		return Result{}, fmt.Errorf("tmux %s: the generation %q is not of the form %s", op, generation, uidRegexp)
	}
	bare := t
	bare.UID = ""
	then := "set-option -t '" + t.session() + "' " + uidOption + " " + t.UID +
		" ; set-option -t '" + t.session() + "' " + generationOption + " " + generation +
		" ; display-message -p " + doneMark
	return s.guarded(ctx, op, t, command{"if-shell", "-F", "-t", t.pane(),
		bare.paneGuard(nil, nil), then, t.refusal(t.pane(), "-")})
}
