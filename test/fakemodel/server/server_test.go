package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestServer(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "fake model")
}

var _ = Describe("the fake model", func() {
	var (
		m   *Model
		log *bytes.Buffer
		srv *httptest.Server
	)
	BeforeEach(func() {
		m, log = New(), &bytes.Buffer{}
		m.Log = log
		srv = httptest.NewServer(m)
		DeferCleanup(srv.Close)
	})

	// ask posts a request and returns the status and the body of the answer.
	ask := func(path, body string) (int, string) {
		GinkgoHelper()
		resp, err := http.Post(srv.URL+path, "application/json", strings.NewReader(body))
		Expect(err).NotTo(HaveOccurred())
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		Expect(err).NotTo(HaveOccurred())
		return resp.StatusCode, string(b)
	}
	// say is a request in which the user says text.
	say := func(text string, stream bool) string {
		b, err := json.Marshal(map[string]any{"model": "m", "stream": stream, "messages": []any{
			map[string]any{"role": "user", "content": []any{
				map[string]any{"type": "text", "text": "<system-reminder>\nx\n</system-reminder>"},
				map[string]any{"type": "text", "text": text},
			}},
		}})
		Expect(err).NotTo(HaveOccurred())
		return string(b)
	}

	It("answers with the beginning of the text, whole or streamed", func() {
		code, body := ask("/v1/messages?beta=true", say("hello\nthere", false))
		Expect(code).To(Equal(http.StatusOK))
		Expect(body).To(And(ContainSubstring(`"You said: hello …"`), ContainSubstring(`"end_turn"`)))
		_, body = ask("/v1/messages", say("hello", true))
		for _, e := range []string{"message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"} {
			Expect(body).To(ContainSubstring("event: " + e + "\n"))
		}
		Expect(m.Calls(KindTurn)).To(HaveLen(2))
	})

	It("logs a line for each request, with the digest of the newest text", func() {
		ask("/v1/messages", say("hello", true))
		var e Call
		Expect(json.Unmarshal(log.Bytes(), &e)).To(Succeed())
		const digest = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
		Expect(e.TextDigests).To(Equal([]string{digest}))
		Expect(e.Took(digest)).To(BeTrue())
		Expect(e.Pasted).To(BeFalse())
		ask("/v1/messages", say("\n\n<pasted_content id=\"d6b2\">\nhello\n</pasted_content id=\"d6b2\">\n", true))
		Expect(m.Calls()[1].Took(digest)).To(BeTrue())
		Expect(m.Calls()[1].Pasted).To(BeTrue())
	})

	DescribeTable("does as the text says", func(text string, status int, want string) {
		code, body := ask("/v1/messages", say(text, false))
		Expect(code).To(Equal(status))
		Expect(body).To(ContainSubstring(want))
	},
		Entry("say", "[[say my words]]", 200, `"my words"`),
		Entry("a tool", "[[tool Bash echo hi]]", 200, `"command":"echo hi"`),
		Entry("a failure", "[[fail 529]]", 529, "overloaded_error"),
		Entry("a failure that is none", "[[fail 200]]", 400, "invalid_request_error"),
		Entry("a slip", "[[slow soon]]", 400, "invalid_request_error"),
	)

	It("is at its usage limit, as the vendors say it", func() {
		post := func(path, body string) (*http.Response, map[string]any) {
			GinkgoHelper()
			resp, err := http.Post(srv.URL+path, "application/json", strings.NewReader(body))
			Expect(err).NotTo(HaveOccurred())
			defer resp.Body.Close()
			Expect(resp.StatusCode).To(Equal(http.StatusTooManyRequests))
			var out map[string]any
			Expect(json.NewDecoder(resp.Body).Decode(&out)).To(Succeed())
			return resp, out["error"].(map[string]any)
		}
		in2h := BeNumerically("~", time.Now().Add(2*time.Hour).Unix(), 60)
		resp, body := post("/v1/messages", say("[[limit 2h]]", true))
		Expect(body).To(HaveKeyWithValue("type", "rate_limit_error"))
		Expect(resp.Header.Get("anthropic-ratelimit-unified-status")).To(Equal("rejected"))
		at, err := strconv.ParseInt(resp.Header.Get("anthropic-ratelimit-unified-reset"), 10, 64)
		Expect(err).NotTo(HaveOccurred())
		Expect(at).To(in2h)
		_, body = post("/v1/responses", `{"stream":true,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"[[limit 2h]]"}]}]}`)
		Expect(body).To(And(HaveKeyWithValue("type", "usage_limit_reached"), HaveKeyWithValue("resets_at", in2h)))
		_, body = post("/v1/chat/completions", `{"tools":[{}],"messages":[{"role":"user","content":"[[limit 2h]]"}]}`)
		Expect(body).NotTo(BeEmpty())

		post("/v1/messages", say("[[limit 50ms]]", false))
		Eventually(func() int {
			code, _ := ask("/v1/messages", say("[[limit 50ms]]", false))
			return code
		}).Should(Equal(http.StatusOK), "it ends, for the same text too")
	})

	It("wants no other try of a login that it refuses", func() {
		resp, err := http.Post(srv.URL+"/v1/messages", "application/json", strings.NewReader(say("[[fail 401]]", true)))
		Expect(err).NotTo(HaveOccurred())
		Expect(resp.Body.Close()).To(Succeed())
		Expect(resp.StatusCode).To(Equal(http.StatusUnauthorized))
		Expect(resp.Header.Get("X-Should-Retry")).To(Equal("false"))
	})

	It("takes its time, and lets a client go", func() {
		start := time.Now()
		ask("/v1/messages", say("[[slow 200ms]]", true))
		Expect(time.Since(start)).To(BeNumerically(">=", 200*time.Millisecond))
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL+"/v1/messages", strings.NewReader(say("[[hang]]", true)))
		Expect(err).NotTo(HaveOccurred())
		_, err = http.DefaultClient.Do(req)
		Expect(err).To(MatchError(context.DeadlineExceeded))
	})

	It("ends the turn once the tool has answered, and not by what the tool said", func() {
		_, body := ask("/v1/messages", `{"messages":[{"role":"user","content":"[[tool Bash ls]]"},{"role":"assistant","content":[]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"[[tool Bash ls]]"}]}]}`)
		Expect(body).To(ContainSubstring("The tool has answered."))
		Expect(m.Calls(KindTool)).To(HaveLen(1))
	})

	It("answers a question with a fixed form by that form", func() {
		_, body := ask("/v1/messages", `{"messages":[{"role":"user","content":"[[fail 529]]"}],"output_config":{"format":{"type":"json_schema",
			"schema":{"type":"object","properties":{"title":{"type":"string"},"ok":{"type":"boolean"}}}}}}`)
		Expect(body).To(ContainSubstring(`{\"ok\":false,\"title\":\"A session\"}`))
		Expect(m.Calls(KindTitle)).To(HaveLen(1))
	})

	It("counts tokens, says hello, and knows nothing else", func() {
		code, body := ask("/v1/messages/count_tokens", say("hello", false))
		Expect(code).To(Equal(http.StatusOK))
		Expect(body).To(ContainSubstring("input_tokens"))
		resp, err := http.Head(srv.URL + "/api/hello")
		Expect(err).NotTo(HaveOccurred())
		Expect(resp.Body.Close()).To(Succeed())
		Expect(resp.StatusCode).To(Equal(http.StatusOK))
		code, _ = ask("/v1/models", "{}")
		Expect(code).To(Equal(http.StatusNotFound))
		code, _ = ask("/v1/messages", "{")
		Expect(code).To(Equal(http.StatusBadRequest))
	})
})
