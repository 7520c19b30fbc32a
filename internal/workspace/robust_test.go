package workspace

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/workitem"
)

var _ = Describe("what a killed process left", func() {
	ctx := context.Background()

	// kill runs a process that prepares a checkout until the git script has written the
	// file "reached", with its process id, and kills it. Its git dies with it.
	kill := func(f *fixture, s Strategy, script string) {
		GinkgoHelper()
		reached := filepath.Join(f.dir, "reached")
		hang := `{ echo $$ >` + reached + `.new; mv ` + reached + `.new ` + reached + `; exec sleep 1000; }`
		cmd := f.helper(helperJob{Root: f.Root(), Strategy: s, Git: f.gitScript(strings.ReplaceAll(script, "HANG", hang)), Requests: []Request{{Item: ref("github:octo/repo#1")}}})
		Expect(cmd.Start()).To(Succeed())
		Eventually(reached).Should(BeARegularFile())
		Expect(cmd.Process.Kill()).To(Succeed())
		Expect(cmd.Wait()).NotTo(Succeed())
		Eventually(func() bool { return alive(strings.TrimSpace(read(reached))) }).Should(BeFalse(), "git outlived us")
	}

	for _, s := range []Strategy{Worktree, Clone} {
		It("half a clone is made anew ["+string(s)+"]", func() {
			f := newFixture(s)
			f.repository("octo/repo")
			kill(f, s, `case "$*" in *" clone "*) for dir; do :; done; "$GIT" init -q "$dir"; echo half >"$dir/half"; HANG;; esac`)
			left, err := filepath.Glob(filepath.Join(f.Root(), "*", "*", ".*cloning*"))
			if s == Clone {
				left, err = filepath.Glob(filepath.Join(f.Root(), ".work-items", "*", "*", "*", ".*cloning*"))
			}
			Expect(err).NotTo(HaveOccurred())
			Expect(left).To(HaveLen(1))
			c := f.item("github:octo/repo#1")
			Expect(f.sh(c.Path, "status", "--porcelain")).To(BeEmpty())
			Expect(left[0]).NotTo(BeAnExistingFile())
		})
	}

	It("half a worktree is made anew, for no session worked in it", func() {
		f := newFixture(Worktree)
		f.repository("octo/repo")
		kill(f, Worktree, `case "$*" in *" worktree add "*) "$GIT" "$@"; for a; do case "$a" in /*) rm "$a/a.txt";; esac; done; HANG;; esac`)
		path := filepath.Join(f.Root(), ".worktrees/github.com/octo/repo/github-octo-repo-1")
		Expect(filepath.Join(path, ".git")).To(BeARegularFile())
		c := f.item("github:octo/repo#1")
		Expect(c.Path).To(Equal(path))
		Expect(c.Reused).To(BeFalse())
		Expect(f.sh(path, "status", "--porcelain")).To(BeEmpty())
	})

	It("half a worktree is removed without keeping it", func() {
		f := newFixture(Worktree)
		f.repository("octo/repo")
		kill(f, Worktree, `case "$*" in *" worktree add "*) "$GIT" "$@"; for a; do case "$a" in /*) rm "$a/a.txt";; esac; done; HANG;; esac`)
		res := f.remove("github:octo/repo#1")
		Expect(res.Removed).To(HaveLen(1))
		Expect(res.Kept).To(BeEmpty())
	})

	It("a clone of somebody else's that has fetched nothing is completed", func() {
		f := newFixture(Worktree)
		f.repository("octo/repo")
		dir := filepath.Join(f.Root(), "github.com/octo/repo")
		f.sh("", "init", "-q", dir)
		Expect(f.item("github:octo/repo#1").Head).NotTo(BeEmpty())
	})

	It("a clone that git cannot read is set aside, unless worktrees hang on it", func() {
		f := newFixture(Worktree)
		f.repository("octo/repo")
		dir := filepath.Join(f.Root(), "github.com/octo/repo")
		f.item("github:octo/repo#1")
		Expect(os.Remove(filepath.Join(dir, ".git/HEAD"))).To(Succeed())
		_, err := f.Prepare(ctx, Request{Item: ref("github:octo/repo#2")})
		Expect(err).To(haveReason(ReasonDamaged))
		Expect(err.Error()).To(ContainSubstring("1 checkouts depend"))
		res := f.remove("github:octo/repo#1")
		Expect(res.Removed).To(HaveLen(1))
		Expect(res.Notes).To(HaveLen(1), "what cannot be pruned is pruned by whoever needs it")

		Expect(os.RemoveAll(filepath.Join(dir, ".git/worktrees"))).To(Succeed())
		c := f.item("github:octo/repo#2")
		Expect(c.Notes).To(ContainElement(ContainSubstring("made anew")))
		Expect(filepath.Glob(filepath.Join(f.Root(), "github.com/octo/.repo~damaged-*"))).To(HaveLen(1))
	})

	It("a directory that is no repository is left, and said so", func() {
		f := newFixture(Worktree)
		f.repository("octo/repo")
		write(filepath.Join(f.Root(), "github.com/octo/repo/precious"), "p\n")
		_, err := f.Prepare(ctx, Request{Item: ref("github:octo/repo#1")})
		Expect(err).To(haveReason(ReasonOccupied))
		Expect(filepath.Join(f.Root(), "github.com/octo/repo/precious")).To(BeARegularFile())
	})

	It("a claim that cannot be read is left, and said so", func() {
		f := newFixture(Worktree)
		f.repository("octo/repo")
		c := f.item("github:octo/repo#1")
		write(beside(c.Path, "json"), "{")
		_, err := f.Prepare(ctx, Request{Item: ref("github:octo/repo#1")})
		Expect(err).To(haveReason(ReasonDamaged))
		_, err = f.Remove(ctx, Removal{Item: ref("github:octo/repo#1"), UndoDir: f.undo})
		Expect(err).To(haveReason(ReasonDamaged))
		Expect(c.Path).To(BeADirectory())
	})

	Describe("a lock of git's", func() {
		var f *fixture
		var lock string
		BeforeEach(func() {
			f = newFixture(Worktree)
			bare := f.repository("octo/repo")
			f.item("github:octo/repo#1")
			f.push(bare, "feature", map[string]string{"a.txt": "feature\n"})
			lock = filepath.Join(f.Root(), "github.com/octo/repo/.git/refs/remotes/origin/feature.lock")
			write(lock, "")
		})
		It("is reported with the remedy while it can be held", func() {
			_, err := f.Prepare(ctx, Request{Item: ref("github:octo/repo#2"), Branch: "feature"})
			Expect(err).To(haveReason(ReasonLocked))
			Expect(err.Error()).To(ContainSubstring("rm -- '" + lock + "'"))
			Expect(lock).To(BeARegularFile())
		})
		It("is waited for", func() {
			time.AfterFunc(300*time.Millisecond, func() { _ = os.Remove(lock) })
			Expect(f.prepare(Request{Item: ref("github:octo/repo#2"), Branch: "feature"}).Branch).To(Equal("feature"))
		})
		It("is removed when it is from before this machine started", func() {
			old := bootTime().Add(-time.Hour)
			Expect(os.Chtimes(lock, old, old)).To(Succeed())
			Expect(f.prepare(Request{Item: ref("github:octo/repo#2"), Branch: "feature"}).Branch).To(Equal("feature"))
		})
	})
})

