package seal

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"time"
)

// Check compares a file with its seal, in steps: a large file takes its time.
type Check struct {
	// Path is the file that is looked at, which may have been moved.
	Path string
	// Altered says how the file is not what it was, "" when it is. It is known when Done.
	Altered string
	// Unread: the file is there and could not be read, which Altered tells.
	Unread bool
	// Whole is the digest of the file as it is, "" where it could not be read.
	Whole string
	Done  bool

	seal Seal
	info fs.FileInfo
	sum  hash.Hash
	read int64
}

// Compare begins to compare the file at a path with a seal. Without a file there is nothing
// to compare.
func Compare(s Seal, path string) *Check {
	c := &Check{Path: path, seal: s, sum: sha256.New()}
	f, info, err := open(path)
	if err != nil {
		c.fail(err)
		return c
	}
	_ = f.Close()
	c.info = info
	return c
}

// fail ends the comparison; that it failed once is no reason not to look again.
func (c *Check) fail(err error) {
	c.Done, c.Whole, c.info = true, "", nil
	if c.Unread = !errors.Is(err, fs.ErrNotExist); c.Unread {
		c.Altered = "it cannot be read: " + err.Error()
	}
}

// Of reports that the file is compared with this seal, as it is now.
func (c *Check) Of(s Seal) bool {
	return c.seal.Path == s.Path && c.seal.Size == s.Size && c.seal.Digest == s.Digest && c.seal.Closed == s.Closed
}

// Stands reports that the file has not changed since the comparison began, as far as is to
// be seen without reading it.
func (c *Check) Stands() bool {
	if c.info == nil {
		return false
	}
	now, err := os.Stat(c.Path)
	return err == nil && os.SameFile(now, c.info) && now.Size() == c.info.Size() && now.ModTime().Equal(c.info.ModTime())
}

// Step reads on for at most so many bytes. What the file has then beyond the size that it
// had at the beginning is not looked at.
func (c *Check) Step(most int64) {
	if c.Done {
		return
	}
	f, _, err := open(c.Path)
	if err != nil {
		c.fail(err)
		return
	}
	defer func() { _ = f.Close() }()
	size := c.info.Size()
	for end := min(size, c.read+most); c.read < end; {
		until := end // not past the end of what was sealed, where the digest is compared
		if c.read < c.seal.Size {
			until = min(end, c.seal.Size)
		}
		n, err := io.Copy(c.sum, io.NewSectionReader(f, c.read, until-c.read))
		if err != nil {
			c.fail(err)
			return
		}
		if n < until-c.read {
			size, end = c.read+n, c.read+n
		}
		if c.read += n; c.read == c.seal.Size && digest(c.sum) != c.seal.Digest {
			c.Altered = fmt.Sprintf("its first %d bytes are others", c.read)
		}
	}
	if c.read < size {
		return
	}
	c.Done, c.Whole = true, digest(c.sum)
	switch {
	case c.Altered != "":
	case c.read < c.seal.Size:
		c.Altered = fmt.Sprintf("it has %d bytes and had %d", c.read, c.seal.Size)
	case c.seal.Closed && c.read > c.seal.Size:
		c.Altered = fmt.Sprintf("%d bytes were added after the harness had ended", c.read-c.seal.Size)
	}
}

// Accept is the seal of the file as it was compared, of which nothing more is expected.
func (c *Check) Accept(now time.Time) (*Seal, error) {
	s := &Seal{Path: c.Path, Owner: c.seal.Owner, At: now, Closed: true}
	return s, s.set(c.sum, c.read)
}
