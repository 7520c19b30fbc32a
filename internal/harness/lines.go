package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// newestLines are the last whole lines of a file that only grows, newest first, from at
// most so many bytes at its end. What cannot be read has none.
func newestLines(path string, limit int64) [][]byte {
	if !filepath.IsAbs(path) {
		return nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return nil
	}
	from := max(0, st.Size()-limit)
	buf := make([]byte, st.Size()-from)
	n, err := f.ReadAt(buf, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	lines := bytes.Split(buf[:n], []byte("\n"))
	lines = lines[:len(lines)-1] // empty, or not written to its end yet
	if from > 0 && len(lines) > 0 {
		lines = lines[1:]
	}
	slices.Reverse(lines)
	return lines
}

// plainWord is a word that a shell leaves as it is.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+,-]+$`)

// shellWords makes one command line for a POSIX shell from an argument list.
func shellWords(argv []string) string {
	words := make([]string, len(argv))
	for i, a := range argv {
		if words[i] = a; !plainWord.MatchString(a) {
			words[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// quoted is a string as JSON writes it, which TOML reads as well.
func quoted(s string) string {
	text, err := encode(s)
	if err != nil { // a string can be encoded
		return `""`
	}
	// TOML wants this one escaped too.
	return strings.ReplaceAll(string(text), "\x7f", `\u007f`)
}

// hookArgv is the command line of our hook for a launch.
func hookArgv(opts LaunchOptions) ([]string, error) {
	if len(opts.HookCommand) == 0 {
		return nil, errors.New("no hook command is set: the harness could not tell when it is ready")
	}
	switch opts.Permissions {
	case "", PermissionsAsk:
		return opts.HookCommand, nil
	case PermissionsDeny, PermissionsAllow:
		return append(slices.Clone(opts.HookCommand), "--permissions", string(opts.Permissions)), nil
	}
	text, _ := json.Marshal(opts.Permissions)
	return nil, errors.New("permissions are " + string(text) + ": they must be Ask, Deny or Allow")
}
