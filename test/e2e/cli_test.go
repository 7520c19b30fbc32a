package e2e

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/creack/pty"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/testenv"
)

// loop runs the command line on the sessions of a host, and returns what it printed and
// its exit code.
func loop(h *testenv.Host, args ...string) (out, errOut string, code int) {
	GinkgoHelper()
	p := env.Program("the-loop", []string{"KUBECONFIG=" + env.Cluster.Kubeconfig()}, slices.Concat(args, []string{"-n", h.Namespace})...)
	Eventually(p.Session, 2*time.Minute).Should(gexec.Exit())
	return string(p.Out.Contents()), string(p.Err.Contents()), p.ExitCode()
}

var _ = Describe("the command line, with real agents", func() {
	It("C165 C175 C176 C179: creates, starts, speaks to, stops and deletes a standing session, and says how it went", func() {
		h := env.NewDemoHost()
		on := []string{"--class", h.Class, "--host", h.Name}
		Eventually(func() string { out, _, _ := loop(h, "hosts", "list"); return out }).Should(MatchRegexp(`(?m)^` + h.Name + ` +True`))

		By("taking back one whose start fails")
		_, errOut, code := loop(h, append([]string{"standing", "create", "worker", "--cwd", "/does/not/exist"}, on...)...)
		Expect(code).To(Equal(1), errOut)
		Expect(errOut).To(And(ContainSubstring("not kept"), ContainSubstring("DirectoryMissing")))
		out, err := env.TryKubectl("get", "standing", "worker", "-n", h.Namespace)
		Expect(err).To(HaveOccurred(), out)

		By("and a retry works")
		out, errOut, code = loop(h, append([]string{"standing", "create", "worker", "--cwd", h.Work}, on...)...)
		Expect(code).To(Equal(0), errOut)
		Expect(out).To(HavePrefix("worker started"))
		s := &api.StandingSession{}
		s.Namespace, s.Name = h.Namespace, "worker"
		h.Ready(s)

		By("starting what runs, whose process stays the same")
		pid := h.HarnessPID(s)
		out, _, code = loop(h, "standing", "start", "worker")
		Expect(code).To(Equal(0))
		Expect(out).To(HavePrefix("worker already-running"))
		Expect(h.HarnessPID(s)).To(Equal(pid))

		By("speaking to it")
		out, errOut, code = loop(h, "standing", "say", "worker", "How are you?", "--wait", "--actor", "ada")
		Expect(code).To(Equal(0), errOut)
		Expect(out).To(ContainSubstring("submitted"))
		Expect(h.Submits("How are you?")).To(HaveLen(1))
		Expect(h.Submits("How are you?")[0].Text).To(ContainSubstring("(ada)"))

		By("stopping it, speaking to it in vain, and starting it again with its conversation")
		out, _, code = loop(h, "standing", "stop", "worker")
		Expect(code).To(Equal(0))
		Expect(out).To(HavePrefix("worker stopped"))
		_, errOut, code = loop(h, "standing", "say", "worker", "Are you there?")
		Expect(code).To(Equal(1))
		Expect(errOut).To(ContainSubstring("the-loop standing start worker"))
		out, errOut, code = loop(h, "standing", "start", "worker")
		Expect(code).To(Equal(0), errOut)
		Expect(out).To(HavePrefix("worker resumed"))

		By("deleting it")
		out, errOut, code = loop(h, "standing", "delete", "worker")
		Expect(code).To(Equal(0), errOut)
		Expect(out).To(HavePrefix("worker deleted"))
		h.AwaitGone(s)
	})

	It("exits with 0 only when the harness took what was said", func() {
		h := env.NewDemoHost()
		s := h.Standing("held", func(s *api.StandingSession) { s.Spec.DeliveryPolicy = api.DeliveryPolicyHold })
		h.Ready(s)
		_, errOut, code := loop(h, "standing", "say", "held", "later", "--wait", "--timeout", "3s")
		Expect(code).To(Equal(3), errOut)
		Expect(errOut).To(And(ContainSubstring("waiting: "), ContainSubstring("the-loop explain ")))

		By("a harness that gives no evidence: typed is not submitted")
		mute := env.NewDemoHost("swallow-cr=2")
		m := mute.Standing("mute")
		mute.Await(m, api.ConditionSessionRunning, "True/Running")
		Eventually(func() string { out, _, _ := loop(mute, "messages", "list"); return out }).Should(ContainSubstring("Typed"))
		_, errOut, code = loop(mute, "standing", "say", "mute", "hello?", "--wait", "--timeout", "3s")
		Expect(code).To(Equal(3), errOut)
	})

	It("C106: resets a work item's session, which its host lets go of", func() {
		h := env.NewDemoHost()
		s := h.WorkItem(15)
		h.Ready(s)
		out, errOut, code := loop(h, "sessions", "reset", "github:octo/repo#15")
		Expect(code).To(Equal(0), errOut)
		Expect(errOut).To(ContainSubstring("ends its live session loop-github-octo-repo-15"))
		Expect(out).To(Equal("github-octo-repo-15 reset: ended the live session loop-github-octo-repo-15\n"))
		h.AwaitGone(s)
	})
})

var _ = Describe("docs/walkthrough.sh", func() {
	It("walks a newcomer through the command line", func() {
		readme, err := os.ReadFile(filepath.Join(env.Root, "README.md"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(readme)).To(ContainSubstring("\n    PATH=$PWD/bin:$PATH docs/walkthrough.sh\n"))
		// What make run has, on one host: those of other specs are over, and take nothing.
		env.Kubectl("delete", "shost", "--all")
		h := env.NewDemoHost()
		h.Create(&api.SessionClass{
			ObjectMeta: metav1.ObjectMeta{Name: "walk", Labels: map[string]string{api.DefaultClassLabel: "true"}}, Spec: h.DemoClass("flush-late=0"),
		})
		// It must not be every other spec's default.
		DeferCleanup(func() { env.Kubectl("delete", "sclass", "walk") })
		Eventually(func() string { out, _, _ := loop(h, "hosts", "list"); return out }).Should(MatchRegexp(`(?m)^` + h.Name + ` +True`))
		cmd := exec.Command(filepath.Join(env.Root, "docs", "walkthrough.sh"))
		cmd.Dir = h.Dir
		cmd.Env = append(os.Environ(), "KUBECONFIG="+env.Cluster.Kubeconfig(), "TERM=xterm-256color", "PATH="+env.Bin+":"+os.Getenv("PATH"))
		t, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 100})
		Expect(err).NotTo(HaveOccurred())
		defer func() { _ = t.Close() }()
		seen := &transcript{}
		copied := make(chan struct{})
		go func() { defer close(copied); _, _ = io.Copy(io.MultiWriter(seen, GinkgoWriter), t) }()
		Eventually(seen.String, 3*time.Minute).Should(ContainSubstring("$ the-loop standing attach helper"))
		attached := func() string {
			_, after, _ := strings.Cut(seen.String(), "$ the-loop standing attach helper")
			return after
		}
		Eventually(attached).Should(ContainSubstring("How are you getting on?"), "the attached terminal shows the session")
		// Once more where a question of tmux takes the first key.
		Eventually(func() string { _, _ = t.WriteString("\x02d"); return attached() }, time.Minute, 500*time.Millisecond).Should(ContainSubstring("== Hold what is said"))
		err = cmd.Wait()
		<-copied
		Expect(err).NotTo(HaveOccurred(), seen.String())
	})
})
