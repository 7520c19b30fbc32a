package core_test

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/core"
)

// became writes what became of a message.
func became(m *api.SessionMessage, outcome api.MessageOutcome, reason string, more ...func(*api.SessionMessageStatus)) {
	GinkgoHelper()
	Expect(there(m)).To(BeTrue())
	m.Status.Outcome, m.Status.Reason = outcome, reason
	for _, f := range more {
		f(&m.Status)
	}
	Expect(k8s.Status().Update(context.Background(), m)).To(Succeed())
}

var _ = Describe("what is said", func() {
	var r *room
	BeforeEach(func() { r = newRoom() })

	running := func(name string, changes ...func(*api.StandingSession)) *api.StandingSession {
		s := r.standing(name, changes...)
		says(s, live())
		return s
	}

	It("is stored as a person's message, for this very session", func(ctx SpecContext) {
		s := running("listener")
		m, err := r.Say(ctx, s, core.Saying{Text: "How are you?"})
		Expect(err).NotTo(HaveOccurred())
		Expect(m.Spec.SessionRef).To(Equal(api.SessionReference{Kind: "StandingSession", Name: "listener", UID: s.UID}))
		Expect(m.Spec.Source).To(And(HaveField("Type", api.SourcePerson), HaveField("Actor", "ada")))
		again, err := r.Say(ctx, s, core.Saying{Text: "How are you?"})
		Expect(err).NotTo(HaveOccurred())
		Expect(again.Name).NotTo(Equal(m.Name))
	})

	It("is said once under one key", func(ctx SpecContext) {
		s := running("listener")
		m, err := r.Say(ctx, s, core.Saying{Text: "once", Key: "k1"})
		Expect(err).NotTo(HaveOccurred())
		again, err := r.Say(ctx, s, core.Saying{Text: "once", Key: "k1"})
		Expect(err).NotTo(HaveOccurred())
		Expect(again.UID).To(Equal(m.UID))
		_, err = r.Say(ctx, s, core.Saying{Text: "something else", Key: "k1"})
		Expect(err).To(beAbout(core.ErrExists))
	})

	DescribeTable("C179: is refused for what does not run, with the command that helps, and stores nothing",
		func(make func() core.Session, fix string) {
			s := make()
			_, err := r.Say(context.Background(), s, core.Saying{Text: "hello?"})
			Expect(err).To(And(beAbout(core.ErrNotRunning), MatchError(ContainSubstring(fix))))
			var list api.SessionMessageList
			Expect(k8s.List(context.Background(), &list, client.InNamespace(r.name))).To(Succeed())
			Expect(list.Items).To(BeEmpty())
		},
		Entry("stopped", func() core.Session {
			s := r.standing("quiet", func(s *api.StandingSession) { s.Spec.State = api.SessionStateStopped })
			says(s, down(api.ReasonStopped, "stopped"))
			return s
		}, "the-loop standing start quiet"),
		Entry("stopped, and not yet seen by its host", func() core.Session {
			s := running("quiet")
			s.Spec.State = api.SessionStateStopped
			Expect(k8s.Update(context.Background(), s)).To(Succeed())
			return s
		}, "the-loop standing start quiet"),
		Entry("dead", func() core.Session {
			s := r.standing("quiet")
			says(s, down(api.ReasonExited, "the harness ended"))
			return s
		}, "the-loop standing start quiet"),
		Entry("never bound", func() core.Session {
			return r.standing("quiet", func(s *api.StandingSession) { s.Spec.HostName = "" })
		}, "the-loop standing start quiet"),
		Entry("a work item's, which a message would otherwise start", func() core.Session {
			s := r.item(15)
			says(s, down(api.ReasonExited, "the next message starts it again"))
			return s
		}, "the-loop sessions start github-octo-repo-15"),
		Entry("paused", func() core.Session {
			return running("quiet", func(s *api.StandingSession) { s.Spec.DeliveryPolicy = api.DeliveryPolicyDrop })
		}, "the-loop standing resume quiet"),
	)

	It("C179: an unknown session is not found, and a name that none can have is refused", func(ctx SpecContext) {
		_, err := r.Standing(ctx, "nobody")
		Expect(err).To(And(beAbout(core.ErrNotFound), MatchError(ContainSubstring("the-loop standing create nobody"))))
		_, err = r.Standing(ctx, "No Body")
		Expect(err).To(beAbout(core.ErrInvalid))
		_, err = r.WorkItem(ctx, "github:octo/repo#99")
		Expect(err).To(And(beAbout(core.ErrNotFound), MatchError(ContainSubstring("the-loop sessions start 'github:octo/repo#99'"))))
		_, err = r.WorkItem(ctx, "github:octo#99")
		Expect(err).To(beAbout(core.ErrInvalid))
	})

	It("is stored for a session of which nobody knows whether it runs", func(ctx SpecContext) {
		s := r.standing("silent")
		says(s, []metav1.Condition{
			condition(api.ConditionHostAvailable, metav1.ConditionUnknown, api.ReasonHeartbeatStopped, "silent"),
			condition(api.ConditionSessionRunning, metav1.ConditionTrue, api.ReasonRunning, "runs"),
		})
		_, err := r.Say(ctx, s, core.Saying{Text: "are you there?"})
		Expect(err).NotTo(HaveOccurred())
	})

	DescribeTable("is refused when it cannot be a message",
		func(text string) {
			_, err := r.Say(context.Background(), running("listener"), core.Saying{Text: text})
			Expect(err).To(beAbout(core.ErrInvalid))
		},
		Entry("empty", ""), Entry("blank", " \n\t"), Entry("too long", strings.Repeat("x", 262145)),
	)

	It("C181: racing with a stop does not make the session running again", func(ctx SpecContext) {
		s := running("racing")
		stale := s.DeepCopy()
		s.Spec.State = api.SessionStateStopped
		Expect(k8s.Update(ctx, s)).To(Succeed())
		version := s.ResourceVersion
		_, err := r.Say(ctx, stale, core.Saying{Text: "one more thing"})
		Expect(err).NotTo(HaveOccurred())
		Expect(there(s)).To(BeTrue())
		Expect(s.ResourceVersion).To(Equal(version))
		Expect(s.Spec.State).To(Equal(api.SessionStateStopped))
	})

	DescribeTable("counts as taken only on the harness's own word",
		func(outcome api.MessageOutcome, is error) {
			s := running("listener")
			m, err := r.Say(context.Background(), s, core.Saying{Text: "hello"})
			Expect(err).NotTo(HaveOccurred())
			if is == core.ErrUnconfirmed {
				r.Timeout = 1e8
			}
			r.Progress = func(string) {}
			became(m.DeepCopy(), outcome, "Because")
			err = r.AwaitMessage(context.Background(), m)
			if is == nil {
				Expect(err).NotTo(HaveOccurred())
				return
			}
			Expect(err).To(beAbout(is))
		},
		Entry("Submitted", api.OutcomeSubmitted, nil),
		Entry("Typed", api.OutcomeTyped, core.ErrFailed),
		Entry("Unknown", api.OutcomeUnknown, core.ErrFailed),
		Entry("Refused", api.OutcomeRefused, core.ErrFailed),
		Entry("Dropped", api.OutcomeDropped, core.ErrFailed),
		Entry("Held", api.OutcomeHeld, core.ErrUnconfirmed),
		Entry("Queued", api.OutcomeQueued, core.ErrUnconfirmed),
	)

	It("is awaited until its outcome is final", func(ctx SpecContext) {
		s := running("listener")
		m, err := r.Say(ctx, s, core.Saying{Text: "hello"})
		Expect(err).NotTo(HaveOccurred())
		told := make(chan string, 16)
		r.Progress = func(what string) { told <- what }
		ended, stored := make(chan error, 1), m.DeepCopy()
		go func() { ended <- r.AwaitMessage(ctx, m) }()
		Eventually(told).Should(Receive(ContainSubstring("not seen it yet")))
		became(stored, api.OutcomeHeld, "Held")
		Eventually(told).Should(Receive(ContainSubstring("Held")))
		Expect(ended).NotTo(Receive())
		became(stored, api.OutcomeSubmitted, "PromptTaken")
		Eventually(ended).Should(Receive(BeNil()))
	})
})

