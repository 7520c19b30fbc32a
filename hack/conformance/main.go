// Command conformance writes docs/conformance.md: what the product must do, and which
// specs prove it. Specs are named after the ids in cases.yaml; the ids are found in the
// sources of the tests. `make docs` runs it.
package main

import (
	"bytes"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

//go:embed cases.yaml
var casesYAML []byte

func main() {
	root := flag.String("root", ".", "the checkout whose tests are read")
	out := flag.String("out", "docs/conformance.md", "the document, from the root unless absolute")
	check := flag.Bool("check", false, "write nothing, and fail when the document is out of date")
	flag.Parse()
	if err := run(*root, *out, casesYAML, *check); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// errStale says that the document is not what the tests' names make it.
var errStale = errors.New("is out of date: run make docs")

// run writes the document, or with check compares it.
func run(root, out string, data []byte, check bool) error {
	cases, err := parseCases(data)
	if err != nil {
		return fmt.Errorf("hack/conformance/cases.yaml: %w", err)
	}
	specs, err := scan(root)
	if err != nil {
		return err
	}
	found, err := cases.assign(specs)
	if err != nil {
		return err
	}
	doc := render(cases, found)
	if !filepath.IsAbs(out) {
		out = filepath.Join(root, out)
	}
	if check {
		old, err := os.ReadFile(out)
		if err != nil {
			return err
		}
		if !bytes.Equal(old, doc) {
			return fmt.Errorf("%s %w\n%s", out, errStale, difference(old, doc))
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	return os.WriteFile(out, doc, 0o644)
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
