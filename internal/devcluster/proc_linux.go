package devcluster

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// supported says whether this package can run here.
func supported() error { return nil }

// childAttr puts a child into its own process group and has the kernel kill it
// when the thread that forked it ends. SIGKILL, not SIGTERM: an API server that
// has lost etcd takes a minute to give up, and both survive it.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// inspect identifies a process and says how far it has come; without an error
// the record has pid, start time and boot, and while it runs the executable too.
// No such process is stateGone and no error.
func inspect(pid int) (record, state, error) {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(proc, "stat"))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return record{}, stateGone, nil
	}
	if err != nil {
		return record{}, stateGone, err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return record{}, stateGone, err
	}
	// The second field is the command in parentheses and may contain anything.
	end := strings.LastIndexByte(string(stat), ')')
	fields := strings.Fields(string(stat[end+1:]))
	if end < 0 || len(fields) < 20 {
		return record{}, stateGone, fmt.Errorf("%s/stat is not understood", proc)
	}
	start, err := strconv.ParseUint(fields[19], 10, 64) // field 22 of the file
	if err != nil {
		return record{}, stateGone, fmt.Errorf("%s/stat is not understood: %w", proc, err)
	}
	r := record{PID: pid, StartTime: start, BootID: strings.TrimSpace(string(boot))}
	if fields[0] == "Z" || fields[0] == "X" {
		// The first thread is a zombie; as long as there are others, files and
		// sockets are still open.
		if tasks, err := os.ReadDir(filepath.Join(proc, "task")); err == nil && len(tasks) > 1 {
			return r, stateEnding, nil
		}
		return r, stateGone, nil
	}
	exe, err := os.Readlink(filepath.Join(proc, "exe"))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return r, stateEnding, nil // it has given up its memory, and next its files
	}
	if err != nil {
		return record{}, stateGone, err
	}
	r.Exe = strings.TrimSuffix(exe, " (deleted)") // a rebuilt binary is still the same process
	return r, stateRunning, nil
}

// firstOutgoingPort is the lowest port that the kernel uses for outgoing
// connections; 0 when it does not say.
func firstOutgoingPort() int {
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b))
	if len(fields) == 0 {
		return 0
	}
	port, err := strconv.Atoi(fields[0])
	if err != nil {
		return 0
	}
	return port
}

// portHolder describes the process that uses a local TCP port, as well as this
// user may know it.
func portHolder(port int) string {
	inodes := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		collectSockets(table, port, inodes)
	}
	fds, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return "another process"
	}
	for _, fd := range fds {
		link, err := os.Readlink(fd)
		if err != nil || !inodes[strings.TrimSuffix(strings.TrimPrefix(link, "socket:["), "]")] {
			continue
		}
		pid := strings.Split(fd, "/")[2]
		comm, err := os.ReadFile(filepath.Join("/proc", pid, "comm"))
		if err != nil {
			return "process " + pid
		}
		return fmt.Sprintf("process %s (%s)", pid, printable(string(comm)))
	}
	return "another process (of another user: see `sudo ss -tlnp`)"
}

// collectSockets adds the inodes of the sockets that are bound to the port.
func collectSockets(table string, port int, inodes map[string]bool) {
	f, err := os.Open(table)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	suffix := fmt.Sprintf(":%04X", port)
	for in := bufio.NewScanner(f); in.Scan(); {
		// sl local_address rem_address st tx:rx tr:tm retrnsmt uid timeout inode
		if w := strings.Fields(in.Text()); len(w) > 9 && strings.HasSuffix(w[1], suffix) && w[9] != "0" {
			inodes[w[9]] = true
		}
	}
}
