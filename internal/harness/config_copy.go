package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/theloop-dev/the-loop/internal/durable"
)

// Damage is what became of a configuration file that was sound before.
type Damage string

const (
	// DamageNone: it is sound, or was never seen to be: then nobody knows who made it so.
	DamageNone Damage = ""
	// DamageTorn: only a writer that was cut off, or came between another's writes, leaves it
	// so: it is empty, has zeroes, is the beginning of what it was, or ends with the end of
	// that behind a shorter text.
	DamageTorn Damage = "Torn"
	// DamageMalformed: it does not parse in another way, as while it is edited by hand.
	DamageMalformed Damage = "Malformed"
	// DamageReset: it parses, and the harness would begin with it as on its first day.
	DamageReset Damage = "Reset"
	// DamageMissing: it is gone, which is the same for the harness.
	DamageMissing Damage = "Missing"
)

// Words say what is wrong, after the name of the file.
func (d Damage) Words() string {
	switch d {
	case DamageTorn:
		return "was left half written"
	case DamageMalformed:
		return "is not valid JSON any more"
	case DamageReset:
		return "was reset to that of a first run"
	case DamageMissing:
		return "is gone"
	}
	return "is sound"
}

// SharedConfig is a configuration file of a harness that all its sessions share, and of
// which the last known good text is kept, because harnesses that write at once break it.
type SharedConfig struct {
	configFile
	copyDir string
	// firstRun reports whether the harness would begin as on its first day with what is
	// there now, nil where a file that is gone or reset is no harm, and which people edit: it
	// is never torn.
	firstRun func(good, now []byte) bool
}

// Path is where the harness looks for the file; it may be a link.
func (c SharedConfig) Path() string { return c.path }

// Finding is what was found of a shared configuration file.
type Finding struct {
	// Path is the file in the end of all links, Copy where its last good text is kept.
	Path, Copy string
	Damage     Damage

	// Newer: it is sound, and another text than the last good one that is kept.
	Newer bool
	// CopyProblem is why what is kept is of no use and counts as none, nil where it is not.
	CopyProblem error

	found content
}

// Examine looks at the file, and again for a moment where it does not parse: somebody may
// be writing it in place. The newest is what was found last that was sound and is not kept
// yet, if any. With an error nothing was found.
func (c SharedConfig) Examine(ctx context.Context, newest Finding) (Finding, error) {
	f, err := c.Locate()
	if err != nil {
		return Finding{}, err
	}
	copied, err := readCopy(f.Copy)
	f.CopyProblem = err
	good := copied
	if good != nil && newest.Path == f.Path && newest.Newer {
		good = newest.found.text
	}
	for end := time.Now().Add(configTorn); ; {
		if f.found.text, f.found.info, err = readConfig(f.Path); err != nil {
			return Finding{}, err
		}
		f.Damage = judge(good, f.found.text, c.firstRun)
		if f.Damage == DamageNone || f.Damage == DamageReset || time.Now().After(end) {
			break
		}
		if err := pause(ctx, configPoll); err != nil {
			return Finding{}, err
		}
	}
	f.Newer = f.Damage == DamageNone && isObject(f.found.text) && !bytes.Equal(copied, f.found.text)
	return f, nil
}

// Is reports whether two findings are of the same text at the same place.
func (f Finding) Is(o Finding) bool { return f.Path == o.Path && same(f.found.text, o.found.text) }

// readCopy reads the last good text, nil when none is kept.
func readCopy(path string) ([]byte, error) {
	good, _, err := readConfig(path)
	switch {
	case err != nil:
		return nil, err
	case good != nil && !isObject(good):
		return nil, fmt.Errorf("%s holds no JSON object", path)
	}
	return good, nil
}

// Locate finds the file without reading it.
func (c SharedConfig) Locate() (Finding, error) {
	path, err := followLinks(c.path)
	if err != nil {
		return Finding{}, err
	}
	return Finding{Path: path, Copy: filepath.Join(c.copyDir, pathDigest(path)+".json")}, nil
}

