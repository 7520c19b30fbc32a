package main

import (
	"os"
	"path/filepath"
	"syscall"

	"github.com/theloop-dev/the-loop/internal/harness/launch"
)

// startHarness starts the harness in the session's control group, of which nothing of it is
// ever outside: on cgroup v2 it is born there; on cgroup v1, where that cannot be, and with a
// kernel that refuses it (before 5.7, or with a filter of system calls), its process enters by
// itself before it becomes the harness (runJoin). A group that cannot be entered keeps nothing
// from starting.
func startHarness(f launch.File, binary string, env []string) (pid int, err error) {
	attr := &syscall.ProcAttr{
		Env:   env,
		Files: []uintptr{0, 1, 2},
		// Without its pane process the harness must not live on: the pane would be dead
		// and a second harness could be started on the same conversation.
		Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	}
	g := f.Groups
	start := func(unified string) (int, error) {
		if g.Legacy == "" && unified == "" {
			return syscall.ForkExec(binary, f.Argv, attr)
		}
		return syscall.ForkExec("/proc/self/exe", append([]string{"loop-shim", "join", g.Refused, f.Session, binary, g.Legacy, unified}, f.Argv...), attr)
	}
	if g.Unified != "" {
		if dir, err := os.Open(g.Unified); err == nil {
			attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(dir.Fd())
			pid, err = start("")
			_ = dir.Close()
			if err == nil {
				return pid, nil
			}
			// It cannot be told whether the group or the harness was refused.
			attr.Sys.UseCgroupFD = false
		}
	}
	if pid, err = start(g.Unified); err == nil || g.Unified+g.Legacy == "" {
		return pid, err
	}
	refuse(g.Refused, err)
	return syscall.ForkExec(binary, f.Argv, attr)
}

// runJoin enters control groups and becomes the harness.
func runJoin(args []string) int {
	refused, session, binary, legacy, unified, argv := args[0], args[1], args[2], args[3], args[4], args[5:]
	for _, group := range []string{unified, legacy} {
		if group == "" {
			continue
		}
		err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte("0"), 0)
		if err != nil && (group == legacy || legacy == "") { // which bounds the memory
			refuse(refused, err)
		}
	}
	return complainExec(session, binary, syscall.Exec(binary, argv, os.Environ()))
}

// refuse leaves a note for the agent that the control group which bounds the session's memory
// could not be entered. The terminal is the harness's.
func refuse(path string, err error) {
	if path != "" {
		_ = os.WriteFile(path, []byte("the session's control group could not be entered: "+err.Error()), 0o600)
	}
}
