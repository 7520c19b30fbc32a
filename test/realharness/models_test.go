package realharness

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/testenv"
)

// asks has the harness of a host asked about the models of its class, for a session that
// does not run, and returns what it said of each.
func asks(h *testenv.Host, models ...string) map[string]api.Verdict {
	GinkgoHelper()
	h.Standing("asking", func(s *api.StandingSession) { s.Spec.State = api.SessionStateStopped })
	host := &api.SessionHost{ObjectMeta: metav1.ObjectMeta{Name: h.Name}}
	Eventually(func() (int, error) {
		err := env.Client.Get(context.Background(), client.ObjectKeyFromObject(host), host)
		return len(host.Status.Models), err
	}, 3*slowly).Should(Equal(len(models)))
	said := map[string]api.Verdict{}
	for _, v := range host.Status.Models {
		said[v.Name] = v.Verdict
		AddReportEntry(v.Name, string(v.Verdict)+" "+v.Message)
	}
	return said
}

var _ = Describe("a real harness that is asked about models, once and without a terminal", func() {
	claude := func(ctx context.Context, models ...string) *testenv.Host {
		h := newClaude(ctx)
		h.UpdateClass(h.Class, func(c *api.SessionClass) { c.Spec.Models = models })
		return h
	}
	DescribeTable("takes one that the service has, and refuses one in its own words that it has not",
		func(ctx SpecContext, host func(context.Context, ...string) *testenv.Host, known, unknown string) {
			h := host(ctx, known, unknown)
			Expect(asks(h, known, unknown)).To(Equal(map[string]api.Verdict{known: api.VerdictAccepted, unknown: api.VerdictRefused}))
			Expect(h.Sessions()).To(BeEmpty())
		},
		Entry("Claude Code", claude, "m-1", "nosuch-1", SpecTimeout(withInstall)),
		Entry("Codex", codex.host, "m-1", "nosuch-1", SpecTimeout(withInstall)),
		Entry("opencode, a model that no provider has", opencode.host, "fake/m", "fake/m-9", SpecTimeout(withInstall)),
		Entry("opencode, a model that the service has not", opencode.host, "fake/m", "fake/nosuch-1", SpecTimeout(withInstall)),
		Entry("Gemini CLI", gemini.host, "m-1", "nosuch-1", SpecTimeout(withInstall)),
	)
})
