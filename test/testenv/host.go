package testenv

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/cgroup"
	"github.com/theloop-dev/the-loop/internal/tmux"
	"github.com/theloop-dev/the-loop/test/fakeharness/faketest"
)

// Host is one build host of a test: an agent of its own on a terminal server of its
// own, a namespace and a class for its sessions.
type Host struct {
	*Env
	// Name is the host's name; Namespace and Class are of its sessions.
	Name, Namespace, Class string
	// Dir is the host's directory. Standing sessions work in Work below it.
	Dir, Work string
	// StateDir is the agent's, Socket the terminal server's, Kubeconfig the agent's
	// identity.
	StateDir, Socket, Kubeconfig string
	// Server is the terminal server.
	Server *tmux.Server
	// Agent is the running agent, AgentEnv what its environment has besides.
	Agent    *Process
	AgentEnv []string
	// Log is where demo harnesses of DemoClass write what they see.
	Log faketest.Log
	// Evidence are patterns of files below Dir that a failed test shows, beside the
	// agent's journals.
	Evidence []string
}

// NewHost makes a host whose class is what class returns, and starts its agent. The
// end of the test ends the agent and everything that it started.
func (e *Env) NewHost(class func(*Host) api.SessionClassSpec) *Host {
	GinkgoHelper()
	name := fmt.Sprintf("h%d-%d", GinkgoParallelProcess(), e.hosts.Add(1))
	h := &Host{Env: e, Name: name, Namespace: "ns-" + name, Class: "class-" + name, Dir: filepath.Join(e.SuiteDir, name)}
	h.Work, h.StateDir = filepath.Join(h.Dir, "work"), filepath.Join(h.Dir, "agent")
	h.Socket, h.Log = filepath.Join(h.Dir, "tmux", "s"), faketest.Log(filepath.Join(h.Dir, "harness.log"))
	Expect(os.MkdirAll(h.Work, 0o700)).To(Succeed())
	var err error
	h.Server, err = tmux.New(tmux.Config{Socket: h.Socket})
	Expect(err).NotTo(HaveOccurred())
	h.Kubeconfig = e.KubeconfigFor("theloop-agent:"+name, "theloop:agents")
	e.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.Namespace}})
	h.CreateClass(h.Class, class(h))
	DeferCleanup(h.cleanUp)
	h.StartAgent()
	return h
}

// NewDemoHost is NewHost with the demo harness, which behaves as said.
func (e *Env) NewDemoHost(behaviour ...string) *Host {
	GinkgoHelper()
	return e.NewHost(func(h *Host) api.SessionClassSpec {
		// A turn is on disk at once, so that a killed harness can be resumed.
		return h.DemoClass(append([]string{"flush-late=0"}, behaviour...)...)
	})
}

// DemoClass is a class that runs the demo harness.
func (h *Host) DemoClass(behaviour ...string) api.SessionClassSpec {
	return api.SessionClassSpec{
		Harness: api.HarnessSpec{Name: "claude", Binary: h.DemoHarness(), Env: []api.EnvVar{
			{Name: "FAKEHARNESS_HOME", Value: filepath.Join(h.Dir, "harness")},
			{Name: "FAKEHARNESS_LOG", Value: string(h.Log)},
			{Name: "FAKEHARNESS_BEHAVIOUR", Value: strings.Join(behaviour, ",")},
		}},
		// The operator's own configuration is not a test's to write.
		Trust: api.TrustPolicy{Enabled: new(false)},
		// What a test does not say is not said.
		Prompts: api.PromptTemplates{Spawn: api.PromptTemplate{From: api.PromptNone}},
	}
}

// DemoHarness is the path of the demo harness.
func (e *Env) DemoHarness() string { return filepath.Join(e.Bin, "fakeharness") }

// CreateClass creates a class.
func (h *Host) CreateClass(name string, spec api.SessionClassSpec) {
	GinkgoHelper()
	h.Create(&api.SessionClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec})
}

// StartAgent starts the agent, with more arguments when given.
func (h *Host) StartAgent(args ...string) {
	GinkgoHelper()
	h.Agent = h.AgentOn(h.StateDir, args...)
}

// AgentOn starts an agent of this host's name on another state directory. Who starts it
// ends it.
func (h *Host) AgentOn(stateDir string, args ...string) *Process {
	GinkgoHelper()
	return h.Program("agent", append([]string{"KUBECONFIG=" + h.Kubeconfig}, h.AgentEnv...),
		append([]string{"--host-name", h.Name, "--state-dir", stateDir, "--tmux-socket", h.Socket}, args...)...)
}

