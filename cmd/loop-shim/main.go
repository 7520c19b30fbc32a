// Command loop-shim is the small static program that stands between tmux, a
// harness and the agent. It has two roles:
//
//	loop-shim exec FILE
//	    The process of a session's pane. It starts the harness that the launch file
//	    FILE describes, passes signals on to it, ends everything that the harness
//	    leaves behind, and ends with the harness's own exit status or signal.
//
//	loop-shim hook --journal PATH --socket PATH --poke PAYLOAD [--permissions Ask|Deny|Allow]
//	    The command that the harness runs on its events. It notes the event in the
//	    journal and pokes the agent. It always exits 0.
package main

import (
	"fmt"
	"os"
	"runtime"
)

const usage = `loop-shim is started by the agent and by harnesses, not by hand.

  loop-shim exec FILE
      run the launch described by FILE as the process of a terminal pane
  loop-shim hook --journal PATH --socket PATH --poke PAYLOAD [--permissions Ask|Deny|Allow]
      note one harness event (JSON on standard input) and tell the agent

exec ends with the status or the signal of what it ran, or with
  125  the launch itself is unusable (file, directory)
  126  the harness cannot be executed
  127  the harness was not found
hook always ends with 0.
`

// version is what --version prints; the build sets it.
var version = "dev"

// Exit statuses of exec that are not the harness's own; the numbers are those of
// shells and of env(1).
const (
	exitUnusable      = 125
	exitNotExecutable = 126
	exitNotFound      = 127
)

// The main goroutine keeps the first thread: the parent-death signal of the harness
// comes when the thread that started it ends, and the first one never does before
// the process.
func init() { runtime.LockOSThread() }

func main() { os.Exit(run(os.Args)) }

func run(args []string) int {
	role := ""
	if len(args) > 1 {
		role = args[1]
	}
	switch {
	case role == "exec" && len(args) == 3:
		return runExec(args[2])
	case role == "join" && len(args) > 7: // by exec
		return runJoin(args[2:])
	case role == "hook":
		return runHook(args[2:], os.Stdin, os.Stdout)
	case role == "--version":
		fmt.Println("loop-shim", version)
		return 0
	case role == "help" || role == "--help" || role == "-h":
		fmt.Print(usage)
		return 0
	}
	fmt.Fprint(os.Stderr, usage)
	return 2
}

// complain prints one line for the person who looks at the pane.
func complain(session, format string, args ...any) {
	who := "loop-shim"
	if session != "" {
		who += fmt.Sprintf(": session %q", session)
	}
	fmt.Fprintf(os.Stderr, "%s: %s\n", who, fmt.Sprintf(format, args...))
}
