package hub

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/controllers/internal/kinds"
)

// generation is that of the sessions in these tables.
const generation = 3

// is makes one condition, about the newest generation.
func is(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: reason + " it is", ObservedGeneration: generation}
}

// stale makes a condition be about the generation before.
func stale(c metav1.Condition) metav1.Condition {
	c.ObservedGeneration = generation - 1
	return c
}

// wanted makes a session of either kind, with its conditions.
func wanted(state api.SessionState, conditions ...metav1.Condition) []kinds.Session {
	standing := &api.StandingSession{Spec: api.StandingSessionSpec{State: state}}
	work := &api.WorkItemSession{Spec: api.WorkItemSessionSpec{State: state}}
	for _, o := range []kinds.Session{standing, work} {
		o.SetGeneration(generation)
		o.HostedStatus().Conditions = conditions
	}
	return []kinds.Session{standing, work}
}

var (
	yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown

	bound     = is(api.ConditionScheduled, yes, api.ReasonBound)
	available = is(api.ConditionHostAvailable, yes, api.ReasonLeaseRenewed)
	present   = is(api.ConditionWorkspaceReady, yes, api.ReasonDirectoryPresent)
	running   = is(api.ConditionSessionRunning, yes, api.ReasonRunning)
	idle      = is(api.ConditionAcceptingInput, yes, api.ReasonIdle)
)

func notRunning(reason string) metav1.Condition { return is(api.ConditionSessionRunning, no, reason) }

