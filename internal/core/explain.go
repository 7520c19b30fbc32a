package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

// GateState is how a gate stands.
type GateState string

// States of a gate.
const (
	GateOpen    GateState = "ok"
	GateClosed  GateState = "BLOCKED"
	GateUnknown GateState = "unknown"
	// GateNote is in nobody's way, and worth knowing.
	GateNote GateState = "note"
)

// Gate is one thing that must be so for a session to run, or for a message to be typed.
type Gate struct {
	Name  string    `json:"name"`
	State GateState `json:"state"`
	// Observed is the value that was found.
	Observed string `json:"observed"`
	// Fix is the one command that opens it, "" where it is open or no command does.
	Fix string `json:"fix,omitempty"`
}

// Explanation is the chain of gates of a session or a message, in the order in which they
// are passed.
type Explanation struct {
	// Subject in words, and what is the matter with it.
	Subject string `json:"subject"`
	Summary string `json:"summary"`
	Gates   []Gate `json:"gates"`
}

// Blocked is the first gate that is not passed, nil when all are.
func (e Explanation) Blocked() *Gate {
	for i := range e.Gates {
		if e.Gates[i].State == GateClosed || e.Gates[i].State == GateUnknown {
			return &e.Gates[i]
		}
	}
	return nil
}

// facts are what the gates of a session depend on.
type facts struct {
	session Session
	// class that it runs by; classProblem is why there is none.
	class        *api.SessionClass
	classProblem *Error
	hosts        []*api.SessionHost
}

// ExplainSession says what a session waits for.
func (c *Core) ExplainSession(ctx context.Context, s Session) (Explanation, error) {
	f, err := c.gather(ctx, s)
	if err != nil {
		return Explanation{}, err
	}
	return summarise(strings.TrimSuffix(noun(s), "s")+" "+s.GetName(), sessionGates(f), "runs and takes input", "does not run, or takes no input"), nil
}

func (c *Core) gather(ctx context.Context, s Session) (facts, error) {
	f := facts{session: s}
	var err error
	if f.class, err = c.classOf(ctx, s); err != nil && !errors.As(err, &f.classProblem) {
		return f, err
	}
	f.hosts, err = c.ListHosts(ctx)
	return f, err
}

func summarise(subject string, gates []Gate, open, closed string) Explanation {
	e := Explanation{Subject: subject, Gates: gates, Summary: open}
	if b := e.Blocked(); b != nil {
		e.Summary = closed + ": " + b.Name
	}
	// Behind the first closed gate nothing is to be done yet.
	first := true
	for i := range e.Gates {
		g := &e.Gates[i]
		if g.State != GateClosed && g.State != GateUnknown {
			continue
		}
		if !first {
			g.Fix = ""
		}
		first = false
	}
	return e
}

// sessionGates is pure.
func sessionGates(f facts) []Gate {
	return append(runGates(f), inputGates(f.session)...)
}

// runGates are what must be so for a session to run.
func runGates(f facts) []Gate {
	s, kubectl := f.session, kubectlName(f.session)
	var out []Gate
	add := func(name string, open bool, observed, fix string) {
		g := Gate{Name: name, State: GateOpen, Observed: observed}
		if !open {
			g.State, g.Fix = GateClosed, fix
		}
		out = append(out, g)
	}
	add("object", s.GetDeletionTimestamp() == nil, either(s.GetDeletionTimestamp() == nil, "it exists", "it is being deleted"), "")
	paused, off := s.GetAnnotations()[api.PausedAnnotation]
	add("hands off", !off, either(!off, "the annotation "+api.PausedAnnotation+" is not set", fmt.Sprintf("the annotation %s is set (%q): nothing is done to it", api.PausedAnnotation, paused)),
		"kubectl annotate "+kubectl+" "+api.PausedAnnotation+"-")
	want := cmp.Or(s.WantedState(), api.SessionStateRunning)
	add("wanted", want == api.SessionStateRunning, "spec.state is "+string(want), command(s, "start"))
	if f.classProblem != nil {
		add("class", false, f.classProblem.Message, strings.TrimPrefix(f.classProblem.Fix, "label one: "))
	} else {
		add("class", true, fmt.Sprintf("SessionClass %s runs %s", f.class.Name, f.class.Spec.Harness.Name), "")
	}
	out = append(out, hostGates(f)...)
	if w, ok := s.(*api.WorkItemSession); ok {
		var names []string
		for _, g := range w.Spec.StartGates {
			names = append(names, g.Name)
		}
		add("start gates", len(names) == 0, either(len(names) == 0, "spec.startGates is empty", "spec.startGates holds "+strings.Join(names, ", ")),
			"kubectl patch "+kubectl+` --type=json -p '[{"op":"remove","path":"/spec/startGates"}]'`)
	}
	out = append(out, conditionGate(s, "workspace", api.ConditionWorkspaceReady, ""))
	out = append(out, conditionGate(s, "harness", api.ConditionSessionRunning, ""))
	if c := meta.FindStatusCondition(s.HostedStatus().Conditions, api.ConditionChoiceApplied); c != nil {
		out = append(out, Gate{Name: "choice", State: either(c.Status == metav1.ConditionTrue, GateOpen, GateNote), Observed: c.Reason + ": " + c.Message})
	}
	return out
}

