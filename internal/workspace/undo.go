package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/theloop-dev/the-loop/internal/durable"
	"github.com/theloop-dev/the-loop/internal/workitem"
)

const (
	metaFile   = "meta.json"
	bundleFile = "work.bundle"
	undoTemp   = ".writing-"
	undoTime   = "20060102T150405.000000Z"
	// undoTempAge is how long an entry that was never completed is left alone: somebody
	// may be writing it.
	undoTempAge = 24 * time.Hour
)

// Undo is the unsaved work of one removed checkout: a directory with a git bundle and
// these facts about it in meta.json. It holds what git tracks or would: no ignored files,
// no empty directories, no tags.
type Undo struct {
	// Dir is the entry itself, absolute.
	Dir string `json:"-"`
	// Ref and Slug are the item's.
	Ref  string `json:"ref"`
	Slug string `json:"slug"`
	// Repository and Strategy of the checkout, and where it was.
	Repository Repository `json:"repository"`
	Strategy   Strategy   `json:"strategy"`
	Path       string     `json:"path"`
	// Branch that it was on, "" when it was detached, and its commit, "" before the first.
	Branch string `json:"branch,omitempty"`
	Head   string `json:"head,omitempty"`
	// Base is the commit that the checkout began with.
	Base string `json:"base,omitempty"`
	// Work is the commit that holds the files as they were, "" when all was committed.
	// Index is its counterpart of what was staged, "" when a merge was not resolved.
	Work  string `json:"work,omitempty"`
	Index string `json:"index,omitempty"`
	// Branches and Stashes (newest first) are those of a clone, which goes as a whole.
	Branches map[string]string `json:"branches,omitempty"`
	Stashes  []string          `json:"stashes,omitempty"`
	// Notes say what was left out.
	Notes []string `json:"notes,omitempty"`
	// CreatedAt is in UTC, Size that of the bundle in bytes.
	CreatedAt time.Time `json:"createdAt"`
	Size      int64     `json:"size"`
}

// Item is the reference that the work belongs to.
func (u Undo) Item() (workitem.Ref, error) { return workitem.Parse(u.Ref) }

// ReadUndo reads one entry.
func ReadUndo(dir string) (Undo, error) {
	u := Undo{Dir: dir}
	data, err := os.ReadFile(filepath.Join(dir, metaFile))
	if err == nil {
		err = json.Unmarshal(data, &u)
	}
	if err == nil {
		_, err = u.Item()
	}
	if err != nil {
		return u, &Error{
			Reason: ReasonDamaged, Path: dir, Err: err, Problem: fmt.Sprintf("the undo entry %s cannot be read: %v", dir, err),
			Remedy: "its " + bundleFile + " can be looked at with git bundle list-heads",
		}
	}
	return u, nil
}

// ListUndo gives the entries of an undo directory, the oldest first; none when it does
// not exist. Its error joins those of entries that cannot be read; the others are given
// all the same.
func ListUndo(undoDir string) ([]Undo, error) {
	entries, err := os.ReadDir(undoDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []Undo
	failed := []error{err}
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		u, err := ReadUndo(filepath.Join(undoDir, e.Name()))
		if err != nil {
			failed = append(failed, err)
			continue
		}
		out = append(out, u)
	}
	slices.SortStableFunc(out, func(a, b Undo) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return out, errors.Join(failed...)
}

// PruneUndo removes the entries that are older than age at now, and gives them. An entry
// that cannot be read is left, and in the error.
func PruneUndo(undoDir string, now time.Time, age time.Duration) ([]Undo, error) {
	entries, err := ListUndo(undoDir)
	failed := []error{err}
	var gone []Undo
	for _, u := range entries {
		if now.Sub(u.CreatedAt) < age {
			continue
		}
		// Half of an entry must not look like one: what is left of it is removed below.
		aside := filepath.Join(undoDir, undoTemp+filepath.Base(u.Dir))
		if err := os.Rename(u.Dir, aside); err != nil {
			failed = append(failed, err)
			continue
		}
		gone = append(gone, u)
		failed = append(failed, os.RemoveAll(aside))
	}
	unfinished, _ := filepath.Glob(filepath.Join(escapeGlob(undoDir), undoTemp+"*"))
	for _, dir := range unfinished {
		if info, err := os.Lstat(dir); err == nil && now.Sub(info.ModTime()) >= undoTempAge {
			failed = append(failed, os.RemoveAll(dir))
		}
	}
	return gone, errors.Join(failed...)
}

// publish completes an entry in temp and gives it its name.
func (u *Undo) publish(temp, undoDir string) error {
	bundle, err := os.OpenFile(filepath.Join(temp, bundleFile), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer bundle.Close()
	info, err := bundle.Stat()
	if err != nil {
		return err
	}
	u.Size = info.Size()
	if err := errors.Join(bundle.Chmod(0o600), bundle.Sync()); err != nil {
		return err
	}
	data, err := json.MarshalIndent(u, "", "  ")
	if err != nil {
		return err
	}
	if err := durable.Write(filepath.Join(temp, metaFile), append(data, '\n')); err != nil {
		return err
	}
	u.Dir = filepath.Join(undoDir, u.Slug+"-"+u.CreatedAt.Format(undoTime))
	if err := os.Rename(temp, u.Dir); err != nil {
		return err
	}
	return durable.SyncDir(undoDir)
}
