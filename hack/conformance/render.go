package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// tally counts ids by how far they are proved.
type tally struct{ proved, partly, open int }

// String implements fmt.Stringer.
func (t tally) String() string {
	return fmt.Sprintf("%d proved, %d in part, %d open, of %d", t.proved, t.partly, t.open, t.proved+t.partly+t.open)
}

// render writes the document.
func render(c *caseList, found map[string][]spec) []byte {
	var b bytes.Buffer
	b.WriteString(`<!-- Written by hack/conformance: run make docs. -->

# Conformance

What the product must do, and which specs prove it. A spec that proves a case carries its id in its name; the words for the cases stand
in ` + "`hack/conformance/cases.yaml`" + `. *Open* means that no spec proves it, *in part* that what is proved leaves something out, which is said.
`)
	for _, g := range c.Groups {
		var counts tally
		for _, p := range g.Parts {
			for id := range p.Items {
				counts.add(c, id, found)
			}
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n", g.Title, counts)
		for _, p := range g.Parts {
			fmt.Fprintf(&b, "\n### %s\n\n| id | what must hold | proved by |\n|---|---|---|\n", p.Part)
			for _, id := range slices.Sorted(maps.Keys(p.Items)) {
				fmt.Fprintf(&b, "| %s | %s | %s |\n", id, p.Items[id], provers(c.Lacks[id], found[id]))
			}
		}
	}
	return b.Bytes()
}

func (t *tally) add(c *caseList, id string, found map[string][]spec) {
	switch {
	case len(found[id]) == 0:
		t.open++
	case c.Lacks[id] != "":
		t.partly++
	default:
		t.proved++
	}
}

// provers are the specs that name an id, by file.
func provers(lacks string, specs []spec) string {
	if len(specs) == 0 {
		return "*open*"
	}
	byFile := map[string][]string{}
	for _, s := range specs {
		byFile[s.file] = append(byFile[s.file], inCell(s.text))
	}
	var out []string
	if lacks != "" {
		out = append(out, "*in part*, open: "+inCell(lacks))
	}
	for _, file := range slices.Sorted(maps.Keys(byFile)) {
		out = append(out, fmt.Sprintf("[%s](../%s): %s", file, file, strings.Join(byFile[file], " · ")))
	}
	return strings.Join(out, "<br>")
}

// inCell makes a text fit for a cell of a table, where it shows as it is.
func inCell(text string) string {
	return strings.NewReplacer("\n", " ", "|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`, "`", "'").Replace(text)
}
