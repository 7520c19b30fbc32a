package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/testenv"
)

// script writes an executable of a host: bash that may use $harness, the demo harness, and
// $dir, the host's directory.
func script(h *testenv.Host, name, text string) string {
	GinkgoHelper()
	path := filepath.Join(h.Dir, name)
	text = fmt.Sprintf("#!/bin/bash\nharness=%q\ndir=%q\n%s\n", h.DemoHarness(), h.Dir, text)
	// Written beside it, because what runs cannot be written to.
	Expect(os.WriteFile(path+".new", []byte(text), 0o700)).To(Succeed())
	Expect(os.Rename(path+".new", path)).To(Succeed())
	return path
}

// environOf is the environment that a process was started with.
func environOf(pid int) []string {
	GinkgoHelper()
	b, err := os.ReadFile("/proc/" + itoa(pid) + "/environ")
	Expect(err).NotTo(HaveOccurred())
	return strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
}

// behaves adds behaviours of the demo harness to a class, for its next starts.
func behaves(h *testenv.Host, class string, behaviour ...string) {
	GinkgoHelper()
	h.UpdateClass(class, func(c *api.SessionClass) {
		c.Spec.Harness.Env = h.DemoClass(append([]string{"flush-late=0"}, behaviour...)...).Harness.Env
	})
}

// another is a class beside the host's own, which behaves as said.
func another(h *testenv.Host, name string, behaviour ...string) func(*api.StandingSession) {
	GinkgoHelper()
	name += "-" + h.Name
	h.CreateClass(name, h.DemoClass(append([]string{"flush-late=0"}, behaviour...)...))
	return func(s *api.StandingSession) { s.Spec.ClassName = name }
}

var _ = Describe("what a terminal showed", func() {
	It("T15: is never cleared, whatever is delivered while a person reads it", func() {
		h := env.NewDemoHost()
		s := h.Standing("read")
		h.AwaitOutcome(h.Say(s, "fake: output=300\nShow it."), testenv.Submitted)
		pane := h.Pane(s).ID
		shown := func() string { return h.Tmux("capture-pane", "-p", "-J", "-S", "-", "-t", pane) }
		Eventually(shown).Should(ContainSubstring("line 300 of 300"))
		size := func() int {
			n, err := strconv.Atoi(strings.TrimSpace(h.Tmux("display-message", "-p", "-t", pane, "#{history_size}")))
			Expect(err).NotTo(HaveOccurred())
			return n
		}
		attached(h, s)
		for i := range 3 {
			before := size()
			h.Tmux("copy-mode", "-t", pane)
			h.Tmux("send-keys", "-t", pane, "-X", "history-top")
			Expect(h.Pane(s).InMode).To(BeTrue())
			aTurn(h, s, fmt.Sprintf("while it is read %d", i))
			Expect(size()).To(BeNumerically(">=", before))
		}
		want(s, api.SessionStateStopped)
		h.Await(s, api.ConditionReady, "True/Stopped")
		Expect(h.Pane(s).ID).To(Equal(pane))
		Expect(shown()).To(And(ContainSubstring("line 1 of 300"), ContainSubstring("line 300 of 300"), ContainSubstring("while it is read 2")))
	})

	It("T12: is told with the exit status where the harness ended at once", func() {
		h := env.NewDemoHost()
		s := h.WorkItem(12)
		h.UpdateClass(h.Class, func(c *api.SessionClass) {
			c.Spec.Harness.Binary = script(h, "broken", `echo "cannot open its database: no such file" >&2; exit 3`)
		})
		h.Update(s, func() { s.Annotations = map[string]string{api.RestartRequestedAnnotation: "one"} })
		h.Await(s, api.ConditionReady, "False/Exited")
		Expect(h.Message(s, api.ConditionReady)).To(Equal("the harness ended with exit status 3; the next message starts it again; " +
			"the last lines of its terminal: cannot open its database: no such file"))
	})

	It("T14: on the alternate screen is not what is kept of it: that is the conversation, whole, and it goes on", func() {
		h := env.NewDemoHost("alt-screen")
		s := h.Standing("alternate")
		h.AwaitOutcome(h.Say(s, "fake: output=500\nShow it."), testenv.Submitted)
		Eventually(answered).WithArguments(h, "Show it.").Should(BeTrue())
		id := get(s).Status.ConversationID
		want(s, api.SessionStateStopped)
		h.Await(s, api.ConditionReady, "True/Stopped")
		Expect(h.Tmux("capture-pane", "-p", "-S", "-", "-t", h.Pane(s).ID)).NotTo(ContainSubstring("line 1 of 500"), "no scrollback")
		files, err := filepath.Glob(filepath.Join(h.Dir, "harness", "projects", "*", id+".jsonl"))
		Expect(err).NotTo(HaveOccurred())
		Expect(files).To(HaveLen(1))
		kept, err := os.ReadFile(files[0])
		Expect(err).NotTo(HaveOccurred())
		Expect(string(kept)).To(ContainSubstring("Show it."))
		Expect(h.Message(s, api.ConditionSessionRunning)).To(HaveSuffix("the whole conversation is in " + files[0]))
		want(s, api.SessionStateRunning)
		h.Await(s, api.ConditionResumed, "True/ConversationContinued")
		Expect(get(s).Status.ConversationID).To(Equal(id))
	})
})

