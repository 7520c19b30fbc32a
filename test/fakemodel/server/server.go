// Package server is the fake model: an http.Handler that speaks as much of the APIs of
// three vendors as their harnesses use, without a model: the Anthropic messages API
// (Claude Code), the OpenAI responses API (Codex) and chat completions (opencode), and
// Google's generateContent (Gemini CLI). Each API is one file, a dialect.
//
// What it answers is steered by directives in the newest text of the user; several may
// stand in one text:
//
//	[[slow 3s]]            the answer takes 3 s from its first to its last piece
//	[[say some words]]     the answer is "some words" instead of an echo
//	[[tool Bash echo hi]]  the model calls the tool Bash with the command "echo hi"; once
//	                       its result is there, the turn ends
//	[[tool Sh {"cmd":"ls"}]]  the same with this input, for a tool of another form
//	[[fail 529]]           the request fails with that HTTP status, each time
//	[[limit 2h]]           the account's usage limit is reached and ends 2 h after this text
//	                       first came, as the vendor says it to a subscription (Anthropic and
//	                       OpenAI; else HTTP 429). A harness sends a text that was not
//	                       answered again, together with the next one.
//	[[hang]]               no answer until the client goes away
//
// Without one the answer is "You said: " and the beginning of the text. A model whose name
// begins with "nosuch" is refused, in the vendor's words. Each request is
// a Call, kept in memory and written to Log as a line of JSON.
package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxBody bounds a request, in bytes.
const maxBody = 64 << 20

// Call is one request, as it was understood.
type Call struct {
	Time   time.Time `json:"time"`
	Method string    `json:"method"`
	Path   string    `json:"path"`
	// Kind is what the request is for: KindTurn, KindTool, KindTitle, KindCount,
	// KindHello or KindOther.
	Kind  string `json:"kind"`
	Model string `json:"model,omitempty"`
	// Stream: the client asked for server-sent events.
	Stream bool `json:"stream,omitempty"`
	// Texts are the texts of the newest user message, without the reminders that the
	// harnesses add to it. A text that is all one paste is given without the tags that
	// Claude Code puts around it (seen with CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 from
	// four lines or 800 characters on), and Pasted is set. TextDigests are the SHA-256 of
	// each in hexadecimal.
	Texts       []string `json:"texts,omitempty"`
	TextDigests []string `json:"textDigests,omitempty"`
	Pasted      bool     `json:"pasted,omitempty"`
	// Messages is the number of messages (or items) in the conversation so far, Tools of
	// the tools on offer.
	Messages int `json:"messages,omitempty"`
	Tools    int `json:"tools,omitempty"`
	// Status is the HTTP status of the answer.
	Status int `json:"status"`
}

// Values of Call.Kind.
const (
	// KindTurn: the user said something.
	KindTurn = "turn"
	// KindTool: the result of a tool goes back to the model.
	KindTool = "tool"
	// KindTitle: a title or another side question with a fixed form of answer.
	KindTitle = "title"
	// KindCount: tokens are counted.
	KindCount = "count"
	// KindHello: the client looks whether the server is there.
	KindHello = "hello"
	// KindOther: anything else; answered with 404.
	KindOther = "other"
)

// Took reports whether one of the newest user texts has this SHA-256.
func (e Call) Took(digest string) bool { return slices.Contains(e.TextDigests, digest) }

// Model is the fake model. Make one with New; it may be used by many clients at once.
type Model struct {
	// Log gets a line of JSON for each request; nil for none. Set it before the first
	// request.
	Log io.Writer

	mu      sync.Mutex
	calls   []Call
	answers int
	resets  map[string]time.Time // of the limits, by the text that began them
}

// New makes a fake model.
func New() *Model { return &Model{resets: map[string]time.Time{}} }

// HTTP is a server around the model whose requests end with ctx, to be used with a
// listener of the caller's. Close it in the end.
func (m *Model) HTTP(ctx context.Context) *http.Server {
	return &http.Server{
		Handler: m, ReadHeaderTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
}

// Calls are the requests so far, of these kinds, or all; oldest first.
func (m *Model) Calls(kinds ...string) []Call {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Call
	for _, e := range m.calls {
		if len(kinds) == 0 || slices.Contains(kinds, e.Kind) {
			out = append(out, e)
		}
	}
	return out
}

// record keeps a call when its answer begins, so that what a test sees is no later
// than what the harness sees.
func (m *Model) record(e Call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, e)
	if m.Log != nil {
		if line, err := json.Marshal(e); err == nil {
			_, _ = m.Log.Write(append(line, '\n'))
		}
	}
}

// next numbers the answers.
func (m *Model) next() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answers++
	return m.answers
}

