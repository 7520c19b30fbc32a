// Package bench measures what crosses packages. Figures are ratios against a
// baseline of the same run; nothing here is asserted.
package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/controllers/agent"
	"github.com/theloop-dev/the-loop/controllers/hub"
	"github.com/theloop-dev/the-loop/internal/devcluster"
	"github.com/theloop-dev/the-loop/internal/session"
	"github.com/theloop-dev/the-loop/internal/tmux"
	"github.com/theloop-dev/the-loop/test/testenv"
	"github.com/theloop-dev/the-loop/test/testenv/ground"
)

const adopted = 200

// BenchmarkAdoption measures how long an agent that has just started takes until it
// has looked at each of 200 sessions that run already, against what it must do at the
// very least: list the objects and the terminals once each.
func BenchmarkAdoption(b *testing.B) {
	ctrl.SetLogger(logr.Discard())
	f := newFixture(b)
	f.fill(b)
	b.ResetTimer()
	var took, least time.Duration
	for range b.N {
		began := time.Now()
		f.list(b)
		least += time.Since(began)
		took += f.adopt(b)
	}
	b.ReportMetric(took.Seconds()/float64(b.N), "s/adoption")
	b.ReportMetric(float64(took)/float64(least), "x-of-listing")
}

type fixture struct {
	dir     string
	cluster *devcluster.Cluster
	client  client.Client
	options agent.Options
	server  *tmux.Server
}

func newFixture(b *testing.B) *fixture {
	b.Helper()
	dir, err := os.MkdirTemp("/tmp", "loop-bench-")
	check(b, err)
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	f := &fixture{dir: dir}
	f.cluster, f.client = testenv.StartCluster(b.Context(), b, dir)
	shim := filepath.Join(ground.Programs(b, "./cmd/loop-shim"), "loop-shim")
	socket := filepath.Join(dir, "t", "s")
	f.options = agent.Options{Version: "bench", HostOptions: session.HostOptions{
		HostName: "bench", Dir: filepath.Join(dir, "agent"), Shim: shim, TmuxSocket: socket, Log: logr.Discard(),
	}}
	f.server, err = tmux.New(tmux.Config{Socket: socket})
	check(b, err)
	b.Cleanup(func() {
		if snap, err := f.server.Snapshot(context.Background()); err == nil && !snap.Epoch.IsZero() {
			_ = f.server.Shutdown(context.Background(), snap.Epoch)
		}
	})
	return f
}

// run starts an agent and returns how to stop it.
func (f *fixture) run(b *testing.B) (stop func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- agent.Run(ctx, f.cluster.Config(), f.options) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			b.Errorf("agent: %v", err)
		}
	}
}

// fill creates the sessions, waits until all are ready, and ends the programs.
func (f *fixture) fill(b *testing.B) {
	b.Helper()
	stop := f.start(b, adopted, api.HarnessSpec{Name: "custom", Binary: "/bin/sh", Custom: &api.CustomHarness{StartArgs: []string{"-c", "exec sleep 100000", "{{promptFile}}"}}})
	stop()
}

// start runs the controller and an agent with n sessions of a harness, all ready, and
// returns how to stop the programs.
func (f *fixture) start(b *testing.B, n int, harness api.HarnessSpec) (stop func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	hubDone := make(chan error, 1)
	go func() {
		hubDone <- hub.Run(ctx, f.cluster.Config(), hub.Options{Version: "bench", Log: logr.Discard()})
	}()
	stopAgent := f.run(b)
	class := &api.SessionClass{ObjectMeta: metav1.ObjectMeta{Name: "bench", Labels: map[string]string{api.DefaultClassLabel: "true"}}}
	class.Spec.Harness, class.Spec.Trust.Enabled = harness, new(false)
	class.Spec.Workspace.Root = f.dir
	check(b, f.client.Create(ctx, class))
	for i := range n {
		check(b, f.client.Create(ctx, &api.StandingSession{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("s-%d", i)}}))
	}
	for ready := 0; ready < n; time.Sleep(50 * time.Millisecond) {
		var list api.StandingSessionList
		check(b, f.client.List(ctx, &list))
		ready = 0
		for i := range list.Items {
			if meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, api.ConditionReady) {
				ready++
			}
		}
	}
	return func() {
		stopAgent()
		cancel()
		check(b, <-hubDone)
	}
}

func (f *fixture) list(b *testing.B) {
	b.Helper()
	var list api.StandingSessionList
	check(b, f.client.List(b.Context(), &list))
	snap, err := f.server.Snapshot(b.Context())
	check(b, err)
	if len(list.Items) != adopted || len(snap.Sessions) != adopted {
		b.Fatalf("%d objects and %d sessions, want %d of each", len(list.Items), len(snap.Sessions), adopted)
	}
}

// adopt starts an agent and measures until every session was reconciled without an
// error, none of them anew.
func (f *fixture) adopt(b *testing.B) time.Duration {
	b.Helper()
	before := reconciled(b)
	began := time.Now()
	stop := f.run(b)
	for reconciled(b)-before < adopted {
		if b.Context().Err() != nil {
			b.Fatal("stopped")
		}
	}
	took := time.Since(began)
	stop()
	f.list(b)
	return took
}

// reconciled counts the reconciles of standing sessions that came to an end.
func reconciled(b *testing.B) float64 {
	b.Helper()
	families, err := metrics.Registry.Gather()
	check(b, err)
	total := 0.0
	for _, fam := range families {
		if fam.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, m := range fam.GetMetric() {
			labels := m.String()
			if strings.Contains(labels, "agent-standingsession") && !strings.Contains(labels, `"error"`) {
				total += m.GetCounter().GetValue()
			}
		}
	}
	return total
}

func check(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