var _ = Describe("a host that does not answer", func() {
	It("is no obstacle when the clone is there, and never makes a pull request's session start elsewhere", func() {
		f := newFixture(Worktree)
		bare := f.repository("octo/repo")
		f.item("github:octo/repo#1")
		Expect(os.Rename(bare, bare+".away")).To(Succeed())
		c := f.item("github:octo/repo#2")
		Expect(c.Notes).To(ContainElement(ContainSubstring("not fetched")))
		_, err := f.Prepare(context.Background(), Request{Item: ref("github:octo/repo#3"), Branch: "main"})
		Expect(err).To(haveReason(ReasonRepositoryNotFound))
		Expect(os.Rename(bare+".away", bare)).To(Succeed())
		Expect(f.prepare(Request{Item: ref("github:octo/repo#3"), Branch: "main"}).Branch).To(Equal("main"))
	})

	It("is told apart from one that refuses, in an error without credentials", func() {
		for stderr, want := range map[string]Reason{
			"fatal: unable to access 'https://bot:s3cret@github.com/octo/repo.git/': Could not resolve host: github.com":                               ReasonCloneFailed,
			"fatal: could not read Username for 'https://bot:s3cret@github.com': terminal prompts disabled":                                            ReasonAuthenticationFailed,
			"remote: Repository not found.\nfatal: repository 'https://bot:s3cret@github.com/octo/repo.git/' not found":                                ReasonRepositoryNotFound,
			"ERROR: Repository not found.\nfatal: Could not read from remote repository.\n\nPlease make sure ...\nand the repository exists. s3cret@x": ReasonRepositoryNotFound,
			"git@github.com: Permission denied (publickey).\nfatal: Could not read from remote repository.":                                            ReasonAuthenticationFailed,
			"fatal: " + strings.Repeat("long ", 1000): ReasonCloneFailed,
			"":                                       ReasonCloneFailed,
			"\x1b[31mfatal: \x1b]0;title\x07 colour": ReasonCloneFailed,
		} {
			f := newFixture(Worktree)
			write(filepath.Join(f.dir, "said"), stderr)
			cfg := f.cfg
			cfg.Git = f.gitScript(`case "$*" in *" clone "*) cat ` + filepath.Join(f.dir, "said") + ` >&2; exit 128;; esac`)
			_, err := f.open(cfg).Prepare(context.Background(), Request{Item: ref("github:octo/repo#1")})
			Expect(err).To(haveReason(want), stderr)
			Expect(err.Error()).NotTo(ContainSubstring("s3cret"))
			Expect(err.Error()).NotTo(ContainSubstring("\x1b"))
			Expect(err.Error()).To(HavePrefix("preparing the checkout of github:octo/repo#1: cloning octo/repo: git clone failed"))
			Expect(len(err.Error())).To(BeNumerically("<", 1000))
		}
	})

	It("a git that is not there is said so", func() {
		f := newFixture(Worktree)
		for _, name := range []string{"/nowhere/git", "no-such-git"} {
			cfg := f.cfg
			cfg.Git = name
			_, err := f.open(cfg).Prepare(context.Background(), Request{Item: ref("github:octo/repo#1")})
			Expect(err).To(haveReason(ReasonGitMissing))
		}
	})

	It("a git that takes too long is ended", func() {
		f := newFixture(Worktree)
		cfg := f.cfg
		cfg.Git, cfg.Timeout = f.gitScript(`case "$*" in *" clone "*) exec sleep 1000;; esac`), 200*time.Millisecond
		_, err := f.open(cfg).Prepare(context.Background(), Request{Item: ref("github:octo/repo#1")})
		Expect(err).To(haveReason(ReasonTimeout))
	})
})

