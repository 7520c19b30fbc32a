package main

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/theloop-dev/the-loop/internal/harness/launch"
)

// startHarness starts the harness in the session's control group, of which nothing of it is
// ever outside: on cgroup v2 it is born there; on cgroup v1, where that cannot be, its
// process enters by itself before it becomes the harness (runJoin). groupErr says that it was
// not started because it would not have been in the group that it must be in.
func startHarness(f launch.File, binary string, env []string) (pid int, groupErr, err error) {
	attr := &syscall.ProcAttr{
		Env:   env,
		Files: []uintptr{0, 1, 2},
		// Without its pane process the harness must not live on: the pane would be dead
		// and a second harness could be started on the same conversation.
		Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	}
	argv, path := f.Argv, binary
	if f.Groups.Legacy != "" {
		path = "/proc/self/exe"
		argv = append([]string{"loop-shim", "join", f.Groups.Legacy, strconv.FormatBool(f.Groups.Required), f.Session, binary}, argv...)
	}
	if f.Groups.Unified == "" {
		pid, err = syscall.ForkExec(path, argv, attr)
		return pid, nil, err
	}
	dir, groupErr := os.Open(f.Groups.Unified)
	if groupErr == nil {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(dir.Fd())
		pid, err = syscall.ForkExec(path, argv, attr)
		_ = dir.Close()
		if err == nil {
			return pid, nil, nil
		}
		attr.Sys.UseCgroupFD = false
	}
	if f.Groups.Required && f.Groups.Legacy == "" {
		if groupErr != nil {
			return 0, groupErr, nil
		}
		// It cannot be told whether the group or the harness was refused.
		return 0, nil, err
	}
	pid, err = syscall.ForkExec(path, argv, attr)
	return pid, nil, err
}

// runJoin enters a control group of cgroup v1 and becomes the harness.
func runJoin(args []string) int {
	group, required, session, binary, argv := args[0], args[1] == "true", args[2], args[3], args[4:]
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte("0"), 0); err != nil && required {
		return complainGroup(session, err)
	}
	return complainExec(session, binary, syscall.Exec(binary, argv, os.Environ()))
}

// complainGroup says that the session's control group could not be entered, and returns the
// exit status for it.
func complainGroup(session string, err error) int {
	complain(session, "the harness is not started without the bound of its memory that its class asks for: entering its control group: %v. "+
		"Let the session be started again, or take resources.limits.memory out of its class", err)
	return exitUnusable
}
