package harness

import (
	"encoding/json"
	"net/http"
	"time"
)

// codexError is why a turn failed, as task_complete says it in the conversation's file.
// Measured with Codex 0.171.0, which runs no hook then: at the usage limit of a plan (HTTP
// 429, error type usage_limit_reached) the info is "usage_limit_exceeded" and the message
// "You’ve hit your usage limit. … try again at 5:04 PM.", of one that ends on another day
// "… try again at Dec 2nd, 2026 10:41 PM.", in local time and without a retry. At HTTP 401
// it tries five times in 6 s, and the info is an object with the status. The prompt had
// been taken, with UserPromptSubmit, and the input box is empty.
type codexError struct {
	Message string
	Info    json.RawMessage `json:"codex_error_info"`
}

// fold notes a refusal. A nil error is that of a turn that was answered, or that a person
// interrupted; the hook Stop tells them apart.
func (e *codexError) fold(s State, at time.Time) State {
	if e == nil {
		return s
	}
	var name string
	if json.Unmarshal(e.Info, &name) == nil {
		if name == "usage_limit_exceeded" {
			return s.limited(e.Message, at, namedTime(e.Message, at, time.Local))
		}
		return s
	}
	var by map[string]struct {
		Status int `json:"http_status_code"`
	}
	if json.Unmarshal(e.Info, &by) != nil {
		return s
	}
	for _, v := range by {
		if v.Status == http.StatusUnauthorized {
			return s.loginRefused(e.Message, at)
		}
	}
	return s
}
