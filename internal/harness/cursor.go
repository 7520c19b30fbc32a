package harness

import (
	"errors"

	"github.com/theloop-dev/the-loop/internal/harness/hook"
)

// cursor stands for cursor-agent, which can be run for one answer but not be hosted. It
// is in the list so that whoever names it reads why.
type cursor struct{}

func (cursor) Name() string   { return "cursor" }
func (cursor) Binary() string { return "cursor-agent" }

const cursorRefusal = "cursor-agent cannot be hosted as a session: the id of its conversation can neither be chosen nor found out, so it could not be continued; use claude, codex, gemini or opencode"

func (cursor) Traits() Traits { return Traits{Refusal: cursorRefusal} }

// Command refuses.
func (cursor) Command(LaunchOptions) (Command, error) { return Command{}, errors.New(cursorRefusal) }

// Observe learns nothing.
func (cursor) Observe(s State, _ hook.Note) State { return s }
