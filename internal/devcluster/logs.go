package devcluster

import (
	"errors"
	"io"
	"os"
	"strings"
	"unicode"
)

const (
	tailBytes = 16 << 10
	tailLines = 8
	tailWidth = 300 // characters kept of one line
)

// openLog opens a fresh log file; the one before is kept as <path>.1.
func openLog(path string) (*os.File, error) {
	if err := os.Rename(path, path+".1"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
}

// logTail returns the last lines of a log file that say something, indented for
// an error message; a note when there are none.
func logTail(path string) string {
	lines := lastLines(path)
	if len(lines) == 0 {
		lines = []string{"(nothing)"}
	}
	for i, line := range lines {
		lines[i] = printable(line)
	}
	return "    " + strings.Join(lines, "\n    ")
}

// lastLines returns the last lines that are not blank, as they are.
func lastLines(path string) []string {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	off := max(0, info.Size()-tailBytes)
	b, err := io.ReadAll(io.NewSectionReader(f, off, tailBytes))
	if err != nil {
		return nil
	}
	var lines []string
	for line := range strings.Lines(string(b)) {
		if strings.TrimSpace(line) != "" {
			lines = append(lines, line)
		}
	}
	return lines[max(0, len(lines)-tailLines):]
}

// printable makes a log line safe for a terminal and short.
func printable(line string) string {
	line = strings.Map(func(r rune) rune {
		if r == '\t' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(line, ""))
	line = strings.TrimSpace(line)
	if r := []rune(line); len(r) > tailWidth {
		line = string(r[:tailWidth]) + "..."
	}
	return line
}
