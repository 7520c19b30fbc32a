//go:build !linux

package main

import "syscall"

// childAttr puts a child into its own process group, so that it and its own
// children can be signalled together.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
