package harness

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/theloop-dev/the-loop/internal/harness/hook"
)

// codex hosts Codex CLI. All rules about it were measured with version 0.171.0 on a
// terminal; where a rule is not obvious, its reason stands beside it.
type codex struct{}

func (codex) Name() string   { return "codex" }
func (codex) Binary() string { return "codex" }

// Traits: the prompt was there 0.4 s (resumed) to 2.2 s (busy host) after the start. A
// carriage return directly after the paste was always taken. A text typed during a turn
// ends the answer that is coming at once and for good.
func (codex) Traits() Traits {
	return Traits{
		Resumes:     true,
		Evidence:    true,
		IdleOnly:    true,
		ReadyWithin: time.Minute,
		// As for Claude Code: a dialog that opens is told within this time.
		SubmitGap:   150 * time.Millisecond,
		TakenWithin: 10 * time.Second,
		Appends:     true,
		Env:         []string{"CODEX_HOME", "CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"},
	}
}

// codexHooks are the hook events that the agent decides by, with the names by which
// Codex knows them in its trust, and the tools that they are asked for.
var codexHooks = []struct{ event, key, matcher string }{
	{"SessionStart", "session_start", ""},
	{"UserPromptSubmit", "user_prompt_submit", ""},
	{"PreToolUse", "pre_tool_use", codexQuestion},
	{"PermissionRequest", "permission_request", ""},
	{"PostToolUse", "post_tool_use", ""},
	{"Stop", "stop", ""},
}

// codexQuestion is the tool that asks a person.
const codexQuestion = "request_user_input"

var codexRules = argRules{
	forbidden: map[string]string{
		"--remote": "the session would run elsewhere", "--worktree": whyDir, "--cd": whyDir, "-C": whyDir,
		"--last": whyNewest, "--all": whyNewest, "--no-daemon": "it is always added",
	},
	takesValue: map[string]bool{
		"-c": true, "--config": true, "--enable": true, "--disable": true, "-i": true, "--image": true,
		"-m": true, "--model": true, "--local-provider": true, "-p": true, "--profile": true, "-s": true, "--sandbox": true,
		"--add-dir": true, "-a": true, "--ask-for-approval": true, "--remote-auth-token-env": true,
	},
}

// Command builds
//
//	codex [resume ID] operator's arguments, -m, -c model_reasoning_effort, --no-daemon, -c projects, -c hooks
//
// Without --no-daemon a daemon is started that outlives the session. The directory is
// trusted and the hooks are set for this process alone; no file is touched.
func (codex) Command(opts LaunchOptions) (Command, error) {
	err := errors.Join(checkChoice(opts), codexRules.check(opts.Args), checkCodexConfig(opts.Args))
	if opts.Resume {
		err = errors.Join(err, checkUUID(opts.ConversationID))
	}
	if err != nil {
		return Command{}, err
	}
	argv := []string{opts.Binary}
	if opts.Resume {
		argv = append(argv, "resume", opts.ConversationID)
	}
	argv = append(argv, opts.Args...)
	if opts.Model != "" {
		argv = append(argv, "-m", opts.Model)
	}
	if opts.Effort != "" {
		argv = append(argv, "-c", "model_reasoning_effort="+quoted(opts.Effort))
	}
	argv = append(argv, "--no-daemon", "-c", "check_for_update_on_startup=false")
	if opts.Trust {
		argv = append(argv, "-c", "projects={"+quoted(opts.Dir)+`={trust_level="trusted"}}`)
	}
	hooks, err := codexHookArgs(opts)
	if err != nil {
		return Command{}, err
	}
	argv = append(argv, hooks...)
	return Command{Argv: argv}, checkArgv(argv)
}

// checkCodexConfig refuses settings that would take the hooks away.
func checkCodexConfig(args []string) error {
	for i, a := range args {
		flag, value, joined := strings.Cut(a, "=")
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		if len(flag) > 2 && strings.HasPrefix(flag, "-c") {
			flag, value = "-c", a[2:]
		}
		switch flag {
		case "-c", "--config":
			key, _, _ := strings.Cut(strings.TrimSpace(value), "=")
			if key = strings.TrimSpace(key); key == "hooks" || strings.HasPrefix(key, "hooks.") || key == "features.hooks" {
				return fmt.Errorf("harness argument %s %s is not allowed: the hooks tell the-loop what the session does", flag, key)
			}
		case "--disable":
			if value == "hooks" {
				return errors.New("harness argument --disable hooks is not allowed: the hooks tell the-loop what the session does")
			}
		}
	}
	return nil
}

