package v1alpha1_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

// selected are the names of the objects of a kind that the field selector selects,
// in the order of the list.
func selected(ctx context.Context, kind, ns, selector string) []string {
	GinkgoHelper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: api.GroupVersion.Group, Version: api.GroupVersion.Version, Kind: kind + "List"})
	Expect(k8s.List(ctx, list, client.InNamespace(ns), matching(selector))).To(Succeed())
	got := []string{}
	for _, obj := range list.Items {
		got = append(got, obj.GetName())
	}
	return got
}

func matching(selector string) client.ListOption {
	GinkgoHelper()
	sel, err := fields.ParseSelector(selector)
	Expect(err).NotTo(HaveOccurred())
	return client.MatchingFieldsSelector{Selector: sel}
}

var _ = Describe("M16 a field selector", func() {
	for _, kind := range []string{"WorkItemSession", "StandingSession"} {
		It("selects by spec.hostName and spec.state: "+kind, func(ctx context.Context) {
			ns := newNamespace(ctx)
			for name, spec := range map[string]string{
				"a1": `{hostName: a}`, "a2": `{hostName: a, state: Stopped}`, "b1": `{hostName: b}`, "none": `{}`,
			} {
				mustCreate(ctx, ns, object(kind, `{metadata: {name: `+name+`}, spec: `+spec+`}`))
			}
			for selector, want := range map[string][]string{
				"spec.hostName=a":                      {"a1", "a2"},
				"spec.hostName==b":                     {"b1"},
				"spec.hostName!=a":                     {"b1", "none"},
				"spec.hostName=":                       {"none"},
				"spec.hostName!=":                      {"a1", "a2", "b1"},
				"spec.hostName=aa":                     {},
				"spec.state=Running":                   {"a1", "b1", "none"},
				"spec.state!=Running":                  {"a2"},
				"spec.hostName=a,spec.state=Running":   {"a1"},
				"spec.hostName=a,metadata.name=a2":     {"a2"},
				"spec.hostName!=,spec.state=CleanedUp": {},
			} {
				Expect(selected(ctx, kind, ns, selector)).To(Equal(want), selector)
			}
		}, NodeTimeout(time.Minute))
	}

	It("selects messages by the name and the kind of their session", func(ctx context.Context) {
		ns := newNamespace(ctx)
		for name, ref := range map[string]string{
			"m1": `{name: one}`, "m12": `{name: one-2}`, "m2": `{name: two}`, "w1": `{kind: WorkItemSession, name: one}`,
		} {
			mustCreate(ctx, ns, object("SessionMessage", `{metadata: {name: `+name+`}, spec: {sessionRef: `+ref+`}}`))
		}
		for selector, want := range map[string][]string{
			"spec.sessionRef.name=one":                                      {"m1", "w1"},
			"spec.sessionRef.name!=one":                                     {"m12", "m2"},
			"spec.sessionRef.name=":                                         {},
			"spec.sessionRef.kind=StandingSession,spec.sessionRef.name=one": {"m1"},
		} {
			Expect(selected(ctx, "SessionMessage", ns, selector)).To(Equal(want), selector)
		}
	}, NodeTimeout(time.Minute))

	It("is refused for a field that is not selectable", func(ctx context.Context) {
		err := k8s.List(ctx, &api.StandingSessionList{}, matching("spec.model=opus"))
		Expect(err).To(MatchError(ContainSubstring("field label not supported: spec.model")))
	}, NodeTimeout(time.Minute))

	It("M1 watches an object that leaves it as deleted, though the object lives", func(ctx context.Context) {
		ns := newNamespace(ctx)
		watcher, err := client.NewWithWatch(restConfig, client.Options{HTTPClient: transport})
		Expect(err).NotTo(HaveOccurred())
		obj := object("StandingSession")
		mustCreate(ctx, ns, obj)
		unbound, err := watcher.Watch(ctx, &api.StandingSessionList{}, client.InNamespace(ns), matching("spec.hostName="))
		Expect(err).NotTo(HaveOccurred())
		defer unbound.Stop()
		var event watch.Event
		Eventually(ctx, unbound.ResultChan()).Should(Receive(&event))
		Expect(event.Type).To(Equal(watch.Added))

		Expect(patch(ctx, obj, `spec: {hostName: a}`)).To(Succeed())
		Eventually(ctx, unbound.ResultChan()).Should(Receive(&event))
		Expect(event.Type).To(Equal(watch.Deleted))
		gone := event.Object.(*api.StandingSession)
		Expect(gone.Spec.HostName).To(BeEmpty(), "the value it had")
		Expect(gone.DeletionTimestamp).To(BeNil())
		Expect(k8s.Get(ctx, key(obj), gone)).To(Succeed())
		Expect(gone.Spec.HostName).To(Equal("a"))
	}, NodeTimeout(time.Minute))
})
