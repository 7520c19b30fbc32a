// Package emit is the one way to tell of an event: a line of the log, a Kubernetes Event
// and a counter, together.
package emit

import (
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/theloop-dev/the-loop/internal/event"
	"github.com/theloop-dev/the-loop/internal/text"
)

// maxNote is the longest note of a Kubernetes Event, in bytes: the API server refuses a
// longer one.
const maxNote = 1024

var total = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "theloop_events_total",
	Help: "Events of the catalogue (docs/events.md), by name and by the kind of the object that they are about.",
}, []string{"event", "kind"})

func init() { metrics.Registry.MustRegister(total) }

// Emitter tells of events in the name of one component.
type Emitter struct {
	recorder events.EventRecorder
	scheme   *runtime.Scheme
	log      logr.Logger
}

// New makes an Emitter whose Kubernetes Events are reported by component.
func New(mgr ctrl.Manager, component string, log logr.Logger) Emitter {
	return Emitter{recorder: mgr.GetEventRecorder(component), scheme: mgr.GetScheme(), log: log}
}

// Emit tells of an event about an object, of a quiet one without a Kubernetes Event; related
// is nil or another object that it concerns. The fields are names and values in turn. What
// the catalogue does not name for the event, or has no value, is left out.
func (t Emitter) Emit(obj, related client.Object, e event.Event, message string, fields ...any) {
	gvk, err := apiutil.GVKForObject(obj, t.scheme)
	if err != nil {
		t.log.Error(err, "an event is about an object of a kind that is not known", "event", e.Name)
		return
	}
	total.WithLabelValues(e.Name, gvk.Kind).Inc()
	// It may quote a harness or a git server, and the log of "the-loop up" is a terminal.
	message = text.OneLine(message)
	t.log.Info(message, line(gvk.Kind, obj, e, fields)...)
	if e.Quiet {
		return
	}
	severity := corev1.EventTypeNormal
	if e.Warning {
		severity = corev1.EventTypeWarning
	}
	// A nil pointer in an interface is not nil.
	var other runtime.Object
	if related != nil {
		other = related
	}
	t.recorder.Eventf(obj, other, severity, e.Reason(), e.Action, "%s", note(message))
}

// line are the keys and values of the log.
func line(kind string, obj client.Object, e event.Event, fields []any) []any {
	key, value := "session", strings.ToLower(kind)+"/"+obj.GetNamespace()+"/"+obj.GetName()
	switch kind {
	case "SessionMessage":
		key = "message"
	case "SessionHost":
		key, value = "host", obj.GetName()
	}
	out := []any{"event", e.Name, key, value}
	if e.Warning {
		out = append(out, "warning", true)
	}
	for i := 0; i+1 < len(fields); i += 2 {
		name, ok := fields[i].(string)
		if !ok || name == key || !e.Has(name) || empty(fields[i+1]) {
			continue
		}
		value := fields[i+1]
		if err, ok := value.(error); ok {
			value = err.Error()
		}
		out = append(out, name, value)
	}
	return out
}

// empty says of a value that there is nothing to tell. False and zero are something.
func empty(v any) bool {
	if v == nil {
		return true
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.String, reflect.Slice, reflect.Map:
		return r.Len() == 0
	case reflect.Pointer, reflect.Interface:
		return r.IsNil()
	}
	return false
}

// note is a message as it fits into a Kubernetes Event.
func note(message string) string {
	message = strings.ToValidUTF8(message, "\uFFFD")
	if len(message) <= maxNote {
		return message
	}
	cut := maxNote - len("...")
	for cut > 0 && !utf8.RuneStart(message[cut]) {
		cut--
	}
	return message[:cut] + "..."
}
