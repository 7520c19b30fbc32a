package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/theloop-dev/the-loop/hack/internal/document"
	"github.com/theloop-dev/the-loop/internal/text"
)

func TestRun(t *testing.T) {
	out := filepath.Join(t.TempDir(), "text.md")
	if err := document.Write(".", out, render(), false); err != nil {
		t.Fatal(err)
	}
	if err := document.Write(".", out, render(), true); err != nil {
		t.Errorf("what was just written is called %v", err)
	}
	doc, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range text.Classes() {
		if !strings.Contains(string(doc), "\n| "+c.Name+" | ") {
			t.Errorf("the class %q is not in the document", c.Name)
		}
	}
	if err := os.WriteFile(out, doc[1:], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := document.Write(".", out, render(), true); !errors.Is(err, document.ErrStale) {
		t.Errorf("a document that differs: %v, want %v", err, document.ErrStale)
	}
}

// A document about hidden characters hides none.
func TestRenderHidesNothing(t *testing.T) {
	for i, line := range strings.Split(string(render()), "\n") {
		for _, r := range line {
			if !unicode.IsGraphic(r) || unicode.Is(unicode.Variation_Selector, r) {
				t.Errorf("line %d: %U in %q", i+1, r, line)
			}
		}
		if strings.HasPrefix(line, "| ") && strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") != 7 {
			t.Errorf("line %d is not a row of six cells: %s", i+1, line)
		}
	}
}

func TestExample(t *testing.T) {
	if got, want := example("a|b\x1b\xff\r\n\t\u200b\U000E0041❤\ufe0f\u0085日"), "`a\\|b\\x1b\\xff\\r\\n\\t\\u200b\\U000e0041❤\\ufe0f\\u0085日`"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
