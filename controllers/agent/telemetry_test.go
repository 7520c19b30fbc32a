package agent

import (
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

// finished is a message that waited 250 ms and was then taken after 40 ms.
func finished(change ...func(*api.SessionMessage)) *api.SessionMessage {
	created := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	at := func(ms int) *metav1.MicroTime {
		return new(metav1.NewMicroTime(created.Add(time.Duration(ms) * time.Millisecond)))
	}
	m := &api.SessionMessage{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", CreationTimestamp: metav1.NewTime(created)},
		Spec:       api.SessionMessageSpec{SessionRef: api.SessionReference{Kind: api.KindStandingSession, Name: "fox"}, Text: "a secret"},
		Status: api.SessionMessageStatus{
			Sequence: 7, Outcome: api.OutcomeSubmitted, Reason: api.ReasonPromptTaken,
			AcceptedTime: at(500), DeliveredTime: at(750), FinishedTime: at(790),
			Evidence: &api.MessageEvidence{Type: "UserPromptSubmit", Time: *at(790)},
		},
	}
	for _, c := range change {
		c(m)
	}
	return m
}

var _ = Describe("the traces of an agent", func() {
	// told sends the delivery of a message to a receiver and returns what that was told.
	told := func(m *api.SessionMessage) (spans []*otlp.Span, raw string) {
		received := make(chan []byte, 8)
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			defer GinkgoRecover()
			Expect(r.URL.Path).To(Equal("/v1/traces"))
			body, err := io.ReadAll(r.Body)
			Expect(err).NotTo(HaveOccurred())
			received <- body
		}))
		defer server.Close()
		t, closing, err := openTraces(context.Background(), server.URL, "v1", "host-1", logr.Discard())
		Expect(err).NotTo(HaveOccurred())
		t.delivery(m)
		closing()
		close(received)
		for body := range received {
			var r collector.ExportTraceServiceRequest
			Expect(proto.Unmarshal(body, &r)).To(Succeed())
			raw += string(body)
			for _, rs := range r.ResourceSpans {
				Expect(rs.Resource.String()).To(And(ContainSubstring("theloop-agent"), ContainSubstring("host-1")))
				for _, ss := range rs.ScopeSpans {
					spans = append(spans, ss.Spans...)
				}
			}
		}
		return spans, raw
	}
	seconds := func(s *otlp.Span) float64 { return float64(s.EndTimeUnixNano-s.StartTimeUnixNano) / 1e9 }

	It("have a span for each stage of a delivery, and nothing of its text", func() {
		spans, raw := told(finished())
		Expect(spans).To(HaveLen(3))
		Expect([]string{spans[0].Name, spans[1].Name, spans[2].Name}).To(Equal([]string{"wait in the queue", "wait for evidence", "deliver message"}))
		Expect(seconds(spans[0])).To(BeNumerically("~", 0.25, 1e-6))
		Expect(seconds(spans[1])).To(BeNumerically("~", 0.04, 1e-6))
		Expect(seconds(spans[2])).To(BeNumerically("~", 0.29, 1e-6))
		Expect(spans[0].ParentSpanId).To(Equal(spans[2].SpanId))
		Expect(spans[2].Status.GetCode()).To(Equal(otlp.Status_STATUS_CODE_UNSET))
		Expect(raw).NotTo(ContainSubstring("secret"))
	})

	It("go on with the trace of who sent the message", func() {
		const trace = "0af7651916cd43dd8448eb211c80319c"
		spans, _ := told(finished(func(m *api.SessionMessage) {
			m.Annotations = map[string]string{"traceparent": "00-" + trace + "-b7ad6b7169203331-01"}
		}))
		for _, s := range spans {
			Expect(hex.EncodeToString(s.TraceId)).To(Equal(trace))
		}
		Expect(hex.EncodeToString(spans[len(spans)-1].ParentSpanId)).To(Equal("b7ad6b7169203331"))
	})

	It("call nothing a success that was not submitted", func() {
		spans, _ := told(finished(func(m *api.SessionMessage) {
			m.Status.Outcome, m.Status.Reason, m.Status.DeliveredTime, m.Status.Evidence = api.OutcomeRefused, api.ReasonExpired, nil, nil
		}))
		Expect(spans).To(HaveLen(1))
		Expect(spans[0].Status.GetCode()).To(Equal(otlp.Status_STATUS_CODE_ERROR))
		Expect(spans[0].Status.GetMessage()).To(Equal("Refused: Expired"))
	})

	It("are off without an endpoint", func() {
		t, closing, err := openTraces(context.Background(), "", "v1", "h", logr.Discard())
		Expect(err).NotTo(HaveOccurred())
		t.delivery(finished())
		closing()
	})

	It("end with the agent, also when nobody receives them", func() {
		gone := httptest.NewServer(nil)
		gone.Close()
		var lines []string
		log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
		t, closing, err := openTraces(context.Background(), gone.URL, "v1", "h", log)
		Expect(err).NotTo(HaveOccurred())
		t.delivery(finished())
		closing()
		Expect(strings.Join(lines, "")).To(ContainSubstring("traces are lost"))
	})

	DescribeTable("refuse what is no URL, with the form of one", func(endpoint string) {
		_, _, err := openTraces(context.Background(), endpoint, "v1", "h", logr.Discard())
		Expect(err).To(MatchError(ContainSubstring("http://127.0.0.1:4318")))
	},
		Entry("a host alone", "127.0.0.1:4318"),
		Entry("another protocol", "grpc://127.0.0.1:4317"),
		Entry("no host", "http:///v1/traces"),
	)
})

