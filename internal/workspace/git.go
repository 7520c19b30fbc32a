package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/theloop-dev/the-loop/internal/text"
)

const (
	// termDelay is how long git gets between SIGTERM, on which it removes its lock files,
	// and SIGKILL.
	termDelay = 3 * time.Second
	// maxStderr bounds what is kept of git's messages, in bytes, and maxMessage what of
	// that gets into an error.
	maxStderr  = 16 << 10
	maxMessage = 600
	// lockPatience is how long a lock file of another git, such as one that an agent runs
	// in its worktree, is waited for.
	lockPatience = 3 * time.Second
	lockInterval = 100 * time.Millisecond
)

// keptEnv are the variables of git's that reach it: how it connects, and its
// configuration. All others could lead it to another repository or make it ask.
var keptEnv = regexp.MustCompile(
	`^GIT_(SSH|SSH_COMMAND|SSH_VARIANT|ASKPASS|EXEC_PATH|CONFIG_[A-Z0-9_]+|(SSL|PROXY|HTTP)_[A-Z_]+)$`)

// settings go before every command, and over every configuration file: a repository can
// make us run nothing (W48).
var settings = []string{
	"-c", "core.hooksPath=/dev/null",
	"-c", "core.fsmonitor=false",
	"-c", "protocol.ext.allow=never",
	"-c", "submodule.recurse=false",
	"-c", "fetch.recurseSubmodules=false",
	"-c", "gc.auto=0",
	"-c", "maintenance.auto=false",
	"-c", "advice.detachedHead=false",
	"-c", "advice.addEmbeddedRepo=false",
	// A connection that stalls ends long before the timeout.
	"-c", "http.lowSpeedLimit=1",
	"-c", "http.lowSpeedTime=120",
}

// git runs one git program.
type git struct {
	binary  string
	env     []string
	timeout time.Duration
}

// call is one run of git.
type call struct {
	// dir is the repository, absolute: git does not look for one above it.
	dir string
	// args begin with the command. Whatever is not ours comes after a "--" or is checked.
	args  []string
	stdin string
	// env is added to the environment, raw goes between git and the command.
	env, raw []string
}

// gitError is a git that ran and failed, or was not run to its end.
type gitError struct {
	command string
	code    int
	stderr  string
	err     error
}

func (e *gitError) Error() string {
	switch {
	case errors.Is(e.err, context.DeadlineExceeded):
		return "git " + e.command + " did not end in time"
	case errors.Is(e.err, context.Canceled):
		return "git " + e.command + " was stopped"
	case e.err != nil:
		return redact(fmt.Sprintf("git %s: %v", e.command, e.err))
	}
	return fmt.Sprintf("git %s failed (exit status %d): %s", e.command, e.code, message(e.stderr))
}

func (e *gitError) Unwrap() error { return e.err }

func gitEnv(from []string) []string {
	env := slices.DeleteFunc(slices.Clone(from), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		switch name {
		case "LC_ALL", "LANGUAGE":
			return true
		}
		return strings.HasPrefix(name, "GIT_") && !keptEnv.MatchString(name)
	})
	return append(env, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0",
		// Over every configuration: no remote helper runs a program of the URL's choice.
		"GIT_ALLOW_PROTOCOL=file:git:http:https:ssh",
		"GIT_AUTHOR_NAME=the-loop", "GIT_AUTHOR_EMAIL=the-loop@localhost",
		"GIT_COMMITTER_NAME=the-loop", "GIT_COMMITTER_EMAIL=the-loop@localhost")
}

// run gives git's output without the line end. When another git's lock is in the way, it
// is waited for a little, and removed when it is left from before this machine started.
func (g *git) run(ctx context.Context, c call) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	var out string
	var last error
	err := wait.PollUntilContextTimeout(ctx, lockInterval, lockPatience, true, func(context.Context) (bool, error) {
		// The patience is for starting again: a run that is under way has the whole timeout.
		out, last = g.once(ctx, c)
		if path, locked := lockOf(last); locked {
			healLock(path)
			return false, nil
		}
		return true, nil
	})
	if last == nil && err != nil {
		last = &gitError{command: c.args[0], err: err}
	}
	return out, last
}

