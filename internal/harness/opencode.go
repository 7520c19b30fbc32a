package harness

import (
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"time"

	"github.com/theloop-dev/the-loop/internal/harness/hook"
)

// opencode hosts opencode. All rules about it were measured with version 1.18.33 on a
// terminal; where a rule is not obvious, its reason stands beside it.
type opencode struct{}

func (opencode) Name() string   { return "opencode" }
func (opencode) Binary() string { return "opencode" }

// Traits: its prompt takes input 8 to 16 s after the start, and after up to 34 s on a
// busy host; the first prompt of a session was told 2 s after the carriage return, later
// ones at once. A carriage return directly after the paste was taken. A text typed while
// a turn was being given up was taken and never answered. All conversations are in one
// database, which has no part that stays as it was: Appends is not so.
func (opencode) Traits() Traits {
	return Traits{
		Resumes:     true,
		Evidence:    true,
		IdleOnly:    true,
		ReadyWithin: 2 * time.Minute,
		SubmitGap:   300 * time.Millisecond,
		TakenWithin: 30 * time.Second,
		Env: []string{
			"OPENCODE_API_KEY", "OPENCODE_AUTH_CONTENT", "OPENCODE_CONFIG", "OPENCODE_CONFIG_CONTENT", "OPENCODE_CONFIG_DIR",
			"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME",
		},
	}
}

// opencodeHook is a plugin of opencode that runs our hooks.
//
//go:embed opencode/hook.js
var opencodeHook []byte

// Names of the files of a launch.
const (
	opencodeHookFile = "opencode-hook.js"
	opencodeTUIFile  = "opencode-tui.json"
)

// opencodeSession is the form of the id of a conversation.
var opencodeSession = regexp.MustCompile(`^ses_[A-Za-z0-9]{1,64}$`)

var opencodeRules = argRules{
	forbidden: map[string]string{
		"--session": whyConversation, "-s": whyConversation, "--continue": whyNewest, "-c": whyNewest, "--fork": whyFork,
		"--prompt": whyPrompt, "--pure": "it leaves out the plugin that tells the-loop what the session does",
		"--mini": "it has no plugins, by which the-loop knows what the session does",
		"--help": "nothing would run", "-h": "nothing would run", "--version": "nothing would run", "-v": "nothing would run",
	},
	takesValue: map[string]bool{
		"--log-level": true, "--port": true, "--hostname": true, "--mdns-domain": true, "--cors": true, "--model": true, "-m": true,
		"--agent": true,
	},
}

// Command builds
//
//	opencode [-s ID] operator's arguments, -m
//
// Opencode chooses the id of a conversation at its first prompt. Its hooks are a plugin
// of its terminal interface, which is given by a configuration of its own
// (OPENCODE_TUI_CONFIG) in addition to what the user has; no file of the user is
// touched.
func (opencode) Command(opts LaunchOptions) (Command, error) {
	err := errors.Join(checkChoice(opts), opencodeRules.check(opts.Args), checkOpencodeChoice(opts))
	if opts.Resume && !opencodeSession.MatchString(opts.ConversationID) {
		err = errors.Join(err, fmt.Errorf("conversation id %.140q is not of the form %s", opts.ConversationID, opencodeSession))
	}
	if !filepath.IsAbs(opts.FileDir) {
		err = errors.Join(err, errors.New("no directory is set for the files of the launch"))
	}
	if err != nil {
		return Command{}, err
	}
	hookFile, tuiFile := filepath.Join(opts.FileDir, opencodeHookFile), filepath.Join(opts.FileDir, opencodeTUIFile)
	argv, err := hookArgv(opts)
	if err != nil {
		return Command{}, err
	}
	plugin := []any{(&url.URL{Scheme: "file", Path: hookFile}).String(), map[string]any{"hook": argv}}
	tui, err := encode(map[string]any{"plugin": []any{plugin}})
	if err != nil {
		return Command{}, err
	}
	cmd := Command{
		Argv:  []string{opts.Binary},
		Env:   []string{"OPENCODE_TUI_CONFIG=" + tuiFile, "OPENCODE_DISABLE_AUTOUPDATE=true"},
		Files: []File{{Path: hookFile, Data: opencodeHook}, {Path: tuiFile, Data: tui}},
	}
	if opts.Resume {
		cmd.Argv = append(cmd.Argv, "-s", opts.ConversationID)
	}
	cmd.Argv = append(cmd.Argv, opts.Args...)
	if opts.Model != "" {
		cmd.Argv = append(cmd.Argv, "-m", opts.Model)
	}
	return cmd, checkArgv(cmd.Argv)
}

// Observe folds one note of our plugin into the State. Some events have the names and
// the meaning of Claude Code's.
func (opencode) Observe(s State, n hook.Note) State {
	switch n.Event {
	case "SessionStart":
		s = s.conversation(n)
		if n.Source == "switch" { // to another conversation, in the same process
			return s
		}
		s.Started, s.Ready, s.Ended = n.Time, true, false
		s.Resumed = n.Source == "resume"
		return s.activity(ActivityIdle, n.Time, "")
	case "Busy":
		return s.activity(ActivityBusy, n.Time, "")
	case "Dialog":
		return s.activity(ActivityAwaitingInput, n.Time, "a dialog that was opened at the terminal")
	case "UserPromptSubmit", "PermissionRequest", "Stop", "SessionEnd":
		return claude{}.Observe(s, n)
	}
	return s
}
