// Command controlplane builds the Kubernetes control plane that the tests and
// `the-loop up` run: kube-apiserver and etcd, and kubectl where there is none.
//
//	go run -C hack/controlplane .            # builds what is missing, prints the directory
//	go run -C hack/controlplane . -print-dir # prints the directory, builds nothing
//
// The versions are those of this module's go.mod and nowhere else; the source
// comes from the Go module proxy and is checked against go.sum. To move to
// another version: `go get k8s.io/kubernetes@v1.x.y` and the matching replace
// lines, then `go mod tidy`.
//
// The binaries go to
//
//	<cache>/controlplane/k8s-<version>-etcd-<version>-<os>-<arch>-<hash>
//
// where <cache> is $THE_LOOP_CACHE or else the-loop in the user's cache
// directory, and <hash> stands for the dependencies and build flags. A directory
// there is complete: it is filled elsewhere and renamed. Of several builds at
// once, one builds and the others wait for it.
//
// The directory is the only thing written to standard output; progress and
// errors go to standard error. The exit status is 0 on success, 1 when the build
// failed, 2 on a usage error and 130 when interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// Modes of -kubectl.
const (
	kubectlAuto   = "auto"
	kubectlAlways = "always"
	kubectlNever  = "never"
)

// errUsage marks an error in the command line, for exit status 2.
var errUsage = errors.New("usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case err == nil:
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	case interrupted:
		fmt.Fprintln(os.Stderr, "controlplane: interrupted; nothing half-built is left")
		os.Exit(130)
	default:
		fmt.Fprintf(os.Stderr, "controlplane: %v\n", err)
		os.Exit(1)
	}
}

// run does the whole command with the working directory as the module.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("controlplane", flag.ContinueOnError)
	flags.SetOutput(stderr)
	kubectl := flags.String("kubectl", kubectlAuto,
		"build kubectl too: `when` is auto (only when no kubectl is on PATH), always or never")
	printDir := flags.Bool("print-dir", false, "print the directory of the binaries without building them")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return errUsage
	}
	needKubectl, err := wantKubectl(*kubectl, exec.LookPath)
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q: only flags are understood", flags.Arg(0))
	}
	if err != nil {
		fmt.Fprintf(stderr, "controlplane: %v\n", err)
		return errUsage
	}

	pins, err := readPins(".")
	if err != nil {
		return err
	}
	root, err := cacheRoot(os.Getenv, os.UserCacheDir)
	if err != nil {
		return err
	}
	cache := newCache(root, pins)
	if *printDir {
		_, err := fmt.Fprintln(stdout, cache.dir())
		return err
	}
	e := ensurer{
		cache:   cache,
		builder: &goBuilder{pins: pins, moduleDir: "."},
		out:     &progress{w: stderr},
		every:   5 * time.Second,
	}
	if err := e.ensure(ctx, pins.targets(needKubectl)); err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, cache.dir())
	return err
}

// wantKubectl says whether -kubectl=mode asks for a kubectl.
func wantKubectl(mode string, lookPath func(string) (string, error)) (bool, error) {
	switch mode {
	case kubectlAlways:
		return true, nil
	case kubectlNever:
		return false, nil
	case kubectlAuto:
		_, err := lookPath("kubectl")
		return err != nil, nil
	}
	return false, fmt.Errorf("-kubectl=%s is not understood: use auto, always or never", mode)
}
