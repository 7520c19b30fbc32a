package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/testenv"
)

// gitIn runs git as a developer would.
func gitIn(dir string, args ...string) string {
	GinkgoHelper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=Octo", "-c", "user.email=octo@example.com"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "git %s: %s", strings.Join(args, " "), out)
	return strings.TrimSpace(string(out))
}

// forge is a host whose class checks out octo/repo from a repository on disk: git itself
// is told to look there instead of at github.com.
type forge struct {
	*testenv.Host
	root, bare string
}

func newForge(change func(*api.SessionClassSpec), behaviour ...string) *forge {
	GinkgoHelper()
	f := &forge{}
	f.Host = env.NewHost(func(h *testenv.Host) api.SessionClassSpec {
		f.root, f.bare = filepath.Join(h.Dir, "root"), filepath.Join(h.Dir, "forge", "octo", "repo.git")
		Expect(os.MkdirAll(f.bare, 0o700)).To(Succeed())
		gitIn(f.bare, "init", "--quiet", "--bare", "--initial-branch=main")
		seed := filepath.Join(h.Dir, "seed")
		gitIn(h.Dir, "clone", "--quiet", f.bare, seed)
		Expect(os.WriteFile(filepath.Join(seed, "README"), []byte("hello\n"), 0o600)).To(Succeed())
		gitIn(seed, "checkout", "--quiet", "-B", "main")
		gitIn(seed, "add", ".")
		gitIn(seed, "commit", "--quiet", "-m", "one")
		gitIn(seed, "push", "--quiet", "origin", "main", "main:feature")
		gitIn(f.bare, "update-ref", "refs/pull/16/head", "main")
		h.AgentEnv = []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url." + filepath.Join(h.Dir, "forge") + "/.insteadOf", "GIT_CONFIG_VALUE_0=https://github.com/"}
		spec := h.DemoClass(append([]string{"flush-late=0"}, behaviour...)...)
		spec.Workspace.Root = f.root
		if change != nil {
			change(&spec)
		}
		return spec
	})
	return f
}

// pullRequest makes a session for a pull request of octo/repo#15.
func (f *forge) pullRequest(number int64, changes ...func(*api.WorkItemSession)) *api.WorkItemSession {
	GinkgoHelper()
	return f.WorkItem(15, append([]func(*api.WorkItemSession){func(s *api.WorkItemSession) {
		s.Name = "github-octo-repo-pr-16"
		s.Spec.ParentName = "github-octo-repo-15"
		s.Spec.PullRequest = &api.PullRequest{Owner: "octo", Repo: "repo", Number: number}
	}}, changes...)...)
}

func cleanUp(s *api.WorkItemSession) {
	GinkgoHelper()
	env.Update(s, func() { s.Spec.State = api.SessionStateCleanedUp })
}

func undoEntries(h *testenv.Host) []string {
	GinkgoHelper()
	found, err := filepath.Glob(filepath.Join(h.StateDir, "undo", "*", "*", "meta.json"))
	Expect(err).NotTo(HaveOccurred())
	return found
}