// hostGates are about where the session runs.
func hostGates(f facts) []Gate {
	s := f.session
	scheduled := conditionGate(s, "host", api.ConditionScheduled, "start an agent on a build host")
	name := s.Placement().HostName
	if name != "" {
		scheduled = Gate{Name: "host", State: GateOpen, Observed: "bound to host " + name}
	}
	for _, h := range f.hosts {
		if scheduled.State != GateOpen && cmp.Or(h.Spec.Scheduling, api.HostSchedulingEnabled) != api.HostSchedulingEnabled {
			scheduled.Fix = "the-loop hosts uncordon " + h.Name
		}
	}
	if name == "" {
		return []Gate{scheduled, {Name: "host alive", State: GateUnknown, Observed: "it has no host yet"}}
	}
	return []Gate{scheduled, conditionGate(s, "host alive", api.ConditionHostAvailable, "start the agent of host "+name)}
}

// inputGates are what must be so for a message to be typed into a session that runs.
func inputGates(s Session) []Gate {
	want := policyOf(s)
	delivery := Gate{Name: "delivery", State: GateOpen, Observed: "spec.deliveryPolicy is " + string(want)}
	if want != api.DeliveryPolicyDeliver {
		delivery.State, delivery.Fix = GateClosed, resumeCommand(s)
	}
	return []Gate{conditionGate(s, "input", api.ConditionAcceptingInput, ""), delivery}
}

// conditionGate is a gate that is a condition of the session.
func conditionGate(s Session, name, kind, fix string) Gate {
	c := meta.FindStatusCondition(s.HostedStatus().Conditions, kind)
	if c == nil {
		return Gate{Name: name, State: GateUnknown, Observed: "nothing is known of it yet", Fix: "the-loop doctor"}
	}
	g := Gate{Name: name, State: GateOpen, Observed: c.Reason + ": " + c.Message}
	switch c.Status {
	case metav1.ConditionFalse:
		g.State = GateClosed
	case metav1.ConditionUnknown:
		g.State = GateUnknown
	}
	if g.State != GateOpen {
		g.Fix = cmp.Or(fix, remedy(s, c.Reason))
	}
	if c.ObservedGeneration != s.GetGeneration() {
		g.Observed += " (of an older version of the object)"
	}
	return g
}

// remedy is the command that helps against what a reason says, "" where none does.
func remedy(s Session, reason string) string {
	switch reason {
	case api.ReasonAwaitingInput, api.ReasonNotReady:
		return command(s, "attach")
	case api.ReasonExited, api.ReasonOOMKilled, api.ReasonSpawnFailed:
		return command(s, "restart")
	case api.ReasonCrashLoop:
		return command(s, "logs")
	case api.ReasonStopped, api.ReasonCleanedUp, api.ReasonNotStarted, api.ReasonNotRunning:
		return command(s, "start")
	case api.ReasonTmuxUnknown, api.ReasonBinaryMissing:
		return "the-loop doctor"
	case api.ReasonHarnessUnsupported, api.ReasonClassNotFound:
		return "the-loop classes list"
	case api.ReasonConversationAltered, api.ReasonConfigurationBroken:
		return "kubectl describe " + kubectlName(s) // the message has the command
	case api.ReasonOccupied, api.ReasonConversationInUse, api.ReasonDirectoryMissing, api.ReasonInvalidSpec, api.ReasonPromptUnreadable, api.ReasonNoSeparateCheckout:
		return "kubectl edit " + kubectlName(s)
	case api.ReasonStarting, api.ReasonPreparingWorkspace, api.ReasonStopping, api.ReasonReconciling, api.ReasonResumePending, api.ReasonWaitingForCanary:
		return "" // it goes by itself; for WaitingForCanary the message names the session to attach to
	}
	return ""
}

