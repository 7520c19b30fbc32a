package tmux

import (
	"fmt"
	"regexp"
	"strings"
)

// class is what an answer without the sentinel that was asked for means. The exit
// status is of little help: tmux exits 0 or 1, and 0 for some refusals, too.
type class int

const (
	// unclear: no authoritative answer.
	unclear class = iota
	// noServer: nothing listens on our socket.
	noServer
	// noTarget: the server answered that the session, window or pane does not exist.
	noTarget
	// noSessions: the server lives and has no session at all.
	noSessions
	// duplicate: the server has a session of that name.
	duplicate
)

// Messages of tmux 3.2 to 3.8. tmux never translates them.
var (
	noTargetPattern  = regexp.MustCompile(`^(?:can't find|no such) (?:session|window|pane): `)
	duplicatePattern = regexp.MustCompile(`^duplicate session: `)
)

// classify reads an answer that carries no sentinel.
func classify(socket string, a answer) class {
	if a.code != 1 {
		return unclear
	}
	switch a.stderr {
	case "no server running on " + socket,
		"error connecting to " + socket + " (No such file or directory)":
		return noServer
	case "no current target":
		return noSessions
	}
	switch {
	case strings.Contains(a.stderr, "\n"):
		return unclear
	case noTargetPattern.MatchString(a.stderr):
		return noTarget
	case duplicatePattern.MatchString(a.stderr):
		return duplicate
	}
	return unclear
}

// reasonOf names why an unclear answer is unclear.
func reasonOf(a answer) string {
	e := a.stderr
	switch {
	case strings.Contains(e, "Permission denied"), e == "access not allowed", e == "client is read-only":
		return ReasonPermission
	case strings.HasPrefix(e, "server version is too old"), strings.HasPrefix(e, "protocol version mismatch"):
		return ReasonVersionMismatch
	case e == "server exited unexpectedly", e == "lost server", e == "server exited":
		return ReasonServerLost
	case a.code == 0:
		return ReasonNoSentinel
	}
	return ReasonFailed
}

// failure turns an answer without its sentinel into an error: ErrAbsent,
// ErrDuplicate or an *UnknownError.
func (s *Server) failure(op string, a answer) error {
	switch classify(s.socket, a) {
	case noServer:
		return fmt.Errorf("tmux %s: %w: no server on %s", op, ErrAbsent, s.socket)
	case noTarget, noSessions:
		return fmt.Errorf("tmux %s: %w: %s", op, ErrAbsent, a.stderr)
	case duplicate:
		return fmt.Errorf("tmux %s: %w: %s", op, ErrDuplicate, a.stderr)
	}
	e := unknown(op, reasonOf(a), a.stderr, nil)
	switch {
	case e.Reason == ReasonServerLost:
		s.explainLost(e)
	case e.Reason == ReasonVersionMismatch:
		e.Stderr += ": use the tmux that started the server, or end the server when its sessions may end"
	case e.Reason == ReasonNoSentinel && e.Stderr == "":
		e.Stderr = "exit status 0 without the expected answer"
	}
	return e
}

// explainLost finds out whether a server still listens. Up to 3.5a a client says
// "server exited unexpectedly" to every server since 3.6, whose messages it cannot
// read: that is a mismatch, not an end (T08).
func (s *Server) explainLost(e *UnknownError) {
	pid, err := peerPID(s.socket)
	if err != nil || !s.client.before(v36) || pid == s.seenServer().epoch.PID {
		return
	}
	e.Reason = ReasonVersionMismatch
	e.Stderr += fmt.Sprintf(": a server listens on %s all the same; tmux before 3.6 (this client: %s) cannot talk to a newer server", s.socket, s.client)
	if exe := processExe(pid); exe != "" {
		e.Stderr += fmt.Sprintf("; its process is %d, its program %s: use that one as the client", pid, exe)
	}
}
