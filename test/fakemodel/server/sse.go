package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// sse sends server-sent events.
type sse struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	ctx context.Context
}

func startSSE(w http.ResponseWriter, r *http.Request) *sse {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	return &sse{w: w, rc: http.NewResponseController(w), ctx: r.Context()}
}

// event sends a named event, data one without a name, line one that is no JSON.
func (s *sse) event(name string, v any) {
	_, _ = fmt.Fprintf(s.w, "event: %s\n", name)
	s.data(v)
}

func (s *sse) data(v any) { s.line(encoded(v)) }

func (s *sse) line(text string) {
	_, _ = fmt.Fprintf(s.w, "data: %s\n\n", text)
	_ = s.rc.Flush()
}

// pieces is in how many pieces a slow answer comes, so that the client sees it alive.
const pieces = 20

// pieces sends the text of an answer in as many pieces as it takes time. It is false
// when the client went away before.
func (s *sse) pieces(a answer, send func(piece string)) bool {
	for _, piece := range split(a.text, a.slow) {
		send(piece)
		if a.slow > 0 && !wait(s.ctx, a.slow/pieces) {
			return false
		}
	}
	return true
}

// split cuts a slow answer into pieces, which together are the text with a dot for
// each moment it took.
func split(text string, slow time.Duration) []string {
	if slow <= 0 {
		return []string{text}
	}
	return append(strings.Split(strings.Repeat(".", pieces-1), ""), " "+text)
}

// encoded is v as JSON.
func encoded(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}
