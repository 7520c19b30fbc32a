package server

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// request is what matters of a request for a message.
type request struct {
	Model        string            `json:"model"`
	Stream       bool              `json:"stream"`
	Messages     []message         `json:"messages"`
	Tools        []json.RawMessage `json:"tools"`
	OutputConfig struct {
		Format *struct {
			Type   string `json:"type"`
			Schema schema `json:"schema"`
		} `json:"format"`
	} `json:"output_config"`
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type schema struct {
	Type       any               `json:"type"`
	Properties map[string]schema `json:"properties"`
	Enum       []any             `json:"enum"`
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

// newest is the newest message of the user.
func (q request) newest() said {
	for i := len(q.Messages) - 1; i >= 0; i-- {
		if q.Messages[i].Role == "user" {
			return read(q.Messages[i].Content)
		}
	}
	return said{}
}

// read takes the texts of a message apart from what the harness adds to them.
func read(content json.RawMessage) said {
	var s said
	var one string
	if json.Unmarshal(content, &one) == nil {
		s.add(one)
		return s
	}
	var blocks []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &blocks) != nil {
		return s
	}
	for _, b := range blocks {
		switch {
		case b.Type == "tool_result":
			s.result = true
		case b.Type == "text" && !strings.HasPrefix(strings.TrimSpace(b.Text), "<system-reminder>"):
			s.add(b.Text)
		}
	}
	return s
}

// answer is what to answer with.
type answer struct {
	kind   string
	status int
	hang   bool
	slow   time.Duration
	text   string
	// tool is called with input when it is not "".
	tool  string
	input map[string]any
}

// directive is [[word rest]].
var directive = regexp.MustCompile(`\[\[(slow|say|tool|fail|hang)(?: ([^\]\n]*))?\]\]`)

// maxEcho is how much of a text is repeated, in characters.
const maxEcho = 60

// answer decides what to answer.
func (q request) answer() answer {
	if f := q.OutputConfig.Format; f != nil {
		b, _ := json.Marshal(f.Schema.sample())
		return answer{kind: KindTitle, text: string(b)}
	}
	s := q.newest()
	text := strings.Join(s.texts, "\n")
	a := answer{kind: KindTurn, text: "You said: " + beginning(text)}
	if s.result {
		a.kind, a.text = KindTool, "The tool has answered."
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
	case "fail":
		a.status, err = strconv.Atoi(rest)
		if err == nil && (a.status < http.StatusBadRequest || a.status > 599) {
			a.status = http.StatusBadRequest
		}
	case "tool":
		name, input, _ := strings.Cut(rest, " ")
		a.tool, a.input = name, map[string]any{"command": input, "description": "Do as the user said"}
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
	switch s.Type {
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
