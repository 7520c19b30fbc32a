package cgroup

import (
	"context"
	"encoding/json"
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

// Group is the control group of one session, as it is kept on disk. The zero Group is none.
type Group struct {
	// Unified is its directory on cgroup v2, Legacy that on the memory hierarchy of cgroup
	// v1; "" for none.
	Unified string `json:"unified,omitempty"`
	Legacy  string `json:"legacy,omitempty"`
	// Limit of its memory in bytes, 0 for none.
	Limit int64 `json:"limit,omitempty"`
	// Kills is how many kills for memory the group had counted when the launch began, or later
	// ones that the harness has outlived.
	Kills int64 `json:"kills,omitempty"`
}

// File is the name of the file in a session's own directory that says which group it has: the
// agent may run in another place when it is started again.
const File = "cgroup.json"

// Load reads the group that is on record in the directory of a session, which has its UID for
// a name; none where there is none. What runs in the session can write there: a group that is
// not the session's own, or no group at all, is none.
func Load(dir string) (g Group) {
	data, err := os.ReadFile(filepath.Join(dir, File))
	if err != nil || json.Unmarshal(data, &g) != nil {
		return Group{}
	}
	own := prefix + filepath.Base(dir)
	if !isGroup(g.Unified, own, cgroup2Magic) {
		g.Unified = ""
	}
	if !isGroup(g.Legacy, own, cgroupMagic) {
		g.Legacy = ""
	}
	if g.IsZero() {
		return Group{}
	}
	return g
}

// What statfs(2) says of the two kinds of cgroup file systems.
const (
	cgroupMagic  = 0x27e0eb
	cgroup2Magic = 0x63677270
)

// isGroup reports whether a directory of that name is one of a cgroup file system itself, not
// of one to which a symbolic link leads.
func isGroup(dir, name string, magic int64) bool {
	if !filepath.IsAbs(dir) || filepath.Base(dir) != name {
		return false
	}
	var st unix.Statfs_t
	itself, err := filepath.EvalSymlinks(dir)
	return err == nil && itself == dir && unix.Statfs(dir, &st) == nil && int64(st.Type) == magic //nolint:unconvert // of another type on other machines
}

// Save puts the group on record in a directory.
func (g Group) Save(dir string) error {
	data, err := json.Marshal(g)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, File), data, 0o600)
}

// End ends what is in the group that is on record in a directory, and removes both; see Kill.
func End(ctx context.Context, dir string, grace time.Duration, spare func(pid int) bool) ([]int, error) {
	g := Load(dir)
	if g.IsZero() {
		return nil, nil
	}
	ended, err := g.Kill(ctx, grace, spare)
	if err == nil {
		err = errors.Join(g.Remove(), os.Remove(filepath.Join(dir, File)))
	}
	return ended, err
}

// IsZero reports whether there is no group.
func (g Group) IsZero() bool { return g.Unified == "" && g.Legacy == "" }

// Make makes the group of a session, with at most limit bytes of memory, 0 for no bound, for
// a harness that a descendant of the process server will start. An error says what of that is
// not so: the group that comes with it can be used for the rest, and may be none.
func (h *Host) Make(uid string, limit int64, server int) (Group, error) {
	var g Group
	problem := h.problem
	if h.unified+h.legacy == "" {
		return g, problem
	}
	if err := h.sees(server); err != nil {
		return g, errors.Join(problem, err)
	}
	if h.unified != "" {
		if err := h.reachable(server); err != nil {
			problem = errors.Join(problem, err)
		} else {
			g.Unified = filepath.Join(h.unified, prefix+uid)
		}
	}
	if h.legacy != "" {
		g.Legacy = filepath.Join(h.legacy, prefix+uid)
	}
	for _, dir := range g.dirs() {
		// One that was left counts what was before; where something lives in it, that goes on.
		err := remove(dir)
		if err == nil || busy(err) {
			err = mkdir(dir)
		}
		if err != nil {
			return Group{}, errors.Join(err, g.Remove())
		}
	}
	g.Kills = g.Killed()
	if problem != nil || g.IsZero() {
		return g, problem
	}
	if err := g.bound(limit); err != nil {
		return g, err
	}
	g.Limit = limit
	return g, nil
}

