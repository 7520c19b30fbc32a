package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/devcluster"
)

// Serial: the API server is everybody's.
var _ = Describe("faults of the cluster", Serial, func() {
	It("tears nothing down while the API server is away for 30 seconds, and goes on afterwards", func(ctx SpecContext) {
		h := newHost()
		var all []*api.StandingSession
		for i := range 3 {
			all = append(all, h.standing("away-"+itoa(i), nil))
		}
		for _, s := range all {
			ready(s)
		}
		Expect(cluster.StopAPIServer(ctx)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			// A failed assertion must not leave the suite without its API server.
			_ = cluster.StartAPIServer(ctx)
		}, NodeTimeout(time.Minute))
		h.killHarness(all[2])
		Consistently(func(g Gomega) {
			live := 0
			for _, s := range h.sessions() {
				if s.Live() {
					live++
				}
			}
			// A harness that ends meanwhile may come back or wait; no other may end.
			g.Expect(live).To(BeNumerically(">=", 2))
		}, 30*time.Second, 500*time.Millisecond).Should(Succeed())
		Expect(cluster.StartAPIServer(ctx)).To(Succeed())
		// A watch that was cut off is set up again after up to 30 seconds and more.
		const late = 90 * time.Second
		for _, s := range all {
			Eventually(condition(s, api.ConditionReady), late).Should(Equal("True/Running"))
		}
		Expect(get(all[0]).Status.Restarts).To(BeZero())
		m := h.say(all[1], "you are back")
		Eventually(outcome(m), late).Should(Equal(submitted))
	}, NodeTimeout(6*time.Minute))
})

var _ = Describe("a controller that is one of several", Serial, func() {
	It("takes the lease with the rights of its role, and says so", func() {
		second := startProcess(filepath.Join(binDir, "controller"), []string{"KUBECONFIG=" + kubeconfigFor("theloop-controller")})
		DeferCleanup(second.stop)
		Eventually(func() string {
			out, _ := kubectlTry("get", "lease", "-n", "theloop-system", "theloop-controller", "-o", "jsonpath={.spec.holderIdentity}")
			return out
		}).Should(HavePrefix(hostname()))
		Eventually(func() string {
			out, _ := kubectlTry("get", "events", "-n", "theloop-system", "-o", "jsonpath={.items[*].reason}")
			return out
		}).Should(ContainSubstring("LeaderElection"))
	})
})

func hostname() string {
	name, err := os.Hostname()
	Expect(err).NotTo(HaveOccurred())
	return name
}

var _ = Describe("an idle system", Serial, func() {
	It("with 50 sessions makes no API write in a minute, and its agent needs less than 2 % of a core", func(ctx SpecContext) {
		h := newHost("idle-after=86400000")
		var all []*api.StandingSession
		for i := range 50 {
			all = append(all, h.standing("idle-"+itoa(i), nil))
		}
		for _, s := range all {
			Eventually(condition(s, api.ConditionReady), 2*time.Minute).Should(Equal("True/Running"))
		}
		// The last report of what the harnesses do comes some seconds late.
		Eventually(func() int { return len(h.events("reply")) }, time.Minute).Should(Equal(50))
		Eventually(func() int { return h.writes(time.Now().Add(-12 * time.Second)) }, time.Minute, time.Second).Should(BeZero())

		from, cpu := time.Now(), cpuSeconds(h.agent.pid())
		timer := time.NewTimer(time.Minute)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		Expect(h.writes(from)).To(BeZero())
		used := (cpuSeconds(h.agent.pid()) - cpu) / time.Since(from).Seconds()
		GinkgoWriter.Printf("the agent used %.2f %% of a core\n", used*100)
		Expect(used).To(BeNumerically("<", 0.02))
	}, NodeTimeout(6*time.Minute))
})

// writes counts the writes of our programs about this host and its sessions since a
// moment, but for the Lease by which the host shows that it is alive. The hosts of other
// tests have been ended, which is told.
func (h *host) writes(since time.Time) int {
	GinkgoHelper()
	all, err := devcluster.ReadRequestLog(filepath.Join(suiteDir, "requests.log"))
	Expect(err).NotTo(HaveOccurred())
	n := 0
	for _, r := range all {
		if r.IsWrite() && r.Time.After(since) && strings.HasPrefix(r.User, "theloop-") && r.Resource != "leases" && (r.Namespace == h.ns || r.Name == h.name) {
			n++
			GinkgoWriter.Printf("%s %s %s %s/%s\n", r.User, r.Verb, r.Resource, r.Namespace, r.Name)
		}
	}
	return n
}

// cpuSeconds is the processor time that a process and its ended children used.
func cpuSeconds(pid int) float64 {
	GinkgoHelper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	Expect(err).NotTo(HaveOccurred())
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+2:]))
	total := 0.0
	for _, i := range []int{11, 12, 13, 14} { // utime, stime, cutime, cstime
		var ticks float64
		_, err := fmt.Sscan(f[i], &ticks)
		Expect(err).NotTo(HaveOccurred())
		total += ticks
	}
	return total / 100
}

