package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// claudeEvents are the hook events that the agent decides by.
var claudeEvents = []string{
	"SessionStart", "UserPromptSubmit", "PermissionRequest", "PostToolUse",
	"Notification", "Stop", "StopFailure", "SessionEnd",
}

// claudeHookTimeout bounds our hook, in seconds. It runs synchronously, because only
// then its answer to a PermissionRequest counts and the journal is in the order of
// the events; it takes milliseconds.
const claudeHookTimeout = 10

// maxSettingsFile is the largest settings file of an operator that is merged.
const maxSettingsFile = 64 << 10

type settings = map[string]json.RawMessage

type (
	claudeHook struct {
		Type    string   `json:"type"`
		Command string   `json:"command"`
		Args    []string `json:"args,omitempty"`
		Timeout int      `json:"timeout"`
	}
	claudeMatcher struct {
		Hooks []claudeHook `json:"hooks"`
	}
)

// claudeSettings are the operator's settings with our hooks added, as the JSON for
// --settings. The hooks run our binary with arguments and no shell, and no file of
// the user is touched.
func claudeSettings(theirs settings, opts LaunchOptions) (string, error) {
	if len(opts.HookCommand) == 0 {
		return "", errors.New("no hook command is set: claude could not tell when it is ready")
	}
	args := slices.Clone(opts.HookCommand[1:])
	switch opts.Permissions {
	case "", PermissionsAsk:
	case PermissionsDeny, PermissionsAllow:
		args = append(args, "--permissions", string(opts.Permissions))
	default:
		return "", fmt.Errorf("permissions are %q: they must be Ask, Deny or Allow", opts.Permissions)
	}
	ours, err := encode(claudeMatcher{Hooks: []claudeHook{{
		Type: "command", Command: opts.HookCommand[0], Args: args, Timeout: claudeHookTimeout,
	}}})
	if err != nil {
		return "", err
	}
	out := settings{}
	for k, v := range theirs {
		out[k] = v
	}
	var hooks map[string]json.RawMessage
	if raw, ok := out["hooks"]; ok {
		if err := json.Unmarshal(raw, &hooks); err != nil {
			return "", errors.New(`the harness argument --settings has "hooks" that are not an object`)
		}
	}
	if hooks == nil { // none, or null
		hooks = map[string]json.RawMessage{}
	}
	for _, event := range claudeEvents {
		var list []json.RawMessage
		if raw, ok := hooks[event]; ok {
			if err := json.Unmarshal(raw, &list); err != nil {
				return "", fmt.Errorf(`the harness argument --settings has "hooks".%q that are not a list`, event)
			}
		}
		if hooks[event], err = encode(append(list, ours)); err != nil {
			return "", err
		}
	}
	if out["hooks"], err = encode(hooks); err != nil {
		return "", err
	}
	if opts.AcceptBypass {
		out["skipDangerousModePermissionPrompt"] = json.RawMessage("true")
	}
	text, err := encode(out)
	return string(text), err
}

// encode is json.Marshal without the escaping of <, > and & that is meant for web
// pages.
func encode(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding the settings: %w", err)
	}
	return bytes.TrimSpace(buf.Bytes()), nil
}

// takeSettings takes --settings out of the operator's arguments and reads it: what
// claude makes of the flag given twice is not known, so theirs and ours become one.
// The value is JSON or the path of a file, relative to dir.
func takeSettings(args []string, dir string) (rest []string, theirs settings, err error) {
	found := false
	for i := 0; i < len(args); i++ {
		flag, value, joined := strings.Cut(args[i], "=")
		if flag != "--settings" {
			rest = append(rest, args[i])
			if claudeTakesValue[flag] && !joined && i+1 < len(args) {
				i++
				rest = append(rest, args[i])
			}
			continue
		}
		if found {
			return nil, nil, errors.New("the harness argument --settings is given twice: merge the two")
		}
		found = true
		if !joined {
			i++
			value = args[i] // checkClaudeArgs has seen that it is there
		}
		if theirs, err = readSettings(value, dir); err != nil {
			return nil, nil, err
		}
	}
	return rest, theirs, nil
}

// readSettings parses the value of --settings.
func readSettings(value, dir string) (settings, error) {
	where, data := "the harness argument --settings", []byte(value)
	if !strings.HasPrefix(strings.TrimSpace(value), "{") {
		path := value
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		where = "the settings file " + path
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("the harness argument --settings is neither a JSON object nor a readable file: %w", err)
		}
		defer func() { _ = f.Close() }()
		if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is no regular file", where)
		}
		if data, err = io.ReadAll(io.LimitReader(f, maxSettingsFile+1)); err != nil {
			return nil, fmt.Errorf("reading %s: %w", where, err)
		}
		if len(data) > maxSettingsFile {
			return nil, fmt.Errorf("%s is larger than %d bytes: put it into the harness's own settings", where, maxSettingsFile)
		}
	}
	var out settings
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("%s is not a JSON object: %w", where, err)
	}
	if out == nil { // null
		out = settings{}
	}
	var off bool
	if raw, ok := out["disableAllHooks"]; ok && json.Unmarshal(raw, &off) == nil && off {
		return nil, fmt.Errorf("%s sets disableAllHooks: the-loop could not tell what the session does", where)
	}
	return out, nil
}
