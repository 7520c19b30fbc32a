package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/core"
	"github.com/theloop-dev/the-loop/test/testenv/apiserver"
)

func TestCore(t *testing.T) {
	RegisterFailHandler(Fail)
	ctrl.SetLogger(GinkgoLogr)
	SetDefaultEventuallyTimeout(30 * time.Second)
	RunSpecs(t, "internal/core")
}

// k8s is a client of a real API server without controller and agent: the specs play
// their part.
var k8s client.WithWatch

var _ = BeforeSuite(func() {
	env := apiserver.New(GinkgoTB())
	cfg, err := env.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	scheme, err := core.Scheme()
	Expect(err).NotTo(HaveOccurred())
	cfg.QPS = -1
	k8s, err = client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
})

var namespaces atomic.Int64

// room is a namespace of its own, and what works in it.
type room struct {
	*core.Core
	name string
}

func newRoom() *room {
	GinkgoHelper()
	name := fmt.Sprintf("room-%d-%d", GinkgoParallelProcess(), namespaces.Add(1))
	Expect(k8s.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	return &room{name: name, Core: &core.Core{Client: k8s, Namespace: name, Actor: "ada", Timeout: 30 * time.Second}}
}

// condition of a session, about its newest spec.
func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// live are the conditions of a session that runs.
func live() []metav1.Condition {
	return []metav1.Condition{
		condition(api.ConditionScheduled, metav1.ConditionTrue, api.ReasonBound, "bound"),
		condition(api.ConditionHostAvailable, metav1.ConditionTrue, api.ReasonLeaseRenewed, "alive"),
		condition(api.ConditionWorkspaceReady, metav1.ConditionTrue, api.ReasonDirectoryPresent, "there"),
		condition(api.ConditionSessionRunning, metav1.ConditionTrue, api.ReasonRunning, "the session runs"),
		condition(api.ConditionAcceptingInput, metav1.ConditionTrue, api.ReasonIdle, "at its prompt"),
		condition(api.ConditionReady, metav1.ConditionTrue, api.ReasonRunning, "the session runs"),
	}
}

// down are the conditions of a session that does not run, for this reason.
func down(reason, message string) []metav1.Condition {
	ready := metav1.ConditionFalse
	if reason == api.ReasonStopped || reason == api.ReasonCleanedUp {
		ready = metav1.ConditionTrue
	}
	return []metav1.Condition{
		condition(api.ConditionHostAvailable, metav1.ConditionTrue, api.ReasonLeaseRenewed, "alive"),
		condition(api.ConditionSessionRunning, metav1.ConditionFalse, reason, message),
		condition(api.ConditionAcceptingInput, metav1.ConditionFalse, api.ReasonNotRunning, "no harness runs"),
		condition(api.ConditionReady, ready, reason, message),
	}
}

// says writes what the agent and the controller say of a session, about its newest spec.
func says(s core.Session, conditions []metav1.Condition, more ...func(*api.HostedSessionStatus)) {
	GinkgoHelper()
	Eventually(func() error { return trySays(context.Background(), s, conditions, more...) }).Should(Succeed())
}

func trySays(ctx context.Context, s core.Session, conditions []metav1.Condition, more ...func(*api.HostedSessionStatus)) error {
	if err := k8s.Get(ctx, client.ObjectKeyFromObject(s), s); err != nil {
		return err
	}
	st := s.HostedStatus()
	st.Conditions = nil
	for _, c := range conditions {
		c.ObservedGeneration, c.LastTransitionTime = s.GetGeneration(), metav1.Now()
		st.Conditions = append(st.Conditions, c)
	}
	for _, m := range more {
		m(st)
	}
	return k8s.Status().Update(ctx, s)
}

// plays answers each new version of the standing sessions of a room as the agent and the
// controller would, with the conditions that answer returns.
func (r *room) plays(answer func(*api.StandingSession) []metav1.Condition) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	w, err := k8s.Watch(ctx, &api.StandingSessionList{}, client.InNamespace(r.name))
	Expect(err).NotTo(HaveOccurred())
	ended := make(chan struct{})
	DeferCleanup(func() { cancel(); w.Stop(); <-ended })
	go func() {
		defer close(ended)
		answered := map[string]int64{}
		for e := range w.ResultChan() {
			s, ok := e.Object.(*api.StandingSession)
			token := ""
			if ok {
				token = s.Annotations[api.RestartRequestedAnnotation]
			}
			if !ok || e.Type == watch.Deleted || answered[string(s.UID)+token] == s.Generation {
				continue
			}
			answered[string(s.UID)+token] = s.Generation
			_ = trySays(ctx, s.DeepCopy(), answer(s), func(st *api.HostedSessionStatus) { st.LastHandledRestart = token })
		}
	}()
}

// obedient is a host on which everything becomes as wanted.
func obedient(s *api.StandingSession) []metav1.Condition {
	if s.Spec.State == api.SessionStateStopped {
		return down(api.ReasonStopped, "the terminal session is retained to be read")
	}
	return live()
}

func bound(spec *api.StandingSessionSpec) { spec.HostName = "h1" }

// standing creates a standing session as kubectl would, bound to a host.
func (r *room) standing(name string, changes ...func(*api.StandingSession)) *api.StandingSession {
	GinkgoHelper()
	s := &api.StandingSession{ObjectMeta: metav1.ObjectMeta{Namespace: r.name, Name: name}}
	s.Spec.HostName = "h1"
	for _, c := range changes {
		c(s)
	}
	Expect(k8s.Create(context.Background(), s)).To(Succeed())
	return s
}

// item creates the session of octo/repo#number, bound to a host.
func (r *room) item(number int64, changes ...func(*api.WorkItemSession)) *api.WorkItemSession {
	GinkgoHelper()
	s := &api.WorkItemSession{ObjectMeta: metav1.ObjectMeta{Namespace: r.name, Name: fmt.Sprintf("github-octo-repo-%d", number)}}
	s.Spec.HostName, s.Spec.WorkItem = "h1", api.WorkItem{Provider: "github", Owner: "octo", Repo: "repo", Number: number}
	for _, c := range changes {
		c(s)
	}
	Expect(k8s.Create(context.Background(), s)).To(Succeed())
	return s
}

// there reads an object again; false when it does not exist.
func there(o client.Object) bool {
	GinkgoHelper()
	err := k8s.Get(context.Background(), client.ObjectKeyFromObject(o), o)
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	return err == nil
}

func beAbout(is error) OmegaMatcher {
	return WithTransform(func(err error) bool { return errors.Is(err, is) }, BeTrue())
}
