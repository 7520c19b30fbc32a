package realharness

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/fakeharness/faketest"
	"github.com/theloop-dev/the-loop/test/testenv"
)

var _ = Describe("the update of a real harness by itself", func() {
	It("H04, H15: is not asked for by a Gemini CLI of ours, whatever its user has set, and is by one that a person starts", func(ctx SpecContext) {
		var asked atomic.Int32
		registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "gemini-cli") {
				asked.Add(1)
			}
			http.NotFound(w, r) // there is nothing that could be installed
		}))
		DeferCleanup(registry.Close)
		h := gemini.host(ctx)
		npm := api.EnvVar{Name: "npm_config_registry", Value: registry.URL}
		h.UpdateClass(h.Class, func(c *api.SessionClass) { c.Spec.Harness.Env = append(c.Spec.Harness.Env, npm) })
		s := h.Standing("kept")
		h.AwaitOutcome(h.AwaitBoot(s), testenv.Submitted, slowly)
		atPrompt(h, s)
		h.AwaitOutcome(h.Say(s, "Are you there?"), testenv.Submitted, slowly)
		Expect(asked.Load()).To(BeZero())

		By("starting one by hand, which asks")
		var class api.SessionClass
		class.Name = h.Class
		h.Get(&class)
		cmd := exec.Command(class.Spec.Harness.Binary)
		cmd.Dir, cmd.Env = h.Work, []string{"PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8", "GEMINI_CLI_NO_RELAUNCH=true", "GEMINI_CLI_TRUST_WORKSPACE=true"}
		for _, v := range class.Spec.Harness.Env {
			cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
		}
		t, err := faketest.Start(cmd, 100, 30)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(t.Close)
		Eventually(asked.Load, slowly).Should(BeNumerically(">", 0), t.Output)
	}, SpecTimeout(withInstall))
})
