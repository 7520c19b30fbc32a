package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/testenv"
)

// logged are the lines of a program's log that tell of an event about a session.
func logged(p *testenv.Process, s testenv.Session, name string) []map[string]any {
	GinkgoHelper()
	var out []map[string]any
	for line := range bytes.Lines(p.Err.Contents()) {
		var fields map[string]any
		if json.Unmarshal(line, &fields) != nil || fields["event"] == nil {
			continue
		}
		about := strings.ToLower(s.SessionKind()) + "/" + s.GetNamespace() + "/" + s.GetName()
		if fields["session"] == about && (name == "" || fields["event"] == name) {
			out = append(out, fields)
		}
	}
	return out
}

// told waits until the agent has told of an event about a session as often as said, and
// returns its lines.
func told(h *testenv.Host, s testenv.Session, name string, times int) []map[string]any {
	GinkgoHelper()
	Eventually(func() []map[string]any { return logged(h.Agent, s, name) }).Should(HaveLen(times), name)
	return logged(h.Agent, s, name)
}

// telling matches a line with these names and values in turn.
func telling(fields ...any) types.GomegaMatcher {
	var all []types.GomegaMatcher
	for i := 0; i < len(fields); i += 2 {
		all = append(all, HaveKeyWithValue(fields[i], fields[i+1]))
	}
	return And(all...)
}

// reasons are what kubectl shows of the events of a session.
func reasons(s testenv.Session) string {
	GinkgoHelper()
	return env.Kubectl("get", "events.events.k8s.io", "-n", s.GetNamespace(), "-o",
		fmt.Sprintf("jsonpath={range .items[?(@.regarding.uid==%q)]}{.type} {.reason} {.action} {.regarding.kind} {.related.kind}{'\\n'}{end}", s.GetUID()))
}

// measured starts the agent again with metrics, and returns how to read them.
func measured(h *testenv.Host) (read func() string) {
	GinkgoHelper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	address := l.Addr().String()
	Expect(l.Close()).To(Succeed())
	h.Agent.Kill()
	h.StartAgent("--metrics-address", address)
	return func() string {
		r, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			return err.Error()
		}
		defer r.Body.Close()
		b, _ := io.ReadAll(r.Body)
		return string(b)
	}
}

func counted(name, kind string, n int) string {
	return fmt.Sprintf("theloop_events_total{event=%q,kind=%q} %d\n", name, kind, n)
}