// codexHookArgs set our hooks and the trust in them. Codex asks a person to review each
// hook that is new, and knows those that were by a digest. Giving it that digest says
// yes to ours alone: --dangerously-bypass-hook-trust would also run, unseen, the hooks
// that a checkout brings along.
func codexHookArgs(opts LaunchOptions) ([]string, error) {
	argv, err := hookArgv(opts)
	if err != nil {
		return nil, err
	}
	const timeout = 10 // seconds
	command := shellWords(argv)
	var args, trust []string
	for _, h := range codexHooks {
		matcher := ""
		identity := map[string]any{"event_name": h.key, "hooks": []any{map[string]any{
			"type": "command", "command": command, "timeout": timeout, "async": false,
		}}}
		if h.matcher != "" {
			matcher = "matcher=" + quoted(h.matcher) + ","
			identity["matcher"] = h.matcher
		}
		text, err := encode(identity) // its keys are sorted, which the digest needs
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(text)
		trust = append(trust, fmt.Sprintf(`%s={trusted_hash="sha256:%s"}`,
			quoted("/<session-flags>/config.toml:"+h.key+":0:0"), hex.EncodeToString(sum[:])))
		args = append(args, "-c", fmt.Sprintf(`hooks.%s=[{%shooks=[{type="command",command=%s,timeout=%d}]}]`,
			h.event, matcher, quoted(command), timeout))
	}
	return append(args, "-c", "hooks.state={"+strings.Join(trust, ",")+"}"), nil
}

// Observe folds one hook note into the State. Codex's hooks are made after Claude
// Code's.
func (codex) Observe(s State, n hook.Note) State {
	switch n.Event {
	case "SessionStart": // not before the first prompt of a conversation
		s = s.conversation(n)
		s.Ready, s.Ended = true, false
		s.Resumed = s.Resumed || n.Source == "resume"
		if s.Activity == "" {
			s = s.activity(ActivityIdle, n.Time, "")
		}
		return s
	case "PreToolUse":
		if n.Tool == codexQuestion {
			return s.activity(ActivityAwaitingInput, n.Time, "a question")
		}
		return s
	case "UserPromptSubmit", "PermissionRequest", "PostToolUse", "Stop":
		return claude{}.Observe(s, n)
	}
	return s
}

// Recheck finds the conversation of a Codex that has not been told anything yet: it
// holds a lock file named after it, from when its prompt takes input. With a dialog open
// (trust, hooks, a new model, a conversation that is open elsewhere) there was none, and
// 20 of 20 texts typed directly after it appeared were taken. Later it corrects the
// activity by the end of the conversation's file, because an interrupted turn and a
// refused permission fire no hook. Neither does a turn that failed, of which the file says
// why. It needs /proc.
func (codex) Recheck(s State, p Process) State {
	if !s.Ready && p.PID > 1 {
		if id := codexConversation(p); id != "" {
			s.ConversationID, s.Ready = id, true
			s.Resumed = p.Resume && id == p.ConversationID
			s = s.activity(ActivityIdle, time.Now(), "")
		}
	}
	if s.Activity != ActivityBusy && s.Activity != ActivityAwaitingInput {
		return s
	}
	for _, line := range newestLines(s.TranscriptPath, codexTail) {
		var r struct {
			Timestamp time.Time
			Type      string
			Payload   struct {
				Type  string
				Error *codexError
			}
		}
		if json.Unmarshal(line, &r) != nil || r.Type != "event_msg" {
			continue
		}
		switch r.Payload.Type {
		case "task_complete", "turn_aborted":
			if r.Timestamp.After(s.Since) {
				return r.Payload.Error.fold(s, r.Timestamp).activity(ActivityIdle, r.Timestamp, "")
			}
			return s
		case "task_started":
			return s
		}
	}
	return s
}

// codexTail is how much of the end of a conversation's file is looked at, in bytes.
const codexTail = 64 << 10

// codexLock is the lock file of a conversation.
var codexLock = regexp.MustCompile(`/thread-writer-locks/([0-9a-f]{8}-[0-9a-f-]{27})\.lock$`)

// codexConversation is the conversation whose lock the process, or the nearest one below
// it, has open. Of several it is the one that was launched, else the newest: the ids
// begin with the time.
func codexConversation(p Process) string {
	const most = 32 // processes are looked at
	pids := []int{p.PID}
	for i := 0; i < len(pids) && i < most; i++ {
		pids = append(pids, childrenOf(pids[i])...)
		if ids := codexLocks(pids[i]); slices.Contains(ids, p.ConversationID) {
			return p.ConversationID
		} else if len(ids) > 0 {
			return slices.Max(ids)
		}
	}
	return ""
}

func codexLocks(pid int) (ids []string) {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join(dir, e.Name()))
		if m := codexLock.FindStringSubmatch(target); err == nil && m != nil {
			ids = append(ids, m[1])
		}
	}
	return ids
}

// childrenOf are the processes that pid has started and that still run.
func childrenOf(pid int) (out []int) {
	files, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "children"))
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		for _, word := range strings.Fields(string(data)) {
			if child, err := strconv.Atoi(word); err == nil {
				out = append(out, child)
			}
		}
	}
	return out
}
