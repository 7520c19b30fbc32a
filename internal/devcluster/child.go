package devcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// program is what to run.
type program struct {
	name string // as in logs, records and errors
	path string
	args []string
	dir  string // working directory
}

// child is one running program. It belongs to this process: it is in a process
// group of its own, so that a terminal's Ctrl-C does not reach it, and the
// kernel kills it when this process ends.
type child struct {
	program
	dirs    layout
	process *os.Process
	done    chan struct{} // closed when it has ended and been reaped
	state   *os.ProcessState
	asked   chan struct{} // closed by stop before the first signal
}

// startChild starts p, with its output in the directory's logs, and records it.
func startChild(d layout, p program) (*child, error) {
	c := &child{program: p, dirs: d, done: make(chan struct{}), asked: make(chan struct{})}
	started := make(chan error)
	go c.run(started)
	if err := <-started; err != nil {
		<-c.done
		return nil, err
	}
	return c, nil
}

// run starts the program and waits for its end. The kernel ties "kill it when
// the parent ends" to the thread that forked, so that thread is kept for as long.
func (c *child) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(c.done)
	log, err := openLog(c.dirs.log(c.name))
	if err != nil {
		started <- c.dirs.explain(err)
		return
	}
	cmd := exec.Command(c.path, c.args...)
	cmd.Dir = c.dir
	cmd.Env = childEnv(os.Environ())
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = childAttr()
	err = cmd.Start()
	_ = log.Close() // the child has its own
	if err != nil {
		started <- fmt.Errorf("cannot start %s: %w: is %s a program for this machine?", c.name, err, c.path)
		return
	}
	c.process = cmd.Process
	// Before Wait: until then the pid is the child's, however short it lives.
	err = writeRecord(c.dirs, c.name, cmd.Process.Pid)
	if err != nil {
		c.kill()
	}
	started <- err
	_ = cmd.Wait() // its verdict is in the state
	c.state = cmd.ProcessState
	removeRecord(c.dirs, c.name, cmd.Process.Pid)
}

// childEnv keeps of the environment what a server needs. Variables such as
// ETCD_NAME would act as flags, and a person's tokens are none of its business.
func childEnv(environ []string) []string {
	keep := []string{"PATH", "HOME", "TMPDIR", "TZ", "LANG", "GOMAXPROCS", "GOMEMLIMIT", "GOGC", "GODEBUG", "SSL_CERT_FILE", "SSL_CERT_DIR"}
	var out []string
	for _, kv := range environ {
		if name, _, ok := strings.Cut(kv, "="); ok && slices.Contains(keep, name) {
			out = append(out, kv)
		}
	}
	return out
}

// stop asks the child to end and kills it when it has not by the deadline or
// the end of ctx. It returns when the child is gone.
func (c *child) stop(ctx context.Context, deadline time.Time) error {
	select {
	case <-c.asked:
	default:
		close(c.asked)
	}
	grace := time.NewTimer(time.Until(deadline))
	defer grace.Stop()
	_ = c.process.Signal(syscall.SIGTERM) // it may have ended: then done says so
	select {
	case <-c.done:
		return nil
	case <-grace.C:
	case <-ctx.Done():
	}
	c.kill()
	last := time.NewTimer(killWait)
	defer last.Stop()
	select {
	case <-c.done:
		return nil
	case <-last.C:
		return fmt.Errorf("%s (pid %d) does not end even when killed: it hangs in the kernel, most often on a dead disk or network file system",
			c.name, c.process.Pid)
	}
}

// killWait is how long the kernel gets to carry out a SIGKILL.
const killWait = 2 * time.Second

func (c *child) kill() { _ = c.process.Kill() }

// ended says whether the child is gone.
func (c *child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// death describes, once done is closed, an end that nobody asked for.
func (c *child) death() error {
	return fmt.Errorf("%s (pid %d) ended by itself: %s; the last lines of %s:\n%s",
		c.name, c.process.Pid, c.state, c.dirs.log(c.name), logTail(c.dirs.log(c.name)))
}

// addressTaken says whether the log of an ended child blames its port.
func (c *child) addressTaken() bool {
	return slices.ContainsFunc(lastLines(c.dirs.log(c.name)), func(line string) bool {
		return strings.Contains(line, "address already in use")
	})
}

// errDied marks errors about a child that ended during a start.
var errDied = errors.New("the control plane did not start")
