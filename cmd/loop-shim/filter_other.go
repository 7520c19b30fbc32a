//go:build !amd64 && !arm64

package main

// There is no filter for this architecture: SIGINT and SIGQUIT are not passed on,
// whoever sent them.
var runtimeHandler, filterPC uintptr