// dialect is the API of one vendor.
type dialect interface {
	// serves reports whether a POST request is of this API.
	serves(r *http.Request) bool
	// read understands a request.
	read(r *http.Request, body []byte) (asked, error)
	// counted is the answer to a question for the number of tokens.
	counted(tokens int) any
	// whole is the n-th answer in one piece, and stream sends it in several.
	whole(model string, n int, a answer) any
	stream(s *sse, model string, n int, a answer)
	// failure is an error with this HTTP status.
	failure(status int, message string) any
	// unknown is what the vendor says of a model that it does not have.
	unknown(model string) (status int, message string)
}

// limiter is a dialect in which the vendor tells a subscription of its usage limit.
type limiter interface {
	// limited is the answer at the limit, with what belongs into its header.
	limited(h http.Header, reset time.Time) any
}

// dialects are all that are spoken; the first one also answers what none serves.
var dialects = []dialect{anthropic{}, responses{}, chat{}, gemini{}}

func dialectOf(r *http.Request) (dialect, bool) {
	for _, d := range dialects {
		if r.Method == http.MethodPost && d.serves(r) {
			return d, true
		}
	}
	return dialects[0], false
}

// ServeHTTP answers one request.
func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := Call{Time: time.Now().UTC(), Method: r.Method, Path: r.URL.Path, Status: http.StatusOK, Kind: KindOther}
	if r.URL.Path == "/api/hello" {
		e.Kind = KindHello
		m.record(e)
		w.WriteHeader(e.Status)
		return
	}
	d, ok := dialectOf(r)
	if !ok {
		e.Status = http.StatusNotFound
		m.record(e)
		fail(w, d, e.Status, "")
		return
	}
	var q asked
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		q, err = d.read(r, body)
	}
	if err != nil {
		e.Status = http.StatusBadRequest
		m.record(e)
		fail(w, d, e.Status, "")
		return
	}
	e.Model, e.Stream, e.Messages, e.Tools, e.Pasted = q.model, q.stream, q.messages, q.tools, q.said.pasted
	for _, t := range q.said.texts {
		e.Texts = append(e.Texts, t)
		sum := sha256.Sum256([]byte(t))
		e.TextDigests = append(e.TextDigests, hex.EncodeToString(sum[:]))
	}
	if q.count {
		e.Kind = KindCount
		m.record(e)
		answerJSON(w, d.counted(len(body)/bytesPerToken))
		return
	}
	m.message(w, r, d, q, e)
}

// unknownModel is how the names of models begin that no vendor has.
const unknownModel = "nosuch"

// bytesPerToken is a rough guess.
const bytesPerToken = 4

// message answers a request for a message.
func (m *Model) message(w http.ResponseWriter, r *http.Request, d dialect, q asked, e Call) {
	a := q.answer()
	why := ""
	if strings.HasPrefix(q.model, unknownModel) {
		a = answer{kind: a.kind}
		a.status, why = d.unknown(q.model)
	}
	if a.limit != 0 {
		m.limited(&a, q.said.texts)
	}
	e.Kind = a.kind
	if a.status != 0 {
		e.Status = a.status
	}
	m.record(e)
	switch {
	case !a.reset.IsZero():
		limit(w, d, a)
	case a.status != 0:
		fail(w, d, a.status, why)
	case a.hang:
		<-r.Context().Done()
	case q.stream:
		d.stream(startSSE(w, r), q.model, m.next(), a)
	default:
		if wait(r.Context(), a.slow) {
			answerJSON(w, d.whole(q.model, m.next(), a))
		}
	}
}

// limited takes the limit back from an answer when it has ended.
func (m *Model) limited(a *answer, texts []string) {
	i := slices.IndexFunc(texts, func(t string) bool { return strings.Contains(t, "[[limit ") })
	if i < 0 { // in two texts
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	key := strings.TrimSpace(texts[i])
	if _, ok := m.resets[key]; !ok {
		m.resets[key] = time.Now().Add(a.limit)
	}
	if a.reset = m.resets[key]; !time.Now().Before(a.reset) {
		a.status, a.reset = 0, time.Time{}
	}
}

// wait is false when the client went away before.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// fail answers with an error in the API's form, and a reason of its own without one.
func fail(w http.ResponseWriter, d dialect, status int, why string) {
	w.Header().Set("Content-Type", "application/json")
	if status == http.StatusUnauthorized {
		w.Header().Set("X-Should-Retry", "false") // else Claude Code tries ten times, for minutes
	}
	w.WriteHeader(status)
	if why == "" {
		why = fmt.Sprintf("the fake model failed with %d as it was told to", status)
	}
	_ = json.NewEncoder(w).Encode(d.failure(status, why))
}

// limit answers that the usage limit is reached.
func limit(w http.ResponseWriter, d dialect, a answer) {
	l, ok := d.(limiter)
	if !ok {
		fail(w, d, a.status, "")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	body := l.limited(w.Header(), a.reset)
	w.WriteHeader(a.status)
	_ = json.NewEncoder(w).Encode(body)
}

func answerJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}
