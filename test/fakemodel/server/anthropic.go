package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// anthropic is the messages API, as Claude Code uses it.
type anthropic struct{}

const anthropicCount = "/v1/messages/count_tokens"

func (anthropic) serves(r *http.Request) bool {
	return r.URL.Path == "/v1/messages" || r.URL.Path == anthropicCount
}

func (anthropic) read(r *http.Request, body []byte) (asked, error) {
	var q struct {
		Model    string `json:"model"`
		Stream   bool   `json:"stream"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Tools        []json.RawMessage `json:"tools"`
		OutputConfig struct {
			Format *struct {
				Schema schema `json:"schema"`
			} `json:"format"`
		} `json:"output_config"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return asked{}, err
	}
	a := asked{model: q.Model, stream: q.Stream, messages: len(q.Messages), tools: len(q.Tools), count: r.URL.Path == anthropicCount}
	if f := q.OutputConfig.Format; f != nil {
		a.form = &f.Schema
	}
	for _, m := range q.Messages {
		if m.Role == "user" {
			a.said = content(m.Content)
		}
	}
	return a, nil
}

func (anthropic) counted(tokens int) any { return map[string]int{"input_tokens": tokens} }

func (anthropic) unknown(model string) (int, string) { return http.StatusNotFound, "model: " + model }

func (anthropic) failure(status int, message string) any {
	kind := map[int]string{
		http.StatusBadRequest: "invalid_request_error", http.StatusUnauthorized: "authentication_error",
		http.StatusNotFound: "not_found_error", http.StatusTooManyRequests: "rate_limit_error", 529: "overloaded_error",
	}[status]
	if kind == "" {
		kind = "api_error"
	}
	return map[string]any{"type": "error", "error": map[string]string{"type": kind, "message": message}}
}

// limited is the 5-hour limit of a subscription.
func (p anthropic) limited(h http.Header, reset time.Time) any {
	const unified = "Anthropic-Ratelimit-Unified-"
	at := strconv.FormatInt(reset.Unix(), 10)
	for name, value := range map[string]string{
		"Status": "rejected", "Reset": at, "Representative-Claim": "five_hour", "Fallback": "unavailable",
		"5h-Status": "rejected", "5h-Reset": at, "5h-Utilization": "1.0",
	} {
		h.Set(unified+name, value)
	}
	h.Set("Retry-After", strconv.Itoa(int(time.Until(reset).Seconds())))
	h.Set("X-Should-Retry", "false")
	return p.failure(http.StatusTooManyRequests, "This request would exceed your account's rate limit. Please try again later.")
}

// usage is made up.
func (anthropic) usage() map[string]int {
	return map[string]int{"input_tokens": 10, "output_tokens": 5}
}

// frame is a message without its content.
func (p anthropic) frame(model string, n int) map[string]any {
	return map[string]any{
		"id": fmt.Sprintf("msg_fake_%06d", n), "type": "message", "role": "assistant", "model": model,
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": p.usage(),
	}
}

func (anthropic) stopReason(a answer) string {
	if a.tool != "" {
		return "tool_use"
	}
	return "end_turn"
}

func (anthropic) toolID(n int) string { return fmt.Sprintf("toolu_fake_%06d", n) }

func (p anthropic) whole(model string, n int, a answer) any {
	m := p.frame(model, n)
	content := []any{map[string]any{"type": "text", "text": a.text}}
	if a.tool != "" {
		content = append(content, map[string]any{"type": "tool_use", "id": p.toolID(n), "name": a.tool, "input": a.input})
	}
	m["content"], m["stop_reason"] = content, p.stopReason(a)
	return m
}

func (p anthropic) stream(s *sse, model string, n int, a answer) {
	send := func(kind string, v map[string]any) {
		v["type"] = kind
		s.event(kind, v)
	}
	send("message_start", map[string]any{"message": p.frame(model, n)})
	send("content_block_start", map[string]any{"index": 0, "content_block": map[string]any{"type": "text", "text": ""}})
	if !s.pieces(a, func(piece string) {
		send("content_block_delta", map[string]any{"index": 0, "delta": map[string]any{"type": "text_delta", "text": piece}})
	}) {
		return
	}
	send("content_block_stop", map[string]any{"index": 0})
	if a.tool != "" {
		send("content_block_start", map[string]any{"index": 1, "content_block": map[string]any{
			"type": "tool_use", "id": p.toolID(n), "name": a.tool, "input": map[string]any{},
		}})
		send("content_block_delta", map[string]any{"index": 1, "delta": map[string]any{"type": "input_json_delta", "partial_json": encoded(a.input)}})
		send("content_block_stop", map[string]any{"index": 1})
	}
	send("message_delta", map[string]any{"delta": map[string]any{"stop_reason": p.stopReason(a), "stop_sequence": nil}, "usage": p.usage()})
	send("message_stop", map[string]any{})
}
