package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// prep is one home with a spawn directory below a workspace root.
type prep struct {
	base, home, root, dir string
	env                   map[string]string
}

func newPrep() *prep {
	GinkgoHelper()
	base, err := filepath.EvalSymlinks(GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	p := &prep{base: base, home: filepath.Join(base, "home"), root: filepath.Join(base, "ws")}
	p.dir = filepath.Join(p.root, "octo", "repo")
	Expect(os.MkdirAll(p.dir, 0o755)).To(Succeed())
	Expect(os.Mkdir(p.home, 0o755)).To(Succeed())
	p.env = map[string]string{"HOME": p.home}
	return p
}

func (p *prep) user() string     { return filepath.Join(p.home, ".claude.json") }
func (p *prep) settings() string { return filepath.Join(p.home, ".claude", "settings.json") }

func (p *prep) options(change func(*PrepareOptions)) PrepareOptions {
	o := PrepareOptions{
		Dir: p.dir, WorkspaceRoot: p.root, Lookup: func(k string) string { return p.env[k] },
		Trust: true, Scope: TrustWorkspaceRoot, AcceptBypass: AcceptBypassAuto, LockDir: filepath.Join(p.base, "locks"),
	}
	if change != nil {
		change(&o)
	}
	return o
}

func (p *prep) try(change func(*PrepareOptions)) (Prepared, error) {
	return claude{}.Prepare(context.Background(), p.options(change))
}

func (p *prep) prepare(change func(*PrepareOptions)) Prepared {
	GinkgoHelper()
	done, err := p.try(change)
	Expect(err).NotTo(HaveOccurred())
	return done
}

func write(path, text string) {
	GinkgoHelper()
	Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
	Expect(os.WriteFile(path, []byte(text), 0o644)).To(Succeed())
}

func read(path string) string {
	GinkgoHelper()
	b, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	return string(b)
}

// trusted are the directories that a user config trusts.
func trusted(path string) map[string]map[string]any {
	GinkgoHelper()
	var c struct{ Projects map[string]map[string]any }
	Expect(json.Unmarshal([]byte(read(path)), &c)).To(Succeed())
	return c.Projects
}

var (
	bothKeys = map[string]any{keyTrusted: true, keyOnboarded: true}
	oneKey   = map[string]any{keyTrusted: true}
)

var _ = Describe("the trust of a directory", func() {
	It("H01: is written for the exact directory and widened to the root, into a file that was not there", func() {
		p := newPrep()
		done := p.prepare(nil)
		Expect(done.Applied).To(Equal([]string{"trust " + p.dir, "trust " + p.root}))
		Expect(done.Warnings).To(BeEmpty())
		Expect(trusted(p.user())).To(Equal(map[string]map[string]any{p.dir: bothKeys, p.root: oneKey}))
		info, err := os.Stat(p.user())
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode().Perm()).To(BeEquivalentTo(0o600))
		Expect(read(p.user())).To(Equal(fmt.Sprintf(`{
  "projects": {
    %q: {
      "hasTrustDialogAccepted": true,
      "hasCompletedProjectOnboarding": true
    },
    %q: {
      "hasTrustDialogAccepted": true
    }
  }
}
`, p.dir, p.root)))
		Expect(p.settings()).NotTo(BeAnExistingFile())
		By("leaving nothing else behind")
		entries, err := os.ReadDir(p.home)
		Expect(err).NotTo(HaveOccurred())
		Expect(entries).To(HaveLen(1))
	})

	DescribeTable("C144: reaches as far as its scope and its root allow",
		func(change func(*prep, *PrepareOptions), wantRoot bool, warning string) {
			p := newPrep()
			var root string
			done := p.prepare(func(o *PrepareOptions) { change(p, o); root = filepath.Clean(o.WorkspaceRoot) })
			want := map[string]map[string]any{p.dir: bothKeys}
			if wantRoot {
				want[root] = oneKey
			}
			Expect(trusted(p.user())).To(Equal(want))
			if warning == "" {
				Expect(done.Warnings).To(BeEmpty())
			} else {
				Expect(done.Warnings).To(ConsistOf(And(ContainSubstring(warning), ContainSubstring(p.dir))))
			}
		},
		Entry("WorkspaceRoot", func(*prep, *PrepareOptions) {}, true, ""),
		Entry("no scope is WorkspaceRoot", func(_ *prep, o *PrepareOptions) { o.Scope = "" }, true, ""),
		Entry("Directory", func(_ *prep, o *PrepareOptions) { o.Scope = TrustDirectory }, false, ""),
		Entry("no root", func(_ *prep, o *PrepareOptions) { o.WorkspaceRoot = "" }, false, ""),
		Entry("a root that is not normalised", func(_ *prep, o *PrepareOptions) { o.WorkspaceRoot += "/octo/../" }, true, ""),
		Entry("the root is the directory", func(p *prep, o *PrepareOptions) { o.WorkspaceRoot = p.dir + "/" }, false, ""),
		Entry("a root elsewhere", func(p *prep, o *PrepareOptions) { o.WorkspaceRoot = filepath.Join(p.base, "other") }, false, "does not contain"),
		Entry("a root whose name is only the beginning", func(p *prep, o *PrepareOptions) { o.WorkspaceRoot = p.root[:len(p.root)-1] }, false, "does not contain"),
		Entry("a root below the directory", func(p *prep, o *PrepareOptions) { o.WorkspaceRoot = filepath.Join(p.dir, "sub") }, false, "does not contain"),
		Entry("a relative root", func(_ *prep, o *PrepareOptions) { o.WorkspaceRoot = "ws" }, false, "not absolute"),
		Entry("/", func(_ *prep, o *PrepareOptions) { o.WorkspaceRoot = "/" }, false, "as broad as"),
		Entry("/ and no HOME", func(p *prep, o *PrepareOptions) {
			p.env = map[string]string{"CLAUDE_CONFIG_DIR": p.home}
			o.WorkspaceRoot = "//"
		}, false, "whole file system"),
		Entry("HOME", func(p *prep, _ *PrepareOptions) { p.env["HOME"], p.env["CLAUDE_CONFIG_DIR"] = p.root, p.home }, false, "home directory"),
		Entry("what holds HOME", func(p *prep, o *PrepareOptions) { o.WorkspaceRoot = p.base }, false, "home directory"),
		Entry("HOME by a symbolic link", func(p *prep, _ *PrepareOptions) {
			link := filepath.Join(p.base, "link")
			Expect(os.Symlink(p.root, link)).To(Succeed())
			p.env["HOME"], p.env["CLAUDE_CONFIG_DIR"] = link, p.home
		}, false, "home directory"),
		Entry("a root that a link in it leads out of", func(p *prep, o *PrepareOptions) {
			out, in := filepath.Join(p.base, "out"), filepath.Join(p.base, "ws2")
			Expect(os.Mkdir(in, 0o755)).To(Succeed())
			Expect(os.Rename(p.root, out)).To(Succeed())
			Expect(os.Symlink(out, p.root)).To(Succeed())
			o.Dir, o.WorkspaceRoot = filepath.Join(out, "octo", "repo"), in
			p.dir = o.Dir
		}, false, "does not contain"),
	)

	It("is written for the given path and for its realpath, of the root too", func() {
		p := newPrep()
		link := filepath.Join(p.base, "link")
		Expect(os.Symlink(p.root, link)).To(Succeed())
		dir := filepath.Join(link, "octo", "repo")
		p.prepare(func(o *PrepareOptions) { o.Dir, o.WorkspaceRoot = dir+"/.", link })
		Expect(trusted(p.user())).To(Equal(map[string]map[string]any{dir: bothKeys, p.dir: bothKeys, link: oneKey, p.root: oneKey}))
	})

	It("C147: writes nothing when all is there, and not again what the harness takes out", func() {
		p := newPrep()
		p.prepare(nil)
		stripped := strings.ReplaceAll(read(p.user()), ",\n      \"hasCompletedProjectOnboarding\": true", "")
		for _, text := range []string{read(p.user()), stripped} {
			write(p.user(), text)
			before, err := os.Stat(p.user())
			Expect(err).NotTo(HaveOccurred())
			Expect(p.prepare(nil)).To(Equal(Prepared{}))
			after, err := os.Stat(p.user())
			Expect(err).NotTo(HaveOccurred())
			Expect(os.SameFile(before, after)).To(BeTrue())
			Expect(after.ModTime()).To(Equal(before.ModTime()))
			Expect(read(p.user())).To(Equal(text))
		}
		By("mending what somebody else set to something else")
		write(p.user(), strings.ReplaceAll(read(p.user()), "true", "false"))
		Expect(p.prepare(nil).Applied).To(Equal([]string{"trust " + p.dir, "trust " + p.root}))
		Expect(trusted(p.user())).To(Equal(map[string]map[string]any{p.dir: bothKeys, p.root: oneKey}))
	})

	It("does nothing when it is off, and says that HOME is needed when it is on", func() {
		p := newPrep()
		Expect(p.prepare(func(o *PrepareOptions) { o.Trust, o.AcceptBypass = false, AcceptBypassAlways })).To(Equal(Prepared{}))
		Expect(os.ReadDir(p.home)).To(BeEmpty())
		for _, lookup := range []func(string) string{nil, func(string) string { return "rel" }} {
			_, err := p.try(func(o *PrepareOptions) { o.Lookup = lookup })
			Expect(err).To(MatchError(ContainSubstring("absolute")))
		}
	})

	DescribeTable("refuses what it cannot do", func(change func(*PrepareOptions), want string) {
		p := newPrep()
		_, err := p.try(change)
		Expect(err).To(MatchError(ContainSubstring(want)))
		Expect(os.ReadDir(p.home)).To(BeEmpty())
	},
		Entry("a scope", func(o *PrepareOptions) { o.Scope = "Home" }, "must be WorkspaceRoot or Directory"),
		Entry("an acceptance", func(o *PrepareOptions) { o.Dir, o.AcceptBypass = "", "Yes" }, "must be Auto, Always or Never"),
		Entry("a relative directory", func(o *PrepareOptions) { o.Dir = "x" }, "must be absolute"),
		Entry("a name that is not UTF-8", func(o *PrepareOptions) { o.Dir += "/\xff" }, "not valid UTF-8"),
		Entry("a relative lock directory", func(o *PrepareOptions) { o.LockDir = "locks" }, "must be absolute"),
	)
})