var _ = Describe("the environment of git", func() {
	It("leads to no other repository, asks nobody and keeps how it connects", func() {
		other := GinkgoT().TempDir()
		f := newFixture(Worktree)
		f.repository("octo/repo")
		cfg := f.cfg
		cfg.Env = f.environ("GIT_DIR="+other, "GIT_WORK_TREE="+other, "GIT_INDEX_FILE="+other+"/i", "GIT_OBJECT_DIRECTORY="+other,
			"GIT_ALTERNATE_OBJECT_DIRECTORIES="+other, "GIT_NAMESPACE=x", "GIT_CEILING_DIRECTORIES=/", "GIT_TERMINAL_PROMPT=1",
			"GIT_TRACE=1", "GIT_ALLOW_PROTOCOL=ext:file", "LC_ALL=de_DE.UTF-8", "SSH_AUTH_SOCK=/s", "GIT_SSH_COMMAND=ssh -v")
		m := f.open(cfg)
		_, err := m.Prepare(context.Background(), Request{Item: ref("github:octo/repo#1")})
		Expect(err).NotTo(HaveOccurred())
		Expect(entries(other)).To(BeEmpty())
		Expect(m.git.env).To(ContainElements("GIT_TERMINAL_PROMPT=0", "LC_ALL=C", "SSH_AUTH_SOCK=/s", "GIT_SSH_COMMAND=ssh -v", "HOME="+f.dir,
			"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_KEY_0=url."+f.hosts+"/github.com/.insteadOf"))
		Expect(m.git.env).NotTo(ContainElement(Or(HavePrefix("GIT_DIR="), HavePrefix("GIT_WORK_TREE="), HavePrefix("GIT_INDEX_FILE="),
			HavePrefix("GIT_OBJECT"), HavePrefix("GIT_ALTERNATE"), HavePrefix("GIT_NAMESPACE="), HavePrefix("GIT_TRACE"), HavePrefix("LC_ALL=de"),
			Equal("GIT_TERMINAL_PROMPT=1"), Equal("GIT_ALLOW_PROTOCOL=ext:file"))))
	})

	It("W48: lets no URL run a program, not even one that the configuration makes", func() {
		f := newFixture(Worktree)
		ran := filepath.Join(f.dir, "ran")
		cfg := f.cfg
		cfg.Env = []string{
			"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=url.ext::touch " + ran + " .insteadOf",
			"GIT_CONFIG_VALUE_0=https://github.com/", "GIT_CONFIG_KEY_1=protocol.ext.allow", "GIT_CONFIG_VALUE_1=always",
		}
		_, err := f.open(cfg).Prepare(context.Background(), Request{Item: ref("github:octo/repo#1")})
		Expect(err).To(haveReason(ReasonCloneFailed))
		Expect(err.Error()).To(ContainSubstring("transport 'ext' not allowed"))
		Expect(ran).NotTo(BeAnExistingFile())
	})

	It("W48: lets no URL run a remote helper that somebody put on PATH", func() {
		f := newFixture(Worktree)
		ran := filepath.Join(f.dir, "ran")
		Expect(os.WriteFile(filepath.Join(f.dir, "git-remote-evil"), []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o755)).To(Succeed())
		cfg := f.cfg
		cfg.Env = []string{
			"PATH=" + f.dir + ":" + os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_COUNT=1",
			"GIT_CONFIG_KEY_0=url.evil::x.insteadOf", "GIT_CONFIG_VALUE_0=https://github.com/",
		}
		_, err := f.open(cfg).Prepare(context.Background(), Request{Item: ref("github:octo/repo#1")})
		Expect(err).To(haveReason(ReasonCloneFailed))
		Expect(ran).NotTo(BeAnExistingFile())
	})

	It("a repository above a damaged checkout is not taken for it", func() {
		f := newFixture(Worktree)
		f.repository("octo/repo")
		c := f.item("github:octo/repo#1")
		f.sh("", "init", "-q", filepath.Dir(c.Path))
		Expect(os.Remove(filepath.Join(c.Path, ".git"))).To(Succeed())
		_, err := f.Remove(context.Background(), Removal{Item: ref("github:octo/repo#1"), UndoDir: f.undo})
		Expect(err).To(haveReason(ReasonBundleFailed))
		Expect(err.Error()).To(ContainSubstring("not a git repository"))
	})
})

