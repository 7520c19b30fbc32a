// Package cgroup gives each session a control group of its own, so that the kernel can
// bound its memory, end it alone when that is short, and end all of it at once. Groups are
// made below the group in which the agent runs, or below one that is named. On cgroup v2 the
// memory controller is used where groups get it, or where it may be switched on for them;
// where it is on a cgroup v1 hierarchy (a "hybrid" machine), that one is used for memory
// beside the unified one.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// prefix begins the name of a session's group; the UID of its object follows.
	prefix = "the-loop-session-"
	// Leaf is the group into which the processes of a group move whose memory controller of
	// cgroup v2 is switched on: a group with controllers for its children holds no process
	// itself.
	Leaf = "the-loop-agent"

	procsFile   = "cgroup.procs"
	controlFile = "cgroup.subtree_control"
	memory      = "memory"
	unlimited   = "max"
)

// Host is where groups are made on this machine.
type Host struct {
	proc string
	// unified is the directory of cgroup v2 below which groups are made, legacy that of the
	// memory hierarchy of cgroup v1; "" for none.
	unified, legacy string
	// memory: unified has the memory controller.
	memory bool
	mount  mount
	// problem says why memory cannot be bounded, nil when it can.
	problem error
}

// Open finds out where this process may make groups: below parent, the directory of a group
// of cgroup v2 that is ours alone, or with "" below its own. Where parent is named, and in a
// container, the memory controller is switched on, for which every process of the group moves
// into Leaf below it. Elsewhere nothing is changed: systemd puts the agent, when it starts it
// again, into the group of its unit, which the kernel refuses while that hands a controller
// down to sessions that live.
func Open(parent string) *Host {
	_, err := os.Stat("/run/systemd/system") // as sd_booted(3) does
	return open("/proc", parent, err == nil)
}

func open(proc, parent string, systemd bool) *Host {
	h := &Host{proc: proc}
	own, err1 := os.ReadFile(filepath.Join(proc, "self", "cgroup"))
	mounts, err2 := os.ReadFile(filepath.Join(proc, "self", "mountinfo"))
	if err := errors.Join(err1, err2); err != nil {
		h.problem = fmt.Errorf("the control group of the agent cannot be told: %w", err)
		return h
	}
	all := parseMounts(string(mounts))
	h.problem = h.openUnified(parseOwn(string(own), ""), parent, systemd, all)
	if h.memory {
		return h
	}
	if path := parseOwn(string(own), memory); path != "" {
		h.problem = h.openLegacy(path, all)
	}
	return h
}

// Problem says why the memory of sessions cannot be bounded here, nil when it can.
func (h *Host) Problem() error { return h.problem }

// Describe says where groups are made, for people.
func (h *Host) Describe() string {
	switch {
	case h.memory:
		return h.unified
	case h.legacy != "" && h.unified != "":
		return h.unified + " and, for memory, " + h.legacy
	}
	return h.unified + h.legacy
}

func (h *Host) openUnified(own, parent string, systemd bool, all []mount) error {
	m, dir := locate(all, own, func(m mount) bool { return m.kind == "cgroup2" })
	if filepath.Base(dir) == Leaf && dir != m.point {
		dir = filepath.Dir(dir)
	}
	if parent != "" {
		started := dir
		if m, dir = holds(all, filepath.Clean(parent)); dir == "" {
			return fmt.Errorf("--cgroup-parent %s is no group of a cgroup v2 hierarchy that is mounted here: start the unit that it is of, or name its directory", parent)
		}
		if dir == started && systemd {
			return fmt.Errorf("--cgroup-parent %s is the group in which the agent is started, which systemd could not do again while sessions live in it: name one of another unit", parent)
		}
	}
	if dir == "" {
		return errors.New("no cgroup v2 hierarchy is mounted in which the agent's own group is seen: mount /sys/fs/cgroup, writable")
	}
	if err := writable(dir); err != nil {
		return err
	}
	root := dir == m.point && m.root == "/"
	if parent == "" && !root && !delegated(dir) {
		return fmt.Errorf("the agent's group %s is not delegated to it: set Delegate=yes in its systemd unit", dir)
	}
	h.unified, h.mount = dir, m
	if err := handDown(dir, parent != "" || root && !systemd); err != nil {
		return err
	}
	h.memory = true
	return nil
}

func (h *Host) openLegacy(path string, all []mount) error {
	_, dir := locate(all, path, func(m mount) bool { return m.kind == "cgroup" && slices.Contains(m.options, memory) })
	if dir == "" {
		return errors.New("the memory hierarchy of cgroup v1 is not mounted where the agent's own group is seen")
	}
	if err := writable(dir); err != nil {
		return err
	}
	h.legacy = dir
	return nil
}

// writable says what keeps us from making groups below a group and moving processes.
func writable(dir string) error {
	for _, path := range []string{dir, filepath.Join(dir, procsFile)} {
		if err := unix.Access(path, unix.W_OK); err != nil {
			return fmt.Errorf("the agent may not write %s: %w; give it a writable cgroup file system (in its systemd unit Delegate=yes, in a pod a mount of it that is not read-only)", path, err)
		}
	}
	return nil
}

// delegated reports whether somebody has left a group of cgroup v2 to us, which systemd marks.
// That it is ours says nothing: to a user belongs every group of the session manager.
func delegated(dir string) bool {
	return slices.ContainsFunc([]string{"user.delegate", "trusted.delegate"}, func(name string) bool {
		return attribute(dir, name, make([]byte, 8)) == "1"
	})
}

