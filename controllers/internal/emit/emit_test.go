package emit

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/event"
)

func TestEmit(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var lines []string
	recorder := events.NewFakeRecorder(8)
	emitter := Emitter{recorder: recorder, scheme: scheme, log: funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})}
	s := &api.StandingSession{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "fox"}}
	m := &api.SessionMessage{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}}

	emitter.Emit(s, m, event.StandingSpawnFailed, "no 100% luck", "harness", "", "error", errors.New("why"), "will_retry", false, "text", "secret", "tmux_target", nil)
	want := `"level"=0 "msg"="no 100% luck" "event"="standing.spawn_failed" "session"="standingsession/ns/fox" "warning"=true "error"="why" "will_retry"=false`
	if len(lines) != 1 || lines[0] != want {
		t.Errorf("the log has\n%s, want\n%s", strings.Join(lines, "\n"), want)
	}
	if got, want := <-recorder.Events, "Warning StandingSpawnFailed no 100% luck"; got != want {
		t.Errorf("the Kubernetes Event is %q, want %q", got, want)
	}
	lines = nil
	emitter.Emit(m, nil, event.DispatchQueued, "quiet")
	if len(recorder.Events) != 0 || len(lines) != 1 {
		t.Errorf("an event that is quiet has %d Kubernetes Events and %d lines, want none and one", len(recorder.Events), len(lines))
	}
	lines = nil
	emitter.Emit(m, nil, event.DispatchDropped, "a\x1b[31m\nb\u009b")
	if got, want := <-recorder.Events, "Warning DispatchDropped a\uFFFD[31m b\uFFFD"; got != want || !strings.Contains(lines[0], "\"msg\"=\"a\uFFFD[31m b\uFFFD\"") {
		t.Errorf("what reaches a terminal is %q and %q, want %q", got, lines[0], want)
	}
	if got, want := counted(t), `label:{name:"event" value:"standing.spawn_failed"} label:{name:"kind" value:"StandingSession"} counter:{value:1`; !strings.Contains(got, want) {
		t.Errorf("the counters are\n%s, want\n%s", got, want)
	}

	lines = nil
	emitter.Emit(m, nil, event.DispatchDropped, "no session", "message", "m", "reason", "SessionNotFound")
	want = `"level"=0 "msg"="no session" "event"="dispatch.dropped" "message"="sessionmessage/ns/m" "warning"=true "reason"="SessionNotFound"`
	if len(lines) != 1 || lines[0] != want {
		t.Errorf("the log has\n%s, want\n%s", strings.Join(lines, "\n"), want)
	}
}

// counted are the counters, as controller-runtime serves them.
func counted(t *testing.T) string {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "theloop_events_total" {
			return strings.ReplaceAll(f.String(), "  ", " ")
		}
	}
	return "none"
}

func TestNote(t *testing.T) {
	for name, message := range map[string]string{"long": strings.Repeat("ü", 600), "broken": strings.Repeat("\xff", 400), "short": "short"} {
		if got := note(message); len(got) > maxNote || !utf8.ValidString(got) || name == "short" && got != message {
			t.Errorf("the %s note is %q", name, got)
		}
	}
}

func TestEmpty(t *testing.T) {
	var none *int
	for _, v := range []any{nil, "", []string{}, none, error(nil)} {
		if !empty(v) {
			t.Errorf("%#v is called something", v)
		}
	}
	for _, v := range []any{false, 0, "x", []string{""}} {
		if empty(v) {
			t.Errorf("%#v is called nothing", v)
		}
	}
}
