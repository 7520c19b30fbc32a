package server

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// chat is OpenAI's chat completions API, as opencode uses it for a provider of its
// package @ai-sdk/openai-compatible.
type chat struct{}

func (chat) serves(r *http.Request) bool { return r.URL.Path == "/v1/chat/completions" }

func (chat) read(_ *http.Request, body []byte) (asked, error) {
	var q struct {
		Model    string `json:"model"`
		Stream   bool   `json:"stream"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Tools          []any `json:"tools"`
		ResponseFormat struct {
			JSONSchema *struct {
				Schema schema `json:"schema"`
			} `json:"json_schema"`
		} `json:"response_format"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return asked{}, err
	}
	// opencode's question for a title offers no tools.
	a := asked{model: q.Model, stream: q.Stream, messages: len(q.Messages), tools: len(q.Tools), side: len(q.Tools) == 0}
	if f := q.ResponseFormat.JSONSchema; f != nil {
		a.form = &f.Schema
	}
	for _, m := range q.Messages {
		switch m.Role {
		case "user":
			a.said = content(m.Content)
		case "tool":
			a.said = said{result: true}
		}
	}
	return a, nil
}

func (chat) counted(tokens int) any { return map[string]int{"prompt_tokens": tokens} }

func (chat) unknown(model string) (int, string) {
	return http.StatusNotFound, "The model `" + model + "` does not exist or you do not have access to it."
}

func (chat) failure(status int, message string) any { return openAIFailure(status, message) }

func (chat) finish(a answer) string {
	if a.tool != "" {
		return "tool_calls"
	}
	return "stop"
}

func (chat) calls(n int, a answer) []any {
	if a.tool == "" {
		return nil
	}
	return []any{map[string]any{
		"index": 0, "id": fmt.Sprintf("call_fake_%06d", n), "type": "function",
		"function": map[string]any{"name": a.tool, "arguments": encoded(a.input)},
	}}
}

// frame is a completion with one choice.
func (chat) frame(model, object string, n int, choice map[string]any, used bool) map[string]any {
	choice["index"] = 0
	f := map[string]any{"id": fmt.Sprintf("chatcmpl-fake-%06d", n), "object": object, "created": 0, "model": model, "choices": []any{choice}}
	if used {
		f["usage"] = map[string]int{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
	}
	return f
}

func (p chat) whole(model string, n int, a answer) any {
	message := map[string]any{"role": "assistant", "content": a.text}
	if calls := p.calls(n, a); calls != nil {
		message["tool_calls"] = calls
	}
	return p.frame(model, "chat.completion", n, map[string]any{"message": message, "finish_reason": p.finish(a)}, true)
}

func (p chat) stream(s *sse, model string, n int, a answer) {
	send := func(delta map[string]any, finish any) {
		s.data(p.frame(model, "chat.completion.chunk", n, map[string]any{"delta": delta, "finish_reason": finish}, finish != nil))
	}
	send(map[string]any{"role": "assistant", "content": ""}, nil)
	if !s.pieces(a, func(piece string) { send(map[string]any{"content": piece}, nil) }) {
		return
	}
	if calls := p.calls(n, a); calls != nil {
		send(map[string]any{"tool_calls": calls}, nil)
	}
	send(map[string]any{}, p.finish(a))
	s.line("[DONE]")
}