// RestartAgent ends the agent with SIGKILL and starts it again.
func (h *Host) RestartAgent() {
	GinkgoHelper()
	h.Agent.Kill()
	h.StartAgent()
}

// Standing makes a StandingSession of this host, in Work unless it is changed.
func (h *Host) Standing(name string, changes ...func(*api.StandingSession)) *api.StandingSession {
	GinkgoHelper()
	s := &api.StandingSession{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: name},
		Spec:       api.StandingSessionSpec{HostPlacement: h.placement(), Cwd: h.Work},
	}
	for _, change := range changes {
		change(s)
	}
	h.Create(s)
	return s
}

// WorkItem makes a WorkItemSession of this host for octo/repo#number.
func (h *Host) WorkItem(number int64, changes ...func(*api.WorkItemSession)) *api.WorkItemSession {
	GinkgoHelper()
	s := &api.WorkItemSession{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: fmt.Sprintf("github-octo-repo-%d", number)},
		Spec: api.WorkItemSessionSpec{
			HostPlacement: h.placement(),
			WorkItem:      api.WorkItem{Provider: "github", Owner: "octo", Repo: "repo", Number: number},
		},
	}
	for _, change := range changes {
		change(s)
	}
	h.Create(s)
	return s
}

func (h *Host) placement() api.HostPlacement {
	return api.HostPlacement{ClassName: h.Class, HostName: h.Name}
}

// Say creates a message for a session of this host.
func (h *Host) Say(obj api.HostedSession, text string, changes ...func(*api.SessionMessageSpec)) *api.SessionMessage {
	GinkgoHelper()
	m := &api.SessionMessage{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, GenerateName: "m-"},
		Spec:       api.SessionMessageSpec{SessionRef: api.SessionReference{Kind: obj.SessionKind(), Name: obj.GetName()}, Text: text},
	}
	for _, change := range changes {
		change(&m.Spec)
	}
	h.Create(m)
	return m
}

// Events are the events of this name that demo harnesses of this host have logged.
func (h *Host) Events(name string) []faketest.Event { return h.Log.Events(name) }

// Submits are the texts that demo harnesses of this host took, of those that contain
// this.
func (h *Host) Submits(containing string) []faketest.Event {
	return slices.DeleteFunc(h.Events("submit"), func(e faketest.Event) bool { return !strings.Contains(e.Text, containing) })
}

// Writes counts the writes of our programs about this host and its sessions since a
// moment, but for the Lease by which the host shows that it is alive. The hosts of other
// tests have been ended, which is told.
func (h *Host) Writes(since time.Time) int {
	GinkgoHelper()
	n := 0
	for _, r := range h.Requests() {
		if r.IsWrite() && r.Time.After(since) && strings.HasPrefix(r.User, "theloop-") && r.Resource != "leases" && (r.Namespace == h.Namespace || r.Name == h.Name) {
			n++
			GinkgoWriter.Printf("%s %s %s %s/%s\n", r.User, r.Verb, r.Resource, r.Namespace, r.Name)
		}
	}
	return n
}

// cleanUp tells what a failed test left, and ends the agent, the terminal server and
// what its sessions started.
func (h *Host) cleanUp() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if CurrentSpecReport().Failed() {
		h.report(ctx)
	}
	if h.Agent != nil {
		h.Agent.Kill()
	}
	snap, err := h.Server.Snapshot(ctx)
	Expect(err).NotTo(HaveOccurred())
	for _, s := range snap.Sessions {
		if s.UID != "" {
			continue
		}
		// What a test made in a person's place may ignore the end of its terminal.
		for _, p := range s.Panes {
			if !p.Dead {
				_ = syscall.Kill(p.PID, syscall.SIGKILL)
			}
		}
	}
	if !snap.Epoch.IsZero() {
		Expect(h.Server.Shutdown(ctx, snap.Epoch)).To(Succeed())
	}
	for _, s := range snap.Sessions {
		if s.UID != "" {
			_, err := tmux.EndProcesses(ctx, s.UID, 0)
			Expect(err).NotTo(HaveOccurred())
		}
	}
	dirs, err := filepath.Glob(filepath.Join(h.StateDir, "sessions", "*"))
	Expect(err).NotTo(HaveOccurred())
	for _, dir := range dirs {
		_, err := cgroup.End(ctx, dir, 0, tmux.IsServer)
		Expect(err).NotTo(HaveOccurred())
	}
}
