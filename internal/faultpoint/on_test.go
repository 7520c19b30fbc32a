//go:build chaos

package faultpoint

import (
	"bufio"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestFail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	t.Setenv(Env, path)
	if err := Fail(Pasted); err != nil {
		t.Fatalf("nobody answers: %v", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	asked := make(chan string, 1)
	go func() {
		for _, answer := range []string{"full\n", "fail\n", "go\n"} {
			c, err := l.Accept()
			if err != nil {
				return
			}
			line, _ := bufio.NewReader(c).ReadString('\n')
			asked <- line
			_, _ = c.Write([]byte(answer))
			_ = c.Close()
		}
	}()
	if err := Fail(Pasted); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("full: %v", err)
	}
	if line := <-asked; !strings.HasSuffix(line, " "+Pasted+"\n") {
		t.Fatalf("asked %q", line)
	}
	if err := Fail(Pasted); err == nil || errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("fail: %v", err)
	}
	<-asked
	if err := Fail(Pasted); err != nil {
		t.Fatalf("go: %v", err)
	}
}

func TestClock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	t.Setenv(Env, path)
	for _, off := range []string{"-7200", "0", "7200"} {
		if err := os.WriteFile(path+".clock", []byte(off+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		was, got := time.Now(), Clock().Now()
		want, err := time.ParseDuration(off + "s")
		if err != nil {
			t.Fatal(err)
		}
		if day := got.Round(0).Sub(was.Round(0)) - want; day < 0 || day > 10*time.Second {
			t.Errorf("off by %s: the time of day is off by %s more", off, day)
		}
		if between := got.Sub(was); between < 0 || between > 10*time.Second {
			t.Errorf("off by %s: %s between two readings", off, between)
		}
	}
}
