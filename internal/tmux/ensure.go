package tmux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// serverFiles is the limit of open files that a server gets where the hard limit
	// allows it: about one a pane.
	serverFiles = 65536
	// eventChannel is what the hooks signal and Events waits for.
	eventChannel = "loop-ev"
)

// Ensure makes sure that our server runs and is set up as we need it, and returns
// its epoch. It may be called at any time and by any number of processes at once.
//
// The socket's directory is created with mode 0700; one that others could enter or that
// somebody else owns is refused. When authoritatively no server listens, one is started in
// a session of its own, with working directory / and a small environment (see
// Config.PassEnv), without any configuration file; it outlives this process. A server
// that runs is adopted and not restarted. Then every option that we depend on is set
// and read back. Without an authoritative answer nothing is started: the error is an
// *UnknownError. A server older than 3.2 or that this client cannot talk to is an
// error that says what to do.
func (s *Server) Ensure(ctx context.Context) (Epoch, error) {
	s.starting.Lock()
	defer s.starting.Unlock()
	if err := ensureDir(filepath.Dir(s.socket)); err != nil {
		return Epoch{}, err
	}
	_, v, err := s.identify(ctx, "ensure")
	if errors.Is(err, ErrAbsent) {
		v, err = s.start(ctx)
	}
	if err != nil {
		return Epoch{}, err
	}
	if err := checkVersion("server", v); err != nil {
		return Epoch{}, err
	}
	epoch, err := s.pin(ctx)
	if err == nil {
		if IsServer(epoch.PID) {
			spare(epoch.PID)
		}
		s.dropBuffers(ctx, bufferAge)
	}
	return epoch, err
}

// Drift names the options that the last Ensure found changed on a running server and
// set back, as "destroy-unattached=on" (T34).
func (s *Server) Drift() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.drift...)
}

// identify asks the server who it is.
func (s *Server) identify(ctx context.Context, op string) (Epoch, version, error) {
	return s.identifyBy(ctx, op, s.ask)
}

// identifyBy is identify with or without a look for a lost socket.
func (s *Server) identifyBy(ctx context.Context, op string, ask func(context.Context, string, ...command) (answer, error)) (Epoch, version, error) {
	a, err := ask(ctx, op, sentinel(endMark))
	if err != nil {
		return Epoch{}, version{}, err
	}
	epoch, v, ok := parseSentinel(endMark, strings.TrimSuffix(a.stdout, "\n"))
	if !ok {
		return Epoch{}, version{}, s.failure(op, a)
	}
	s.observe(epoch, v)
	return epoch, v, nil
}

// ensureDir makes the socket's directory, or checks it: who can enter it can type into
// every session (a server before 3.3 asks nobody who he is).
func ensureDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("tmux: the socket directory cannot be made: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("tmux: the socket directory cannot be read: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("tmux: %s must be a directory, not a link or a file: remove it or choose another socket", dir)
	case ok && int(st.Uid) != os.Geteuid():
		return fmt.Errorf("tmux: the socket directory %s belongs to user %d, but we are user %d: choose another socket", dir, st.Uid, os.Geteuid())
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("tmux: the socket directory %s has the unsafe permissions %04o: chmod 700 it or choose another socket", dir, info.Mode().Perm())
	}
	return nil
}

// start starts a server and waits until one answers, ours or that of another process
// that was quicker: tmux itself locks the start, and who comes second ends.
func (s *Server) start(ctx context.Context) (version, error) {
	cmd := exec.Command(s.binary, "-u", "-D", "-S", s.socket, "-f", "/dev/null")
	cmd.Dir = "/"
	cmd.Env = s.serverEnv
	cmd.SysProcAttr = detached()
	if err := cmd.Start(); err != nil {
		return version{}, fmt.Errorf("tmux: the server cannot be started: %w", err)
	}
	exited := make(chan struct{})
	go func() { // reaps the server if it ends before us
		defer close(exited)
		_ = cmd.Wait()
	}()
	if files, err := raiseFiles(cmd.Process.Pid, serverFiles); err == nil && files < serverFiles {
		s.warn(fmt.Sprintf("the hard limit of open files is %d: the tmux server needs about one a session, and %d is recommended", files, serverFiles))
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for wait := 2 * time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		_, v, err := s.identifyBy(ctx, "start", s.run)
		if err == nil {
			return v, nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
			continue
		case <-ctx.Done():
		}
		timer.Stop()
		select {
		case <-exited:
			err = fmt.Errorf("the server that was started ended at once (%s): %w", cmd.ProcessState, err)
		default:
		}
		return version{}, fmt.Errorf("tmux: no server came up on %s: %w", s.socket, err)
	}
}

// Shutdown ends the server of this epoch, and with it every session, and waits until its
// process is gone. A server that is gone already is no error; one of another epoch is
// left alone: ErrRefused.
func (s *Server) Shutdown(ctx context.Context, epoch Epoch) error {
	if epoch.IsZero() {
		return errors.New("tmux shutdown: the epoch is zero, so it says no server")
	}
	const op = "shutdown"
	before := s.seenServer()
	cond := equal([]string{"#{pid}", "#{start_time}"}, epoch.fields())
	a, err := s.ask(ctx, op, command{"if-shell", "-F", cond,
		"display-message -p " + doneMark + " ; kill-server",
		"display-message -p '" + refusedMark + "|#{pid}|#{start_time}'"})
	if err != nil {
		return err
	}
	if rest, ok := strings.CutPrefix(a.stdout, refusedMark+"|"); ok {
		return fmt.Errorf("tmux shutdown of %s: %w: the server is %s", epoch, ErrRefused, strings.TrimSpace(rest))
	}
	// The connection may break before the answer: only the end itself is proof.
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for wait := 2 * time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		if ended, err := s.hasEnded(ctx, before, epoch); ended || err != nil {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return unknown(op, contextReason(ctx.Err()), "the server does not end", ctx.Err())
		}
	}
}

// hasEnded reports whether the server of an epoch has ended.
func (s *Server) hasEnded(ctx context.Context, before seenServer, epoch Epoch) (bool, error) {
	if before.visible && before.epoch == epoch && processAlive(epoch.PID, before.start) {
		return false, nil
	}
	now, _, err := s.identify(ctx, "shutdown")
	switch {
	case errors.Is(err, ErrAbsent):
		return true, nil
	case err == nil:
		return now != epoch, nil
	case ctx.Err() != nil:
		return false, err
	}
	return false, nil // it is about to end, and its last client says so
}
