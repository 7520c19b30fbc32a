package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/theloop-dev/the-loop/internal/harness/hook"
)

// gemini hosts Gemini CLI. All rules about it were measured with version 0.61.0 on a
// terminal; where a rule is not obvious, its reason stands beside it.
type gemini struct{}

func (gemini) Name() string   { return "gemini" }
func (gemini) Binary() string { return "gemini" }

// Traits: SessionStart came 2.7 to 11 s after the start. A carriage return within 50 ms
// of a paste is not taken for one, nor one within 200 ms of 100 KB; on a host with four
// times more to do than it has processors, not one within 400 ms of 200 bytes. What is typed during a turn becomes one prompt with whatever else is, so that no single
// text could be proved. It adds a summary to the newest other conversation of its directory,
// ended ones too, and was seen to begin a second file for one that it resumes: Appends is not so.
func (gemini) Traits() Traits {
	return Traits{
		AssignsID:       true,
		Resumes:         true,
		Evidence:        true,
		IdleOnly:        true,
		ReadyWithin:     time.Minute,
		SubmitGap:       1500 * time.Millisecond,
		SubmitGapPerKiB: 10 * time.Millisecond,
		TakenWithin:     15 * time.Second,
		LosesReturn:     true,
		Env: []string{
			"GEMINI_API_KEY", "GEMINI_CLI_HOME", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_LOCATION",
			"GOOGLE_CLOUD_PROJECT", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_GENAI_USE_VERTEXAI",
		},
	}
}

// geminiEvents are the hook events that the agent decides by.
var geminiEvents = []string{"SessionStart", "BeforeAgent", "AfterTool", "Notification", "AfterAgent", "SessionEnd"}

var geminiRules = argRules{
	forbidden: map[string]string{
		"--session-id": whyConversation, "--resume": whyConversation, "-r": whyConversation, "--session-file": whyConversation,
		"--list-sessions": "nothing would run", "--delete-session": "nothing would run", "--worktree": whyDir, "-w": whyDir,
		"--prompt": whyPrompt, "-p": whyPrompt, "--prompt-interactive": whyPrompt, "-i": whyPrompt,
		"--extensions": "it would leave out the extension that tells the-loop what the session does",
		"-e":           "it would leave out the extension that tells the-loop what the session does",
		"--acp":        "the session would not be interactive", "--experimental-acp": "the session would not be interactive",
		"--output-format": "the session would not be interactive", "-o": "the session would not be interactive",
		"--help": "nothing would run", "-h": "nothing would run", "--version": "nothing would run", "-v": "nothing would run",
	},
	takesValue: map[string]bool{
		"--model": true, "-m": true, "--approval-mode": true, "--policy": true, "--admin-policy": true,
		"--allowed-mcp-server-names": true, "--allowed-tools": true, "--include-directories": true,
	},
}

// geminiHookEnv names the variable with the hook's command line. Our extension is the same
// for all sessions, and does nothing in those of its user.
const geminiHookEnv = "LOOP_HOOK"

// geminiNoUpdates keeps Gemini CLI from asking npm's registry for newer versions of itself,
// of which it would install one under running sessions. Only settings switch that off: those
// of the user and of the checkout are not ours, and those of the host, wherever they are,
// must belong to root. The variable names no registry, and only for the packages of its
// scope and for who reads npm's configuration as its check does; npm itself does not.
const geminiNoUpdates = "npm_@google:registry=off"

// Command builds
//
//	gemini --session-id ID | --resume ID, operator's arguments, --model
//
// Without GEMINI_CLI_NO_RELAUNCH it starts itself a second time, and SIGTERM does not
// reach that one. Its hooks cannot answer a permission dialog: Allow is its own mode of
// that meaning, and Deny is refused. So is a start in which its trust dialog could open:
// nothing tells of that one, and a carriage return says yes.
func (gemini) Command(opts LaunchOptions) (Command, error) {
	err := errors.Join(checkUUID(opts.ConversationID), checkChoice(opts), geminiRules.check(opts.Args), checkGeminiEffort(opts.Effort))
	if !opts.Trust && !hasFlag(opts.Args, "--skip-trust") {
		err = errors.Join(err, errors.New("gemini would open a trust dialog of which nothing tells: set trust.enabled of the class, or give it the harness argument --skip-trust"))
	}
	if opts.Permissions == PermissionsDeny {
		err = errors.Join(err, errors.New("gemini cannot be told to deny what it asks for: permissions must be Ask or Allow"))
	}
	if err != nil {
		return Command{}, err
	}
	hook, err := hookArgv(LaunchOptions{HookCommand: opts.HookCommand})
	if err != nil {
		return Command{}, err
	}
	flag := "--session-id"
	if opts.Resume {
		flag = "--resume"
	}
	cmd := Command{
		Argv: append([]string{opts.Binary, flag, opts.ConversationID}, opts.Args...),
		Env:  []string{"GEMINI_CLI_NO_RELAUNCH=true", geminiNoUpdates, geminiHookEnv + "=" + shellWords(hook)},
	}
	if opts.Trust {
		cmd.Env = append(cmd.Env, "GEMINI_CLI_TRUST_WORKSPACE=true")
	}
	if opts.Permissions == PermissionsAllow && !hasFlag(opts.Args, "--approval-mode") && !hasFlag(opts.Args, "--yolo") && !hasFlag(opts.Args, "-y") {
		cmd.Argv = append(cmd.Argv, "--approval-mode", "yolo")
	}
	if opts.Model != "" {
		cmd.Argv = append(cmd.Argv, "--model", opts.Model)
	}
	return cmd, checkArgv(cmd.Argv)
}

