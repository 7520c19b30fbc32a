package v1alpha1_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

const (
	hostFixed   = "spec.hostName is immutable once it is set: delete the session and create it again to move it"
	itemFixed   = "spec.workItem is immutable: create another session for another work item"
	pullFixed   = "spec.pullRequest is immutable, and can be neither added nor removed later"
	parentFixed = "spec.parentName is immutable, and can be neither added nor removed later"
)

// expectRefusedUpdate: the change is refused in these words, in every way in which
// an object can be changed, and the object stays as it was.
func expectRefusedUpdate(ctx context.Context, obj *unstructured.Unstructured, change string, words ...string) {
	GinkgoHelper()
	before := obj.DeepCopy()

	expectRefused(patch(ctx, obj.DeepCopy(), change), words...)

	updated := before.DeepCopy()
	merge(updated.Object, content(change))
	expectRefused(k8s.Update(ctx, updated), words...)

	applied := before.DeepCopy()
	merge(applied.Object, content(change))
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation"} {
		unstructured.RemoveNestedField(applied.Object, "metadata", field)
	}
	err := k8s.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("test"), client.ForceOwnership)
	if !removes(content(change)) { // an owner cannot remove another's field by leaving it out
		expectRefused(err, words...)
	}

	Expect(k8s.Get(ctx, key(before), obj)).To(Succeed())
	Expect(obj.Object["spec"]).To(Equal(before.Object["spec"]))
}

// removes says whether the change removes a field.
func removes(change map[string]any) bool {
	for _, value := range change {
		nested, _ := value.(map[string]any)
		if value == nil || removes(nested) {
			return true
		}
	}
	return false
}

