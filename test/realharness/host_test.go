package realharness

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/tmux"
	"github.com/theloop-dev/the-loop/test/fakemodel/server"
)

var hosts atomic.Int64

// host is one build host: an agent on a terminal server of its own, and a home in
// which claude has never run.
type host struct {
	name, ns, dir, work string
	server              *tmux.Server
	agent               *gexec.Session
}

// newHost starts an agent whose sessions run claude with args, and cleans up after the
// test.
func newHost(args ...string) *host {
	GinkgoHelper()
	n := fmt.Sprintf("r%d-%d", GinkgoParallelProcess(), hosts.Add(1))
	h := &host{name: n, ns: "ns-" + n, dir: filepath.Join(suiteDir, n)}
	h.work = filepath.Join(h.dir, "work")
	for _, d := range []string{"work", "home", "config", "tmp"} {
		Expect(os.MkdirAll(filepath.Join(h.dir, d), 0o700)).To(Succeed())
	}
	// A person's own choice, which the-loop does not make for them. The trust of the
	// directory is the-loop's job, and not here.
	Expect(os.WriteFile(filepath.Join(h.dir, "config", ".claude.json"), []byte(`{"hasCompletedOnboarding": true}`), 0o600)).To(Succeed())
	socket := filepath.Join(h.dir, "tmux", "s")
	var err error
	h.server, err = tmux.New(tmux.Config{Socket: socket})
	Expect(err).NotTo(HaveOccurred())
	namespace(h.ns)
	Expect(k8s.Create(context.Background(), &api.SessionClass{ObjectMeta: metav1.ObjectMeta{Name: n}, Spec: api.SessionClassSpec{
		Harness: api.HarnessSpec{Name: "claude", Binary: claude, Args: args, Env: []api.EnvVar{
			{Name: "HOME", Value: filepath.Join(h.dir, "home")},
			{Name: "CLAUDE_CONFIG_DIR", Value: filepath.Join(h.dir, "config")},
			{Name: "TMPDIR", Value: filepath.Join(h.dir, "tmp")},
			{Name: "CLAUDE_CODE_TMPDIR", Value: filepath.Join(h.dir, "tmp")},
			{Name: "ANTHROPIC_BASE_URL", Value: modelURL},
			{Name: "ANTHROPIC_AUTH_TOKEN", Value: "made-up"},
			{Name: "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", Value: "1"},
			{Name: "IS_SANDBOX", Value: "1"},
		}},
		Workspace: api.WorkspacePolicy{Root: h.work},
	}})).To(Succeed())
	DeferCleanup(h.cleanUp)
	h.agent = start(filepath.Join(binDir, "agent"), []string{"KUBECONFIG=" + kubeconfigFor("theloop-agent:"+n, "theloop:agents")},
		"--host-name", n, "--state-dir", filepath.Join(h.dir, "agent"), "--tmux-socket", socket)
	return h
}

// cleanUp shows the screens of a failed test, and ends the agent, the terminal server
// and what its sessions left.
func (h *host) cleanUp() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if CurrentSpecReport().Failed() {
		h.report(ctx)
	}
	if h.agent != nil {
		h.agent.Kill()
		Eventually(h.agent).Should(gexec.Exit())
	}
	snap, err := h.server.Snapshot(ctx)
	Expect(err).NotTo(HaveOccurred())
	if !snap.Epoch.IsZero() {
		Expect(h.server.Shutdown(ctx, snap.Epoch)).To(Succeed())
	}
	for _, s := range snap.Sessions {
		if s.UID != "" {
			_, err := tmux.EndProcesses(ctx, s.UID, 0)
			Expect(err).NotTo(HaveOccurred())
		}
	}
}

// report prints what a person would look at.
func (h *host) report(ctx context.Context) {
	snap, err := h.server.Snapshot(ctx)
	AddReportEntry("snapshot", fmt.Sprint(err))
	for _, s := range snap.Sessions {
		if s.UID != "" {
			AddReportEntry("screen of "+s.Name, h.screen(s.Name))
		}
	}
	for _, pattern := range []string{"agent/*/*/*.jsonl", "agent/*/*.jsonl", "config/sessions/*.json"} {
		files, _ := filepath.Glob(filepath.Join(h.dir, pattern))
		for _, f := range files {
			b, _ := os.ReadFile(f)
			AddReportEntry(f, string(b))
		}
	}
	var messages api.SessionMessageList
	if err := k8s.List(ctx, &messages, client.InNamespace(h.ns)); err == nil {
		for _, m := range messages.Items {
			b, _ := json.Marshal(m.Status)
			AddReportEntry("message "+m.Name, string(b))
		}
	}
	for _, e := range model.Calls() {
		AddReportEntry("model", fmt.Sprintf("%s %s %s %q", e.Time.Format("05.000"), e.Kind, e.Model, e.Texts))
	}
}

