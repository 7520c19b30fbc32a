package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// hookDefaultTimeout is the time limit of a hook that names none.
const hookDefaultTimeout = 60 * time.Second

// hookSpec is one hook of the settings.
type hookSpec struct {
	Type    string   `json:"type"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
	Timeout float64  `json:"timeout"` // seconds
	Async   bool     `json:"async"`
}

type matcherSpec struct {
	Matcher string     `json:"matcher"`
	Hooks   []hookSpec `json:"hooks"`
}

// hookTable is "hooks" of the settings: the hooks of each event.
type hookTable map[string][]matcherSpec

// settings are what of --settings is obeyed.
type settings struct {
	Hooks           hookTable `json:"hooks"`
	DisableAllHooks bool      `json:"disableAllHooks"`
	SkipDisclaimer  bool      `json:"skipDangerousModePermissionPrompt"`
}

// parseSettings reads the value of --settings, JSON or a file. The texts of its
// errors are the real ones.
func parseSettings(value string) (settings, error) {
	if value == "" {
		return settings{}, nil
	}
	data := []byte(value)
	if !strings.HasPrefix(strings.TrimSpace(value), "{") {
		var err error
		if data, err = os.ReadFile(value); err != nil {
			return settings{}, failure{"Error: Settings file not found: " + value}
		}
	}
	var s settings
	if err := json.Unmarshal(data, &s); err != nil {
		return settings{}, failure{"Error: Invalid JSON provided to --settings"}
	}
	if s.DisableAllHooks {
		s.Hooks = nil
	}
	return s, nil
}

// hookInput is the JSON on a hook's standard input.
type hookInput map[string]any

// hookResult is what the hooks of one event came to.
type hookResult struct {
	// blocked: one ended with status 2.
	blocked bool
	reason  string
	// decision is the answer to a PermissionRequest: "allow", "deny" or "".
	decision, message string
}

// runHooks runs the hooks of the event one after the other in the background and
// then gives their result to done, on the main loop. Asynchronous ones are not
// waited for.
func (a *app) runHooks(event string, extra hookInput, done func(hookResult)) {
	in := hookInput{
		"session_id": a.id, "transcript_path": a.conv.path, "cwd": a.cwd,
		"hook_event_name": event, "permission_mode": firstOf(a.opts.permissionMode, "auto"),
	}
	tool := ""
	for k, v := range extra {
		in[k] = v
		if k == "tool_name" {
			tool = fmt.Sprint(v)
		}
	}
	if slices.Contains(a.modes.list("skip-hook"), event) {
		a.log.event("hook-skipped", fields{"hook": event})
		done(hookResult{})
		return
	}
	stdin, _ := json.Marshal(in)
	specs := a.settings.Hooks.matching(event, tool)
	delay := a.modes.millisOr("slow-hooks", 0)
	a.pending.Add(1)
	go func() {
		defer a.pending.Done()
		var result hookResult
		for _, s := range specs {
			if s.Async {
				a.pending.Add(1)
				go func() {
					defer a.pending.Done()
					a.runHook(event, s, stdin, delay)
				}()
				continue
			}
			result.merge(a.runHook(event, s, stdin, delay))
		}
		a.post(func() { done(result) })
	}()
}

// matching are the hooks of an event for a tool.
func (t hookTable) matching(event, tool string) []hookSpec {
	var out []hookSpec
	for _, m := range t[event] {
		if m.Matcher != "" && m.Matcher != "*" && tool != "" {
			re, err := regexp.Compile("^(?:" + m.Matcher + ")$")
			if err != nil || !re.MatchString(tool) {
				continue
			}
		}
		for _, h := range m.Hooks {
			if h.Type == "command" {
				out = append(out, h)
			}
		}
	}
	return out
}

func (r *hookResult) merge(o hookResult) {
	if o.blocked {
		r.blocked, r.reason = true, o.reason
	}
	if o.decision != "" {
		r.decision, r.message = o.decision, o.message
	}
}

// runHook runs one hook: its command with its arguments, or by a shell when it has
// none. Whatever goes wrong with it is harmless but status 2.
func (a *app) runHook(event string, s hookSpec, stdin []byte, delay time.Duration) hookResult {
	time.Sleep(delay)
	limit := hookDefaultTimeout
	if s.Timeout > 0 {
		limit = time.Duration(s.Timeout * float64(time.Second))
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	name, args := "/bin/sh", []string{"-c", s.Command}
	if s.Args != nil {
		name, args = s.Command, s.Args
	}
	cmd := exec.CommandContext(ctx, name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = a.cwd, bytes.NewReader(stdin), &stdout, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 100 * time.Millisecond
	begun := time.Now()
	err := cmd.Run()
	code := cmd.ProcessState.ExitCode() // -1 when it never ran or died by a signal
	f := fields{"hook": event, "exit": code, "millis": time.Since(begun).Milliseconds()}
	if err != nil {
		f["error"] = err.Error()
	}
	a.log.event("hook", f)

	const blocks = 2
	if code == blocks {
		return hookResult{blocked: true, reason: strings.TrimSpace(stderr.String())}
	}
	var out struct {
		Specific struct {
			Decision struct {
				Behavior string `json:"behavior"`
				Message  string `json:"message"`
			} `json:"decision"`
		} `json:"hookSpecificOutput"`
	}
	if code != 0 || json.Unmarshal(stdout.Bytes(), &out) != nil {
		return hookResult{}
	}
	return hookResult{decision: out.Specific.Decision.Behavior, message: out.Specific.Decision.Message}
}