// hasFlag reports whether a flag is among the arguments, alone or with its value.
func hasFlag(args []string, flag string) bool {
	for _, a := range args {
		if name, _, _ := strings.Cut(a, "="); name == flag {
			return true
		}
	}
	return false
}

// geminiExtension is the name of our extension, and of its directory.
const geminiExtension = "the-loop-hooks"

// Prepare puts an extension of ours into the user's extensions, which runs what
// LOOP_HOOK says on the events of a session; a hook of Gemini CLI has no other place
// that is not a file of the user's (what stands in GEMINI_CLI_SYSTEM_SETTINGS_PATH must
// belong to root). It warns of what in the user's settings would cost a session.
func (gemini) Prepare(_ context.Context, o PrepareOptions) (Prepared, error) {
	home := geminiHome(o.Lookup)
	if !filepath.IsAbs(home) {
		return Prepared{}, fmt.Errorf("gemini's home %q is not an absolute path: set HOME, or GEMINI_CLI_HOME", home)
	}
	type command struct {
		Type    string `json:"type"`
		Name    string `json:"name"`
		Command string `json:"command"`
		Timeout int    `json:"timeout"`
	}
	const timeout = 10_000 // milliseconds
	hooks := map[string]any{}
	for _, event := range geminiEvents {
		hooks[event] = []any{map[string]any{"hooks": []any{
			command{Type: "command", Name: "the-loop", Command: `eval "$` + geminiHookEnv + `"`, Timeout: timeout},
		}}}
	}
	dir := filepath.Join(home, "extensions", geminiExtension)
	var done Prepared
	for path, content := range map[string]any{
		filepath.Join(dir, "gemini-extension.json"): map[string]string{
			"name": geminiExtension, "version": "1.0.0", "description": "Tells the-loop what a session does that it hosts; does nothing elsewhere.",
		},
		filepath.Join(dir, "hooks", "hooks.json"): map[string]any{"hooks": hooks},
	} {
		text, err := encode(content)
		if err != nil {
			return done, err
		}
		wrote, err := ensureFile(path, append(text, '\n'))
		if err != nil {
			return done, fmt.Errorf("writing gemini's extension %s: %w", geminiExtension, err)
		}
		if wrote {
			done.Applied = []string{"wrote gemini's extension " + dir}
		}
	}
	done.Warnings = geminiWarnings(home)
	return done, nil
}

// ensureFile makes a file of ours have this content, whole or not at all.
func ensureFile(path string, data []byte) (wrote bool, err error) {
	if old, err := os.ReadFile(path); err == nil && string(old) == string(data) {
		return false, nil
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, err
	}
	tmp, err := os.CreateTemp(dir, ".the-loop-*")
	if err != nil {
		return false, err
	}
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return false, errors.Join(err, os.Remove(tmp.Name()))
	}
	return true, nil
}

// geminiHome is the directory with Gemini's settings.
func geminiHome(lookup func(string) string) string {
	home := strings.TrimSpace(lookup("GEMINI_CLI_HOME"))
	if home == "" {
		home = lookup("HOME")
	}
	return filepath.Join(home, ".gemini")
}

// geminiSettings is what matters of Gemini's settings.
type geminiSettings struct {
	Security struct {
		Auth struct {
			SelectedType string `json:"selectedType"`
		} `json:"auth"`
	} `json:"security"`
	General struct {
		SessionRetention struct {
			Enabled *bool `json:"enabled"`
		} `json:"sessionRetention"`
	} `json:"general"`
}

