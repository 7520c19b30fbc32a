package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// OneShot builds
//
//	claude -p PROMPT --output-format json --tools "" --no-session-persistence, operator's arguments, --model, --effort
//
// Without tools the request is a sixth of its size, and nothing can run whatever the
// arguments allow; without persistence no conversation is left behind.
func (claude) OneShot(opts LaunchOptions) (Command, error) {
	if err := errors.Join(checkChoice(opts), checkClaudeArgs(opts.Args), checkClaudeEffort(opts.Effort)); err != nil {
		return Command{}, err
	}
	argv := []string{opts.Binary, "-p", OneShotPrompt, "--output-format", "json", "--tools", "", "--no-session-persistence"}
	argv = append(argv, opts.Args...)
	if opts.Model != "" {
		argv = append(argv, "--model", opts.Model)
	}
	if opts.Effort != "" {
		argv = append(argv, "--effort", opts.Effort)
	}
	return Command{Argv: argv, Env: []string{"DISABLE_AUTOUPDATER=1"}}, checkArgv(argv)
}

// checkClaudeEffort refuses an effort that --effort would ignore.
func checkClaudeEffort(effort string) error {
	if effort == "" || slices.Contains(claudeEfforts, effort) {
		return nil
	}
	return fmt.Errorf("claude has no effort %q: it takes %s", effort, strings.Join(claudeEfforts, ", "))
}

// claudeResult is what a call with --output-format json prints.
type claudeResult struct {
	Type    string `json:"type"`
	IsError bool   `json:"is_error"`
	Result  string `json:"result"`
	Status  int    `json:"api_error_status"`
	Kind    string `json:"api_error_type"`
}

// Verdict was measured with 2.1.332. Its words about a model are the same for every 404,
// also that of a wrong address: only when the service itself said not_found_error are
// they about the model. An unknown effort is ignored with a warning, and exit status 0.
func (claude) Verdict(opts LaunchOptions, a Answer) (Verdict, string) {
	if i := bytes.Index(a.Stderr, []byte("Unknown --effort value")); i >= 0 && opts.Effort != "" {
		line, _, _ := bytes.Cut(a.Stderr[i:], []byte("\n"))
		return VerdictRefused, string(line)
	}
	var r claudeResult
	switch {
	case json.Unmarshal(a.Stdout, &r) != nil || r.Type != "result":
		return a.silent(a.firstError())
	case a.Exit == 0 && !r.IsError:
		return VerdictAccepted, ""
	case opts.Model != "" && r.Status == http.StatusNotFound && r.Kind == "not_found_error" && strings.Contains(r.Result, "selected model ("+opts.Model+")"):
		return VerdictRefused, r.Result
	case opts.Effort != "" && r.Status == http.StatusBadRequest && strings.Contains(r.Result, "effort"):
		return VerdictRefused, r.Result
	}
	return VerdictUnknown, r.Result
}
