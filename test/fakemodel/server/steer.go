package server

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// schema is the form that a client demands of an answer, as JSON Schema.
type schema struct {
	Type       any               `json:"type"`
	Properties map[string]schema `json:"properties"`
	Enum       []any             `json:"enum"`
}

// asked is a request as far as it matters here, the same for every API.
type asked struct {
	model string
	// stream: the client wants server-sent events.
	stream bool
	// said is what the newest message of the user holds.
	said said
	// messages is their number, tools that of the tools on offer.
	messages, tools int
	// form is what the answer must look like, nil when it is free.
	form *schema
	// side: a question of the harness's own, such as that for a title.
	side bool
	// count: only the tokens are to be counted.
	count bool
}

// said is what the newest user message holds.
type said struct {
	texts  []string
	result bool // of a tool
	pasted bool // one of the texts was marked as a paste
}

// paste is a text that is all one paste, marked as such.
var paste = regexp.MustCompile(`(?s)^\s*<pasted_content id="([0-9a-f]+)">\n(.*)\n</pasted_content id="([0-9a-f]+)">\s*$`)

// add takes a text, a paste without its marks.
func (s *said) add(text string) {
	if m := paste.FindStringSubmatch(text); m != nil && m[1] == m[3] {
		text, s.pasted = m[2], true
	}
	s.texts = append(s.texts, text)
}

// added are how the texts begin that a harness adds to what its user says: reminders
// of Claude Code, the surroundings and AGENTS.md of Codex, those of Gemini.
var added = []string{"<system-reminder>", "<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<session_context>"}

// own reports whether the text is one that a harness adds by itself.
func own(text string) bool {
	for _, a := range added {
		if strings.HasPrefix(strings.TrimSpace(text), a) {
			return true
		}
	}
	return false
}

// content takes the texts of a message's content apart from what the harness adds to
// them: one text, or a list of blocks with a type and a text.
func content(raw json.RawMessage) said {
	var s said
	var one string
	if json.Unmarshal(raw, &one) == nil {
		if !own(one) {
			s.add(one)
		}
		return s
	}
	var blocks []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &blocks) != nil {
		return s
	}
	for _, b := range blocks {
		switch b.Type {
		case "tool_result":
			s.result = true
		case "text", "input_text":
			if !own(b.Text) {
				s.add(b.Text)
			}
		}
	}
	return s
}

// answer is what to answer with.
type answer struct {
	kind   string
	status int
	// limit is how long the account's usage limit lasts from the first such request on, and
	// reset when that ends.
	limit time.Duration
	reset time.Time
	hang  bool
	slow  time.Duration
	text  string
	// tool is called with input when it is not "".
	tool  string
	input map[string]any
}

// directive is [[word rest]]; a single ] may stand in the rest.
var directive = regexp.MustCompile(`\[\[(slow|say|tool|fail|limit|hang)(?: ((?:[^\]\n]|\][^\]\n])*))?\]\]`)

// maxEcho is how much of a text is repeated, in characters.
const maxEcho = 60

// answer decides what to answer.
func (q asked) answer() answer {
	switch {
	case q.form != nil:
		b, _ := json.Marshal(q.form.sample())
		return answer{kind: KindTitle, text: string(b)}
	case q.side:
		return answer{kind: KindTitle, text: "A session"}
	}
	text := strings.Join(q.said.texts, "\n")
	a := answer{kind: KindTurn, text: "You said: " + beginning(text)}
	if q.said.result {
		a.kind, a.text = KindTool, "The tool has answered."
		if len(q.said.texts) == 0 {
			return a
		}
	}
	for _, d := range directive.FindAllStringSubmatch(text, -1) {
		a.follow(d[1], strings.TrimSpace(d[2]))
	}
	return a
}

// follow applies one directive. One that is not understood fails the request, so that
// a test with a slip in it does not pass.
func (a *answer) follow(word, rest string) {
	var err error
	switch word {
	case "slow":
		a.slow, err = time.ParseDuration(rest)
	case "say":
		a.text = rest
	case "hang":
		a.hang = true
	case "limit":
		a.status = http.StatusTooManyRequests
		a.limit, err = time.ParseDuration(rest)
	case "fail":
		a.status, err = strconv.Atoi(rest)
		if err == nil && (a.status < http.StatusBadRequest || a.status > 599) {
			a.status = http.StatusBadRequest
		}
	case "tool":
		name, input, _ := strings.Cut(rest, " ")
		a.tool, a.input = name, map[string]any{"command": input, "description": "Do as the user said"}
		if strings.HasPrefix(input, "{") {
			a.input = nil
			err = json.Unmarshal([]byte(input), &a.input)
		}
	}
	if err != nil {
		a.status = http.StatusBadRequest
	}
}

// beginning is the first line of a text, cut.
func beginning(text string) string {
	line, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	if r := []rune(line); len(r) > maxEcho {
		line, more = string(r[:maxEcho]), true
	}
	if more {
		line += " …"
	}
	return line
}

// sample is a value that the schema admits.
func (s schema) sample() any {
	if len(s.Enum) > 0 {
		return s.Enum[0]
	}
	kind, _ := s.Type.(string)
	switch strings.ToLower(kind) { // Gemini writes OBJECT
	case "object":
		out := map[string]any{}
		for k, p := range s.Properties {
			out[k] = p.sample()
		}
		return out
	case "array":
		return []any{}
	case "boolean":
		return false
	case "number", "integer":
		return 0
	}
	return "A session"
}
