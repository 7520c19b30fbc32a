package v1alpha1_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var _ = Describe("kubectl wait --for=condition=Ready", func() {
	const ready = `{observedGeneration: 1, conditions: [{type: Ready, status: "True", reason: Running, message: "", observedGeneration: 1, lastTransitionTime: "2026-01-02T03:04:05Z"}]}`
	var (
		ns      string
		session *unstructured.Unstructured
	)
	BeforeEach(func(ctx context.Context) {
		ns = newNamespace(ctx)
		session = object("StandingSession", `metadata: {name: hello}`)
		mustCreate(ctx, ns, session)
	}, NodeTimeout(time.Minute))

	// wait waits for the session, for at most the time.
	wait := func(ctx context.Context, atMost string) (string, string, error) {
		return kubectl(ctx, "wait", "--for=condition=Ready", "standing/hello", "-n", ns, "--timeout="+atMost)
	}
	// at once, without waiting
	const now = "0s"

	It("returns when the status says so", func(ctx context.Context) {
		_, stderr, err := wait(ctx, now)
		Expect(err).To(HaveOccurred(), "there is no status yet")
		Expect(stderr).To(ContainSubstring("condition not met for standingsessions/hello"))

		type result struct {
			stdout string
			err    error
		}
		done := make(chan result, 1)
		go func() {
			stdout, _, err := wait(ctx, "60s")
			done <- result{stdout, err}
		}()
		setStatus(ctx, session, `status: `+ready)
		var got result
		Eventually(ctx, done).WithTimeout(time.Minute).Should(Receive(&got))
		Expect(got.err).NotTo(HaveOccurred())
		Expect(got.stdout).To(Equal("standingsession.theloop.dev/hello condition met\n"))
	}, NodeTimeout(2*time.Minute))

	It("does not return for a session that is not Ready", func(ctx context.Context) {
		setStatus(ctx, session, `status: {observedGeneration: 1, conditions: [`+cond("Ready", "False", "Starting")+`]}`)
		_, _, err := wait(ctx, now)
		Expect(err).To(HaveOccurred())
		setStatus(ctx, session, `status: {conditions: [`+cond("Ready", "Unknown", "HeartbeatStopped")+`]}`)
		_, _, err = wait(ctx, now)
		Expect(err).To(HaveOccurred())
	}, NodeTimeout(time.Minute))

	It("M12 does not take a Ready that was said of an earlier generation", func(ctx context.Context) {
		setStatus(ctx, session, `status: `+ready)
		_, _, err := wait(ctx, now)
		Expect(err).NotTo(HaveOccurred())

		Expect(patch(ctx, session, `spec: {state: Stopped}`)).To(Succeed())
		Expect(session.GetGeneration()).To(Equal(int64(2)))
		_, stderr, err := wait(ctx, now)
		Expect(err).To(HaveOccurred(), "Ready is about generation 1")
		Expect(stderr).To(ContainSubstring("condition not met for standingsessions/hello"))

		setStatus(ctx, session, `status: {observedGeneration: 2, conditions: [{type: Ready, status: "True", reason: Stopped, message: "", observedGeneration: 2, lastTransitionTime: "2026-01-02T03:04:05Z"}]}`)
		_, _, err = wait(ctx, now)
		Expect(err).NotTo(HaveOccurred())
	}, NodeTimeout(time.Minute))

	It("M12 would take it if neither status nor condition said of which: why they always do", func(ctx context.Context) {
		setStatus(ctx, session, `status: {conditions: [{type: Ready, status: "True", reason: Running, message: "", lastTransitionTime: "2026-01-02T03:04:05Z"}]}`)
		Expect(patch(ctx, session, `spec: {state: Stopped}`)).To(Succeed())
		_, _, err := wait(ctx, now)
		Expect(err).NotTo(HaveOccurred())
	}, NodeTimeout(time.Minute))

	It("waits for the outcome of a message too", func(ctx context.Context) {
		msg := object("SessionMessage", `metadata: {name: m1}`)
		mustCreate(ctx, ns, msg)
		setStatus(ctx, msg, `status: {outcome: Submitted, conditions: [`+cond("Submitted", "True", "PromptTaken")+`]}`)
		out := kubectlOK(ctx, "wait", "--for=condition=Submitted", "smsg/m1", "-n", ns, "--timeout="+now)
		Expect(out).To(Equal("sessionmessage.theloop.dev/m1 condition met\n"))
		kubectlOK(ctx, "wait", "--for=jsonpath={.status.outcome}=Submitted", "smsg/m1", "-n", ns, "--timeout="+now)
	}, NodeTimeout(time.Minute))
})