var _ = Describe("a harness behind a wrapper", func() {
	It("T19: is adopted, resumed and ended like any other, whatever its command is called", func() {
		h := env.NewDemoHost()
		Expect(os.Symlink(h.DemoHarness(), filepath.Join(h.Dir, ".claude-wrapped"))).To(Succeed())
		node := script(h, "node", `"$dir/.claude-wrapped" "$@"`)
		h.UpdateClass(h.Class, func(c *api.SessionClass) { c.Spec.Harness.Binary = node })
		s := h.Standing("wrapped")
		aTurn(h, s, "first")
		wrapper, id := h.HarnessPID(s), get(s).Status.ConversationID
		comm, err := os.ReadFile("/proc/" + itoa(wrapper) + "/comm")
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.TrimSpace(string(comm))).To(Equal("node"))
		harness := h.Events("started")[0].PID
		Expect(harness).NotTo(Equal(wrapper))

		By("an agent that comes anew")
		h.RestartAgent()
		aTurn(h, s, "second")
		Expect(h.HarnessPID(s)).To(Equal(wrapper))
		Expect(h.Events("started")).To(HaveLen(1))

		By("the end of the wrapper alone")
		h.KillHarness(s)
		Eventually(gone(harness)).Should(BeTrue())
		h.Await(s, api.ConditionResumed, "True/ConversationContinued")
		Expect(get(s).Status.ConversationID).To(Equal(id))
		aTurn(h, s, "third")

		By("a stop")
		wrapper, harness = h.HarnessPID(s), h.Events("started")[1].PID
		want(s, api.SessionStateStopped)
		h.Await(s, api.ConditionReady, "True/Stopped")
		Expect(gone(wrapper)()).To(BeTrue())
		Expect(gone(harness)()).To(BeTrue())
	})
})