// readGeminiSettings reads one file of settings, in which comments may stand. What cannot
// be read says nothing.
func readGeminiSettings(path string) (s geminiSettings) {
	text, _, err := readConfig(path)
	if err == nil {
		_ = json.Unmarshal(withoutComments(text), &s)
	}
	return s
}

// withoutComments takes // and /* */ out of JSON.
func withoutComments(text []byte) []byte {
	var out []byte
	for i := 0; i < len(text); i++ {
		rest := string(text[i:min(i+2, len(text))])
		switch {
		case text[i] == '"':
			from := i
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			out = append(out, text[from:min(i+1, len(text))]...)
		case rest == "//":
			for i+1 < len(text) && text[i+1] != '\n' {
				i++
			}
		case rest == "/*":
			end := strings.Index(string(text[i:]), "*/")
			if end < 0 {
				return out
			}
			i += end + 1
		default:
			out = append(out, text[i])
		}
	}
	return out
}

// geminiSystemSettings is the settings file of the host.
const geminiSystemSettings = "/etc/gemini-cli/settings.json"

// geminiAccount reports whether it was ever said how Gemini is paid for. Before, it opens
// on a dialog that asks for that, of which nothing tells.
func geminiAccount(home string) bool {
	return readGeminiSettings(filepath.Join(home, "settings.json")).Security.Auth.SelectedType != "" ||
		readGeminiSettings(geminiSystemSettings).Security.Auth.SelectedType != ""
}

func geminiWarnings(home string) (out []string) {
	path := filepath.Join(home, "settings.json")
	if !geminiAccount(home) {
		out = append(out, "gemini opens on a dialog that asks for the account: answer it once, or set security.auth.selectedType in "+path)
	}
	for _, p := range []string{path, geminiSystemSettings} {
		if on := readGeminiSettings(p).General.SessionRetention.Enabled; on != nil && !*on {
			return out
		}
	}
	return append(out, "gemini deletes a resumed conversation when another gemini starts in the same directory later: "+
		"set general.sessionRetention.enabled to false in "+path)
}

// Observe folds one hook note into the State.
func (gemini) Observe(s State, n hook.Note) State {
	switch n.Event {
	case "SessionStart":
		s = s.conversation(n)
		s.Started, s.Ended = n.Time, false
		s.Resumed = s.Resumed || n.Source == "resume"
		return s.activity(ActivityIdle, n.Time, "")
	case "BeforeAgent":
		n.Event = "UserPromptSubmit"
		return claude{}.Observe(s, n)
	case "AfterTool":
		return s.activity(ActivityBusy, n.Time, "")
	case "Notification":
		if n.Notification == "ToolPermission" {
			return s.activity(ActivityAwaitingInput, n.Time, waitingForPermission)
		}
	case "AfterAgent":
		return s.activity(ActivityIdle, n.Time, "")
	case "SessionEnd":
		return claude{}.Observe(s, n)
	}
	return s
}

const (
	// geminiSettle is how long at least after its SessionStart hook Gemini is believed to
	// take input, and geminiSettleMost how long at most. The hook does not wait for the
	// screen: 5 of 6 texts typed at once were taken. In between it is as long again as the
	// hook took to come: on a host so busy that it took 23 s, 3 s were not enough.
	geminiSettle, geminiSettleMost = 3 * time.Second, 30 * time.Second
	// geminiTail is how much of the end of a conversation's file is looked at, in bytes.
	geminiTail = 4 << 20
)

// Recheck says when Gemini takes input: some time after it has started, and not while it
// asks for the account. And it sees a permission that was refused, of which no hook
// tells, in the conversation's file.
func (gemini) Recheck(s State, p Process) State {
	if !s.Ready && !s.Ended && !s.Started.IsZero() {
		settle := geminiSettle
		if !p.Launched.IsZero() {
			settle = min(max(settle, s.Started.Sub(p.Launched)), geminiSettleMost)
		}
		s.Ready = time.Since(s.Started) >= settle && geminiAccount(geminiHome(p.Lookup))
	}
	if s.Activity != ActivityAwaitingInput {
		return s
	}
	for _, line := range newestLines(s.TranscriptPath, geminiTail) {
		var r struct {
			Timestamp time.Time       `json:"timestamp"`
			Type      string          `json:"type"`
			Content   json.RawMessage `json:"content"`
		}
		if json.Unmarshal(line, &r) != nil || r.Type != "info" || !strings.Contains(string(r.Content), "Request cancelled") {
			continue
		}
		if r.Timestamp.After(s.Since) {
			return s.activity(ActivityIdle, r.Timestamp, "")
		}
		return s
	}
	return s
}