var _ = Describe("where claude keeps its config (C145)", func() {
	It("is CLAUDE_CONFIG_DIR, trimmed, where it is set", func() {
		p := newPrep()
		dir := filepath.Join(p.base, "not", "there")
		p.env["CLAUDE_CONFIG_DIR"] = " " + dir + "\n"
		p.prepare(func(o *PrepareOptions) { o.Plugins = true })
		Expect(trusted(filepath.Join(dir, ".claude.json"))).To(HaveKey(p.dir))
		Expect(read(filepath.Join(dir, "settings.json"))).To(ContainSubstring(loopPlugin))
		Expect(os.ReadDir(p.home)).To(BeEmpty())
	})

	It("is HOME where it is blank, and an error where it is relative", func() {
		p := newPrep()
		p.env["CLAUDE_CONFIG_DIR"] = "  "
		p.prepare(nil)
		Expect(trusted(p.user())).To(HaveKey(p.dir))
		p.env["CLAUDE_CONFIG_DIR"] = "cfg"
		_, err := p.try(nil)
		Expect(err).To(MatchError(ContainSubstring("CLAUDE_CONFIG_DIR=cfg is relative")))
	})

	It("is .config.json in the config directory where that exists", func() {
		p := newPrep()
		other := filepath.Join(p.home, ".claude", ".config.json")
		write(other, "{}")
		p.prepare(nil)
		Expect(trusted(other)).To(HaveKey(p.dir))
		Expect(p.user()).NotTo(BeAnExistingFile())
	})
})

