package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/testenv/ground"
)

const (
	idle = 100 // sessions
	rate = 20  // messages a second
	load = 200 // messages a round
)

// BenchmarkDelivery measures how long a message to an idle session takes from its creation
// until it is typed, 20 of them a second over 100 sessions, against the creation alone, and
// how many writes of the API it costs, its creation included.
func BenchmarkDelivery(b *testing.B) {
	ctrl.SetLogger(logr.Discard())
	f := newFixture(b)
	bin := ground.Programs(b, "./test/fakeharness")
	stop := f.start(b, idle, api.HarnessSpec{Name: "claude", Binary: filepath.Join(bin, "fakeharness"), Env: []api.EnvVar{{Name: "FAKEHARNESS_HOME", Value: filepath.Join(f.dir, "harness")}}})
	defer stop()
	f.settle(b)
	b.ResetTimer()
	var typed, created []time.Duration
	writes := 0.0
	for round := range b.N {
		before := written(b)
		t, c := f.deliver(b, round)
		typed, created = append(typed, t...), append(created, c...)
		writes += written(b) - before
	}
	b.StopTimer()
	slices.Sort(typed)
	slices.Sort(created)
	b.ReportMetric(ms(typed, 50), "ms-p50")
	b.ReportMetric(ms(typed, 99), "ms-p99")
	b.ReportMetric(ms(typed, 50)/ms(created, 50), "x-of-creating")
	b.ReportMetric(writes/float64(len(typed)), "writes/message")
}

func ms(sorted []time.Duration, percent int) float64 {
	return float64(sorted[(len(sorted)-1)*percent/100].Microseconds()) / 1000
}

// settle waits until every first message has come to its end.
func (f *fixture) settle(b *testing.B) {
	b.Helper()
	for f.pending(b, idle) > 0 {
		time.Sleep(100 * time.Millisecond)
	}
}

// pending counts the messages that have not come to their end, of those that are to be there.
func (f *fixture) pending(b *testing.B, want int) int {
	b.Helper()
	var list api.SessionMessageList
	check(b, f.client.List(b.Context(), &list))
	n := max(0, want-len(list.Items))
	for i := range list.Items {
		if !list.Items[i].Status.Outcome.Final() {
			n++
		}
	}
	return n
}

// deliver says something to one session after the other, at the rate, and returns how long
// each took until it was typed and until it was created.
func (f *fixture) deliver(b *testing.B, round int) (typed, created []time.Duration) {
	b.Helper()
	began := make([]time.Time, load)
	tick := time.NewTicker(time.Second / rate)
	defer tick.Stop()
	for i := range load {
		<-tick.C
		m := &api.SessionMessage{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("m-%d-%d", round, i)},
			Spec:       api.SessionMessageSpec{SessionRef: api.SessionReference{Kind: api.KindStandingSession, Name: fmt.Sprintf("s-%d", i%idle)}, Text: "hello"},
		}
		began[i] = time.Now()
		check(b, f.client.Create(b.Context(), m))
		created = append(created, time.Since(began[i]))
	}
	for f.pending(b, 0) > 0 {
		time.Sleep(100 * time.Millisecond)
	}
	for i := range load {
		m := &api.SessionMessage{}
		check(b, f.client.Get(context.WithoutCancel(b.Context()), client.ObjectKey{Namespace: "default", Name: fmt.Sprintf("m-%d-%d", round, i)}, m))
		if m.Status.Outcome != api.OutcomeSubmitted {
			b.Fatalf("message %s is %s/%s", m.Name, m.Status.Outcome, m.Status.Reason)
		}
		typed = append(typed, m.Status.DeliveredTime.Sub(began[i]))
	}
	return typed, created
}

// written counts the writes that this process, in which everything runs, sent to the API.
func written(b *testing.B) float64 {
	b.Helper()
	families, err := metrics.Registry.Gather()
	check(b, err)
	total := 0.0
	for _, fam := range families {
		if fam.GetName() != "rest_client_requests_total" {
			continue
		}
		for _, m := range fam.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "method" && slices.Contains([]string{"POST", "PUT", "PATCH", "DELETE"}, l.GetValue()) {
					total += m.GetCounter().GetValue()
				}
			}
		}
	}
	return total
}
