package core

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

const generation = 3

// session is one of which these conditions are known, about its newest spec.
func session(conditions ...metav1.Condition) *api.StandingSession {
	s := &api.StandingSession{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", Generation: generation}}
	s.Spec.HostName, s.Spec.State = "h1", api.SessionStateRunning
	for _, c := range conditions {
		c.ObservedGeneration = generation
		s.Status.Conditions = append(s.Status.Conditions, c)
	}
	return s
}

func is(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "because"}
}

func notReady(reason string) *api.StandingSession {
	return session(is(api.ConditionReady, metav1.ConditionFalse, reason))
}

var _ = DescribeTable("whether a session runs: silence is not absence",
	func(s *api.StandingSession, want metav1.ConditionStatus) { Expect(Running(s)).To(Equal(want)) },
	Entry("nothing is known yet", session(), metav1.ConditionUnknown),
	Entry("no host", func() *api.StandingSession { s := session(); s.Spec.HostName = ""; return s }(), metav1.ConditionFalse),
	Entry("it runs", session(is(api.ConditionSessionRunning, metav1.ConditionTrue, api.ReasonRunning)), metav1.ConditionTrue),
	Entry("it ended", session(is(api.ConditionSessionRunning, metav1.ConditionFalse, api.ReasonExited)), metav1.ConditionFalse),
	Entry("tmux is silent", session(is(api.ConditionSessionRunning, metav1.ConditionUnknown, api.ReasonTmuxUnknown)), metav1.ConditionUnknown),
	Entry("the host is silent", session(is(api.ConditionHostAvailable, metav1.ConditionUnknown, api.ReasonHeartbeatStopped), is(api.ConditionSessionRunning, metav1.ConditionTrue, api.ReasonRunning)), metav1.ConditionUnknown),
	Entry("the host is silent, and it had ended", session(is(api.ConditionHostAvailable, metav1.ConditionUnknown, api.ReasonHeartbeatStopped), is(api.ConditionSessionRunning, metav1.ConditionFalse, api.ReasonExited)), metav1.ConditionUnknown),
)

var _ = DescribeTable("how far a start has come",
	func(s *api.StandingSession, token string, over bool, want Outcome) {
		p := starting(s, token)
		Expect(p.done).To(Equal(over), p.detail)
		Expect(p.outcome).To(Equal(want))
	},
	Entry("not looked at", session(), "", false, OutcomeUnconfirmed),
	Entry("an older spec was", func() *api.StandingSession {
		s := session(is(api.ConditionReady, metav1.ConditionTrue, api.ReasonRunning))
		s.Generation++
		return s
	}(), "", false, OutcomeUnconfirmed),
	Entry("it runs", session(is(api.ConditionReady, metav1.ConditionTrue, api.ReasonRunning)), "", true, OutcomeStarted),
	Entry("it runs, and the restart was not acted upon", session(is(api.ConditionReady, metav1.ConditionTrue, api.ReasonRunning)), "t", false, OutcomeUnconfirmed),
	Entry("it ended before the restart was acted upon", notReady(api.ReasonExited), "t", false, OutcomeUnconfirmed),
	Entry("it runs by the restart", func() *api.StandingSession {
		s := session(is(api.ConditionReady, metav1.ConditionTrue, api.ReasonRunning))
		s.Status.LastHandledRestart, s.Status.Launch = "t", &api.Launch{Mode: api.LaunchResume}
		return s
	}(), "t", true, OutcomeResumed),
	Entry("starting", notReady(api.ReasonStarting), "", false, OutcomeUnconfirmed),
	Entry("making the checkout", notReady(api.ReasonPreparingWorkspace), "", false, OutcomeUnconfirmed),
	Entry("not at its prompt, which a person must see", notReady(api.ReasonNotReady), "", true, OutcomeStarted),
	Entry("gated", notReady(api.ReasonGated), "", true, OutcomeWaiting),
	Entry("hands off", notReady(api.ReasonPaused), "", true, OutcomeWaiting),
	Entry("no class", notReady(api.ReasonClassNotFound), "", true, OutcomeFailed),
	Entry("no host", notReady(api.ReasonNoHost), "", true, OutcomeFailed),
	Entry("H05: another goes ahead after an upgrade", notReady(api.ReasonWaitingForCanary), "", true, OutcomeWaiting),
	Entry("H05: another goes ahead after an upgrade of a restart", notReady(api.ReasonWaitingForCanary), "t", true, OutcomeWaiting),
	Entry("H09: the shared configuration is broken", notReady(api.ReasonConfigurationBroken), "", true, OutcomeFailed),
	Entry("the conversation was written by another", notReady(api.ReasonConversationAltered), "", true, OutcomeFailed),
	Entry("occupied", notReady(api.ReasonOccupied), "", true, OutcomeFailed),
	Entry("ended at once", notReady(api.ReasonExited), "", true, OutcomeFailed),
	Entry("tmux is silent", notReady(api.ReasonTmuxUnknown), "", true, OutcomeFailed),
)

