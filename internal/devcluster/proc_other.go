//go:build !linux

package devcluster

import (
	"errors"
	"runtime"
	"syscall"
)

// supported says whether this package can run here.
func supported() error {
	return errors.New("the embedded control plane needs Linux and this is " + runtime.GOOS +
		": use an existing cluster with --kubeconfig")
}

func childAttr() *syscall.SysProcAttr { return nil }

func inspect(int) (record, state, error) { return record{}, stateGone, supported() }

func firstOutgoingPort() int { return 0 }

func portHolder(int) string { return "another process" }