var _ = Describe("the checkout of a session", func() {
	It("C140: is a worktree at the default branch, made before the harness starts, and stays over a crash of the agent", func() {
		f := newForge(nil)
		s := f.WorkItem(15)
		f.Ready(s)
		path := filepath.Join(f.root, ".worktrees", "github.com", "octo", "repo", "github-octo-repo-15")
		Expect(get(s).Status.WorkingDirectory).To(Equal(path))
		Expect(s.Status.Checkout).To(HaveValue(HaveField("Path", path)))
		Expect(gitIn(path, "log", "-1", "--format=%s")).To(Equal("one"))
		Expect(gitIn(path, "branch", "--show-current")).To(BeEmpty(), "detached")
		f.Await(s, api.ConditionWorkspaceReady, "True/CheckoutReady")
		pid := f.HarnessPID(s)
		f.RestartAgent()
		f.AwaitOutcome(f.Say(s, "still there?"), testenv.Submitted)
		Expect(f.HarnessPID(s)).To(Equal(pid))
	})

	It("cannot be made of what does not exist: said, with git's words, and nothing is started", func() {
		f := newForge(nil)
		s := f.WorkItem(15, func(s *api.WorkItemSession) { s.Spec.Workspace = &api.SessionWorkspace{Ref: "no-such-branch"} })
		f.Await(s, api.ConditionWorkspaceReady, "False/RefNotFound")
		f.Await(s, api.ConditionReady, "False/RefNotFound")
		Expect(f.Message(s, api.ConditionReady)).To(ContainSubstring("no-such-branch"))
		Expect(f.Events("started")).To(BeEmpty())
	})

	It("C142: a pull request has no session without a checkout of its own", func() {
		f := newForge(func(c *api.SessionClassSpec) { c.Workspace.Root = "" })
		f.Ready(f.WorkItem(15))
		f.Await(f.pullRequest(16), api.ConditionReady, "False/NoSeparateCheckout")
	})

	It("C141: a pull request does not take the branch away from its work item", func() {
		f := newForge(nil)
		branch := func(s *api.WorkItemSession) { s.Spec.Workspace = &api.SessionWorkspace{Branch: "feature"} }
		f.Ready(f.WorkItem(15, branch))
		pr := f.pullRequest(16, branch)
		f.Await(pr, api.ConditionReady, "False/BranchInUse")
		Expect(f.Message(pr, api.ConditionReady)).To(ContainSubstring("github:octo/repo#15"))
		Expect(f.Sessions()).To(HaveLen(1))
	})

	It("goes with a stop unless the class keeps it, and is made again by the next start, which resumes in it", func() {
		f := newForge(nil)
		s := f.WorkItem(15)
		f.Ready(s)
		f.AwaitOutcome(f.Say(s, "first"), testenv.Submitted)
		Eventually(f.Events).WithArguments("reply").Should(HaveLen(1))
		path, id := get(s).Status.Checkout.Path, s.Status.ConversationID
		env.Update(s, func() { s.Spec.State = api.SessionStateStopped })
		f.Await(s, api.ConditionWorkspaceReady, "False/CheckoutRemoved")
		Expect(path).NotTo(BeADirectory())
		env.Update(s, func() { s.Spec.State = api.SessionStateRunning })
		f.Await(s, api.ConditionResumed, "True/ConversationContinued")
		Expect(get(s).Status.WorkingDirectory).To(Equal(path))
		Expect(s.Status.ConversationID).To(Equal(id))
	})

	It("stays over a stop and a deletion where the class says so, and a cleanup ignores that (C100)", func() {
		f := newForge(func(c *api.SessionClassSpec) { c.Workspace.KeepCheckoutOnClose = new(true) })
		s := f.WorkItem(15)
		f.Ready(s)
		path := get(s).Status.Checkout.Path
		env.Update(s, func() { s.Spec.State = api.SessionStateStopped })
		f.Await(s, api.ConditionReady, "True/Stopped")
		Expect(path).To(BeADirectory())
		cleanUp(s)
		f.Await(s, api.ConditionReady, "True/CleanedUp")
		Expect(path).NotTo(BeADirectory())
		Expect(f.Sessions()).To(BeEmpty(), "the class retains terminals, and a cleanup does not")

		again := f.WorkItem(16)
		f.Ready(again)
		path = get(again).Status.Checkout.Path
		env.Delete(again)
		f.AwaitGone(again)
		Expect(path).To(BeADirectory())
	})
})