var _ = DescribeTable("how far an end has come",
	func(s *api.StandingSession, over bool, want Outcome) {
		p := ending(s, api.SessionStateStopped)
		Expect(p.done).To(Equal(over), p.detail)
		Expect(p.outcome).To(Equal(want))
	},
	Entry("not looked at", session(), false, OutcomeUnconfirmed),
	Entry("stopped", session(is(api.ConditionReady, metav1.ConditionTrue, api.ReasonStopped)), true, OutcomeStopped),
	Entry("stopped, by an older spec", func() *api.StandingSession {
		s := session(is(api.ConditionReady, metav1.ConditionTrue, api.ReasonStopped))
		s.Generation++
		return s
	}(), false, OutcomeUnconfirmed),
	Entry("ending", notReady(api.ReasonStopping), false, OutcomeUnconfirmed),
	Entry("C173: tmux is silent", notReady(api.ReasonTmuxUnknown), false, OutcomeUnconfirmed),
	Entry("the host is silent", notReady(api.ReasonHeartbeatStopped), true, OutcomeUnconfirmed),
	Entry("hands off", notReady(api.ReasonPaused), true, OutcomeUnconfirmed),
	Entry("never bound", func() *api.StandingSession { s := session(); s.Spec.HostName = ""; return s }(), true, OutcomeStopped),
)

var _ = DescribeTable("what a start writes",
	func(s *api.StandingSession, want startPlan) { Expect(planStart(s)).To(Equal(want)) },
	Entry("stopped: its spec", func() *api.StandingSession {
		s := notReady(api.ReasonExited)
		s.Spec.State = api.SessionStateStopped
		return s
	}(), startPlan{}),
	Entry("running: nothing", session(is(api.ConditionSessionRunning, metav1.ConditionTrue, api.ReasonRunning)), startPlan{running: true}),
	Entry("ended: a token", session(is(api.ConditionSessionRunning, metav1.ConditionFalse, api.ReasonExited), is(api.ConditionReady, metav1.ConditionFalse, api.ReasonExited)), startPlan{restart: true}),
	Entry("not looked at: nothing", session(), startPlan{}),
	Entry("gated: nothing", session(is(api.ConditionSessionRunning, metav1.ConditionFalse, api.ReasonGated), is(api.ConditionReady, metav1.ConditionFalse, api.ReasonGated)), startPlan{}),
	Entry("paused: it takes messages again", func() *api.StandingSession {
		s := session(is(api.ConditionSessionRunning, metav1.ConditionTrue, api.ReasonRunning))
		s.Spec.DeliveryPolicy = api.DeliveryPolicyDrop
		return s
	}(), startPlan{running: true, unpause: true}),
)

var _ = DescribeTable("the words of a command line for a person",
	func(line string, want ...string) { Expect(lineWords(line)).To(Equal(want)) },
	Entry(nil, "tmux -L the-loop attach -t '=loop-a-1'", "tmux", "-L", "the-loop", "attach", "-t", "=loop-a-1"),
	Entry(nil, `'/opt/my tmux' -S '/tmp/it'\''s/s' attach -t '=a'`, "/opt/my tmux", "-S", "/tmp/it's/s", "attach", "-t", "=a"),
	Entry(nil, `a '' b`, "a", "", "b"),
)

var _ = Describe("the ssh command", func() {
	It("is one word for the other host's shell, and read-only where the terminal is", func() {
		Expect(sshCommand("far", "tmux -L the-loop attach -t '=loop-a-1'", false)).To(Equal(`ssh -t far "tmux -L the-loop attach -t '=loop-a-1'"`))
		Expect(sshCommand("far", "tmux -L the-loop attach -t '=loop-a-1'", true)).To(Equal(`ssh -t far "tmux -L the-loop attach -r -t '=loop-a-1'"`))
		Expect(sshCommand("far", "tmux -L the-loop attach -r -t '=loop-a-1'", true)).To(Equal(`ssh -t far "tmux -L the-loop attach -r -t '=loop-a-1'"`))
	})
})

