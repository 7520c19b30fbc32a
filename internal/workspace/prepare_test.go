package workspace

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/workitem"
)

var _ = Describe("where checkouts are", func() {
	It("C140: an issue is detached at the default branch, below .worktrees", func() {
		f := newFixture(Worktree)
		bare := f.repository("octo/repo")
		head := f.push(bare, "trunk", map[string]string{"a.txt": "trunk\n"})
		f.sh(bare, "symbolic-ref", "HEAD", "refs/heads/trunk")
		c := f.item("github:octo/repo#1")
		Expect(c.Path).To(Equal(filepath.Join(f.Root(), ".worktrees/github.com/octo/repo/github-octo-repo-1")))
		Expect(c.Branch).To(BeEmpty())
		Expect(c.Head).To(Equal(head))
		Expect(c.Reused).To(BeFalse())
		Expect(c.Missed).NotTo(HaveOccurred())
		Expect(read(filepath.Join(c.Path, "a.txt"))).To(Equal("trunk\n"))
		Expect(filepath.Join(f.Root(), "github.com/octo/repo/.git")).To(BeADirectory())
		Expect(f.sh(c.Path, "status", "--porcelain")).To(BeEmpty())
	})

	It("C140: falls back to main where the host has no default branch", func() {
		f := newFixture(Worktree)
		bare := f.repository("octo/repo")
		f.sh(bare, "symbolic-ref", "HEAD", "refs/heads/gone")
		Expect(f.item("github:octo/repo#1").Head).To(Equal(f.sh(bare, "rev-parse", "main")))
	})

	It("a clone has its own directory, and depends on no other", func() {
		f := newFixture(Clone)
		f.repository("octo/repo")
		c := f.item("github:octo/repo#1")
		Expect(c.Path).To(Equal(filepath.Join(f.Root(), ".work-items/github-octo-repo-1/github.com/octo/repo")))
		Expect(c.Branch).To(BeEmpty())
		Expect(c.Strategy).To(Equal(Clone))
		Expect(filepath.Join(f.Root(), "github.com")).NotTo(BeAnExistingFile())
		Expect(filepath.Join(c.Path, ".git/objects/info/alternates")).NotTo(BeAnExistingFile())
		Expect(entries(filepath.Dir(c.Path))).To(Equal([]string{"repo"}))
	})

	It("a host with a port has a directory of its own", func() {
		f := newFixture(Worktree)
		f.repositoryAt("ghe", "octo/repo")
		c := f.item("github:ghe.example.com:8443/octo/repo#7")
		Expect(c.Path).To(Equal(filepath.Join(f.Root(), ".worktrees/ghe.example.com_8443/octo/repo/github-ghe.example.com-8443-octo-repo-7")))
		Expect(f.remove("github:ghe.example.com:8443/octo/repo#7").Removed).To(HaveLen(1))
	})

	It("SSH URLs are built as such, without the port of the web interface", func() {
		f := newFixture(Worktree, func(c *Config) { c.Protocol = SSH })
		f.repository("octo/repo")
		c := f.item("github:octo/repo#1")
		Expect(f.sh(c.Path, "config", "remote.origin.url")).To(Equal("git@github.com:octo/repo.git"))
		Expect(Repository{Host: "ghe.example.com:8443", Owner: "o", Repo: "r"}.url(SSH)).To(Equal("git@ghe.example.com:o/r.git"))
		Expect(Repository{Host: "ghe.example.com:8443", Owner: "o", Repo: "r"}.url(HTTPS)).To(Equal("https://ghe.example.com:8443/o/r.git"))
	})

	It("a changed protocol, or a URL that somebody set, is put right in the shared clone", func() {
		f := newFixture(Worktree)
		f.repository("octo/repo")
		c := f.item("github:octo/repo#1")
		f.sh(c.Path, "config", "remote.origin.url", "ext::sh -c touch% "+f.dir+"/ran")
		f.item("github:octo/repo#2")
		Expect(f.sh(c.Path, "config", "remote.origin.url")).To(Equal("https://github.com/octo/repo.git"))
		Expect(filepath.Join(f.dir, "ran")).NotTo(BeAnExistingFile())
	})

	It("an item can work in another repository than its own", func() {
		f := newFixture(Worktree)
		f.repository("octo/other")
		c := f.prepare(Request{Item: ref("github:octo/repo#1"), Repository: Repository{Owner: "octo", Repo: "other"}})
		Expect(c.Path).To(Equal(filepath.Join(f.Root(), ".worktrees/github.com/octo/other/github-octo-repo-1")))
		Expect(f.remove("github:octo/repo#1").Removed).To(HaveLen(1))
	})
})

