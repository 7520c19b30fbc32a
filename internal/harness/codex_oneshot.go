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
//	codex exec --json --ephemeral --skip-git-repo-check, operator's arguments, -m, -c model_reasoning_effort, -s read-only PROMPT
//
// Without --ephemeral a conversation is left behind. The sandbox is the last word on what
// may run, whatever the arguments allow.
func (codex) OneShot(opts LaunchOptions) (Command, error) {
	if err := errors.Join(checkChoice(opts), codexRules.check(opts.Args), checkCodexConfig(opts.Args), checkCodexExec(opts.Args)); err != nil {
		return Command{}, err
	}
	argv := []string{opts.Binary, "exec", "--json", "--ephemeral", "--skip-git-repo-check"}
	argv = append(argv, opts.Args...)
	if opts.Model != "" {
		argv = append(argv, "-m", opts.Model)
	}
	if opts.Effort != "" {
		argv = append(argv, "-c", "model_reasoning_effort="+quoted(opts.Effort))
	}
	argv = append(argv, "-c", "check_for_update_on_startup=false", "-c", `sandbox_mode="read-only"`, "-c", `approval_policy="never"`, OneShotPrompt)
	return Command{Argv: argv}, checkArgv(argv)
}

// checkCodexExec refuses arguments with which the question could run something.
func checkCodexExec(args []string) error {
	for _, a := range args {
		switch flag, _, _ := strings.Cut(a, "="); flag {
		case "--dangerously-bypass-approvals-and-sandbox", "--yolo", "-s", "--sandbox", "--full-auto":
			return fmt.Errorf("codex is not asked about models with the harness argument %s: it would not be kept from running something", flag)
		}
	}
	return nil
}

// codexEvent is one line of what a call with --json prints.
type codexEvent struct {
	Type  string
	Error struct{ Message string }
}

// Verdict was measured with 0.171.0. Of an error that the service explains, Codex prints
// the explanation alone; it puts "unexpected status" before everything else, such as a
// wrong address or a missing login. An effort that a model does not have it leaves out by
// itself, without a word.
func (codex) Verdict(opts LaunchOptions, a Answer) (Verdict, string) {
	var failed string
	done := false
	for line := range bytes.Lines(a.Stdout) {
		var e codexEvent
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		switch e.Type {
		case "turn.completed":
			done = true
		case "turn.failed":
			failed = e.Error.Message
		}
	}
	switch {
	case failed == "" && done && a.Exit == 0:
		return VerdictAccepted, ""
	case failed == "":
		return a.silent(a.firstError())
	case strings.HasPrefix(failed, "unexpected status"):
	case opts.Model != "" && names(failed, opts.Model) && (strings.Contains(failed, "does not exist") || strings.Contains(failed, "is not supported")):
		return VerdictRefused, failed
	case opts.Effort != "" && names(failed, opts.Effort) && strings.Contains(failed, "is not supported"):
		return VerdictRefused, failed
	}
	return VerdictUnknown, failed
}

// names reports whether a text has this very name in quotes.
func names(text, name string) bool {
	return strings.Contains(text, "'"+name+"'") || strings.Contains(text, "`"+name+"`") || strings.Contains(text, `"`+name+`"`)
}