var _ = Describe("the gates of a session", func() {
	gates := func(s *api.StandingSession) Explanation {
		class := &api.SessionClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		class.Spec.Harness.Name = "claude"
		return summarise("standing s", sessionGates(facts{session: s, class: class}), "fine", "not")
	}
	well := func() []metav1.Condition {
		return []metav1.Condition{
			is(api.ConditionScheduled, metav1.ConditionTrue, api.ReasonBound), is(api.ConditionHostAvailable, metav1.ConditionTrue, api.ReasonLeaseRenewed),
			is(api.ConditionWorkspaceReady, metav1.ConditionTrue, api.ReasonDirectoryPresent), is(api.ConditionSessionRunning, metav1.ConditionTrue, api.ReasonRunning),
			is(api.ConditionAcceptingInput, metav1.ConditionTrue, api.ReasonIdle),
		}
	}

	It("are all open for one that runs and takes input", func() {
		e := gates(session(well()...))
		Expect(e.Blocked()).To(BeNil())
		Expect(e.Summary).To(Equal("fine"))
	})

	DescribeTable("name the first that is closed, and the one command that opens it",
		func(change func(*api.StandingSession), gate, fix string) {
			s := session(well()...)
			change(s)
			e := gates(s)
			Expect(e.Blocked()).NotTo(BeNil())
			Expect(*e.Blocked()).To(And(HaveField("Name", gate), HaveField("Fix", fix)))
			fixes := 0
			for _, g := range e.Gates {
				if g.Fix != "" {
					fixes++
				}
			}
			Expect(fixes).To(BeNumerically("<=", 1))
		},
		Entry("hands off", func(s *api.StandingSession) { s.Annotations = map[string]string{api.PausedAnnotation: "x"} }, "hands off", "kubectl annotate standing s -n ns theloop.dev/paused-"),
		Entry("stopped, and more behind it", func(s *api.StandingSession) {
			s.Spec.State, s.Spec.DeliveryPolicy = api.SessionStateStopped, api.DeliveryPolicyHold
			s.Status.Conditions[3].Status, s.Status.Conditions[3].Reason = metav1.ConditionFalse, api.ReasonStopped
		}, "wanted", "the-loop standing start s"),
		Entry("ended", func(s *api.StandingSession) {
			s.Status.Conditions[3].Status, s.Status.Conditions[3].Reason = metav1.ConditionFalse, api.ReasonExited
		}, "harness", "the-loop standing restart s"),
		Entry("H05: another goes ahead, which goes by itself", func(s *api.StandingSession) {
			s.Status.Conditions[3].Status, s.Status.Conditions[3].Reason = metav1.ConditionFalse, api.ReasonWaitingForCanary
		}, "harness", ""),
		Entry("H09: the shared configuration is broken", func(s *api.StandingSession) {
			s.Status.Conditions[3].Status, s.Status.Conditions[3].Reason = metav1.ConditionFalse, api.ReasonConfigurationBroken
		}, "harness", "kubectl describe standing s -n ns"),
		Entry("the conversation was written by another", func(s *api.StandingSession) {
			s.Status.Conditions[3].Status, s.Status.Conditions[3].Reason = metav1.ConditionFalse, api.ReasonConversationAltered
		}, "harness", "kubectl describe standing s -n ns"),
		Entry("at a dialog", func(s *api.StandingSession) {
			s.Status.Conditions[4].Status, s.Status.Conditions[4].Reason = metav1.ConditionFalse, api.ReasonAwaitingInput
		}, "input", "the-loop standing attach s"),
		Entry("held", func(s *api.StandingSession) { s.Spec.DeliveryPolicy = api.DeliveryPolicyHold }, "delivery", "the-loop standing resume s"),
		Entry("starting, which goes by itself", func(s *api.StandingSession) {
			s.Status.Conditions[4].Status, s.Status.Conditions[4].Reason = metav1.ConditionFalse, api.ReasonStarting
		}, "input", ""),
	)

	It("of a message are those of its session, then its queue and its own", func() {
		class := &api.SessionClass{}
		first, m := &api.SessionMessage{ObjectMeta: metav1.ObjectMeta{Name: "first"}}, &api.SessionMessage{ObjectMeta: metav1.ObjectMeta{Name: "m", CreationTimestamp: metav1.NewTime(time.Unix(100, 0))}}
		m.Status.Sequence, m.Status.Outcome = 2, api.OutcomeQueued
		m.Spec.ExpiresAfterSeconds = new(int32(60))
		f := facts{session: session(well()...), class: class}
		e := summarise("message m", messageGates(f, m, []*api.SessionMessage{first}, time.Unix(110, 0)), "", "")
		Expect(*e.Blocked()).To(And(HaveField("Name", "queue"), HaveField("Fix", "the-loop explain first")))
		Expect(e.Gates).To(ContainElement(And(HaveField("Name", "expiry"), HaveField("Observed", "it may be typed for 50s more, by spec.expiresAfterSeconds"))))
		m.Spec.ExpiresAfterSeconds, class.Spec.Messages.ExpiresAfterSeconds = nil, new(int32(5))
		e = summarise("message m", messageGates(f, m, nil, time.Unix(110, 0)), "", "")
		Expect(*e.Blocked()).To(And(HaveField("Name", "expiry"), HaveField("Observed", ContainSubstring("0s more, by messages.expiresAfterSeconds of the session's class"))))
		class.Spec.Messages.ExpiresAfterSeconds = nil
		m.Status.Outcome = api.OutcomeHeld
		e = summarise("message m", messageGates(f, m, nil, time.Unix(110, 0)), "", "")
		Expect(*e.Blocked()).To(And(HaveField("Name", "held"), HaveField("Fix", "the-loop standing attach s")))
	})
})
