package v1alpha1_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

// applyStatus applies the status, written as YAML, as the owner.
func applyStatus(ctx context.Context, obj *unstructured.Unstructured, owner, status string) error {
	GinkgoHelper()
	part := &unstructured.Unstructured{Object: map[string]any{"status": content(status)}}
	part.SetGroupVersionKind(obj.GroupVersionKind())
	part.SetNamespace(obj.GetNamespace())
	part.SetName(obj.GetName())
	return k8s.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(part), client.FieldOwner(owner))
}

// cond is a condition in YAML.
func cond(t, status, reason string) string {
	return `{type: ` + t + `, status: "` + status + `", reason: ` + reason +
		`, message: "", observedGeneration: 1, lastTransitionTime: "2026-01-02T03:04:05Z"}`
}

// reasons are the reasons of the object's conditions by type.
func reasons(ctx context.Context, obj *unstructured.Unstructured) map[string]string {
	GinkgoHelper()
	var s api.StandingSession
	Expect(k8s.Get(ctx, key(obj), &s)).To(Succeed())
	got := map[string]string{}
	for _, c := range s.Status.Conditions {
		got[c.Type] = c.Reason
	}
	return got
}

var _ = Describe("the status", func() {
	const (
		controller = "theloop-controller"
		agent      = "theloop-agent"
	)
	var (
		session   *unstructured.Unstructured
		scheduled = cond("Scheduled", "True", "Bound")
		ready     = cond("Ready", "False", "Starting")
		running   = cond("SessionRunning", "True", "Running")
		input     = cond("AcceptingInput", "False", "Busy")
	)
	BeforeEach(func(ctx context.Context) {
		session = object("StandingSession")
		mustCreate(ctx, newNamespace(ctx), session)
		Expect(applyStatus(ctx, session, controller, `{observedGeneration: 1, conditions: [`+scheduled+`, `+ready+`]}`)).To(Succeed())
		Expect(applyStatus(ctx, session, agent, `{tmuxTarget: loop-standing-x, conditions: [`+running+`, `+input+`]}`)).To(Succeed())
	}, NodeTimeout(time.Minute))

	It("M6 keeps the conditions of both of its writers", func(ctx context.Context) {
		all := map[string]string{"Scheduled": "Bound", "Ready": "Starting", "SessionRunning": "Running", "AcceptingInput": "Busy"}
		Expect(reasons(ctx, session)).To(Equal(all))

		By("one writes its own again")
		Expect(applyStatus(ctx, session, agent, `{tmuxTarget: loop-standing-x, conditions: [`+running+`, `+cond("AcceptingInput", "True", "Idle")+`]}`)).To(Succeed())
		all["AcceptingInput"] = "Idle"
		Expect(reasons(ctx, session)).To(Equal(all))

		By("one leaves one of its own out")
		Expect(applyStatus(ctx, session, agent, `{tmuxTarget: loop-standing-x, conditions: [`+running+`]}`)).To(Succeed())
		delete(all, "AcceptingInput")
		Expect(reasons(ctx, session)).To(Equal(all))

		By("one has none any more")
		Expect(applyStatus(ctx, session, agent, `{conditions: []}`)).To(Succeed())
		delete(all, "SessionRunning")
		Expect(reasons(ctx, session)).To(Equal(all))
		var s api.StandingSession
		Expect(k8s.Get(ctx, key(session), &s)).To(Succeed())
		Expect(s.Status.TmuxTarget).To(BeEmpty())
		Expect(s.Status.ObservedGeneration).To(Equal(int64(1)))
	}, NodeTimeout(time.Minute))

	It("M6 refuses a writer the condition of the other", func(ctx context.Context) {
		err := applyStatus(ctx, session, agent, `{conditions: [`+running+`, `+cond("Ready", "True", "Running")+`]}`)
		Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring(`with "theloop-controller" with subresource "status"`)))
		Expect(reasons(ctx, session)).To(HaveKeyWithValue("Ready", "Starting"))
	}, NodeTimeout(time.Minute))

	It("M7 loses the conditions of others to a JSON merge patch: why nobody here sends one", func(ctx context.Context) {
		setStatus(ctx, session, `status: {conditions: [`+cond("Foreign", "True", "Rude")+`]}`)
		Expect(reasons(ctx, session)).To(Equal(map[string]string{"Foreign": "Rude"}))

		By("which each owner repairs by writing its own again")
		Expect(applyStatus(ctx, session, controller, `{observedGeneration: 1, conditions: [`+scheduled+`, `+ready+`]}`)).To(Succeed())
		Expect(applyStatus(ctx, session, agent, `{tmuxTarget: loop-standing-x, conditions: [`+running+`, `+input+`]}`)).To(Succeed())
		Expect(reasons(ctx, session)).To(Equal(map[string]string{
			"Scheduled": "Bound", "Ready": "Starting", "SessionRunning": "Running", "AcceptingInput": "Busy", "Foreign": "Rude",
		}))
	}, NodeTimeout(time.Minute))

	It("M4 that is written as it is makes no new version", func(ctx context.Context) {
		Expect(k8s.Get(ctx, key(session), session)).To(Succeed())
		before := session.GetResourceVersion()
		Expect(applyStatus(ctx, session, agent, `{tmuxTarget: loop-standing-x, conditions: [`+running+`, `+input+`]}`)).To(Succeed())
		Expect(k8s.Get(ctx, key(session), session)).To(Succeed())
		Expect(session.GetResourceVersion()).To(Equal(before))
	}, NodeTimeout(time.Minute))

	It("is not written with the object, nor the object with it", func(ctx context.Context) {
		Expect(patch(ctx, session, `{spec: {description: new}, status: {tmuxTarget: other}}`)).To(Succeed())
		setStatus(ctx, session, `{spec: {description: newer}, status: {restarts: 3}}`)
		var s api.StandingSession
		Expect(k8s.Get(ctx, key(session), &s)).To(Succeed())
		Expect(s.Spec.Description).To(Equal("new"))
		Expect(s.Status.TmuxTarget).To(Equal("loop-standing-x"))
		Expect(s.Status.Restarts).To(Equal(int32(3)))
	}, NodeTimeout(time.Minute))

	DescribeTable("refuses what no reader could understand", func(ctx context.Context, kind, status string, words ...string) {
		obj := object(kind)
		mustCreate(ctx, newNamespace(ctx), obj)
		expectRefused(k8s.Status().Patch(ctx, obj, mergePatch(`status: `+status)), words...)
	},
		change("a condition without a reason", "StandingSession", `{conditions: [{type: Ready, status: "True", message: "", lastTransitionTime: "2026-01-02T03:04:05Z"}]}`, "status.conditions[0].reason: Required value"),
		change("a condition with a reason that is a sentence", "WorkItemSession", `{conditions: [`+cond("Ready", "True", `"not a reason"`)+`]}`, "status.conditions[0].reason", "should match"),
		change("a condition twice", "SessionHost", `{conditions: [`+cond("Ready", "True", "A")+`, `+cond("Ready", "False", "B")+`]}`, "status.conditions[1]: Duplicate value"),
		change("an unknown outcome", "SessionMessage", `{outcome: Delivered}`, `supported values: "Queued", "Held", "Typed", "Submitted", "Refused", "Dropped", "Unknown"`),
		change("an unknown activity", "StandingSession", `{activity: {state: Asleep}}`, `supported values: "Idle", "Busy", "AwaitingInput", "Unknown"`),
		change("an unknown way of launching", "WorkItemSession", `{launch: {id: a, mode: Again}}`, `supported values: "Fresh", "Resume"`),
		change("a launch without an id", "WorkItemSession", `{launch: {mode: Fresh}}`, "status.launch.id: Required value"),
		change("a socket path that no system can open", "SessionHost", `{tmux: {socket: /`+repeat("s", 107)+`}}`, "status.tmux.socket: Too long: may not be more than 107"),
	)
})
