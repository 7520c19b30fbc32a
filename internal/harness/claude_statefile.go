package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ClaudeSession is what claude writes about a running process in the file
// <config dir>/sessions/<pid>.json. The file is not documented by its vendor, so it
// only backs up the hooks.
type ClaudeSession struct {
	// PID is the process and ProcStart its start as in field 22 of proc(5), "" when
	// the file does not have it.
	PID       int
	ProcStart string
	// ConversationID is the conversation that runs now.
	ConversationID string
	// Status is "idle", "busy" or "waiting"; WaitingFor names the dialog.
	Status, WaitingFor string
	// Updated is when the status changed, zero when unknown.
	Updated time.Time
}

// maxSessionFile bounds what is read of such a file, in bytes.
const maxSessionFile = 64 << 10

// ParseClaudeSession parses the content of a session file. Fields of another type
// than expected count as absent; without a pid or a conversation it fails.
func ParseClaudeSession(data []byte) (ClaudeSession, error) {
	var raw struct {
		PID             int             `json:"pid"`
		SessionID       string          `json:"sessionId"`
		Status          any             `json:"status"`
		WaitingFor      any             `json:"waitingFor"`
		StatusUpdatedAt json.RawMessage `json:"statusUpdatedAt"`
		ProcStart       json.RawMessage `json:"procStart"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return ClaudeSession{}, errors.New("not a session file: " + err.Error())
	}
	if raw.PID <= 1 || raw.SessionID == "" {
		return ClaudeSession{}, errors.New("not a session file: it names no process or no conversation")
	}
	s := ClaudeSession{PID: raw.PID, ConversationID: raw.SessionID}
	s.Status, _ = raw.Status.(string)
	s.WaitingFor, _ = raw.WaitingFor.(string)
	s.ProcStart = strings.Trim(string(raw.ProcStart), `"`)
	if s.ProcStart == "null" {
		s.ProcStart = ""
	}
	var at string
	if millis, err := strconv.ParseInt(string(raw.StatusUpdatedAt), 10, 64); err == nil {
		s.Updated = time.UnixMilli(millis)
	} else if json.Unmarshal(raw.StatusUpdatedAt, &at) == nil {
		s.Updated, _ = time.Parse(time.RFC3339Nano, at)
	}
	return s, nil
}

// ClaudeSessionFile finds the session file of a living process that runs the
// conversation, the most recently updated one when there are several. It reports
// false when there is none: claude removes its file when it ends by SIGTERM or
// SIGHUP, and a file left behind by SIGKILL does not count.
func ClaudeSessionFile(configDir, conversationID string) (ClaudeSession, bool) {
	return findClaudeSession(configDir, conversationID, "")
}

// findClaudeSession is ClaudeSessionFile for processes with this LOOP_UID only,
// unless it is "".
func findClaudeSession(configDir, conversationID, uid string) (best ClaudeSession, ok bool) {
	paths, err := filepath.Glob(filepath.Join(globQuote(configDir), "sessions", "*.json"))
	if err != nil || conversationID == "" {
		return best, false
	}
	for _, path := range paths {
		data, updated, err := readSmall(path)
		if err != nil {
			continue
		}
		s, err := ParseClaudeSession(data)
		if err != nil || s.ConversationID != conversationID || !s.living() || !hasUID(s.PID, uid) {
			continue
		}
		if s.Updated.IsZero() {
			s.Updated = updated
		}
		if !ok || s.Updated.After(best.Updated) {
			best, ok = s, true
		}
	}
	return best, ok
}

// readSmall reads a file of at most maxSessionFile bytes, with its modification
// time.
func readSmall(path string) ([]byte, time.Time, error) {
	st, err := os.Lstat(path)
	if err != nil {
		return nil, time.Time{}, err
	}
	if !st.Mode().IsRegular() || st.Size() > maxSessionFile {
		return nil, time.Time{}, errors.New("not a session file")
	}
	data, err := os.ReadFile(path)
	return data, st.ModTime(), err
}

// globQuote makes a path safe as the beginning of a glob pattern.
func globQuote(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// living reports whether the process of the file still runs and is the same one.
// Where its start cannot be compared, a process with the pid is enough.
func (s ClaudeSession) living() bool {
	if err := syscall.Kill(s.PID, 0); err != nil && !errors.Is(err, syscall.EPERM) {
		return false
	}
	// Clock ticks since the boot stay below this for decades; a larger number is
	// another unit.
	const maxTicks = 100_000_000_000
	ticks, err := strconv.ParseInt(s.ProcStart, 10, 64)
	if err != nil || ticks > maxTicks {
		return true
	}
	data, err := os.ReadFile("/proc/" + strconv.Itoa(s.PID) + "/stat")
	if err != nil {
		return true
	}
	const startField = 19 // field 22 of proc(5), counted from the state
	f := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	return len(f) <= startField || f[startField] == s.ProcStart
}

// hasUID reports whether the process has LOOP_UID=uid in its environment.
func hasUID(pid int, uid string) bool {
	if uid == "" {
		return true
	}
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return err == nil && strings.Contains("\x00"+string(data), "\x00LOOP_UID="+uid+"\x00")
}

// Recheck corrects the activity by claude's own session file: a dialog shows there
// at once, and so does an interrupted turn, of which no hook tells. The
// configuration directory is $CLAUDE_CONFIG_DIR, else $HOME/.claude.
func (claude) Recheck(s State, p Process) State {
	s = claudeLimit(s)
	dir := strings.TrimSpace(p.Lookup("CLAUDE_CONFIG_DIR"))
	if dir == "" {
		dir = filepath.Join(p.Lookup("HOME"), ".claude")
	}
	if s.Ended || s.ConversationID == "" || !filepath.IsAbs(dir) {
		return s
	}
	file, ok := findClaudeSession(dir, s.ConversationID, p.Lookup("LOOP_UID"))
	if !s.Ready && !s.Ended {
		waited := time.Since(s.Started)
		s.Ready = ok && file.Status != "" || !ok && waited > readyWithoutFile || waited > readyAnyway
	}
	if !ok {
		return s
	}
	return file.correct(s)
}

// Claude's session file is there about 20 ms before the SessionStart hook runs, and
// has a status about 130 ms after: from then on every carriage return was taken.
const (
	// readyWithoutFile is how long after its start a claude without such a file is
	// believed to take input, and readyAnyway one whose file never gets a status.
	readyWithoutFile = 500 * time.Millisecond
	readyAnyway      = 5 * time.Second
)

// correct applies the file to a State. A dialog is believed whenever it is not
// older than the State; it costs at most a wait. Anything else must be newer.
func (f ClaudeSession) correct(s State) State {
	newer := f.Updated.After(s.Since)
	switch {
	case f.Status == "waiting" && s.Activity != ActivityAwaitingInput && !f.Updated.Before(s.Since):
		what := f.WaitingFor
		if what == "" {
			what = waitingForPermission
		}
		return s.activity(ActivityAwaitingInput, f.Updated, what)
	case f.Status == "idle" && newer:
		return s.activity(ActivityIdle, f.Updated, "")
	case f.Status == "busy" && newer:
		return s.activity(ActivityBusy, f.Updated, "")
	}
	return s
}
