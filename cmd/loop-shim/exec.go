package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/theloop-dev/the-loop/internal/harness/launch"
)

// giveUpAfter is how long descendants may outlive their SIGKILL (a process in an
// uninterruptible wait, or one of another user) before the pane process ends
// without them and says so.
const giveUpAfter = 5 * time.Second

// runExec is the pane process: it runs the launch in the file at path and returns
// the exit status, or does not return when the harness was ended by a signal.
func runExec(path string) int {
	file, err := launch.Read(path)
	if err != nil {
		complain("", "%v. A launch file is used once: let the session be started again", err)
		return exitUnusable
	}
	if err := os.Remove(path); err != nil {
		complain(file.Session, "removing the launch file: %v", err)
		return exitUnusable
	}
	if err := os.Chdir(file.Dir); err != nil {
		complain(file.Session, "cannot enter the working directory: %v. Create it or correct spec.cwd", err)
		return exitUnusable
	}
	s := &supervisor{file: file}
	if status := s.start(); status != 0 {
		return status
	}
	status := s.waitForHarness()
	s.endDescendants()
	return endLike(status)
}

// supervisor keeps one harness. Everything runs on the main thread, and no other
// code of this process waits for children: a pid that was not reaped here cannot
// have been given to another process.
type supervisor struct {
	file launch.File
	mail mailbox
	// harness is the pid of the harness.
	harness int
	// termAt and killAt are when a harness that outlives its terminal is sent SIGTERM
	// and SIGKILL; zero while the terminal is there.
	termAt, killAt time.Time
}

// start starts the harness and returns 0, or says why not and returns the exit
// status for it.
func (s *supervisor) start() int {
	fail := func(what string, err error) int {
		complain(s.file.Session, "%s: %v", what, err)
		return exitUnusable
	}
	sacrifice()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fail("becoming the reaper of the session's processes", err)
	}
	var err error
	if s.mail, err = openMailbox(); err != nil {
		return fail("preparing signals", err)
	}
	env := s.file.Environ(os.Environ())
	binary, err := findBinary(s.file.Argv[0], env)
	if err != nil {
		return complainExec(s.file.Session, s.file.Argv[0], err)
	}
	if s.harness, err = startHarness(s.file, binary, env); err != nil {
		return complainExec(s.file.Session, binary, err)
	}
	return 0
}

// sacrificed is how much of all memory a session is taken to use beyond what it does, in
// thousandths, when the kernel looks for what to end because memory is short. It goes before
// the terminal server and the agent, without which all sessions would be lost (T33).
const sacrificed = 500

// sacrifice makes this process and its children end first when memory is short. What they
// are set to already counts where it is more, and to be refused is no reason not to start.
func sacrifice() {
	const file = "/proc/self/oom_score_adj"
	text, err := os.ReadFile(file)
	if err != nil {
		return
	}
	if is, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && is < sacrificed {
		_ = os.WriteFile(file, []byte(strconv.Itoa(sacrificed)), 0)
	}
}

// findBinary resolves a name without a slash on the PATH of env.
func findBinary(name string, env []string) (string, error) {
	if strings.ContainsRune(name, '/') {
		return name, nil
	}
	for _, kv := range env {
		list, ok := strings.CutPrefix(kv, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(list) {
			if !filepath.IsAbs(dir) {
				continue
			}
			if p, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return p, nil
			}
		}
	}
	return "", fmt.Errorf("not found on PATH: %w", unix.ENOENT)
}

// complainExec says why the harness cannot be executed and what to do about it, and
// returns the exit status for it.
func complainExec(session, binary string, err error) int {
	status, remedy := exitNotExecutable, "Correct the harness's binary in the session's class"
	_, statErr := os.Stat(binary)
	switch {
	case errors.Is(err, unix.ENOENT) && errors.Is(statErr, fs.ErrNotExist):
		status, remedy = exitNotFound, "Install the harness, or correct its binary in the session's class"
	case errors.Is(err, unix.ENOENT):
		remedy = "The file is there, but the interpreter or loader that it names is not: install that, or reinstall the harness"
	case errors.Is(err, unix.EACCES):
		remedy = "It is a directory, is not executable for this user, or lies on a noexec mount: chmod +x it, or correct the harness's binary in the session's class"
	case errors.Is(err, unix.ENOEXEC):
		remedy = "It is no program for this machine (another architecture, or a script without #!): reinstall the harness"
	case errors.Is(err, unix.E2BIG):
		remedy = "The harness arguments and the environment are larger than the kernel allows (128 KiB for one argument): shorten them"
	}
	complain(session, "cannot execute %q: %v. %s", binary, err, remedy)
	return status
}

