package harness

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"sync"
)

// Dialog is a screen of a harness, or a mode of its input box, in which a text that is
// typed is not a prompt: it is filtered by, thrown away, or answers something. Most of
// them are told by hooks or by a file of the harness; these are for what is not. They
// are data, because a release of a vendor's can bring one.
type Dialog struct {
	// Name says what is open, Leave what a person does about it.
	Name  string `json:"name"`
	Leave string `json:"leave"`
	// Row is a regular expression for what stands at the bottom of the screen: one of
	// the last Within rows that are not blank (default 1), or two of them that follow each
	// other, joined by a blank, because a narrow terminal breaks the line.
	Row    string `json:"row"`
	Within int    `json:"within,omitempty"`
	// Box: the dialog is there although the input box is. Without it, one that is
	// recognised (see Drafter) rules the dialog out.
	Box bool `json:"box,omitempty"`

	row *regexp.Regexp
}

// maxDialogsFile bounds an operator's file of dialogs, in bytes.
const maxDialogsFile = 1 << 20

// ParseDialogs reads dialogs from JSON of the form {"measured": "…", "dialogs": [{"name",
// "leave", "row", "within", "box"}]}. It refuses an unknown field, one without a name or a
// row, and a row that is no regular expression.
func ParseDialogs(data []byte) ([]Dialog, error) {
	var file struct {
		Measured string   `json:"measured"`
		Dialogs  []Dialog `json:"dialogs"`
	}
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&file); err != nil {
		return nil, fmt.Errorf("reading the dialogs: %w", err)
	}
	for i := range file.Dialogs {
		d := &file.Dialogs[i]
		if d.Name == "" || d.Row == "" {
			return nil, fmt.Errorf("dialog %d has no name or no row: both are needed", i+1)
		}
		row, err := regexp.Compile(d.Row)
		if err != nil {
			return nil, fmt.Errorf("the row of dialog %q: %w", d.Name, err)
		}
		d.row, d.Within = row, max(d.Within, 1)
	}
	return file.Dialogs, nil
}

// DialogOn is the dialog on a screen of the adapter's harness, and whether there is one that is
// known. extra is the path of an operator's own list, which comes first and is read each
// time, so that a dialog is added without a restart; "", or no such file, is none. With an
// error the dialogs that the program knows have been looked for all the same.
func DialogOn(a Adapter, extra string, s Screen) (d Dialog, open bool, err error) {
	theirs, err := readDialogs(extra)
	box := false
	if drafter, ok := a.(Drafter); ok {
		box = drafter.Draft(s) != DraftUnknown
	}
	bottom := bottomRows(s.Text)
	for _, list := range [][]Dialog{theirs, knownDialogs()[a.Name()]} {
		for _, d := range list {
			if (d.Box || !box) && d.on(bottom) {
				return d, true, err
			}
		}
	}
	return Dialog{}, false, err
}

// on reports whether the dialog is the one whose rows these are, the lowest first.
func (d Dialog) on(rows []string) bool {
	for i := range min(d.Within, len(rows)) {
		if d.row.MatchString(rows[i]) || i+1 < len(rows) && d.row.MatchString(rows[i+1]+" "+strings.TrimLeft(rows[i], " ")) {
			return true
		}
	}
	return false
}

// bottomRows are the rows of a screen that are not blank, the lowest first.
func bottomRows(text string) (out []string) {
	rows := screenRows(text)
	for i := len(rows) - 1; i >= 0; i-- {
		if len(rows[i]) > 0 {
			out = append(out, rows[i].String())
		}
	}
	return out
}

// readDialogs reads an operator's list.
func readDialogs(path string) ([]Dialog, error) {
	if path == "" {
		return nil, nil
	}
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && (!st.Mode().IsRegular() || st.Size() > maxDialogsFile) {
		err = errors.New("it is no regular file of at most 1 MiB")
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	var list []Dialog
	if err == nil {
		list, err = ParseDialogs(data)
	}
	if err != nil {
		return nil, fmt.Errorf("the list of dialogs %s is not used: %w", path, err)
	}
	return list, nil
}

//go:embed dialogs/*.json
var dialogFiles embed.FS

// knownDialogs are those that the program knows, by the adapter's name.
var knownDialogs = sync.OnceValue(func() map[string][]Dialog {
	out := map[string][]Dialog{}
	for _, a := range adapters {
		data, err := dialogFiles.ReadFile("dialogs/" + a.Name() + ".json")
		if err != nil {
			continue
		}
		if out[a.Name()], err = ParseDialogs(data); err != nil {
			panic(a.Name() + ": " + err.Error()) // a test reads them all
		}
	}
	return out
})
