package harness

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// claude hosts Claude Code. All rules about it were measured with version 2.1.332
// on a terminal; where a rule is not obvious, its reason stands beside it.
type claude struct{}

func (claude) Name() string   { return "claude" }
func (claude) Binary() string { return "claude" }

// Traits: measured from start to the SessionStart hook 0.6 to 1 s idle and 5 to
// 6.4 s with eight starting at once on two cores, so a minute is only reached by a
// harness that is stuck. A carriage return directly after the paste was always
// taken on a machine that has nothing else to do; the first one of a conversation was lost,
// and the text stood in the box, where the machine had twenty times more to do than it has
// processors. The hook that tells of a taken prompt came 95 to 200 ms after the paste.
func (claude) Traits() Traits {
	return Traits{
		AssignsID:   true,
		Resumes:     true,
		Evidence:    true,
		ReadyWithin: time.Minute,
		// A dialog that opens is told by its hook within some 80 ms: the gap lets it be
		// seen before the carriage return would answer it.
		SubmitGap:   150 * time.Millisecond,
		TakenWithin: 10 * time.Second,
		LosesReturn: true,
		// Compacting and resuming add to the file. A streamed answer that is begun anew is cut
		// off its end, in its own turn.
		Appends: true,
		Env: []string{
			"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL",
			"CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR",
		},
	}
}

// claudeEfforts are what --effort takes. Another word is ignored without a message.
var claudeEfforts = []string{"low", "medium", "high", "xhigh", "max"}

// Command builds
//
//	claude --session-id ID | --resume ID, operator's arguments, --model, --effort, --disallowedTools, --settings HOOKS
//
// The conversation id must be a UUID: a start with anything else fails, and a
// resume with anything else opens a picker that waits for a person.
func (claude) Command(opts LaunchOptions) (Command, error) {
	err := errors.Join(
		checkConversationID(opts.ConversationID),
		checkUUID(opts.ConversationID),
		checkChoice(opts),
		checkClaudeArgs(opts.Args),
		checkClaudeEffort(opts.Effort),
	)
	if err != nil {
		return Command{}, err
	}
	args, theirs, err := takeSettings(opts.Args, opts.Dir)
	if err != nil {
		return Command{}, err
	}
	settings, err := claudeSettings(theirs, opts)
	if err != nil {
		return Command{}, err
	}
	flag := "--session-id"
	if opts.Resume {
		flag = "--resume"
	}
	argv := append([]string{opts.Binary, flag, opts.ConversationID}, args...)
	if opts.Model != "" {
		argv = append(argv, "--model", opts.Model)
	}
	if opts.Effort != "" {
		argv = append(argv, "--effort", opts.Effort)
	}
	if opts.NoQuestions && !slices.ContainsFunc(args, disallowsTools) {
		// The menu of this tool blocks the pane. One token: the flag takes every word that
		// follows it for a tool, a prompt too.
		argv = append(argv, "--disallowedTools=AskUserQuestion")
	}
	argv = append(argv, "--settings", settings)
	if err := checkArgv(argv); err != nil {
		return Command{}, err
	}
	// The vendor's switch against self-updates: an update of running sessions shows a
	// dialog at the next start and removes the binary under the others.
	return Command{Argv: argv, Env: []string{"DISABLE_AUTOUPDATER=1"}}, nil
}

// disallowsTools reports whether an operator's argument says which tools the harness may
// not use: what it says counts, then.
func disallowsTools(arg string) bool {
	flag, _, _ := strings.Cut(arg, "=")
	return flag == "--disallowedTools" || flag == "--disallowed-tools"
}

// claudeForbidden are arguments that would undo what this adapter decides.
var claudeForbidden = map[string]string{
	"--session-id":             "the conversation is chosen by the-loop",
	"--resume":                 "the conversation is chosen by the-loop",
	"-r":                       "the conversation is chosen by the-loop",
	"--continue":               "the last conversation of a directory can be somebody else's",
	"-c":                       "the last conversation of a directory can be somebody else's",
	"--fork-session":           "it would give the conversation another id",
	"--from-pr":                "the conversation is chosen by the-loop",
	"--print":                  "the session would not be interactive",
	"-p":                       "the session would not be interactive",
	"--bare":                   "it switches the hooks off that tell the-loop what the session does",
	"--":                       "what follows it would be typed as a prompt",
	"--no-session-persistence": "the conversation could not be resumed",
}

// claudeTakesValue are flags whose value is the next argument, as far as it matters
// for telling a value from a flag.
var claudeTakesValue = map[string]bool{
	"--settings": true, "--model": true, "--effort": true, "--permission-mode": true,
	"--append-system-prompt": true, "--system-prompt": true, "--append-system-prompt-file": true,
	"--system-prompt-file": true, "--fallback-model": true, "--agent": true, "--agents": true,
	"--setting-sources": true, "--name": true, "-n": true, "--add-dir": true, "--mcp-config": true,
	"--allowedTools": true, "--allowed-tools": true, "--disallowedTools": true, "--disallowed-tools": true,
	"--tools": true, "--betas": true, "--plugin-dir": true, "--debug-file": true,
}

// checkClaudeArgs refuses operator's arguments that would fight the ones added here
// or be taken for a prompt.
func checkClaudeArgs(args []string) error {
	for i := 0; i < len(args); i++ {
		flag, _, joined := strings.Cut(args[i], "=")
		if i == 0 && !strings.HasPrefix(args[0], "-") {
			return fmt.Errorf("harness argument %q stands before any flag: it would be typed as a prompt", args[0])
		}
		if why, bad := claudeForbidden[flag]; bad {
			return fmt.Errorf("harness argument %s is not allowed: %s", flag, why)
		}
		// -rID, -cp and the like: short flags with something attached.
		if len(flag) > 2 && flag[0] == '-' && strings.ContainsRune("rcp", rune(flag[1])) {
			return fmt.Errorf("harness argument %s is not allowed: %s", flag, claudeForbidden[flag[:2]])
		}
		if claudeTakesValue[flag] && !joined {
			if i++; i == len(args) {
				return fmt.Errorf("harness argument %s has no value: it would take the flag that follows for one", flag)
			}
		}
	}
	return nil
}

// checkArgv refuses an argument that the kernel or tmux cannot carry.
func checkArgv(argv []string) error {
	if argv[0] == "" {
		return errors.New("the harness's binary is not set")
	}
	const maxArg = 128<<10 - 1
	for i, a := range argv {
		if strings.ContainsRune(a, 0) {
			return fmt.Errorf("harness argument %d contains a NUL byte", i)
		}
		if len(a) > maxArg {
			return fmt.Errorf("harness argument %d has %d bytes, the kernel takes %d", i, len(a), maxArg)
		}
	}
	return nil
}
