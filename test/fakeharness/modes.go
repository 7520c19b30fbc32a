package main

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// mode is one way to misbehave.
type mode struct {
	value string // what stands after =, "" for nothing
	help  string
}

// allModes are the names for FAKEHARNESS_BEHAVIOUR and for prompts that begin with
// "fake:".
var allModes = map[string]mode{
	// Input.
	"no-framing":    {"", "never enable bracketed paste"},
	"framing-late":  {"MS", "enable bracketed paste only MS after the start"},
	"flush-input":   {"MS", "throw away what the terminal holds MS after the start"},
	"slow-read":     {"BYTES", "read only BYTES of input in 10 ms"},
	"fold":          {"LINES", "show a paste of more than LINES lines (default 3) folded"},
	"swallow-cr":    {"N", "ignore the next N carriage returns that follow a paste (default 1)"},
	"sticky-paste":  {"MS", "ignore carriage returns until the input was silent for MS (default 200) after a paste"},
	"burst":         {"MS", "unframed bursts are pastes, a carriage return within MS (default 120) of one is a newline"},
	"drop-typed":    {"", "ignore typed characters, take only pastes"},
	"vim":           {"", "edit as vim does: typed characters are commands in normal mode, and no carriage return submits in visual mode"},
	"swallow-paste": {"N", "throw away the next N pastes (default 1)"},
	"memory":        {"", "take a message that begins with # for a note to keep"},
	"complete":      {"", "offer completions for a last word with @: the next carriage return takes one"},
	"ghost":         {"TEXT", "show a suggestion that a carriage return in the empty box accepts"},
	// Screen.
	"alt-screen":     {"", "use the alternate screen"},
	"redraw":         {"MS", "redraw only every MS (default 3000)"},
	"garbage":        {"", "write odd escape sequences and titles"},
	"extended-keys":  {"", "ask for extended keys"},
	"output":         {"LINES", "write LINES lines of output"},
	"indicator-late": {"MS", "show that a turn runs only after MS (default 20000)"},
	// Turns.
	"think":        {"MS", "answer after MS (default 150)"},
	"usage-limit":  {"MS", "fail every turn by the account's usage limit, for MS (default: always, and no time is named)"},
	"discard":      {"MS", "show a usage limit, accept text and discard it, for MS (default: always)"},
	"fail-turn":    {"", "the next turn fails"},
	"no-login":     {"", "fail every turn by a login that is refused"},
	"flush-late":   {"MS", "write a turn to disk only MS after its end (default 40)"},
	"notify-after": {"MS", "notify of an open permission dialog after MS (default 6400)"},
	"idle-after":   {"MS", "notify of idleness MS after a turn (default 60000)"},
	// Dialogs.
	"trust-dialog":        {"", `ask at the start whether to trust the directory; the default is "No, exit"`},
	"dialogs":             {"A+B", "dialogs at the start, of: " + strings.Join(startDialogNames(), ", ")},
	"permission-dialog":   {"TOOL", "call TOOL (default Bash) in the next turn: asks, and a carriage return says yes"},
	"permission-on-paste": {"", "the next paste opens a permission dialog"},
	"question-dialog":     {"", "ask a question in the next turn: pasted text becomes the answer"},
	"menu":                {"", "open a menu that stays"},
	"ctrl-c-is-yes":       {"", "take ^C in a dialog for its first option"},
	// Conversations.
	"new-id":       {"", "go on under a new conversation id, without a word to the hooks"},
	"lose-resume":  {"", "know no conversation to resume"},
	"burnt-id":     {"", "die in the first turn so that the id can be neither resumed nor reused"},
	"resume-delay": {"MS", "refuse an unknown conversation only after MS (default 500)"},
	// Ends.
	"ignore-term":     {"", "ignore SIGTERM"},
	"ignore-hup":      {"", "ignore SIGHUP and the loss of the terminal"},
	"spin":            {"", "burn processor time"},
	"eat":             {"MB", "take MB megabytes of memory and keep them"},
	"exit":            {"CODE", "exit at once (default 0)"},
	"exit-after":      {"MS", "exit after MS, with the code of exit"},
	"exit-at-prompt":  {"CODE", "exit when the next prompt comes"},
	"crash":           {"", "die by SIGKILL at once"},
	"crash-after":     {"MS", "die by SIGKILL after MS"},
	"crash-at-prompt": {"", "die by SIGKILL when the next prompt comes"},
	// Start and hooks.
	"slow-start":  {"MS", "do nothing for MS"},
	"never-ready": {"", "draw the prompt, but run no SessionStart hook and write no session file"},
	"slow-hooks":  {"MS", "wait MS before each hook"},
	"skip-hook":   {"A+B", "do not run the hooks of these events"},
	// Questions (--print).
	"refuse-model": {"A+B", "with --print, know none of these models"},
	"fail-print":   {"", "with --print, fail for a reason that has nothing to do with the model"},
	// Around.
	"children":             {"A+B", "start children that ignore SIGTERM and SIGHUP, of: " + strings.Join(childKinds, ", ")},
	"rewrite-config":       {"HZ", "rewrite .claude.json HZ times a second (default 100), atomically"},
	"rewrite-config-torn":  {"HZ", "the same, in two writes to the file itself"},
	"rewrite-config-times": {"N", "and stop after N times"},
	"cut-config":           {"BYTES", "cut .claude.json off after BYTES"},
}

