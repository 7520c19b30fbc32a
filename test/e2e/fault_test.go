package e2e

import (
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/testenv"
)

// What takes longest begins first, where processes share the specs: each has a control
// plane of its own.
var _ = Describe("faults of the cluster", SpecPriority(1), func() {
	It("tears nothing down while the API server is away for 30 seconds, and goes on afterwards", func(ctx SpecContext) {
		h := env.NewDemoHost()
		var all []*api.StandingSession
		for i := range 3 {
			all = append(all, h.Standing("away-"+itoa(i)))
		}
		for _, s := range all {
			h.Ready(s)
		}
		Expect(env.Cluster.StopAPIServer(ctx)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			// A failed assertion must not leave the suite without its API server.
			_ = env.Cluster.StartAPIServer(ctx)
			// It watches again what it watched, but late; the next test does not wait for that.
			env.RestartController()
		}, NodeTimeout(time.Minute))
		h.KillHarness(all[2])
		Consistently(func(g Gomega) {
			live := 0
			for _, s := range h.Sessions() {
				if s.Live() {
					live++
				}
			}
			// A harness that ends meanwhile may come back or wait; no other may end.
			g.Expect(live).To(BeNumerically(">=", 2))
		}, 30*time.Second, 500*time.Millisecond).Should(Succeed())
		Expect(env.Cluster.StartAPIServer(ctx)).To(Succeed())
		// A watch that was cut off is set up again after up to a minute, and later where much runs.
		const late = 150 * time.Second
		for _, s := range all {
			h.Ready(s, late)
		}
		Expect(get(all[0]).Status.Restarts).To(BeZero())
		m := h.Say(all[1], "you are back")
		h.AwaitOutcome(m, testenv.Submitted, late)
	}, NodeTimeout(6*time.Minute))
})

var _ = Describe("a controller that is one of several", func() {
	It("takes the lease with the rights of its role, and says so", func() {
		env.StartController()
		Eventually(func() string {
			out, _ := env.TryKubectl("get", "lease", "-n", "theloop-system", "theloop-controller", "-o", "jsonpath={.spec.holderIdentity}")
			return out
		}).Should(HavePrefix(hostname()))
		Eventually(func() string {
			out, _ := env.TryKubectl("get", "events", "-n", "theloop-system", "-o", "jsonpath={.items[*].reason}")
			return out
		}).Should(ContainSubstring("LeaderElection"))
	})
})

func hostname() string {
	name, err := os.Hostname()
	Expect(err).NotTo(HaveOccurred())
	return name
}

var _ = Describe("an idle system", SpecPriority(1), func() {
	It("with 50 sessions makes no API write in a minute, and its agent needs less than 2 % of a core", func(ctx SpecContext) {
		h := env.NewDemoHost("idle-after=86400000")
		var all []*api.StandingSession
		for i := range 50 {
			all = append(all, h.Standing("idle-"+itoa(i)))
		}
		for _, s := range all {
			h.Ready(s, 2*time.Minute)
		}
		// The last report of what the harnesses do comes some seconds late.
		Eventually(func() int { return len(h.Events("reply")) }, time.Minute).Should(Equal(50))
		Eventually(func() int { return h.Writes(time.Now().Add(-12 * time.Second)) }, time.Minute, time.Second).Should(BeZero())

		from, cpu := time.Now(), h.Agent.CPUSeconds()
		timer := time.NewTimer(time.Minute)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		Expect(h.Writes(from)).To(BeZero())
		used := (h.Agent.CPUSeconds() - cpu) / time.Since(from).Seconds()
		GinkgoWriter.Printf("the agent used %.2f %% of a core\n", used*100)
		Expect(used).To(BeNumerically("<", 0.02))
	}, NodeTimeout(6*time.Minute))
})