var _ = both("a checkout", func(s Strategy) {
	var f *fixture
	var bare string
	BeforeEach(func() {
		f = newFixture(s)
		bare = f.repository("octo/repo")
	})

	It("is reused unchanged, whatever is in it", func() {
		c := f.item("github:octo/repo#1")
		write(filepath.Join(c.Path, "a.txt"), "mine\n")
		f.sh(c.Path, "checkout", "-q", "-b", "own")
		f.push(bare, "main", map[string]string{"a.txt": "theirs\n"})
		again := f.item("github:octo/repo#1")
		Expect(again.Reused).To(BeTrue())
		Expect(again.Path).To(Equal(c.Path))
		Expect(again.Branch).To(Equal("own"))
		Expect(read(filepath.Join(c.Path, "a.txt"))).To(Equal("mine\n"))
	})

	It("is reused when the strategy changed meanwhile", func() {
		c := f.item("github:octo/repo#1")
		cfg := f.cfg
		cfg.Strategy = map[Strategy]Strategy{Worktree: Clone, Clone: Worktree}[s]
		other := f.open(cfg)
		again, err := other.Prepare(context.Background(), Request{Item: ref("github:octo/repo#1")})
		Expect(err).NotTo(HaveOccurred())
		Expect(again.Path).To(Equal(c.Path))
		Expect(again.Strategy).To(Equal(s))
	})

	It("that git cannot read is an error, not made anew over what is in it", func() {
		c := f.item("github:octo/repo#1")
		Expect(os.RemoveAll(filepath.Join(c.Path, ".git"))).To(Succeed())
		_, err := f.Prepare(context.Background(), Request{Item: ref("github:octo/repo#1")})
		Expect(err).To(haveReason(ReasonDamaged))
		Expect(filepath.Join(c.Path, "a.txt")).To(BeARegularFile())
	})

	It("whose directory somebody removed is made anew", func() {
		c := f.item("github:octo/repo#1")
		Expect(os.RemoveAll(c.Path)).To(Succeed())
		again := f.item("github:octo/repo#1")
		Expect(again.Path).To(Equal(c.Path))
		Expect(again.Reused).To(BeFalse())
	})

	It("of a pull request is on its branch, at what origin has", func() {
		head := f.push(bare, "feature/x", map[string]string{"a.txt": "feature\n"})
		c := f.prepare(Request{Item: ref("github:octo/repo#2"), Branch: "feature/x", RequireBranch: true})
		Expect(c.Branch).To(Equal("feature/x"))
		Expect(c.Head).To(Equal(head))
		Expect(f.sh(c.Path, "rev-parse", "--abbrev-ref", "@{upstream}")).To(Equal("origin/feature/x"))
	})

	It("of a pull request is on a branch that was pushed after the clone", func() {
		f.item("github:octo/repo#1")
		head := f.push(bare, "late", map[string]string{"a.txt": "late\n"})
		Expect(f.prepare(Request{Item: ref("github:octo/repo#2"), Branch: "late", RequireBranch: true}).Head).To(Equal(head))
	})

	It("without its branch is the default branch, unless the branch is required", func() {
		req := Request{Item: ref("github:octo/repo#2"), Branch: "gone"}
		c := f.prepare(req)
		Expect(c.Branch).To(BeEmpty())
		Expect(c.Missed).To(haveReason(ReasonRefNotFound))
		Expect(c.Head).To(Equal(f.sh(bare, "rev-parse", "main")))

		req.Item, req.RequireBranch = ref("github:octo/repo#3"), true
		_, err := f.Prepare(context.Background(), req)
		Expect(err).To(haveReason(ReasonRefNotFound))
		Expect(err.Error()).To(Equal("preparing the checkout of github:octo/repo#3: octo/repo has no branch gone: push it"))
		Expect(f.remove("github:octo/repo#3").Removed).To(BeEmpty())
	})

	It("that exists on another branch than the required one is refused", func() {
		f.push(bare, "feature", map[string]string{"a.txt": "feature\n"})
		f.item("github:octo/repo#2")
		_, err := f.Prepare(context.Background(), Request{Item: ref("github:octo/repo#2"), Branch: "feature", RequireBranch: true})
		Expect(err).To(haveReason(ReasonWrongBranch))
	})

	It("of a pull request from a fork is at refs/pull/<n>/head", func() {
		head := f.push(bare, "temp", map[string]string{"a.txt": "fork\n"})
		f.sh(bare, "update-ref", "refs/pull/9/head", head)
		f.sh(bare, "update-ref", "-d", "refs/heads/temp")
		c := f.prepare(Request{Item: ref("github:octo/repo#9"), PullRequest: 9, RequireBranch: true})
		Expect(c.Head).To(Equal(head))
		Expect(c.Branch).To(BeEmpty())
		Expect(f.remove("github:octo/repo#9").Kept).To(BeEmpty(), "what was fetched is no work of the session's")
		c = f.prepare(Request{Item: ref("github:octo/repo#9"), Branch: "temp", PullRequest: 9})
		Expect(c.Head).To(Equal(head))
		_, err := f.Prepare(context.Background(), Request{Item: ref("github:octo/repo#10"), PullRequest: 10, RequireBranch: true})
		Expect(err).To(haveReason(ReasonRefNotFound))
	})

	It("starts from a branch, a tag or a commit", func() {
		onBranch := f.push(bare, "release", map[string]string{"a.txt": "release\n"})
		tagged := f.push(bare, "temp", map[string]string{"a.txt": "tagged\n"})
		f.sh(bare, "tag", "-m", "annotated", "v1", tagged)
		commit := f.push(bare, "temp", map[string]string{"a.txt": "more\n"})
		f.sh(bare, "update-ref", "-d", "refs/heads/temp")
		for i, want := range map[string]string{"release": onBranch, "v1": tagged, commit: commit} {
			c := f.prepare(Request{Item: ref("github:octo/repo#4"), Ref: i})
			Expect(c.Head).To(Equal(want), i)
			Expect(c.Branch).To(BeEmpty())
			Expect(f.remove("github:octo/repo#4").Kept).To(BeEmpty())
		}
		_, err := f.Prepare(context.Background(), Request{Item: ref("github:octo/repo#4"), Ref: "nothing"})
		Expect(err).To(haveReason(ReasonRefNotFound))
		_, err = f.Prepare(context.Background(), Request{Item: ref("github:octo/repo#4"), Ref: strings.Repeat("ab", 20)})
		Expect(err).To(haveReason(ReasonRefNotFound))
	})

	It("of a repository that does not exist, or is empty, is a typed error and leaves nothing", func() {
		_, err := f.Prepare(context.Background(), Request{Item: ref("github:octo/none#1")})
		Expect(err).To(haveReason(ReasonRepositoryNotFound))
		Expect(err.Error()).To(ContainSubstring("cloning octo/none"))
		f.sh("", "init", "-q", "--bare", filepath.Join(f.hosts, "github.com/octo/empty.git"))
		_, err = f.Prepare(context.Background(), Request{Item: ref("github:octo/empty#1")})
		Expect(err).To(haveReason(ReasonRefNotFound))
		Expect(err.Error()).To(ContainSubstring("push a first commit"))
		Expect(filepath.Glob(filepath.Join(f.Root(), ".w*/*"))).To(HaveLen(map[Strategy]int{Worktree: 1, Clone: 0}[s]))
	})

	It("W3, N20: twins with one slug have a checkout each, which the other neither gets nor removes", func() {
		f.repository("octo-foo/bar")
		f.repository("octo/foo-bar")
		shared := Repository{Owner: "octo", Repo: "repo"}
		first := f.prepare(Request{Item: ref("github:octo/foo-bar#1"), Repository: shared})
		second := f.prepare(Request{Item: ref("github:octo-foo/bar#1"), Repository: shared})
		Expect(second.Path).NotTo(Equal(first.Path))
		Expect(second.Path).To(MatchRegexp(`github-octo-foo-bar-1-[0-9a-f]{6}(/|$)`))
		Expect(f.prepare(Request{Item: ref("github:octo-foo/bar#1"), Repository: shared}).Path).To(Equal(second.Path))
		Expect(f.remove("github:octo/foo-bar#1").Removed).To(HaveLen(1))
		Expect(second.Path).To(BeADirectory())
		Expect(f.prepare(Request{Item: ref("github:octo-foo/bar#1"), Repository: shared}).Reused).To(BeTrue())
		Expect(f.remove("github:octo-foo/bar#1").Removed).To(HaveLen(1))
		Expect(second.Path).NotTo(BeAnExistingFile())
	})

	It("W3: the twin that came second is removed without the first", func() {
		shared := Repository{Owner: "octo", Repo: "repo"}
		first := f.prepare(Request{Item: ref("github:octo/foo-bar#1"), Repository: shared})
		second := f.prepare(Request{Item: ref("github:octo-foo/bar#1"), Repository: shared})
		res := f.remove("github:octo-foo/bar#1")
		Expect(res.Removed).To(HaveLen(1))
		Expect(res.Unclaimed).To(BeEmpty())
		Expect(second.Path).NotTo(BeAnExistingFile())
		Expect(filepath.Join(first.Path, "a.txt")).To(BeARegularFile())
	})

	It("W3: what nobody claims is neither used nor removed", func() {
		p := f.place(s, Repository{Host: "github.com", Owner: "octo", Repo: "repo"}, "github-octo-repo-1")
		f.sh("", "clone", "-q", bare, p.path)
		c := f.item("github:octo/repo#1")
		Expect(c.Path).To(MatchRegexp(`github-octo-repo-1-[0-9a-f]{6}(/|$)`))
		res := f.remove("github:octo/repo#1")
		Expect(res.Removed).To(HaveLen(1))
		Expect(res.Unclaimed).To(Equal([]string{p.owned}))
		Expect(p.path).To(BeADirectory())
	})

	It("T-symlink: a symlink below the root is refused, wherever it is", func() {
		outside := filepath.Join(f.dir, "outside")
		Expect(os.Mkdir(outside, 0o755)).To(Succeed())
		link := map[Strategy]string{Worktree: "github.com", Clone: ".work-items"}[s]
		Expect(os.Symlink(outside, filepath.Join(f.Root(), link))).To(Succeed())
		_, err := f.Prepare(context.Background(), Request{Item: ref("github:octo/repo#1")})
		Expect(err).To(haveReason(ReasonOutsideRoot))
		Expect(entries(outside)).To(BeEmpty())
	})

	It("a removal follows no symlink", func() {
		c := f.item("github:octo/repo#1")
		outside := filepath.Join(f.dir, "outside")
		Expect(os.Rename(filepath.Dir(c.Path), outside)).To(Succeed())
		Expect(os.Symlink(outside, filepath.Dir(c.Path))).To(Succeed())
		res, err := f.Remove(context.Background(), Removal{Item: ref("github:octo/repo#1"), Discard: true})
		if s == Worktree {
			// The link is not even looked into: no checkout is found.
			Expect(err).NotTo(HaveOccurred())
			Expect(res.Removed).To(BeEmpty())
		}
		Expect(entries(outside)).NotTo(BeEmpty())
		Expect(filepath.Join(outside, filepath.Base(c.Path), "a.txt")).To(BeARegularFile())
	})

	It("W48: hooks, an fsmonitor and filters that the repository configures never run", func() {
		f.push(bare, "main", map[string]string{".gitattributes": "*.txt filter=evil\n"})
		c := f.item("github:octo/repo#1")
		ran := filepath.Join(f.dir, "ran")
		common := f.sh(c.Path, "rev-parse", "--path-format=absolute", "--git-common-dir")
		evil := filepath.Join(f.dir, "evil")
		Expect(os.WriteFile(evil, []byte("#!/bin/sh\necho \"$0 $*\" >>"+ran+"\ncat\n"), 0o755)).To(Succeed())
		for _, hook := range []string{"post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc"} {
			Expect(os.MkdirAll(filepath.Join(common, "hooks"), 0o755)).To(Succeed())
			Expect(os.Symlink(evil, filepath.Join(common, "hooks", hook))).To(Succeed())
		}
		f.sh(c.Path, "config", "core.fsmonitor", evil)
		f.prepare(Request{Item: ref("github:octo/repo#2"), Branch: "main"})
		f.item("github:octo/repo#1")
		f.sh(c.Path, "config", "filter.evil.clean", evil)
		f.sh(c.Path, "config", "filter.evil.required", "true")
		write(filepath.Join(c.Path, "a.txt"), "changed\n")
		write(filepath.Join(c.Path, "new.txt"), "new\n")
		Expect(f.remove("github:octo/repo#1").Kept).To(HaveLen(1))
		Expect(ran).NotTo(BeAnExistingFile())
	})
})

