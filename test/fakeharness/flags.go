package main

import (
	"fmt"
	"strings"
)

// options are the command line.
type options struct {
	version, help            bool
	print, json              bool
	sessionID, resume        string
	resumeSet, continueLast  bool
	fork, skipPermissions    bool
	settings, model, effort  string
	permissionMode, prompt   string
	appendSystemPrompt, name string
	disallowed               []string
}

// permissionModes are what --permission-mode takes; anything else ends the program.
var permissionModes = []string{"acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "manual", "plan"}

// flagKind says how a flag takes its value.
type flagKind int

const (
	noValue flagKind = iota
	oneValue
	optionalValue
	manyValues
)

// flagSpec is one flag of the command line.
type flagSpec struct {
	kind  flagKind
	value string // name of the value in --help
	help  string
	set   func(*options, []string)
}

// ignored is the set function of a flag that is accepted and does nothing.
func ignored(*options, []string) {}

var flagAliases = map[string]string{
	"-v": "--version", "-h": "--help", "-p": "--print", "-r": "--resume", "-c": "--continue", "-n": "--name",
	"--disallowed-tools": "--disallowedTools", "--allowed-tools": "--allowedTools",
}

var flagSpecs = map[string]flagSpec{
	"--version":                            {noValue, "", "print the version and end", func(o *options, _ []string) { o.version = true }},
	"--help":                               {noValue, "", "print this text and end", func(o *options, _ []string) { o.help = true }},
	"--print":                              {noValue, "", "answer the prompt on standard output and end", func(o *options, _ []string) { o.print = true }},
	"--session-id":                         {oneValue, "UUID", "start a conversation with this id", func(o *options, v []string) { o.sessionID = v[0] }},
	"--resume":                             {optionalValue, "UUID", "continue this conversation (anything but a UUID opens a picker)", setResume},
	"--continue":                           {noValue, "", "continue the latest conversation of this directory", func(o *options, _ []string) { o.continueLast = true }},
	"--fork-session":                       {noValue, "", "continue under another id", func(o *options, _ []string) { o.fork = true }},
	"--settings":                           {oneValue, "JSON|FILE", `settings; "hooks" in it are run`, func(o *options, v []string) { o.settings = v[0] }},
	"--model":                              {oneValue, "NAME", "shown in the status line", func(o *options, v []string) { o.model = v[0] }},
	"--effort":                             {oneValue, "LEVEL", "shown in the status line", func(o *options, v []string) { o.effort = v[0] }},
	"--permission-mode":                    {oneValue, "MODE", strings.Join(permissionModes, ", "), func(o *options, v []string) { o.permissionMode = v[0] }},
	"--dangerously-skip-permissions":       {noValue, "", "the same as --permission-mode bypassPermissions", func(o *options, _ []string) { o.skipPermissions = true }},
	"--append-system-prompt":               {oneValue, "TEXT", "accepted", func(o *options, v []string) { o.appendSystemPrompt = v[0] }},
	"--disallowedTools":                    {manyValues, "TOOL...", "these tools are never called", setDisallowed},
	"--name":                               {oneValue, "NAME", "shown in the banner", func(o *options, v []string) { o.name = v[0] }},
	"--allowedTools":                       {manyValues, "TOOL...", "accepted", ignored},
	"--add-dir":                            {manyValues, "DIR...", "accepted", ignored},
	"--mcp-config":                         {manyValues, "FILE...", "accepted", ignored},
	"--strict-mcp-config":                  {noValue, "", "accepted", ignored},
	"--plugin-dir":                         {oneValue, "DIR", "accepted", ignored},
	"--system-prompt":                      {oneValue, "TEXT", "accepted", ignored},
	"--fallback-model":                     {oneValue, "NAME", "accepted", ignored},
	"--setting-sources":                    {oneValue, "LIST", "accepted", ignored},
	"--agent":                              {oneValue, "NAME", "accepted", ignored},
	"--output-format":                      {oneValue, "FORMAT", "with --print: text, or json for one object", func(o *options, v []string) { o.json = v[0] == "json" }},
	"--tools":                              {manyValues, "TOOL...", "accepted", ignored},
	"--no-session-persistence":             {noValue, "", "accepted", ignored},
	"--verbose":                            {noValue, "", "accepted", ignored},
	"--debug":                              {optionalValue, "FILTER", "accepted", ignored},
	"--allow-dangerously-skip-permissions": {noValue, "", "accepted", ignored},
}

func setResume(o *options, v []string) {
	o.resumeSet = true
	if len(v) > 0 {
		o.resume = v[0]
	}
}

func setDisallowed(o *options, values []string) {
	for _, v := range values {
		o.disallowed = append(o.disallowed, strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' })...)
	}
}

// parseArgs reads the command line. The texts of its errors are the real ones.
func parseArgs(args []string) (options, error) {
	var o options
	var words []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			words = append(words, args[i+1:]...)
			break
		}
		if !strings.HasPrefix(arg, "-") || arg == "-" {
			words = append(words, arg)
			continue
		}
		name, value, joined := strings.Cut(arg, "=")
		if long, ok := flagAliases[name]; ok {
			name = long
		}
		spec, ok := flagSpecs[name]
		if !ok {
			return o, failure{fmt.Sprintf("error: unknown option '%s'", name)}
		}
		values := []string{value}
		if !joined {
			values = spec.take(args[i+1:])
			i += len(values)
		}
		if len(values) == 0 && (spec.kind == oneValue || spec.kind == manyValues) {
			return o, failure{fmt.Sprintf("error: option '%s <value>' argument missing", name)}
		}
		spec.set(&o, values)
	}
	if len(words) > 0 {
		o.prompt = words[0]
	}
	if o.skipPermissions {
		o.permissionMode = "bypassPermissions"
	}
	return o, checkMode(o.permissionMode)
}

// take is what of the arguments behind a flag are its values. Only a flag that must
// have exactly one takes what looks like another flag.
func (s flagSpec) take(args []string) []string {
	n := 0
	for n < len(args) && (s.kind == oneValue || !strings.HasPrefix(args[n], "-")) {
		n++
		if s.kind != manyValues {
			break
		}
	}
	if s.kind == noValue {
		n = 0
	}
	return args[:n]
}

func checkMode(mode string) error {
	if mode == "" {
		return nil
	}
	for _, m := range permissionModes {
		if m == mode {
			return nil
		}
	}
	return failure{fmt.Sprintf("error: option '--permission-mode <mode>' argument '%s' is invalid. Allowed choices are %s.",
		mode, strings.Join(permissionModes, ", "))}
}

// bypass reports whether tools run without asking.
func (o options) bypass() bool { return o.permissionMode == "bypassPermissions" }

// mayCall reports whether a tool exists for this run.
func (o options) mayCall(tool string) bool {
	for _, d := range o.disallowed {
		if d == tool {
			return false
		}
	}
	return true
}
