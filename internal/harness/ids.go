package harness

import (
	"fmt"
	"regexp"

	"github.com/google/uuid"
)

// NewConversationID mints the id of a new conversation: a random UUID in lower
// case, which every adapter that assigns ids accepts.
func NewConversationID() string { return uuid.NewString() }

// conversationID is the form of an id that may stand on a command line. It cannot
// be taken for a flag, a path or a word of a shell.
var conversationID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// ValidConversationID reports whether id may be given to a harness:
// ^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$. An adapter may demand more.
func ValidConversationID(id string) bool { return conversationID.MatchString(id) }

// checkConversationID is ValidConversationID as an error that names the form.
func checkConversationID(id string) error {
	if !ValidConversationID(id) {
		return fmt.Errorf("conversation id %.140q is not of the form %s", id, conversationID)
	}
	return nil
}

// checkUUID refuses what is not a UUID in its usual form of 36 characters.
func checkUUID(id string) error {
	const usual = 36
	if err := uuid.Validate(id); err != nil || len(id) != usual {
		return fmt.Errorf("conversation id %.140q is not a UUID (xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx)", id)
	}
	return nil
}

// modelName admits the names that vendors and gateways use ("opus",
// "claude-x-1[1m]", "us.vendor.model-v1:0", an ARN), and nothing that could be
// taken for a flag.
var modelName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+\[\]-]{0,255}$`)

// effortName admits a plain word.
var effortName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// checkChoice refuses a model or effort that could be misread on a command line.
func checkChoice(opts LaunchOptions) error {
	if opts.Model != "" && !modelName.MatchString(opts.Model) {
		return fmt.Errorf("model %.300q is not of the form %s", opts.Model, modelName)
	}
	if opts.Effort != "" && !effortName.MatchString(opts.Effort) {
		return fmt.Errorf("effort %.300q is not of the form %s", opts.Effort, effortName)
	}
	return nil
}