var _ = Describe("a branch that another checkout holds", func() {
	It("C141: is refused, with who holds it, and is not taken", func() {
		f := newFixture(Worktree)
		bare := f.repository("octo/repo")
		f.push(bare, "feature", map[string]string{"a.txt": "feature\n"})
		holder := f.prepare(Request{Item: ref("github:octo/repo#1"), Branch: "feature", RequireBranch: true})
		_, err := f.Prepare(context.Background(), Request{Item: ref("github:octo/repo#2"), Branch: "feature", RequireBranch: true})
		var e *Error
		Expect(errors.As(err, &e)).To(BeTrue())
		Expect(e.Reason).To(Equal(ReasonBranchInUse))
		Expect(e.HeldBy).To(Equal("github:octo/repo#1"))
		Expect(e.Path).To(Equal(holder.Path))
		Expect(e.Branch).To(Equal("feature"))
		Expect(err.Error()).To(ContainSubstring("checked out by github:octo/repo#1, at " + holder.Path))
		Expect(f.sh(holder.Path, "branch", "--show-current")).To(Equal("feature"))
		Expect(f.remove("github:octo/repo#2").Removed).To(BeEmpty())

		c := f.prepare(Request{Item: ref("github:octo/repo#2"), Branch: "feature"})
		Expect(c.Branch).To(BeEmpty())
		Expect(c.Missed).To(haveReason(ReasonBranchInUse))
	})

	It("C141: is refused while a rebase in another worktree has it, which no listing shows", func() {
		f := newFixture(Worktree)
		bare := f.repository("octo/repo")
		f.push(bare, "feature", map[string]string{"a.txt": "feature\n"})
		f.push(bare, "main", map[string]string{"a.txt": "main\n"})
		holder := f.prepare(Request{Item: ref("github:octo/repo#1"), Branch: "feature"})
		cmd := exec.Command("git", "rebase", "origin/main")
		cmd.Dir, cmd.Env = holder.Path, f.environ()
		Expect(cmd.Run()).NotTo(Succeed())
		_, err := f.Prepare(context.Background(), Request{Item: ref("github:octo/repo#2"), Branch: "feature", RequireBranch: true})
		Expect(err).To(haveReason(ReasonBranchInUse))
		Expect(f.prepare(Request{Item: ref("github:octo/repo#2"), Branch: "feature"}).Missed).To(haveReason(ReasonBranchInUse))
	})

	It("the shared clone holds none, not even the default branch", func() {
		f := newFixture(Worktree)
		f.repository("octo/repo")
		Expect(f.prepare(Request{Item: ref("github:octo/repo#2"), Branch: "main", RequireBranch: true}).Branch).To(Equal("main"))
	})

	It("a worktree that somebody deleted holds none", func() {
		f := newFixture(Worktree)
		f.repository("octo/repo")
		c := f.prepare(Request{Item: ref("github:octo/repo#2"), Branch: "main"})
		Expect(os.RemoveAll(c.Path)).To(Succeed())
		Expect(f.prepare(Request{Item: ref("github:octo/repo#3"), Branch: "main", RequireBranch: true}).Branch).To(Equal("main"))
	})

	It("W48: a local branch with commits of its own is kept before it is set to origin's", func() {
		f := newFixture(Worktree)
		bare := f.repository("octo/repo")
		head := f.push(bare, "feature", map[string]string{"a.txt": "feature\n"})
		c := f.prepare(Request{Item: ref("github:octo/repo#2"), Branch: "feature"})
		write(filepath.Join(c.Path, "a.txt"), "local\n")
		f.sh(c.Path, "commit", "-qam", "local")
		local := f.sh(c.Path, "rev-parse", "HEAD")
		f.remove("github:octo/repo#2")
		c = f.prepare(Request{Item: ref("github:octo/repo#2"), Branch: "feature"})
		Expect(c.Head).To(Equal(head))
		Expect(c.Notes).To(HaveLen(1))
		Expect(f.sh(c.Path, "rev-parse", keptRefs+"feature/"+local)).To(Equal(local))
	})
})

