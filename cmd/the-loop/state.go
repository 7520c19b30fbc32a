package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/theloop-dev/the-loop/internal/durable"
	"github.com/theloop-dev/the-loop/internal/filelock"
)

// state is the one directory in which `up` keeps everything.
type state string

func (s state) lock() string       { return filepath.Join(string(s), "up.lock") }
func (s state) record() string     { return filepath.Join(string(s), "up.json") }
func (s state) cluster() string    { return filepath.Join(string(s), "control-plane") }
func (s state) agent() string      { return filepath.Join(string(s), "agent") }
func (s state) hostName() string   { return filepath.Join(string(s), "host-name") }
func (s state) requestLog() string { return filepath.Join(string(s), "requests.log") }

// upRecord is what `down` must know of the `up` before it.
type upRecord struct {
	// PID of the `up` that holds the lock.
	PID int `json:"pid"`
	// TmuxSocket and TmuxBinary of its terminal server.
	TmuxSocket string `json:"tmuxSocket"`
	TmuxBinary string `json:"tmuxBinary,omitempty"`
	// Kubeconfig of the cluster it works with.
	Kubeconfig string `json:"kubeconfig"`
}

// defaultState is $XDG_STATE_HOME/the-loop, or ~/.local/state/the-loop.
func defaultState() string {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "the-loop")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".local", "state", "the-loop")
}

// openState makes the directory and checks that it can be used.
func openState(dir string) (state, error) {
	if dir == "" {
		return "", errors.New("there is no home directory: name a directory with --state-dir")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return "", fmt.Errorf("the state directory cannot be made: %w; choose another with --state-dir", err)
	}
	return state(abs), nil
}

// take locks the state for this process. It refuses a state that another `up` uses, naming
// that one.
func (s state) take(ctx context.Context) (*filelock.Lock, error) {
	lock, err := filelock.Own(ctx, s.lock())
	if held := (*filelock.HeldError)(nil); errors.As(err, &held) {
		r, _ := s.read()
		return nil, fmt.Errorf("another the-loop up (pid %d) runs on the state directory %s: use that one (export KUBECONFIG=%s), stop it with Ctrl-C or the-loop down, or choose another with --state-dir",
			cmp.Or(held.PID, r.PID), s, r.Kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("the state directory cannot be locked: %w; choose another with --state-dir", err)
	}
	return lock, nil
}

func (s state) read() (upRecord, error) {
	var r upRecord
	b, err := os.ReadFile(s.record())
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("%s cannot be read: %w", s.record(), err)
	}
	return r, nil
}

func (s state) write(r upRecord) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := durable.Write(s.record(), append(b, '\n')); err != nil {
		return fmt.Errorf("the state directory cannot be written: %w", err)
	}
	return nil
}
