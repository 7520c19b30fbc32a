package hook_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/harness/hook"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 5, time.UTC)

var _ = Describe("Parse", func() {
	DescribeTable("what harnesses write",
		func(input string, want hook.Note) {
			want.Time = noon
			got, err := hook.Parse([]byte(input), noon)
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(Equal(want))
		},
		Entry("a start", `{"session_id":"c1","transcript_path":"/t/c1.jsonl","cwd":"/w","hook_event_name":"SessionStart","source":"startup","model":"m"}`,
			hook.Note{Event: "SessionStart", ConversationID: "c1", TranscriptPath: "/t/c1.jsonl", Dir: "/w", Source: "startup"}),
		Entry("a prompt: its digest and length, not its text", `{"session_id":"c1","hook_event_name":"UserPromptSubmit","prompt":"grüße\n"}`,
			hook.Note{Event: "UserPromptSubmit", ConversationID: "c1", PromptDigest: hook.Digest("grüße"), PromptBytes: 8}),
		Entry("a permission", `{"hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"rm -r /"}}`,
			hook.Note{Event: "PermissionRequest", Tool: "Bash"}),
		Entry("a notification", `{"hook_event_name":"Notification","notification_type":"idle_prompt","message":"…"}`,
			hook.Note{Event: "Notification", Notification: "idle_prompt"}),
		Entry("an end", `{"hook_event_name":"SessionEnd","reason":"clear"}`, hook.Note{Event: "SessionEnd", Reason: "clear"}),
		Entry("a failure", `{"hook_event_name":"StopFailure","error":"API Error: 400"}`, hook.Note{Event: "StopFailure", Error: "API Error: 400"}),
		Entry("fields of another type count as absent", `{"hook_event_name":"Stop","session_id":7,"cwd":null,"prompt":["x"],"error":{}}`,
			hook.Note{Event: "Stop"}),
		Entry("names are exact", `{"hook_event_name":"Stop","Session_ID":"x","PROMPT":"x"}`, hook.Note{Event: "Stop"}),
		Entry("an id too long to be one is left out", `{"hook_event_name":"Stop","session_id":"`+strings.Repeat("a", hook.MaxFieldBytes+1)+`"}`,
			hook.Note{Event: "Stop"}),
		Entry("H23: what a failed turn shows", `{"hook_event_name":"StopFailure","error":"rate_limit","last_assistant_message":"You've hit your limit"}`,
			hook.Note{Event: "StopFailure", Error: "rate_limit", Message: "You've hit your limit"}),
		Entry("nothing of what the model says", `{"hook_event_name":"Stop","last_assistant_message":"a secret"}`, hook.Note{Event: "Stop"}),
		Entry("prose is cut between characters", `{"hook_event_name":"StopFailure","error":"`+strings.Repeat("漢", 1000)+`"}`,
			hook.Note{Event: "StopFailure", Error: strings.Repeat("漢", hook.MaxErrorBytes/3)}),
		Entry("a lone surrogate", `{"hook_event_name":"Stop","reason":"\ud800"}`, hook.Note{Event: "Stop", Reason: "\ufffd"}),
	)

	DescribeTable("what it refuses",
		func(input, says string) {
			_, err := hook.Parse([]byte(input), noon)
			Expect(err).To(MatchError(ContainSubstring(says)))
		},
		Entry("nothing", "", "not a JSON object"),
		Entry("garbage", "\x00\xff{", "not a JSON object"),
		Entry("a list", `[1]`, "not a JSON object"),
		Entry("a torn object", `{"hook_event_name":"Stop"`, "not a JSON object"),
		Entry("null", `null`, "no hook_event_name"),
		Entry("no event", `{"session_id":"x"}`, "no hook_event_name"),
		Entry("an event of another type", `{"hook_event_name":1}`, "no hook_event_name"),
		Entry("an event too long to be one", `{"hook_event_name":"`+strings.Repeat("e", hook.MaxFieldBytes+1)+`"}`, "no hook_event_name"),
		Entry("nesting without end", `{"a":`+strings.Repeat("[", 100_000), "not a JSON object"),
		Entry("too much", `{"hook_event_name":"Stop","prompt":"`+strings.Repeat("p", hook.MaxInput)+`"}`, "larger than 4 MiB"),
	)

	It("takes a prompt of almost the limit", func() {
		prompt := strings.Repeat("p", hook.MaxInput-100)
		n, err := hook.Parse([]byte(`{"hook_event_name":"UserPromptSubmit","prompt":"`+prompt+`"}`), noon)
		Expect(err).NotTo(HaveOccurred())
		Expect(n.PromptBytes).To(Equal(len(prompt)))
		Expect(n.PromptDigest).To(Equal(hook.Digest(prompt)))
	})
})

