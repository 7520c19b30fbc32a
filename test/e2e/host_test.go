package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/tmux"
)

var hosts atomic.Int64

// host is one build host of a test: an agent of its own on a terminal server of its
// own, a namespace and a class for its sessions.
type host struct {
	name, ns, class string
	dir             string
	socket          string
	server          *tmux.Server
	agent           *process
	kubeconfig      string
}

// newHost starts an agent, and cleans up after the test.
func newHost(behaviour ...string) *host {
	GinkgoHelper()
	n := fmt.Sprintf("h%d-%d", GinkgoParallelProcess(), hosts.Add(1))
	h := &host{name: n, ns: "ns-" + n, class: "class-" + n, dir: filepath.Join(suiteDir, n)}
	h.socket = filepath.Join(h.dir, "tmux", "s")
	Expect(os.MkdirAll(filepath.Join(h.dir, "work"), 0o700)).To(Succeed())
	var err error
	h.server, err = tmux.New(tmux.Config{Socket: h.socket})
	Expect(err).NotTo(HaveOccurred())
	h.kubeconfig = kubeconfigFor("theloop-agent:"+n, "theloop:agents")
	Expect(k8s.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.ns}})).To(Succeed())
	// A turn is on disk at once, so that a killed harness can be resumed.
	h.createClass(h.class, strings.Join(append([]string{"flush-late=0"}, behaviour...), ","), nil)
	DeferCleanup(h.cleanUp)
	h.startAgent()
	return h
}

// createClass makes a class that runs the demo harness.
func (h *host) createClass(name, behaviour string, change func(*api.SessionClass)) {
	GinkgoHelper()
	c := &api.SessionClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: api.SessionClassSpec{
		Harness: api.HarnessSpec{Name: "claude", Binary: filepath.Join(binDir, "fakeharness"), Env: []api.EnvVar{
			{Name: "FAKEHARNESS_HOME", Value: filepath.Join(h.dir, "harness")},
			{Name: "FAKEHARNESS_LOG", Value: h.log()},
			{Name: "FAKEHARNESS_BEHAVIOUR", Value: behaviour},
		}},
		Workspace: api.WorkspacePolicy{Root: filepath.Join(h.dir, "work")},
		// The operator's own configuration is not a test's to write.
		Trust: api.TrustPolicy{Enabled: new(false)},
	}}
	if change != nil {
		change(c)
	}
	Expect(k8s.Create(context.Background(), c)).To(Succeed())
}

func (h *host) log() string { return filepath.Join(h.dir, "harness.log") }

func (h *host) startAgent() {
	GinkgoHelper()
	h.agent = startProcess(filepath.Join(binDir, "agent"), []string{"KUBECONFIG=" + h.kubeconfig},
		"--host-name", h.name, "--state-dir", filepath.Join(h.dir, "agent"), "--tmux-socket", h.socket)
}

// cleanUp ends the agent, then every session that it started, then the server.
func (h *host) cleanUp() {
	if h.agent != nil {
		h.agent.kill()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
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

// standing makes a StandingSession of this host.
func (h *host) standing(name string, change func(*api.StandingSession)) *api.StandingSession {
	GinkgoHelper()
	s := &api.StandingSession{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: name},
		Spec:       api.StandingSessionSpec{HostPlacement: api.HostPlacement{ClassName: h.class, HostName: h.name}},
	}
	if change != nil {
		change(s)
	}
	Expect(k8s.Create(context.Background(), s)).To(Succeed())
	return s
}

// workItem makes a WorkItemSession of this host for octo/repo#number.
func (h *host) workItem(number int64, change func(*api.WorkItemSession)) *api.WorkItemSession {
	GinkgoHelper()
	s := &api.WorkItemSession{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: fmt.Sprintf("github-octo-repo-%d", number)},
		Spec: api.WorkItemSessionSpec{
			HostPlacement: api.HostPlacement{ClassName: h.class, HostName: h.name},
			WorkItem:      api.WorkItem{Provider: "github", Owner: "octo", Repo: "repo", Number: number},
		},
	}
	if change != nil {
		change(s)
	}
	Expect(k8s.Create(context.Background(), s)).To(Succeed())
	return s
}

