package session

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/workspace"
)

var _ = Describe("the checkout of a session", func() {
	var (
		w *api.WorkItemSession
		t *turn
	)
	BeforeEach(func() {
		w = &api.WorkItemSession{}
		w.UID = "a"
		w.Spec.WorkItem = api.WorkItem{Provider: "github", Owner: "o", Repo: "r", Number: 7}
		t = &turn{
			Engine:  &Engine{Dir: "/agent", Clock: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))},
			Subject: &Subject{Object: w, Class: &api.SessionClass{Spec: api.SessionClassSpec{Workspace: api.WorkspacePolicy{Root: "/root"}}}},
			status:  w.HostedStatus(), mem: &memory{},
		}
	})

	It("is looked for by a deletion and a cleanup also when the session was stopped while it was being made", func() {
		t.status.ClosedAt = new(metav1.Now())
		Expect(t.removalOf(DesiredStopped)).To(BeEmpty(), "there is no record of it")
		Expect(t.removalOf(DesiredDeleted)).To(Equal("/root"))
		Expect(t.removalOf(DesiredCleanedUp)).To(Equal("/root"))
		t.set(api.ConditionSessionRunning, metav1.ConditionFalse, api.ReasonCleanedUp, "")
		Expect(t.removalOf(DesiredDeleted)).To(BeEmpty(), "it is gone")
	})

	It("is removed once more when it could not be written down that it is gone", func() {
		t.mem.checkoutGone = true
		Expect(t.removalOf(DesiredStopped)).To(BeEmpty())
		t.status.Checkout = &api.SessionCheckout{Path: "/root/x", Root: "/root"}
		Expect(t.removalOf(DesiredStopped)).To(Equal("/root"))
	})

	It("is not taken for what a later undo asks for, and is below the root for which it was made", func() {
		told := make(chan types.UID, 4)
		t.Jobs = NewJobs(func(uid types.UID) { told <- uid })
		_, again, err := t.prepareCheckoutOf("/root")
		Expect(err).NotTo(HaveOccurred())
		Expect(again).To(Equal(idleAgain), "the agent has just started, which is no failure")
		Expect(t.news).To(BeEmpty())

		ctx, cancel := context.WithCancel(context.Background())
		over := make(chan struct{})
		go func() { defer close(over); _ = t.Jobs.Start(ctx) }()
		DeferCleanup(func() { cancel(); Eventually(over).Should(BeClosed()) })
		Eventually(func() bool { t.Jobs.mu.Lock(); defer t.Jobs.mu.Unlock(); return t.Jobs.base != nil }).Should(BeTrue())

		made := func(context.Context) (any, error) { return prepared{workspace.Checkout{Path: "/old/x"}, "/old"}, nil }
		_, again = t.job(jobPrepare+" ", made)
		Expect(again).To(Equal(jobAgain), "a hint can be lost")
		Eventually(told).Should(Receive())
		w.Annotations = map[string]string{api.UndoCleanupAnnotation: "1"}
		_, again, err = t.prepareCheckoutOf("/root")
		Expect(err).NotTo(HaveOccurred())
		Expect(again).To(Equal(jobAgain))
		Expect(t.status.LastHandledUndo).To(BeEmpty())
		Expect(t.status.Checkout).To(BeNil())
		Eventually(told).Should(Receive())

		w.Annotations = nil
		_, _ = t.job(jobPrepare+" ", made)
		Eventually(told).Should(Receive())
		more, _, err := t.prepareCheckoutOf("/root")
		Expect(err).NotTo(HaveOccurred())
		Expect(more).To(BeTrue())
		Expect(t.status.Checkout.Root).To(Equal("/old"))
	})
})

func (t *turn) prepareCheckoutOf(root string) (bool, time.Duration, error) {
	t.launch.checkout = &checkout{config: workspace.Config{Root: root}, request: workspace.Request{Item: RefOf(t.Object.(*api.WorkItemSession))}}
	return t.prepareCheckout(context.Background())
}