var _ = Describe("the metrics of an agent", func() {
	It("count each message that comes to its end, and how long its stages took", func() {
		count(finished())
		count(finished(func(m *api.SessionMessage) {
			m.Status = api.SessionMessageStatus{Outcome: api.OutcomeDropped, Reason: api.ReasonRecalled}
		}))
		Expect(testutil.ToFloat64(messagesTotal.WithLabelValues("Submitted", "PromptTaken"))).To(BeEquivalentTo(1))
		Expect(testutil.ToFloat64(messagesTotal.WithLabelValues("Dropped", "Recalled"))).To(BeEquivalentTo(1))
		for stage, seconds := range map[string]float64{"accepted": 0.5, "pasted": 0.25, "submitted": 0.04} {
			var got dto.Metric
			Expect(stageSeconds.WithLabelValues(stage).(prometheus.Metric).Write(&got)).To(Succeed())
			Expect(got.GetHistogram().GetSampleCount()).To(BeEquivalentTo(1), stage)
			Expect(got.GetHistogram().GetSampleSum()).To(BeNumerically("~", seconds, 1e-9), stage)
		}
	})

	It("tell what harnesses do and what waits", func() {
		scheme := runtime.NewScheme()
		Expect(api.AddToScheme(scheme)).To(Succeed())
		standing := func(name string, state api.ActivityState) *api.StandingSession {
			s := &api.StandingSession{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
			if state != "" {
				s.Status.Activity = &api.Activity{State: state}
			}
			return s
		}
		message := func(name string, o api.MessageOutcome) *api.SessionMessage {
			return &api.SessionMessage{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Status: api.SessionMessageStatus{Outcome: o}}
		}
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
			standing("a", "Busy"), standing("b", "Busy"), standing("c", ""),
			message("1", ""), message("2", api.OutcomeHeld), message("3", api.OutcomeSubmitted), message("4", api.OutcomeQueued)).Build()
		server := func() (int64, int64, error) { return 4096, 1 << 20, nil }
		var _ prometheus.Collector = census{c, server}
		Expect(testutil.CollectAndCompare(census{c, server}, strings.NewReader(`
# HELP theloop_messages_pending Messages for sessions of this host that have not come to their end, by outcome: Queued or Held.
# TYPE theloop_messages_pending gauge
theloop_messages_pending{outcome="Held"} 1
theloop_messages_pending{outcome="Queued"} 2
# HELP theloop_sessions Sessions of this host by kind and by what their harness does: Idle, Busy, AwaitingInput, Unknown, or NotRunning.
# TYPE theloop_sessions gauge
theloop_sessions{activity="Busy",kind="StandingSession"} 2
theloop_sessions{activity="NotRunning",kind="StandingSession"} 1
# HELP theloop_terminal_server_history_budget_bytes What the scrollback of all terminals can come to at most: their number by the lines of --history-limit by what a line takes at most.
# TYPE theloop_terminal_server_history_budget_bytes gauge
theloop_terminal_server_history_budget_bytes 1.048576e+06
# HELP theloop_terminal_server_resident_bytes Memory of the terminal server's process.
# TYPE theloop_terminal_server_resident_bytes gauge
theloop_terminal_server_resident_bytes 4096
`))).To(Succeed())
	})
})