var _ = Describe("bad input", func() {
	// refusal makes a session that cannot start, sees it say why, sees that nothing was
	// made, mends the reason and sees it start.
	refusal := func(h *host, s *api.StandingSession, reason, says string, mend func()) {
		GinkgoHelper()
		Eventually(condition(s, api.ConditionReady)).Should(Equal("False/" + reason))
		Expect(message(s, api.ConditionReady)).To(ContainSubstring(says))
		Expect(h.sessions()).To(BeEmpty())
		var msgs api.SessionMessageList
		Expect(k8s.List(context.Background(), &msgs, client.InNamespace(h.ns))).To(Succeed())
		Expect(msgs.Items).To(BeEmpty())
		mend()
		Eventually(condition(s, api.ConditionReady), 30*time.Second).Should(Equal("True/Running"))
	}

	It("names a class that does not exist, and starts when it does", func() {
		h := newHost()
		s := h.standing("s", func(s *api.StandingSession) { s.Spec.ClassName = "later-" + h.name })
		refusal(h, s, "ClassNotFound", "SessionClass later-"+h.name+" does not exist", func() { h.createClass("later-"+h.name, "", nil) })
	})

	It("names a harness that it does not know, and the known ones", func() {
		h := newHost()
		class := "unknown-" + h.name
		h.createClass(class, "", func(c *api.SessionClass) { c.Spec.Harness.Name = "hal" })
		s := h.standing("s", func(s *api.StandingSession) { s.Spec.ClassName = class })
		refusal(h, s, "HarnessUnsupported", "known are claude", func() { mendClass(class, func(c *api.SessionClass) { c.Spec.Harness.Name = "claude" }) })
	})

	It("names a binary that is not there", func() {
		h := newHost()
		class := "nobin-" + h.name
		h.createClass(class, "", func(c *api.SessionClass) { c.Spec.Harness.Binary = "/nonexistent/claude" })
		s := h.standing("s", func(s *api.StandingSession) { s.Spec.ClassName = class })
		refusal(h, s, "BinaryMissing", "/nonexistent/claude is not an executable", func() {
			mendClass(class, func(c *api.SessionClass) { c.Spec.Harness.Binary = filepath.Join(binDir, "fakeharness") })
		})
	})

	It("names a working directory that is not there", func() {
		h := newHost()
		dir := filepath.Join(h.dir, "absent")
		s := h.standing("s", func(s *api.StandingSession) { s.Spec.Cwd = dir })
		refusal(h, s, "DirectoryMissing", dir+" does not exist", func() { Expect(os.Mkdir(dir, 0o700)).To(Succeed()) })
	})

	It("names a prompt file that cannot be read, and starts the other sessions all the same", func() {
		h := newHost()
		file := filepath.Join(h.dir, "brief.txt")
		s := h.standing("s", func(s *api.StandingSession) { s.Spec.PromptFile = file })
		refusal(h, s, "PromptUnreadable", "spec.promptFile cannot be read", func() {
			Expect(os.WriteFile(file, []byte("the brief from a file"), 0o600)).To(Succeed())
		})
		Eventually(func() []logged { return h.submits("the brief from a file") }).Should(HaveLen(1))
	})

	It("names a ConfigMap that is not there", func() {
		h := newHost()
		s := h.standing("s", func(s *api.StandingSession) {
			s.Spec.PromptFrom = &api.PromptSource{ConfigMapKeyRef: api.ConfigMapKey{Name: "brief", Key: "text"}}
		})
		refusal(h, s, "PromptUnreadable", "ConfigMap "+h.ns+"/brief", func() {
			kubectl("create", "configmap", "-n", h.ns, "brief", "--from-literal=text=the brief from a map")
		})
		Eventually(func() []logged { return h.submits("the brief from a map") }).Should(HaveLen(1))
	})

	It("names harness arguments that would fight ours", func() {
		h := newHost()
		s := h.standing("s", func(s *api.StandingSession) { s.Spec.HarnessArgs = []string{"--resume", "x"} })
		refusal(h, s, "InvalidSpec", "--resume", func() { update(s, func() { s.Spec.HarnessArgs = []string{} }) })
	})

	It("names a model that the class does not declare", func() {
		h := newHost()
		s := h.standing("s", func(s *api.StandingSession) { s.Spec.Model = "opus" })
		refusal(h, s, "InvalidSpec", `spec.model "opus" is not declared`, func() { mendClass(h.class, func(c *api.SessionClass) { c.Spec.Models = []string{"opus"} }) })
	})

	It("says that no host takes a session, and binds it when one does", func() {
		h := newHost()
		s := h.standing("s", func(s *api.StandingSession) {
			s.Spec.HostName = ""
			s.Spec.HostSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"for": h.name}}
		})
		refusal(h, s, "NoHostAvailable", "none of the", func() {
			Eventually(func() error { _, err := kubectlTry("label", "shost", h.name, "for="+h.name); return err }).Should(Succeed())
		})
	})

	It("ends a message that has no session", func() {
		h := newHost()
		s := h.standing("short", nil)
		ready(s)
		Expect(k8s.Delete(context.Background(), s)).To(Succeed())
		Eventually(func() error { return k8s.Get(context.Background(), client.ObjectKeyFromObject(s), s) }).ShouldNot(Succeed())
		m := &api.SessionMessage{}
		m.Namespace, m.GenerateName = h.ns, "m-"
		m.Spec = api.SessionMessageSpec{SessionRef: api.SessionReference{Kind: s.SessionKind(), Name: s.Name, UID: s.UID}, Text: "too late"}
		Expect(k8s.Create(context.Background(), m)).To(Succeed())
		Eventually(outcome(m), 90*time.Second).Should(Equal("Refused/SessionNotFound"))
	})
})

func mendClass(name string, change func(*api.SessionClass)) {
	GinkgoHelper()
	c := &api.SessionClass{}
	c.Name = name
	update(c, func() { change(c) })
}
