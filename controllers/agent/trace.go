package agent

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

// traces tells a collector of every delivery, as one span with a span for each of its
// stages. The zero traces tells nobody.
type traces struct{ tracer trace.Tracer }

// openTraces sends spans to the OTLP receiver (HTTP, protobuf) at endpoint, a URL whose path
// is /v1/traces when it has none; "" is no receiver. One that is away costs spans and a line
// of the log, and nothing else. closing sends what is left, within flushTime.
func openTraces(ctx context.Context, endpoint, version, host string, log logr.Logger) (t traces, closing func(), err error) {
	if endpoint == "" {
		return traces{}, func() {}, nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return traces{}, nil, fmt.Errorf("--otlp-endpoint %q is not the URL of a receiver: it has the form http://127.0.0.1:4318", endpoint)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/traces"
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(u.String()))
	if err != nil {
		return traces{}, nil, fmt.Errorf("--otlp-endpoint %q: %w", endpoint, err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Info("traces are lost", "reason", err.Error()) }))
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(resource.NewSchemaless(
		attribute.String("service.name", "theloop-agent"), attribute.String("service.version", version), attribute.String("host.name", host))))
	return traces{provider.Tracer("github.com/theloop-dev/the-loop")}, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
		defer cancel()
		_ = provider.Shutdown(ctx)
	}, nil
}

// flushTime bounds the sending of the last spans.
const flushTime = 2 * time.Second

// delivery tells of a message that has come to its end. A message with the annotation
// traceparent (W3C Trace Context) continues the trace of who sent it. No span has the text.
func (t traces) delivery(m *api.SessionMessage) {
	st := m.Status
	if t.tracer == nil || st.FinishedTime == nil {
		return
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier(m.Annotations))
	begin := m.CreationTimestamp.Time
	if st.AcceptedTime != nil && st.AcceptedTime.Time.Sub(begin) < time.Second {
		begin = st.AcceptedTime.Time // a creation timestamp has seconds
	}
	ctx, root := t.tracer.Start(ctx, "deliver message", trace.WithTimestamp(begin), trace.WithAttributes(
		attribute.String("k8s.namespace.name", m.Namespace), attribute.String("theloop.message", m.Name),
		attribute.String("theloop.session.kind", m.Spec.SessionRef.Kind), attribute.String("theloop.session.name", m.Spec.SessionRef.Name),
		attribute.String("theloop.source", string(m.Spec.Source.Type)), attribute.Int64("theloop.sequence", st.Sequence),
		attribute.String("theloop.outcome", string(st.Outcome)), attribute.String("theloop.reason", st.Reason)))
	if st.Outcome != api.OutcomeSubmitted {
		root.SetStatus(codes.Error, string(st.Outcome)+": "+st.Reason)
	}
	t.stage(ctx, "wait in the queue", st.AcceptedTime, st.DeliveredTime)
	t.stage(ctx, "wait for evidence", st.DeliveredTime, st.FinishedTime)
	root.End(trace.WithTimestamp(st.FinishedTime.Time))
}

func (t traces) stage(ctx context.Context, name string, from, to *metav1.MicroTime) {
	if from == nil || to == nil {
		return
	}
	_, span := t.tracer.Start(ctx, name, trace.WithTimestamp(from.Time))
	span.End(trace.WithTimestamp(to.Time))
}