var _ = Describe("a harness that was replaced on the disk", func() {
	It("H15, R11: goes on under its session, also when the old one is gone; the next start takes the new one", func() {
		h := env.NewDemoHost()
		program := func(version string) {
			GinkgoHelper()
			dir := filepath.Join(h.Dir, "versions", version)
			Expect(os.MkdirAll(dir, 0o700)).To(Succeed())
			path := script(h, filepath.Join("versions", version, "harness"), "export VERSION="+version+"\n"+`exec "$harness" "$@"`)
			link := filepath.Join(h.Dir, "current")
			Expect(os.Symlink(path, link+".new")).To(Succeed())
			Expect(os.Rename(link+".new", link)).To(Succeed())
		}
		program("1")
		h.UpdateClass(h.Class, func(c *api.SessionClass) { c.Spec.Harness.Binary = filepath.Join(h.Dir, "current") })
		s := h.WorkItem(15)
		aTurn(h, s, "first")
		pid := h.HarnessPID(s)
		Expect(environOf(pid)).To(ContainElement("VERSION=1"))

		By("an update that takes away what runs")
		program("2")
		Expect(os.RemoveAll(filepath.Join(h.Dir, "versions", "1"))).To(Succeed())
		aTurn(h, s, "second")
		h.Ready(s)
		Expect(h.HarnessPID(s)).To(Equal(pid))

		By("no program at all")
		Expect(os.Remove(filepath.Join(h.Dir, "current"))).To(Succeed())
		h.RestartAgent()
		aTurn(h, s, "third")
		h.Ready(s)
		Expect(h.HarnessPID(s)).To(Equal(pid))
		program("3")

		h.KillHarness(s)
		h.Await(s, api.ConditionReady, "False/Exited")
		aTurn(h, s, "fourth")
		Expect(environOf(h.HarnessPID(s))).To(ContainElement("VERSION=3"))
		h.Await(s, api.ConditionResumed, "True/ConversationContinued")
		Expect(filepath.Join(h.Dir, "versions", "2", "harness")).To(BeARegularFile(), "no version is ours to remove")

		By("R11: telling that the conversation goes on with another one, and not when it does not")
		Expect(h.Message(s, api.ConditionResumed)).To(ContainSubstring("the harness was updated since it was last held"))
		told(h, s, "session.harness_updated", 1)
		h.KillHarness(s)
		h.Await(s, api.ConditionReady, "False/Exited")
		aTurn(h, s, "fifth")
		h.Await(s, api.ConditionResumed, "True/ConversationContinued")
		Expect(h.Message(s, api.ConditionResumed)).To(Equal("the recorded conversation goes on"))
		told(h, s, "session.harness_updated", 1)
	})
})

var _ = Describe("a question at the start", SpecPriority(1), func() {
	It("H04, H05, H07, H17, H19: holds its session alone, known or not: nothing is typed or ended, it is told, and a person's answer lets it go on", func() {
		h := env.NewDemoHost()
		kinds := []string{"update", "hooks", "unknown", "theme"}
		var asking []*api.StandingSession
		for _, kind := range kinds {
			asking = append(asking, h.Standing("asks-"+kind, another(h, "asks-"+kind, "dialogs="+kind)))
		}
		beside := h.Standing("beside")
		aTurn(h, beside, "undisturbed")
		Eventually(h.Events).WithArguments("dialog").Should(HaveLen(len(kinds)))
		var held []*api.SessionMessage
		for _, s := range asking {
			held = append(held, h.Say(s, "for "+s.Name))
			Expect(environOf(h.HarnessPID(s))).To(ContainElement("DISABLE_AUTOUPDATER=1"))
		}
		for i, s := range asking {
			h.Await(s, api.ConditionAcceptingInput, "False/NotReady", 90*time.Second)
			Expect(h.Message(s, api.ConditionAcceptingInput)).To(And(ContainSubstring(s.Status.AttachCommand),
				MatchRegexp(`the last lines of its terminal: .*%s`, map[string]string{
					"update": "Update available", "hooks": "Hooks need review", "unknown": "Try the new renderer", "theme": "Choose the text style",
				}[kinds[i]])))
			h.Await(s, api.ConditionReady, "False/NotReady")
			Eventually(h.Reported).WithArguments(s, "SessionAwaitingInput").Should(Equal(1))
			Expect(h.Outcome(held[i])()).NotTo(HavePrefix("Submitted"))
		}
		Expect(h.Events("dialog-answered")).To(BeEmpty())
		Expect(h.Events("dropped")).To(BeEmpty())
		Expect(h.Events("signal")).To(BeEmpty())
		Expect(h.Events("started")).To(HaveLen(len(kinds) + 1))
		aTurn(h, beside, "still undisturbed")
		for i, s := range asking {
			// The last option lets each of them go on.
			h.Keys(s.Status.TmuxTarget, map[string]string{"update": "2", "hooks": "3", "unknown": "2", "theme": "1"}[kinds[i]])
			h.AwaitOutcome(held[i], testenv.Submitted)
			h.Ready(s)
			Expect(h.Submits("for " + s.Name)).To(HaveLen(1))
			Expect(get(s).Status.Restarts).To(BeZero())
		}
		Expect(h.Events("started")).To(HaveLen(len(kinds) + 1))
	})
})

