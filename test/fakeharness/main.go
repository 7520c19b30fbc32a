// Command fakeharness is a terminal program that behaves like a coding agent but
// has no model behind it: the contract of a harness for tests and demonstrations.
// On its command line, on its terminal, in its files and in its hooks it does what
// Claude Code 2.1.332 was measured to do, and it can misbehave on command (see
// --help) in the ways that people report of real ones.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"
)

// version is what --version prints; the build sets it.
var version = "dev"

func main() { os.Exit(run(os.Args[1:])) }

// failure is an error that ends the program with a text on the terminal, as the
// real program prints it.
type failure struct{ text string }

func (f failure) Error() string { return f.text }

func run(args []string) int {
	if len(args) == 2 && args[0] == childArg {
		return runChild(args[1])
	}
	opts, err := parseArgs(args)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	case opts.version:
		fmt.Println("fakeharness", version)
		return 0
	case opts.help:
		fmt.Print(helpText())
		return 0
	}
	a, err := newApp(opts)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		var f failure
		if errors.As(err, &f) {
			return 1
		}
		return 2
	}
	return a.main()
}

// home is where conversations, session files and the configuration are kept:
// $FAKEHARNESS_HOME, else ${XDG_STATE_HOME:-~/.local/state}/fakeharness.
func home() (string, error) {
	if h := os.Getenv("FAKEHARNESS_HOME"); h != "" {
		return h, nil
	}
	state := os.Getenv("XDG_STATE_HOME")
	if state == "" {
		h, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("fakeharness needs FAKEHARNESS_HOME or HOME: %w", err)
		}
		state = filepath.Join(h, ".local", "state")
	}
	return filepath.Join(state, "fakeharness"), nil
}

// newApp prepares everything that can be refused before the terminal is touched.
func newApp(opts options) (*app, error) {
	m, err := parseModes(os.Getenv("FAKEHARNESS_BEHAVIOUR"))
	if err != nil {
		return nil, fmt.Errorf("FAKEHARNESS_BEHAVIOUR: %w", err)
	}
	dir, err := home()
	if err != nil {
		return nil, err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("working directory: %w", err)
	}
	log, err := openLog(os.Getenv("FAKEHARNESS_LOG"))
	if err != nil {
		return nil, err
	}
	log.event("started", fields{
		"argv": os.Args, "pid": os.Getpid(), "uid": os.Getenv("LOOP_UID"), "cwd": cwd,
		"tmux": os.Getenv("TMUX"), "behaviour": m.String(),
	})
	a := &app{opts: opts, modes: m, log: log, home: dir, cwd: cwd, started: time.Now(), events: make(chan func(), eventRoom)}
	if a.settings, err = parseSettings(opts.settings); err != nil {
		return nil, a.refuse(err.Error())
	}
	if code, ok := m.number("exit"); ok && !m.has("exit-after") {
		log.event("exit", fields{"code": code})
		os.Exit(code)
	}
	if m.has("crash") {
		crash()
	}
	if d, ok := m.millis("slow-start"); ok {
		time.Sleep(d)
	}
	if err := a.openConversation(); err != nil {
		return nil, err
	}
	if !opts.print && (!term.IsTerminal(0) || !term.IsTerminal(1)) {
		return nil, a.refuse("Error: standard input and output must be a terminal (or use --print)")
	}
	return a, nil
}

// refuse logs the end of a program that never got to its terminal.
func (a *app) refuse(text string) error {
	a.log.event("exit", fields{"code": 1, "text": text})
	return failure{text}
}

// openConversation decides which conversation runs, as the real program does it.
func (a *app) openConversation() error {
	a.store = store{home: a.home}
	o := a.opts
	switch {
	case o.resumeSet && o.sessionID != "" && !o.fork:
		return a.refuse("Error: --session-id can only be used with --continue or --resume if --fork-session is also specified.")
	case o.sessionID != "" && !isUUID(o.sessionID):
		return a.refuse("Error: Invalid session ID. Must be a valid UUID.")
	case o.continueLast:
		last, ok := a.store.latest(a.cwd)
		if !ok {
			return a.refuse("No conversation found to continue")
		}
		o.resumeSet, o.resume = true, last
	}
	if o.resumeSet && o.resume != "" && isUUID(o.resume) {
		return a.resumeConversation(o)
	}
	a.picker = o.resumeSet
	a.id = o.sessionID
	if a.id == "" {
		a.id = newUUID()
	}
	if a.store.exists(a.id) {
		return a.refuse(fmt.Sprintf("Error: Session ID %s is already in use.", a.id))
	}
	a.source = "startup"
	a.conv = a.store.open(a.cwd, a.id)
	return nil
}

func (a *app) resumeConversation(o options) error {
	conv, ok := a.store.load(o.resume)
	if !ok || a.modes.has("lose-resume") {
		time.Sleep(a.modes.millisOr("resume-delay", 500*time.Millisecond))
		return a.refuse("No conversation found with session ID: " + o.resume)
	}
	a.id, a.conv, a.source = o.resume, conv, "resume"
	if o.fork {
		a.id = o.sessionID
		if a.id == "" {
			a.id = newUUID()
		}
		a.conv = a.store.open(a.cwd, a.id)
		a.conv.turns = conv.turns
		a.conv.unsaved = len(conv.turns)
	}
	// Model and effort are kept with the conversation, the permission mode is not.
	a.opts.model = firstOf(o.model, conv.model)
	a.opts.effort = firstOf(o.effort, conv.effort)
	return nil
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// printOnly answers the prompt without a terminal.
func (a *app) printOnly() int {
	text := strings.TrimSpace(a.opts.prompt)
	if text == "" {
		fmt.Fprintln(os.Stderr, "Error: Input must be provided when using --print")
		return 1
	}
	answer, failed := reply(text, len(a.conv.turns)/2+1), map[string]any{}
	switch {
	case slices.Contains(a.modes.list("refuse-model"), a.opts.model):
		answer = fmt.Sprintf("There's an issue with the selected model (%s). It may not exist or you may not have access to it. Run --model to pick a different model.", a.opts.model)
		failed = map[string]any{"api_error_status": 404, "api_error_type": "not_found_error"}
	case a.modes.has("fail-print"):
		answer = "API Error: 529 overloaded"
		failed = map[string]any{"api_error_status": 529, "api_error_type": "overloaded_error"}
	}
	code := min(len(failed), 1)
	if a.opts.json {
		failed["type"], failed["subtype"], failed["is_error"], failed["result"], failed["session_id"] = "result", "success", code != 0, answer, a.id
		line, err := json.Marshal(failed)
		if err != nil {
			fmt.Fprintln(os.Stderr, "Error:", err)
			return 1
		}
		answer = string(line)
	}
	fmt.Println(answer)
	a.log.event("exit", fields{"code": code})
	return code
}