var _ = Describe("bad input", func() {
	// refusal makes a session that cannot start, sees it say why, sees that nothing was
	// made, mends the reason and sees it start.
	refusal := func(h *testenv.Host, s *api.StandingSession, reason, says string, mend func()) {
		GinkgoHelper()
		h.Await(s, api.ConditionReady, "False/"+reason)
		Expect(h.Message(s, api.ConditionReady)).To(ContainSubstring(says))
		Expect(h.Sessions()).To(BeEmpty())
		Expect(h.Messages(s)).To(BeEmpty())
		mend()
		h.Ready(s)
	}

	It("names a class that does not exist, and starts when it does", func() {
		h := env.NewDemoHost()
		s := h.Standing("s", func(s *api.StandingSession) { s.Spec.ClassName = "later-" + h.Name })
		refusal(h, s, "ClassNotFound", "SessionClass later-"+h.Name+" does not exist", func() { h.CreateClass("later-"+h.Name, h.DemoClass()) })
	})

	It("C011: names a harness that it does not know, and the known ones", func() {
		h := env.NewDemoHost()
		class := "unknown-" + h.Name
		spec := h.DemoClass()
		spec.Harness.Name = "hal"
		h.CreateClass(class, spec)
		s := h.Standing("s", func(s *api.StandingSession) { s.Spec.ClassName = class })
		refusal(h, s, "HarnessUnsupported", "known are claude", func() { h.UpdateClass(class, func(c *api.SessionClass) { c.Spec.Harness.Name = "claude" }) })
	})

	It("C012: names a binary that is not there", func() {
		h := env.NewDemoHost()
		class := "nobin-" + h.Name
		spec := h.DemoClass()
		spec.Harness.Binary = "/nonexistent/claude"
		h.CreateClass(class, spec)
		s := h.Standing("s", func(s *api.StandingSession) { s.Spec.ClassName = class })
		refusal(h, s, "BinaryMissing", "/nonexistent/claude is not an executable", func() {
			h.UpdateClass(class, func(c *api.SessionClass) { c.Spec.Harness.Binary = h.DemoHarness() })
		})
	})

	It("T25: names a working directory that is not there", func() {
		h := env.NewDemoHost()
		dir := filepath.Join(h.Dir, "absent")
		s := h.Standing("s", func(s *api.StandingSession) { s.Spec.Cwd = dir })
		refusal(h, s, "DirectoryMissing", dir+" does not exist", func() { Expect(os.Mkdir(dir, 0o700)).To(Succeed()) })
	})

	It("C163: names a prompt file that cannot be read, and starts the other sessions all the same", func() {
		h := env.NewDemoHost()
		file := filepath.Join(h.Dir, "brief.txt")
		s := h.Standing("s", func(s *api.StandingSession) { s.Spec.PromptFile = file })
		refusal(h, s, "PromptUnreadable", "spec.promptFile cannot be read", func() {
			h.Ready(h.Standing("other"))
			Expect(os.WriteFile(file, []byte("the brief from a file"), 0o600)).To(Succeed())
		})
		Eventually(h.Submits).WithArguments("the brief from a file").Should(HaveLen(1))
	})

	It("names a ConfigMap that is not there", func() {
		h := env.NewDemoHost()
		s := h.Standing("s", func(s *api.StandingSession) {
			s.Spec.PromptFrom = &api.PromptSource{ConfigMapKeyRef: api.ConfigMapKey{Name: "brief", Key: "text"}}
		})
		refusal(h, s, "PromptUnreadable", "ConfigMap "+h.Namespace+"/brief", func() {
			env.Kubectl("create", "configmap", "-n", h.Namespace, "brief", "--from-literal=text=the brief from a map")
		})
		Eventually(h.Submits).WithArguments("the brief from a map").Should(HaveLen(1))
	})

	It("names harness arguments that would fight ours", func() {
		h := env.NewDemoHost()
		s := h.Standing("s", func(s *api.StandingSession) { s.Spec.HarnessArgs = []string{"--resume", "x"} })
		refusal(h, s, "InvalidSpec", "--resume", func() { h.Update(s, func() { s.Spec.HarnessArgs = []string{} }) })
	})

	It("says that no host takes a session, and binds it when one does", func() {
		h := env.NewDemoHost()
		s := h.Standing("s", func(s *api.StandingSession) {
			s.Spec.HostName = ""
			s.Spec.HostSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"for": h.Name}}
		})
		refusal(h, s, "NoHostAvailable", "none of the", func() {
			Eventually(func() error { _, err := env.TryKubectl("label", "shost", h.Name, "for="+h.Name); return err }).Should(Succeed())
		})
	})

	It("ends a message that has no session", SpecPriority(1), func() {
		h := env.NewDemoHost()
		s := h.Standing("short")
		h.Ready(s)
		h.Delete(s)
		h.AwaitGone(s)
		m := h.Say(s, "too late", func(m *api.SessionMessageSpec) { m.SessionRef.UID = s.UID })
		h.AwaitOutcome(m, "Refused/SessionNotFound", 90*time.Second)
	})
})
