// Command the-loop is what a person runs: `the-loop up` brings everything up on one
// machine, `the-loop down` ends it.
package main

import (
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
		os.Exit(1)
	}
}
