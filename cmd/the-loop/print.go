package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/theloop-dev/the-loop/internal/core"
	"github.com/theloop-dev/the-loop/internal/text"
)

// tableWidth is what a table fits into, but for -o wide.
const tableWidth = 80

// column of a table.
type column struct {
	head string
	// flex is cut when the table is too wide otherwise, the higher ones first, but never to
	// less than least.
	flex, least int
	// wide is shown with -o wide only.
	wide bool
	// state is coloured on a terminal.
	state bool
}

// table is rows under heads, none of them wider than a terminal.
type table struct {
	columns []column
	rows    [][]string
}

const (
	gap     = "  "
	minFlex = 6
)

// print writes the table, cut to the width of a terminal unless wide.
func (t *table) print(w io.Writer, wide bool) {
	widths := t.widths(wide)
	colour := colours(w)
	heads := make([]string, len(t.columns))
	for i, c := range t.columns {
		heads[i] = c.head
	}
	t.line(w, heads, widths, false)
	for _, r := range t.rows {
		t.line(w, r, widths, colour)
	}
}

// widths of the columns, 0 for one that is not shown.
func (t *table) widths(wide bool) []int {
	out, total := make([]int, len(t.columns)), -len(gap)
	for i, c := range t.columns {
		if c.wide && !wide {
			continue
		}
		out[i] = utf8.RuneCountInString(c.head)
		for _, r := range t.rows {
			out[i] = max(out[i], utf8.RuneCountInString(r[i]))
		}
		total += out[i] + len(gap)
	}
	for total > tableWidth && !wide {
		cut := t.cuttable(out)
		if cut < 0 {
			break
		}
		out[cut]--
		total--
	}
	return out
}

// cuttable is the column to be cut next, -1 when none can be.
func (t *table) cuttable(widths []int) int {
	cut := -1
	for i, c := range t.columns {
		if c.flex == 0 || widths[i] <= max(minFlex, c.least, len(c.head)) {
			continue
		}
		if cut < 0 || c.flex > t.columns[cut].flex || c.flex == t.columns[cut].flex && widths[i] > widths[cut] {
			cut = i
		}
	}
	return cut
}

func (t *table) line(w io.Writer, cells []string, widths []int, colour bool) {
	var b strings.Builder
	for i, c := range t.columns {
		if widths[i] == 0 {
			continue
		}
		cell := fit(cells[i], widths[i])
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)) + gap
		if c.state && colour {
			cell = paint(cell)
		}
		b.WriteString(cell + pad)
	}
	fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
}

// fit cuts a cell, visibly.
func fit(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	r := []rune(s)
	return string(r[:width-1]) + "…"
}

// paint colours a word by what it means.
func paint(word string) string {
	code := "33" // yellow: look at it
	switch word {
	case "Running", "Submitted", "True", "yes", "ok", "Accepted", "running", "Idle", "Busy":
		code = "32"
	case "Failed", "Refused", "False", "BLOCKED", "CrashLoopBackOff", "SessionOccupied", "failed":
		code = "31"
	case "", "-", "no", "Stopped", "CleanedUp", "stopped":
		return word
	}
	return "\x1b[" + code + "m" + word + "\x1b[0m"
}

// dash stands for nothing.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return text.OneLine(s)
}

// live is whether something lives, as far as is known.
func live(s metav1.ConditionStatus) string {
	switch s {
	case metav1.ConditionTrue:
		return "yes"
	case metav1.ConditionFalse:
		return "no"
	}
	return "?"
}

func (c *cli) age(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return duration.HumanDuration(c.clock.Since(t))
}

// printObjects prints objects as kubectl does for -o json, yaml and name; false when the
// format is none of these.
func (c *cli) printObjects(single bool, objs ...client.Object) (bool, error) {
	var p printers.ResourcePrinter
	switch c.output {
	case "json":
		p = &printers.JSONPrinter{}
	case "yaml":
		p = &printers.YAMLPrinter{}
	case "name":
		p = &printers.NamePrinter{}
	default:
		return false, nil
	}
	p = &printers.OmitManagedFieldsPrinter{Delegate: p}
	list := &corev1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, Items: []runtime.RawExtension{}}
	for _, o := range objs {
		if err := c.withKind(o); err != nil {
			return true, err
		}
		if single || c.output == "name" {
			if err := p.PrintObj(o, c.Out); err != nil {
				return true, err
			}
			continue
		}
		o.SetManagedFields(nil)
		list.Items = append(list.Items, runtime.RawExtension{Object: o})
	}
	if single || c.output == "name" {
		return true, nil
	}
	return true, p.PrintObj(list, c.Out)
}

// withKind gives an object its kind, which a typed client leaves out.
func (c *cli) withKind(o client.Object) error {
	gvk, err := apiutil.GVKForObject(o, c.made.client.Scheme())
	if err == nil {
		o.GetObjectKind().SetGroupVersionKind(gvk)
	}
	return err
}

// encode prints a value as JSON or YAML; false when neither is asked for.
func (c *cli) encode(v any) (bool, error) {
	switch c.output {
	case "json":
		e := json.NewEncoder(c.Out)
		e.SetIndent("", "    ")
		return true, e.Encode(v)
	case "yaml":
		b, err := yaml.Marshal(v)
		if err == nil {
			_, err = c.Out.Write(b)
		}
		return true, err
	}
	return false, nil
}

// answer is one result with its object.
type answer struct {
	core.Result
	Object client.Object `json:"object,omitempty"`
}

// report prints what became of sessions, one line for each, those that failed on stderr,
// and returns an error when any did.
func (c *cli) report(results []core.Result) error {
	err := core.Errs(results)
	if err != nil {
		err = &quietError{exitError{error: err, code: exitCode(err)}}
	}
	var all []answer
	for _, r := range results {
		a := answer{Result: r}
		if r.Session != nil {
			if kindErr := c.withKind(r.Session); kindErr != nil {
				return kindErr
			}
			r.Session.SetManagedFields(nil)
			a.Object = r.Session
		}
		all = append(all, a)
	}
	if done, encodeErr := c.encode(all); done {
		return errors.Join(encodeErr, err)
	}
	for _, a := range all {
		line := a.Name + " " + string(a.Outcome)
		if a.DryRun {
			line += " (server dry run)"
		}
		if a.Detail != "" {
			line += ": " + text.OneLine(a.Detail)
		}
		switch {
		case !a.OK():
			fmt.Fprintln(c.ErrOut, line)
		case c.output == "name" && a.Object != nil:
			if nameErr := (&printers.NamePrinter{}).PrintObj(a.Object, c.Out); nameErr != nil {
				return nameErr
			}
		default:
			fmt.Fprintln(c.Out, line)
		}
	}
	return err
}

// note tells a person something beside the answer.
func (c *cli) note(format string, args ...any) { fmt.Fprintf(c.ErrOut, format+"\n", args...) }

// wrapped breaks a text into lines of at most this many characters, the later ones
// behind the indentation.
func wrapped(s string, width int, indent string) string {
	var b strings.Builder
	room := width
	for i, word := range strings.Fields(s) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case room < n+1:
			b.WriteString("\n" + indent)
			room = width
		default:
			b.WriteByte(' ')
			room--
		}
		b.WriteString(word)
		room -= n
	}
	return b.String()
}
