package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/cgroup"
	"github.com/theloop-dev/the-loop/internal/faultpoint"
	"github.com/theloop-dev/the-loop/internal/harness"
	"github.com/theloop-dev/the-loop/internal/harness/hook"
	"github.com/theloop-dev/the-loop/internal/tmux"
)

// leftoverGrace is how long what a harness left behind gets between SIGTERM and
// SIGKILL.
const leftoverGrace = 2 * time.Second

// maxHistory is the longest scrollback that may be asked for, in lines.
const maxHistory = 1_000_000

// HostOptions say how sessions are hosted on one machine.
type HostOptions struct {
	// HostName is the name of this host's SessionHost.
	HostName string
	// Dir is the agent's own directory, absolute.
	Dir string
	// Shim is the pane process and hook binary, loop-shim. "" looks beside the running
	// executable, then on PATH.
	Shim string
	// TmuxBinary is the tmux to run; "" looks on PATH.
	TmuxBinary string
	// TmuxSocket is the server's socket: a name such as the-loop, below tmux's own
	// directory, or an absolute path of at most 107 bytes. "" is the-loop.
	TmuxSocket string
	// PassEnv names variables of the agent's environment that harnesses get too, beside
	// what a login shell needs and what each harness names itself. A server that runs
	// already keeps its environment.
	PassEnv []string
	// HistoryLimit is the scrollback of a terminal in lines, 0 for 20000.
	HistoryLimit int
	// CgroupParent is the directory of a control group below which those of sessions are made;
	// "" is that of the agent.
	CgroupParent string
	Log          logr.Logger
}

// Complete fills in what was left out and refuses what cannot work, before anything
// is made.
func (o *HostOptions) Complete() error {
	if !filepath.IsAbs(o.Dir) {
		return fmt.Errorf("--state-dir %q must be an absolute path", o.Dir)
	}
	if err := hook.CheckSocketPath(o.hookSocket()); err != nil {
		return fmt.Errorf("--state-dir is too long: %w", err)
	}
	if o.HistoryLimit < 0 || o.HistoryLimit > maxHistory {
		return fmt.Errorf("--history-limit %d is not a number of lines from 0 to %d", o.HistoryLimit, maxHistory)
	}
	if o.CgroupParent != "" && !filepath.IsAbs(o.CgroupParent) {
		return fmt.Errorf("--cgroup-parent %q must be the absolute path of a group's directory, as below /sys/fs/cgroup", o.CgroupParent)
	}
	if o.TmuxSocket == "" {
		o.TmuxSocket = "the-loop"
	}
	if !filepath.IsAbs(o.TmuxSocket) {
		path, err := tmux.DefaultSocket(o.TmuxSocket)
		if err != nil {
			return fmt.Errorf("--tmux-socket: %w", err)
		}
		o.TmuxSocket = path
	}
	return o.findShim()
}

func (o *HostOptions) hookSocket() string { return filepath.Join(o.Dir, "hooks.sock") }

func (o *HostOptions) findShim() error {
	if o.Shim == "" {
		if self, err := os.Executable(); err == nil {
			o.Shim = filepath.Join(filepath.Dir(self), "loop-shim")
		}
		if _, err := os.Stat(o.Shim); err != nil {
			found, err := exec.LookPath("loop-shim")
			if err != nil {
				return errors.New("loop-shim was found neither beside this program nor on PATH: install it there, or name it with --shim")
			}
			o.Shim = found
		}
	}
	path, err := filepath.Abs(o.Shim)
	if err != nil {
		return err
	}
	if _, err := exec.LookPath(path); err != nil {
		return fmt.Errorf("--shim %s cannot be executed: %w", path, err)
	}
	o.Shim = path
	return nil
}

// Open makes an engine for this host, with its terminal server running. Sessions go on
// whatever becomes of the engine.
func Open(ctx context.Context, o HostOptions) (*Engine, error) {
	server, err := tmux.New(tmux.Config{Binary: o.TmuxBinary, Socket: o.TmuxSocket, PassEnv: o.passEnv(), HistoryLimit: o.HistoryLimit})
	if err != nil {
		return nil, err
	}
	// Before the terminal server is started, which stays where the agent is then.
	groups := cgroup.Open(o.CgroupParent)
	if err := groups.Problem(); err != nil {
		o.Log.Info("the memory of sessions cannot be bounded, and is not", "reason", err.Error(), "groups", groups.Describe())
	} else {
		o.Log.Info("sessions get control groups of their own", "groups", groups.Describe())
	}
	_, err = server.Ensure(ctx)
	for _, w := range server.Warnings() {
		o.Log.Info("warning: " + w)
	}
	if err != nil {
		return nil, fmt.Errorf("starting the terminal server: %w", err)
	}
	return &Engine{
		Terminal: server,
		Lister:   &Lister{Source: server, Log: o.Log.WithName("lister")},
		HostName: o.HostName, Dir: o.Dir, Shim: o.Shim, HookSocket: o.hookSocket(),
		LookPath: exec.LookPath, Getenv: os.Getenv, Environ: server.Environ(), Passed: o.passed(server.Environ()),
		Sweep: func(ctx context.Context, uid string) ([]int, error) {
			return tmux.EndProcesses(ctx, uid, leftoverGrace)
		},
		Children: tmux.Children, Groups: groups, ServerUsage: server.Usage,
		Configs: &Configs{Clock: faultpoint.Clock(), Log: o.Log.WithName("configs")},
		Clock:   faultpoint.Clock(), HostLog: o.Log, Backoff: NewBackoff(faultpoint.Clock()),
		Tmux: api.HostTmux{Version: server.Version(), Socket: server.Socket()},
	}, nil
}

// passEnv names what harnesses get of the agent's environment.
func (o *HostOptions) passEnv() []string {
	names := slices.Clone(o.PassEnv)
	for _, name := range harness.Names() {
		if a, err := harness.Get(name); err == nil {
			names = append(names, a.Traits().Env...)
		}
	}
	return names
}

// passed are the variables of an environment that passEnv names. A terminal server that was
// started before the login was replaced has the old one.
func (o *HostOptions) passed(environ []string) []string {
	names := o.passEnv()
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return !slices.Contains(names, name)
	})
}

// Harnesses lists the harnesses that this host can run.
func (e *Engine) Harnesses() []api.HostHarness {
	var out []api.HostHarness
	for _, name := range harness.Names() {
		a, err := harness.Get(name)
		if err != nil || a.Binary() == "" || a.Traits().Refusal != "" {
			continue
		}
		path, err := e.LookPath(a.Binary())
		if err != nil {
			path = ""
		}
		out = append(out, api.HostHarness{Name: name, Path: path})
	}
	return out
}

// Pokes delivers the UIDs of sessions whose hooks have left a note, until ctx ends.
func (e *Engine) Pokes(ctx context.Context) (<-chan string, error) {
	return hook.Listen(ctx, e.HookSocket)
}
