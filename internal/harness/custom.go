package harness

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/theloop-dev/the-loop/internal/harness/hook"
)

// custom hosts any terminal program by the argv templates of its class. It has no
// evidence: what is typed into it is at best "typed".
type custom struct{}

func (custom) Name() string { return "custom" }

// Binary is "": the class must name the executable.
func (custom) Binary() string { return "" }

// Traits: of a program that nothing is known about, the waits are those of the
// slowest harness that was measured (8 s to its prompt, 500 ms between a long paste
// and the carriage return).
func (custom) Traits() Traits {
	return Traits{
		AssignsID:   true,
		Resumes:     true,
		Evidence:    false,
		ReadyWithin: 30 * time.Second,
		SubmitGap:   500 * time.Millisecond,
		TakenWithin: 10 * time.Second,
	}
}

// placeholder matches {{name}} in a template.
var placeholder = regexp.MustCompile(`\{\{[^{}]*\}\}`)

// Names of the placeholders of CustomCommand.
const (
	holdConversationID = "{{conversationID}}"
	holdPromptFile     = "{{promptFile}}"
	holdModel          = "{{model}}"
	holdEffort         = "{{effort}}"
	holdDir            = "{{dir}}"
)

// Mentions reports whether the template for a start (or, with resume, for a
// resume) contains the placeholder, for example "{{promptFile}}".
func (c CustomCommand) Mentions(placeholder string, resume bool) bool {
	return slices.ContainsFunc(c.template(resume), func(e string) bool {
		return strings.Contains(e, placeholder)
	})
}

func (c CustomCommand) template(resume bool) []string {
	if resume {
		return c.ResumeArgs
	}
	return c.StartArgs
}

// Command fills the template in and adds the operator's arguments behind it. It
// refuses whatever the template would silently drop: a model, an effort or a boot
// prompt that has no place in it, and a resume that does not say of which
// conversation ("the last one" can be somebody else's).
func (custom) Command(opts LaunchOptions) (Command, error) {
	if err := errors.Join(checkConversationID(opts.ConversationID), checkChoice(opts)); err != nil {
		return Command{}, err
	}
	where := "startArgs"
	if opts.Resume {
		where = "resumeArgs"
		if len(opts.Custom.ResumeArgs) == 0 {
			return Command{}, errors.New("this custom harness cannot resume: its class has no resumeArgs")
		}
		if !opts.Custom.Mentions(holdConversationID, true) {
			return Command{}, fmt.Errorf("resumeArgs do not contain %s: a resume must name its conversation", holdConversationID)
		}
	}
	values := map[string]string{
		holdConversationID: opts.ConversationID,
		holdPromptFile:     opts.PromptFile,
		holdModel:          opts.Model,
		holdEffort:         opts.Effort,
		holdDir:            opts.Dir,
	}
	for _, must := range []struct{ hold, what string }{
		{holdModel, "a model"}, {holdEffort, "an effort"}, {holdPromptFile, "a boot prompt"},
	} {
		if values[must.hold] != "" && !opts.Custom.Mentions(must.hold, opts.Resume) {
			return Command{}, fmt.Errorf("%s is given, but %s have no %s for it", must.what, where, must.hold)
		}
	}
	argv := []string{opts.Binary}
	for i, element := range opts.Custom.template(opts.Resume) {
		arg, err := fill(element, values)
		if err != nil {
			return Command{}, fmt.Errorf("%s[%d]: %w", where, i, err)
		}
		if arg == "" && element != "" && placeholder.FindString(element) == element {
			continue
		}
		argv = append(argv, arg)
	}
	argv = append(argv, opts.Args...)
	if err := checkArgv(argv); err != nil {
		return Command{}, err
	}
	return Command{Argv: argv}, nil
}

// fill replaces the placeholders of one element, each once: a value that looks like
// a placeholder stays as it is.
func fill(element string, values map[string]string) (string, error) {
	var unknown string
	out := placeholder.ReplaceAllStringFunc(element, func(p string) string {
		v, ok := values[p]
		if !ok {
			unknown = p
		}
		return v
	})
	if unknown != "" {
		return "", fmt.Errorf("unknown placeholder %s: known are %s, %s, %s, %s, %s", unknown,
			holdConversationID, holdPromptFile, holdModel, holdEffort, holdDir)
	}
	return out, nil
}

// Observe learns nothing: a custom harness runs no hooks of ours.
func (custom) Observe(s State, _ hook.Note) State { return s }
