package workspace

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/workitem"
)

var _ = both("a removal", func(s Strategy) {
	var f *fixture
	var bare string
	ctx := context.Background()
	BeforeEach(func() {
		f = newFixture(s)
		bare = f.repository("octo/repo")
	})

	It("C101: finds the checkout from the reference alone, whatever the strategy is by now", func() {
		c := f.item("github:octo/repo#1")
		cfg := f.cfg
		cfg.Strategy = map[Strategy]Strategy{Worktree: Clone, Clone: Worktree}[s]
		res, err := f.open(cfg).Remove(ctx, Removal{Item: ref("github:octo/repo#1"), UndoDir: f.undo})
		Expect(err).NotTo(HaveOccurred())
		Expect(res.Removed).To(HaveLen(1))
		Expect(res.Removed[0].Strategy).To(Equal(s))
		Expect(res.Kept).To(BeEmpty())
		Expect(c.Path).NotTo(BeAnExistingFile())
		Expect(entries(filepath.Join(f.Root(), ".worktrees/github.com/octo/repo"))).To(BeEmpty())
		Expect(entries(filepath.Join(f.Root(), ".work-items"))).To(BeEmpty())
	})

	It("of nothing is an outcome, any number of times", func() {
		Expect(f.remove("github:octo/repo#1")).To(Equal(RemoveResult{}))
		f.item("github:octo/repo#1")
		Expect(f.remove("github:octo/repo#1").Removed).To(HaveLen(1))
		Expect(f.remove("github:octo/repo#1")).To(Equal(RemoveResult{}))
		Expect(entries(filepath.Join(f.Root(), ".locks"))).To(BeEmpty())
	})

	It("C104: takes the checkouts of the pull requests along, the item's own last", func() {
		f.repository("octo/other")
		f.push(bare, "feature", map[string]string{"a.txt": "feature\n"})
		f.item("github:octo/repo#1")
		f.prepare(Request{Item: ref("github:octo/repo#2"), Branch: "feature", RequireBranch: true})
		f.item("github:octo/other#3")
		f.item("github:octo/repo#10")
		res := f.remove("github:octo/repo#1", "github:octo/repo#2", "github:octo/other#3", "github:octo/repo#2")
		var gone []string
		for _, r := range res.Removed {
			Expect(r.Path).NotTo(BeAnExistingFile())
			gone = append(gone, r.Item.String())
		}
		Expect(gone).To(HaveExactElements(ContainSubstring("#"), ContainSubstring("#"), Equal("github:octo/repo#1")))
		Expect(gone).To(ConsistOf("github:octo/repo#1", "github:octo/repo#2", "github:octo/other#3"))
		Expect(f.item("github:octo/repo#10").Reused).To(BeTrue())
	})

	It("leaves the shared clone and its branches", func() {
		f.push(bare, "feature", map[string]string{"a.txt": "feature\n"})
		f.prepare(Request{Item: ref("github:octo/repo#1"), Branch: "feature"})
		f.remove("github:octo/repo#1")
		if s == Worktree {
			shared := filepath.Join(f.Root(), "github.com/octo/repo")
			Expect(f.sh(shared, "rev-parse", "feature")).NotTo(BeEmpty())
			Expect(strings.Count(f.sh(shared, "worktree", "list"), "\n")).To(BeZero())
		}
		Expect(f.prepare(Request{Item: ref("github:octo/repo#2"), Branch: "feature", RequireBranch: true}).Branch).To(Equal("feature"))
	})

	It("removes a worktree that a person locked", func() {
		if s == Clone {
			Skip("only worktrees can be locked")
		}
		c := f.prepare(Request{Item: ref("github:octo/repo#1"), Branch: "main"})
		f.sh(c.Path, "worktree", "lock", c.Path)
		f.remove("github:octo/repo#1")
		f.prepare(Request{Item: ref("github:octo/repo#2"), Branch: "main", RequireBranch: true})
	})

	It("keeps nothing when nothing is unsaved: ignored files, and commits that are pushed", func() {
		c := f.prepare(Request{Item: ref("github:octo/repo#1"), Branch: "main"})
		write(filepath.Join(c.Path, "x.ignored"), "x")
		write(filepath.Join(c.Path, "a.txt"), "pushed\n")
		f.sh(c.Path, "commit", "-qam", "pushed")
		f.sh(c.Path, "push", "-q", "origin", "HEAD:elsewhere")
		Expect(f.remove("github:octo/repo#1").Kept).To(BeEmpty())
		Expect(entries(f.undo)).To(BeEmpty())
	})

	It("keeps nothing of a checkout whose branch was force-pushed under it", func() {
		f.push(bare, "feature", map[string]string{"a.txt": "feature\n"})
		f.prepare(Request{Item: ref("github:octo/repo#1"), Branch: "feature"})
		f.sh(bare, "update-ref", "refs/heads/feature", "refs/heads/main")
		f.item("github:octo/repo#2")
		Expect(f.remove("github:octo/repo#1").Kept).To(BeEmpty())
	})

	It("is refused when the undo directory cannot be written, and nothing is deleted", func() {
		f.item("github:octo/repo#2")
		c := f.item("github:octo/repo#1")
		write(filepath.Join(c.Path, "a.txt"), "unsaved\n")
		write(f.undo, "a file")
		for _, undo := range []string{f.undo, "relative", "", filepath.Join(c.Path, "undo"), filepath.Join(f.Root(), ".work-items"), filepath.Join(f.Root(), ".worktrees", "undo")} {
			_, err := f.Remove(ctx, Removal{Item: ref("github:octo/repo#1"), UndoDir: undo})
			Expect(err).To(Or(haveReason(ReasonBundleFailed), haveReason(ReasonInvalidRequest)), undo)
			Expect(read(filepath.Join(c.Path, "a.txt"))).To(Equal("unsaved\n"))
		}
	})

	It("is refused when the disk is full, and nothing is deleted, not even what could be kept", func() {
		c1, c2 := f.item("github:octo/repo#1"), f.item("github:octo/repo#2")
		write(filepath.Join(c1.Path, "small"), "small\n")
		write(filepath.Join(c2.Path, "a.txt"), "unsaved\n")
		write(filepath.Join(c2.Path, "big"), strings.Repeat("0123456789", 1000)+string(incompressible(64<<10)))
		cfg := f.cfg
		cfg.Git = f.gitScript(`ulimit -f 32`)
		res, err := f.open(cfg).Remove(ctx, Removal{Item: ref("github:octo/repo#2"), Endpoints: nil, UndoDir: f.undo})
		Expect(err).To(haveReason(ReasonBundleFailed))
		Expect(err.Error()).To(ContainSubstring("nothing was removed"))
		Expect(res.Removed).To(BeEmpty())
		_, err = f.open(cfg).Remove(ctx, Removal{Item: ref("github:octo/repo#2"), Endpoints: []workitem.Ref{ref("github:octo/repo#1")}, UndoDir: f.undo})
		Expect(err).To(haveReason(ReasonBundleFailed))
		Expect(read(filepath.Join(c1.Path, "small"))).To(Equal("small\n"))
		Expect(read(filepath.Join(c2.Path, "a.txt"))).To(Equal("unsaved\n"))
		Expect(f.sh(c2.Path, "status", "--porcelain")).To(Equal(" M a.txt\n?? big"))
		Expect(entries(f.undo)).To(BeEmpty())
		Expect(f.remove("github:octo/repo#2", "github:octo/repo#1").Kept).To(HaveLen(2))
	})

	It("of a checkout that git cannot read is refused, unless its work is discarded", func() {
		c := f.item("github:octo/repo#1")
		Expect(os.RemoveAll(filepath.Join(c.Path, ".git"))).To(Succeed())
		_, err := f.Remove(ctx, Removal{Item: ref("github:octo/repo#1"), UndoDir: f.undo})
		Expect(err).To(haveReason(ReasonBundleFailed))
		Expect(filepath.Join(c.Path, "a.txt")).To(BeARegularFile())
		_, err = f.Remove(ctx, Removal{Item: ref("github:octo/repo#1"), Discard: true})
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Path).NotTo(BeAnExistingFile())
	})

	It("is refused for a repository inside it that has work of its own", func() {
		c := f.item("github:octo/repo#1")
		nested := filepath.Join(c.Path, "nested")
		f.sh("", "clone", "-q", bare, nested)
		write(filepath.Join(nested, "a.txt"), "unsaved\n")
		_, err := f.Remove(ctx, Removal{Item: ref("github:octo/repo#1"), UndoDir: f.undo})
		Expect(err).To(haveReason(ReasonBundleFailed))
		Expect(err.Error()).To(ContainSubstring(nested))
		f.sh(nested, "commit", "-qam", "still unsaved")
		_, err = f.Remove(ctx, Removal{Item: ref("github:octo/repo#1"), UndoDir: f.undo})
		Expect(err).To(haveReason(ReasonBundleFailed))
		f.sh(nested, "push", "-q")
		res := f.remove("github:octo/repo#1")
		Expect(res.Kept).To(HaveLen(1))
		Expect(res.Kept[0].Notes).To(ContainElement(ContainSubstring("nested")))
		Expect(f.restore(res.Kept[0]).Path).To(Equal(c.Path))
	})

	It("finishes one that was interrupted", func() {
		c := f.item("github:octo/repo#1")
		p := f.place(s, Repository{Host: "github.com", Owner: "octo", Repo: "repo"}, "github-octo-repo-1")
		Expect(os.Rename(p.owned, beside(p.owned, asideMark))).To(Succeed())
		f.remove("github:octo/repo#1")
		Expect(c.Path).NotTo(BeAnExistingFile())
		Expect(beside(p.owned, asideMark)).NotTo(BeAnExistingFile())
		Expect(p.claimFile()).NotTo(BeAnExistingFile())
	})
})

