package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/theloop-dev/the-loop/hack/internal/document"
	"github.com/theloop-dev/the-loop/internal/event"
)

func TestRun(t *testing.T) {
	out := filepath.Join(t.TempDir(), "events.md")
	if err := document.Write(".", out, render(event.All()), false); err != nil {
		t.Fatal(err)
	}
	if err := document.Write(".", out, render(event.All()), true); err != nil {
		t.Errorf("what was just written is called %v", err)
	}
	doc, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), "| `session.spawned` | SessionSpawned |") {
		t.Error("an event of the catalogue is not in the document")
	}
	if err := os.WriteFile(out, doc[1:], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := document.Write(".", out, render(event.All()), true); !errors.Is(err, document.ErrStale) {
		t.Errorf("a document that differs: %v, want %v", err, document.ErrStale)
	}
}