var _ = Describe("a cleanup", func() {
	It("C099, C104: ends every endpoint, the item's own last, and removes their checkouts; the object stays", func() {
		f := newForge(nil)
		s := f.WorkItem(15)
		f.Ready(s)
		pr := f.pullRequest(16)
		f.Ready(pr)
		Expect(get(pr).OwnerReferences).To(ConsistOf(HaveField("UID", s.UID)))
		paths := []string{get(s).Status.Checkout.Path, get(pr).Status.Checkout.Path}
		cleanUp(s)
		f.Await(s, api.ConditionReady, "True/CleanedUp")
		f.Await(pr, api.ConditionReady, "True/CleanedUp")
		Expect(f.Sessions()).To(BeEmpty())
		for _, p := range paths {
			Expect(p).NotTo(BeADirectory())
		}
		closedPR, closedOwn := get(pr).Status.ClosedAt, get(s).Status.ClosedAt
		Expect(closedPR.After(closedOwn.Time)).To(BeFalse())
		Expect(s.Status.TmuxTarget).To(BeEmpty())
		Expect(s.Status.ConversationID).NotTo(BeEmpty(), "the portable record stays")
		By("and nothing starts it again but a person")
		m := f.Say(s, "anybody there?")
		f.AwaitOutcome(m, "Refused/SessionNotRunning")
		Consistently(f.Sessions, time.Second).Should(BeEmpty())
	})

	It("C101: finds a checkout by the reference alone, without any record of it", func() {
		f := newForge(nil)
		s := f.WorkItem(15)
		f.Ready(s)
		path := get(s).Status.Checkout.Path
		env.Update(s, func() { metav1.SetMetaDataAnnotation(&s.ObjectMeta, api.PausedAnnotation, "") })
		f.Await(s, api.ConditionSessionRunning, "True/Paused")
		By("the object goes with its record, the host's things stay")
		env.Delete(s)
		env.Update(s, func() { s.Finalizers = nil })
		f.AwaitGone(s)
		f.Tmux("kill-session", "-t", "=loop-github-octo-repo-15")
		Expect(path).To(BeADirectory())
		again := f.WorkItem(15, func(s *api.WorkItemSession) { s.Spec.State = api.SessionStateCleanedUp })
		f.Await(again, api.ConditionReady, "True/CleanedUp")
		Expect(path).NotTo(BeADirectory())
	})

	It("keeps what was not committed, and gives it back when it is asked to", func() {
		f := newForge(nil)
		s := f.WorkItem(15)
		f.Ready(s)
		path := get(s).Status.Checkout.Path
		Expect(os.WriteFile(filepath.Join(path, "README"), []byte("changed\n"), 0o600)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(path, "new file"), []byte("new\n"), 0o600)).To(Succeed())
		gitIn(path, "commit", "--quiet", "--allow-empty", "-m", "two, not pushed")
		cleanUp(s)
		f.Await(s, api.ConditionReady, "True/CleanedUp")
		Expect(path).NotTo(BeADirectory())
		Expect(undoEntries(f.Host)).To(HaveLen(1))
		env.Update(s, func() {
			s.Spec.State = api.SessionStateRunning
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, api.UndoCleanupAnnotation, "once")
		})
		f.Ready(s)
		Expect(get(s).Status.LastHandledUndo).To(Equal("once"))
		Expect(os.ReadFile(filepath.Join(path, "README"))).To(BeEquivalentTo("changed\n"))
		Expect(os.ReadFile(filepath.Join(path, "new file"))).To(BeEquivalentTo("new\n"))
		Expect(gitIn(path, "log", "-1", "--format=%s")).To(Equal("two, not pushed"))
		Expect(gitIn(path, "status", "--porcelain")).To(ContainSubstring("README"))
		By("once only: the next checkout is a new one")
		Expect(os.WriteFile(filepath.Join(path, "README"), []byte("lost\n"), 0o600)).To(Succeed())
		cleanUp(s)
		f.Await(s, api.ConditionReady, "True/CleanedUp")
		env.Update(s, func() { s.Spec.State = api.SessionStateRunning })
		f.Ready(s)
		Expect(os.ReadFile(filepath.Join(path, "README"))).To(BeEquivalentTo("hello\n"))
	})

	It("is not done while unsaved work cannot be kept: said, nothing lost, and done when it can", func() {
		f := newForge(nil)
		s := f.WorkItem(15)
		f.Ready(s)
		path := get(s).Status.Checkout.Path
		Expect(os.WriteFile(filepath.Join(path, "README"), []byte("precious\n"), 0o600)).To(Succeed())
		By("a file is where the kept work would go")
		Expect(os.WriteFile(filepath.Join(f.StateDir, "undo"), nil, 0o600)).To(Succeed())
		cleanUp(s)
		f.Await(s, api.ConditionReady, "False/CheckoutKept")
		Expect(os.ReadFile(filepath.Join(path, "README"))).To(BeEquivalentTo("precious\n"))
		Expect(os.Remove(filepath.Join(f.StateDir, "undo"))).To(Succeed())
		f.Await(s, api.ConditionReady, "True/CleanedUp", 60*time.Second)
		Expect(undoEntries(f.Host)).To(HaveLen(1))
	})

	It("T20: does not end what a person runs in a window of his own, until it is told to", func() {
		f := newForge(nil)
		s := f.WorkItem(15)
		f.Ready(s)
		f.Tmux("new-window", "-d", "-t", "=loop-github-octo-repo-15:", "/bin/sleep", "1000")
		cleanUp(s)
		f.Await(s, api.ConditionReady, "False/SessionOccupied")
		Expect(f.Message(s, api.ConditionReady)).To(ContainSubstring(api.ForceCleanupAnnotation))
		Expect(f.Sessions()).To(HaveLen(1))
		env.Update(s, func() { metav1.SetMetaDataAnnotation(&s.ObjectMeta, api.ForceCleanupAnnotation, "true") })
		f.Await(s, api.ConditionReady, "True/CleanedUp")
		Expect(f.Sessions()).To(BeEmpty())
	})

	It("a deletion lets the sessions of the pull requests go first", func() {
		f := newForge(nil)
		s := f.WorkItem(15)
		f.Ready(s)
		pr := f.pullRequest(16)
		f.Ready(pr)
		path := get(pr).Status.Checkout.Path
		env.Delete(s)
		f.AwaitGone(s)
		f.AwaitGone(pr)
		Expect(path).NotTo(BeADirectory())
	})
})

