package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// OneShot builds
//
//	opencode run --format json --print-logs --log-level ERROR --title, operator's arguments, -m PROMPT
//
// With its database in memory no conversation is left behind; with a title none is asked
// for; and no tool is on offer, whatever the arguments allow.
func (opencode) OneShot(opts LaunchOptions) (Command, error) {
	if err := errors.Join(checkChoice(opts), opencodeRules.check(opts.Args), checkOpencodeChoice(opts)); err != nil {
		return Command{}, err
	}
	argv := append([]string{opts.Binary, "run", "--format", "json", "--print-logs", "--log-level", "ERROR", "--title", "the-loop"}, opts.Args...)
	if opts.Model != "" {
		argv = append(argv, "-m", opts.Model)
	}
	argv = append(argv, OneShotPrompt)
	return Command{Argv: argv, Env: []string{"OPENCODE_DISABLE_AUTOUPDATE=true", "OPENCODE_DB=:memory:", `OPENCODE_PERMISSION={"*":"deny"}`}}, checkArgv(argv)
}

// checkOpencodeChoice refuses what opencode has no flag for.
func checkOpencodeChoice(opts LaunchOptions) (err error) {
	if opts.Model != "" && !strings.Contains(opts.Model, "/") {
		err = fmt.Errorf("opencode has no model %q: it must be provider/model", opts.Model)
	}
	if opts.Effort != "" {
		err = errors.Join(err, errors.New("opencode has no flag for an effort: leave it out"))
	}
	return err
}

// opencodeEvent is one line of what a call with --format json prints.
type opencodeEvent struct {
	Type  string
	Error struct {
		Name string
		Data struct {
			Message      string
			StatusCode   int
			ResponseBody string
		}
	}
}

// Verdict was measured with 1.18.33. A model that none of its providers has it refuses
// itself, and says so in its log alone. What a service answers it passes on: a 404 of a
// wrong address does not name the model.
func (opencode) Verdict(opts LaunchOptions, a Answer) (Verdict, string) {
	var failed opencodeEvent
	done := false
	for line := range bytes.Lines(a.Stdout) {
		var e opencodeEvent
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		switch e.Type {
		case "step_finish":
			done = true
		case "error":
			failed = e
		}
	}
	data := failed.Error.Data
	unknown := "ProviderModelNotFoundError: Model not found: " + opts.Model + "."
	_, name, _ := strings.Cut(opts.Model, "/")
	switch {
	case failed.Type == "" && done && a.Exit == 0:
		return VerdictAccepted, ""
	case failed.Type == "":
		return a.silent(a.firstError())
	case opts.Model != "" && bytes.Contains(a.Stderr, []byte(unknown)):
		return VerdictRefused, unknown
	case opts.Model != "" && data.StatusCode == http.StatusNotFound && lacksModel(data.Message, name):
		return VerdictRefused, data.Message
	}
	return VerdictUnknown, data.Message
}

// lacksModel reports whether a service says that it does not have this very model, in the
// words of OpenAI, Anthropic or Google.
func lacksModel(message, name string) bool {
	return names(message, name) && strings.Contains(message, "does not exist") || message == "model: "+name ||
		strings.Contains(message, "models/"+name+" is not found")
}
