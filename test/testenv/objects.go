package testenv

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

// Session is a session's object of either kind.
type Session interface {
	client.Object
	api.HostedSession
}

// Submitted is the outcome of a message that the harness has taken.
const Submitted = "Submitted/PromptTaken"

// Create creates an object.
func (e *Env) Create(obj client.Object) {
	GinkgoHelper()
	Expect(e.Client.Create(context.Background(), obj)).To(Succeed())
}

// Get reads an object again.
func (e *Env) Get(obj client.Object) {
	GinkgoHelper()
	Expect(e.read(obj)).To(Succeed())
}

func (e *Env) read(obj client.Object) error {
	return e.Client.Get(context.Background(), client.ObjectKeyFromObject(obj), obj)
}

// Update changes an object as a person does who edits it.
func (e *Env) Update(obj client.Object, change func()) {
	GinkgoHelper()
	Eventually(func() error {
		if err := e.read(obj); err != nil {
			return err
		}
		change()
		return e.Client.Update(context.Background(), obj)
	}).Should(Succeed())
}

// UpdateClass changes the class of this name.
func (e *Env) UpdateClass(name string, change func(*api.SessionClass)) {
	GinkgoHelper()
	c := &api.SessionClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	e.Update(c, func() { change(c) })
}

// Delete deletes an object; what is left of it goes later.
func (e *Env) Delete(obj client.Object) {
	GinkgoHelper()
	Expect(e.Client.Delete(context.Background(), obj)).To(Succeed())
}

// AwaitGone waits until an object does not exist any more, 30 seconds or as long as
// said.
func (e *Env) AwaitGone(obj client.Object, within ...time.Duration) {
	GinkgoHelper()
	Eventually(func() bool { return apierrors.IsNotFound(e.read(obj)) }, timeout(within)...).Should(BeTrue(), func() string {
		return fmt.Sprintf("%s is still there, with the finalizers %v", obj.GetName(), obj.GetFinalizers())
	})
}

// Condition reads a condition of a session as "Status/Reason", again and again for
// Eventually. One that is not there is "absent", one about an older spec "stale".
func (e *Env) Condition(obj Session, kind string) func() string {
	return func() string {
		if err := e.read(obj); err != nil {
			return err.Error()
		}
		c := meta.FindStatusCondition(obj.HostedStatus().Conditions, kind)
		switch {
		case c == nil:
			return "absent"
		case c.ObservedGeneration != obj.GetGeneration():
			return "stale"
		}
		return string(c.Status) + "/" + c.Reason
	}
}

// Message reads the message of a condition, "" when there is none.
func (e *Env) Message(obj Session, kind string) string {
	GinkgoHelper()
	e.Get(obj)
	c := meta.FindStatusCondition(obj.HostedStatus().Conditions, kind)
	if c == nil {
		return ""
	}
	return c.Message
}

// Await waits until a condition of a session is "Status/Reason", 30 seconds or as long
// as said. A failure tells all that the session says of itself.
func (e *Env) Await(obj Session, kind, want string, within ...time.Duration) {
	GinkgoHelper()
	Eventually(e.Condition(obj, kind), timeout(within)...).Should(Equal(want), func() string { return kind + "\n" + describe(obj) })
}

// Ready waits until a session runs.
func (e *Env) Ready(obj Session, within ...time.Duration) {
	GinkgoHelper()
	e.Await(obj, api.ConditionReady, "True/Running", within...)
}

// Outcome reads what became of a message as "Outcome/Reason", again and again for
// Eventually.
func (e *Env) Outcome(m *api.SessionMessage) func() string {
	return func() string {
		if err := e.read(m); err != nil {
			return err.Error()
		}
		return string(m.Status.Outcome) + "/" + m.Status.Reason
	}
}

// AwaitOutcome waits until a message has come to "Outcome/Reason", 30 seconds or as
// long as said. A failure tells all that the message says of itself.
func (e *Env) AwaitOutcome(m *api.SessionMessage, want string, within ...time.Duration) {
	GinkgoHelper()
	Eventually(e.Outcome(m), timeout(within)...).Should(Equal(want), func() string { return "message " + m.Name + "\n" + indented(m.Status) })
}

// Messages are the messages of a session, by creation.
func (e *Env) Messages(obj Session) []api.SessionMessage {
	GinkgoHelper()
	var list api.SessionMessageList
	Expect(e.Client.List(context.Background(), &list, client.InNamespace(obj.GetNamespace()))).To(Succeed())
	var out []api.SessionMessage
	for _, m := range list.Items {
		if m.Spec.SessionRef.Kind == obj.SessionKind() && m.Spec.SessionRef.Name == obj.GetName() {
			out = append(out, m)
		}
	}
	return out
}

// Boot is the first message of a session, nil before it is there.
func (e *Env) Boot(obj Session) *api.SessionMessage {
	GinkgoHelper()
	for _, m := range e.Messages(obj) {
		if m.Spec.Source.Type == api.SourceBoot {
			return &m
		}
	}
	return nil
}

// HostReported counts how often an event of this reason was reported about the host.
func (h *Host) HostReported(reason string) int {
	GinkgoHelper()
	host := &api.SessionHost{}
	Expect(h.Client.Get(context.Background(), client.ObjectKey{Name: h.Name}, host)).To(Succeed())
	return h.Reported(host, reason)
}

// Reported counts how often an event of this reason was reported about an object.
func (e *Env) Reported(obj client.Object, reason string) int {
	GinkgoHelper()
	var list corev1.EventList
	// Those about what has no namespace are in one all the same.
	namespace := cmp.Or(obj.GetNamespace(), metav1.NamespaceDefault)
	Expect(e.Client.List(context.Background(), &list, client.InNamespace(namespace))).To(Succeed())
	n := 0
	for _, event := range list.Items {
		if event.InvolvedObject.UID == obj.GetUID() && event.Reason == reason {
			n += max(1, int(event.Count))
			if event.Series != nil {
				n += int(event.Series.Count) - 1
			}
		}
	}
	return n
}

// AwaitBoot is the first message of a session, once it is there.
func (e *Env) AwaitBoot(obj Session) (found *api.SessionMessage) {
	GinkgoHelper()
	Eventually(func() *api.SessionMessage {
		found = e.Boot(obj)
		return found
	}).ShouldNot(BeNil(), "the session has no first message")
	return found
}

// describe is what a session says of itself, as a person reads it.
func describe(obj Session) string {
	var b strings.Builder
	st := obj.HostedStatus()
	fmt.Fprintf(&b, "%s %s/%s, generation %d:\n", obj.SessionKind(), obj.GetNamespace(), obj.GetName(), obj.GetGeneration())
	for _, c := range st.Conditions {
		fmt.Fprintf(&b, "  %-16s %-8s %-24s (of generation %d) %s\n", c.Type, c.Status, c.Reason, c.ObservedGeneration, c.Message)
	}
	rest := *st
	rest.Conditions = nil
	return b.String() + indented(rest)
}

func indented(v any) string {
	b, err := json.MarshalIndent(v, "  ", "  ")
	if err != nil {
		return err.Error()
	}
	return "  " + string(b)
}

// timeout is the argument of Eventually for an optional duration.
func timeout(within []time.Duration) []any {
	out := []any{}
	for _, d := range within {
		out = append(out, d)
	}
	return out
}
