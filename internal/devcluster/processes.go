package devcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/theloop-dev/the-loop/internal/durable"
)

// Process is a running child of a control plane.
type Process struct {
	// Name is etcd or kube-apiserver.
	Name string
	// PID is its process id. By itself it proves nothing a moment later: to end
	// the process use StopProcesses, which verifies before it signals.
	PID int
}

// record tells one process from all others that have had or will have its pid.
type record struct {
	Name      string `json:"name"`
	PID       int    `json:"pid"`
	BootID    string `json:"bootID"`    // of the kernel's run
	StartTime uint64 `json:"startTime"` // clock ticks since the boot
	Exe       string `json:"exe"`       // resolved path of the executable
}

// Processes returns the children that run of what Start on dir recorded: those
// of a live control plane, or those that a crash left. Each is verified by start
// time and executable. No directory, no records: no processes and no error.
func Processes(dir string) ([]Process, error) {
	if err := supported(); err != nil {
		return nil, err
	}
	var out []Process
	for _, name := range []string{apiserverName, etcdName} {
		rec, ok, err := readRecord(layout(dir), name)
		if err != nil {
			return nil, err
		}
		if ok && rec.alive() {
			out = append(out, Process{Name: name, PID: rec.PID})
		}
	}
	return out, nil
}

// StopProcesses ends the children that a crash of their control plane left
// running on dir, the API server first, and returns those that it ended. A
// control plane that is still run by a living process is refused with a
// *LockedError: end that process instead. Whoever does not end by itself within
// a few seconds, or by the end of ctx, is killed.
func StopProcesses(ctx context.Context, dir string) ([]Process, error) {
	if err := supported(); err != nil {
		return nil, err
	}
	d := layout(dir)
	if _, err := os.Stat(d.lock()); errors.Is(err, os.ErrNotExist) {
		return nil, nil // nothing ever ran here: do not make a lock file
	}
	lock, err := lockDir(ctx, d)
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	return endRecorded(ctx, d)
}

// endRecorded does the work of StopProcesses under the lock.
func endRecorded(ctx context.Context, d layout) ([]Process, error) {
	var ended []Process
	for _, name := range []string{apiserverName, etcdName} {
		rec, ok, err := readRecord(d, name)
		if err != nil {
			return ended, err
		}
		if !ok {
			continue
		}
		did, err := rec.end(ctx)
		if did {
			ended = append(ended, Process{Name: name, PID: rec.PID})
		}
		if err != nil {
			return ended, err
		}
		if err := os.Remove(d.record(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return ended, d.explain(err)
		}
	}
	return ended, nil
}

// leftoverGrace is how long a leftover may take to end by itself.
const leftoverGrace = 3 * time.Second

// end ends the recorded process if it runs; did says whether it was signalled.
// It returns when the process is gone, and its ports with it.
func (r record) end(ctx context.Context) (did bool, err error) {
	// The handle is taken before the check: should the process end and its pid
	// be given to another one, a signal through the handle goes nowhere.
	p, err := os.FindProcess(r.PID)
	if err != nil {
		return false, nil
	}
	defer func() { _ = p.Release() }()
	killAt := time.Now().Add(leftoverGrace)
	if r.alive() {
		if err := p.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return false, fmt.Errorf("cannot end %s (pid %d), which an earlier run left: %w: end it by hand", r.Name, r.PID, err)
		}
		did = true
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for killed := false; r.state() != stateGone; <-tick.C {
		if !killed && r.alive() && (ctx.Err() != nil || time.Now().After(killAt)) {
			killed = true
			_ = p.Kill()
		}
		if time.Now().After(killAt.Add(killWait)) {
			return did, fmt.Errorf("%s (pid %d), which an earlier run left, does not end even when killed: "+
				"it hangs in the kernel; restart the machine or use another state directory", r.Name, r.PID)
		}
	}
	return did, nil
}

// alive says whether the recorded process, and no other of that pid, runs.
func (r record) alive() bool { return r.state() == stateRunning }

// state tells what has become of the recorded process. Another process of that
// pid means that it is gone.
func (r record) state() state {
	now, s, err := inspect(r.PID)
	switch {
	case err != nil || now.BootID != r.BootID || now.StartTime != r.StartTime:
		return stateGone
	case s == stateRunning && now.Exe != r.Exe:
		return stateGone
	}
	return s
}

// state is how far a process has come.
type state int

const (
	stateGone    state = iota // it has ended and holds nothing, not even a port
	stateEnding               // it was killed and has not let go of everything yet
	stateRunning              // it runs
)

// readRecord returns the record of a child; ok is false when there is none. One
// that cannot be parsed identifies nothing and counts as none.
func readRecord(d layout, name string) (r record, ok bool, err error) {
	b, err := os.ReadFile(d.record(name))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return record{}, false, nil
	}
	if err != nil {
		return record{}, false, d.explain(err)
	}
	ok = json.Unmarshal(b, &r) == nil && r.PID > 1
	return r, ok, nil
}

// writeRecord records the child pid, unless it has ended already.
func writeRecord(d layout, name string, pid int) error {
	r, s, err := inspect(pid)
	if err != nil {
		return fmt.Errorf("cannot record process %d of %s: %w", pid, name, err)
	}
	if s != stateRunning {
		return nil
	}
	r.Name = name
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("cannot encode the record of %s: %w", name, err)
	}
	if err := durable.Write(d.record(name), append(b, '\n')); err != nil {
		return d.explain(err)
	}
	return nil
}

// removeRecord forgets the child pid once it is gone.
func removeRecord(d layout, name string, pid int) {
	if r, ok, err := readRecord(d, name); err == nil && ok && r.PID == pid {
		_ = os.Remove(d.record(name))
	}
}

// resolveExe is the path under which the kernel knows an executable.
func resolveExe(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
