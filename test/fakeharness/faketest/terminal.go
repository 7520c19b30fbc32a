package faketest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Terminal is a pseudo terminal with a program on it, from the side of the person
// who looks at it.
type Terminal struct {
	// Cmd is the program; Done is closed when it has ended and its output was read.
	Cmd  *exec.Cmd
	Done chan struct{}

	file *os.File
	read chan struct{}

	mu     sync.Mutex
	bytes  []byte
	screen *Screen
}

// outputWait bounds the wait for the end of the output of a program that has ended.
const outputWait = time.Second

// Start starts the command as the leader of a new session on a new terminal of this
// size. A signal key does not throw the terminal's output away (NOFLSH), as it could
// with what the program prints in answer.
func Start(cmd *exec.Cmd, columns, rows int) (*Terminal, error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, fmt.Errorf("opening a terminal: %w", err)
	}
	defer func() { _ = slave.Close() }()
	defer func() { _ = master.Close() }()
	fd, err := prepare(master, slave, columns, rows)
	if err != nil {
		return nil, fmt.Errorf("preparing a terminal: %w", err)
	}
	file := os.NewFile(uintptr(fd), "terminal")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting on a terminal: %w", err), file.Close())
	}
	t := &Terminal{Cmd: cmd, Done: make(chan struct{}), file: file, read: make(chan struct{}), screen: NewScreen(columns, rows)}
	go t.copy()
	go func() {
		defer close(t.Done)
		_ = cmd.Wait()
		select { // the last of its output, unless somebody else holds the terminal
		case <-t.read:
		case <-time.After(outputWait):
		}
	}()
	return t, nil
}

// prepare sets the terminal up and returns a descriptor of its master that can be
// closed while it is read, which hangs the terminal up.
func prepare(master, slave *os.File, columns, rows int) (int, error) {
	modes, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err != nil {
		return 0, err
	}
	modes.Lflag |= unix.NOFLSH
	if err := unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, modes); err != nil {
		return 0, err
	}
	if err := setSize(master.Fd(), columns, rows); err != nil {
		return 0, err
	}
	fd, err := unix.FcntlInt(master.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	return fd, unix.SetNonblock(fd, true)
}

func setSize(fd uintptr, columns, rows int) error {
	return unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(columns)})
}

// copy collects what the program writes until the terminal is gone.
func (t *Terminal) copy() {
	defer close(t.read)
	buf := make([]byte, 64<<10)
	for {
		n, err := t.file.Read(buf)
		t.mu.Lock()
		t.bytes = append(t.bytes, buf[:n]...)
		t.screen.Write(buf[:n])
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Type writes bytes as if they were typed.
func (t *Terminal) Type(text string) error {
	_, err := t.file.WriteString(text)
	return err
}

// Paste writes a text as a terminal pastes it: in a frame, line ends as carriage
// returns.
func (t *Terminal) Paste(text string) error {
	return t.Type("\x1b[200~" + strings.ReplaceAll(text, "\n", "\r") + "\x1b[201~")
}

// Resize changes the size of the terminal.
func (t *Terminal) Resize(columns, rows int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.screen.Resize(columns, rows)
	conn, err := t.file.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = conn.Control(func(fd uintptr) { set = setSize(fd, columns, rows) })
	return errors.Join(err, set)
}

// Output is everything that the program wrote.
func (t *Terminal) Output() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.bytes)
}

// Screen is what a person sees now, one line a row, blank ends left out.
func (t *Terminal) Screen() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.screen.String()
}

// HangUp takes the terminal away, as closing its window does.
func (t *Terminal) HangUp() {
	_ = t.file.Close()
	<-t.read
}

// Close kills the program if it still runs and waits for its end.
func (t *Terminal) Close() {
	select {
	case <-t.Done:
	default:
		_ = t.Cmd.Process.Kill()
	}
	<-t.Done
	t.HangUp()
}