// say creates a message for a session.
func (h *host) say(obj api.HostedSession, text string) *api.SessionMessage {
	GinkgoHelper()
	m := &api.SessionMessage{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, GenerateName: "m-"},
		Spec:       api.SessionMessageSpec{SessionRef: api.SessionReference{Kind: obj.SessionKind(), Name: obj.GetName()}, Text: text},
	}
	Expect(k8s.Create(context.Background(), m)).To(Succeed())
	return m
}

type sessionObject interface {
	client.Object
	api.HostedSession
}

// get reads the object again.
func get[T client.Object](obj T) T {
	GinkgoHelper()
	Expect(k8s.Get(context.Background(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	return obj
}

// condition reads one condition of a session as "Status/Reason".
func condition(obj sessionObject, kind string) func() string {
	return func() string {
		if err := k8s.Get(context.Background(), client.ObjectKeyFromObject(obj), obj); err != nil {
			return err.Error()
		}
		c := meta.FindStatusCondition(obj.HostedStatus().Conditions, kind)
		if c == nil {
			return "absent"
		}
		if c.ObservedGeneration != obj.GetGeneration() {
			return "stale"
		}
		return string(c.Status) + "/" + c.Reason
	}
}

// message reads the message of one condition.
func message(obj sessionObject, kind string) string {
	c := meta.FindStatusCondition(get(obj).HostedStatus().Conditions, kind)
	if c == nil {
		return ""
	}
	return c.Message
}

// ready waits until the session is ready.
func ready(obj sessionObject) {
	GinkgoHelper()
	Eventually(condition(obj, api.ConditionReady)).Should(Equal("True/Running"))
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

// sessions lists the terminal sessions of this host.
func (h *host) sessions() []tmux.Session {
	GinkgoHelper()
	snap, err := h.server.Snapshot(context.Background())
	Expect(err).NotTo(HaveOccurred())
	return snap.Sessions
}

// pane returns the one pane of the one terminal session of an object.
func (h *host) pane(obj sessionObject) tmux.Pane {
	GinkgoHelper()
	snap, err := h.server.Snapshot(context.Background())
	Expect(err).NotTo(HaveOccurred())
	mine := snap.ByUID(string(obj.GetUID()))
	Expect(mine).To(HaveLen(1))
	Expect(mine[0].Panes).To(HaveLen(1))
	return mine[0].Panes[0]
}

// harnessPID is the process below the pane's own: the harness itself.
func (h *host) harnessPID(obj sessionObject) int {
	GinkgoHelper()
	pid := 0
	Eventually(func(g Gomega) {
		p := h.pane(obj)
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.PID, p.PID))
		g.Expect(err).NotTo(HaveOccurred())
		_, err = fmt.Sscan(string(b), &pid)
		g.Expect(err).NotTo(HaveOccurred())
	}).Should(Succeed())
	return pid
}

// killHarness ends the harness itself with SIGKILL.
func (h *host) killHarness(obj sessionObject) {
	GinkgoHelper()
	Expect(syscall.Kill(h.harnessPID(obj), syscall.SIGKILL)).To(Succeed())
}

// logged is one line of the demo harness's log.
type logged struct {
	Event  string   `json:"event"`
	PID    int      `json:"pid"`
	ID     string   `json:"id"`
	Text   string   `json:"text"`
	Source string   `json:"source"`
	Argv   []string `json:"argv"`
	UID    string   `json:"uid"`
}

// events reads the demo harness's log.
func (h *host) events(kind string) []logged {
	GinkgoHelper()
	b, err := os.ReadFile(h.log())
	if os.IsNotExist(err) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	var out []logged
	sc := bufio.NewScanner(bytes.NewReader(b))
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		var l logged
		if json.Unmarshal(sc.Bytes(), &l) == nil && l.Event == kind {
			out = append(out, l)
		}
	}
	return out
}

// submits are the texts that harness processes took, by the process.
func (h *host) submits(containing string) []logged {
	var out []logged
	for _, l := range h.events("submit") {
		if strings.Contains(l.Text, containing) {
			out = append(out, l)
		}
	}
	return out
}
