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
	// Found is where a conversation is that its harness said it keeps at path: there, or
	// elsewhere where it would look; path where it is nowhere that can be seen.
	Found(path, conversation string) string
}

// Lost looks in the directories of all projects: Claude Code finds a conversation by its id,
// whatever directory it is started in. An id that was never said anything in has no file.
func (claude) Lost(path, conversation string) bool {
	found, looked := claudeFind(path, conversation)
	return looked && found == ""
}

func (claude) Found(path, conversation string) string {
	if _, err := os.Lstat(path); err == nil {
		return path
	}
	if found, _ := claudeFind(path, conversation); found != "" {
		return found
	}
	return path
}

// claudeFind looks for the file of a conversation beside that of path, in the directories of
// all projects. Where one of them cannot be looked into, it was not looked for everywhere.
func claudeFind(path, conversation string) (found string, looked bool) {
	if filepath.Base(path) != conversation+".jsonl" || !ValidConversationID(conversation) {
		return "", false
	}
	projects := filepath.Dir(filepath.Dir(path))
	dirs, err := os.ReadDir(projects)
	if err != nil {
		return "", false
	}
	looked = true
	for _, d := range dirs {
		if d.Type().IsRegular() {
			continue
		}
		file := filepath.Join(projects, d.Name(), conversation+".jsonl")
		switch _, err := os.Stat(file); {
		case err == nil:
			return file, true
		case !os.IsNotExist(err):
			looked = false
		}
	}
	return "", looked
}
