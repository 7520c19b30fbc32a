package core

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"github.com/theloop-dev/the-loop/internal/text"
)

const (
	// filesDir is where files for a session are, in its working directory. git leaves it out.
	filesDir = ".the-loop/files"
	// maxFile is the largest file that is taken, in bytes.
	maxFile = 64 << 20
	// maxFiles is how many of them one message refers to.
	maxFiles = 20
)

// handed are files that lie in the directory of a session.
type handed struct {
	// references are what is said of them, a line each.
	references string
	// made are those that were not there before.
	made []string
	dir  string
}

// takeBack removes what was made.
func (h handed) takeBack() {
	root, err := os.OpenRoot(h.dir)
	if err != nil {
		return
	}
	defer func() { _ = root.Close() }()
	for _, name := range h.made {
		_ = root.Remove(name)
	}
}

// handOver copies files into the directory of a session on this machine, each under a name
// made of its content: no name of anybody's leads out of it or into a command line (P52).
func (c *Core) handOver(ctx context.Context, s Session, files []string) (handed, error) {
	h := handed{dir: s.HostedStatus().WorkingDirectory}
	switch {
	case len(files) == 0:
		return h, nil
	case len(files) > maxFiles:
		return h, invalid(fmt.Sprintf("%d files are too many for one message, which takes %d", len(files), maxFiles), "say it in several, or pack them")
	case h.dir == "":
		return h, refuse(ErrNotRunning, s.GetName()+" has no working directory yet", command(s, "start"))
	}
	_, err := c.hostHere(ctx, s, ThisMachine(), func(host string) string {
		return fmt.Sprintf("copy the file to %s:%s and say where it is", host, h.dir)
	})
	if err != nil {
		return h, err
	}
	var lines []string
	for _, f := range files {
		line, err := c.copyInto(&h, f)
		if err != nil {
			h.takeBack()
			return h, err
		}
		lines = append(lines, line)
	}
	h.references = strings.Join(lines, "\n")
	return h, nil
}

// copyInto copies one file and returns what is said of it.
func (c *Core) copyInto(h *handed, file string) (string, error) {
	cannot := func(err error) error {
		return invalid(fmt.Sprintf("the file %s cannot be handed over: %v", file, err), "")
	}
	content, err := readRegular(file)
	if err != nil {
		return "", cannot(err)
	}
	sum := sha256.Sum256(content)
	name := path.Join(filesDir, hex.EncodeToString(sum[:8])+extension(file))
	// Of a word with @ a harness reads the file that it names.
	called := strings.ReplaceAll(strconv.Quote(text.OneLine(filepath.Base(file))), "@", `\@`)
	line := fmt.Sprintf("Attached: the file %s of %d bytes, as %s", called, len(content), name)
	if c.DryRun {
		return line, nil
	}
	// Nothing that links lead to out of the directory is written.
	root, err := os.OpenRoot(h.dir)
	if err != nil {
		return "", cannot(err)
	}
	defer func() { _ = root.Close() }()
	err = root.MkdirAll(filesDir, 0o700)
	if err == nil {
		err = create(root, path.Join(filesDir, ".gitignore"), []byte("*\n"))
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", cannot(err)
	}
	switch err := create(root, name, content); {
	case errors.Is(err, fs.ErrExist): // of the same content
	case err != nil:
		return "", cannot(err)
	default:
		h.made = append(h.made, name)
	}
	return line, nil
}

// readRegular reads a plain file that is not too large.
func readRegular(file string) ([]byte, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO would wait for a writer
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no plain file")
	}
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = fmt.Errorf("it has more than %d bytes", maxFile)
	}
	return content, err
}

// create makes a file whole or not at all. One of that name stays.
func create(root *os.Root, name string, content []byte) error {
	if _, err := root.Lstat(name); err == nil {
		return fs.ErrExist
	}
	part := name + ".part-" + token()
	f, err := root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Rename(part, name)
	}
	if err != nil {
		_ = root.Remove(part)
	}
	return err
}

var plainExtension = regexp.MustCompile(`^\.[a-z0-9]{1,8}$`)

// extension is that of a file's name where it is a plain one: some programs go by it.
func extension(file string) string {
	if e := strings.ToLower(filepath.Ext(file)); plainExtension.MatchString(e) {
		return e
	}
	return ""
}
