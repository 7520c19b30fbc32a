package agent

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/controllers/internal/kinds"
)

var (
	stageSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "theloop_message_stage_seconds",
		Help: "How long finished messages took to each stage from the one before: accepted (a place in the queue; since the creation, " +
			"which is known to the second), pasted (since accepted), submitted (the harness's own word; since pasted).",
		Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200},
	}, []string{"stage"})
	messagesTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "theloop_messages_total",
		Help: "Messages that came to their end, by outcome and reason. Only Submitted is success.",
	}, []string{"outcome", "reason"})
	sessionsDesc = prometheus.NewDesc("theloop_sessions",
		"Sessions of this host by kind and by what their harness does: Idle, Busy, AwaitingInput, Unknown, or NotRunning.", []string{"kind", "activity"}, nil)
	residentDesc = prometheus.NewDesc("theloop_terminal_server_resident_bytes",
		"Memory of the terminal server's process.", nil, nil)
	budgetDesc = prometheus.NewDesc("theloop_terminal_server_history_budget_bytes",
		"What the scrollback of all terminals can come to at most: their number by the lines of --history-limit by what a line takes at most.", nil, nil)
	pendingDesc = prometheus.NewDesc("theloop_messages_pending",
		"Messages for sessions of this host that have not come to their end, by outcome: Queued or Held.", []string{"outcome"}, nil)
)

func init() { metrics.Registry.MustRegister(stageSeconds, messagesTotal) }

// count counts a message that has come to its end, and how long each stage took.
func count(m *api.SessionMessage) {
	st := m.Status
	messagesTotal.WithLabelValues(string(st.Outcome), st.Reason).Inc()
	created := metav1.NewMicroTime(m.CreationTimestamp.Time)
	observe("accepted", &created, st.AcceptedTime)
	observe("pasted", st.AcceptedTime, st.DeliveredTime)
	if st.Evidence != nil {
		observe("submitted", st.DeliveredTime, &st.Evidence.Time)
	}
}

func observe(stage string, from, to *metav1.MicroTime) {
	if from != nil && to != nil {
		// The clocks of two machines may differ.
		stageSeconds.WithLabelValues(stage).Observe(max(0, to.Sub(from.Time)).Seconds())
	}
}

// census counts what the agent's cache has when it is asked for.
type census struct {
	client client.Reader
	// server is the memory of the terminal server.
	server func() (resident, budget int64, err error)
}

// Describe implements prometheus.Collector.
func (census) Describe(ch chan<- *prometheus.Desc) {
	ch <- sessionsDesc
	ch <- pendingDesc
	ch <- residentDesc
	ch <- budgetDesc
}

// censusTimeout bounds a count: the cache is in memory, but may not have synced yet.
const censusTimeout = 2 * time.Second

// Collect implements prometheus.Collector.
func (c census) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), censusTimeout)
	defer cancel()
	c.collectServer(ch)
	for _, k := range kinds.All {
		counts := map[string]int{}
		if err := k.Each(ctx, c.client, func(o kinds.Session) { counts[activityOf(o.HostedStatus())]++ }); err != nil {
			ch <- prometheus.NewInvalidMetric(sessionsDesc, err)
			return
		}
		for activity, n := range counts {
			ch <- prometheus.MustNewConstMetric(sessionsDesc, prometheus.GaugeValue, float64(n), k.Name, activity)
		}
	}
	var list api.SessionMessageList
	if err := c.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		ch <- prometheus.NewInvalidMetric(pendingDesc, err)
		return
	}
	counts := map[api.MessageOutcome]int{api.OutcomeQueued: 0, api.OutcomeHeld: 0}
	for i := range list.Items {
		switch o := list.Items[i].Status.Outcome; {
		case o == api.OutcomeHeld:
			counts[o]++
		case !o.Final():
			counts[api.OutcomeQueued]++
		}
	}
	for outcome, n := range counts {
		ch <- prometheus.MustNewConstMetric(pendingDesc, prometheus.GaugeValue, float64(n), string(outcome))
	}
}

// collectServer tells nothing of a server that runs elsewhere.
func (c census) collectServer(ch chan<- prometheus.Metric) {
	resident, budget, err := c.server()
	if err != nil {
		return
	}
	ch <- prometheus.MustNewConstMetric(residentDesc, prometheus.GaugeValue, float64(resident))
	ch <- prometheus.MustNewConstMetric(budgetDesc, prometheus.GaugeValue, float64(budget))
}

// activityOf is what the harness of a session does, in one word.
func activityOf(st *api.HostedSessionStatus) string {
	if st.Activity == nil {
		return "NotRunning"
	}
	return string(st.Activity.State)
}