var _ = Describe("a root", func() {
	DescribeTable("that cannot hold checkouts is refused", func(make func(dir string) string, says string) {
		_, err := New(Config{Root: make(GinkgoT().TempDir())})
		Expect(err).To(haveReason(ReasonRootUnusable))
		Expect(err.Error()).To(ContainSubstring(says))
	},
		Entry("none (C142)", func(string) string { return "" }, "no root is configured"),
		Entry("relative", func(string) string { return "work/root" }, "not an absolute path"),
		Entry("a file", func(d string) string { write(d+"/f", ""); return d + "/f" }, "it is a file"),
		Entry("below a file", func(d string) string { write(d+"/f", ""); return d + "/f/root" }, "cannot be made"),
		Entry("with a line end", func(d string) string { return d + "/a\nb" }, "control characters"),
		Entry("not writable", func(string) string { return "/proc/self" }, "cannot be written to"),
		Entry("inside .git", func(d string) string { return d + "/repo/.git/root" }, "inside the repository data"),
		Entry("inside a bare repository", func(d string) string {
			Expect(exec.Command("git", "init", "-q", "--bare", d+"/bare").Run()).To(Succeed())
			return d + "/bare/root"
		}, "inside the repository data"),
	)

	It("may be a symlink itself: paths are those that it leads to", func() {
		f := newFixture(Worktree)
		f.repository("octo/repo")
		link := filepath.Join(f.dir, "link")
		Expect(os.Symlink(f.Root(), link)).To(Succeed())
		cfg := f.cfg
		cfg.Root = link
		c, err := f.open(cfg).Prepare(context.Background(), Request{Item: ref("github:octo/repo#1")})
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Path).To(HavePrefix(f.Root() + "/"))
	})

	It("unknown strategies and protocols are refused", func() {
		_, err := New(Config{Root: GinkgoT().TempDir(), Strategy: "worktree"})
		Expect(err).To(haveReason(ReasonInvalidRequest))
		_, err = New(Config{Root: GinkgoT().TempDir(), Protocol: "git"})
		Expect(err).To(haveReason(ReasonInvalidRequest))
	})
})

