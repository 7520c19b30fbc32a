package harness

import (
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("the configuration that sessions of claude share (H09)", func() {
	const good = `{"hasCompletedOnboarding": true, "oauthAccount": {"id": 1}, "projects": {"/a": {}}}`
	var (
		p   *prep
		now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	)
	both := func() []SharedConfig {
		GinkgoHelper()
		all, err := claude{}.Shared(p.options(func(o *PrepareOptions) { o.CopyDir = filepath.Join(p.base, "copies") }))
		Expect(err).NotTo(HaveOccurred())
		Expect(all).To(HaveLen(2))
		return all
	}
	shared := func() SharedConfig { GinkgoHelper(); return both()[0] }
	// look examines a file and keeps what is sound.
	look := func(c SharedConfig) Finding {
		GinkgoHelper()
		f, err := c.Examine(context.Background(), Finding{})
		Expect(err).NotTo(HaveOccurred())
		if f.Newer {
			Expect(f.Keep()).To(Succeed())
		}
		return f
	}
	examine := func() Finding { GinkgoHelper(); return look(shared()) }
	BeforeEach(func() {
		p = newPrep()
		write(p.user(), good)
		f := examine()
		Expect(f.Damage).To(Equal(DamageNone))
		Expect(read(f.Copy)).To(Equal(good))
		info, err := os.Stat(f.Copy)
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)), "it may hold secrets")
	})

	DescribeTable("is judged by its last good text", func(now string, want Damage) {
		write(p.user(), now)
		f := examine()
		Expect(f.Damage).To(Equal(want))
		if want == DamageNone {
			Expect(read(f.Copy)).To(Equal(now))
		} else {
			Expect(read(f.Copy)).To(Equal(good), "what is broken is no good copy")
		}
		Expect(read(p.user())).To(Equal(now), "to look is not to touch")
	},
		Entry("a new key", `{"hasCompletedOnboarding": true, "numStartups": 2}`, DamageNone),
		Entry("empty", "", DamageTorn),
		Entry("blank, as an editor leaves it", " \n", DamageMalformed),
		Entry("zeroes, as after a power cut", "\x00\x00\x00", DamageTorn),
		Entry("cut off in a string", `{"hasCompletedOnbo`, DamageTorn),
		Entry("cut off behind a value", `{"hasCompletedOnboarding": true`, DamageTorn),
		Entry("a shorter text over a longer one", `{"a": 1}`+good[8:], DamageTorn),
		Entry("not finished by a person", `{"hasCompletedOnboarding": true, "hooks": {`, DamageMalformed),
		Entry("not finished, as an editor ends it", good[:31]+"\n", DamageMalformed),
		Entry("a brace too many", good+"}", DamageMalformed),
		Entry("a comment behind it", good+" // mine", DamageMalformed),
		Entry("a trailing comma", `{"hasCompletedOnboarding": true,}`, DamageMalformed),
		Entry("a BOM", "\ufeff"+good, DamageMalformed),
		Entry("no object", `[]`, DamageMalformed),
		Entry("begun anew", `{"numStartups": 1}`, DamageReset),
		Entry("begun anew, said so", `{"hasCompletedOnboarding": false}`, DamageReset),
		Entry("begun anew, and used since", `{"hasCompletedOnboarding": false, "projects": {"/b": {}}}`, DamageReset),
		Entry("begun anew, and prepared since", `{"numStartups": 1, "projects": {"/a": {"hasTrustDialogAccepted": true}}}`, DamageReset),
		Entry("begun anew with its account", `{"oauthAccount": {"id": 1}, "projects": {"/a": {}}}`, DamageReset),
		Entry("logged out", `{"hasCompletedOnboarding": false, "projects": {"/a": {}, "/b": {}}}`, DamageNone),
	)

	It("is judged by what was sound last where that is not kept yet, and not once a person removed what is", func() {
		newer := `{"numStartups": 2, ` + good[1:]
		write(p.user(), newer)
		newest, err := shared().Examine(context.Background(), Finding{})
		Expect(err).NotTo(HaveOccurred())
		Expect(newest.Newer).To(BeTrue())
		Expect(read(newest.Copy)).To(Equal(good), "to look is not to keep")
		write(p.user(), newer[:20])
		judged := func(newest Finding) Damage {
			f, err := shared().Examine(context.Background(), newest)
			Expect(err).NotTo(HaveOccurred())
			return f.Damage
		}
		Expect(judged(Finding{})).To(Equal(DamageMalformed))
		Expect(judged(newest)).To(Equal(DamageTorn))
		Expect(os.Remove(newest.Copy)).To(Succeed())
		Expect(judged(newest)).To(Equal(DamageNone))
	})

	DescribeTable("has no last good text where what is kept is of no use", func(spoil func(path string)) {
		kept := examine().Copy
		Expect(os.Remove(kept)).To(Succeed())
		spoil(kept)
		write(p.user(), "")
		f, err := shared().Examine(context.Background(), Finding{})
		Expect(err).NotTo(HaveOccurred())
		Expect(f.Damage).To(Equal(DamageNone))
		Expect(f.CopyProblem).To(MatchError(ContainSubstring(kept)))
	},
		Entry("empty", func(path string) { write(path, "") }),
		Entry("unreadable", func(path string) { Expect(os.Mkdir(path, 0o700)).To(Succeed()) }),
	)

	DescribeTable("is never restored where it is the settings, which people edit", func(now string) {
		const settings = `{"hooks": {"Stop": []}}`
		write(p.settings(), settings)
		look(both()[1])
		write(p.settings(), now)
		f := look(both()[1])
		Expect(f.Damage).To(Equal(DamageMalformed))
		Expect(read(f.Copy)).To(Equal(settings))
		_, err := both()[1].Restore(context.Background(), f, time.Now())
		Expect(err).To(HaveOccurred())
		Expect(read(p.settings())).To(Equal(now))
	},
		Entry("not finished", `{"hooks": {`),
		Entry("empty", ""),
	)

	It("is kept three times where it is broken again and again, and what is not ours stays", func() {
		mine := p.user() + ".broken-by-me"
		write(mine, "x")
		for i := range 5 {
			write(p.user(), good[:20+i])
			_, err := shared().Restore(context.Background(), examine(), now.Add(time.Duration(i)*time.Minute))
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(filepath.Glob(p.user() + ".broken-*")).To(ConsistOf(mine,
			p.user()+".broken-20300102T030605.000Z", p.user()+".broken-20300102T030705.000Z", p.user()+".broken-20300102T030805.000Z"))
	})

	It("is missed when it is gone, and was never sound where no copy says so", func() {
		Expect(os.Remove(p.user())).To(Succeed())
		f := examine()
		Expect(f.Damage).To(Equal(DamageMissing))
		Expect(os.Remove(f.Copy)).To(Succeed())
		Expect(examine().Damage).To(Equal(DamageNone))
		write(p.user(), "{")
		Expect(examine().Damage).To(Equal(DamageNone))
		Expect(f.Copy).NotTo(BeAnExistingFile())
	})

	It("is restored where it is half written, with its mode, through a link, and the broken one is kept", func() {
		real := filepath.Join(p.base, "dotfiles.json")
		Expect(os.Rename(p.user(), real)).To(Succeed())
		Expect(os.Symlink(real, p.user())).To(Succeed())
		examine()
		write(real, good[:20])
		Expect(os.Chmod(real, 0o640)).To(Succeed())
		f := examine()
		Expect(f.Path).To(Equal(real))
		kept, err := shared().Restore(context.Background(), f, now)
		Expect(err).NotTo(HaveOccurred())
		Expect(kept).To(Equal(real + ".broken-20300102T030405.000Z"))
		Expect(read(kept)).To(Equal(good[:20]))
		Expect(read(real)).To(Equal(good))
		Expect(os.Readlink(p.user())).To(Equal(real))
		info, err := os.Stat(real)
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o640)))
		Expect(examine().Damage).To(Equal(DamageNone))
		Expect(filepath.Glob(filepath.Join(p.base, ".*the-loop*"))).To(BeEmpty())
	})

	DescribeTable("is never replaced where it became another one since it was looked at", func(since string) {
		write(p.user(), good[:20])
		f := examine()
		write(p.user(), since)
		_, err := shared().Restore(context.Background(), f, now)
		Expect(err).To(MatchError(errIntervened))
		Expect(read(p.user())).To(Equal(since))
		Expect(filepath.Glob(p.user() + ".broken-*")).To(BeEmpty())
	},
		Entry("that parses", `{"hasCompletedOnboarding": true, "new": 1}`),
		Entry("that parses and begins anew", `{}`),
		Entry("that is broken in another way", good[:21]),
	)

	DescribeTable("is not restored where it may be somebody's will", func(now string) {
		write(p.user(), now)
		_, err := shared().Restore(context.Background(), examine(), time.Now())
		Expect(err).To(MatchError(ContainSubstring("only one that was left half written")))
		Expect(read(p.user())).To(Equal(now))
	},
		Entry("mistyped", `{"hasCompletedOnboarding": true,}`),
		Entry("begun anew", `{}`),
		Entry("sound", good),
	)
})