var _ = Describe("recalling a message", func() {
	var (
		r *room
		s *api.StandingSession
	)
	BeforeEach(func() {
		r = newRoom()
		s = r.standing("listener")
		says(s, live())
	})

	said := func(ctx context.Context) *api.SessionMessage {
		m, err := r.Say(ctx, s, core.Saying{Text: "never mind"})
		Expect(err).NotTo(HaveOccurred())
		return m
	}

	It("deletes what no host has", func(ctx SpecContext) {
		m := said(ctx)
		_, err := r.Recall(ctx, m.Name)
		Expect(err).NotTo(HaveOccurred())
		Expect(there(m)).To(BeFalse())
		_, err = r.Recall(ctx, m.Name)
		Expect(err).To(beAbout(core.ErrNotFound))
	})

	// had is a message that a host has, whose agent answers a recall with an outcome, "" for
	// not at all.
	had := func(ctx context.Context, outcome api.MessageOutcome, reason string) *api.SessionMessage {
		m := said(ctx)
		before := m.DeepCopy()
		metav1.SetMetaDataLabel(&m.ObjectMeta, api.HostLabel, "build-1")
		Expect(k8s.Patch(ctx, m, client.MergeFrom(before))).To(Succeed())
		r.Client = interceptor.NewClient(k8s, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			err := c.Patch(ctx, o, p, opts...)
			if _, asked := o.GetAnnotations()[api.RecallAnnotation]; asked && err == nil && outcome != "" {
				became(m.DeepCopy(), outcome, reason)
			}
			return err
		}})
		return m
	}

	It("takes the word of the agent that has it", func(ctx SpecContext) {
		m := had(ctx, api.OutcomeDropped, api.ReasonRecalled)
		got, err := r.Recall(ctx, m.Name)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Status.Reason).To(Equal(api.ReasonRecalled))
	})

	It("says that it was too late when the agent had typed it", func(ctx SpecContext) {
		m := had(ctx, api.OutcomeSubmitted, api.ReasonPromptTaken)
		_, err := r.Recall(ctx, m.Name)
		Expect(err).To(beAbout(core.ErrTooLate))
		Expect(there(m)).To(BeTrue())
	})

	It("does not guess when the agent is silent", func(ctx SpecContext) {
		m := had(ctx, "", "")
		r.Timeout = time.Millisecond
		_, err := r.Recall(ctx, m.Name)
		Expect(err).To(beAbout(core.ErrUnconfirmed))
		Expect(there(m)).To(BeTrue())
	})

	DescribeTable("says that it is too late",
		func(outcome api.MessageOutcome, more func(*api.SessionMessageStatus)) {
			m := said(context.Background())
			became(m, outcome, "Because", more)
			_, err := r.Recall(context.Background(), m.Name)
			Expect(err).To(beAbout(core.ErrTooLate))
			Expect(there(m)).To(BeTrue())
		},
		Entry("Submitted", api.OutcomeSubmitted, func(*api.SessionMessageStatus) {}),
		Entry("Typed", api.OutcomeTyped, func(*api.SessionMessageStatus) {}),
		Entry("Refused", api.OutcomeRefused, func(*api.SessionMessageStatus) {}),
		Entry("pasted", api.OutcomeQueued, func(st *api.SessionMessageStatus) { st.DeliveredTime = new(metav1.NowMicro()) }),
	)

	It("looks again when something became of it at that very moment", func(ctx SpecContext) {
		m := said(ctx)
		typed := false
		r.Client = interceptor.NewClient(k8s, interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if !typed {
				typed = true
				became(m.DeepCopy(), api.OutcomeTyped, "Typed")
			}
			return c.Delete(ctx, o, opts...)
		}})
		_, err := r.Recall(ctx, m.Name)
		Expect(err).To(beAbout(core.ErrTooLate))
		Expect(there(m)).To(BeTrue())
	})
})
