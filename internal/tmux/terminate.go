package tmux

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// killAndLook kills the session and says whether it is gone, in one string for if-shell.
func killAndLook(sessionID string) string {
	target := "'" + sessionID + ":'"
	return "kill-session -t " + target + " ; if-shell -F -t " + target + " '#{==:#{session_id}," + sessionID + "}' " +
		"'display-message -p " + stillMark + "' 'display-message -p " + doneMark + "'"
}

// KillSession ends the target's session with every window in it, if it is still ours and
// of this epoch. Done means that the server says it is gone. It ends no process: a pane's
// program gets a SIGHUP that it may ignore, and children may have left the terminal; see
// Signal before and EndProcesses after. Errors are *UnknownError.
func (s *Server) KillSession(ctx context.Context, t Target) (Result, error) {
	const op = "kill-session"
	if err := t.validate(op, false); err != nil {
		return Result{}, err
	}
	t.PaneID = "" // a session outlives its first pane
	return s.guarded(ctx, op, t, command{"if-shell", "-F", "-t", t.session(),
		t.sessionGuard(nil, nil), killAndLook(t.SessionID), t.refusal(t.session(), "-")})
}

// ClearDead removes a session in which every pane is dead and whose stamp is uid; uid ""
// means a session without a stamp. Both are decided by the server in the command that
// removes it, so that a live session is never ended to make room. Done means that the
// server says it is gone.
//
// A pane that tmux calls dead without saying how it ended may still have a living process
// (up to tmux 3.6b dead means that the terminal was closed): such a session is Refused
// until the process has ended. Errors are *UnknownError.
func (s *Server) ClearDead(ctx context.Context, sessionID, uid string, epoch Epoch) (Result, error) {
	const op = "clear-dead"
	t := Target{UID: uid, SessionID: sessionID, Epoch: epoch}
	check := t
	if uid == "" {
		check.UID = "none"
	}
	if err := check.validate(op, false); err != nil {
		return Result{}, err
	}
	if s.seenServer().epoch != epoch { // which server it is decides what dead means
		if _, _, err := s.identify(ctx, op); err != nil {
			return t.unlisted(Snapshot{}, err)
		}
	}
	dead := "" // what a dead pane adds to the list of living ones
	if !s.seenServer().version.before(v33) {
		dead = "#{?#{==:#{pane_dead_status}#{pane_dead_signal},},D,}"
	}
	cond := t.sessionGuard([]string{"#{W:#{P:#{?pane_dead," + dead + ",L}}}"}, []string{""})
	return s.guarded(ctx, op, t, command{"if-shell", "-F", "-t", t.session(),
		cond, killAndLook(sessionID), t.refusal(t.session(), "-")})
}

// Retain sets remain-on-exit again on every window of the target's session, so that
// what ends next leaves its exit status and its last lines, whatever a person has set
// there since. Errors are *UnknownError.
func (s *Server) Retain(ctx context.Context, t Target) (Result, error) {
	const op = "retain"
	if err := t.validate(op, false); err != nil {
		return Result{}, err
	}
	if s.refuses(remainOnExit) {
		return Result{Outcome: Refused, Detail: "the server refuses the option " + remainOnExit}, nil
	}
	t.PaneID = ""
	snap, err := s.list(ctx, op, command{"list-panes", "-s", "-t", t.session(), "-F", paneFormat})
	if err != nil || snap.Epoch != t.Epoch || len(snap.Sessions) == 0 {
		return t.unlisted(snap, err)
	}
	then := "set-option -w -t '" + t.session() + "' " + remainOnExit + " on"
	seen := map[string]bool{}
	for _, p := range snap.Sessions[0].Panes {
		if !seen[p.WindowID] {
			seen[p.WindowID] = true
			then += " ; if-shell -F -t '" + t.SessionID + ":" + p.WindowID + "' '#{==:#{window_id}," + p.WindowID + "}' " +
				"'set-option -w -t " + p.WindowID + " " + remainOnExit + " on' ''"
		}
	}
	then += " ; display-message -p " + doneMark
	return s.guarded(ctx, op, t, command{"if-shell", "-F", "-t", t.session(),
		t.sessionGuard(nil, nil), then, t.refusal(t.session(), "-")})
}

// unlisted says what a listing that does not show the target means for it.
func (t Target) unlisted(snap Snapshot, err error) (Result, error) {
	if err != nil && !errors.Is(err, ErrAbsent) {
		return Result{}, err
	}
	if !snap.Epoch.IsZero() && snap.Epoch != t.Epoch {
		return Result{Outcome: Refused, Detail: fmt.Sprintf("another server: epoch=%s", snap.Epoch)}, nil
	}
	return gone(err, "the session has no pane"), nil
}

// gone is the result for an error that says that the target does not exist.
func gone(err error, otherwise string) Result {
	if err != nil {
		otherwise = err.Error()
	}
	return Result{Outcome: Gone, Detail: otherwise}
}

// stillOurs looks a target's session up in a listing of it and says what keeps an
// operation on its processes from being done, or ok.
func (t Target) stillOurs(snap Snapshot, err error) (session Session, refusal Result, ok bool, _ error) {
	if err != nil || snap.Epoch != t.Epoch || len(snap.Sessions) != 1 || snap.Sessions[0].ID != t.SessionID {
		refusal, err = t.unlisted(snap, err)
		return Session{}, refusal, false, err
	}
	session = snap.Sessions[0]
	if session.UID != t.UID {
		return Session{}, Result{Outcome: Refused, Detail: fmt.Sprintf("not ours: session=%s uid=%.80q", session.ID, session.UID)}, false, nil
	}
	if !session.Live() {
		return Session{}, Result{Outcome: Refused, Detail: "every pane is dead: session=" + session.ID}, false, nil
	}
	return session, Result{}, true, nil
}

// joinDetail says what was done to which pane.
func joinDetail(done []string) string { return strings.Join(done, ", ") }