var _ = Describe("Ready", func() {
	check := func(sessions []kinds.Session, status metav1.ConditionStatus, reason string) {
		GinkgoHelper()
		for _, o := range sessions {
			c := Ready(o)
			Expect(c.Status).To(Equal(status), "%s", o.SessionKind())
			Expect(c.Reason).To(Equal(reason), "%s", o.SessionKind())
			Expect(c.Message).NotTo(BeEmpty())
			Expect(Ready(o)).To(Equal(c), "it changes nothing")
		}
	}

	DescribeTable("wanted: Running", func(status metav1.ConditionStatus, reason string, conditions ...metav1.Condition) {
		check(wanted(api.SessionStateRunning, conditions...), status, reason)
		check(wanted("", conditions...), status, reason)
	},
		Entry("runs, at its prompt", yes, api.ReasonRunning, bound, available, present, running, idle),
		Entry("runs, in a turn", yes, api.ReasonRunning, bound, available, present, running, is(api.ConditionAcceptingInput, yes, api.ReasonBusy)),
		Entry("runs, with a dialog: it is as wanted, though it takes no input", yes, api.ReasonRunning,
			bound, available, present, running, is(api.ConditionAcceptingInput, no, api.ReasonAwaitingInput)),
		Entry("runs, and cannot tell more", yes, api.ReasonRunning, bound, available, present, running, is(api.ConditionAcceptingInput, yes, api.ReasonNoEvidence)),
		Entry("runs, and nothing is said of its input", yes, api.ReasonRunning, bound, available, running),
		Entry("runs, though its directory was removed since", yes, api.ReasonRunning,
			bound, available, is(api.ConditionWorkspaceReady, no, api.ReasonDirectoryMissing), running, idle),
		Entry("runs, and has not shown its prompt yet", no, api.ReasonStarting, bound, available, present, running, is(api.ConditionAcceptingInput, no, api.ReasonStarting)),
		Entry("runs, and did not show its prompt in time", no, api.ReasonNotReady, bound, available, present, running, is(api.ConditionAcceptingInput, no, api.ReasonNotReady)),
		Entry("runs, and a resume is not proved yet", no, api.ReasonStarting, bound, available, present, is(api.ConditionSessionRunning, yes, api.ReasonStarting), idle),
		Entry("runs, and has been asked to end", no, api.ReasonStopping, bound, available, present, is(api.ConditionSessionRunning, yes, api.ReasonStopping), idle),
		Entry("runs, and hands are off", no, api.ReasonPaused, bound, available, present, is(api.ConditionSessionRunning, yes, api.ReasonPaused), idle),
		Entry("is being started", no, api.ReasonStarting, bound, available, present, notRunning(api.ReasonStarting)),
		Entry("C030: is gated", no, api.ReasonGated, bound, available, notRunning(api.ReasonGated)),
		Entry("C013: its name is occupied", no, api.ReasonOccupied, bound, available, present, notRunning(api.ReasonOccupied)),
		Entry("T37: crash loop", no, api.ReasonCrashLoop, bound, available, present, notRunning(api.ReasonCrashLoop)),
		Entry("is still called stopped, and is wanted again", no, api.ReasonStopped, bound, available, notRunning(api.ReasonStopped)),
		Entry("T25: its directory is missing, which explains why it does not run", no, api.ReasonDirectoryMissing,
			bound, available, is(api.ConditionWorkspaceReady, no, api.ReasonDirectoryMissing), notRunning(api.ReasonExited)),
		Entry("its directory was not looked for", no, api.ReasonClassNotFound,
			bound, available, is(api.ConditionWorkspaceReady, unknown, api.ReasonNotStarted), notRunning(api.ReasonClassNotFound)),
		Entry("C171: tmux does not answer", unknown, api.ReasonTmuxUnknown, bound, available, present, is(api.ConditionSessionRunning, unknown, api.ReasonTmuxUnknown)),
	)

	DescribeTable("wanted: not to run", func(state api.SessionState, status metav1.ConditionStatus, reason string, conditions ...metav1.Condition) {
		check(wanted(state, conditions...), status, reason)
	},
		Entry("stopped", api.SessionStateStopped, yes, api.ReasonStopped, bound, available, notRunning(api.ReasonStopped)),
		Entry("stopped, with its harness left running as the class says", api.SessionStateStopped, yes, api.ReasonStopped,
			bound, available, is(api.ConditionSessionRunning, yes, api.ReasonStopped)),
		Entry("stopped, and its directory is gone", api.SessionStateStopped, yes, api.ReasonStopped,
			bound, available, is(api.ConditionWorkspaceReady, no, api.ReasonDirectoryMissing), notRunning(api.ReasonStopped)),
		Entry("being stopped", api.SessionStateStopped, no, api.ReasonStopping, bound, available, is(api.ConditionSessionRunning, yes, api.ReasonStopping)),
		Entry("to be stopped, and hands are off", api.SessionStateStopped, no, api.ReasonPaused, bound, available, is(api.ConditionSessionRunning, yes, api.ReasonPaused)),
		Entry("to be stopped, and runs", api.SessionStateStopped, no, api.ReasonRunning, bound, available, running, idle),
		Entry("to be stopped, and was cleaned up", api.SessionStateStopped, no, api.ReasonCleanedUp, bound, available, notRunning(api.ReasonCleanedUp)),
		Entry("C173: to be stopped, and tmux does not answer", api.SessionStateStopped, unknown, api.ReasonTmuxUnknown,
			bound, available, is(api.ConditionSessionRunning, unknown, api.ReasonTmuxUnknown)),
		Entry("cleaned up", api.SessionStateCleanedUp, yes, api.ReasonCleanedUp, bound, available, notRunning(api.ReasonCleanedUp)),
		Entry("to be cleaned up, and stopped before", api.SessionStateCleanedUp, no, api.ReasonStopped, bound, available, notRunning(api.ReasonStopped)),
	)

	DescribeTable("what the host says is not the news", func(status metav1.ConditionStatus, reason string, conditions ...metav1.Condition) {
		for _, state := range []api.SessionState{api.SessionStateRunning, api.SessionStateStopped, api.SessionStateCleanedUp} {
			check(wanted(state, conditions...), status, reason)
		}
	},
		Entry("nothing is known at all", unknown, api.ReasonReconciling),
		Entry("the agent has not looked yet", unknown, api.ReasonReconciling, bound, available),
		Entry("the agent looked at an older version: running", unknown, api.ReasonReconciling, bound, available, stale(running), stale(idle)),
		Entry("the agent looked at an older version: stopped", unknown, api.ReasonReconciling, bound, available, stale(notRunning(api.ReasonStopped))),
		Entry("the agent looked at an older version: cleaned up", unknown, api.ReasonReconciling, bound, available, stale(notRunning(api.ReasonCleanedUp))),
		Entry("no host takes it", no, api.ReasonNoHost, is(api.ConditionScheduled, no, api.ReasonNoHost), is(api.ConditionHostAvailable, unknown, api.ReasonNotBound)),
		Entry("its host does not exist", no, api.ReasonHostNotFound, bound, is(api.ConditionHostAvailable, no, api.ReasonHostNotFound), running, idle),
		Entry("its host is silent: it may well run", unknown, api.ReasonHeartbeatStopped, bound, is(api.ConditionHostAvailable, unknown, api.ReasonHeartbeatStopped), running, idle),
		Entry("its host is silent, and the last word was that it is stopped", unknown, api.ReasonHeartbeatStopped,
			bound, is(api.ConditionHostAvailable, unknown, api.ReasonHeartbeatStopped), notRunning(api.ReasonStopped)),
	)

	DescribeTable("being deleted it is never ready", func(reason string, conditions ...metav1.Condition) {
		for _, state := range []api.SessionState{api.SessionStateRunning, api.SessionStateStopped, api.SessionStateCleanedUp} {
			sessions := wanted(state, conditions...)
			for _, o := range sessions {
				o.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
			}
			check(sessions, no, reason)
		}
	},
		Entry("running", api.ReasonRunning, bound, available, running, idle),
		Entry("stopping", api.ReasonStopping, bound, available, is(api.ConditionSessionRunning, yes, api.ReasonStopping)),
		Entry("stopped", api.ReasonStopped, bound, available, notRunning(api.ReasonStopped)),
		Entry("cleaned up", api.ReasonCleanedUp, bound, available, notRunning(api.ReasonCleanedUp)),
		Entry("hands off", api.ReasonPaused, bound, available, is(api.ConditionSessionRunning, yes, api.ReasonPaused)),
	)

	It("names the first of several things in the way", func() {
		conditions := []metav1.Condition{
			is(api.ConditionAcceptingInput, no, api.ReasonNotReady), notRunning(api.ReasonExited),
			is(api.ConditionWorkspaceReady, no, api.ReasonDirectoryMissing),
			is(api.ConditionHostAvailable, unknown, api.ReasonHeartbeatStopped), is(api.ConditionScheduled, no, api.ReasonNoHost),
		}
		for _, reason := range []string{api.ReasonNoHost, api.ReasonHeartbeatStopped, api.ReasonDirectoryMissing, api.ReasonExited} {
			for _, o := range wanted(api.SessionStateRunning, conditions...) {
				Expect(Ready(o).Reason).To(Equal(reason))
				Expect(Ready(o).Message).To(Equal(reason + " it is"))
			}
			for i, c := range conditions {
				if c.Reason == reason {
					conditions = append(conditions[:i:i], conditions[i+1:]...)
					break
				}
			}
		}
	})
})