var _ = Describe("a retained terminal", func() {
	retained := func(c *api.SessionClassSpec) { c.Tmux.RetainedSecondsAfterClose = new(int32(1)) }

	It("is closed after retainedSecondsAfterClose", func() {
		f := newForge(retained)
		s := f.Standing("done")
		f.Ready(s)
		env.Update(s, func() { s.Spec.State = api.SessionStateStopped })
		f.Await(s, api.ConditionReady, "True/Stopped")
		Eventually(f.Sessions, 20*time.Second).Should(BeEmpty())
		Eventually(func() string { return get(s).Status.AttachCommand }, 5*time.Second).Should(BeEmpty())
	})

	It("is attached to read-only, as its status says", func() {
		h := env.NewDemoHost()
		s := h.Standing("done")
		h.Ready(s)
		Expect(get(s).Status.AttachCommand).NotTo(ContainSubstring(" -r "))
		env.Update(s, func() { s.Spec.State = api.SessionStateStopped })
		h.Await(s, api.ConditionReady, "True/Stopped")
		Expect(get(s).Status.AttachCommand).To(ContainSubstring(" -r "))
		Expect(h.Sessions()).To(HaveLen(1))
	})

	It("is none where remainOnExit is off: the terminal of a harness that ended is closed", func() {
		f := newForge(func(c *api.SessionClassSpec) { c.Tmux.RemainOnExit = new(false) })
		s := f.WorkItem(15)
		f.Ready(s)
		f.KillHarness(s)
		f.Await(s, api.ConditionReady, "False/Exited")
		Eventually(f.Sessions).Should(BeEmpty())
		f.AwaitOutcome(f.Say(s, "again"), testenv.Submitted)
	})
})
