package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// OneShot builds
//
//	gemini -p PROMPT --output-format json, operator's arguments, --approval-mode plan, --model
//
// In that mode nothing is changed. Gemini CLI takes the flag only once. What it writes
// about a failure goes where the question is asked, which is removed afterwards; of each
// call its own list of conversations keeps one.
func (gemini) OneShot(opts LaunchOptions) (Command, error) {
	if err := errors.Join(checkChoice(opts), geminiRules.check(opts.Args), checkGeminiEffort(opts.Effort), checkGeminiPrint(opts.Args)); err != nil {
		return Command{}, err
	}
	argv := append([]string{opts.Binary, "-p", OneShotPrompt, "--output-format", "json"}, opts.Args...)
	if !hasFlag(opts.Args, "--approval-mode") {
		argv = append(argv, "--approval-mode", "plan")
	}
	if opts.Model != "" {
		argv = append(argv, "--model", opts.Model)
	}
	return Command{Argv: argv, Env: []string{"GEMINI_CLI_NO_RELAUNCH=true", "GEMINI_CLI_TRUST_WORKSPACE=true", "TMPDIR=" + opts.Dir}}, checkArgv(argv)
}

// checkGeminiEffort refuses every effort.
func checkGeminiEffort(effort string) error {
	if effort == "" {
		return nil
	}
	return errors.New("gemini has no flag for an effort: leave it out")
}

// checkGeminiPrint refuses arguments with which the question could run something.
func checkGeminiPrint(args []string) error {
	for i, a := range args {
		flag, value, joined := strings.Cut(a, "=")
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		switch flag {
		case "--approval-mode":
			if value == "plan" || value == "default" {
				continue
			}
		case "--yolo", "-y", "--allowed-tools", "--policy", "--admin-policy":
		default:
			continue
		}
		return fmt.Errorf("gemini is not asked about models with the harness argument %s: it would not be kept from running something", flag)
	}
	return nil
}

// Verdict was measured with 0.61.0. ModelNotFoundError is what it makes of every 404, with
// the service's own words behind it: only when they name the model are they about it.
// A key that is refused ends it with 144 or 145.
func (gemini) Verdict(opts LaunchOptions, a Answer) (Verdict, string) {
	var r struct{ Response *string }
	if a.Exit == 0 && json.Unmarshal(a.Stdout, &r) == nil && r.Response != nil {
		return VerdictAccepted, ""
	}
	line := geminiError(a.Stderr)
	if i := strings.Index(line, "ModelNotFoundError: models/"+opts.Model+" is not found"); i >= 0 && opts.Model != "" {
		return VerdictRefused, line[i:]
	}
	return a.silent(line)
}

// geminiError is the line in which it says what went wrong, else its last one.
func geminiError(stderr []byte) (line string) {
	for l := range bytes.Lines(stderr) {
		text := strings.TrimSpace(string(l))
		if strings.HasPrefix(text, "Error ") || strings.HasPrefix(text, "An unexpected ") {
			return text
		}
		if text != "" {
			line = text
		}
	}
	return line
}
