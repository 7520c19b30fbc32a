package harness

import (
	"fmt"
	"strings"
)

// argRules are what operator's arguments may not do to a harness that is hosted.
type argRules struct {
	// forbidden arguments, with the reason. A short flag also covers what is attached to
	// it, as in -sID.
	forbidden map[string]string
	// takesValue are flags whose value is the next argument, as far as it matters for
	// telling a value from a flag. What stands after another flag is taken for its value.
	takesValue map[string]bool
}

// check refuses arguments that would fight those of the adapter, or be taken for a
// prompt or a subcommand.
func (r argRules) check(args []string) error {
	for i := 0; i < len(args); i++ {
		flag, _, joined := strings.Cut(args[i], "=")
		if i == 0 && !strings.HasPrefix(args[0], "-") {
			return fmt.Errorf("harness argument %q stands before any flag: it would be taken for a prompt or a command", args[0])
		}
		if flag == "--" {
			return fmt.Errorf("harness argument -- is not allowed: what follows it would be typed as a prompt")
		}
		why, bad := r.forbidden[flag]
		if !bad && len(flag) > 2 && flag[0] == '-' && flag[1] != '-' {
			why, bad = r.forbidden[flag[:2]]
		}
		if bad {
			return fmt.Errorf("harness argument %s is not allowed: %s", flag, why)
		}
		if r.takesValue[flag] && !joined {
			if i++; i == len(args) {
				return fmt.Errorf("harness argument %s has no value: it would take the flag that follows for one", flag)
			}
		}
	}
	return nil
}

// Reasons that several harnesses share.
const (
	whyConversation = "the conversation is chosen by the-loop"
	whyNewest       = "the last conversation of a directory can be somebody else's"
	whyFork         = "it would give the conversation another id"
	whyDir          = "the working directory is that of the session"
	whyPrompt       = "a prompt is delivered as a message"
)
