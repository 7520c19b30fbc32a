package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Damage is what became of a configuration file that was sound before.
type Damage string

const (
	// DamageNone: it is sound, or was never seen to be: then nobody knows who made it so.
	DamageNone Damage = ""
	// DamageTorn: a writer that was cut off or came between another's writes left it: it is
	// empty, ends before its end, or goes on behind it.
	DamageTorn Damage = "Torn"
	// DamageMalformed: it does not parse in another way, as after an edit by hand.
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
	// there now, nil where a file that is gone or reset is no harm.
	firstRun func(good, now []byte) bool
}

// Path is where the harness looks for the file; it may be a link.
func (c SharedConfig) Path() string { return c.path }

// Finding is what was found of a shared configuration file.
type Finding struct {
	// Path is the file in the end of all links, Copy where its last good text is kept.
	Path, Copy string
	Damage     Damage

	found content
}

// Examine looks at the file, and again for a moment where it does not parse: somebody may
// be writing it in place. The text of a sound one is kept.
func (c SharedConfig) Examine(ctx context.Context) (Finding, error) {
	f, err := c.Locate()
	if err != nil {
		return f, err
	}
	good, _, err := readConfig(f.Copy)
	if err != nil {
		return f, err
	}
	if !isObject(good) {
		good = nil
	}
	for end := time.Now().Add(configTorn); ; {
		if f.found.text, f.found.info, err = readConfig(f.Path); err != nil {
			return f, err
		}
		f.Damage = judge(good, f.found.text, c.firstRun)
		if f.Damage == DamageNone || f.Damage == DamageReset || time.Now().After(end) {
			break
		}
		if err := pause(ctx, configPoll); err != nil {
			return f, err
		}
	}
	if f.Damage == DamageNone && isObject(f.found.text) && !bytes.Equal(good, f.found.text) {
		err = keepCopy(f.Copy, f.found.text)
	}
	return f, err
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
	good, _, err := readConfig(f.Copy)
	if err != nil {
		return "", err
	}
	if !isObject(good) {
		return "", fmt.Errorf("the copy %s of %s is of no use", f.Copy, f.Path)
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
	kept = f.Path + ".broken-" + now.UTC().Format("20060102T150405.000Z")
	if err := os.Link(f.Path, kept); err != nil {
		return "", fmt.Errorf("keeping the broken %s: %w", f.Path, err)
	}
	if err := replaceConfig(f.Path, f.found, good, true); err != nil {
		return "", errors.Join(err, os.Remove(kept))
	}
	return kept, nil
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
	case torn(now):
		return DamageTorn
	}
	return DamageMalformed
}

func isObject(text []byte) bool {
	return json.Valid(text) && bytes.TrimSpace(text)[0] == '{'
}

// torn tells a text that a writer left from one that a person mistyped.
func torn(text []byte) bool {
	if len(bytes.TrimSpace(text)) == 0 || bytes.IndexByte(text, 0) >= 0 {
		return true
	}
	var whole json.RawMessage
	switch err := json.NewDecoder(bytes.NewReader(text)).Decode(&whole); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return true
	case err != nil:
		return false
	}
	return whole[0] == '{' && !json.Valid(text)
}

// keepCopy replaces the last good text. It may hold what only its owner may read.
func keepCopy(path string, text []byte) error {
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = putCopy(path, text)
	}
	if err != nil {
		return fmt.Errorf("keeping a copy of the harness's configuration: %w", err)
	}
	return nil
}

func putCopy(path string, text []byte) error {
	f, err := writeBeside(path, content{}, text)
	if f == nil {
		return err
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
