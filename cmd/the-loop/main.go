// Command the-loop is what a person runs: `the-loop up` brings everything up on one
// machine, `the-loop down` ends it, and the other verbs work with what runs. kubectl
// finds it as the plugin kubectl-loop.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	ctrl "sigs.k8s.io/controller-runtime"
)

var version = "dev"

func main() {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	os.Exit(execute(ctrl.SetupSignalHandler(), newRoot(streams), streams.ErrOut))
}

// execute runs a command line, tells what went wrong, and returns the exit code.
func execute(ctx context.Context, root *cobra.Command, errOut io.Writer) int {
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if _, told := errors.AsType[*quietError](err); !told {
		fmt.Fprintln(errOut, "the-loop:", err)
	}
	return exitCode(err)
}
