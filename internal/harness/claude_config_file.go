package harness

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/theloop-dev/the-loop/internal/filelock"
)

const (
	// maxConfigFile bounds what is read of a config file, in bytes.
	maxConfigFile = 64 << 20
	// configPatience is for how long, and configAttempts how often at least, a write is
	// tried against writers that keep coming in between. On a busy disk one attempt can
	// take a second, most of it in waiting for our own other processes.
	configPatience = 15 * time.Second
	configAttempts = 30
	// configSynced is how many attempts bring the new file onto the disk before it takes
	// the old one's place. On a busy disk that is slow enough for others to come in
	// between each time, so later attempts do it directly afterwards.
	configSynced = 5
	// configTorn is how long a file that does not parse may still be one that somebody is
	// writing in place.
	configTorn = 200 * time.Millisecond
	// configSettle is how long after a write another writer, which had read the file
	// before it, may still undo it.
	configSettle = 50 * time.Millisecond
	// configPoll is the pause between two looks at a lock or a file.
	configPoll = 5 * time.Millisecond
	// peerLockWait bounds the wait for the harness's own lock; without it the write goes
	// on, guarded by the comparison alone.
	peerLockWait = 2 * time.Second
	// peerLockStale is the age from which the harness itself takes its lock for left
	// behind.
	peerLockStale = 10 * time.Second
)

// errIntervened: the file is not any more what was read.
var errIntervened = errors.New("another process keeps writing the file")

// configFile is one JSON file of the harness that others write too.
type configFile struct {
	path    string
	lockDir string
	// peerLock is the directory whose existence is the harness's own lock on the file, ""
	// when it has none.
	peerLock string
}

// has reports whether an edit would change nothing in the file as it is.
func (c *configFile) has(e configEdit) bool {
	text, _, err := readConfig(c.path)
	if err != nil || text == nil {
		return false
	}
	_, applied, err := applyEdits(text, []configEdit{e})
	return err == nil && len(applied) == 0
}

// apply makes the edits in the file, or none of them, and returns what they did. A
// file in which there is nothing to change is not opened for writing. It returns once
// the edits have stood in the file for a moment, because another writer may have read
// the file before them.
func (c *configFile) apply(ctx context.Context, edits []configEdit) (applied []string, err error) {
	if len(edits) == 0 {
		return nil, nil
	}
	path, err := followLinks(c.path)
	if err != nil {
		return nil, err
	}
	end := time.Now().Add(configPatience)
	for attempt := 0; attempt < configAttempts || time.Now().Before(end); attempt++ {
		did, err := c.once(ctx, path, edits, attempt < configSynced)
		wait := configPoll
		switch {
		case errors.Is(err, errIntervened):
		case err != nil:
			return applied, err
		case len(did) == 0:
			return applied, nil
		default:
			wait = configSettle
			if applied == nil {
				applied = did
			}
		}
		if err := pause(ctx, wait); err != nil {
			return applied, err
		}
	}
	return applied, fmt.Errorf("%s: %w", path, errIntervened)
}

// once reads, edits and replaces the file, under our lock and the harness's own. It
// returns what it did, nothing when there was nothing to do.
func (c *configFile) once(ctx context.Context, path string, edits []configEdit, sync bool) ([]string, error) {
	if _, _, applied, err := planConfig(ctx, path, edits); err != nil || len(applied) == 0 {
		return nil, err
	}
	unlock, err := c.lock(ctx, path)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of %s: %w", path, err)
	}
	release, err := c.lockPeer(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	old, text, applied, err := planConfig(ctx, path, edits)
	if err != nil || len(applied) == 0 {
		return nil, err
	}
	if err := replaceConfig(path, old, text, sync); err != nil {
		return nil, err
	}
	return applied, nil
}

// content is what was read of a file; text is nil when there is none.
type content struct {
	text []byte
	info fs.FileInfo
}

// planConfig reads the file and edits its text. A file that does not parse is read
// again for a moment: somebody may be writing it in place.
func planConfig(ctx context.Context, path string, edits []configEdit) (old content, text []byte, applied []string, err error) {
	for end := time.Now().Add(configTorn); ; {
		if old.text, old.info, err = readConfig(path); err != nil {
			return old, nil, nil, err
		}
		from := old.text
		if from == nil {
			from = []byte("{}\n")
		}
		text, applied, err = applyEdits(from, edits)
		if err == nil {
			return old, text, applied, nil
		}
		if json.Valid(from) || time.Now().After(end) {
			return old, nil, nil, fmt.Errorf("%s %w", path, err)
		}
		if err := pause(ctx, configPoll); err != nil {
			return old, nil, nil, err
		}
	}
}

// readConfig reads a regular file; text is nil when there is none.
func readConfig(path string) (text []byte, info fs.FileInfo, err error) {
	info, err = os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil
	case err != nil:
		return nil, nil, err
	case !info.Mode().IsRegular():
		return nil, nil, fmt.Errorf("%s is no regular file", path)
	}
	f, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil
	case err != nil:
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	if info, err = f.Stat(); err != nil {
		return nil, nil, err
	}
	text, err = io.ReadAll(io.LimitReader(f, maxConfigFile+1))
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if len(text) > maxConfigFile {
		return nil, nil, fmt.Errorf("%s is larger than %d bytes", path, maxConfigFile)
	}
	if text == nil {
		text = []byte{}
	}
	return text, info, nil
}