var _ = Describe("a change of a session", func() {
	DescribeTable("M2 is refused for what is immutable", func(ctx context.Context, kind, initial, change string, words ...string) {
		obj := object(kind, initial)
		mustCreate(ctx, newNamespace(ctx), obj)
		expectRefusedUpdate(ctx, obj, change, words...)
	},
		change("hostName to another value", "WorkItemSession", `spec: {hostName: a}`, `spec: {hostName: b}`, hostFixed),
		change("hostName to none", "WorkItemSession", `spec: {hostName: a}`, `spec: {hostName: null}`, hostFixed),
		change("hostName to a bad value", "WorkItemSession", `spec: {hostName: a}`, `spec: {hostName: A}`, hostFixed, "hostName must be the name of a SessionHost"),
		change("hostName of a standing session to another value", "StandingSession", `spec: {hostName: a}`, `spec: {hostName: b}`, hostFixed),
		change("hostName of a standing session to none", "StandingSession", `spec: {hostName: a}`, `spec: {hostName: null}`, hostFixed),
		change("the number of the work item", "WorkItemSession", `{}`, `spec: {workItem: {number: 16}}`, itemFixed),
		change("the repository of the work item", "WorkItemSession", `{}`, `spec: {workItem: {repo: other}}`, itemFixed),
		change("the host of the work item, which was not set", "WorkItemSession", `{}`, `spec: {workItem: {host: ghe.example.com}}`, itemFixed),
		change("the host of the work item to none", "WorkItemSession", `spec: {workItem: {host: ghe.example.com}}`, `spec: {workItem: {host: null}}`, itemFixed),
		change("the work item to none", "WorkItemSession", `{}`, `spec: {workItem: null}`, "spec.workItem: Required value"),
		change("the pull request, which was not set", "WorkItemSession", `{}`, `spec: {`+aPull+`}`, pullFixed, parentFixed),
		change("the pull request alone, which was not set", "WorkItemSession", `{}`, `spec: {pullRequest: {owner: octo, repo: other, number: 3}}`, pullFixed, pullForm),
		change("the number of the pull request", "WorkItemSession", `spec: {`+aPull+`}`, `spec: {pullRequest: {number: 4}}`, pullFixed),
		change("the pull request to none", "WorkItemSession", `spec: {`+aPull+`}`, `spec: {pullRequest: null}`, pullFixed, pullForm),
		change("the pull request and its parent to none", "WorkItemSession", `spec: {`+aPull+`}`, `spec: {pullRequest: null, parentName: null}`, pullFixed, parentFixed),
		change("the parent", "WorkItemSession", `spec: {`+aPull+`}`, `spec: {parentName: item2}`, parentFixed),
		change("the parent to none", "WorkItemSession", `spec: {`+aPull+`}`, `spec: {parentName: null}`, parentFixed, pullForm),
	)

	DescribeTable("M2 cannot get around that by unset and set again", func(ctx context.Context, kind, initial, unset, set string, word string) {
		obj := object(kind, initial)
		mustCreate(ctx, newNamespace(ctx), obj)
		want := obj.DeepCopy()
		expectRefused(patch(ctx, obj.DeepCopy(), unset), word)
		expectRefused(patch(ctx, obj.DeepCopy(), set), word)
		Expect(k8s.Get(ctx, key(want), obj)).To(Succeed())
		Expect(obj.Object).To(Equal(want.Object))
	},
		Entry("hostName", NodeTimeout(time.Minute), "StandingSession", `spec: {hostName: a}`, `spec: {hostName: null}`, `spec: {hostName: b}`, hostFixed),
		Entry("hostName of a work item", NodeTimeout(time.Minute), "WorkItemSession", `spec: {hostName: a}`, `spec: {hostName: null}`, `spec: {hostName: b}`, hostFixed),
		Entry("pullRequest", NodeTimeout(time.Minute), "WorkItemSession", `spec: {`+aPull+`}`,
			`spec: {parentName: null, pullRequest: null}`, `spec: {parentName: item, pullRequest: {number: 4}}`, pullFixed),
		Entry("parentName", NodeTimeout(time.Minute), "WorkItemSession", `spec: {`+aPull+`}`,
			`spec: {parentName: null, pullRequest: null}`, `spec: {parentName: item2}`, parentFixed),
		Entry("the host of the work item", NodeTimeout(time.Minute), "WorkItemSession", `spec: {workItem: {host: ghe.example.com}}`,
			`spec: {workItem: {host: null}}`, `spec: {workItem: {host: ghe2.example.com}}`, itemFixed),
	)

	DescribeTable("is accepted for what may change", func(ctx context.Context, kind, initial string, changes ...string) {
		obj := object(kind, initial)
		mustCreate(ctx, newNamespace(ctx), obj)
		for _, text := range changes {
			want := obj.DeepCopy()
			merge(want.Object, content(text))
			Expect(patch(ctx, obj, text)).To(Succeed(), text)
			Expect(obj.Object["spec"]).To(Equal(want.Object["spec"]))
		}
	},
		change("hostName from none to a value, once", "WorkItemSession", `{}`, `spec: {hostName: a}`, `spec: {hostName: a}`),
		change("hostName of a standing session from none to a value", "StandingSession", `{}`, `spec: {hostName: a}`, `spec: {description: bound}`),
		change("the state of a work item's session, there and back", "WorkItemSession", `spec: {hostName: a}`,
			`spec: {state: Stopped}`, `spec: {state: Running}`, `spec: {state: CleanedUp}`, `spec: {state: Running}`),
		change("the state of a standing session, there and back", "StandingSession", `{}`, `spec: {state: Stopped}`, `spec: {state: Running}`),
		change("the start gates to fewer and to none", "WorkItemSession", `spec: {startGates: [{name: a}, {name: b}]}`,
			`spec: {startGates: [{name: b}]}`, `spec: {startGates: []}`, `spec: {startGates: null}`),
		change("policies, model, effort and prompt", "WorkItemSession", `{}`,
			`spec: {deliveryPolicy: Drop, restartPolicy: Never, model: opus, effort: low, prompt: more}`),
		change("the class and the labels of hosts", "StandingSession", `{}`,
			`spec: {className: big, hostSelector: {matchLabels: {zone: a}}}`, `spec: {className: null, hostSelector: null}`),
		change("the prompt to a prompt file", "StandingSession", `spec: {prompt: a}`, `spec: {prompt: null, promptFile: /a}`),
		change("a pull request's session otherwise", "WorkItemSession", `spec: {`+aPull+`}`, `spec: {hostName: a, state: Stopped}`),
		change("a session that is deleted and held by its finalizer", "StandingSession", `metadata: {finalizers: [theloop.dev/session]}`,
			`spec: {state: Stopped}`),
	)

	It("removes a start gate by server-side apply of whoever set it, leaving the other's", func(ctx context.Context) {
		obj := object("WorkItemSession")
		mustCreate(ctx, newNamespace(ctx), obj)
		gate := func(owner, list string) {
			GinkgoHelper()
			part := &unstructured.Unstructured{Object: map[string]any{}}
			part.SetGroupVersionKind(obj.GroupVersionKind())
			part.SetNamespace(obj.GetNamespace())
			part.SetName(obj.GetName())
			merge(part.Object, content(`spec: {startGates: `+list+`, workItem: {provider: github, owner: octo, repo: repo, number: 15}}`))
			Expect(k8s.Apply(ctx, client.ApplyConfigurationFromUnstructured(part), client.FieldOwner(owner))).To(Succeed())
		}
		gate("phases", `[{name: phase-selection}]`)
		gate("budget", `[{name: budget}]`)
		got := getWorkItem(ctx, obj)
		Expect(got.Spec.StartGates).To(ConsistOf(api.StartGate{Name: "phase-selection"}, api.StartGate{Name: "budget"}))
		gate("phases", `[]`)
		Expect(getWorkItem(ctx, obj).Spec.StartGates).To(ConsistOf(api.StartGate{Name: "budget"}))
		gate("budget", `[]`)
		Expect(getWorkItem(ctx, obj).Spec.StartGates).To(BeEmpty())
	}, NodeTimeout(time.Minute))

	It("M20 is deleted only as the very object that is meant", func(ctx context.Context) {
		obj := object("StandingSession")
		mustCreate(ctx, newNamespace(ctx), obj)
		err := k8s.Delete(ctx, obj.DeepCopy(), client.Preconditions{UID: ptr.To(types.UID("another"))})
		Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
		Expect(k8s.Delete(ctx, obj.DeepCopy(), client.Preconditions{UID: ptr.To(obj.GetUID())})).To(Succeed())
		expectAbsent(ctx, obj)
	}, NodeTimeout(time.Minute))

	It("M5 can remove a finalizer while it is deleted, and add none", func(ctx context.Context) {
		obj := object("WorkItemSession", `metadata: {finalizers: [theloop.dev/session]}`)
		mustCreate(ctx, newNamespace(ctx), obj)
		Expect(k8s.Delete(ctx, obj)).To(Succeed())
		err := patch(ctx, obj.DeepCopy(), `metadata: {finalizers: [theloop.dev/session, theloop.dev/other]}`)
		Expect(err).To(MatchError(ContainSubstring("no new finalizers can be added if the object is being deleted")))
		Expect(patch(ctx, obj.DeepCopy(), `metadata: {finalizers: []}`)).To(Succeed())
		expectAbsent(ctx, obj)
	}, NodeTimeout(time.Minute))

	It("M3 counts a generation for the spec alone, and for the deletion", func(ctx context.Context) {
		obj := object("StandingSession", `metadata: {finalizers: [theloop.dev/session]}`)
		mustCreate(ctx, newNamespace(ctx), obj)
		Expect(obj.GetGeneration()).To(Equal(int64(1)))
		setStatus(ctx, obj, `status: {tmuxTarget: loop-standing-x}`)
		Expect(patch(ctx, obj, `metadata: {annotations: {theloop.dev/restart-requested: a}}`)).To(Succeed())
		Expect(obj.GetGeneration()).To(Equal(int64(1)))
		Expect(patch(ctx, obj, `spec: {state: Stopped}`)).To(Succeed())
		Expect(obj.GetGeneration()).To(Equal(int64(2)))
		Expect(k8s.Delete(ctx, obj)).To(Succeed())
		Expect(k8s.Get(ctx, key(obj), obj)).To(Succeed())
		Expect(obj.GetGeneration()).To(Equal(int64(3)))
		Expect(patch(ctx, obj, `metadata: {finalizers: null}`)).To(Succeed())
	}, NodeTimeout(time.Minute))
})

// change is an entry of a table of changes: a kind, what the object is first, and
// what follows.
func change(what, kind, initial string, args ...any) TableEntry {
	return Entry(what, append([]any{NodeTimeout(time.Minute), kind, initial}, args...)...)
}

func getWorkItem(ctx context.Context, obj client.Object) *api.WorkItemSession {
	GinkgoHelper()
	var s api.WorkItemSession
	Expect(k8s.Get(ctx, key(obj), &s)).To(Succeed())
	return &s
}