func attribute(path, name string, value []byte) string {
	n, err := unix.Getxattr(path, name, value)
	if err != nil {
		return ""
	}
	return string(value[:n])
}

// handDown says what keeps the groups below dir from having the memory controller, which is
// switched on for them if ours says that this is ours to do. The kernel takes that of a group
// without processes only, but for the root.
func handDown(dir string, ours bool) error {
	control := filepath.Join(dir, controlFile)
	if on, err := os.ReadFile(control); err == nil && slices.Contains(strings.Fields(string(on)), memory) {
		return nil
	}
	offered, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("the controllers of the group %s cannot be told: %w", dir, err)
	}
	if !slices.Contains(strings.Fields(string(offered)), memory) {
		return fmt.Errorf("the group %s has no memory controller: set Delegate=yes in its systemd unit, or have the group above it hand the controller down", dir)
	}
	if !ours {
		return fmt.Errorf("the agent's group %s hands no memory controller down, and is left so, because systemd could not start the agent again while sessions live in it: give sessions a delegated group of their own, and name it with --cgroup-parent", dir)
	}
	if _, err := os.Stat(filepath.Join(dir, "cgroup.type")); err == nil { // which the root does not have
		if err := empty(dir, filepath.Join(dir, Leaf)); err != nil {
			return fmt.Errorf("the processes of the group %s cannot be moved into one below it: %w", dir, err)
		}
	}
	if err := write(control, "+"+memory); err != nil {
		return fmt.Errorf("the memory controller cannot be switched on for the groups of sessions: %w", err)
	}
	return nil
}

// empty moves every process of a group into another one, until none is left: each may have
// started another one meanwhile.
func empty(dir, leaf string) error {
	if err := mkdir(leaf); err != nil {
		return err
	}
	const rounds = 10
	for range rounds {
		pids, err := processes(dir)
		if err != nil || len(pids) == 0 {
			return err
		}
		for _, pid := range pids {
			if err := write(filepath.Join(leaf, procsFile), strconv.Itoa(pid)); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
	}
	return nil
}

// tidyAfter is how old an empty group must be that nobody is known to use: one that was just
// made waits for its harness.
const tidyAfter = time.Minute

// Load is Load.
func (*Host) Load(dir string) Group { return Load(dir) }

// Tidy removes the empty groups of sessions that are not known, which a crash left.
func (h *Host) Tidy(known func(uid string) bool) error {
	var all error
	for _, dir := range []string{h.unified, h.legacy} {
		if dir == "" {
			continue
		}
		found, err := os.ReadDir(dir)
		all = errors.Join(all, err)
		for _, e := range found {
			uid, ours := strings.CutPrefix(e.Name(), prefix)
			if !ours {
				continue
			}
			info, err := e.Info()
			if err != nil || time.Since(info.ModTime()) < tidyAfter || known(uid) {
				continue
			}
			if err := remove(filepath.Join(dir, e.Name())); err != nil && !busy(err) {
				all = errors.Join(all, err)
			}
		}
	}
	return all
}

// mount is one line of /proc/self/mountinfo.
type mount struct {
	root, point, kind string
	options           []string
}

func parseMounts(text string) (out []mount) {
	for line := range strings.Lines(text) {
		before, after, ok := strings.Cut(line, " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 5 || len(g) < 3 || g[0] != "cgroup" && g[0] != "cgroup2" {
			continue
		}
		unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
		out = append(out, mount{root: unescape.Replace(f[3]), point: unescape.Replace(f[4]), kind: g[0], options: strings.Split(g[2], ",")})
	}
	return out
}

// parseOwn finds the path of a process in the hierarchy of a controller of cgroup v1, or of
// cgroup v2 with "", in the text of /proc/PID/cgroup.
func parseOwn(text, controller string) string {
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) == 3 && (controller == "" && f[0] == "0" && f[1] == "" || controller != "" && slices.Contains(strings.Split(f[1], ","), controller)) {
			return f[2]
		}
	}
	return ""
}

// locate is the directory of a group in the first mount that shows it.
func locate(all []mount, path string, is func(mount) bool) (mount, string) {
	for _, m := range all {
		if !is(m) {
			continue
		}
		if dir := m.dir(path); dir != "" {
			return m, dir
		}
	}
	return mount{}, ""
}

// holds is the mount of cgroup v2 in which a directory is, the innermost one.
func holds(all []mount, dir string) (in mount, found string) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return mount{}, ""
	}
	for _, m := range all {
		if m.kind == "cgroup2" && within(dir, m.point) && len(m.point) >= len(in.point) {
			in, found = m, dir
		}
	}
	return in, found
}

// dir is where a mount shows the group of a path, "" where it does not.
func (m mount) dir(path string) string {
	rel, err := filepath.Rel(m.root, path)
	if err != nil || path == "" || strings.HasPrefix(path, "/..") || rel == ".." || strings.HasPrefix(rel, "../") {
		return ""
	}
	dir := filepath.Join(m.point, rel)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}

func write(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func mkdir(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// processes are the pids in one group.
func processes(dir string) (pids []int, err error) {
	text, err := os.ReadFile(filepath.Join(dir, procsFile))
	for line := range strings.Lines(string(text)) {
		if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, err
}
