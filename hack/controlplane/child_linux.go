package main

import "syscall"

// childAttr puts a child into its own process group, so that it and its own
// children can be signalled together, and interrupts it should this process be
// killed.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGINT}
}