// sees says what keeps a process from finding our directories, or its own number in them.
func (h *Host) sees(pid int) error {
	for _, kind := range []string{"mnt", "pid"} {
		ours, err1 := os.Readlink(filepath.Join(h.proc, "self", "ns", kind))
		its, err2 := os.Readlink(filepath.Join(h.proc, strconv.Itoa(pid), "ns", kind))
		if err := errors.Join(err1, err2); err != nil {
			return fmt.Errorf("the namespaces of the terminal server cannot be told: %w", err)
		}
		if ours != its {
			return fmt.Errorf("the terminal server runs in another namespace (%s) than the agent, whose control groups it does not see: start the server by the agent", its)
		}
	}
	return nil
}

// reachable says what keeps a child of a process from being started in a group of ours on
// cgroup v2: who moves it needs the group above both.
func (h *Host) reachable(pid int) error {
	text, err := os.ReadFile(filepath.Join(h.proc, strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return fmt.Errorf("the control group of the terminal server cannot be told: %w", err)
	}
	path := parseOwn(string(text), "")
	dir := h.mount.dir(path)
	above := h.unified
	for dir != "" && !within(dir, above) && above != h.mount.point {
		above = filepath.Dir(above)
	}
	if dir == "" || !within(dir, above) || unix.Access(filepath.Join(above, procsFile), unix.W_OK) != nil {
		return fmt.Errorf("the terminal server runs in the control group %s, from which nothing may be moved into one below %s: start the server by the agent, which takes its sessions along, or as root", path, h.unified)
	}
	return nil
}

func within(dir, above string) bool {
	return dir == above || above == "/" || strings.HasPrefix(dir, above+"/")
}

// bound sets what the memory of the group may be, and that its processes go together.
func (g Group) bound(limit int64) error {
	value := unlimited
	if limit > 0 {
		value = strconv.FormatInt(limit, 10)
	}
	if g.Legacy != "" {
		if limit == 0 {
			value = "-1"
		}
		err := write(filepath.Join(g.Legacy, "memory.limit_in_bytes"), value)
		// A kernel without accounting of swap has no such file.
		_ = write(filepath.Join(g.Legacy, "memory.memsw.limit_in_bytes"), value)
		return wrapped("bounding the memory of the session", err)
	}
	err := write(filepath.Join(g.Unified, "memory.max"), value)
	err = errors.Join(err, write(filepath.Join(g.Unified, "memory.oom.group"), "1"))
	if limit > 0 {
		// Beyond its bound it ends, as a container does, instead of wearing out the disk.
		_ = write(filepath.Join(g.Unified, "memory.swap.max"), "0")
	}
	return wrapped("bounding the memory of the session", err)
}

func wrapped(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Killer is who ended a process of a group because memory was short.
type Killer string

// Killers.
const (
	// KillerNone: nobody did.
	KillerNone Killer = ""
	// KillerOwn is the kernel, at the group's own limit.
	KillerOwn Killer = "the kernel's out-of-memory killer in the session's own group"
	// KillerHost is the kernel, because memory was short outside the group.
	KillerHost Killer = "the kernel's out-of-memory killer, because memory was short on the host or in a group above the session's"
	// KillerDaemon is systemd-oomd, which marks the groups that it kills.
	KillerDaemon Killer = "systemd-oomd, because of the memory pressure of the host or of a group above the session's"
)

// Killer says who ended a process of the group, beyond those of Kills, because memory was short.
func (g Group) Killer() Killer {
	if g.Unified != "" {
		if n := attribute(g.Unified, "user.oomd_kill", make([]byte, 32)); n != "" && n != "0" {
			return KillerDaemon
		}
	}
	switch {
	case g.Killed() <= g.Kills:
		return KillerNone
	case g.Legacy != "" && g.Limit > 0 && number(filepath.Join(g.Legacy, "memory.max_usage_in_bytes"), "") > g.Limit-nearLimit,
		g.Legacy == "" && number(filepath.Join(g.Unified, "memory.events"), "oom") > 0:
		return KillerOwn
	}
	return KillerHost
}

// Killed counts the processes that the kernel has ended in the group because memory was short.
func (g Group) Killed() int64 {
	if g.Legacy != "" {
		return number(filepath.Join(g.Legacy, "memory.oom_control"), "oom_kill")
	}
	events := filepath.Join(g.Unified, "memory.events")
	return number(events, "oom_kill") + number(events, "oom_group_kill")
}

// nearLimit is how near to its limit a group of cgroup v1 has been that was at it: the kernel
// counts several pages at a time, and does not count what it refused where the bounds of
// memory and of memory with swap are the same.
const nearLimit = 1 << 20

// number reads a value of a file with a key in each line, or of one with nothing else; 0
// where it is not there.
func number(path, key string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == key || len(f) == 1 && key == "" {
			n, _ := strconv.ParseInt(f[len(f)-1], 10, 64)
			return n
		}
	}
	return 0
}

const (
	// killTime bounds how long Kill waits for what it has killed.
	killTime = 5 * time.Second
	pollTime = 10 * time.Millisecond
)

var (
	// ErrSpared is why Kill has killed nothing.
	ErrSpared = errors.New("something in the group is not to be ended")
	// ErrRefused is why Kill has left something: it belongs to another user, or to another
	// pid namespace.
	ErrRefused = errors.New("processes that the agent may not signal were left in a control group; end them as root")
)

// Kill ends every process of the group, and of the groups below it, whatever it did to its
// parent or its environment, and returns which there were: each is asked first, and has the
// grace to end by itself. With one that is to be spared nothing is ended: the error is
// ErrSpared then. Where only such are left that we may not signal, it is ErrRefused.
func (g Group) Kill(ctx context.Context, grace time.Duration, spare func(pid int) bool) ([]int, error) {
	var ended []int
	killAt := time.Now().Add(grace)
	for deadline := killAt.Add(killTime); ; {
		pids := g.Processes()
		if len(pids) == 0 {
			return ended, nil
		}
		if slices.ContainsFunc(pids, spare) {
			return ended, ErrSpared
		}
		if now := time.Now(); now.Before(killAt) {
			// A stopped process would never see the SIGTERM.
			fresh := without(pids, ended)
			ended = append(ended, without(fresh, g.signal(fresh, unix.SIGTERM, unix.SIGCONT))...)
		} else {
			refused, err := g.kill(pids, now.After(deadline))
			if err != nil {
				return ended, err
			}
			ended = append(ended, without(without(pids, refused), ended)...)
		}
		select {
		case <-ctx.Done():
			return ended, ctx.Err()
		case <-time.After(pollTime):
		}
	}
}

// kill sends SIGKILL to processes, and returns those that we may not signal. An error says that
// this is no use: there are no others, or it is late.
func (g Group) kill(pids []int, late bool) (refused []int, err error) {
	atOnce := g.Unified != "" && write(filepath.Join(g.Unified, "cgroup.kill"), "1") == nil
	if !atOnce || g.Legacy != "" {
		refused = g.signal(pids, unix.SIGKILL)
	}
	switch name := filepath.Base(g.dirs()[0]); {
	case len(refused) == len(pids) && (late || !atOnce):
		return refused, fmt.Errorf("%w: %v in %s", ErrRefused, pids, name)
	case late:
		return refused, fmt.Errorf("processes of the control group %s run on after SIGKILL: %v", name, pids)
	}
	return refused, nil
}

// without are the pids that are not among others.
func without(pids, others []int) []int {
	return slices.DeleteFunc(slices.Clone(pids), func(pid int) bool { return slices.Contains(others, pid) })
}

// signal sends signals to processes, and returns those that we may not signal.
func (g Group) signal(pids []int, signals ...unix.Signal) (refused []int) {
	for _, pid := range pids {
		if pid == 0 { // as the kernel says it of one in another pid namespace
			refused = append(refused, pid)
			continue
		}
		// The process is held before it is looked for once more: a number can be given anew.
		p, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		if slices.Contains(g.Processes(), pid) {
			for _, s := range signals {
				err = errors.Join(err, p.Signal(s))
			}
			if errors.Is(err, fs.ErrPermission) {
				refused = append(refused, pid)
			}
		}
		_ = p.Release()
	}
	return refused
}

// Processes are the pids in the group and in the groups below it.
func (g Group) Processes() (pids []int) {
	for _, dir := range g.dirs() {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				more, _ := processes(path)
				pids = append(pids, more...)
			}
			return nil
		})
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

// Remove removes the group if it is empty, and leaves it where it is not.
func (g Group) Remove() error {
	var all error
	for _, dir := range g.dirs() {
		if err := remove(dir); !busy(err) {
			all = errors.Join(all, err)
		}
	}
	return all
}

func (g Group) dirs() []string {
	return slices.DeleteFunc([]string{g.Unified, g.Legacy}, func(dir string) bool { return dir == "" })
}

// busy reports that a group was not removed because something is in it.
func busy(err error) bool { return errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENOTEMPTY) }

// remove removes a group with the groups below it, as far as they are empty. One that is not
// there is removed.
func remove(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("removing the control group %s: %w", dir, err)
	}
	return nil
}
