// Command the-loop is what a person runs: `the-loop up` brings everything up on one
// machine, `the-loop down` ends it.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"
)

var version = "dev"

func main() {
	root := &cobra.Command{
		Use: "the-loop", Short: "Coding agents as real terminal sessions, kept as Kubernetes objects", Version: version,
		SilenceUsage: true, SilenceErrors: true,
	}
	root.AddCommand(upCommand(), downCommand())
	if err := root.ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "the-loop:", err)
		os.Exit(exitCode(err))
	}
}

// Exit codes.
const (
	exitFailed  = 1
	exitRefused = 2 // what was given cannot be used, and nothing was done
)

// exitError is an error with an exit code of its own.
type exitError struct {
	error
	code int
}

func (e *exitError) Unwrap() error { return e.error }

func exitCode(err error) int {
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	return exitFailed
}
