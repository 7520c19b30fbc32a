// Command events writes docs/events.md: the catalogue of what is told about sessions.
// `make docs` runs it.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/theloop-dev/the-loop/hack/internal/document"
	"github.com/theloop-dev/the-loop/internal/event"
)

func main() {
	root := flag.String("root", ".", "the checkout")
	out := flag.String("out", "docs/events.md", "the document, from the root unless absolute")
	check := flag.Bool("check", false, "write nothing, and fail when the document is out of date")
	flag.Parse()
	if err := document.Write(*root, *out, render(event.All()), *check); err != nil {
		fmt.Fprintln(os.Stderr, "events:", err)
		os.Exit(1)
	}
}

const head = `<!-- Written by hack/events from internal/event: run make docs. -->

# Events

What is told about sessions. Each event is a line of the log of the program that tells it (with ` + "`event`, the `session`" + ` and the fields below;
what is empty is left out), a Kubernetes Event of the object (` + "`kubectl get events`, `kubectl describe`" + `) and a count in
` + "`theloop_events_total{event,kind}`" + ` (` + "`--metrics-address`" + `). **W** marks warnings, **Q** what has no Kubernetes Event because the status
of the message says it. None carries what a message or a prompt says.

An event is told once for what happened, and after a crash of the program that tells it at most once more. Kubernetes Events
of one kind about one object that follow each other closely are counted in one.

Those named ` + "`host.*`" + ` are about the SessionHost (in the namespace ` + "`default`" + `; the log has ` + "`host`" + ` instead of ` + "`session`" + `).
What happens to both kinds of session has, of standing ones, the name ` + "`standing.*`" + ` where there is one, else the one of work items.
`

// render writes the document.
func render(all []event.Event) []byte {
	var b bytes.Buffer
	b.WriteString(head)
	group := ""
	for _, e := range all {
		if what, _, _ := strings.Cut(e.Name, "."); what != group {
			group = what
			fmt.Fprintf(&b, "\n## %s\n\n| event | reason | | fields | told when |\n|---|---|---|---|---|\n", group)
		}
		warning := ""
		switch {
		case e.Warning:
			warning = "**W**"
		case e.Quiet:
			warning = "**Q**"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", e.Name, e.Reason(), warning, fields(e), e.Help)
	}
	return b.Bytes()
}

func fields(e event.Event) string {
	var out []string
	for _, f := range e.Fields {
		out = append(out, "`"+f+"`")
	}
	return strings.Join(out, ", ")
}
