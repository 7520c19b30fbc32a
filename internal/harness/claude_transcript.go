package harness

import (
	"os"
	"path/filepath"
)

// Transcripts is implemented by an adapter that knows where its harness looks for a
// conversation.
type Transcripts interface {
	// Lost reports that a conversation is not where its harness said that it keeps it, nor
	// anywhere else where it would look. What cannot be looked for is not lost.
	Lost(path, conversation string) bool
}

// Lost looks in the directories of all projects: Claude Code finds a conversation by its id,
// whatever directory it is started in. An id that was never said anything in has no file.
func (claude) Lost(path, conversation string) bool {
	if filepath.Base(path) != conversation+".jsonl" || !ValidConversationID(conversation) {
		return false
	}
	projects := filepath.Dir(filepath.Dir(path))
	dirs, err := os.ReadDir(projects)
	if err != nil {
		return false
	}
	for _, d := range dirs {
		if d.Type().IsRegular() {
			continue
		}
		if _, err := os.Stat(filepath.Join(projects, d.Name(), conversation+".jsonl")); err == nil || !os.IsNotExist(err) {
			return false
		}
	}
	return true
}
