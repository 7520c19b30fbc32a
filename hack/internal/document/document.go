// Package document writes generated documents, and checks that those in the checkout are up
// to date.
package document

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrStale says that a document is not what its sources make it.
var ErrStale = errors.New("is out of date: run make docs")

// Write writes text to out, which is below root unless it is absolute. With check it
// writes nothing, and fails with ErrStale and the first line that differs when out is not
// that text.
func Write(root, out string, text []byte, check bool) error {
	if !filepath.IsAbs(out) {
		out = filepath.Join(root, out)
	}
	if check {
		old, err := os.ReadFile(out)
		if err != nil {
			return err
		}
		if !bytes.Equal(old, text) {
			return fmt.Errorf("%s %w\n%s", out, ErrStale, difference(old, text))
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	return os.WriteFile(out, text, 0o644)
}

// difference shows the first line that is not the same.
func difference(old, now []byte) string {
	a, b := bytes.Split(old, []byte("\n")), bytes.Split(now, []byte("\n"))
	for i := range max(len(a), len(b)) {
		var was, is []byte
		if i < len(a) {
			was = a[i]
		}
		if i < len(b) {
			is = b[i]
		}
		if !bytes.Equal(was, is) {
			return fmt.Sprintf("line %d\n- %s\n+ %s", i+1, was, is)
		}
	}
	return ""
}
