package e2e

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/testenv"
)

// behave changes how demo harnesses behave that are started from now on.
func behave(h *testenv.Host, behaviour string) {
	GinkgoHelper()
	h.UpdateClass(h.Class, func(c *api.SessionClass) {
		for i := range c.Spec.Harness.Env {
			if v := &c.Spec.Harness.Env[i]; v.Name == "FAKEHARNESS_BEHAVIOUR" {
				v.Value = behaviour
			}
		}
	})
}

// upgrade starts the agent anew, with a hook program that is not the one of before.
func upgrade(h *testenv.Host, name string) {
	GinkgoHelper()
	b, err := os.ReadFile(filepath.Join(h.Bin, "loop-shim"))
	Expect(err).NotTo(HaveOccurred())
	shim := filepath.Join(h.Dir, name)
	Expect(os.WriteFile(shim, b, 0o700)).To(Succeed())
	h.Agent.Kill()
	h.StartAgent("--shim", shim)
}

// fleet are three sessions at their prompt, each with a turn, on a host that knows with what
// they were prepared.
func fleet(h *testenv.Host) (all []*api.StandingSession) {
	GinkgoHelper()
	for _, name := range []string{"one", "two", "three"} {
		all = append(all, h.Standing(name))
	}
	for _, s := range all {
		aTurn(h, s, "of "+s.Name)
	}
	Eventually(filepath.Join).WithArguments(h.StateDir, "rollouts.json").Should(BeARegularFile())
	return all
}

// divided waits until one of the sessions is started and has its dialog open, and the others
// wait for it.
func divided(h *testenv.Host, all []*api.StandingSession, dialogs int) (canary *api.StandingSession, others []*api.StandingSession) {
	GinkgoHelper()
	Eventually(h.Events).WithArguments("dialog").Should(HaveLen(dialogs))
	Eventually(func() (waiting int) {
		canary, others = nil, nil
		for _, s := range all {
			if h.Condition(s, api.ConditionSessionRunning)() == "False/WaitingForCanary" {
				others = append(others, s)
			} else {
				canary = s
			}
		}
		return len(others)
	}).Should(Equal(len(all) - 1))
	Eventually(h.Condition(canary, api.ConditionSessionRunning)).Should(HavePrefix("True/"))
	Eventually(h.Reported).WithArguments(canary, "SessionCanaryAsks").Should(BeNumerically(">=", 1))
	for _, s := range others {
		Eventually(h.Message).WithArguments(s, api.ConditionSessionRunning).Should(And(
			ContainSubstring("standingsession/"+h.Namespace+"/"+canary.Name+" goes ahead"), ContainSubstring("it asks something"), Not(ContainSubstring("tmux"))))
	}
	return canary, others
}

// answer takes the last option of the dialog about changed hooks, which is open.
func answer(h *testenv.Host, s *api.StandingSession) {
	GinkgoHelper()
	h.Keys(get(s).Status.TmuxTarget, "3")
}