var _ = Describe("a slow start", SpecPriority(1), func() {
	It("H17: of twenty seconds is no failure, neither of a fresh conversation nor of a resume", func() {
		h := env.NewDemoHost()
		resumed := h.Standing("resumed")
		aTurn(h, resumed, "first")
		id := get(resumed).Status.ConversationID
		const slow = "slow-start=20000"
		behaves(h, h.Class, slow)
		h.KillHarness(resumed)
		fresh := h.Standing("fresh", another(h, "slow", slow))
		m := h.Say(fresh, "when you are there")
		for _, s := range []testenv.Session{resumed, fresh} {
			h.Ready(s, time.Minute)
		}
		h.AwaitOutcome(m, testenv.Submitted)
		h.Await(resumed, api.ConditionResumed, "True/ConversationContinued")
		Expect(get(resumed).Status.ConversationID).To(Equal(id))
		Expect(h.Events("started")).To(HaveLen(3))
		Expect(h.Events("signal")).To(BeEmpty())
		Expect(h.Reported(resumed, "SessionResumeFailed")).To(BeZero())
	})
})

var _ = Describe("a turn that a child holds up", func() {
	It("H18: shows as busy, and since when; one child can be ended alone, and a stop ends the others too", func() {
		h := env.NewDemoHost()
		s := h.Standing("held-up")
		h.Ready(s)
		Eventually(h.Events).WithArguments("reply").Should(HaveLen(1))
		said := time.Now()
		h.AwaitOutcome(h.Say(s, "fake: children=normal+setsid+daemon, think=600000\nRun it."), testenv.Submitted)
		Eventually(h.Events).WithArguments("child").Should(HaveLen(3))
		h.Await(s, api.ConditionAcceptingInput, "True/Busy")
		activity := get(s).Status.Activity
		Expect(activity).To(HaveValue(HaveField("State", api.ActivityState("Busy"))))
		Expect(activity.Since.Time).To(BeTemporally("~", said, 10*time.Second))
		h.Ready(s)
		one, others := h.Events("child")[0].PID, h.Events("child")[1:]
		Expect(syscall.Kill(one, syscall.SIGKILL)).To(Succeed())
		Eventually(gone(one)).Should(BeTrue())
		Consistently(func() bool { return gone(others[0].PID)() || gone(others[1].PID)() }, time.Second).Should(BeFalse())
		h.Ready(s)
		want(s, api.SessionStateStopped)
		h.Await(s, api.ConditionReady, "True/Stopped")
		for _, child := range others {
			Eventually(gone(child.PID)).Should(BeTrue())
		}
	})
})

