package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// responses is OpenAI's responses API, as Codex uses it.
type responses struct{}

func (responses) serves(r *http.Request) bool { return r.URL.Path == "/v1/responses" }

func (responses) read(_ *http.Request, body []byte) (asked, error) {
	var q struct {
		Model  string          `json:"model"`
		Stream bool            `json:"stream"`
		Input  json.RawMessage `json:"input"`
		Tools  []any           `json:"tools"`
		Text   struct {
			Format struct {
				Type   string `json:"type"`
				Schema schema `json:"schema"`
			} `json:"format"`
		} `json:"text"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return asked{}, err
	}
	a := asked{model: q.Model, stream: q.Stream, tools: len(q.Tools)}
	if q.Text.Format.Type == "json_schema" {
		a.form = &q.Text.Format.Schema
	}
	var one string
	if json.Unmarshal(q.Input, &one) == nil {
		a.messages = 1
		a.said.add(one)
		return a, nil
	}
	var items []struct {
		Type    string          `json:"type"`
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(q.Input, &items); err != nil {
		return asked{}, fmt.Errorf("input is neither a text nor a list: %w", err)
	}
	a.messages = len(items)
	for _, i := range items {
		switch {
		case i.Type == "function_call_output" || i.Type == "custom_tool_call_output":
			a.said = said{result: true}
		case i.Role == "user":
			// What the harness adds comes as messages of their own.
			if s := content(i.Content); len(s.texts) > 0 {
				a.said = s
			}
		}
	}
	return a, nil
}

func (responses) counted(tokens int) any { return map[string]int{"input_tokens": tokens} }

// limited is the limit of a ChatGPT plan.
func (responses) limited(_ http.Header, reset time.Time) any {
	return map[string]any{"error": map[string]any{
		"type": "usage_limit_reached", "message": "The usage limit has been reached", "plan_type": "plus",
		"resets_at": reset.Unix(), "resets_in_seconds": int(time.Until(reset).Seconds()),
	}}
}

func (responses) failure(status int, message string) any { return openAIFailure(status, message) }

func (responses) unknown(model string) (int, string) {
	return http.StatusBadRequest, "The requested model '" + model + "' does not exist."
}

// openAIFailure is an error as both of OpenAI's APIs give it.
func openAIFailure(status int, message string) any {
	kind := "invalid_request_error"
	switch {
	case status == http.StatusTooManyRequests:
		kind = "rate_limit_exceeded"
	case status >= http.StatusInternalServerError:
		kind = "server_error"
	}
	return map[string]any{"error": map[string]any{"message": message, "type": kind, "param": nil, "code": nil}}
}

// items are what the answer consists of.
func (responses) items(n int, a answer) []map[string]any {
	out := []map[string]any{{
		"id": fmt.Sprintf("msg_fake_%06d", n), "type": "message", "role": "assistant", "status": "completed",
		"content": []any{map[string]any{"type": "output_text", "text": a.text, "annotations": []any{}}},
	}}
	if a.tool != "" {
		out = append(out, map[string]any{
			"id": fmt.Sprintf("fc_fake_%06d", n), "type": "function_call", "status": "completed",
			"call_id": fmt.Sprintf("call_fake_%06d", n), "name": a.tool, "arguments": encoded(a.input),
		})
	}
	return out
}

func (responses) frame(model string, n int, status string, items []map[string]any) map[string]any {
	if items == nil {
		items = []map[string]any{}
	}
	f := map[string]any{"id": fmt.Sprintf("resp_fake_%06d", n), "object": "response", "status": status, "model": model, "output": items}
	if status == "completed" {
		f["usage"] = map[string]any{
			"input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
			"input_tokens_details": map[string]int{"cached_tokens": 0}, "output_tokens_details": map[string]int{"reasoning_tokens": 0},
		}
	}
	return f
}

func (p responses) whole(model string, n int, a answer) any {
	return p.frame(model, n, "completed", p.items(n, a))
}

func (p responses) stream(s *sse, model string, n int, a answer) {
	number := 0
	send := func(kind string, v map[string]any) {
		v["type"], v["sequence_number"] = kind, number
		number++
		s.event(kind, v)
	}
	items := p.items(n, a)
	id := items[0]["id"]
	send("response.created", map[string]any{"response": p.frame(model, n, "in_progress", nil)})
	send("response.output_item.added", map[string]any{"output_index": 0, "item": map[string]any{
		"id": id, "type": "message", "role": "assistant", "status": "in_progress", "content": []any{},
	}})
	if !s.pieces(a, func(piece string) {
		send("response.output_text.delta", map[string]any{"item_id": id, "output_index": 0, "content_index": 0, "delta": piece})
	}) {
		return
	}
	for i, item := range items {
		send("response.output_item.done", map[string]any{"output_index": i, "item": item})
	}
	send("response.completed", map[string]any{"response": p.frame(model, n, "completed", items)})
}
