package harness

import (
	"fmt"
	"strings"
)

// Verdict is what a harness says of a model or an effort.
type Verdict string

const (
	// VerdictAccepted: the harness answered with it.
	VerdictAccepted Verdict = "Accepted"
	// VerdictRefused: the harness, or the service behind it, said in its own words that it
	// does not know it or may not use it.
	VerdictRefused Verdict = "Refused"
	// VerdictUnknown: everything else. An outage, a missing login or a timeout says nothing
	// about a model.
	VerdictUnknown Verdict = "Unknown"
)

// OneShotPrompt is what a harness is asked for a Verdict. Nothing of a session is in it.
const OneShotPrompt = "Reply with the word OK."

// Answer is what a one-shot call left when it ended by itself.
type Answer struct {
	// Exit is its exit status.
	Exit int
	// Stdout and Stderr may have been cut off behind a bound.
	Stdout, Stderr []byte
}

// silent is the verdict of a call that ended without an answer: line says why, as far as
// anything does.
func (a Answer) silent(line string) (Verdict, string) {
	return VerdictUnknown, fmt.Sprintf("exit status %d without an answer: %s", a.Exit, line)
}

// firstError is the first line of what was written on standard error.
func (a Answer) firstError() string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(a.Stderr)), "\n")
	return line
}

// OneShot is implemented by an adapter whose harness can be asked, once and without a
// terminal, whether it takes a model or an effort.
type OneShot interface {
	// OneShot builds the command line of one cheap call with OneShotPrompt, the operator's
	// arguments and, after them, Model and Effort of the options. Of the other options
	// Binary and Dir are used. It refuses what Command would refuse.
	OneShot(opts LaunchOptions) (Command, error)
	// Verdict judges the answer to a call with these options, with a few words for a
	// person. It is VerdictRefused only on the harness's own word about this very model or
	// effort.
	Verdict(opts LaunchOptions, a Answer) (Verdict, string)
}
