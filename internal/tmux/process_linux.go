package tmux

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// serverComm is the name that a tmux server gives its process.
	serverComm = "tmux: server"
	// clockTicks is the unit of times in /proc, per second: the same on every Linux.
	clockTicks = 100
)

// process is a held process: its pidfd stays that of the same process whatever
// happens to the number.
type process struct {
	pid int
	fd  int
}

// openProcess holds a process. It refuses pids that are never a single process of
// ours. The error of a process that does not exist is syscall.ESRCH.
func openProcess(pid int) (*process, error) {
	if pid <= 1 {
		return nil, fmt.Errorf("tmux: pid %d is never signalled", pid)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, err
	}
	return &process{pid: pid, fd: fd}, nil
}

// signal sends a signal; a process that has ended gives syscall.ESRCH.
func (p *process) signal(sig syscall.Signal) error {
	return unix.PidfdSendSignal(p.fd, sig, nil, 0)
}

// ended reports whether the process has ended, waiting at most d. A zombie has ended.
func (p *process) ended(d time.Duration) bool {
	deadline := time.Now().Add(d)
	for {
		left := max(time.Until(deadline), 0)
		fds := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(left.Milliseconds()))
		if err == nil {
			return n == 1
		}
		if !errors.Is(err, unix.EINTR) {
			return false
		}
	}
}

func (p *process) close() { _ = unix.Close(p.fd) }

// procStat reads the state letter and the start time, in clock ticks since boot, of a
// process. Together with the pid the start time identifies it. The name in front of
// these fields may hold spaces and ")".
func procStat(pid int) (state byte, start uint64, err error) {
	data, err := os.ReadFile(procPath(pid, "stat"))
	if err != nil {
		return 0, 0, err
	}
	i := bytes.LastIndexByte(data, ')')
	fields := strings.Fields(string(data[i+1:]))
	if i < 0 || len(fields) < 20 {
		return 0, 0, fmt.Errorf("tmux: %s cannot be read", procPath(pid, "stat"))
	}
	start, err = strconv.ParseUint(fields[19], 10, 64)
	return fields[0][0], start, err
}

func procPath(pid int, name string) string {
	return "/proc/" + strconv.Itoa(pid) + "/" + name
}

// processAlive reports whether the process with this start time still runs.
func processAlive(pid int, start uint64) bool {
	state, now, err := procStat(pid)
	return err == nil && now == start && state != 'Z' && state != 'X'
}

// processAge is how long ago a process started.
func processAge(start uint64) time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0
	}
	return time.Duration(now.Nano()) - time.Duration(start)*(time.Second/clockTicks)
}

// IsServer reports whether a process calls itself a tmux server.
func IsServer(pid int) bool {
	comm, err := os.ReadFile(procPath(pid, "comm"))
	return err == nil && strings.TrimSuffix(string(comm), "\n") == serverComm
}

// resident is what of the memory of a process is in use, in bytes.
func resident(pid int) (int64, error) {
	text, err := os.ReadFile(procPath(pid, "statm"))
	if err != nil {
		return 0, err
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		return 0, fmt.Errorf("tmux: %s cannot be read: %w", procPath(pid, "statm"), err)
	}
	return pages * int64(os.Getpagesize()), nil
}

// serverScore is how much less of all memory the server is taken to use than it does, in
// thousandths, when the kernel looks for what to end because memory is short.
const serverScore = -500

// spare makes the kernel end the server later than others when memory is short (T33). To be
// refused, which all are but root, is no reason not to go on: sessions make themselves go
// first. What runs in it later inherits it, and the sessions set their own.
func spare(pid int) {
	file := procPath(pid, "oom_score_adj")
	text, err := os.ReadFile(file)
	if err != nil {
		return
	}
	if is, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && is > serverScore {
		_ = os.WriteFile(file, []byte(strconv.Itoa(serverScore)), 0)
	}
}

// processExe is the program of a process, "" when it cannot be seen.
func processExe(pid int) string {
	exe, err := os.Readlink(procPath(pid, "exe"))
	if err != nil {
		return ""
	}
	return exe
}

