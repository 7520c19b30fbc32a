package tmux

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// AttachCommand is the line that a person types to attach to a session of this server,
// to look only when readOnly. It addresses exactly this name: of "loop-a-1" and
// "loop-a-12" never the other one, also when the session is gone (N11). The target is
// quoted, because zsh expands a word that begins with "=".
func (s *Server) AttachCommand(session string, readOnly bool) string {
	words := append(s.address(), "attach")
	if readOnly {
		words = append(words, "-r")
	}
	return strings.Join(append(words, "-t", shellQuote("="+session)), " ")
}

// announced is for how many milliseconds a text is shown to who attaches.
const announced = "5000"

// Announced is the argv of an attach that also shows text, in the status line, for some
// seconds or until a key is pressed. What was printed before is gone from a terminal as soon
// as tmux takes it.
func Announced(attach []string, text string) []string {
	// It is a format, and the time's: #(...) would run.
	plain := strings.NewReplacer("#", "##", "%", "%%").Replace(text)
	return append(slices.Clone(attach), ";", "display-message", "-d", announced, escapeArg(plain))
}

// KillCommand is the line that a person types to end exactly this session of this
// server.
func (s *Server) KillCommand(session string) string {
	return strings.Join(append(s.address(), "kill-session", "-t", shellQuote("="+session)), " ")
}

// address is the beginning of every line that a person types for this server.
func (s *Server) address() []string {
	// -L is resolved by the environment of the person's shell, so that it is used only
	// for the place where it leads without any variable.
	if filepath.Dir(s.socket) == plainSocketDir() {
		return []string{s.command, "-L", shellQuote(filepath.Base(s.socket))}
	}
	return []string{s.command, "-S", shellQuote(s.socket)}
}

// plainSocketDir is where tmux -L puts sockets when TMUX_TMPDIR is not set.
func plainSocketDir() string {
	tmp, err := filepath.EvalSymlinks("/tmp")
	if err != nil {
		return ""
	}
	return filepath.Join(tmp, "tmux-"+strconv.Itoa(os.Getuid()))
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./-]+$`)

// shellQuote makes one word of s in every common shell.
func shellQuote(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
