package server

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// speech is how one of the other harnesses asks its model.
type speech struct {
	// path of a request, whole or streamed.
	path func(stream bool) string
	// says is a request in which the user says text after what the harness adds.
	says func(text string, stream bool) any
	// answered is a request in which a tool has answered the text.
	answered func(text string) any
	// form is a request for an answer with a title in a fixed form.
	form func() any
	// last is what the last event of a stream contains, tool what a call of one does.
	last, tool string
}

type obj = map[string]any

func fixed(path string) func(bool) string { return func(bool) string { return path } }

var titleForm = obj{"type": "object", "properties": obj{"title": obj{"type": "string"}}}

var speeches = map[string]speech{
	"responses": {
		path: fixed("/v1/responses"),
		says: func(text string, stream bool) any {
			return obj{"model": "m", "stream": stream, "tools": []any{obj{}}, "input": []any{
				obj{"type": "message", "role": "developer", "content": []any{obj{"type": "input_text", "text": "rules"}}},
				obj{"type": "message", "role": "user", "content": []any{obj{"type": "input_text", "text": text}}},
				obj{"type": "message", "role": "user", "content": []any{obj{"type": "input_text", "text": "<environment_context>x</environment_context>"}}},
			}}
		},
		answered: func(text string) any {
			return obj{"model": "m", "input": []any{
				obj{"type": "message", "role": "user", "content": []any{obj{"type": "input_text", "text": text}}},
				obj{"type": "function_call", "name": "x"}, obj{"type": "function_call_output", "output": text},
			}}
		},
		form: func() any {
			return obj{"model": "m", "input": "[[fail 529]]", "text": obj{"format": obj{"type": "json_schema", "schema": titleForm}}}
		},
		last: "response.completed", tool: `"arguments":"{\"command\":\"echo hi\"`,
	},
	"chat completions": {
		path: fixed("/v1/chat/completions"),
		says: func(text string, stream bool) any {
			return obj{"model": "m", "stream": stream, "tools": []any{obj{}}, "messages": []any{
				obj{"role": "system", "content": "rules"}, obj{"role": "user", "content": []any{obj{"type": "text", "text": text}}},
			}}
		},
		answered: func(text string) any {
			return obj{"model": "m", "tools": []any{obj{}}, "messages": []any{
				obj{"role": "user", "content": text}, obj{"role": "assistant", "content": ""}, obj{"role": "tool", "content": text},
			}}
		},
		form: func() any {
			return obj{"model": "m", "messages": []any{obj{"role": "user", "content": "[[fail 529]]"}}, "response_format": obj{"json_schema": obj{"schema": titleForm}}}
		},
		last: "[DONE]", tool: `"arguments":"{\"command\":\"echo hi\"`,
	},
	"gemini": {
		path: func(stream bool) string {
			if stream {
				return "/v1beta/models/m:streamGenerateContent?alt=sse"
			}
			return "/v1beta/models/m:generateContent"
		},
		says: func(text string, _ bool) any {
			return obj{"tools": []any{obj{"functionDeclarations": []any{obj{}}}}, "contents": []any{
				obj{"role": "user", "parts": []any{obj{"text": "<session_context>x</session_context>"}}}, obj{"role": "model", "parts": []any{}},
				obj{"role": "user", "parts": []any{obj{"text": text}}},
			}}
		},
		answered: func(text string) any {
			return obj{"contents": []any{
				obj{"role": "user", "parts": []any{obj{"text": text}}}, obj{"role": "model", "parts": []any{}},
				obj{"role": "user", "parts": []any{obj{"functionResponse": obj{"response": obj{"output": text}}}}},
			}}
		},
		form: func() any {
			return obj{
				"contents":         []any{obj{"role": "user", "parts": []any{obj{"text": "[[fail 529]]"}}}},
				"generationConfig": obj{"responseSchema": obj{"type": "OBJECT", "properties": obj{"title": obj{"type": "STRING"}}}},
			}
		},
		last: `"finishReason":"STOP"`, tool: `"args":{"command":"echo hi"`,
	},
}

