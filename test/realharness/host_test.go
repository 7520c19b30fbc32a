package realharness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/harness/hook"
	"github.com/theloop-dev/the-loop/test/fakemodel/server"
	"github.com/theloop-dev/the-loop/test/testenv"
)

// newClaude starts an agent whose sessions run claude with args, in a home in which
// claude has never run, and cleans up after the test.
func newClaude(ctx context.Context, args ...string) *testenv.Host {
	GinkgoHelper()
	claude := binary(ctx, "claude")
	h := env.NewHost(func(h *testenv.Host) api.SessionClassSpec {
		dir := func(name string) string { return made(h, name) }
		// A person's own choice, which the-loop does not make for them. The trust of the
		// directory is the-loop's job, and not here.
		Expect(os.WriteFile(filepath.Join(dir("config"), ".claude.json"), []byte(`{"hasCompletedOnboarding": true}`), 0o600)).To(Succeed())
		return api.SessionClassSpec{
			Harness: api.HarnessSpec{Name: "claude", Binary: claude, Args: args, Env: []api.EnvVar{
				{Name: "HOME", Value: dir("home")},
				{Name: "CLAUDE_CONFIG_DIR", Value: dir("config")},
				{Name: "TMPDIR", Value: dir("tmp")},
				{Name: "CLAUDE_CODE_TMPDIR", Value: dir("tmp")},
				{Name: "ANTHROPIC_BASE_URL", Value: modelURL},
				{Name: "ANTHROPIC_AUTH_TOKEN", Value: "made-up"},
				{Name: "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", Value: "1"},
				{Name: "IS_SANDBOX", Value: "1"},
			}},
			Workspace: api.WorkspacePolicy{Root: h.Work},
		}
	})
	h.Evidence = []string{"config/sessions/*.json"}
	DeferCleanup(reportModel)
	return h
}

// made makes a directory of the host.
func made(h *testenv.Host, name string) string {
	GinkgoHelper()
	path := filepath.Join(h.Dir, name)
	Expect(os.MkdirAll(path, 0o700)).To(Succeed())
	return path
}

// reportModel shows what a failed test asked the model for.
func reportModel() {
	if !CurrentSpecReport().Failed() {
		return
	}
	for _, e := range model.Calls() {
		AddReportEntry("model", fmt.Sprintf("%s %s %s %q", e.Time.Format("05.000"), e.Kind, e.Model, e.Texts))
	}
}

// transcript is what claude has on disk of a conversation.
func transcript(h *testenv.Host, conversation string) func() string {
	return func() string {
		files, _ := filepath.Glob(filepath.Join(h.Dir, "config", "projects", "*", conversation+".jsonl"))
		var all strings.Builder
		for _, f := range files {
			b, _ := os.ReadFile(f)
			all.Write(b)
		}
		return all.String()
	}
}

// taken are the requests at the model in which a message was the newest text, alone. Tabs
// and blanks at the end do not count: Claude Code makes blanks of a tab, and opencode adds
// one behind a paste.
func taken(m *api.SessionMessage) func() []server.Call {
	return func() (out []server.Call) {
		for _, e := range model.Calls(server.KindTurn) {
			if e.Time.Before(m.CreationTimestamp.Time) { // of another test, which said the same
				continue
			}
			if slices.ContainsFunc(e.Texts, func(text string) bool { return hook.Digest(text) == m.Status.TextDigest }) {
				out = append(out, e)
			}
		}
		return out
	}
}
