package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/harness"
)

// launchSpec is how a session would be launched now.
type launchSpec struct {
	adapter harness.Adapter
	binary  string
	args    []string
	model   string
	effort  string
	env     []string
	dir     string
	// makeDir: the directory is the session's own, and made by the start.
	makeDir bool
	// checkout is what the session works in, nil when it works elsewhere; dir is then "" until
	// it is there.
	checkout *checkout
	custom   harness.CustomCommand
	perms    harness.Permissions
	// choices are what became of the model and the effort that the session asks for; those
	// that are applied stand in model and effort.
	choices []chosen
}

// wanted is the part of a session's spec that decides how it is launched, the same
// for both kinds.
type wanted struct {
	// args is nil to inherit those of the class.
	args          []string
	model, effort string
	dir           string
}

func wantedOf(obj api.HostedSession) wanted {
	switch s := obj.(type) {
	case *api.StandingSession:
		return wanted{args: s.Spec.HarnessArgs, model: s.Spec.Model, effort: s.Spec.Effort, dir: s.Spec.Cwd}
	case *api.WorkItemSession:
		w := wanted{model: s.Spec.Model, effort: s.Spec.Effort}
		if s.Spec.Conversation != nil {
			w.dir = s.Spec.Conversation.WorkingDirectory
		}
		return w
	}
	return wanted{}
}

// resolve finds out how a session would be launched now, or what is in the way.
func (e *Engine) resolve(s *Subject) (launchSpec, *Obstacle) {
	if s.Class == nil {
		return launchSpec{}, &Obstacle{Reason: api.ReasonClassNotFound, Message: s.ClassProblem}
	}
	h := s.Class.Spec.Harness
	adapter, err := harness.Get(h.Name)
	if err != nil {
		return launchSpec{}, &Obstacle{Reason: api.ReasonHarnessUnsupported, Message: fmt.Sprintf("SessionClass %s: %v", s.Class.Name, err)}
	}
	if why := adapter.Traits().Refusal; why != "" {
		return launchSpec{}, &Obstacle{Reason: api.ReasonHarnessUnsupported, Message: fmt.Sprintf("SessionClass %s: %s", s.Class.Name, why)}
	}
	w := wantedOf(s.Object)
	l := launchSpec{adapter: adapter, args: h.Args, perms: harness.Permissions(s.Class.Spec.Permissions)}
	if w.args != nil {
		l.args = w.args
	}
	if h.Custom != nil {
		l.custom = harness.CustomCommand{StartArgs: h.Custom.StartArgs, ResumeArgs: h.Custom.ResumeArgs}
	}
	for _, v := range h.Env {
		l.env = append(l.env, v.Name+"="+v.Value)
	}
	l.binary, err = e.findBinary(h.Binary, adapter.Binary())
	e.choose(s, &l, w)
	if err != nil {
		return l, &Obstacle{Reason: api.ReasonBinaryMissing, Message: fmt.Sprintf("harness %s of SessionClass %s: %v", h.Name, s.Class.Name, err)}
	}
	var o *Obstacle
	if l.checkout, o = e.checkoutOf(s); o != nil {
		return l, o
	}
	if l.checkout != nil {
		if st := s.Object.HostedStatus(); checkoutThere(st) {
			l.dir = st.Checkout.Path
		}
		return l, nil
	}
	if l.dir, l.makeDir, err = e.workingDirectory(s, w); err != nil {
		return l, &Obstacle{Reason: api.ReasonDirectoryMissing, Message: err.Error()}
	}
	return l, nil
}

func (e *Engine) findBinary(configured, standard string) (string, error) {
	name := configured
	if name == "" {
		name = standard
	}
	if name == "" {
		return "", errors.New("harness.binary is not set")
	}
	path, err := e.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is not an executable on the agent's host: install it, or set harness.binary of the class: %w", name, err)
	}
	return filepath.Abs(path)
}

// workingDirectory finds the directory of a session. One that a person named must be
// there, because tmux and the harness would silently start in another one; own means that
// it is the session's own, to be made by the start.
func (e *Engine) workingDirectory(s *Subject, w wanted) (dir string, own bool, err error) {
	dir, root := w.dir, s.Class.Spec.Workspace.Root
	if _, ok := s.Object.(*api.WorkItemSession); ok && dir == "" {
		if root == "" {
			root = filepath.Join(e.Dir, "workspaces")
		}
		if root, err = e.expand(root); err != nil {
			return "", false, err
		}
		return filepath.Join(root, s.Object.GetNamespace(), s.Object.GetName()), true, nil
	}
	if dir == "" {
		dir = root
	}
	if dir == "" {
		dir = "~"
	}
	dir, err = e.existing(dir)
	return dir, false, err
}

// existing checks that a directory is there, and returns its real path.
func (e *Engine) existing(dir string) (string, error) {
	path, err := e.expand(dir)
	if err != nil {
		return "", err
	}
	switch info, err := os.Stat(path); {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("the working directory %s does not exist on host %s: create it there, or change spec.cwd", path, e.HostName)
	case err != nil:
		return "", fmt.Errorf("the working directory cannot be used: %w", err)
	case !info.IsDir():
		return "", fmt.Errorf("the working directory %s is not a directory: change spec.cwd", path)
	}
	return filepath.EvalSymlinks(path)
}

// expand resolves a leading "~" and insists on an absolute path.
func (e *Engine) expand(path string) (string, error) {
	if path == "~" || strings.HasPrefix(path, "~/") {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("%s needs a home directory: %w", path, err)
		}
		path = filepath.Join(home, strings.TrimPrefix(path[1:], "/"))
	}
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%q is not an absolute path", path)
	}
	return filepath.Clean(path), nil
}

// differs reports whether a harness launched as recorded would be launched otherwise
// now. A record without a harness was not made by us and is left alone.
func (l launchSpec) differs(st *api.HostedSessionStatus) bool {
	return st.Harness != "" &&
		(st.Harness != l.adapter.Name() || !slices.Equal(st.HarnessArgs, l.args) || st.Model != l.model || st.Effort != l.effort)
}

// record notes a launch in the status.
func (l launchSpec) record(st *api.HostedSessionStatus) {
	st.Harness, st.HarnessArgs, st.Model, st.Effort = l.adapter.Name(), slices.Clone(l.args), l.model, l.effort
	st.WorkingDirectory = l.dir
}
