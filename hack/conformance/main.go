// Command conformance writes docs/conformance.md: what the product must do, and which
// specs prove it. Specs are named after the ids in cases.yaml; the ids are found in the
// sources of the tests. `make docs` runs it.
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"os"

	"github.com/theloop-dev/the-loop/hack/internal/document"
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
	return document.Write(root, out, render(cases, found), check)
}