// processDir is where a child of the server works, and whether that is one of the two
// places where a server goes that cannot enter the directory it was told: its home or /.
// A child that has not yet executed its program says nothing yet.
func processDir(pid, server int) (dir os.FileInfo, fallback, ready bool) {
	exe := processExe(pid)
	if exe == "" || exe == processExe(server) {
		return nil, false, false
	}
	dir, err := os.Stat(procPath(pid, "cwd"))
	if err != nil {
		return nil, false, false
	}
	root := procPath(pid, "root") + "/"
	for _, place := range []string{root, root + processEnv(server, "HOME")} {
		if info, err := os.Stat(place); err == nil && os.SameFile(info, dir) {
			return dir, true, true
		}
	}
	return dir, false, true
}

// processEnv is a variable that a process was started with, "" when it cannot be read.
func processEnv(pid int, name string) string {
	data, err := os.ReadFile(procPath(pid, "environ"))
	if err != nil {
		return ""
	}
	return lookupEnv(strings.Split(string(data), "\x00"), name)
}

// listProcesses are the pids that exist, our own and 1 left out.
func listProcesses() ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil && pid > 1 && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// ownerOf is the effective user of a process.
func ownerOf(pid int) (uid int, err error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/"+strconv.Itoa(pid), &st); err != nil {
		return 0, err
	}
	return int(st.Uid), nil
}

// findServer looks for the process of the server of a socket: one of our user that
// calls itself a tmux server, was started with -S and this path, and sees the same
// directory under it (in another mount namespace the path may be another place).
func findServer(socket string) (pid int, start uint64, ok bool) {
	pids, err := listProcesses()
	if err != nil {
		return 0, 0, false
	}
	dir := filepath.Dir(socket)
	ours, err := os.Stat(dir)
	if err != nil {
		return 0, 0, false
	}
	for _, pid := range pids {
		if uid, err := ownerOf(pid); err != nil || uid != os.Geteuid() || !IsServer(pid) {
			continue
		}
		state, start, err := procStat(pid)
		if err != nil || state == 'Z' || state == 'X' || !startedFor(pid, socket) {
			continue
		}
		theirs, err := os.Stat(procPath(pid, "root") + dir)
		if err == nil && os.SameFile(ours, theirs) {
			return pid, start, true
		}
	}
	return 0, 0, false
}

func startedFor(pid int, socket string) bool {
	data, err := os.ReadFile(procPath(pid, "cmdline"))
	if err != nil {
		return false
	}
	args := strings.Split(string(data), "\x00")
	for i, a := range args {
		if a == "-S"+socket || a == "-S" && i+1 < len(args) && args[i+1] == socket {
			return true
		}
	}
	return false
}

// peerPID is the pid, as we see it, of the process that listens on a socket. An error
// means that nobody listens, or that we may not connect.
func peerPID(socket string) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: socket}); err != nil {
		return 0, err
	}
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Pid), nil
}

// detached starts a process in a session of its own: neither our terminal, nor our
// process group, nor our end reach it.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// dieWithUs starts a process that the kernel ends when the starting thread ends.
func dieWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// raiseFiles raises the limit of open files of a process to want, or to its hard
// limit when that is lower, and returns the limit in force. A server uses about one file a
// pane, and one older than 3.4 that runs out of them spins and answers nobody.
func raiseFiles(pid int, want uint64) (uint64, error) {
	var lim unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &lim); err != nil {
		return 0, err
	}
	if lim.Cur >= want {
		return lim.Cur, nil
	}
	lim.Cur = min(want, lim.Max)
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &lim, nil); err != nil {
		return 0, err
	}
	return lim.Cur, nil
}

// signalName is the name of a signal as kill(1) takes it, "TERM".
func signalName(sig syscall.Signal) string {
	if n := unix.SignalName(sig); n != "" {
		return strings.TrimPrefix(n, "SIG")
	}
	return strconv.Itoa(int(sig))
}