// waitForHarness passes signals on until the harness has ended.
func (s *supervisor) waitForHarness() syscall.WaitStatus {
	for {
		status, ended, _ := s.reap()
		if ended {
			return status
		}
		select {
		case sig := <-s.mail.signals:
			s.pass(sig)
		case <-s.mail.children:
		case <-s.hangupDeadline():
			s.enforceHangup()
		}
	}
}

// pass gives a signal to the harness. The stop signals are for nobody: the group of
// a pane has no shell that would continue it.
func (s *supervisor) pass(sig os.Signal) {
	switch sig {
	case unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU:
		return
	case unix.SIGHUP:
		// That of the terminal goes to the session's leader alone, which is this process.
		if s.termAt.IsZero() && s.killAt.IsZero() && terminalGone() {
			s.termAt = time.Now().Add(s.file.Grace())
			s.killAt = s.termAt.Add(s.file.Grace())
		}
	}
	_ = syscall.Kill(s.harness, sig.(syscall.Signal))
}

// hangupDeadline fires when enforceHangup has something to do; nil without a
// deadline.
func (s *supervisor) hangupDeadline() <-chan time.Time {
	switch {
	case !s.termAt.IsZero():
		return time.After(time.Until(s.termAt))
	case !s.killAt.IsZero():
		return time.After(time.Until(s.killAt))
	}
	return nil
}

// enforceHangup ends a harness that ignores that its terminal is gone. Nobody can
// reach it any more, and harnesses were seen to burn a core for days in that state.
func (s *supervisor) enforceHangup() {
	now := time.Now()
	if !s.termAt.IsZero() && !now.Before(s.termAt) {
		s.termAt = time.Time{}
		_ = unix.Kill(s.harness, unix.SIGTERM)
	}
	if !s.killAt.IsZero() && !now.Before(s.killAt) {
		s.killAt = time.Time{}
		_ = unix.Kill(s.harness, unix.SIGKILL)
	}
}

// reap collects every child that has ended, orphans included. It reports the
// harness's status when that is among them, and whether no child is left.
func (s *supervisor) reap() (status syscall.WaitStatus, harnessEnded, none bool) {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return status, harnessEnded, true
		case pid == 0:
			return status, harnessEnded, false
		case pid == s.harness:
			status, harnessEnded = ws, true
		}
	}
}

// endDescendants ends every process that the harness left: SIGTERM, the grace,
// SIGKILL. Whatever they did to escape (own group, own session, double fork), they
// are descendants of this process, which is their reaper.
func (s *supervisor) endDescendants() {
	killAt := time.Now().Add(s.file.Grace())
	giveUp := killAt.Add(giveUpAfter)
	asked := map[process]bool{}
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		if _, _, none := s.reap(); none {
			return
		}
		now := time.Now()
		left := descendants(os.Getpid())
		if now.After(giveUp) {
			complain(s.file.Session, "these processes outlived SIGKILL and are left alone: %v", pids(left))
			return
		}
		for _, p := range left {
			switch {
			case !now.Before(killAt):
				p.signal(unix.SIGKILL)
			case !asked[p]:
				asked[p] = true
				p.signal(unix.SIGTERM)
				p.signal(unix.SIGCONT) // a stopped process would never see the SIGTERM
			}
		}
		wait := pause
		if now.Before(killAt) {
			wait = min(wait, killAt.Sub(now))
		}
		select {
		case <-s.mail.children:
		case <-s.mail.signals: // the harness has ended: there is nobody to give it to
		case <-time.After(wait):
		}
	}
}
