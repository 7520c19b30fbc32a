package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/text"
	"github.com/theloop-dev/the-loop/test/fakeharness/faketest"
)

// stories is how many violations are told in full.
const stories = 8

// collect joins what was sent with what is stored and what harnesses logged.
func (s *stage) collect(ctx context.Context, sent []Message) ([]Message, []Submit, map[string]*api.SessionMessage, error) {
	var list api.SessionMessageList
	if err := s.Client.List(ctx, &list, client.InNamespace(s.Namespace)); err != nil {
		return nil, nil, nil, err
	}
	objects := map[string]*api.SessionMessage{}
	for i := range list.Items {
		objects[list.Items[i].Name] = &list.Items[i]
	}
	messages := slices.Clone(sent)
	for i := range messages {
		messages[i].Deleted = s.deleted[messages[i].Name]
		if o := objects[messages[i].Name]; o != nil {
			messages[i].Stored, messages[i].Outcome = true, o.Status.Outcome
		}
	}
	for _, o := range objects {
		if o.Spec.Source.Type == api.SourceBoot {
			body, _ := text.Sanitize(o.Spec.Text)
			messages = append(messages, Message{
				Name: o.Name, Session: o.Spec.SessionRef.Kind + "/" + o.Spec.SessionRef.Name, Text: text.BootFrame(body), Stored: true, Outcome: o.Status.Outcome,
			})
		}
	}
	names := map[string]string{}
	for _, obj := range s.sessions {
		names[string(obj.GetUID())] = key(obj)
	}
	return messages, submits(s.Log.All(), names), objects, nil
}

// submits are the texts that harnesses took, with the session of each: a process says at
// its start which one it is of.
func submits(log []faketest.Event, names map[string]string) []Submit {
	of := map[int]string{}
	var out []Submit
	for _, e := range log {
		switch e.Event {
		case "started":
			of[e.PID] = names[e.UID]
		case "submit":
			out = append(out, Submit{e.Time, of[e.PID], e.Text})
		}
	}
	return out
}

// table is what a run came to.
func (s *stage) table(o Options, messages []Message, submits []Submit, violations []Violation, took time.Duration) string {
	var b strings.Builder
	outcomes := map[api.MessageOutcome]int{}
	for _, m := range messages {
		outcomes[m.Outcome]++
	}
	fmt.Fprintf(&b, "\n%d messages (those of starts included) to %d sessions, %d submits, in %s\n", len(messages), len(s.sessions), len(submits), took.Round(time.Second))
	for _, k := range slices.Sorted(maps.Keys(outcomes)) {
		fmt.Fprintf(&b, "  %-38s %6d\n", k, outcomes[k])
	}
	b.WriteString("what went wrong meanwhile\n")
	s.mu.Lock()
	for _, k := range slices.Sorted(maps.Keys(s.count)) {
		fmt.Fprintf(&b, "  %-38s %6d\n", k, s.count[k])
	}
	s.mu.Unlock()
	b.WriteString("what must be 0\n")
	for _, f := range Faults {
		n := 0
		for _, v := range violations {
			if v.Fault == f {
				n++
			}
		}
		fmt.Fprintf(&b, "  %-38s %6d\n", f, n)
	}
	fmt.Fprintf(&b, "again: make chaos ARGS=%q\n", o.String())
	return b.String()
}

// story is all that is known of the messages of a violation.
func (s *stage) story(v Violation, messages []Message, objects map[string]*api.SessionMessage) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n== %s: %s\n", v.Fault, v.Detail)
	log, files := s.Log.All(), s.journals()
	var agents []string
	for _, a := range s.agents {
		agents = append(agents, strings.Split(string(a.Err.Contents()), "\n")...)
	}
	for _, m := range messages {
		if !slices.Contains(v.Messages, m.Name) {
			continue
		}
		fmt.Fprintf(&b, "-- %s of sender %q, number %d, for %s\n", m.Name, m.Sender, m.Number, m.Session)
		needles := []string{m.Name}
		if o := objects[m.Name]; o != nil {
			status, _ := json.Marshal(o.Status)
			fmt.Fprintf(&b, "   object: uid %s, created %s, %s\n", o.UID, o.CreationTimestamp.UTC().Format(time.TimeOnly), status)
			needles = append(needles, string(o.UID), o.Status.TextDigest)
		}
		for _, e := range log {
			if m.Mark != "" && strings.Contains(e.Text, m.Mark) {
				fmt.Fprintf(&b, "   harness %d: %s %s %.120q\n", e.PID, e.Time.Format("15:04:05.000"), e.Event, e.Text)
			}
		}
		for name, lines := range files {
			grep(&b, name, lines, needles)
		}
		grep(&b, "agent", agents, needles)
	}
	return b.String()
}

// grep writes the lines that have one of the needles in them.
func grep(b *strings.Builder, name string, lines, needles []string) {
	for _, l := range lines {
		if slices.ContainsFunc(needles, func(n string) bool { return n != "" && strings.Contains(l, n) }) {
			fmt.Fprintf(b, "   %s: %.400s\n", name, l)
		}
	}
}

// journals are those of hooks and of deliveries.
func (s *stage) journals() map[string][]string {
	out := map[string][]string{}
	for _, pattern := range []string{"sessions/*/*.jsonl", "sessions/*/delivery.json"} {
		files, _ := filepath.Glob(filepath.Join(s.StateDir, pattern))
		for _, f := range files {
			b, _ := os.ReadFile(f)
			name, _ := filepath.Rel(s.StateDir, f)
			out[name] = strings.Split(string(b), "\n")
		}
	}
	return out
}