var _ = Describe("the disclaimer about running without permissions", func() {
	DescribeTable("C148: is accepted by the policy and the arguments", func(policy string, want bool, args ...string) {
		p := newPrep()
		done := p.prepare(func(o *PrepareOptions) { o.AcceptBypass, o.Args = policy, args })
		if !want {
			Expect(p.settings()).NotTo(BeAnExistingFile())
			Expect(read(p.user())).NotTo(ContainSubstring(keyBypassLegacy))
			return
		}
		Expect(read(p.settings())).To(MatchJSON(`{"skipDangerousModePermissionPrompt": true}`))
		Expect(read(p.user())).To(ContainSubstring(`"bypassPermissionsModeAccepted": true`))
		Expect(done.Applied).To(ContainElement(ContainSubstring("disclaimer")))
	},
		Entry("Auto, nothing asked", AcceptBypassAuto, false, "--model", "opus"),
		Entry("Auto, the flag", AcceptBypassAuto, true, "--model", "opus", "--dangerously-skip-permissions"),
		Entry("Auto, the mode in two words", AcceptBypassAuto, true, "--permission-mode", "bypassPermissions"),
		Entry("Auto, the mode in one", AcceptBypassAuto, true, "--permission-mode=bypassPermissions"),
		Entry("no policy is Auto", "", true, "--permission-mode=bypassPermissions"),
		Entry("Auto, another mode", AcceptBypassAuto, false, "--permission-mode", "plan"),
		Entry("Auto, a mode without a word", AcceptBypassAuto, false, "--permission-mode"),
		Entry("Auto, the word without the flag", AcceptBypassAuto, false, "--add-dir", "bypassPermissions"),
		Entry("Auto, a text that looks like the flag", AcceptBypassAuto, false, "--append-system-prompt", "--dangerously-skip-permissions"),
		Entry("Always", AcceptBypassAlways, true),
		Entry("Never", AcceptBypassNever, false, "--dangerously-skip-permissions"),
	)

	It("is not written again once claude has moved it into its settings", func() {
		p := newPrep()
		always := func(o *PrepareOptions) { o.AcceptBypass = AcceptBypassAlways }
		p.prepare(always)
		write(p.user(), strings.Replace(read(p.user()), `"bypassPermissionsModeAccepted": true`, `"x": 1`, 1))
		Expect(p.prepare(always)).To(Equal(Prepared{}))
		By("mending an explicit no")
		write(p.settings(), `{"skipDangerousModePermissionPrompt": false}`)
		Expect(p.prepare(always).Applied).To(HaveEach(ContainSubstring("disclaimer")))
	})
})

