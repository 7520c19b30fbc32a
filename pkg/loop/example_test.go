package loop_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/pkg/loop"
	"github.com/theloop-dev/the-loop/test/testenv/apiserver"
)

// config is the cluster of the examples: a real API server, and one host on which
// everything becomes as wanted.
var config *rest.Config

// assets asks ground for the control plane; it must not need a test to be running.
type assets struct{ testing.TB }

func (assets) Helper()                           {}
func (assets) Fatal(args ...any)                 { log.Fatal(args...) }
func (assets) Fatalf(format string, args ...any) { log.Fatalf(format, args...) }

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	env := apiserver.New(assets{})
	var err error
	if config, err = env.Start(); err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); host(ctx) }()
	code := m.Run()
	stop()
	<-ended
	if err := env.Stop(); err != nil {
		log.Print(err)
	}
	return code
}

// host plays controller and agent: sessions become as wanted, messages are taken.
func host(ctx context.Context) {
	c, err := loop.New(config, loop.Options{})
	if err != nil {
		log.Fatal(err)
	}
	k := c.Objects()
	sessions, err := k.Watch(ctx, &api.StandingSessionList{})
	if err != nil {
		log.Fatal(err)
	}
	messages, err := k.Watch(ctx, &api.SessionMessageList{})
	if err != nil {
		log.Fatal(err)
	}
	defer sessions.Stop()
	defer messages.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-sessions.ResultChan():
			if s, ok := e.Object.(*api.StandingSession); ok && e.Type != watch.Deleted {
				obey(ctx, k, s)
			}
		case e := <-messages.ResultChan():
			if m, ok := e.Object.(*api.SessionMessage); ok && e.Type == watch.Added && m.Status.Outcome == "" {
				m.Status.Sequence, m.Status.Outcome, m.Status.Reason = 1, api.OutcomeSubmitted, api.ReasonPromptTaken
				_ = k.Status().Update(ctx, m)
			}
		}
	}
}

func obey(ctx context.Context, k client.Client, s *api.StandingSession) {
	ready := meta.FindStatusCondition(s.Status.Conditions, api.ConditionReady)
	if ready != nil && ready.ObservedGeneration == s.Generation || s.Spec.HostName == "" {
		return
	}
	status, reason := metav1.ConditionTrue, api.ReasonRunning
	if s.Spec.State == api.SessionStateStopped {
		status, reason = metav1.ConditionFalse, api.ReasonStopped
	}
	for kind, status := range map[string]metav1.ConditionStatus{
		api.ConditionHostAvailable: metav1.ConditionTrue, api.ConditionSessionRunning: status, api.ConditionReady: metav1.ConditionTrue,
	} {
		meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "as wanted", ObservedGeneration: s.Generation})
	}
	_ = k.Status().Update(ctx, s)
}

func connect(actor string) *loop.Client {
	c, err := loop.New(config, loop.Options{Actor: actor})
	if err != nil {
		log.Fatal(err)
	}
	return c
}

// onHost is what a session of the examples is to be.
func onHost() (spec api.StandingSessionSpec) {
	spec.HostName = "build-1"
	spec.Prompt = "Watch the work in flight."
	return spec
}

// A session is created, which waits until it runs, spoken to, and deleted.
func Example() {
	ctx, c := context.Background(), connect("ada")

	r, err := c.Standing().Create(ctx, "supervisor", onHost())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Name, r.Outcome)

	m, err := c.Standing().Say(ctx, "supervisor", loop.Saying{Text: "How are you getting on?"})
	if err != nil {
		log.Fatal(err)
	}
	if err := c.Messages().Await(ctx, m); err != nil {
		log.Fatal(err) // not taken, or not within the timeout
	}
	fmt.Println("said:", m.Status.Outcome)

	r, err = c.Standing().Delete(ctx, "supervisor")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Name, r.Outcome)
	// Output:
	// supervisor started
	// said: Submitted
	// supervisor deleted
}

// What does not run is not spoken to: a message starts no session.
func ExampleStanding_Say() {
	ctx, c := context.Background(), connect("ada")
	spec := onHost()
	spec.State = api.SessionStateStopped
	if _, err := c.Standing().Create(ctx, "quiet", spec); err != nil {
		log.Fatal(err)
	}
	_, err := c.Standing().Say(ctx, "quiet", loop.Saying{Text: "Are you there?"})
	fmt.Println(errors.Is(err, loop.ErrNotRunning), err)
	// Output:
	// true quiet does not run, and a message starts no session: start it with the-loop standing start quiet
}

// A key makes saying idempotent: a retry after an answer that was lost says it once.
func ExampleSaying() {
	ctx, c := context.Background(), connect("ci")
	if _, err := c.Standing().Create(ctx, "builder", onHost()); err != nil {
		log.Fatal(err)
	}
	first, err := c.Standing().Say(ctx, "builder", loop.Saying{Text: "The build is red.", Key: "build 17 failed"})
	if err != nil {
		log.Fatal(err)
	}
	again, err := c.Standing().Say(ctx, "builder", loop.Saying{Text: "The build is red.", Key: "build 17 failed"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(first.UID == again.UID)
	// Output:
	// true
}

// Sessions of work items are named by reference; the objects themselves are there too.
func ExampleSessions() {
	ctx, c := context.Background(), connect("ada")
	c2, err := loop.New(config, loop.Options{NoWait: true})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := c2.Sessions().Start(ctx, "github:octo/repo#15", api.WorkItemSessionSpec{Prompt: "Look into it."}); err != nil {
		log.Fatal(err)
	}
	s, err := c.Sessions().Get(ctx, "github:octo/repo#15")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Name, loop.RowOf(s).Running)
	e, err := c.Explain(ctx, s)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(e.Blocked().Name)

	var list api.WorkItemSessionList
	if err := c.Objects().List(ctx, &list, client.InNamespace("default")); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(list.Items))
	// Output:
	// github-octo-repo-15 False
	// class
	// 1
}

// Cancelling the context ends the wait, and takes back what was created and did not start.
func ExampleStanding_Create() {
	c := connect("ada")
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	// Nobody binds this one to a host.
	_, err := c.Standing().Create(ctx, "homeless", api.StandingSessionSpec{})
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	_, err = c.Standing().Get(context.Background(), "homeless")
	fmt.Println(errors.Is(err, loop.ErrNotFound))
	// Output:
	// true
	// true
}
