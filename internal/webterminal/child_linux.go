package webterminal

import "syscall"

// childAttr puts ttyd into a process group of its own, and has the kernel end it when
// we are killed.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