// ExplainMessage says what a message waits for, or how it ended.
func (c *Core) ExplainMessage(ctx context.Context, m *api.SessionMessage) (Explanation, error) {
	s, err := c.sessionOf(ctx, m)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Explanation{}, err
	}
	subject := fmt.Sprintf("message %s for %s", m.Name, m.Spec.SessionRef.Name)
	if m.Status.Outcome.Final() {
		return summarise(subject, []Gate{finished(m, s)}, "the harness took it", "ended without being taken"), nil
	}
	if s == nil {
		return summarise(subject, []Gate{{Name: "session", State: GateClosed, Observed: fmt.Sprintf("there is no %s %s that it is for", m.Spec.SessionRef.Kind, m.Spec.SessionRef.Name), Fix: "the-loop messages recall " + m.Name}}, "", "is not delivered"), nil
	}
	f, err := c.gather(ctx, s)
	if err != nil {
		return Explanation{}, err
	}
	ahead, err := c.ahead(ctx, m)
	if err != nil {
		return Explanation{}, err
	}
	return summarise(subject, messageGates(f, m, ahead, c.now()), "is being delivered", "is not delivered yet"), nil
}

// messageGates is pure.
func messageGates(f facts, m *api.SessionMessage, ahead []*api.SessionMessage, now time.Time) []Gate {
	out := sessionGates(f)
	queue := Gate{Name: "queue", State: GateOpen, Observed: "it is next"}
	switch {
	case m.Status.Sequence == 0:
		queue.State, queue.Observed = GateUnknown, "it has no place yet: the agent of the session's host gives it"
	case len(ahead) > 0:
		queue.State, queue.Observed = GateClosed, fmt.Sprintf("%d before it; the next is %s: %s", len(ahead), ahead[0].Name, Fate(ahead[0]))
		queue.Fix = "the-loop explain " + ahead[0].Name
	}
	out = append(out, queue)
	if seconds, field := m.Expiry(f.class); seconds > 0 {
		left := m.CreationTimestamp.Add(time.Duration(seconds) * time.Second).Sub(now).Round(time.Second)
		out = append(out, Gate{Name: "expiry", State: either(left > 0, GateOpen, GateClosed), Observed: fmt.Sprintf("it may be typed for %s more, by %s", max(0, left), field)})
	}
	if m.Status.Outcome == api.OutcomeHeld {
		out = append(out, Gate{Name: "held", State: GateClosed, Observed: Fate(m), Fix: command(f.session, "attach")})
	}
	return out
}

// finished is the one gate of a message that has come to an end.
func finished(m *api.SessionMessage, s Session) Gate {
	g := Gate{Name: "outcome", State: GateOpen, Observed: Fate(m)}
	if m.Status.Outcome == api.OutcomeSubmitted {
		return g
	}
	g.State = GateClosed
	switch {
	case s == nil:
	case m.Status.Outcome == api.OutcomeTyped, m.Status.Outcome == api.OutcomeUnknown:
		g.Fix = command(s, "attach")
	case m.Status.Reason == api.ReasonSessionNotRunning:
		g.Fix = command(s, "start")
	case m.Status.Outcome == api.OutcomeDropped:
		g.Fix = resumeCommand(s)
	}
	return g
}

// sessionOf is the session that a message is for; nil with ErrNotFound when there is none.
func (c *Core) sessionOf(ctx context.Context, m *api.SessionMessage) (Session, error) {
	var s Session = &api.StandingSession{}
	if m.Spec.SessionRef.Kind == api.KindWorkItemSession {
		s = &api.WorkItemSession{}
	}
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.SessionRef.Name}, s)
	if err == nil && (m.Spec.SessionRef.UID == "" || m.Spec.SessionRef.UID == s.GetUID()) {
		return s, nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	return nil, notFound("the session is gone", "")
}

// kubectlName is an object as kubectl is given it.
func kubectlName(s Session) string {
	kind := "standing"
	if s.SessionKind() == api.KindWorkItemSession {
		kind = "worksession"
	}
	return kind + " " + s.GetName() + " -n " + s.GetNamespace()
}

func either[T any](yes bool, a, b T) T {
	if yes {
		return a
	}
	return b
}