var _ = DescribeTable("Digest is blind to what harnesses change",
	func(a, b string, same bool) {
		equal := Equal(hook.Digest(a))
		if !same {
			equal = Not(equal)
		}
		Expect(hook.Digest(b)).To(equal)
	},
	Entry("line ends", "a\r\nb\rc", "a\nb\nc", true),
	Entry("tabs", "a\tb", "a    b", true),
	Entry("blank ends", "\n a \n\n", "a", true),
	Entry("P37: what is composed", "cafe\u0301", "caf\u00e9", true),
	Entry("P37: what is composed in part", "e\u0301\u0323", "\u1eb9\u0301", true),
	Entry("P37: syllables", "\u1112\u1161\u11ab", "\ud55c", true),
	Entry("P37: the order of many marks", "Z"+strings.Repeat("\u0310\u0335", 40)+"a", "Z"+strings.Repeat("\u0335", 40)+strings.Repeat("\u0310", 40)+"a", true),
	Entry("P37: not the order of equal ones", "a\u0301\u0300", "a\u0300\u0301", false),
	Entry("P37: not what only looks alike", "\ufb01", "fi", false),
	Entry("P37: nor marks elsewhere", "ab\u0301", "a\u0301b", false),
	Entry("nothing else", "a b", "a  b", false),
	Entry("not the case", "a", "A", false),
)

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"hook_event_name":"UserPromptSubmit","prompt":"x","session_id":"y"}`))
	f.Add([]byte(`{"hook_event_name":"Stop","error":"\ud83d\ude00"}`))
	f.Add([]byte("{\"hook_event_name\":\"\xff\"}"))
	f.Fuzz(func(t *testing.T, input []byte) {
		n, err := hook.Parse(input, noon)
		if err != nil {
			if n != (hook.Note{}) {
				t.Fatalf("an error with a note: %+v", n)
			}
			return
		}
		if n.Event == "" || !n.Time.Equal(noon) {
			t.Fatalf("incomplete note: %+v", n)
		}
		for _, s := range []string{n.Event, n.ConversationID, n.Source, n.Reason, n.Notification, n.Tool, n.TranscriptPath, n.Dir, n.Error} {
			if len(s) > hook.MaxFieldBytes || !utf8.ValidString(s) {
				t.Fatalf("field of %d bytes, valid %v", len(s), utf8.ValidString(s))
			}
		}
		path := t.TempDir() + "/journal"
		if err := hook.Append(path, n); err != nil {
			t.Fatal(err)
		}
		back, _, err := hook.Read(path, 0)
		if err != nil || len(back) != 1 || fmt.Sprint(back[0]) != fmt.Sprint(n) {
			t.Fatalf("%+v came back as %+v, %v", n, back, err)
		}
	})
}

var _ = Describe("a prompt that the harness marked as a paste", func() {
	DescribeTable("has the digest of what was pasted",
		func(prompt, pasted string) {
			in, err := json.Marshal(map[string]string{"hook_event_name": "UserPromptSubmit", "prompt": prompt})
			Expect(err).NotTo(HaveOccurred())
			n, err := hook.Parse(in, time.Now())
			Expect(err).NotTo(HaveOccurred())
			Expect(n.PromptDigest).To(Equal(hook.Digest(pasted)))
		},
		Entry("marked", "\n\n<pasted_content id=\"d6b2\">\none\ntwo\n</pasted_content id=\"d6b2\">\n", "one\ntwo"),
		Entry("not marked", "one\ntwo", "one\ntwo"),
		Entry("marked in part alone", "see <pasted_content id=\"d6b2\">\nx\n</pasted_content id=\"d6b2\">", "see <pasted_content id=\"d6b2\">\nx\n</pasted_content id=\"d6b2\">"),
		Entry("two marks that do not belong together", "<pasted_content id=\"a\">\nx\n</pasted_content id=\"b\">", "<pasted_content id=\"a\">\nx\n</pasted_content id=\"b\">"),
	)
})
