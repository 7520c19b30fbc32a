// Package launch is what the agent and the pane process share about one launch of
// a harness: a file with its argument list and environment. tmux refuses an
// argument list of about 16 KB, and what stands on its command line can be read by
// every user of the host; a private file has neither limit. The package has no
// dependency outside the standard library, because the pane process must start in
// milliseconds.
package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
)

const (
	// MaxSize is the largest launch file, in bytes; the kernel takes far less as
	// arguments and environment of one process.
	MaxSize = 16 << 20
	// DefaultGrace is how long descendants that are left when the harness has ended
	// get between SIGTERM and SIGKILL.
	DefaultGrace = 2 * time.Second
	// MaxGrace bounds File.GraceMillis.
	MaxGrace = 10 * time.Minute
)

// File is one launch.
type File struct {
	// Argv is the harness's command line. Argv[0] is its executable, absolute or a
	// name to look up on the PATH of the launch's environment.
	Argv []string `json:"argv"`
	// Env is added to the environment of the pane, KEY=value; the last of equal keys
	// wins.
	Env []string `json:"env,omitempty"`
	// Unset are names taken out of the environment of the pane before Env is added.
	// TMUX and TMUX_PANE are always taken out.
	Unset []string `json:"unset,omitempty"`
	// Dir is the working directory, absolute.
	Dir string `json:"dir"`
	// UID is the UID of the session's object. It becomes LOOP_UID in the
	// environment, by which every process of the session can be found.
	UID string `json:"uid"`
	// Session names the session in messages to a person.
	Session string `json:"session,omitempty"`
	// GraceMillis is how long, in milliseconds, descendants that are left when the
	// harness has ended get between SIGTERM and SIGKILL. 0 means DefaultGrace, a
	// negative value none.
	GraceMillis int64 `json:"graceMillis,omitempty"`
	// Groups is where the harness and all that it starts runs, and the pane process does
	// not: what ends them together leaves it to tell of that.
	Groups Groups `json:"groups,omitzero"`
}

// Groups are the directories of the control group in which a harness is started, "" for
// none.
type Groups struct {
	// Unified is on cgroup v2, Legacy on the memory hierarchy of cgroup v1.
	Unified string `json:"unified,omitempty"`
	Legacy  string `json:"legacy,omitempty"`
	// Refused is the file into which the pane process writes why the harness is not in the
	// group that bounds its memory, "" where no bound was asked for.
	Refused string `json:"refused,omitempty"`
}

// Grace is GraceMillis as a duration with its default applied.
func (f File) Grace() time.Duration {
	switch {
	case f.GraceMillis == 0:
		return DefaultGrace
	case f.GraceMillis < 0:
		return 0
	}
	return time.Duration(min(f.GraceMillis, MaxGrace.Milliseconds())) * time.Millisecond
}

// Validate refuses what cannot be launched.
func (f File) Validate() error {
	switch {
	case len(f.Argv) == 0 || f.Argv[0] == "":
		return errors.New("argv is empty: it must name the harness's executable")
	case !filepath.IsAbs(f.Dir):
		return fmt.Errorf("dir %q is not an absolute path", f.Dir)
	case f.UID == "":
		return errors.New("uid is empty: it must be the UID of the session's object")
	}
	if why := unfit(f.Dir); why != "" {
		return fmt.Errorf("dir %q contains %s", f.Dir, why)
	}
	for i, a := range f.Argv {
		if why := unfit(a); why != "" {
			return fmt.Errorf("argv[%d] contains %s", i, why)
		}
	}
	for _, kv := range append([]string{"LOOP_UID=" + f.UID}, f.Env...) {
		key, _, ok := strings.Cut(kv, "=")
		if !ok || key == "" {
			return fmt.Errorf("env entry %q is not of the form KEY=value", key)
		}
		if why := unfit(kv); why != "" {
			return fmt.Errorf("the value of env %s contains %s", key, why)
		}
	}
	return nil
}

