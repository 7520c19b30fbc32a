package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// lockHelper names the lock that a helper process takes and holds until killed.
const lockHelper = "CONTROLPLANE_TEST_LOCK"

func TestMain(m *testing.M) {
	if path := os.Getenv(lockHelper); path != "" {
		if _, err := lock(context.Background(), path, time.Hour, func(int) {}); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("locked")
		<-time.After(time.Minute) // the test kills it much earlier
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestLockWaitsAndNamesTheHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path, time.Hour, func(int) { t.Error("waited for nobody") })
	if err != nil {
		t.Fatal(err)
	}
	heard := make(chan int, 10)
	got := make(chan error, 1)
	go func() {
		unlock, err := lock(t.Context(), path, time.Hour, func(pid int) { heard <- pid })
		if err == nil {
			unlock()
		}
		got <- err
	}()
	if pid := <-heard; pid != os.Getpid() {
		t.Errorf("the holder is said to be %d, want %d", pid, os.Getpid())
	}
	select {
	case err := <-got:
		t.Fatalf("did not wait: %v", err)
	case <-time.After(2 * lockPoll):
	}
	unlock()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestLockEndsWithTheContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path, time.Hour, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	_, err = lock(ctx, path, time.Hour, func(int) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestLockOfAKilledProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), lockHelper+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "locked\n" {
		t.Fatalf("the helper said %q, %v", line, err)
	}
	heard := 0
	unlock, err := lock(t.Context(), path, time.Hour, func(pid int) {
		heard = pid
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	_ = cmd.Wait()
	if heard != cmd.Process.Pid {
		t.Errorf("the holder is said to be %d, want %d", heard, cmd.Process.Pid)
	}
}
