package core_test

import (
	"context"
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/core"
)

var _ = Describe("standing sessions", func() {
	var r *room
	BeforeEach(func() { r = newRoom() })

	spec := func() api.StandingSessionSpec {
		s := api.StandingSessionSpec{Prompt: "Watch."}
		bound(&s)
		return s
	}

	It("C174: refuses to create what exists, and says who declares it", func(ctx SpecContext) {
		was := r.standing("taken")
		_, err := r.CreateStanding(ctx, "taken", spec())
		Expect(err).To(And(beAbout(core.ErrExists), MatchError(ContainSubstring("the-loop standing start taken"))))
		now := &api.StandingSession{ObjectMeta: was.ObjectMeta}
		Expect(there(now)).To(BeTrue())
		Expect(now.ResourceVersion).To(Equal(was.ResourceVersion))

		r.standing("watcher", func(s *api.StandingSession) {
			s.Labels = map[string]string{api.OriginLabel: api.OriginDeclared}
			s.Annotations = map[string]string{api.DeclaredByAnnotation: "/etc/cli.yaml#standingSessions.sessions[0]"}
		})
		_, err = r.CreateStanding(ctx, "watcher", spec())
		Expect(err).To(And(beAbout(core.ErrExists), MatchError(ContainSubstring("/etc/cli.yaml#standingSessions.sessions[0]"))))
		_, err = r.CreateStanding(ctx, "Not A Name", spec())
		Expect(err).To(beAbout(core.ErrInvalid))
	})

	It("creates one, awaits its start, and labels it as created", func(ctx SpecContext) {
		r.plays(obedient)
		got, err := r.CreateStanding(ctx, "supervisor", spec())
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Outcome).To(Equal(core.OutcomeStarted))
		s, err := r.Standing(ctx, "supervisor")
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Labels).To(HaveKeyWithValue(api.OriginLabel, api.OriginCreated))
	})

	It("C175: takes back what it created when the start fails, and a retry works", func(ctx SpecContext) {
		fails := true
		r.plays(func(s *api.StandingSession) []metav1.Condition {
			if fails {
				return down(api.ReasonBinaryMissing, "claude is not on PATH")
			}
			return live()
		})
		_, err := r.CreateStanding(ctx, "supervisor", spec())
		Expect(err).To(And(beAbout(core.ErrFailed), MatchError(ContainSubstring("claude is not on PATH"))))
		Expect(there(&api.StandingSession{ObjectMeta: metav1.ObjectMeta{Namespace: r.name, Name: "supervisor"}})).To(BeFalse())
		fails = false
		got, err := r.CreateStanding(ctx, "supervisor", spec())
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Outcome).To(Equal(core.OutcomeStarted))
	})

	DescribeTable("C175: takes it back also when the start fails by an exception",
		func(prepare func(ctx context.Context, r *room) context.Context) {
			ctx := prepare(context.Background(), r)
			func() {
				defer func() { _ = recover() }()
				_, err := r.CreateStanding(ctx, "supervisor", spec())
				Expect(err).To(HaveOccurred())
			}()
			Expect(there(&api.StandingSession{ObjectMeta: metav1.ObjectMeta{Namespace: r.name, Name: "supervisor"}})).To(BeFalse())
		},
		Entry("the person ends it", func(ctx context.Context, r *room) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			r.Progress = func(string) { cancel() }
			return ctx
		}),
		Entry("the API server refuses to be watched", func(ctx context.Context, r *room) context.Context {
			broken := true
			r.Client = interceptor.NewClient(k8s, interceptor.Funcs{Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
				if broken {
					broken = false
					return nil, errors.New("no more watches")
				}
				return c.Watch(ctx, list, opts...)
			}})
			return ctx
		}),
		Entry("it panics", func(ctx context.Context, r *room) context.Context {
			r.Progress = func(string) {
				r.Progress = nil
				panic("a bug")
			}
			return ctx
		}),
	)

	It("leaves a created one that only has not reached its prompt", func(ctx SpecContext) {
		r.plays(func(*api.StandingSession) []metav1.Condition {
			c := live()
			c[4] = condition(api.ConditionAcceptingInput, metav1.ConditionFalse, api.ReasonNotReady, "attach and look")
			c[5] = condition(api.ConditionReady, metav1.ConditionFalse, api.ReasonNotReady, "attach and look")
			return c
		})
		got, err := r.CreateStanding(ctx, "login", spec())
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(And(HaveField("Outcome", core.OutcomeStarted), HaveField("Detail", "attach and look")))
	})

	It("stores nothing in a dry run, and lets the API server check it", func(ctx SpecContext) {
		r.DryRun = true
		got, err := r.CreateStanding(ctx, "supervisor", spec())
		Expect(err).NotTo(HaveOccurred())
		Expect(got.DryRun).To(BeTrue())
		Expect(there(&api.StandingSession{ObjectMeta: metav1.ObjectMeta{Namespace: r.name, Name: "supervisor"}})).To(BeFalse())
		bad := spec()
		bad.PromptFile = "/also"
		_, err = r.CreateStanding(ctx, "supervisor", bad)
		Expect(err).To(And(beAbout(core.ErrInvalid), MatchError(ContainSubstring("no precedence"))))
	})

	It("C176: deletes a created one after its stop, refuses a declared one by name of its place, and does not find an unknown one", func(ctx SpecContext) {
		r.plays(obedient)
		states := []api.SessionState{}
		_, err := r.CreateStanding(ctx, "supervisor", spec())
		Expect(err).NotTo(HaveOccurred())
		r.Client = interceptor.NewClient(k8s, interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			s := &api.StandingSession{}
			Expect(c.Get(ctx, client.ObjectKeyFromObject(o), s)).To(Succeed())
			states = append(states, s.Spec.State)
			return c.Delete(ctx, o, opts...)
		}})
		got, err := r.DeleteStanding(ctx, "supervisor")
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Outcome).To(Equal(core.OutcomeDeleted))
		Expect(states).To(Equal([]api.SessionState{api.SessionStateStopped}))
		_, err = r.DeleteStanding(ctx, "supervisor")
		Expect(err).To(beAbout(core.ErrNotFound))

		s := r.standing("watcher", func(s *api.StandingSession) {
			s.Labels = map[string]string{api.OriginLabel: api.OriginDeclared}
			s.Annotations = map[string]string{api.DeclaredByAnnotation: "/etc/cli.yaml#standingSessions.sessions[0]"}
		})
		_, err = r.DeleteStanding(ctx, "watcher")
		Expect(err).To(And(beAbout(core.ErrDeclared), MatchError(And(ContainSubstring("/etc/cli.yaml#standingSessions.sessions[0]"), ContainSubstring("the-loop standing stop watcher")))))
		Expect(there(s)).To(BeTrue())
		Expect(s.Spec.State).To(Equal(api.SessionStateRunning))
	})

	DescribeTable("C173 C177: keeps the record when the stop is not known to have come about",
		func(why []metav1.Condition, told string) {
			s := r.standing("stubborn", func(s *api.StandingSession) { s.Spec.State = api.SessionStateStopped })
			says(s, why)
			r.Timeout = 3e9
			got, err := r.DeleteStanding(context.Background(), "stubborn")
			Expect(err).NotTo(HaveOccurred())
			Expect(got.Outcome).To(Equal(core.OutcomeUnconfirmed))
			Expect(got.Err()).To(beAbout(core.ErrUnconfirmed))
			Expect(got.Detail).To(And(ContainSubstring("not deleted"), ContainSubstring(told)))
			Expect(there(s)).To(BeTrue())
			Expect(s.DeletionTimestamp).To(BeNil())
		},
		Entry("tmux does not answer", []metav1.Condition{
			condition(api.ConditionSessionRunning, metav1.ConditionUnknown, api.ReasonTmuxUnknown, "tmux did not answer"),
			condition(api.ConditionReady, metav1.ConditionUnknown, api.ReasonTmuxUnknown, "tmux did not answer"),
		}, "tmux did not answer"),
		Entry("the host is silent", []metav1.Condition{
			condition(api.ConditionHostAvailable, metav1.ConditionUnknown, api.ReasonHeartbeatStopped, "the agent is silent"),
			condition(api.ConditionReady, metav1.ConditionUnknown, api.ReasonHeartbeatStopped, "the agent is silent"),
		}, "the agent is silent"),
	)

	It("C165: says of what runs that it runs, and changes nothing", func(ctx SpecContext) {
		s := r.standing("busy")
		says(s, live())
		version := s.ResourceVersion
		got, err := r.Start(ctx, s)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Outcome).To(Equal(core.OutcomeAlreadyRunning))
		Expect(there(s)).To(BeTrue())
		Expect(s.ResourceVersion).To(Equal(version))
	})

	It("starts a stopped one by its spec and an ended one by a token", func(ctx SpecContext) {
		r.plays(obedient)
		s := r.standing("tidy", func(s *api.StandingSession) { s.Spec.State = api.SessionStateStopped })
		got, err := r.Start(ctx, s)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Outcome).To(Equal(core.OutcomeStarted))
		Expect(s.Annotations).NotTo(HaveKey(api.RestartRequestedAnnotation))

		says(s, down(api.ReasonExited, "the harness ended"))
		got, err = r.Start(ctx, s)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Outcome).To(Equal(core.OutcomeStarted))
		Expect(s.Annotations).To(HaveKey(api.RestartRequestedAnnotation))
	})

	It("restarts by a token of its own each time", func(ctx SpecContext) {
		r.plays(obedient)
		s := r.standing("again")
		var tokens []string
		for range 2 {
			got, err := r.Restart(ctx, s)
			Expect(err).NotTo(HaveOccurred())
			Expect(got.Outcome).To(Equal(core.OutcomeRestarted))
			tokens = append(tokens, s.Annotations[api.RestartRequestedAnnotation])
		}
		Expect(tokens[0]).NotTo(Equal(tokens[1]))
	})

	It("stops one, and says of what did not run that it did not", func(ctx SpecContext) {
		r.plays(obedient)
		s := r.standing("ends")
		says(s, live())
		got, err := r.Stop(ctx, s)
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(And(HaveField("Outcome", core.OutcomeStopped), HaveField("Detail", "the terminal session is retained to be read")))
		got, err = r.Stop(ctx, s)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Outcome).To(Equal(core.OutcomeNotRunning))
	})

	It("pauses, holds and resumes by the delivery policy alone", func(ctx SpecContext) {
		s := r.standing("calm")
		for _, step := range []struct {
			want    api.DeliveryPolicy
			outcome core.Outcome
		}{
			{api.DeliveryPolicyDrop, core.OutcomePaused}, {api.DeliveryPolicyDrop, core.OutcomeUnchanged}, {api.DeliveryPolicyHold, core.OutcomeHeld},
			{api.DeliveryPolicyDeliver, core.OutcomeDelivering}, {api.DeliveryPolicyDeliver, core.OutcomeUnchanged},
		} {
			got, err := r.SetDelivery(ctx, s, step.want)
			Expect(err).NotTo(HaveOccurred())
			Expect(got.Outcome).To(Equal(step.outcome))
			Expect(there(s)).To(BeTrue())
			Expect(s.Spec.DeliveryPolicy).To(Equal(step.want))
			Expect(s.Spec.State).To(Equal(api.SessionStateRunning))
		}
	})

	It("decides anew on what somebody else wrote meanwhile", func(ctx SpecContext) {
		s := r.standing("contended")
		stale := s.DeepCopy()
		s.Spec.Description = "somebody else's"
		Expect(k8s.Update(ctx, s)).To(Succeed())
		r.NoWait = true
		got, err := r.Stop(ctx, stale)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Outcome).To(Equal(core.OutcomeAccepted))
		Expect(there(s)).To(BeTrue())
		Expect(s.Spec.Description).To(Equal("somebody else's"))
		Expect(s.Spec.State).To(Equal(api.SessionStateStopped))
		By("but not on another object of the same name")
		old := s.DeepCopy()
		old.Spec.State = api.SessionStateRunning
		Expect(k8s.Delete(ctx, s)).To(Succeed())
		again := r.standing("contended")
		_, err = r.Stop(ctx, old)
		Expect(err).To(beAbout(core.ErrNotFound))
		Expect(there(again)).To(BeTrue())
		Expect(again.Spec.State).To(Equal(api.SessionStateRunning))
	})

	It("C183: finds and lists the two kinds apart", func(ctx SpecContext) {
		r.standing("supervisor")
		r.item(15)
		items, err := r.ListWorkItems(ctx, core.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(core.Named(items)).To(Equal([]string{"github-octo-repo-15"}))
		standing, err := r.ListStanding(ctx, core.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(core.Named(standing)).To(Equal([]string{"supervisor"}))
		_, err = r.WorkItem(ctx, "supervisor")
		Expect(err).To(beAbout(core.ErrNotFound))
		_, err = r.Standing(ctx, "github-octo-repo-15")
		Expect(err).To(beAbout(core.ErrNotFound))
		_, err = r.WorkItem(ctx, "standing:supervisor")
		Expect(err).To(beAbout(core.ErrInvalid))
	})
})