var _ = Describe("the plugin", func() {
	plugin := func(repo string) func(*PrepareOptions) {
		return func(o *PrepareOptions) { o.Trust, o.Plugins, o.MarketplaceRepo = false, true, repo }
	}
	const market = `{"source": {"source": "github", "repo": "octo/loop"}}`

	DescribeTable("H21: is enabled where nothing is said about it, and nothing that is there is changed",
		func(before, repo, want string, applied int) {
			p := newPrep()
			if before != "" {
				write(p.settings(), before)
			}
			Expect(p.prepare(plugin(repo)).Applied).To(HaveLen(applied))
			Expect(read(p.settings())).To(MatchJSON(want))
			Expect(p.prepare(plugin(repo)).Applied).To(BeEmpty())
			Expect(p.user()).NotTo(BeAnExistingFile())
		},
		Entry("no file", "", "octo/loop", `{"extraKnownMarketplaces":{"the-loop":`+market+`},"enabledPlugins":{"the-loop@the-loop":true}}`, 2),
		Entry("no marketplace", "", "", `{"enabledPlugins":{"the-loop@the-loop":true}}`, 1),
		Entry("C149: switched off", `{"enabledPlugins":{"the-loop@the-loop":false}}`, "", `{"enabledPlugins":{"the-loop@the-loop":false}}`, 0),
		Entry("a null", `{"enabledPlugins":{"the-loop@the-loop":null}}`, "", `{"enabledPlugins":{"the-loop@the-loop":null}}`, 0),
		Entry("an operator's marketplace and plugins", `{"extraKnownMarketplaces":{"the-loop":{"x":1}},"enabledPlugins":{"a@b":true}}`, "octo/loop",
			`{"extraKnownMarketplaces":{"the-loop":{"x":1}},"enabledPlugins":{"a@b":true,"the-loop@the-loop":true}}`, 1),
	)

	DescribeTable("refuses a marketplace that is no owner/repo and writes nothing of the plugin, but the trust",
		func(repo string) {
			p := newPrep()
			done, err := p.try(func(o *PrepareOptions) { plugin(repo)(o); o.Trust = true })
			Expect(err).To(MatchError(ContainSubstring("must be owner/repo")))
			Expect(p.settings()).NotTo(BeAnExistingFile())
			Expect(done.Applied).To(ContainElement("trust " + p.dir))
		},
		Entry(nil, "loop"), Entry(nil, "a/b/c"), Entry(nil, "https://github.com/a/b"), Entry(nil, "a/b\n"), Entry(nil, "/b"), Entry(nil, "a/"),
		Entry(nil, "a/.."), Entry(nil, "../b"), Entry(nil, "-a/b"), Entry(nil, `a/b"`), Entry(nil, "ä/b"),
	)

	It("is written when the trust fails, and the other way round", func() {
		p := newPrep()
		write(p.user(), "{")
		done, err := p.try(func(o *PrepareOptions) { o.Plugins = true })
		Expect(err).To(MatchError(ContainSubstring(p.user())))
		Expect(done.Applied).To(Equal([]string{"plugin the-loop@the-loop"}))
		write(p.settings(), "[]")
		write(p.user(), "{}")
		done, err = p.try(func(o *PrepareOptions) { o.Plugins = true })
		Expect(err).To(MatchError(ContainSubstring(p.settings())))
		Expect(done.Applied).To(HaveLen(2))
	})
})
