package tmux

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"
)

const (
	// uidVariable marks every process of a session: Spawn sets it, children inherit it.
	uidVariable = "LOOP_UID"
	// killTime bounds how long EndProcesses waits for what it has killed.
	killTime = 5 * time.Second
	// pollTime is how often a wait looks at its context.
	pollTime = 50 * time.Millisecond
)

// Sweep finds what is left of a session: every process of our user that was started with
// LOOP_UID=uid in its environment, whatever it did to its terminal, its process group or
// its parent. Ending a session ends only what still listens to its terminal (T22).
// Never listed are this process, pid 1, tmux servers (one that somebody started from
// inside a session carries its mark and holds all the others) and the pids in exclude. A
// process that cleared its environment is not found.
func Sweep(uid string, exclude ...int) ([]int, error) {
	if !uidRegexp.MatchString(uid) {
		return nil, fmt.Errorf("tmux sweep: the UID %q does not match %s", uid, uidRegexp)
	}
	pids, err := listProcesses()
	if err != nil {
		return nil, fmt.Errorf("tmux sweep: %w", err)
	}
	var found []int
	for _, pid := range pids {
		if !slices.Contains(exclude, pid) && marked(pid, uid) {
			found = append(found, pid)
		}
	}
	slices.Sort(found)
	return found, nil
}

// marked reports whether a process of our user carries the mark.
func marked(pid int, uid string) bool {
	owner, err := ownerOf(pid)
	if err != nil || owner != os.Geteuid() {
		return false
	}
	env, err := os.ReadFile(procPath(pid, "environ"))
	if err != nil || len(env) == 0 { // a zombie has none
		return false
	}
	mark := []byte(uidVariable + "=" + uid)
	for _, kv := range bytes.Split(env, []byte{0}) {
		if bytes.Equal(kv, mark) {
			return !IsServer(pid)
		}
	}
	return false
}

// EndProcesses ends what Sweep finds: SIGTERM, then after grace SIGKILL, to each by
// pidfd, again and again until nothing is left that was started meanwhile. It returns the
// pids that it signalled; none is no error. The error names what still runs, or is that
// of ctx.
func EndProcesses(ctx context.Context, uid string, grace time.Duration, exclude ...int) ([]int, error) {
	var signalled []int
	note := func(pids []int) {
		for _, pid := range pids {
			if !slices.Contains(signalled, pid) {
				signalled = append(signalled, pid)
			}
		}
	}
	sig, wait := syscall.SIGTERM, grace
	deadline := time.Now().Add(max(grace, 0) + killTime)
	for {
		pids, err := Sweep(uid, exclude...)
		if err != nil || len(pids) == 0 {
			return signalled, err
		}
		if time.Now().After(deadline) {
			return signalled, fmt.Errorf("tmux: processes of %s run on after SIGKILL: %v", uid, pids)
		}
		sent, err := endRound(ctx, uid, pids, sig, wait)
		note(sent)
		if err != nil {
			return signalled, err
		}
		sig, wait = syscall.SIGKILL, killTime
	}
}

// endRound signals each process and waits until all have ended, at most for wait.
func endRound(ctx context.Context, uid string, pids []int, sig syscall.Signal, wait time.Duration) (sent []int, err error) {
	var held []*process
	defer func() {
		for _, p := range held {
			p.close()
		}
	}()
	for _, pid := range pids {
		p, err := openProcess(pid)
		if errors.Is(err, syscall.ESRCH) {
			continue
		}
		if err != nil {
			return sent, fmt.Errorf("tmux: process %d of %s cannot be held: %w", pid, uid, err)
		}
		held = append(held, p)
		if !marked(pid, uid) { // ended since, and the number may be another's
			continue
		}
		switch err := p.signal(sig); {
		case err == nil:
			sent = append(sent, pid)
		case !errors.Is(err, syscall.ESRCH):
			return sent, fmt.Errorf("tmux: process %d of %s cannot be signalled: %w", pid, uid, err)
		}
	}
	deadline := time.Now().Add(wait)
	for _, p := range held {
		if !slices.Contains(sent, p.pid) {
			continue
		}
		for !p.ended(min(pollTime, time.Until(deadline))) && time.Now().Before(deadline) {
			if err := ctx.Err(); err != nil {
				return sent, err
			}
		}
	}
	return sent, nil
}
