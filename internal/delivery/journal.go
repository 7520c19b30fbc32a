package delivery

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/theloop-dev/the-loop/internal/durable"
	"github.com/theloop-dev/the-loop/internal/faultpoint"
	"github.com/theloop-dev/the-loop/internal/harness/hook"
)

// Attempt is the newest delivery that was begun in a session. It is on disk before
// anything is typed, so that a crash of the agent, of the terminal server or of the
// machine neither loses nor repeats a text: an attempt without a proof of its end is
// never taken for one that was not made.
type Attempt struct {
	// Message is the UID of the message.
	Message string `json:"message"`
	// Launch of the harness into which it is typed.
	Launch string `json:"launch"`
	// Time before the paste.
	Time time.Time `json:"time"`
	// Notes of that launch's hooks that were read before the paste: none of them is
	// evidence.
	Notes int64 `json:"notes"`
	// Untaken: the delivery ended without evidence, so that the text may still stand in
	// the harness's input box.
	Untaken bool `json:"untaken,omitempty"`
	// Stood: after that it was seen in the input box, so that an empty box says that it is
	// gone.
	Stood bool `json:"stood,omitempty"`
}

// Mark is the place in what the hooks told behind which evidence is.
func (a Attempt) Mark() hook.Mark { return hook.Mark{Launch: a.Launch, Number: a.Notes} }

// Save writes an attempt, through to the disk.
func (a Attempt) Save(path string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("the delivery journal cannot be written, so nothing is typed: %w", err)
		}
	}()
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	if err := faultpoint.Fail(faultpoint.AttemptWrite); err != nil {
		return err
	}
	return durable.Write(path, b)
}

// LoadAttempt reads the newest attempt; the zero Attempt when none was made.
func LoadAttempt(path string) (Attempt, error) {
	var a Attempt
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return a, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &a)
	}
	if err != nil {
		return a, fmt.Errorf("the delivery journal cannot be read, so nothing is typed: %w", err)
	}
	return a, nil
}
