package main

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// uuidForm is a UUID in either case.
var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func isUUID(s string) bool { return uuidForm.MatchString(s) }

// newUUID mints a random UUID (version 4).
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// turn is one entry of a conversation.
type turn struct {
	role, text string
}

// store keeps conversations as <home>/projects/<slug of the directory>/<id>.jsonl.
type store struct{ home string }

// conversation is one of them. There is no file before the first turn.
type conversation struct {
	path, id      string
	turns         []turn
	unsaved       int // how many turns from the front have to be written first
	titled        bool
	model, effort string
}

// line is one line of a conversation's file.
type line struct {
	Type      string    `json:"type"`
	SessionID string    `json:"sessionId"`
	UUID      string    `json:"uuid,omitempty"`
	Cwd       string    `json:"cwd,omitempty"`
	Title     string    `json:"title,omitempty"`
	Model     string    `json:"model,omitempty"`
	Effort    string    `json:"effort,omitempty"`
	Operation string    `json:"operation,omitempty"`
	Content   string    `json:"content,omitempty"`
	Message   *message  `json:"message,omitempty"`
	Timestamp time.Time `json:"timestamp"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// slug is the name of a directory's folder: every UTF-16 unit of the real path
// outside A-Za-z0-9 becomes a dash; over 200 it is cut and a hash added.
func slug(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	units := utf16.Encode([]rune(dir))
	out := make([]byte, len(units))
	for i, u := range units {
		out[i] = '-'
		if u >= '0' && u <= '9' || u >= 'A' && u <= 'Z' || u >= 'a' && u <= 'z' {
			out[i] = byte(u)
		}
	}
	const most = 200
	if len(out) <= most {
		return string(out)
	}
	sum := sha256.Sum256([]byte(dir))
	return string(out[:most]) + "-" + hex.EncodeToString(sum[:3])
}

// find is the file of a conversation, whatever directory it was started in.
func (s store) find(id string) (string, bool) {
	dirs, _ := os.ReadDir(filepath.Join(s.home, "projects"))
	for _, d := range dirs {
		path := filepath.Join(s.home, "projects", d.Name(), id+".jsonl")
		if _, err := os.Stat(path); err == nil {
			return path, true
		}
	}
	return "", false
}

func (s store) exists(id string) bool {
	_, ok := s.find(id)
	return ok
}

// latest is the conversation of the directory that was written last.
func (s store) latest(cwd string) (string, bool) {
	paths, _ := filepath.Glob(filepath.Join(s.home, "projects", slug(cwd), "*.jsonl"))
	sort.Slice(paths, func(i, j int) bool { return modTime(paths[i]).After(modTime(paths[j])) })
	if len(paths) == 0 {
		return "", false
	}
	return strings.TrimSuffix(filepath.Base(paths[0]), ".jsonl"), true
}

func modTime(path string) time.Time {
	st, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return st.ModTime()
}

// open is a new conversation.
func (s store) open(cwd, id string) *conversation {
	return &conversation{path: filepath.Join(s.home, "projects", slug(cwd), id+".jsonl"), id: id}
}

// load reads a stored conversation. One without a user's line cannot be resumed,
// although its id counts as used.
func (s store) load(id string) (*conversation, bool) {
	path, ok := s.find(id)
	if !ok {
		return nil, false
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, false
	}
	c := &conversation{path: path, id: id, titled: true}
	for _, raw := range bytes.Split(data, []byte{'\n'}) {
		var l line
		if json.Unmarshal(raw, &l) != nil {
			continue
		}
		c.model, c.effort = firstOf(l.Model, c.model), firstOf(l.Effort, c.effort)
		if l.Message != nil {
			c.turns = append(c.turns, turn{l.Message.Role, l.Message.Content})
		}
	}
	return c, len(c.turns) > 0
}

// write appends lines to the file.
func (c *conversation) write(lines ...line) {
	var buf bytes.Buffer
	for _, l := range lines {
		l.SessionID, l.Timestamp = c.id, time.Now().UTC()
		raw, err := json.Marshal(l)
		if err == nil {
			buf.Write(append(raw, '\n'))
		}
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return
	}
	f, err := os.OpenFile(c.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	_, _ = f.Write(buf.Bytes())
}

// title writes the first line of a new conversation; only that of a process which
// dies now burns the id.
func (c *conversation) title(text, cwd, model, effort string) {
	if c.titled {
		return
	}
	c.titled = true
	c.write(line{Type: "title", Title: excerpt(text, 60), Cwd: cwd, Model: model, Effort: effort})
}

// save writes turns.
func (c *conversation) save(turns ...turn) {
	var lines []line
	for _, t := range append(c.turns[:c.unsaved:c.unsaved], turns...) {
		lines = append(lines, line{Type: t.role, UUID: newUUID(), Message: &message{t.role, t.text}})
	}
	c.unsaved = 0
	c.write(lines...)
}

// enqueue notes a prompt that waits for the running turn; a resume does not send
// it.
func (c *conversation) enqueue(text string) {
	c.write(line{Type: "queue-operation", Operation: "enqueue", Content: text})
}

// excerpt is the first line of a text, at most limit characters of it.
func excerpt(text string, limit int) string {
	first, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	r := []rune(first)
	if len(r) > limit {
		return string(r[:limit]) + "…"
	}
	if more {
		return first + "…"
	}
	return first
}

// sessionFile is what the program writes about itself while it runs.
type sessionFile struct {
	PID             int    `json:"pid"`
	SessionID       string `json:"sessionId"`
	Cwd             string `json:"cwd"`
	StartedAt       int64  `json:"startedAt"`
	Version         string `json:"version"`
	Kind            string `json:"kind"`
	Status          string `json:"status"`
	WaitingFor      string `json:"waitingFor,omitempty"`
	StatusUpdatedAt int64  `json:"statusUpdatedAt"`
	ProcStart       string `json:"procStart,omitempty"`
}

func (a *app) sessionPath() string {
	return filepath.Join(a.home, "sessions", strconv.Itoa(os.Getpid())+".json")
}

// procStart is field 22 of proc(5) of this process.
func procStart() string {
	data, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return ""
	}
	const field = 19
	f := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(f) <= field {
		return ""
	}
	return f[field]
}

// writeAtomically replaces a file.
func writeAtomically(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	tmp := path + ".tmp" + strconv.Itoa(os.Getpid())
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