var _ = Describe("the other dialects of the fake model", func() {
	var (
		m   *Model
		url string
	)
	BeforeEach(func() {
		m = New()
		srv := httptest.NewServer(m)
		DeferCleanup(srv.Close)
		url = srv.URL
	})
	ask := func(path string, body any) (int, string) {
		GinkgoHelper()
		text, err := json.Marshal(body)
		Expect(err).NotTo(HaveOccurred())
		resp, err := http.Post(url+path, "application/json", strings.NewReader(string(text)))
		Expect(err).NotTo(HaveOccurred())
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		Expect(err).NotTo(HaveOccurred())
		return resp.StatusCode, string(b)
	}

	for name, s := range speeches {
		Describe(name, func() {
			It("answers with the beginning of the text, whole or streamed, and takes note of it", func() {
				code, body := ask(s.path(false), s.says("hello\nthere", false))
				Expect(code).To(Equal(http.StatusOK))
				Expect(body).To(ContainSubstring(`"You said: hello …"`))
				_, body = ask(s.path(true), s.says("hello", true))
				events := strings.Split(strings.TrimSpace(body), "\n\n")
				Expect(body).To(ContainSubstring(`"You said: hello"`))
				Expect(events[len(events)-1]).To(ContainSubstring(s.last))
				calls := m.Calls(KindTurn)
				Expect(calls).To(HaveLen(2))
				Expect(calls[0].Texts).To(Equal([]string{"hello\nthere"}))
				Expect(calls[1].Took("2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824")).To(BeTrue())
				Expect(calls[1].Model).To(Equal("m"))
				Expect(calls[1].Stream).To(BeTrue())
				Expect(calls[1].Tools).To(Equal(1))
			})

			It("calls a tool, whole or streamed, and ends the turn once it has answered", func() {
				for _, stream := range []bool{false, true} {
					_, body := ask(s.path(stream), s.says("[[tool Bash echo hi]]", stream))
					Expect(body).To(And(ContainSubstring(s.tool), ContainSubstring(`"Bash"`)))
				}
				_, body := ask(s.path(false), s.says(`[[tool Sh {"list":["a"]}]]`, false))
				Expect(strings.ReplaceAll(body, `\"`, `"`)).To(ContainSubstring(`{"list":["a"]}`))
				_, body = ask(s.path(false), s.answered("[[tool Bash ls]]"))
				Expect(body).To(ContainSubstring("The tool has answered."))
				Expect(m.Calls(KindTool)).To(HaveLen(1))
			})

			It("fails as it is told, in the form of its API", func() {
				code, body := ask(s.path(true), s.says("[[fail 503]]", true))
				Expect(code).To(Equal(http.StatusServiceUnavailable))
				var e struct {
					Error struct{ Message string }
				}
				Expect(json.Unmarshal([]byte(body), &e)).To(Succeed())
				Expect(e.Error.Message).To(ContainSubstring("503"))
				code, _ = ask(s.path(true), s.says(`[[tool Sh {"list"]]`, true))
				Expect(code).To(Equal(http.StatusBadRequest))
				code, _ = ask(s.path(true), "no object")
				Expect(code).To(Equal(http.StatusBadRequest))
			})

			It("takes its time, and lets a client go", func() {
				start := time.Now()
				_, body := ask(s.path(true), s.says("[[slow 200ms]]", true))
				Expect(time.Since(start)).To(BeNumerically(">=", 190*time.Millisecond))
				Expect(strings.Count(body, "data: ")).To(BeNumerically(">", pieces))
				text, err := json.Marshal(s.says("[[hang]]", true))
				Expect(err).NotTo(HaveOccurred())
				ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
				defer cancel()
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+s.path(true), strings.NewReader(string(text)))
				Expect(err).NotTo(HaveOccurred())
				_, err = http.DefaultClient.Do(req)
				Expect(err).To(MatchError(context.DeadlineExceeded))
			})

			It("answers a question with a fixed form by that form", func() {
				code, body := ask(s.path(false), s.form())
				Expect(code).To(Equal(http.StatusOK))
				Expect(body).To(ContainSubstring(`{\"title\":\"A session\"}`))
				Expect(m.Calls(KindTitle)).To(HaveLen(1))
			})
		})
	}

	DescribeTable("know no model whose name begins with nosuch", func(path string, body any, status int, words string) {
		code, answer := ask(path, body)
		Expect(code).To(Equal(status))
		Expect(answer).To(ContainSubstring(words))
	},
		Entry("anthropic", "/v1/messages", obj{"model": "nosuch-1"}, http.StatusNotFound, `{"error":{"message":"model: nosuch-1","type":"not_found_error"}`),
		Entry("responses", "/v1/responses", obj{"model": "nosuch-1", "input": "x"}, http.StatusBadRequest, "The requested model 'nosuch-1' does not exist"),
		Entry("chat completions", "/v1/chat/completions", obj{"model": "nosuch-1"}, http.StatusNotFound, "The model `nosuch-1` does not exist"),
		Entry("gemini", "/v1beta/models/nosuch-1:generateContent", obj{}, http.StatusNotFound, "models/nosuch-1 is not found for API version"),
	)

	It("takes a chat without tools for a question of the harness's own", func() {
		_, body := ask("/v1/chat/completions", obj{"messages": []any{obj{"role": "user", "content": "[[fail 529]]"}}})
		Expect(body).To(ContainSubstring("A session"))
		Expect(m.Calls(KindTitle)).To(HaveLen(1))
	})

	It("counts tokens for Gemini", func() {
		_, body := ask("/v1beta/models/m:countTokens", speeches["gemini"].says("hello", false))
		Expect(body).To(ContainSubstring("totalTokens"))
		Expect(m.Calls(KindCount)).To(HaveLen(1))
	})

	DescribeTable("knows no other paths", func(path string) {
		code, _ := ask(path, obj{})
		Expect(code).To(Equal(http.StatusNotFound))
	},
		Entry(nil, "/v1/completions"),
		Entry(nil, "/v1beta/models/m:embedContent"),
	)
})
