package core_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/core"
	"github.com/theloop-dev/the-loop/internal/workitem"
)

var _ = Describe("sessions of work items", func() {
	var r *room
	BeforeEach(func() { r = newRoom() })

	It("are found by reference and by name, under whatever name they are", func(ctx SpecContext) {
		s := r.item(15)
		odd := r.item(16, func(s *api.WorkItemSession) { s.Name = "by-hand" })
		for arg, want := range map[string]string{
			"github:octo/repo#15": s.Name, " github:github.com/octo/repo#15 ": s.Name, s.Name: s.Name, "github:octo/repo#16": odd.Name, "by-hand": odd.Name,
		} {
			got, err := r.WorkItem(ctx, arg)
			Expect(err).NotTo(HaveOccurred(), arg)
			Expect(got.Name).To(Equal(want), arg)
		}
		r.item(16, func(s *api.WorkItemSession) { s.Name = "by-hand-again" })
		_, err := r.WorkItem(ctx, "github:octo/repo#16")
		Expect(err).To(And(beAbout(core.ErrInvalid), MatchError(ContainSubstring("by-hand, by-hand-again"))))
	})

	It("are made by a start by reference, and not by name", func(ctx SpecContext) {
		r.NoWait = true
		got, err := r.StartWorkItem(ctx, "github:octo/repo#15", api.WorkItemSessionSpec{Prompt: "Look into it."})
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Outcome).To(Equal(core.OutcomeAccepted))
		s, err := r.WorkItem(ctx, "github-octo-repo-15")
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Spec).To(And(HaveField("Prompt", "Look into it."), HaveField("State", api.SessionStateRunning)))
		_, err = r.StartWorkItem(ctx, "github-octo-repo-16", api.WorkItemSessionSpec{})
		Expect(err).To(beAbout(core.ErrNotFound))
		_, err = r.StartWorkItem(ctx, "github:octo/repo#15", api.WorkItemSessionSpec{Model: "opus"})
		Expect(err).To(And(beAbout(core.ErrInvalid), MatchError(ContainSubstring("kubectl edit worksession github-octo-repo-15"))))
	})

	It("are registered for a conversation, once, on the one host that there is", func(ctx SpecContext) {
		_, err := r.Register(ctx, "github:octo/repo#15", core.Registration{ConversationID: "abc", Cwd: "/work", Host: "h1"})
		Expect(err).NotTo(HaveOccurred())
		s, err := r.WorkItem(ctx, "github:octo/repo#15")
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Spec.Conversation).To(Equal(&api.RegisteredConversation{ID: "abc", WorkingDirectory: "/work"}))
		Expect(s.Spec.HostName).To(Equal("h1"))
		_, err = r.Register(ctx, "github:octo/repo#15", core.Registration{ConversationID: "abc", Cwd: "/work", Host: "h1"})
		Expect(err).To(beAbout(core.ErrExists))
		_, err = r.Register(ctx, "github:octo/repo#16", core.Registration{ConversationID: "abc", Cwd: "work", Host: "h1"})
		Expect(err).To(And(beAbout(core.ErrInvalid), MatchError(ContainSubstring("absolute path"))))
	})

	It("are linked with pull requests, idempotently, and not with themselves", func(ctx SpecContext) {
		parent := r.item(15)
		got, err := r.LinkPullRequest(ctx, "github:octo/repo#15", "#16")
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Outcome).To(Equal(core.OutcomeLinked))
		child, err := r.WorkItem(ctx, "github:octo/repo#16")
		Expect(err).NotTo(HaveOccurred())
		Expect(child.Spec).To(And(HaveField("ParentName", parent.Name), HaveField("State", api.SessionStateStopped)))
		got, err = r.LinkPullRequest(ctx, parent.Name, "github:octo/repo#16")
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Outcome).To(Equal(core.OutcomeUnchanged))
		for _, bad := range []string{"15", "0", "-1", "x", "github:ghe.example.com/octo/repo#16"} {
			_, err = r.LinkPullRequest(ctx, parent.Name, bad)
			Expect(err).To(beAbout(core.ErrInvalid), bad)
		}
		_, err = r.LinkPullRequest(ctx, "github:octo/repo#99", "16")
		Expect(err).To(beAbout(core.ErrNotFound))
	})

	checkedOut := func(path string) func(*api.HostedSessionStatus) {
		return func(st *api.HostedSessionStatus) {
			st.TmuxTarget = "loop-github-octo-repo-15"
			st.Checkout = &api.SessionCheckout{Path: path, Root: "/w"}
		}
	}

	It("C106: are reset by deleting them, and say that a live session ended and a checkout goes", func(ctx SpecContext) {
		s := r.item(15)
		says(s, live(), checkedOut("/w/octo-repo-15"))
		r.DryRun = true
		got, err := r.Reset(ctx, s.DeepCopy())
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Detail).To(Equal("ends the live session loop-github-octo-repo-15; removes the checkout /w/octo-repo-15"))
		Expect(there(s)).To(BeTrue())
		r.DryRun = false
		got, err = r.Reset(ctx, s)
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(And(HaveField("Outcome", core.OutcomeReset), HaveField("Detail", "ended the live session loop-github-octo-repo-15; removed the checkout /w/octo-repo-15")))
		Expect(there(s)).To(BeFalse())
	})

	It("C106: a class that keeps checkouts keeps it, and a host that does not let go is told", func(ctx SpecContext) {
		class := &api.SessionClass{ObjectMeta: metav1.ObjectMeta{Name: "keeps-" + r.name}}
		class.Spec.Harness.Name, class.Spec.Workspace.KeepCheckoutOnClose = "claude", new(true)
		Expect(k8s.Create(ctx, class)).To(Succeed())
		s := r.item(15, func(s *api.WorkItemSession) {
			s.Spec.ClassName, s.Finalizers = class.Name, []string{api.SessionFinalizer}
		})
		says(s, live(), checkedOut("/w/octo-repo-15"))
		r.Timeout = 5e8
		got, err := r.Reset(ctx, s)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Outcome).To(Equal(core.OutcomeUnconfirmed))
		Expect(there(s)).To(BeTrue())
		Expect(s.DeletionTimestamp).NotTo(BeNil())
		takes, err := r.Takes(ctx, s, false)
		Expect(err).NotTo(HaveOccurred())
		Expect(takes).To(HaveLen(1))
		Expect(takes[0].Checkout).To(BeEmpty())
		Expect(takes[0].Text).To(ContainSubstring("the checkout /w/octo-repo-15 is kept"))
		s.Finalizers = nil
		Expect(k8s.Update(ctx, s)).To(Succeed())
	})

	It("are cleaned up with the sessions of their pull requests, which go first, and by reference alone", func(ctx SpecContext) {
		s := r.item(15)
		says(s, live(), checkedOut("/w/octo-repo-15"))
		_, err := r.LinkPullRequest(ctx, s.Name, "16")
		Expect(err).NotTo(HaveOccurred())
		takes, err := r.Takes(ctx, s, true)
		Expect(err).NotTo(HaveOccurred())
		Expect(takes).To(HaveLen(2))
		Expect(takes[1].Session.Name).To(Equal(s.Name))
		r.NoWait = true
		_, err = r.CleanUp(ctx, "github:octo/repo#15", true)
		Expect(err).NotTo(HaveOccurred())
		Expect(there(s)).To(BeTrue())
		Expect(s.Spec.State).To(Equal(api.SessionStateCleanedUp))
		Expect(s.Annotations).To(HaveKeyWithValue(api.ForceCleanupAnnotation, "true"))

		_, err = r.CleanUp(ctx, "github:octo/repo#77", false)
		Expect(err).NotTo(HaveOccurred())
		crashed, err := r.WorkItem(ctx, "github:octo/repo#77")
		Expect(err).NotTo(HaveOccurred())
		Expect(crashed.Spec.State).To(Equal(api.SessionStateCleanedUp))
		_, err = r.CleanUp(ctx, "github-octo-repo-78", false)
		Expect(err).To(beAbout(core.ErrNotFound))
	})

	It("ask for what was removed last by a token, and not while they work in a checkout", func(ctx SpecContext) {
		s := r.item(15, func(s *api.WorkItemSession) { s.Spec.State = api.SessionStateCleanedUp })
		_, err := r.UndoCleanUp(ctx, s)
		Expect(err).NotTo(HaveOccurred())
		Expect(there(s)).To(BeTrue())
		Expect(s.Annotations).To(HaveKey(api.UndoCleanupAnnotation))
		busy := r.item(16)
		says(busy, live(), checkedOut("/w/octo-repo-16"))
		_, err = r.UndoCleanUp(ctx, busy)
		Expect(err).To(MatchError(ContainSubstring("the-loop sessions cleanup " + busy.Name)))
	})

	It("K18: are parked by a drain of their host, which changes nothing of what they are to be", func(ctx SpecContext) {
		name := "drained-" + r.name
		h := &api.SessionHost{ObjectMeta: metav1.ObjectMeta{Name: name}}
		Expect(k8s.Create(ctx, h)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(k8s.Delete(ctx, h)).To(Succeed()) })
		here := r.item(15, func(s *api.WorkItemSession) { s.Spec.HostName = name })
		elsewhere := r.standing("elsewhere")
		r.NoWait = true
		results, err := r.Drain(ctx, h)
		Expect(err).NotTo(HaveOccurred())
		Expect(results).To(HaveLen(1))
		Expect(there(here)).To(BeTrue())
		Expect(results[0].Name).To(HaveSuffix(here.Name))
		Expect(here.Spec.State).To(Equal(api.SessionStateRunning))
		Expect(there(elsewhere)).To(BeTrue())
		Expect(there(h)).To(BeTrue())
		Expect(h.Spec.Scheduling).To(Equal(api.HostSchedulingDraining))
	})

	It("have their harnesses asked about models by a token on the host", func(ctx SpecContext) {
		h := &api.SessionHost{ObjectMeta: metav1.ObjectMeta{Name: "asked-" + r.name}}
		Expect(k8s.Create(ctx, h)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(k8s.Delete(ctx, h)).To(Succeed()) })
		ended, asked := make(chan error, 1), h.DeepCopy()
		go func() { ended <- r.CheckModels(ctx, asked) }()
		token := ""
		Eventually(func() string {
			Expect(there(h)).To(BeTrue())
			token = h.Annotations[api.ModelsCheckRequestedAnnotation]
			return token
		}).ShouldNot(BeEmpty())
		Consistently(ended, "200ms").ShouldNot(Receive())
		h.Status.LastHandledModelsCheck = token
		Expect(k8s.Status().Update(ctx, h)).To(Succeed())
		Eventually(ended).Should(Receive(BeNil()))
	})
})