func incompressible(n int) []byte {
	out, x := make([]byte, n), uint32(1)
	for i := range out {
		x = x*1664525 + 1013904223
		out[i] = byte(x >> 24)
	}
	return out
}

var _ = both("unsaved work", func(s Strategy) {
	var f *fixture
	var bare string
	BeforeEach(func() {
		f = newFixture(s)
		bare = f.repository("octo/repo")
	})

	It("comes back as it was: staged, unstaged, untracked, deleted, executable, links, binary", func() {
		f.push(bare, "main", map[string]string{"gone.txt": "g\n", "staged-gone.txt": "s\n", "run.sh": "#!/bin/sh\n", "deep/er/only.txt": "x\n", "file": "f\n", "link": "l\n"})
		c := f.prepare(Request{Item: ref("github:octo/repo#1"), Branch: "main", RequireBranch: true})
		in := func(name string) string { return filepath.Join(c.Path, name) }
		write(in("a.txt"), "staged\n")
		f.sh(c.Path, "add", "a.txt")
		write(in("a.txt"), "staged, then changed\n")
		write(in("dir/b.txt"), "unstaged\n")
		write(in("new dir/untracked ü\t.bin"), "\x00\xff\r\n\x00"+string(incompressible(3000)))
		write(in("staged-new.txt"), "new\n")
		f.sh(c.Path, "add", "staged-new.txt")
		Expect(os.Remove(in("gone.txt"))).To(Succeed())
		f.sh(c.Path, "rm", "-q", "staged-gone.txt")
		Expect(os.Chmod(in("run.sh"), 0o755)).To(Succeed())
		Expect(os.RemoveAll(in("deep"))).To(Succeed())
		Expect(os.Symlink("/nowhere", in("dangling"))).To(Succeed())
		Expect(os.Remove(in("link"))).To(Succeed())
		Expect(os.Symlink("a.txt", in("link"))).To(Succeed())
		Expect(os.Remove(in("file"))).To(Succeed())
		write(in("file/now a directory"), "d\n")
		write(in("x.ignored"), "ignored")
		status := f.sh(c.Path, "status", "--porcelain=v2", "-uall")
		head := f.sh(c.Path, "rev-parse", "HEAD")
		refs := f.sh(c.Path, "for-each-ref")
		index := f.sh(c.Path, "ls-files", "--stage", "--debug")

		kept, err := f.keepAll(context.Background(), []unit{{item: ref("github:octo/repo#1"), checkouts: []place{f.place(s, c.Repository, "github-octo-repo-1")}}}, f.undo)
		Expect(err).NotTo(HaveOccurred())
		Expect(kept).To(HaveLen(1))
		Expect(f.sh(c.Path, "for-each-ref")).To(Equal(refs), "no ref changed")
		Expect(f.sh(c.Path, "ls-files", "--stage", "--debug")).To(Equal(index), "the index did not change")

		res := f.remove("github:octo/repo#1")
		Expect(c.Path).NotTo(BeAnExistingFile())
		Expect(res.Kept).To(HaveLen(1))
		u := res.Kept[0]
		Expect(u.Ref).To(Equal("github:octo/repo#1"))
		Expect(u.Branch).To(Equal("main"))
		Expect(u.Head).To(Equal(head))
		Expect(filepath.Base(u.Dir)).To(MatchRegexp(`^github-octo-repo-1-\d{8}T\d{6}\.\d{6}Z$`))
		Expect(u.Size).To(BeNumerically(">", 0))
		Expect(entries(u.Dir)).To(ConsistOf("meta.json", "work.bundle"))
		for name, mode := range map[string]os.FileMode{"": 0o700, "meta.json": 0o600, "work.bundle": 0o600} {
			info, err := os.Stat(filepath.Join(u.Dir, name))
			Expect(err).NotTo(HaveOccurred())
			Expect(info.Mode().Perm()).To(Equal(mode), name)
		}
		listed, err := ListUndo(f.undo)
		Expect(err).NotTo(HaveOccurred())
		Expect(listed).To(HaveLen(2))
		Expect(listed[1]).To(Equal(u))

		again := f.restore(u)
		Expect(again.Path).To(Equal(c.Path))
		Expect(again.Branch).To(Equal("main"))
		Expect(again.Head).To(Equal(head))
		Expect(f.sh(c.Path, "status", "--porcelain=v2", "-uall")).To(Equal(status))
		Expect(read(in("a.txt"))).To(Equal("staged, then changed\n"))
		Expect(f.sh(c.Path, "show", ":a.txt")).To(Equal("staged"))
		Expect(read(in("new dir/untracked ü\t.bin"))).To(Equal("\x00\xff\r\n\x00" + string(incompressible(3000))))
		Expect(os.Readlink(in("dangling"))).To(Equal("/nowhere"))
		Expect(os.Readlink(in("link"))).To(Equal("a.txt"))
		Expect(in("deep")).NotTo(BeAnExistingFile())
		Expect(in("x.ignored")).NotTo(BeAnExistingFile())
		info, err := os.Stat(in("run.sh"))
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode().Perm() & 0o111).NotTo(BeZero())
		Expect(f.item("github:octo/repo#1").Reused).To(BeTrue())
		Expect(f.sh(c.Path, "for-each-ref", "refs/the-loop")).To(BeEmpty())
		Expect(entries(f.Root())).NotTo(ContainElement(HavePrefix(".restoring")))
	})

	It("on a branch comes back with its commits", func() {
		f.push(bare, "feature", map[string]string{"a.txt": "feature\n"})
		c := f.prepare(Request{Item: ref("github:octo/repo#1"), Branch: "feature"})
		for _, text := range []string{"one\n", "two\n"} {
			write(filepath.Join(c.Path, "a.txt"), text)
			f.sh(c.Path, "commit", "-qam", text)
		}
		head := f.sh(c.Path, "rev-parse", "HEAD")
		u := f.remove("github:octo/repo#1").Kept[0]
		Expect(u.Work).To(BeEmpty())
		again := f.restore(u)
		Expect(again.Branch).To(Equal("feature"))
		Expect(again.Head).To(Equal(head))
		Expect(f.sh(c.Path, "rev-parse", "--abbrev-ref", "@{upstream}")).To(Equal("origin/feature"))
		Expect(f.sh(c.Path, "status", "--porcelain")).To(BeEmpty())
	})

	It("on a branch that was merged and deleted meanwhile comes back all the same", func() {
		f.push(bare, "feature", map[string]string{"a.txt": "feature\n"})
		c := f.prepare(Request{Item: ref("github:octo/repo#1"), Branch: "feature"})
		write(filepath.Join(c.Path, "a.txt"), "mine\n")
		u := f.remove("github:octo/repo#1").Kept[0]
		f.sh(bare, "update-ref", "-d", "refs/heads/feature")
		f.sh(bare, "gc", "-q", "--prune=now")
		Expect(os.RemoveAll(filepath.Join(f.Root(), "github.com"))).To(Succeed())
		again := f.restore(u)
		Expect(again.Branch).To(Equal("feature"))
		Expect(again.Head).To(Equal(c.Head))
		Expect(read(filepath.Join(c.Path, "a.txt"))).To(Equal("mine\n"))
	})

	It("detached comes back with its commits, though the shared clone went too", func() {
		c := f.item("github:octo/repo#1")
		write(filepath.Join(c.Path, "a.txt"), "mine\n")
		f.sh(c.Path, "commit", "-qam", "mine")
		write(filepath.Join(c.Path, "untracked"), "u\n")
		head := f.sh(c.Path, "rev-parse", "HEAD")
		u := f.remove("github:octo/repo#1").Kept[0]
		Expect(os.RemoveAll(filepath.Join(f.Root(), "github.com"))).To(Succeed())
		again := f.restore(u)
		Expect(again.Branch).To(BeEmpty())
		Expect(again.Head).To(Equal(head))
		Expect(f.sh(c.Path, "status", "--porcelain")).To(Equal("?? untracked"))
	})

	It("of a clone comes back with its other branches and its stashes", func() {
		c := f.item("github:octo/repo#1")
		f.sh(c.Path, "checkout", "-q", "-b", "side")
		write(filepath.Join(c.Path, "a.txt"), "side\n")
		f.sh(c.Path, "commit", "-qam", "side")
		side := f.sh(c.Path, "rev-parse", "HEAD")
		f.sh(c.Path, "checkout", "-q", "--detach", "origin/main")
		for _, text := range []string{"first", "second"} {
			write(filepath.Join(c.Path, "a.txt"), text)
			f.sh(c.Path, "stash", "push", "-q", "-m", text)
		}
		kept := f.remove("github:octo/repo#1").Kept
		if s == Worktree {
			// They are the shared clone's, and stay there.
			Expect(kept).To(BeEmpty())
			c = f.item("github:octo/repo#1")
		} else {
			f.restore(kept[0])
		}
		Expect(f.sh(c.Path, "rev-parse", "side")).To(Equal(side))
		Expect(f.sh(c.Path, "stash", "list", "--format=%gs")).To(Equal("On (no branch): second\nOn (no branch): first"))
		Expect(f.sh(c.Path, "show", "stash@{1}:a.txt")).To(Equal("first"))
	})

	It("is taken byte for byte, whatever attributes say", func() {
		f.push(bare, "main", map[string]string{".gitattributes": "* text=auto eol=lf ident\n"})
		c := f.item("github:octo/repo#1")
		write(filepath.Join(c.Path, "crlf.txt"), "one\r\ntwo\n$Id$\r\n")
		u := f.remove("github:octo/repo#1").Kept[0]
		f.restore(u)
		Expect(read(filepath.Join(c.Path, "crlf.txt"))).To(Equal("one\r\ntwo\n$Id$\r\n"))
	})

	It("is not given to a filter, whose store goes with a clone", func() {
		f.push(bare, "main", map[string]string{".gitattributes": "*.big filter=store\n"})
		c := f.item("github:octo/repo#1")
		write(filepath.Join(f.dir, "config"), "[filter \"store\"]\n\tclean = echo pointer\n\tsmudge = cat\n\trequired = true\n")
		write(filepath.Join(c.Path, "x.big"), "content\n")
		cfg := f.cfg
		cfg.Env = append(f.environ(), "GIT_CONFIG_GLOBAL="+filepath.Join(f.dir, "config"))
		m := f.open(cfg)
		res, err := m.Remove(context.Background(), Removal{Item: ref("github:octo/repo#1"), UndoDir: f.undo})
		Expect(err).NotTo(HaveOccurred())
		_, err = m.Restore(context.Background(), res.Kept[0])
		Expect(err).NotTo(HaveOccurred())
		Expect(read(filepath.Join(c.Path, "x.big"))).To(Equal("content\n"))
	})

	It("that changed no size is seen, though it was written with the index", func() {
		c := f.item("github:octo/repo#1")
		// As if all had happened within one tick of the clock.
		at := time.Now().Add(-time.Minute).Truncate(time.Second)
		file := filepath.Join(c.Path, "a.txt")
		Expect(os.Chtimes(file, at, at)).To(Succeed())
		f.sh(c.Path, "update-index", "-q", "--refresh")
		index := f.sh(c.Path, "rev-parse", "--path-format=absolute", "--git-path", "index")
		f.sh(c.Path, "config", "core.checkStat", "minimal")
		f.sh(c.Path, "config", "core.trustctime", "false")
		write(file, "eno\n")
		Expect(os.Chtimes(file, at, at)).To(Succeed())
		Expect(os.Chtimes(index, at, at)).To(Succeed())
		Expect(f.remove("github:octo/repo#1").Kept).To(HaveLen(1))
	})

	It("in the middle of a merge is kept with its conflict marks", func() {
		f.push(bare, "other", map[string]string{"a.txt": "other\n"})
		f.push(bare, "main", map[string]string{"a.txt": "main\n"})
		c := f.prepare(Request{Item: ref("github:octo/repo#1"), Branch: "main"})
		Expect(f.try(c.Path, "merge", "origin/other")).NotTo(Succeed())
		u := f.remove("github:octo/repo#1").Kept[0]
		Expect(u.Notes).To(HaveLen(1))
		again := f.restore(u)
		Expect(again.Notes).To(ContainElement(ContainSubstring("merge")))
		Expect(read(filepath.Join(c.Path, "a.txt"))).To(ContainSubstring("<<<<<<<"))
	})

	It("is not restored over something, nor somewhere else", func() {
		c := f.item("github:octo/repo#1")
		write(filepath.Join(c.Path, "a.txt"), "unsaved\n")
		u := f.remove("github:octo/repo#1").Kept[0]
		c = f.item("github:octo/repo#1")
		_, err := f.Restore(context.Background(), u)
		Expect(err).To(haveReason(ReasonOccupied))
		Expect(read(filepath.Join(c.Path, "a.txt"))).To(Equal("one\n"))
		f.remove("github:octo/repo#1")
		bad := u
		bad.Path = filepath.Join(f.dir, "elsewhere")
		_, err = f.Restore(context.Background(), bad)
		Expect(err).To(haveReason(ReasonOutsideRoot))
		bad = u
		bad.Head = "--upload-pack=evil"
		_, err = f.Restore(context.Background(), bad)
		Expect(err).To(haveReason(ReasonDamaged))
		f.restore(u)
		Expect(read(filepath.Join(c.Path, "a.txt"))).To(Equal("unsaved\n"))
	})

	It("whose bundle is damaged is refused, and leaves no checkout", func() {
		c := f.item("github:octo/repo#1")
		write(filepath.Join(c.Path, "a.txt"), "unsaved\n")
		u := f.remove("github:octo/repo#1").Kept[0]
		Expect(os.Truncate(filepath.Join(u.Dir, bundleFile), u.Size/2)).To(Succeed())
		_, err := f.Restore(context.Background(), u)
		Expect(err).To(HaveOccurred())
		Expect(c.Path).NotTo(BeAnExistingFile())
		Expect(f.item("github:octo/repo#1").Reused).To(BeFalse())
	})

	It("is pruned when it is old", func() {
		c := f.item("github:octo/repo#1")
		write(filepath.Join(c.Path, "a.txt"), "unsaved\n")
		u := f.remove("github:octo/repo#1").Kept[0]
		write(filepath.Join(f.undo, "broken", metaFile), "{")
		Expect(os.Mkdir(filepath.Join(f.undo, undoTemp+"1"), 0o700)).To(Succeed())
		gone, err := PruneUndo(f.undo, u.CreatedAt.Add(time.Hour), 2*time.Hour)
		Expect(err).To(haveReason(ReasonDamaged))
		Expect(gone).To(BeEmpty())
		gone, _ = PruneUndo(f.undo, time.Now().Add(48*time.Hour), 2*time.Hour)
		Expect(gone).To(HaveLen(1))
		Expect(entries(f.undo)).To(ConsistOf("broken"))
	})
})