var _ = Describe("the trust in a checkout", func() {
	// trusted lists the directories that the harness's own configuration trusts.
	trusted := func(h *testenv.Host) (dirs []string) {
		GinkgoHelper()
		b, err := os.ReadFile(filepath.Join(h.Dir, "harness", ".claude.json"))
		if os.IsNotExist(err) {
			return nil
		}
		Expect(err).NotTo(HaveOccurred())
		var config struct {
			Projects map[string]struct {
				Accepted bool `json:"hasTrustDialogAccepted"`
			} `json:"projects"`
		}
		Expect(json.Unmarshal(b, &config)).To(Succeed())
		for dir, p := range config.Projects {
			if p.Accepted {
				dirs = append(dirs, dir)
			}
		}
		return dirs
	}

	It("H22: is not given for the head of a stranger, which is said, and is for a branch of the repository", func() {
		f := newForge(func(c *api.SessionClassSpec) {
			c.Trust = api.TrustPolicy{Enabled: new(true), Scope: "Directory"}
			c.Plugins.Enabled = new(false)
		}, "trust-dialog")
		f.UpdateClass(f.Class, func(c *api.SessionClass) {
			c.Spec.Harness.Env = append(c.Spec.Harness.Env, api.EnvVar{Name: "CLAUDE_CONFIG_DIR", Value: filepath.Join(f.Dir, "harness")})
		})
		seed := filepath.Join(f.Dir, "seed")
		Expect(os.MkdirAll(filepath.Join(seed, ".claude"), 0o700)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(seed, ".claude", "settings.json"), []byte(`{"permissions":{"allow":["Bash"]}}`), 0o600)).To(Succeed())
		gitIn(seed, "add", ".")
		gitIn(seed, "commit", "--quiet", "-m", "grants")
		gitIn(seed, "push", "--quiet", "origin", "HEAD:refs/pull/16/head", "--force")

		own := f.WorkItem(15)
		f.Ready(own)
		stranger := f.pullRequest(16)
		Eventually(f.Events).WithArguments("dialog").Should(ConsistOf(HaveField("Kind", "trust")))
		friend := f.pullRequest(17, func(s *api.WorkItemSession) {
			s.Name, s.Spec.Workspace = "github-octo-repo-pr-17", &api.SessionWorkspace{Branch: "feature"}
		})
		f.Ready(friend)
		Expect(get(stranger).Status.Checkout.Path).To(BeADirectory())
		Expect(filepath.Join(stranger.Status.Checkout.Path, ".claude", "settings.json")).To(BeARegularFile(), "the stranger's head")
		Expect(trusted(f.Host)).To(ConsistOf(get(own).Status.Checkout.Path, get(friend).Status.Checkout.Path))
		for s, said := range map[*api.WorkItemSession]bool{own: false, friend: false, stranger: true} {
			Expect(strings.Contains(f.Message(s, api.ConditionWorkspaceReady), "not trusted beforehand")).To(Equal(said), s.Name)
		}
		Expect(f.Reported(stranger, "WorkspaceTrusted")).To(BeZero())

		By("a branch that was begun in the checkout, which is restored with it")
		path := stranger.Status.Checkout.Path
		gitIn(path, "checkout", "--quiet", "-b", "begun-here")
		gitIn(path, "commit", "--quiet", "--allow-empty", "-m", "not pushed")
		want(stranger, api.SessionStateStopped)
		f.Await(stranger, api.ConditionWorkspaceReady, "False/CheckoutRemoved")
		f.Update(stranger, func() {
			metav1.SetMetaDataAnnotation(&stranger.ObjectMeta, api.UndoCleanupAnnotation, "again")
			stranger.Spec.State = api.SessionStateRunning
		})
		Eventually(f.Events).WithArguments("dialog").Should(HaveLen(2))
		Expect(gitIn(path, "branch", "--show-current")).To(Equal("begun-here"))
		Expect(trusted(f.Host)).NotTo(ContainElement(path))
	})
})

var _ = Describe("a login that was replaced", func() {
	It("H23: is the one that the next start gets, from the class and from the agent's environment; what runs is left alone", func() {
		h := env.NewHost(func(h *testenv.Host) api.SessionClassSpec {
			h.AgentEnv = []string{"ANTHROPIC_API_KEY=of-the-host-1"}
			spec := h.DemoClass("flush-late=0")
			spec.Harness.Env = append(spec.Harness.Env, api.EnvVar{Name: "CLAUDE_CODE_OAUTH_TOKEN", Value: "of-the-class-1"})
			return spec
		})
		s := h.WorkItem(23)
		aTurn(h, s, "first")
		pid := h.HarnessPID(s)
		Expect(environOf(pid)).To(ContainElements("ANTHROPIC_API_KEY=of-the-host-1", "CLAUDE_CODE_OAUTH_TOKEN=of-the-class-1"))

		h.AgentEnv = []string{"ANTHROPIC_API_KEY=of-the-host-2"}
		h.RestartAgent()
		h.UpdateClass(h.Class, func(c *api.SessionClass) {
			for i := range c.Spec.Harness.Env {
				if v := &c.Spec.Harness.Env[i]; v.Name == "CLAUDE_CODE_OAUTH_TOKEN" {
					v.Value = "of-the-class-2"
				}
			}
		})
		aTurn(h, s, "second")
		Expect(h.HarnessPID(s)).To(Equal(pid))

		want(s, api.SessionStateStopped)
		h.Await(s, api.ConditionReady, "True/Stopped")
		want(s, api.SessionStateRunning)
		h.Await(s, api.ConditionResumed, "True/ConversationContinued")
		now := environOf(h.HarnessPID(s))
		Expect(now).To(ContainElements("ANTHROPIC_API_KEY=of-the-host-2", "CLAUDE_CODE_OAUTH_TOKEN=of-the-class-2"))
		Expect(now).NotTo(ContainElement(HaveSuffix("-1")))
	})
})
