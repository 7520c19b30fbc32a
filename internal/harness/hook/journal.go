package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// maxPage is how much of a journal one Read takes at most, in bytes. The rest
// follows with the next call.
const maxPage = 16 << 20

// Append adds the note to the journal at path as one line of JSON, in one write at
// the end of the file, so that concurrent appends never mix. The file is created
// with mode 0600; its directory must exist. When an earlier writer was cut off in
// the middle of its line (a full disk, a kill), that torn line is closed first, so
// that it costs only itself.
func Append(path string, n Note) (err error) {
	line, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("encoding the hook note: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the hook journal: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()

	buf := make([]byte, 0, len(line)+2)
	if endsTorn(f) {
		buf = append(buf, '\n')
	}
	buf = append(append(buf, line...), '\n')
	return writeOnce(f, buf)
}

// endsTorn reports whether the file does not end with a line end. It may also be
// true while another append is under way; the extra line end is then an empty
// line, which Read passes over.
func endsTorn(f *os.File) bool {
	st, err := f.Stat()
	if err != nil || st.Size() == 0 {
		return false
	}
	var last [1]byte
	_, err = f.ReadAt(last[:], st.Size()-1)
	return err == nil && last[0] != '\n'
}

// writeOnce writes b in a single system call. os.File.Write would go on after a
// short write, and another append could come in between.
func writeOnce(f *os.File, b []byte) error {
	for {
		n, err := syscall.Write(int(f.Fd()), b)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("appending to the hook journal: %w", err)
		case n < len(b):
			return fmt.Errorf("appending to the hook journal: %w", io.ErrShortWrite)
		}
		return nil
	}
}

// Page is what one read of a journal gave.
type Page struct {
	// Notes are in the order in which they were appended.
	Notes []Note
	// Next is the offset to read from the next time.
	Next int64
	// Corrupt counts the lines that were passed over because they are no notes.
	Corrupt int
	// More means that the journal holds further whole lines already.
	More bool
}

// Read returns the notes of the journal at path from the byte offset on, and the
// offset to go on from. A last line without its line end is left for the next
// call: its writer may not be done. A corrupt line is passed over (see ReadPage for
// their number). A journal that does not exist has no notes. An offset beyond the
// end means that the journal was replaced: it is read from its beginning.
func Read(path string, offset int64) (notes []Note, next int64, err error) {
	next = offset
	for {
		page, err := ReadPage(path, next)
		if err != nil {
			return notes, next, err
		}
		notes, next = append(notes, page.Notes...), page.Next
		if !page.More {
			return notes, next, nil
		}
	}
}

// ReadPage is Read for at most 16 MiB of the journal, with the count of corrupt
// lines.
func ReadPage(path string, offset int64) (Page, error) {
	none := Page{Next: offset}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Page{}, nil
	}
	if err != nil {
		return none, fmt.Errorf("opening the hook journal: %w", err)
	}
	defer func() { _ = f.Close() }()

	st, err := f.Stat()
	if err != nil {
		return none, fmt.Errorf("reading the hook journal: %w", err)
	}
	if offset < 0 || offset > st.Size() {
		offset = 0
	}
	buf := make([]byte, min(st.Size()-offset, maxPage))
	n, err := f.ReadAt(buf, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return none, fmt.Errorf("reading the hook journal: %w", err)
	}
	return parsePage(buf[:n], offset, offset+int64(n) < st.Size()), nil
}

// parsePage splits buf, which starts at offset, into notes. With cut the buffer
// ends before the journal does.
func parsePage(buf []byte, offset int64, cut bool) Page {
	page := Page{Next: offset, More: cut}
	for {
		end := bytes.IndexByte(buf, '\n')
		if end < 0 {
			break
		}
		line := bytes.TrimSpace(buf[:end])
		buf, page.Next = buf[end+1:], page.Next+int64(end)+1
		if len(line) == 0 {
			continue
		}
		var n Note
		if err := json.Unmarshal(line, &n); err != nil || n.Event == "" {
			page.Corrupt++
			continue
		}
		page.Notes = append(page.Notes, n)
	}
	if cut && page.Next == offset {
		// One line larger than a page is nothing that Append wrote.
		page.Next, page.Corrupt = offset+int64(len(buf)), page.Corrupt+1
	}
	return page
}