// modes are the behaviours in force.
type modes map[string]string

// parseModes reads a list "name, name=value". A leading - takes a behaviour back.
func parseModes(list string) (modes, error) {
	m := modes{}
	return m, m.add(list)
}

// add puts the behaviours of a list into m.
func (m modes) add(list string) error {
	for _, item := range strings.Split(list, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		name, value, _ := strings.Cut(item, "=")
		name, off := strings.CutPrefix(strings.TrimSpace(name), "-")
		spec, ok := allModes[name]
		switch {
		case !ok:
			return fmt.Errorf("unknown behaviour %q: known are %s", name, strings.Join(slices.Sorted(maps.Keys(allModes)), ", "))
		case off:
			delete(m, name)
			continue
		}
		value = strings.TrimSpace(value)
		if _, err := strconv.Atoi(value); err != nil && value != "" && isNumber(spec.value) {
			return fmt.Errorf("behaviour %s takes a number (%s), not %q", name, spec.value, value)
		}
		m[name] = value
	}
	return nil
}

func isNumber(value string) bool {
	switch value {
	case "MS", "N", "LINES", "BYTES", "CODE", "HZ", "MB":
		return true
	}
	return false
}

func (m modes) has(name string) bool {
	_, ok := m[name]
	return ok
}

// take reports whether the behaviour is in force and ends it.
func (m modes) take(name string) (string, bool) {
	v, ok := m[name]
	delete(m, name)
	return v, ok
}

// number is the behaviour's value, 0 when it has none.
func (m modes) number(name string) (int, bool) {
	v, ok := m[name]
	n, _ := strconv.Atoi(v)
	return n, ok
}

// numberOr is the behaviour's value, or the default when it has none.
func (m modes) numberOr(name string, def int) (int, bool) {
	v, ok := m[name]
	if n, err := strconv.Atoi(v); err == nil {
		return n, ok
	}
	return def, ok
}

func (m modes) millis(name string) (time.Duration, bool) {
	n, ok := m.number(name)
	return time.Duration(n) * time.Millisecond, ok
}

// millisOr is the behaviour's value, or the default when it is not in force.
func (m modes) millisOr(name string, def time.Duration) time.Duration {
	if d, ok := m.millis(name); ok && m[name] != "" {
		return d
	}
	return def
}

// list is a value of the form A+B.
func (m modes) list(name string) []string {
	return strings.FieldsFunc(m[name], func(r rune) bool { return r == '+' })
}

func (m modes) String() string {
	items := make([]string, 0, len(m))
	for k, v := range m {
		if v != "" {
			k += "=" + v
		}
		items = append(items, k)
	}
	sort.Strings(items)
	return strings.Join(items, ",")
}

// helpText is what --help prints.
func helpText() string {
	var b strings.Builder
	b.WriteString(`fakeharness [flags] [-- PROMPT]

A terminal program that behaves like a coding agent, with no model behind it.

Flags:
`)
	for _, name := range slices.Sorted(maps.Keys(flagSpecs)) {
		s := flagSpecs[name]
		fmt.Fprintf(&b, "  %-38s %s\n", strings.TrimSpace(name+" "+s.value), s.help)
	}
	b.WriteString(`
Environment:
  FAKEHARNESS_HOME       conversations, session files, .claude.json
                         (default ${XDG_STATE_HOME:-~/.local/state}/fakeharness)
  FAKEHARNESS_LOG        file to which everything is logged, one JSON object a line
  FAKEHARNESS_BEHAVIOUR  behaviours, "name, name=value"; also at run time by a line
                         of a prompt that begins with "fake:" (-name takes one back)

Behaviours:
`)
	for _, name := range slices.Sorted(maps.Keys(allModes)) {
		s := allModes[name]
		if s.value != "" {
			name += "=" + s.value
		}
		fmt.Fprintf(&b, "  %-24s %s\n", name, s.help)
	}
	return b.String()
}