// Restore puts the last good text in the place of what was found, which must be torn, and
// returns where that is kept. A file that is any more than what was found, and so every one
// that parses, stays as it is.
func (c SharedConfig) Restore(ctx context.Context, f Finding, now time.Time) (kept string, err error) {
	if f.Damage != DamageTorn {
		return "", fmt.Errorf("%s %s: only one that was left half written is restored", f.Path, f.Damage.Words())
	}
	good, err := readCopy(f.Copy)
	if err == nil && good == nil {
		err = fmt.Errorf("the copy %s is gone", f.Copy)
	}
	if err != nil {
		return "", err
	}
	unlock, err := c.lock(ctx, f.Path)
	if err != nil {
		return "", err
	}
	defer unlock()
	release, err := c.lockPeer(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	// The file itself, by another name: what a late writer still has open stays with it.
	kept = f.Path + brokenInfix + now.UTC().Format(brokenTime)
	if err := os.Link(f.Path, kept); err != nil {
		return "", fmt.Errorf("keeping the broken %s: %w", f.Path, err)
	}
	if err := replaceConfig(f.Path, f.found, good, true); err != nil {
		return "", errors.Join(err, os.Remove(kept))
	}
	dropBroken(f.Path)
	return kept, nil
}

// Broken files are kept beside the file, with its name, this and the time.
const (
	brokenInfix = ".broken-"
	brokenTime  = "20060102T150405.000Z"
	// maxBroken are so many of one file: they may hold what only its owner may read.
	maxBroken = 3
)

// dropBroken removes the oldest broken files that were kept. What cannot be removed is tried
// again when the next one is kept.
func dropBroken(path string) {
	entries, err := os.ReadDir(filepath.Dir(path)) // in the order of their names
	if err != nil {
		return
	}
	var kept []string
	for _, e := range entries {
		at, ours := strings.CutPrefix(e.Name(), filepath.Base(path)+brokenInfix)
		if _, err := time.Parse(brokenTime, at); ours && err == nil {
			kept = append(kept, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	for i := 0; i < len(kept)-maxBroken; i++ {
		_ = os.Remove(kept[i])
	}
}

// judge tells what became of a file by its last good text, nil when none is known.
func judge(good, now []byte, firstRun func(good, now []byte) bool) Damage {
	switch {
	case good == nil:
		return DamageNone
	case now == nil:
		if firstRun != nil && firstRun(good, []byte("{}")) {
			return DamageMissing
		}
		return DamageNone
	case isObject(now):
		if firstRun != nil && firstRun(good, now) {
			return DamageReset
		}
		return DamageNone
	case firstRun != nil && torn(good, now):
		return DamageTorn
	}
	return DamageMalformed
}

func isObject(text []byte) bool {
	return json.Valid(text) && bytes.TrimSpace(text)[0] == '{'
}

// torn tells a text that only a writer leaves from one that a person has not finished, by
// the last good one: a file that is being edited ends before its end too.
func torn(good, now []byte) bool {
	if len(now) == 0 || bytes.IndexByte(now, 0) >= 0 || bytes.HasPrefix(good, now) {
		return true
	}
	// A shorter text was written over the beginning of what was there.
	var whole json.RawMessage
	r := json.NewDecoder(bytes.NewReader(now))
	if r.Decode(&whole) != nil || whole[0] != '{' || len(now) != len(good) {
		return false
	}
	return bytes.Equal(now[r.InputOffset():], good[r.InputOffset():])
}

// Keep makes the text that was found, which is sound, the last good one. It may hold what
// only its owner may read.
func (f Finding) Keep() error {
	err := os.MkdirAll(filepath.Dir(f.Copy), 0o700)
	if err == nil {
		err = durable.Write(f.Copy, f.found.text)
	}
	if err != nil {
		return fmt.Errorf("keeping a copy of the harness's configuration: %w", err)
	}
	return nil
}