var _ = Describe("many callers", func() {
	It("8 at once in 2 processes share one clone, and each gets its own checkout", func() {
		f := newFixture(Worktree)
		f.repository("octo/repo")
		var procs []*exec.Cmd
		var outs []*strings.Builder
		for p := range 2 {
			j := helperJob{Root: f.Root(), Strategy: Worktree}
			for i := range 8 {
				// Half of them want what the other process wants too.
				j.Requests = append(j.Requests, Request{Item: workitem.Ref{Provider: "github", Owner: "octo", Repo: "repo", Number: int64(1 + i + 4*p)}})
			}
			cmd, out := f.helper(j), &strings.Builder{}
			cmd.Stdout, cmd.Stderr = out, out
			Expect(cmd.Start()).To(Succeed())
			procs, outs = append(procs, cmd), append(outs, out)
		}
		paths := map[string]int{}
		for i, cmd := range procs {
			Expect(cmd.Wait()).To(Succeed(), outs[i].String())
			for _, line := range strings.Fields(outs[i].String()) {
				paths[line]++
			}
		}
		Expect(paths).To(HaveLen(12))
		for path := range paths {
			Expect(f.sh(path, "status", "--porcelain")).To(BeEmpty())
			Expect(read(filepath.Join(path, "dir/b.txt"))).To(Equal("two\n"))
		}
		Expect(entries(filepath.Join(f.Root(), "github.com/octo"))).To(ConsistOf("repo", ".repo~lock"))
	})

	It("waiting for another caller ends with the context", func() {
		f := newFixture(Worktree)
		f.repository("octo/repo")
		held, err := f.lockRepository(context.Background(), Repository{Host: "github.com", Owner: "octo", Repo: "repo"})
		Expect(err).NotTo(HaveOccurred())
		defer held.Release()
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		_, err = f.Prepare(ctx, Request{Item: ref("github:octo/repo#1")})
		Expect(err).To(haveReason(ReasonTimeout))
		Expect(err.Error()).To(ContainSubstring("another caller"))
	})

	It("a git that hangs is ended with all its children", func() {
		f := newFixture(Worktree)
		f.repository("octo/repo")
		pid := filepath.Join(f.dir, "pid")
		cfg := f.cfg
		cfg.Git = f.gitScript(`case "$*" in *clone*) sleep 1000 & echo $! >` + pid + `.new; mv ` + pid + `.new ` + pid + `; wait;; esac`)
		m := f.open(cfg)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() {
			_, err := m.Prepare(ctx, Request{Item: ref("github:octo/repo#1")})
			done <- err
		}()
		Eventually(pid).Should(BeARegularFile())
		cancel()
		Eventually(done).Should(Receive(haveReason(ReasonCanceled)))
		Eventually(func() bool { return alive(strings.TrimSpace(read(pid))) }).Should(BeFalse())
	})
})

// alive reports whether a process runs, and is no zombie.
func alive(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}