var _ = Describe("the events of a session (events)", func() {
	It("C010 C070 C071: tell of a work item's first start, its messages and its restart, in log, cluster and counter", func() {
		h := env.NewDemoHost()
		metrics := measured(h)
		s := h.WorkItem(41, func(s *api.WorkItemSession) { s.Spec.Prompt = "Prompt that no log has." })
		h.Ready(s)
		st := get(s).Status
		Expect(told(h, s, "session.spawned", 1)[0]).To(And(telling("harness", "claude", "conversation_id", st.ConversationID,
			"tmux_target", st.TmuxTarget, "cwd", st.WorkingDirectory, "resumed", false), Not(HaveKey("model")), Not(HaveKey("warning"))))
		Expect(told(h, s, "dispatch.succeeded", 1)[0]).To(telling("source", "Boot", "via", "tmux", "evidence", "harness"))

		m := h.Say(s, "Text that no log has.", func(m *api.SessionMessageSpec) { m.Source.Actor = "octo" })
		h.AwaitOutcome(m, testenv.Submitted)
		Expect(told(h, s, "dispatch.queued", 1)[0]).To(telling("message", m.Name, "actor", "octo", "spawn", false))
		Expect(told(h, s, "dispatch.succeeded", 2)[1]).To(And(telling("message", m.Name, "actor", "octo"), HaveKey("queued_seconds"), HaveKey("taken_seconds")))

		Eventually(h.Events).WithArguments("reply").Should(HaveLen(2))
		h.KillHarness(s)
		h.Await(s, api.ConditionReady, "False/Exited")
		next := h.Say(s, "second")
		h.AwaitOutcome(next, testenv.Submitted)
		Expect(told(h, s, "session.respawned", 1)[0]).To(telling("resumed", true, "conversation_id", st.ConversationID))
		Expect(told(h, s, "dispatch.queued", 2)[1]).To(telling("spawn", true))

		Eventually(metrics).Should(And(ContainSubstring(counted("session.spawned", "WorkItemSession", 1)),
			ContainSubstring(counted("session.respawned", "WorkItemSession", 1)), ContainSubstring(counted("dispatch.succeeded", "WorkItemSession", 3))))
		Eventually(reasons).WithArguments(s).Should(And(
			ContainSubstring("Normal SessionRegistered Bind WorkItemSession"), ContainSubstring("Normal SessionSpawned Start WorkItemSession"),
			ContainSubstring("Normal SessionRespawned Start WorkItemSession")))
		Expect(reasons(s)).NotTo(ContainSubstring("Dispatch"), "the message's own status says it")
		Expect(logged(env.Controller, s, "session.registered")).To(ConsistOf(telling("host", h.Name)))
		By("with nothing of what was said")
		all := string(h.Agent.Err.Contents()) + string(env.Controller.Err.Contents()) + env.Kubectl("get", "events", "-n", h.Namespace, "-o", "yaml")
		Expect(all).NotTo(ContainSubstring("that no log has"))
	})

	It("C166 C172 C180: tell of a standing session by names of its own, and of what is said to it without the text", func() {
		h := env.NewDemoHost()
		s := h.Standing("teller", func(s *api.StandingSession) { s.Spec.Prompt = "Brief that no log has." })
		h.Ready(s)
		told(h, s, "standing.started", 1)
		m := h.Say(s, "Text that no log has.", func(m *api.SessionMessageSpec) { m.Source.Actor = "slack:U123" })
		h.AwaitOutcome(m, testenv.Submitted)
		Expect(told(h, s, "standing.said", 1)[0]).To(telling("actor", "slack:U123", "message", m.Name, "tmux_target", "loop-standing-teller"))
		Eventually(h.Events).WithArguments("reply").Should(HaveLen(2))

		h.Update(s, func() { s.Spec.State = api.SessionStateStopped })
		h.Await(s, api.ConditionReady, "True/Stopped")
		Expect(told(h, s, "session.harness_terminated", 1)[0]).To(telling("ok", true, "killed", false))
		Expect(told(h, s, "standing.stopped", 1)[0]).To(telling("tmux_target", "loop-standing-teller"))
		told(h, s, "session.retained", 1)
		refused := h.Say(s, "anybody?")
		h.AwaitOutcome(refused, "Refused/SessionNotRunning")
		Expect(told(h, s, "dispatch.dropped", 1)[0]).To(telling("reason", "SessionNotRunning", "warning", true))

		h.Update(s, func() { s.Spec.State = api.SessionStateRunning })
		h.Await(s, api.ConditionResumed, "True/ConversationContinued")
		Expect(told(h, s, "standing.resumed", 1)[0]).To(telling("conversation_id", get(s).Status.ConversationID))
		h.Delete(s)
		h.AwaitGone(s)
		told(h, s, "standing.deleted", 1)
		told(h, s, "session.retained", 2)
		Expect(logged(env.Controller, s, "standing.created")).To(ConsistOf(telling("host", h.Name, "cwd", h.Work, "auto_start", true)))
		Expect(logged(h.Agent, s, "session.spawned")).To(BeEmpty())
		Eventually(reasons).WithArguments(s).Should(And(ContainSubstring("StandingCreated"), ContainSubstring("StandingStarted"),
			ContainSubstring("StandingStopped"), ContainSubstring("SessionRetained"),
			ContainSubstring("Warning DispatchDropped"), ContainSubstring("StandingResumed"), ContainSubstring("StandingDeleted")))
		Expect(string(h.Agent.Err.Contents())).NotTo(ContainSubstring("that no log has"))
	})

	It("C072 C167: tell of a resume that fails, and of no resume", func() {
		h := env.NewDemoHost("lose-resume")
		s := h.Standing("lost-events")
		h.Ready(s)
		Eventually(h.Events).WithArguments("reply").Should(HaveLen(1))
		id := get(s).Status.ConversationID
		h.KillHarness(s)
		h.Await(s, api.ConditionResumed, "False/ResumeFailed")
		h.Ready(s)
		Expect(told(h, s, "standing.resume_failed", 1)[0]).To(telling("conversation_id", id, "warning", true))
		told(h, s, "standing.started", 2)
		Expect(logged(h.Agent, s, "standing.resumed")).To(BeEmpty())
		Eventually(reasons).WithArguments(s).Should(ContainSubstring("Warning StandingResumeFailed Resume"))
	})

	It("C075: tell of no failed resume where resuming is switched off", func() {
		h := env.NewDemoHost()
		h.UpdateClass(h.Class, func(c *api.SessionClass) { c.Spec.Tmux.ResumeOnRespawn = new(false) })
		s := h.Standing("afresh")
		h.Ready(s)
		Eventually(h.Events).WithArguments("reply").Should(HaveLen(1))
		h.KillHarness(s)
		told(h, s, "standing.started", 2)
		h.Ready(s)
		Expect(logged(h.Agent, s, "standing.resume_failed")).To(BeEmpty())
	})

	It("C099 C104: tell of checkouts, a pull request's own start, and a cleanup", func() {
		f := newForge(nil)
		s := f.WorkItem(15)
		f.Ready(s)
		path := get(s).Status.Checkout.Path
		Expect(told(f.Host, s, "workspace.prepared", 1)[0]).To(telling("checkout", path, "strategy", "Worktree", "reused", false))
		pr := f.pullRequest(16)
		f.Ready(pr)
		told(f.Host, pr, "session.pr_spawned", 1)
		Expect(logged(f.Agent, pr, "session.spawned")).To(BeEmpty())
		cleanUp(s)
		f.Await(s, api.ConditionReady, "True/CleanedUp")
		f.Await(pr, api.ConditionReady, "True/CleanedUp")
		Expect(told(f.Host, s, "session.cleaned", 1)[0]).To(telling("removed", ConsistOf("tmux", "workspace", "session")))
		told(f.Host, pr, "session.cleaned", 1)
		Expect(told(f.Host, s, "workspace.cleaned", 1)[0]).To(telling("checkout", path))
		Expect(logged(env.Controller, pr, "session.ended_with_parent")).To(ConsistOf(telling("parent", s.Name, "effect", "cleaned")))
		Eventually(reasons).WithArguments(s).Should(And(ContainSubstring("SessionCleaned"), ContainSubstring("WorkspacePrepared"), ContainSubstring("WorkspaceCleaned")))
		f.Delete(s)
		f.AwaitGone(s)
		told(f.Host, s, "session.reset", 1)
	})

	It("tell of gates and pauses when they begin and end, and of neither again", func() {
		h := env.NewDemoHost()
		s := h.WorkItem(42, func(s *api.WorkItemSession) { s.Spec.StartGates = []api.StartGate{{Name: "phase-selection"}} })
		h.Await(s, api.ConditionReady, "False/Gated")
		Expect(told(h, s, "session.spawn_deferred", 1)[0]).To(telling("gates", ConsistOf("phase-selection")))
		m := h.Say(s, "waits")
		told(h, s, "dispatch.queued", 1)
		h.Update(s, func() { s.Annotations = map[string]string{api.PausedAnnotation: ""} })
		Expect(told(h, s, "session.paused", 1)[0]).To(telling("by", "annotation"))
		h.RestartAgent()
		Consistently(logged, 2*time.Second, 100*time.Millisecond).WithArguments(h.Agent, s, "").Should(BeEmpty(), "nothing new happened")
		h.Update(s, func() { delete(s.Annotations, api.PausedAnnotation); s.Spec.StartGates = nil })
		h.AwaitOutcome(m, testenv.Submitted)
		told(h, s, "session.resumed", 1)
		h.Update(s, func() { s.Spec.DeliveryPolicy = api.DeliveryPolicyDrop })
		Expect(told(h, s, "session.paused", 1)[0]).To(telling("by", "deliveryPolicy"))
		dropped := h.Say(s, "dropped")
		h.AwaitOutcome(dropped, "Dropped/Dropped")
		Expect(told(h, s, "dispatch.dropped", 1)[0]).To(telling("reason", "Dropped", "message", dropped.Name))
		h.Update(s, func() { s.Spec.DeliveryPolicy = api.DeliveryPolicyDeliver })
		told(h, s, "session.resumed", 2)
	})

	It("C013 C168: tell once what is in the way of a start, however long it is", func() {
		h := env.NewDemoHost()
		Eventually(func() error { _, err := testenv.Tmux(h.Socket, "list-sessions"); return err }).Should(Succeed())
		h.Tmux("new-session", "-d", "-s", "loop-standing-blocked", "sleep", "1000")
		s := h.Standing("blocked")
		h.Await(s, api.ConditionReady, "False/SessionOccupied")
		Expect(told(h, s, "standing.spawn_failed", 1)[0]).To(telling("reason", "SessionOccupied", "will_retry", true, "error", ContainSubstring("kill-session -t")))
		missing := h.Standing("missing", func(s *api.StandingSession) { s.Spec.Cwd = "/nowhere/at/all" })
		Expect(told(h, missing, "standing.spawn_failed", 1)[0]).To(telling("reason", api.ReasonDirectoryMissing))
		h.RestartAgent()
		h.Await(missing, api.ConditionReady, "False/DirectoryMissing")
		Consistently(func() int { return len(logged(h.Agent, s, "")) + len(logged(h.Agent, missing, "")) }, 7*time.Second, 200*time.Millisecond).Should(BeZero())
	})

	It("tell once of a dialog that waits for a person", func() {
		h := env.NewDemoHost()
		s := h.WorkItem(43, func(s *api.WorkItemSession) { s.Spec.Prompt = "fake: permission-dialog\nDo it." })
		h.Await(s, api.ConditionAcceptingInput, "False/AwaitingInput")
		Expect(told(h, s, "session.awaiting_input", 1)[0]).To(telling("waiting_for", ContainSubstring("Bash")))
		h.RestartAgent()
		Consistently(logged, 2*time.Second, 100*time.Millisecond).WithArguments(h.Agent, s, "").Should(BeEmpty())
	})

	It("C037: tell of a start with changed arguments, without them", func() {
		h := env.NewDemoHost()
		s := h.WorkItem(44)
		h.Ready(s)
		h.AwaitOutcome(h.Say(s, "one"), testenv.Submitted)
		Eventually(h.Events).WithArguments("reply").Should(HaveLen(1))
		h.UpdateClass(h.Class, func(c *api.SessionClass) { c.Spec.Harness.Args = []string{"--append-system-prompt", "secret words"} })
		h.AwaitOutcome(h.Say(s, "two"), testenv.Submitted)
		Expect(told(h, s, "session.choice_changed", 1)[0]).To(telling("old", ContainSubstring("claude"), "new", ContainSubstring("claude")))
		told(h, s, "session.harness_terminated", 1)
		told(h, s, "session.respawned", 1)
		Expect(string(h.Agent.Err.Contents())).NotTo(ContainSubstring("secret words"))
	})

	It("C076 C093: tell that a start was not needed where the harness still ran", func() {
		h := env.NewDemoHost()
		h.UpdateClass(h.Class, func(c *api.SessionClass) { c.Spec.Tmux.KillHarnessOnClose = new(false) })
		s := h.WorkItem(45)
		h.Ready(s)
		pid := h.HarnessPID(s)
		h.Update(s, func() { s.Spec.State = api.SessionStateStopped })
		h.Await(s, api.ConditionReady, "True/Stopped")
		told(h, s, "session.closed", 1)
		told(h, s, "session.retained", 1)
		Expect(logged(h.Agent, s, "session.harness_terminated")).To(BeEmpty())
		h.Update(s, func() { s.Spec.State = api.SessionStateRunning })
		h.Ready(s)
		told(h, s, "session.respawn_averted", 1)
		told(h, s, "session.spawned", 1)
		Expect(h.HarnessPID(s)).To(Equal(pid))
	})

	It("C173: tell of a stop that tmux does not answer, and call it none", func() {
		h := env.NewDemoHost()
		s := h.Standing("unanswered")
		h.Ready(s)
		thaw := h.FreezeServer()
		h.Update(s, func() { s.Spec.State = api.SessionStateStopped })
		h.Await(s, api.ConditionReady, "Unknown/TmuxUnknown")
		Expect(told(h, s, "standing.stop_failed", 1)[0]).To(telling("error", ContainSubstring("tmux does not answer"), "warning", true))
		Consistently(logged, 2*time.Second, 100*time.Millisecond).WithArguments(h.Agent, s, "standing.stop_failed").Should(HaveLen(1))
		Expect(logged(h.Agent, s, "standing.stopped")).To(BeEmpty())
		thaw()
		h.Await(s, api.ConditionReady, "True/Stopped")
		told(h, s, "standing.stopped", 1)
	})

	It("are told once, and by the agent that comes after a crash at most once more", func() {
		h := env.NewDemoHost()
		s := h.WorkItem(46)
		h.Ready(s)
		told(h, s, "session.spawned", 1)
		for range 3 {
			h.RestartAgent()
			h.AwaitOutcome(h.Say(s, "again"), testenv.Submitted)
			told(h, s, "dispatch.succeeded", 1)
			Expect(logged(h.Agent, s, "")).To(ConsistOf(telling("event", "dispatch.queued"), telling("event", "dispatch.succeeded")))
		}
		By("ending the harness while the agent is away")
		h.Agent.Kill()
		Expect(syscall.Kill(h.HarnessPID(s), syscall.SIGKILL)).To(Succeed())
		h.StartAgent()
		h.AwaitOutcome(h.Say(s, "up again"), testenv.Submitted)
		told(h, s, "session.respawned", 1)
		Eventually(h.Reported).WithArguments(s, "SessionSpawned").Should(Equal(1))
	})
})
