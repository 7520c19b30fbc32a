package server

import (
	"encoding/json"
	"net/http"
	"regexp"
)

// gemini is Google's generateContent API, as Gemini CLI uses it with an API key.
type gemini struct{}

// geminiPath names the model and what is wanted of it.
var geminiPath = regexp.MustCompile(`^/v1(?:beta|alpha)?/models/([^/:]+):(generateContent|streamGenerateContent|countTokens)$`)

func (gemini) serves(r *http.Request) bool { return geminiPath.MatchString(r.URL.Path) }

// content of the conversation.
type geminiContent struct {
	Role  string `json:"role"`
	Parts []struct {
		Text             string          `json:"text"`
		FunctionResponse json.RawMessage `json:"functionResponse"`
	} `json:"parts"`
}

func (gemini) read(r *http.Request, body []byte) (asked, error) {
	var q struct {
		Contents []geminiContent `json:"contents"`
		Tools    []struct {
			FunctionDeclarations []any `json:"functionDeclarations"`
		} `json:"tools"`
		GenerationConfig struct {
			ResponseSchema     *schema `json:"responseSchema"`
			ResponseJSONSchema *schema `json:"responseJsonSchema"`
		} `json:"generationConfig"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return asked{}, err
	}
	m := geminiPath.FindStringSubmatch(r.URL.Path)
	a := asked{model: m[1], stream: m[2] == "streamGenerateContent", count: m[2] == "countTokens", messages: len(q.Contents)}
	if a.form = q.GenerationConfig.ResponseJSONSchema; a.form == nil {
		a.form = q.GenerationConfig.ResponseSchema
	}
	for _, t := range q.Tools {
		a.tools += len(t.FunctionDeclarations)
	}
	for _, c := range q.Contents {
		if c.Role == "model" {
			continue
		}
		var s said
		for _, p := range c.Parts {
			s.result = s.result || p.FunctionResponse != nil
			if p.Text != "" && !own(p.Text) {
				s.add(p.Text)
			}
		}
		a.said = s
	}
	return a, nil
}

func (gemini) counted(tokens int) any { return map[string]int{"totalTokens": tokens} }

func (gemini) unknown(model string) (int, string) {
	return http.StatusNotFound, "models/" + model + " is not found for API version v1beta, or is not supported for generateContent. " +
		"Call ListModels to see the list of available models and their supported methods."
}

func (gemini) failure(status int, message string) any {
	kind := map[int]string{
		http.StatusBadRequest: "INVALID_ARGUMENT", http.StatusUnauthorized: "UNAUTHENTICATED",
		http.StatusNotFound: "NOT_FOUND", http.StatusTooManyRequests: "RESOURCE_EXHAUSTED", http.StatusServiceUnavailable: "UNAVAILABLE",
	}[status]
	if kind == "" {
		kind = "INTERNAL"
	}
	return map[string]any{"error": map[string]any{"code": status, "message": message, "status": kind}}
}

// piece is a part of an answer; the last one says that it is whole.
func (gemini) piece(model, text string, a answer, last bool) map[string]any {
	parts := []any{}
	if text != "" {
		parts = append(parts, map[string]any{"text": text})
	}
	candidate := map[string]any{"index": 0}
	out := map[string]any{"modelVersion": model, "candidates": []any{candidate}}
	if last {
		if a.tool != "" {
			parts = append(parts, map[string]any{"functionCall": map[string]any{"name": a.tool, "args": a.input}})
		}
		candidate["finishReason"] = "STOP"
		out["usageMetadata"] = map[string]int{"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
	}
	candidate["content"] = map[string]any{"role": "model", "parts": parts}
	return out
}

func (p gemini) whole(model string, _ int, a answer) any { return p.piece(model, a.text, a, true) }

func (p gemini) stream(s *sse, model string, _ int, a answer) {
	if s.pieces(a, func(piece string) { s.data(p.piece(model, piece, a, false)) }) {
		s.data(p.piece(model, "", a, true))
	}
}