// screen is what the terminal of a session shows.
func (h *host) screen(name string) string {
	out, err := exec.Command("tmux", "-N", "-u", "-S", h.server.Socket(), "capture-pane", "-p", "-t", "="+name+":").CombinedOutput()
	if err != nil {
		return err.Error() + ": " + string(out)
	}
	return string(out)
}

// standing makes a StandingSession of this host.
func (h *host) standing(name string, change func(*api.StandingSession)) *api.StandingSession {
	GinkgoHelper()
	s := &api.StandingSession{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: name},
		Spec:       api.StandingSessionSpec{HostPlacement: api.HostPlacement{ClassName: h.name, HostName: h.name}},
	}
	if change != nil {
		change(s)
	}
	Expect(k8s.Create(context.Background(), s)).To(Succeed())
	return s
}

// say creates a message for a session.
func (h *host) say(s *api.StandingSession, text string) *api.SessionMessage {
	GinkgoHelper()
	m := &api.SessionMessage{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, GenerateName: "m-"},
		Spec:       api.SessionMessageSpec{SessionRef: api.SessionReference{Kind: s.SessionKind(), Name: s.Name}, Text: text},
	}
	Expect(k8s.Create(context.Background(), m)).To(Succeed())
	return m
}

// boot is the first message of a session, once it is there.
func (h *host) boot(s *api.StandingSession) *api.SessionMessage {
	GinkgoHelper()
	var found *api.SessionMessage
	Eventually(func(g Gomega) {
		var list api.SessionMessageList
		g.Expect(k8s.List(context.Background(), &list, client.InNamespace(h.ns))).To(Succeed())
		for i, m := range list.Items {
			if m.Spec.SessionRef.Name == s.Name && m.Spec.Source.Type == api.SourceBoot {
				found = &list.Items[i]
			}
		}
		g.Expect(found).NotTo(BeNil())
	}).Should(Succeed())
	return found
}

// get reads the object again.
func get[T client.Object](obj T) T {
	GinkgoHelper()
	Expect(k8s.Get(context.Background(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	return obj
}

// update changes a session as a person does who edits it.
func update(s *api.StandingSession, change func()) {
	GinkgoHelper()
	Eventually(func() error {
		if err := k8s.Get(context.Background(), client.ObjectKeyFromObject(s), s); err != nil {
			return err
		}
		change()
		return k8s.Update(context.Background(), s)
	}).Should(Succeed())
}

// condition reads one condition of a session as "Status/Reason".
func condition(s *api.StandingSession, kind string) func() string {
	return func() string {
		if err := k8s.Get(context.Background(), client.ObjectKeyFromObject(s), s); err != nil {
			return err.Error()
		}
		c := meta.FindStatusCondition(s.Status.Conditions, kind)
		switch {
		case c == nil:
			return "absent"
		case c.ObservedGeneration != s.Generation:
			return "stale"
		}
		return string(c.Status) + "/" + c.Reason
	}
}

// ready waits until the session is ready.
func ready(s *api.StandingSession) {
	GinkgoHelper()
	Eventually(condition(s, api.ConditionReady)).Should(Equal("True/Running"))
}

// outcome reads what became of a message.
func outcome(m *api.SessionMessage) func() string {
	return func() string {
		if err := k8s.Get(context.Background(), client.ObjectKeyFromObject(m), m); err != nil {
			return err.Error()
		}
		return string(m.Status.Outcome) + "/" + m.Status.Reason
	}
}

const submitted = "Submitted/PromptTaken"

// pane is the pane of a session.
func (h *host) pane(s *api.StandingSession) tmux.Pane {
	GinkgoHelper()
	snap, err := h.server.Snapshot(context.Background())
	Expect(err).NotTo(HaveOccurred())
	mine := snap.ByUID(string(s.UID))
	Expect(mine).To(HaveLen(1))
	Expect(mine[0].Panes).To(HaveLen(1))
	return mine[0].Panes[0]
}

// killClaude ends claude itself, the child of the pane's process, with SIGKILL.
func (h *host) killClaude(s *api.StandingSession) {
	GinkgoHelper()
	p := h.pane(s)
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.PID, p.PID))
	Expect(err).NotTo(HaveOccurred())
	var pid int
	_, err = fmt.Sscan(string(b), &pid)
	Expect(err).NotTo(HaveOccurred())
	Expect(syscall.Kill(pid, syscall.SIGKILL)).To(Succeed())
}

// transcript is what claude has on disk of a conversation.
func (h *host) transcript(conversation string) func() string {
	return func() string {
		files, _ := filepath.Glob(filepath.Join(h.dir, "config", "projects", "*", conversation+".jsonl"))
		var all strings.Builder
		for _, f := range files {
			b, _ := os.ReadFile(f)
			all.Write(b)
		}
		return all.String()
	}
}

// taken are the requests at the model in which a message was the newest text, alone.
func taken(m *api.SessionMessage) func() []server.Call {
	return func() (out []server.Call) {
		for _, e := range model.Calls(server.KindTurn) {
			if e.Took(m.Status.TextDigest) {
				out = append(out, e)
			}
		}
		return out
	}
}
