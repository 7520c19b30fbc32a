//go:build linux

package tmux

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
)

// terminal is a person's terminal with one command line running in it.
type terminal struct {
	cmd  *exec.Cmd
	ptm  *os.File
	done chan struct{}

	mu     sync.Mutex
	output []byte
}

// typeLine runs a line as a person would who types it into a shell. The line is ended
// with the spec at the latest.
func typeLine(line string) *terminal {
	GinkgoHelper()
	ptm, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	Expect(err).NotTo(HaveOccurred())
	fd := int(ptm.Fd())
	Expect(unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)).To(Succeed())
	n, err := unix.IoctlGetUint32(fd, unix.TIOCGPTN)
	Expect(err).NotTo(HaveOccurred())
	Expect(unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80})).To(Succeed())
	pts, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	Expect(err).NotTo(HaveOccurred())
	t := &terminal{cmd: exec.Command("/bin/sh", "-c", line), ptm: ptm, done: make(chan struct{})}
	t.cmd.Env = append(filterEnv(os.Environ(), []string{"PATH", "HOME"}), "TERM=xterm", "LC_ALL=C.UTF-8")
	t.cmd.Stdin, t.cmd.Stdout, t.cmd.Stderr = pts, pts, pts
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	Expect(t.cmd.Start()).To(Succeed())
	Expect(pts.Close()).To(Succeed())
	go func() {
		defer close(t.done)
		buf := make([]byte, 4096)
		for {
			n, err := ptm.Read(buf)
			t.mu.Lock()
			t.output = append(t.output, buf[:n]...)
			t.mu.Unlock()
			if err != nil {
				return // EIO when the last process has left the terminal
			}
		}
	}()
	DeferCleanup(t.close)
	return t
}

// shown is everything that the terminal was given.
func (t *terminal) shown() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.output)
}

// types sends keys.
func (t *terminal) types(keys string) {
	_, err := io.WriteString(t.ptm, keys)
	Expect(err).NotTo(HaveOccurred())
}

// wait waits for the command's own end.
func (t *terminal) wait() error { return t.cmd.Wait() }

func (t *terminal) close() {
	if t.cmd.ProcessState == nil {
		_ = t.cmd.Process.Kill()
		_ = t.cmd.Wait()
	}
	Eventually(t.done).Should(BeClosed())
	_ = t.ptm.Close()
}
