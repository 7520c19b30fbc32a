package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/theloop-dev/the-loop/internal/cgroup"
	"github.com/theloop-dev/the-loop/internal/devcluster"
	"github.com/theloop-dev/the-loop/internal/filelock"
	"github.com/theloop-dev/the-loop/internal/tmux"
)

func downCommand() *cobra.Command {
	dir, grace := "", 5*time.Second
	cmd := &cobra.Command{
		Use:   "down",
		Short: "End everything that the-loop up started, sessions included",
		Long: `End everything that "the-loop up" started on a state directory: the-loop itself, its
control plane and its sessions. Harnesses are asked to end first, so that they keep
their conversations: the next "the-loop up" resumes them, but for those whose
spec.autoStart is false, which stay down. Nothing that is kept in the state directory is
removed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return down(cmd.Context(), dir, grace, cmd.OutOrStdout()) },
	}
	cmd.Flags().StringVar(&dir, "state-dir", defaultState(), "directory that keeps everything")
	cmd.Flags().DurationVar(&grace, "grace", grace, "how long a harness may take to end by itself")
	return cmd
}

func down(ctx context.Context, dir string, grace time.Duration, out io.Writer) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	st := state(abs)
	record, err := st.read()
	if errors.Is(err, os.ErrNotExist) {
		fmt.Fprintf(out, "Nothing to end: the-loop up never ran on %s.\n", st)
		return nil
	}
	if err != nil {
		return err
	}
	ended := 0
	if err := endUp(ctx, st, record, out, &ended); err != nil {
		return err
	}
	processes, err := devcluster.StopProcesses(ctx, st.cluster())
	if err != nil {
		return err
	}
	for _, p := range processes {
		fmt.Fprintf(out, "ended %s (pid %d), left by an earlier the-loop up\n", p.Name, p.PID)
		ended++
	}
	if err := endSessions(ctx, st, record, grace, out, &ended); err != nil {
		return err
	}
	if ended == 0 {
		fmt.Fprintf(out, "Nothing to end: nothing of %s runs.\n", st)
	}
	return nil
}

// endUp stops the `up` that holds the state. The lock tells whether it runs, never the
// recorded pid alone.
func endUp(ctx context.Context, st state, record upRecord, out io.Writer, ended *int) error {
	err := filelock.Free(ctx, st.lock())
	switch held := (*filelock.HeldError)(nil); {
	case err == nil:
		return nil
	case !errors.As(err, &held):
		return fmt.Errorf("whether a the-loop up runs on %s cannot be told, so nothing was ended: %w", st, err)
	case held.PID != 0 && held.PID != record.PID: // 0: of a version that did not write it there
		return fmt.Errorf("%s is held by process %d, which is not the the-loop up on record (pid %d), so nothing was ended: end it with Ctrl-C, or try again when it has started or ended",
			st, held.PID, record.PID)
	}
	fd, err := unix.PidfdOpen(record.PID, 0)
	if err != nil {
		return fmt.Errorf("the-loop up (pid %d) holds %s but cannot be signalled: %w", record.PID, st, err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.PidfdSendSignal(fd, syscall.SIGTERM, nil, 0); err != nil {
		return fmt.Errorf("stopping the-loop up (pid %d): %w", record.PID, err)
	}
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 200)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if n > 0 {
			break
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	fmt.Fprintf(out, "ended the-loop up (pid %d) and its control plane\n", record.PID)
	*ended++
	return nil
}

// endSessions ends every session that the agent of this state started. Sessions of
// others on the same terminal server are left alone, and the server with them.
func endSessions(ctx context.Context, st state, record upRecord, grace time.Duration, out io.Writer, ended *int) error {
	server, err := tmux.New(tmux.Config{Binary: record.TmuxBinary, Socket: record.TmuxSocket})
	if err != nil {
		return err
	}
	snap, err := server.Snapshot(ctx)
	if err != nil {
		return fmt.Errorf("the terminal server did not say what it has, so no session was ended: %w", err)
	}
	if snap.Epoch.IsZero() {
		return nil
	}
	left := 0
	var problems []error
	for _, s := range snap.Sessions {
		if !st.owns(s) {
			left++
			continue
		}
		if err := endSession(ctx, st, server, snap.Epoch, s, grace); err != nil {
			problems = append(problems, fmt.Errorf("ending session %s: %w", s.Name, err))
			continue
		}
		fmt.Fprintf(out, "ended session %s\n", s.Name)
		*ended++
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	if left > 0 {
		fmt.Fprintf(out, "left alone: %d sessions on %s that this the-loop did not start\n", left, server.Socket())
		return nil
	}
	if err := server.Shutdown(ctx, snap.Epoch); err != nil {
		return fmt.Errorf("ending the terminal server: %w", err)
	}
	fmt.Fprintf(out, "ended the terminal server (pid %d)\n", snap.Epoch.PID)
	*ended++
	return nil
}

// owns reports whether the agent of this state started the session: it keeps a
// directory for each.
func (s state) owns(t tmux.Session) bool {
	if t.UID == "" || filepath.Base(t.UID) != t.UID {
		return false
	}
	_, err := os.Stat(s.session(t.UID))
	return err == nil
}

// session is the directory that the agent keeps for a session.
func (s state) session(uid string) string { return filepath.Join(s.agent(), "sessions", uid) }

// endSession asks a harness to end, waits, kills what is left, and closes the
// terminal.
func endSession(ctx context.Context, st state, server *tmux.Server, epoch tmux.Epoch, s tmux.Session, grace time.Duration) error {
	target := tmux.Target{UID: s.UID, SessionID: s.ID, Epoch: epoch}
	if s.Live() {
		if _, err := server.Signal(ctx, target, syscall.SIGTERM); err != nil {
			return err
		}
		if err := awaitDead(ctx, server, s.UID, grace); err != nil {
			return err
		}
	}
	if _, err := server.KillSession(ctx, target); err != nil {
		return err
	}
	if _, err := tmux.EndProcesses(ctx, s.UID, time.Second); err != nil {
		return err
	}
	if _, err := cgroup.End(ctx, st.session(s.UID), time.Second, tmux.IsServer); !errors.Is(err, cgroup.ErrSpared) {
		return err
	}
	return nil
}

// awaitDead waits until no pane of the session lives, at most for the grace period.
func awaitDead(ctx context.Context, server *tmux.Server, uid string, grace time.Duration) error {
	deadline := time.NewTimer(grace)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		snap, err := server.Snapshot(ctx)
		if err != nil {
			return err
		}
		live := false
		for _, s := range snap.ByUID(uid) {
			live = live || s.Live()
		}
		if !live {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline.C:
			return nil
		case <-tick.C:
		}
	}
}