// replaceConfig puts text in the place of old, whole or not at all. The exchange gives
// back what stood there in that instant: when another process had just written
// something else, that goes back to its place, and errIntervened is returned. So
// nothing that was ever written is thrown away unread.
// With sync the text is on the disk before it takes the place, else directly after.
func replaceConfig(path string, old content, text []byte, sync bool) (err error) {
	f, err := writeBeside(path, old, text)
	if err == nil && sync {
		err = f.Sync()
	}
	if f != nil {
		defer func() {
			if err == nil && !sync {
				err = f.Sync()
			}
			_ = f.Close()
			_ = os.Remove(f.Name())
		}()
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	tmp := f.Name()
	if now, _, err := readConfig(path); err != nil {
		return err
	} else if !same(now, old.text) {
		return errIntervened
	}
	if old.text == nil {
		return putNew(tmp, path)
	}
	put, expected := text, old.text
	for back := false; ; back = true {
		swapped, err := swap(tmp, path)
		if err != nil {
			return fmt.Errorf("replacing %s: %w", path, err)
		}
		if !swapped {
			return nil
		}
		out, _, err := readConfig(tmp)
		switch {
		case err != nil: // whatever it is, it belongs where it was
			_, back := swap(tmp, path)
			return errors.Join(err, back)
		case same(out, expected) && back:
			return errIntervened
		case same(out, expected):
			return nil
		}
		put, expected = out, put
	}
}

// same tells contents apart, nil being no file.
func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// putNew moves a file to a place where there must be none.
func putNew(tmp, path string) error {
	switch err := renameNew(tmp, path); {
	case errors.Is(err, fs.ErrExist):
		return errIntervened
	case err != nil:
		return fmt.Errorf("creating %s: %w", path, err)
	}
	return nil
}

// writeBeside writes text to a new file in the directory of path, with the mode and
// the owner of the old content, 0600 when there is none. The file is the caller's to
// close and remove, also after an error, when there is one.
func writeBeside(path string, old content, text []byte) (*os.File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".the-loop-*")
	if err != nil {
		return nil, err
	}
	if old.info != nil {
		if err := keepOwner(f, old.info); err != nil {
			return f, err
		}
		if err := f.Chmod(old.info.Mode().Perm()); err != nil {
			return f, err
		}
	}
	_, err = f.Write(text)
	return f, err
}

// keepOwner gives a new file the owner of the old one: another user's harness could
// not read a file of ours. A group that cannot be kept is not worth a failure.
func keepOwner(f *os.File, old fs.FileInfo) error {
	was, ok := old.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	is, ok := info.Sys().(*syscall.Stat_t)
	if !ok || is.Uid == was.Uid && is.Gid == was.Gid {
		return nil
	}
	if err := f.Chown(int(was.Uid), int(was.Gid)); err != nil && is.Uid != was.Uid {
		return err
	}
	return nil
}

// followLinks returns the file that path names in the end, which may not exist yet: a
// link to a file is written through, never replaced.
func followLinks(path string) (string, error) {
	const most = 40
	for range most {
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode()&fs.ModeSymlink == 0 {
			if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
				path = filepath.Join(dir, filepath.Base(path))
			}
			return path, nil
		}
		if err != nil {
			return "", err
		}
		target, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(target) {
			dir, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				return "", err
			}
			target = filepath.Join(dir, target)
		}
		path = target
	}
	return "", fmt.Errorf("%s is a circle of symbolic links", path)
}

// pathDigest stands for a path in the name of a file.
func pathDigest(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:8])
}

// lock takes the lock that all our processes share for the file.
func (c *configFile) lock(ctx context.Context, path string) (unlock func(), err error) {
	if err := os.MkdirAll(c.lockDir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory for locks: %w", err)
	}
	name := filepath.Join(c.lockDir, "harness-config-"+pathDigest(path)+".lock")
	l, err := filelock.Acquire(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("waiting for the lock of %s: %w", path, err)
	}
	return l.Release, nil
}

// lockPeer takes the harness's own lock for the moment of a write: a directory that
// whoever makes it holds. It is an addition to the comparison, so a harness that keeps
// it for long, or a place where it cannot be made, hinders nothing.
func (c *configFile) lockPeer(ctx context.Context) (release func(), err error) {
	none := func() {}
	if c.peerLock == "" {
		return none, nil
	}
	for end := time.Now().Add(peerLockWait); time.Now().Before(end); {
		err := os.Mkdir(c.peerLock, 0o755)
		if err == nil {
			return func() { _ = os.Remove(c.peerLock) }, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return none, nil
		}
		if info, err := os.Lstat(c.peerLock); err == nil && info.IsDir() && time.Since(info.ModTime()) > peerLockStale {
			_ = os.Remove(c.peerLock)
			continue
		}
		if err := pause(ctx, configPoll); err != nil {
			return nil, fmt.Errorf("waiting for %s: %w", c.peerLock, err)
		}
	}
	return none, nil
}

// pause waits for d, or fails when ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
