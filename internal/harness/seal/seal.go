// Package seal tells whether a file that is only appended to is still what it was: a record,
// kept elsewhere, has the digest of its beginning, which is extended as the file grows. Each
// byte is read once for that, and all of them again to compare.
package seal

import (
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/theloop-dev/the-loop/internal/durable"
)

// Seal is what a file was.
type Seal struct {
	Path string `json:"path"`
	// Owner is who lets the file be written.
	Owner string `json:"owner"`
	// Size is how much of it was read, Digest that of these bytes.
	Size   int64  `json:"size"`
	Digest string `json:"digest"`
	// State is that of the digest, with which it goes on.
	State []byte `json:"state"`
	// At is when something was last added to the seal.
	At time.Time `json:"at"`
	// Closed: nothing more is to be written to the file.
	Closed bool `json:"closed,omitempty"`
}

// Brief is a seal without what goes on with it, to be compared.
type Brief struct {
	Path, Owner, Digest string
	Size                int64
	Closed              bool
}

// Brief is what two seals that say the same have in common.
func (s *Seal) Brief() Brief {
	return Brief{Path: s.Path, Owner: s.Owner, Digest: s.Digest, Size: s.Size, Closed: s.Closed}
}

// Load reads a seal, nil where there is none.
func Load(name string) (*Seal, error) {
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := &Seal{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return s, nil
}

// Save writes the seal, whole or not at all.
func (s *Seal) Save(name string) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return durable.Write(name, data)
}

// Extend reads what was added to the file, at most so many bytes of it; more says that there
// is more. A file that is shorter than it was is left to the comparison.
func (s *Seal) Extend(most int64, now time.Time) (more bool, err error) {
	f, st, err := open(s.Path)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	if st.Size() <= s.Size {
		return false, nil
	}
	sum, err := s.sum()
	if err != nil {
		return false, err
	}
	n, err := io.Copy(sum, io.NewSectionReader(f, s.Size, min(most, st.Size()-s.Size)))
	if err == nil {
		// The seal must not outlive, in a power cut, what it was made of.
		err = f.Sync()
	}
	if err != nil {
		return false, err
	}
	if err := s.set(sum, s.Size+n); err != nil {
		return false, err
	}
	s.At = now
	return n > 0 && s.Size < st.Size(), nil
}

// sum is the digest as far as it was brought.
func (s *Seal) sum() (hash.Hash, error) {
	sum := sha256.New()
	if s.Size == 0 {
		return sum, nil
	}
	m, ok := sum.(encoding.BinaryUnmarshaler)
	if !ok {
		return nil, errors.New("a digest cannot be gone on with")
	}
	return sum, m.UnmarshalBinary(s.State)
}

func (s *Seal) set(sum hash.Hash, size int64) (err error) {
	m, ok := sum.(encoding.BinaryMarshaler)
	if !ok {
		return errors.New("a digest cannot be kept")
	}
	s.Size, s.Digest = size, digest(sum)
	s.State, err = m.MarshalBinary()
	return err
}

func digest(sum hash.Hash) string { return "sha256:" + hex.EncodeToString(sum.Sum(nil)) }

// open opens a regular file; what else stands in its place must not keep us waiting.
func open(path string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", path)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, st, nil
}