func (g *git) once(ctx context.Context, c call) (string, error) {
	args := slices.Concat(settings, c.raw, c.args)
	if c.dir != "" {
		args = append([]string{"-C", c.dir}, args...)
	}
	cmd := exec.CommandContext(ctx, g.binary, args...)
	cmd.Env = slices.Concat(g.env, c.env)
	if c.dir != "" {
		cmd.Env = append(cmd.Env, "GIT_CEILING_DIRECTORIES="+filepath.Dir(c.dir))
	}
	var stdout bytes.Buffer
	stderr := &tail{}
	cmd.Stdout, cmd.Stderr = &stdout, stderr
	cmd.Stdin = strings.NewReader(c.stdin)
	cmd.SysProcAttr = procAttr()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = termDelay
	// The signal at the parent's death is sent when the thread that started git ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	if err != nil && cmd.Process != nil && ctx.Err() != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	// A credential daemon that git started may keep its output open.
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return strings.TrimSuffix(stdout.String(), "\n"), nil
	}
	e := &gitError{command: c.args[0], stderr: stderr.String(), err: err}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		e.code, e.err = exit.ExitCode(), nil
	}
	if ctx.Err() != nil {
		e.err = ctx.Err()
	}
	return stdout.String(), e
}

// tail keeps the end of what is written to it.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if over := len(t.b) - maxStderr; over > 0 {
		t.b = slices.Delete(t.b, 0, over)
	}
	return len(p), nil
}

func (t *tail) String() string { return string(t.b) }

// userinfo is what stands before the host of a URL.
var userinfo = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^/\s'"]*@`)

// redact takes credentials out of a message.
func redact(s string) string { return userinfo.ReplaceAllString(s, "${1}***@") }

// message is what git said, in one short line: its last lines that are messages, since
// what follows them is advice.
func message(stderr string) string {
	var said, other []string
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(text.OneLine(line))
		switch head, _, found := strings.Cut(line, ":"); {
		case line == "":
		case found && slices.Contains([]string{"fatal", "error", "ERROR", "remote"}, head):
			said = append(said, line)
		default:
			other = append(other, line)
		}
	}
	if len(said) == 0 {
		said = other
	}
	const most = 3
	said = said[max(0, len(said)-most):]
	out := redact(strings.Join(said, "; "))
	if len(out) > maxMessage {
		out = "..." + strings.ToValidUTF8(out[len(out)-maxMessage:], "")
	}
	if out == "" {
		return "it said nothing"
	}
	return out
}

var lockMessage = regexp.MustCompile(`Unable to create '([^'\n]+\.lock)': File exists`)

// lockOf is the lock file that made git fail, "" when it did not name it.
func lockOf(err error) (string, bool) {
	var e *gitError
	if !errors.As(err, &e) || e.err != nil {
		return "", false
	}
	if m := lockMessage.FindStringSubmatch(e.stderr); m != nil {
		return m[1], true
	}
	return "", strings.Contains(e.stderr, "could not lock config file") && strings.Contains(e.stderr, "File exists")
}

// healLock removes a lock file that is older than the running system: no process can
// hold it any more.
func healLock(path string) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	if boot := bootTime(); info.ModTime().Before(boot) {
		_ = os.Remove(path)
	}
}

// classify makes a typed error of what git said. otherwise is the reason when it said
// nothing that is known.
func classify(err error, otherwise Reason) *Error {
	var typed *Error
	if errors.As(err, &typed) {
		return typed
	}
	out := &Error{Reason: otherwise, Problem: redact(err.Error()), Err: err}
	var e *gitError
	errors.As(err, &e)
	said := func(any ...string) bool {
		return e != nil && slices.ContainsFunc(any, func(s string) bool { return strings.Contains(e.stderr, s) })
	}
	path, locked := lockOf(err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		out.Reason = ReasonTimeout
	case errors.Is(err, context.Canceled):
		out.Reason = ReasonCanceled
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, exec.ErrDot), e != nil && errors.Is(e.err, fs.ErrNotExist):
		out.Reason, out.Remedy = ReasonGitMissing, "install git on this host"
	case locked && path == "":
		out.Reason, out.Remedy = ReasonLocked, "when no git runs there, remove that configuration file's .lock file"
	case locked:
		out.Reason, out.Path = ReasonLocked, path
		out.Remedy = "when no git runs there, remove it: rm -- '" + path + "'"
	case said("detected dubious ownership"):
		out.Reason, out.Remedy = ReasonDamaged, "the directory belongs to another user: chown it to the user that runs the agent"
	case said("could not read Username", "could not read Password", "Authentication failed", "Permission denied (publickey",
		"Host key verification failed", "terminal prompts disabled", "returned error: 401", "returned error: 403"):
		out.Reason = ReasonAuthenticationFailed
		out.Remedy = "give git credentials for it on this host, as a credential helper or an SSH key"
	case said("Repository not found", "does not appear to be a git repository", "returned error: 404"),
		e != nil && missing.MatchString(e.stderr):
		out.Reason, out.Remedy = ReasonRepositoryNotFound, "see that it exists and that this host's credentials may read it"
	}
	return out
}

var missing = regexp.MustCompile(`(?m)^fatal: repository '[^'\n]*' (not found|does not exist)`)