var _ = Describe("a restored worktree", func() {
	It("is detached when its branch is in use, or has other commits by now", func() {
		f := newFixture(Worktree)
		bare := f.repository("octo/repo")
		f.push(bare, "feature", map[string]string{"a.txt": "feature\n"})
		req := Request{Item: ref("github:octo/repo#1"), Branch: "feature"}
		c := f.prepare(req)
		write(filepath.Join(c.Path, "a.txt"), "mine\n")
		f.sh(c.Path, "commit", "-qam", "mine")
		u := f.remove("github:octo/repo#1").Kept[0]
		req.Item = ref("github:octo/repo#2")
		other := f.prepare(req)
		again := f.restore(u)
		Expect(again.Branch).To(BeEmpty())
		Expect(again.Head).To(Equal(u.Head))
		Expect(again.Notes).To(ContainElement(ContainSubstring("github:octo/repo#2")))
		f.remove("github:octo/repo#1")

		write(filepath.Join(other.Path, "a.txt"), "other\n")
		f.sh(other.Path, "commit", "-qam", "other")
		f.remove("github:octo/repo#2")
		again = f.restore(u)
		Expect(again.Branch).To(BeEmpty())
		Expect(again.Notes).To(ContainElement(ContainSubstring("other commits")))
	})
})
