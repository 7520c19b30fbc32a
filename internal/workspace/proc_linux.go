package workspace

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// procAttr gives git a session of its own, so that nothing can ask a person at our
// terminal and the whole group can be ended, and lets it die with us: a git that goes on
// would write where the next holder of the lock works.
func procAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// bootTime is when this machine started, zero when that is not known.
func bootTime() time.Time {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return time.Time{}
	}
	for line := range strings.Lines(string(data)) {
		if v, ok := strings.CutPrefix(line, "btime "); ok {
			if sec, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64); err == nil {
				return time.Unix(sec, 0)
			}
		}
	}
	return time.Time{}
}
