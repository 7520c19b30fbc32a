package e2e

import (
	"os"
	"path/filepath"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/tmux"
	"github.com/theloop-dev/the-loop/test/testenv"
)

var _ = Describe("the creation and the deletion of a standing session", func() {
	It("C175: leaves nothing on the host where the start fails, says why, and may be tried again", func() {
		h := env.NewDemoHost()
		brief := filepath.Join(h.Dir, "brief.txt")
		made := func() *api.StandingSession {
			return h.Standing("tried", func(s *api.StandingSession) { s.Spec.PromptFile = brief })
		}
		s := made()
		h.Await(s, api.ConditionReady, "False/PromptUnreadable")
		Eventually(h.Reported).WithArguments(s, "StandingSpawnFailed").Should(Equal(1))
		Expect(h.Sessions()).To(BeEmpty())
		Expect(h.Messages(s)).To(BeEmpty())
		Expect(tmux.Sweep(string(s.UID))).To(BeEmpty())
		h.Delete(s)
		h.AwaitGone(s)
		Expect(filepath.Join(h.StateDir, "sessions", string(s.UID))).NotTo(BeADirectory())
		Expect(os.WriteFile(brief, []byte("the brief"), 0o600)).To(Succeed())
		again := made()
		h.Ready(again)
		Eventually(h.Submits).WithArguments("the brief").Should(HaveLen(1))
	})

	It("C176: stops and forgets what is deleted, and does not find what is unknown", func() {
		h := env.NewDemoHost()
		s := h.Standing("goner")
		aTurn(h, s, "first")
		pid, id := h.HarnessPID(s), get(s).Status.ConversationID
		h.Delete(s)
		h.AwaitGone(s)
		Expect(gone(pid)()).To(BeTrue())
		Expect(h.Events("signal")).To(ContainElement(HaveField("Signal", "SIGTERM")))
		Expect(h.Events("exit")).To(HaveLen(1), "it was not killed")
		Eventually(h.Reported).WithArguments(s, "StandingDeleted").Should(Equal(1))
		Expect(apierrors.IsNotFound(env.Client.Delete(GinkgoT().Context(), s))).To(BeTrue())
		By("knowing nothing of it when another of its name is made")
		next := h.Standing("goner")
		h.Ready(next)
		Expect(get(next).Status.ConversationID).NotTo(Equal(id))
		Expect(h.Events("started")[1].Argv).NotTo(ContainElement("--resume"))
	})

	It("C177: keeps what cannot be stopped, says so, and lets it go when it can", func() {
		h := env.NewDemoHost()
		s := h.Standing("kept")
		aTurn(h, s, "first")
		pid := h.HarnessPID(s)
		thaw := h.FreezeServer()
		h.Delete(s)
		h.Await(s, api.ConditionSessionRunning, "Unknown/TmuxUnknown")
		Eventually(h.Reported).WithArguments(s, "StandingStopFailed").Should(Equal(1))
		Consistently(func() []string { return get(s).Finalizers }, 2*time.Second).Should(ContainElement(api.SessionFinalizer))
		Expect(gone(pid)()).To(BeFalse())
		Expect(h.Reported(s, "StandingDeleted")).To(BeZero())
		thaw()
		h.AwaitGone(s)
		Expect(gone(pid)()).To(BeTrue())
		Eventually(h.Reported).WithArguments(s, "StandingDeleted").Should(Equal(1))
	})
})

var _ = Describe("a message that races with a stop", func() {
	It("C181: does not make a session running again, and is told the truth about", func() {
		h := env.NewDemoHost()
		const sessions = 6
		all, said := make([]*api.StandingSession, sessions), make([][]*api.SessionMessage, sessions)
		for i := range all {
			all[i] = h.Standing("raced-" + itoa(i))
		}
		for _, s := range all {
			h.Ready(s)
		}
		var racing sync.WaitGroup
		for i, s := range all {
			copied := s.DeepCopy()
			racing.Go(func() {
				defer GinkgoRecover()
				// On and on until it is stopped, and some more.
				for n, more := 0, 3; more > 0 && n < 100; n++ {
					if h.Condition(copied, api.ConditionReady)() == "True/Stopped" {
						more--
					}
					said[i] = append(said[i], h.Say(copied, "message "+itoa(n)+" for "+copied.Name+"."))
				}
			})
			racing.Go(func() {
				defer GinkgoRecover()
				want(s, api.SessionStateStopped)
			})
		}
		racing.Wait()
		for i, s := range all {
			h.Await(s, api.ConditionReady, "True/Stopped")
			for n, m := range said[i] {
				Eventually(h.Outcome(m)).Should(BeElementOf(testenv.Submitted, "Refused/SessionNotRunning", "Unknown/OutcomeUnknown"))
				taken := len(h.Submits("message " + itoa(n) + " for " + s.Name + "."))
				switch h.Outcome(m)() {
				case testenv.Submitted:
					Expect(taken).To(Equal(1))
				case "Refused/SessionNotRunning":
					Expect(taken).To(BeZero())
				}
			}
		}
		Consistently(func(g Gomega) {
			for _, t := range h.Sessions() {
				g.Expect(t.Live()).To(BeFalse())
			}
		}, 2*time.Second).Should(Succeed())
		Expect(h.Events("started")).To(HaveLen(sessions))
		for _, s := range all {
			Expect(h.Condition(s, api.ConditionReady)()).To(Equal("True/Stopped"))
		}
	})
})

var _ = Describe("what is listed of sessions", func() {
	It("C183: keeps standing sessions and those of work items apart", func() {
		h := env.NewDemoHost()
		s, w := h.Standing("overseer"), h.WorkItem(183)
		h.Ready(s)
		h.Ready(w)
		items, standing := env.Kubectl("get", "worksessions", "-n", h.Namespace), env.Kubectl("get", "standing", "-n", h.Namespace)
		Expect(items).To(And(ContainSubstring("octo/repo#183"), Not(ContainSubstring("overseer"))))
		Expect(standing).To(And(ContainSubstring("overseer"), Not(ContainSubstring("183"))))
	})

	It("C187: calls unready what is to run and does not, and neither what is off nor what runs", func() {
		h := env.NewDemoHost()
		declared := func(s *api.StandingSession) { s.Labels = map[string]string{api.OriginLabel: api.OriginDeclared} }
		runs := h.Standing("runs", declared)
		off := h.Standing("off", declared, func(s *api.StandingSession) {
			s.Spec.AutoStart, s.Spec.State = new(false), api.SessionStateStopped
		})
		fails := h.Standing("fails", declared, func(s *api.StandingSession) { s.Spec.Cwd = filepath.Join(h.Dir, "absent") })
		h.Ready(runs)
		h.Await(off, api.ConditionReady, "True/Stopped")
		h.Await(fails, api.ConditionReady, "False/DirectoryMissing")
		_, err := env.TryKubectl("wait", "standing", "--all", "-n", h.Namespace, "--for=condition=Ready", "--timeout=1s")
		Expect(err).To(HaveOccurred())
		want(fails, api.SessionStateStopped)
		env.Kubectl("wait", "standing", "--all", "-n", h.Namespace, "--for=condition=Ready", "--timeout=20s")
	})
})