var _ = Describe("a request", func() {
	item := workitem.Ref{Provider: "github", Owner: "octo", Repo: "repo", Number: 1}
	DescribeTable("C143, W48: that could lead elsewhere is refused before anything is made", func(req Request) {
		f := newFixture(Worktree)
		_, err := f.Prepare(context.Background(), req)
		Expect(err).To(haveReason(ReasonInvalidRequest))
		Expect(entries(f.Root())).To(BeEmpty())
	},
		Entry("repository ..", Request{Item: item, Repository: Repository{Owner: "octo", Repo: ".."}}),
		Entry("owner ..", Request{Item: item, Repository: Repository{Owner: "..", Repo: "repo"}}),
		Entry("host ..", Request{Item: item, Repository: Repository{Host: "..", Owner: "octo", Repo: "repo"}}),
		Entry("a .. in the item's repository", Request{Item: workitem.Ref{Provider: "github", Owner: "octo", Repo: "..", Number: 1}}),
		Entry("a slash", Request{Item: item, Repository: Repository{Owner: "octo", Repo: "a/b"}}),
		Entry("an option", Request{Item: item, Repository: Repository{Owner: "octo", Repo: "--upload-pack=x"}}),
		Entry("a hidden directory", Request{Item: item, Repository: Repository{Owner: "octo", Repo: ".git"}}),
		Entry("credentials in the host", Request{Item: item, Repository: Repository{Host: "user:pw@github.com", Owner: "octo", Repo: "repo"}}),
		Entry("a scheme in the host", Request{Item: item, Repository: Repository{Host: "ext::sh", Owner: "octo", Repo: "repo"}}),
		Entry("a line end", Request{Item: item, Repository: Repository{Owner: "octo", Repo: "repo\n"}}),
		Entry("an empty owner", Request{Item: item, Repository: Repository{Repo: "repo"}}),
		Entry("a long name", Request{Item: item, Repository: Repository{Owner: "octo", Repo: strings.Repeat("r", 300)}}),
		Entry("no item", Request{}),
		Entry("a branch that is an option", Request{Item: item, Branch: "--force"}),
		Entry("a branch with an option in a part", Request{Item: item, Branch: "a/-b"}),
		Entry("a branch that is a range", Request{Item: item, Branch: "a..b"}),
		Entry("a branch that is an expression", Request{Item: item, Branch: "main@{1}"}),
		Entry("a branch that is a refspec", Request{Item: item, Branch: "a:refs/heads/b"}),
		Entry("a branch that is a pattern", Request{Item: item, Branch: "*"}),
		Entry("a branch with a line end", Request{Item: item, Branch: "a\nb"}),
		Entry("a branch HEAD", Request{Item: item, Branch: "HEAD"}),
		Entry("a ref that is an option", Request{Item: item, Ref: "-x"}),
		Entry("a ref with a forced update", Request{Item: item, Ref: "a:b"}),
		Entry("a negative pull request", Request{Item: item, PullRequest: -1}),
		Entry("a required branch without a name", Request{Item: item, RequireBranch: true}),
		Entry("a ref and a required branch", Request{Item: item, Ref: "a", Branch: "b", RequireBranch: true}),
	)

	It("names that git takes are no looser than git's own", func() {
		for _, name := range []string{"main", "feature/x", "a.b", "v1.0", "@x", "ü", "a@b", "a-", "x{y", "1"} {
			Expect(refName(name)).To(BeTrue(), name)
			Expect(exec.Command("git", "check-ref-format", "refs/heads/"+name).Run()).To(Succeed(), name)
		}
		for _, name := range []string{"a.lock", "a/.b", "a//b", "/a", "a/", "a.", "a b", "a~", "a^", "a?", "a[", `a\`, "a\x7f", "a..b", "a@{b", "a.lock/b"} {
			Expect(refName(name)).To(BeFalse(), name)
			Expect(exec.Command("git", "check-ref-format", "refs/heads/"+name).Run()).NotTo(Succeed(), name)
		}
	})

	It("errors say whether trying again helps", func() {
		Expect((&Error{Reason: ReasonFetchFailed}).Retry()).To(BeTrue())
		Expect((&Error{Reason: ReasonBranchInUse}).Retry()).To(BeFalse())
		Expect(ReasonOf(nil)).To(BeEmpty())
		Expect(ReasonOf(fmt.Errorf("x: %w", &Error{Reason: ReasonOccupied}))).To(Equal(ReasonOccupied))
		Expect(ReasonOf(os.ErrExist)).To(Equal(ReasonFailed))
	})
})