// unfit says what in s cannot be carried to a process, "" when nothing.
func unfit(s string) string {
	switch {
	case strings.ContainsRune(s, 0):
		return "a NUL byte"
	case !utf8.ValidString(s):
		return "bytes that are not UTF-8"
	}
	return ""
}

// Environ is the environment of the harness: base (KEY=value, as os.Environ
// gives it) without TMUX, TMUX_PANE and the names of Unset, then PWD and Env, then
// LOOP_UID. Each key stands in it once.
func (f File) Environ(base []string) []string {
	drop := map[string]bool{"TMUX": true, "TMUX_PANE": true}
	for _, k := range f.Unset {
		drop[k] = true
	}
	last := map[string]string{}
	var order []string
	put := func(kv string) {
		key, _, _ := strings.Cut(kv, "=")
		if _, ok := last[key]; !ok {
			order = append(order, key)
		}
		last[key] = kv
	}
	for _, kv := range base {
		if key, _, ok := strings.Cut(kv, "="); ok && !drop[key] {
			put(kv)
		}
	}
	put("PWD=" + f.Dir)
	for _, kv := range f.Env {
		put(kv)
	}
	put("LOOP_UID=" + f.UID)
	out := make([]string, len(order))
	for i, k := range order {
		out[i] = last[k]
	}
	return out
}

// Write stores the launch in a new file in dir, which must exist, and returns its
// path. The file has mode 0600 and a unique name, and appears under that name only
// when it is whole. It is used up by the launch: the pane process removes it.
func Write(dir string, f File) (path string, err error) {
	if err := f.Validate(); err != nil {
		return "", fmt.Errorf("launch of session %q: %w", f.Session, err)
	}
	data, err := json.Marshal(f)
	if err != nil {
		return "", fmt.Errorf("encoding the launch: %w", err)
	}
	if len(data) > MaxSize {
		return "", fmt.Errorf("launch of session %q has %d bytes, the limit is %d: shorten the harness arguments or the environment",
			f.Session, len(data), MaxSize)
	}
	tmp, err := os.CreateTemp(dir, ".launch-*.tmp")
	if err != nil {
		return "", fmt.Errorf("writing the launch file: %w", err)
	}
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Close())
	path = filepath.Join(dir, strings.TrimSuffix(strings.TrimPrefix(filepath.Base(tmp.Name()), "."), ".tmp")+".json")
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("writing the launch file: %w", err), os.Remove(tmp.Name()))
	}
	return path, nil
}

// Read reads a launch file. It refuses a file that belongs to another user or is
// open to others, because what stands in it is executed.
func Read(path string) (File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return File{}, fmt.Errorf("opening the launch file: %w", err)
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return File{}, fmt.Errorf("opening the launch file: %w", err)
	}
	owner := st.Sys().(*syscall.Stat_t).Uid
	switch {
	case !st.Mode().IsRegular():
		return File{}, fmt.Errorf("launch file %s is no regular file", path)
	case int(owner) != os.Geteuid():
		return File{}, fmt.Errorf("launch file %s belongs to user %d, not to us (%d)", path, owner, os.Geteuid())
	case st.Mode().Perm()&0o077 != 0:
		return File{}, fmt.Errorf("launch file %s is open to other users (mode %04o, must be 0600)", path, st.Mode().Perm())
	case st.Size() > MaxSize:
		return File{}, fmt.Errorf("launch file %s has %d bytes, the limit is %d", path, st.Size(), MaxSize)
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return File{}, fmt.Errorf("reading the launch file: %w", err)
	}
	var out File
	if err := json.Unmarshal(data, &out); err != nil {
		return File{}, fmt.Errorf("launch file %s is not valid JSON: %w", path, err)
	}
	if err := out.Validate(); err != nil {
		return File{}, fmt.Errorf("launch file %s: %w", path, err)
	}
	return out, nil
}
