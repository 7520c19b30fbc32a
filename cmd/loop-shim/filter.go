//go:build amd64 || arm64

package main

// runtimeHandler is the Go runtime's own signal handler, which the filter goes on
// to.
var runtimeHandler uintptr

// filterPC is the address of the filter: a signal handler that returns at once
// when the kernel (the terminal) sent the signal and else goes on to
// runtimeHandler.
var filterPC uintptr