var _ = DescribeTable("a pull request as it is named beside its work item",
	func(arg, want string) {
		item, err := workitem.Parse("github:octo/repo#15")
		Expect(err).NotTo(HaveOccurred())
		got, err := core.PullRequestRef(item, arg)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.String()).To(Equal(want))
	},
	Entry(nil, "16", "github:octo/repo#16"), Entry(nil, "#16", "github:octo/repo#16"), Entry(nil, "github:octo/other#16", "github:octo/other#16"),
)

var _ = Describe("what is the whole of it", func() {
	It("C187: is ok only when what a start of everything starts is known to run", func(ctx SpecContext) {
		r := newRoom()
		r.plays(func(s *api.StandingSession) []metav1.Condition {
			if s.Labels["up"] == "yes" {
				return live()
			}
			return down(api.ReasonExited, "ended")
		})
		ok := func() bool {
			h, err := r.Status(context.Background(), false)
			Expect(err).NotTo(HaveOccurred())
			return h.OK
		}
		declared := func(auto bool) func(*api.StandingSession) {
			return func(s *api.StandingSession) {
				s.Labels = map[string]string{api.OriginLabel: api.OriginDeclared}
				s.Spec.AutoStart = new(auto)
			}
		}
		Expect(ok()).To(BeTrue())
		r.standing("declared-by-hand", declared(false))
		r.standing("created", func(s *api.StandingSession) { s.Labels = map[string]string{api.OriginLabel: api.OriginCreated} })
		r.standing("applied-stopped", func(s *api.StandingSession) { s.Spec.State = api.SessionStateStopped })
		r.item(15)
		Expect(ok()).To(BeTrue(), "what decides nothing")
		watcher := r.standing("declared", declared(true))
		Expect(ok()).To(BeFalse(), "declared, and not running")
		says(watcher, live())
		Eventually(ok).Should(BeTrue())
		By("a declared one that somebody stopped is one that a start would have started")
		watcher.Spec.State = api.SessionStateStopped
		Expect(k8s.Update(ctx, watcher)).To(Succeed())
		Eventually(ok).Should(BeFalse())
		Expect(k8s.Delete(ctx, watcher)).To(Succeed())
		applied := r.standing("applied")
		Eventually(ok).Should(BeFalse())
		says(applied, []metav1.Condition{
			condition(api.ConditionHostAvailable, metav1.ConditionUnknown, api.ReasonHeartbeatStopped, "silent"),
			condition(api.ConditionSessionRunning, metav1.ConditionTrue, api.ReasonRunning, "ran"),
		})
		Expect(ok()).To(BeFalse(), "not known to run")
		Expect(k8s.Delete(ctx, applied, client.GracePeriodSeconds(0))).To(Succeed())
	})
})