var _ = Describe("an upgrade of ours", func() {
	It("H05: lets one session go ahead of the others: they wait while it asks about changed hooks, and follow when it was answered; what runs is left alone", func() {
		h := env.NewDemoHost()
		all := fleet(h)
		Expect(h.Events("started")).To(HaveLen(len(all)))
		for _, s := range all {
			Expect(h.Reported(s, "SessionSpawnDeferred")).To(BeZero(), "a first install waits for nothing")
		}

		behave(h, "flush-late=0,dialogs=hooks")
		upgrade(h, "upgraded")
		for _, s := range all {
			aTurn(h, s, "after the upgrade, of "+s.Name)
		}
		Expect(h.Events("started")).To(HaveLen(len(all)))
		for _, s := range all {
			h.KillHarness(s)
		}
		canary, others := divided(h, all, 1)
		Expect(h.Events("started")).To(HaveLen(len(all) + 1))
		for _, s := range others {
			Eventually(h.Reported).WithArguments(s, "SessionSpawnDeferred").Should(Equal(1))
		}

		By("the agent dies; who goes ahead stays so")
		h.Agent.Kill()
		h.StartAgent("--shim", filepath.Join(h.Dir, "upgraded"))
		later := h.Say(others[0], "when it goes on")
		again, _ := divided(h, all, 1)
		Expect(again.Name).To(Equal(canary.Name))

		By("a person answers, and the others follow, to questions of their own")
		answer(h, canary)
		Eventually(h.Events).WithArguments("dialog").Should(HaveLen(len(all)))
		for _, s := range others {
			answer(h, s)
		}
		for _, s := range all {
			h.Ready(s)
			h.Await(s, api.ConditionResumed, "True/ConversationContinued")
			Expect(get(s).Status.Restarts).To(BeEquivalentTo(1))
		}
		h.AwaitOutcome(later, testenv.Submitted)
		Expect(h.Events("started")).To(HaveLen(2 * len(all)))

		By("once more, with nothing changed: nobody waits for an answer to another")
		h.Agent.Kill()
		h.StartAgent("--shim", filepath.Join(h.Dir, "upgraded"))
		for _, s := range all {
			h.KillHarness(s)
		}
		Eventually(h.Events).WithArguments("dialog").Should(HaveLen(2 * len(all)))
		waited := 0
		for _, s := range all {
			answer(h, s)
			// Events are told in their order: behind this one, none of before is missing.
			Eventually(h.Reported).WithArguments(s, "StandingResumed").Should(Equal(2))
			waited += h.Reported(s, "SessionSpawnDeferred")
		}
		Expect(waited).To(Equal(len(others)))
	})

	It("H05: has another session go ahead where the first one ends, is stopped or is deleted before its prompt", func() {
		h := env.NewDemoHost()
		all := fleet(h)
		behave(h, "flush-late=0,dialogs=hooks")
		upgrade(h, "upgraded")
		aTurn(h, all[0], "after the upgrade")
		for _, s := range all {
			h.KillHarness(s)
		}
		first, _ := divided(h, all, 1)
		By("its harness ends")
		h.KillHarness(first)
		second, _ := divided(h, all, 2)
		Expect(second.Name).NotTo(Equal(first.Name))
		By("it is stopped")
		want(second, api.SessionStateStopped)
		var left []*api.StandingSession
		for _, s := range all {
			if s.Name != second.Name {
				left = append(left, s)
			}
		}
		third, last := divided(h, left, 3)
		By("it is deleted")
		h.Delete(third)
		Eventually(h.Events).WithArguments("dialog").Should(HaveLen(4))
		Expect(h.Events("dialog-answered")).To(BeEmpty())
		answer(h, last[0])
		h.Ready(last[0])
	})

	It("H05: keeps a restart that was asked for back, and the harness running, while another session goes ahead", func() {
		h := env.NewDemoHost()
		all := fleet(h)
		behave(h, "flush-late=0,dialogs=hooks")
		upgrade(h, "upgraded")
		aTurn(h, all[0], "after the upgrade")
		h.KillHarness(all[0])
		Eventually(h.Events).WithArguments("dialog").Should(HaveLen(1))
		pid := h.HarnessPID(all[1])
		h.Update(all[1], func() { metav1.SetMetaDataAnnotation(&all[1].ObjectMeta, api.RestartRequestedAnnotation, "x") })
		Eventually(h.Message).WithArguments(all[1], api.ConditionSessionRunning).Should(ContainSubstring("the restart that was asked for waits"))
		aTurn(h, all[1], "meanwhile")
		Expect(h.HarnessPID(all[1])).To(Equal(pid))
		answer(h, all[0])
		Eventually(h.Events).WithArguments("dialog").Should(HaveLen(2))
		answer(h, all[1])
		h.Ready(all[1])
		Expect(h.HarnessPID(all[1])).NotTo(Equal(pid))
	})
})
