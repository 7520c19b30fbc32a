//go:build !linux

package workspace

import (
	"syscall"
	"time"
)

// procAttr gives git a session of its own, so that nothing can ask a person at our
// terminal and the whole group can be ended.
func procAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// bootTime is not known here.
func bootTime() time.Time { return time.Time{} }
