package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// usage is made up.
func usage() map[string]int { return map[string]int{"input_tokens": 10, "output_tokens": 5} }

// frame is a message without its content.
func frame(model string, n int) map[string]any {
	return map[string]any{
		"id": fmt.Sprintf("msg_fake_%06d", n), "type": "message", "role": "assistant", "model": model,
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": usage(),
	}
}

func stopReason(a answer) string {
	if a.tool != "" {
		return "tool_use"
	}
	return "end_turn"
}

func toolID(n int) string { return fmt.Sprintf("toolu_fake_%06d", n) }

// whole is the answer in one piece.
func whole(model string, n int, a answer) map[string]any {
	m := frame(model, n)
	content := []any{map[string]any{"type": "text", "text": a.text}}
	if a.tool != "" {
		content = append(content, map[string]any{"type": "tool_use", "id": toolID(n), "name": a.tool, "input": a.input})
	}
	m["content"], m["stop_reason"] = content, stopReason(a)
	return m
}

// pieces is in how many pieces a slow answer comes, so that the client sees it alive.
const pieces = 20

// stream sends the answer as server-sent events.
func stream(w http.ResponseWriter, r *http.Request, model string, n int, a answer) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	rc := http.NewResponseController(w)
	send := func(kind string, v map[string]any) {
		v["type"] = kind
		b, _ := json.Marshal(v)
		_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, b)
		_ = rc.Flush()
	}
	send("message_start", map[string]any{"message": frame(model, n)})
	send("content_block_start", map[string]any{"index": 0, "content_block": map[string]any{"type": "text", "text": ""}})
	for _, piece := range split(a.text, a.slow) {
		send("content_block_delta", map[string]any{"index": 0, "delta": map[string]any{"type": "text_delta", "text": piece}})
		if a.slow > 0 && !wait(r.Context(), a.slow/pieces) {
			return
		}
	}
	send("content_block_stop", map[string]any{"index": 0})
	if a.tool != "" {
		input, _ := json.Marshal(a.input)
		send("content_block_start", map[string]any{"index": 1, "content_block": map[string]any{
			"type": "tool_use", "id": toolID(n), "name": a.tool, "input": map[string]any{},
		}})
		send("content_block_delta", map[string]any{"index": 1, "delta": map[string]any{"type": "input_json_delta", "partial_json": string(input)}})
		send("content_block_stop", map[string]any{"index": 1})
	}
	send("message_delta", map[string]any{"delta": map[string]any{"stop_reason": stopReason(a), "stop_sequence": nil}, "usage": usage()})
	send("message_stop", map[string]any{})
}

// split cuts a slow answer into pieces, which together are the text with a dot for
// each moment it took.
func split(text string, slow time.Duration) []string {
	if slow <= 0 {
		return []string{text}
	}
	return append(strings.Split(strings.Repeat(".", pieces-1), ""), " "+text)
}
