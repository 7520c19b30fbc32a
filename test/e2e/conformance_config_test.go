package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/testenv"
)

// sharing is a host whose harnesses share a configuration that we prepare: they have been
// through their onboarding, and a login stands in it.
func sharing(behaviour ...string) (h *testenv.Host, config string) {
	GinkgoHelper()
	h = env.NewHost(func(h *testenv.Host) api.SessionClassSpec {
		dir := filepath.Join(h.Dir, "harness")
		config = filepath.Join(dir, ".claude.json")
		Expect(os.MkdirAll(dir, 0o700)).To(Succeed())
		Expect(os.WriteFile(config, []byte(`{"hasCompletedOnboarding": true, "oauthAccount": {"id": 1}}`), 0o600)).To(Succeed())
		spec := h.DemoClass(append([]string{"flush-late=0"}, behaviour...)...)
		spec.Trust = api.TrustPolicy{Enabled: new(true), Scope: "Directory"}
		spec.Harness.Env = append(spec.Harness.Env, api.EnvVar{Name: "CLAUDE_CONFIG_DIR", Value: dir})
		return spec
	})
	return h, config
}

// lastGood is the copy that the agent keeps of the one shared configuration.
func lastGood(h *testenv.Host) (path, text string) {
	GinkgoHelper()
	all, err := filepath.Glob(filepath.Join(h.StateDir, "config-copies", "*.json"))
	Expect(err).NotTo(HaveOccurred())
	if len(all) == 0 {
		return "", ""
	}
	Expect(all).To(HaveLen(1))
	return all[0], contentOf(all[0])
}

func contentOf(path string) string {
	GinkgoHelper()
	b, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	return string(b)
}

// prepared waits until the last good copy is of what the file is now.
func prepared(h *testenv.Host, config string) (copied, text string) {
	GinkgoHelper()
	text = contentOf(config)
	Expect(text).To(ContainSubstring("hasTrustDialogAccepted"))
	Eventually(func() string { _, now := lastGood(h); return now }).Should(Equal(text))
	copied, _ = lastGood(h)
	return copied, text
}

var _ = Describe("a configuration that harnesses share and broke", func() {
	It("H09: is noticed while sessions run, told, and restored where it was left half written; the broken one is kept, and what runs is left alone", func() {
		h, config := sharing()
		running := h.Standing("running")
		h.Ready(running)
		pid := h.HarnessPID(running)
		_, good := prepared(h, config)

		h.AwaitOutcome(h.Say(running, "fake: cut-config=30"), testenv.Submitted)
		Eventually(h.HostReported).WithArguments("HostConfigRestored").Should(Equal(1))
		Expect(h.HostReported("HostConfigBroken")).To(Equal(1))
		Expect(contentOf(config)).To(Equal(good))
		broken, err := filepath.Glob(config + ".broken-*")
		Expect(err).NotTo(HaveOccurred())
		Expect(broken).To(HaveLen(1))
		Expect(contentOf(broken[0])).To(Equal(good[:30]))

		next := h.Standing("next")
		h.Ready(next)
		aTurn(h, running, "undisturbed")
		Expect(h.HarnessPID(running)).To(Equal(pid))
		Expect(get(running).Status.Restarts).To(BeZero())
	})

	DescribeTable("H09: is never written over where it parses or may be somebody's edit: starts are held, with what to do, until it is sound",
		func(damage func(config, good string)) {
			h, config := sharing()
			running := h.Standing("running")
			h.Ready(running)
			pid := h.HarnessPID(running)
			copied, good := prepared(h, config)

			damage(config, good)
			left, _ := os.ReadFile(config)
			Eventually(h.HostReported).WithArguments("HostConfigBroken").Should(Equal(1))
			held := h.Standing("held")
			h.Await(held, api.ConditionReady, "False/ConfigurationBroken")
			Expect(h.Message(held, api.ConditionReady)).To(And(ContainSubstring(config), ContainSubstring("cp "+copied+" "+config)))
			aTurn(h, running, "undisturbed")
			Expect(h.HarnessPID(running)).To(Equal(pid))
			Expect(h.Events("started")).To(HaveLen(1))
			now, _ := os.ReadFile(config)
			Expect(now).To(Equal(left))
			_, kept := lastGood(h)
			Expect(kept).To(Equal(good))

			By("what the message says")
			Expect(os.WriteFile(config, []byte(kept), 0o600)).To(Succeed())
			h.Ready(held)
			Expect(h.HostReported("HostConfigRestored")).To(BeZero())
		},
		Entry("reset to a first run", func(config, _ string) {
			Expect(os.WriteFile(config, []byte(`{"numStartups": 1}`), 0o600)).To(Succeed())
		}),
		Entry("mistyped", func(config, good string) {
			Expect(os.WriteFile(config, []byte(strings.Replace(good, `"oauthAccount"`, `,"oauthAccount"`, 1)), 0o600)).To(Succeed())
		}),
		Entry("gone", func(config, _ string) { Expect(os.Remove(config)).To(Succeed()) }),
	)

	It("H09: by thirty that write it at once, and not in one step, costs no good copy and no session", func() {
		const fleet = 30
		h, config := sharing()
		first := h.Standing("first")
		h.Ready(first)
		copied, good := prepared(h, config)
		h.UpdateClass(h.Class, func(c *api.SessionClass) {
			for i := range c.Spec.Harness.Env {
				if v := &c.Spec.Harness.Env[i]; v.Name == "FAKEHARNESS_BEHAVIOUR" {
					v.Value += ",rewrite-config-torn=20,rewrite-config-times=40"
				}
			}
		})
		var all []*api.StandingSession
		for i := range fleet {
			all = append(all, h.Standing("one-of-"+itoa(i)))
		}
		By("those that write read what others have half written, and begin it anew")
		Eventually(h.HostReported, "90s").WithArguments("HostConfigBroken").ShouldNot(BeZero())
		_, kept := lastGood(h)
		Expect(kept).To(ContainSubstring(`"oauthAccount"`))
		Expect(strings.TrimSpace(kept)).To(And(HavePrefix("{"), HaveSuffix("}")))
		Expect(copied).To(BeAnExistingFile())
		By("a person puts the last good one back, as often as it is broken again")
		Eventually(func(g Gomega) {
			if now := contentOf(config); !json.Valid([]byte(now)) || !strings.Contains(now, `"oauthAccount"`) {
				_, kept := lastGood(h)
				g.Expect(os.WriteFile(config, []byte(kept), 0o600)).To(Succeed())
			}
			for _, s := range all {
				g.Expect(h.Condition(s, api.ConditionReady)()).To(HavePrefix("True/"))
			}
		}, "150s", "1s").Should(Succeed())
		Expect(h.Events("started")).To(HaveLen(fleet+1), "none ended or was started twice")
		Expect(get(first).Status.Restarts).To(BeZero())
		Expect(good).To(ContainSubstring(`"oauthAccount"`))
	})
})
