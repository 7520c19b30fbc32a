package v1alpha1_test

import (
	"context"
	"encoding/json"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

// defaults are the whole spec of the minimal object of each kind, once it is
// created: the table of all defaults.
var defaults = map[string]string{
	"WorkItemSession": `
workItem: {provider: github, owner: octo, repo: repo, number: 15}
state: Running
deliveryPolicy: Deliver
restartPolicy: OnMessage
`,
	"StandingSession": `
state: Running
autoStart: true
deliveryPolicy: Deliver
restartPolicy: Always
`,
	"SessionMessage": `
sessionRef: {kind: StandingSession, name: hello}
text: hi
source: {type: Person, trust: Operator}
ttlSecondsAfterFinished: 345600
`,
	"SessionClass": `
harness: {name: claude}
tmux:
  remainOnExit: true
  keepSessionOnClose: true
  killHarnessOnClose: true
  harnessKillGraceSeconds: 5
  resumeOnRespawn: true
  resumeProbeSeconds: 2
trust: {enabled: true, scope: WorkspaceRoot, acceptBypassPermissions: Auto}
plugins: {enabled: true}
workspace: {strategy: Worktree, cloneProtocol: HTTPS, keepCheckoutOnClose: false, undoCleanupSeconds: 604800}
sessionPerPullRequest: Never
prompts: {spawn: {from: BuiltIn}, event: {from: BuiltIn}}
interaction: WorkItem
permissions: Ask
announce: true
messages: {maxPending: 100, alertAfterSeconds: 600, deliverWhileBusy: true}
`,
	"SessionHost": `
scheduling: Enabled
`,
}

// explicit are specs whose every value differs from its default, above all the
// zero values.
var explicit = map[string]string{
	"WorkItemSession": `
workItem: {provider: github, host: ghe.example.com, owner: octo, repo: repo, number: 15}
state: Stopped
startGates: []
deliveryPolicy: Hold
restartPolicy: Never
workspace: {}
hostSelector: {}
`,
	"StandingSession": `
state: Stopped
autoStart: false
harnessArgs: []
deliveryPolicy: Drop
restartPolicy: Never
hostSelector: {}
`,
	"SessionMessage": `
sessionRef: {kind: StandingSession, name: hello}
text: " "
source: {type: System, trust: Untrusted}
ttlSecondsAfterFinished: 0
`,
	"SessionClass": `
harness: {name: custom, binary: agent, custom: {}}
tmux:
  remainOnExit: false
  keepSessionOnClose: false
  killHarnessOnClose: false
  harnessKillGraceSeconds: 0
  resumeOnRespawn: false
  resumeProbeSeconds: 0
  retainedSecondsAfterClose: 0
trust: {enabled: false, scope: Directory, acceptBypassPermissions: Never}
plugins: {enabled: false, marketplaceRepo: ""}
workspace: {strategy: Clone, cloneProtocol: SSH, keepCheckoutOnClose: true, undoCleanupSeconds: 0}
sessionPerPullRequest: Always
interaction: CLI
prompts: {spawn: {from: None}, event: {from: None}}
permissions: Deny
announce: false
messages: {maxPending: 1, alertAfterSeconds: 0, deliverWhileBusy: false}
`,
	"SessionHost": `
scheduling: Cordoned
maxSessions: 0
`,
}

var _ = Describe("defaults", func() {
	for _, kind := range kinds {
		It("are exactly the documented ones: "+kind, func(ctx context.Context) {
			obj := object(kind)
			mustCreate(ctx, newNamespace(ctx), obj)
			Expect(obj.Object["spec"]).To(Equal(any(content(defaults[kind]))))
		}, NodeTimeout(time.Minute))

		It("replace no zero, no false and no empty list, by JSON and through Go: "+kind, func(ctx context.Context) {
			ns := newNamespace(ctx)
			want := content(explicit[kind])
			obj := object(kind)
			obj.Object["spec"] = content(explicit[kind])
			mustCreate(ctx, ns, obj)
			Expect(obj.Object["spec"]).To(Equal(any(want)))

			By("through the Go type")
			through, err := scheme.Scheme.New(obj.GroupVersionKind())
			Expect(err).NotTo(HaveOccurred())
			read := through.(client.Object)
			Expect(k8s.Get(ctx, key(obj), read)).To(Succeed())
			again := read.DeepCopyObject().(client.Object)
			again.SetName(object(kind).GetName())
			again.SetResourceVersion("")
			again.SetUID("")
			Expect(k8s.Create(ctx, again)).To(Succeed())
			DeferCleanup(func(ctx context.Context) { Expect(k8s.Delete(ctx, again)).To(Succeed()) })
			stored := object(kind)
			Expect(k8s.Get(ctx, key(again), stored)).To(Succeed())
			delete(want, "startGates") // for Go, and for the agent, none is the same as an empty list
			Expect(stored.Object["spec"]).To(Equal(any(want)))
		}, NodeTimeout(time.Minute))
	}

	DescribeTable("fill in what is left out of a part", func(ctx context.Context, kind, spec string) {
		obj := object(kind, `spec: `+spec)
		mustCreate(ctx, newNamespace(ctx), obj)
		want := content(defaults[kind])
		merge(want, content(spec))
		Expect(obj.Object["spec"]).To(Equal(any(want)))
	},
		change("of tmux", "SessionClass", `{tmux: {keepSessionOnClose: false}}`),
		change("of the trust", "SessionClass", `{trust: {enabled: false}}`),
		change("of the workspace", "SessionClass", `{workspace: {root: /srv}}`),
		change("of the messages", "SessionClass", `{messages: {maxPending: 7}}`),
		change("of the source", "SessionMessage", `{source: {actor: me}}`),
	)

	It("give a message its source and trust when the source is null", func(ctx context.Context) {
		obj := object("SessionMessage")
		Expect(unstructured.SetNestedField(obj.Object, nil, "spec", "source")).To(Succeed())
		mustCreate(ctx, newNamespace(ctx), obj)
		Expect(at(obj, "spec", "source")).To(Equal(any(content(`{type: Person, trust: Operator}`))))
	}, NodeTimeout(time.Minute))

	It("give a host without a spec one", func(ctx context.Context) {
		host := &api.SessionHost{ObjectMeta: metav1.ObjectMeta{Name: object("SessionHost").GetName()}}
		Expect(k8s.Create(ctx, host)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(k8s.Delete(ctx, host)).To(Succeed()) })
		Expect(host.Spec.Scheduling).To(Equal(api.HostSchedulingEnabled))
		Expect(host.Spec.MaxSessions).To(BeNil())
	}, NodeTimeout(time.Minute))
})

var _ = Describe("the arguments of a standing session", func() {
	stored := func(ctx context.Context, s client.Object) (any, bool) {
		GinkgoHelper()
		obj := object("StandingSession")
		Expect(k8s.Get(ctx, key(s), obj)).To(Succeed())
		args, found, err := unstructured.NestedFieldNoCopy(obj.Object, "spec", "harnessArgs")
		Expect(err).NotTo(HaveOccurred())
		return args, found
	}

	DescribeTable("are kept as they are, omitted and empty apart", func(ctx context.Context, args []string, text string) {
		ns := newNamespace(ctx)

		By("written by Go")
		s := &api.StandingSession{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "go"},
			Spec:       api.StandingSessionSpec{HarnessArgs: args},
		}
		Expect(k8s.Create(ctx, s)).To(Succeed())
		got, found := stored(ctx, s)
		Expect(found).To(Equal(args != nil))
		if found {
			Expect(json.Marshal(got)).To(MatchJSON(text))
		}

		By("read by Go, and by its deep copy")
		var read api.StandingSession
		Expect(k8s.Get(ctx, key(s), &read)).To(Succeed())
		Expect(read.Spec.HarnessArgs).To(Equal(args))
		Expect(read.DeepCopy().Spec.HarnessArgs).To(Equal(args))

		By("updated by Go otherwise")
		read.Spec.Description = "changed"
		Expect(k8s.Update(ctx, &read)).To(Succeed())
		again, foundAgain := stored(ctx, s)
		Expect(foundAgain).To(Equal(found))
		Expect(mustJSON(again)).To(MatchJSON(mustJSON(got)))

		By("through the converter of server-side apply")
		converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
		Expect(err).NotTo(HaveOccurred())
		_, found, err = unstructured.NestedFieldNoCopy(converted, "spec", "harnessArgs")
		Expect(err).NotTo(HaveOccurred())
		Expect(found).To(Equal(args != nil))
		Expect(typed[api.StandingSession](&unstructured.Unstructured{Object: converted}).Spec.HarnessArgs).To(Equal(args))

		By("written as JSON")
		raw := object("StandingSession", `metadata: {name: raw}`)
		if text != "" {
			merge(raw.Object, content(`spec: {harnessArgs: `+text+`}`))
		}
		mustCreate(ctx, ns, raw)
		var fromJSON api.StandingSession
		Expect(k8s.Get(ctx, key(raw), &fromJSON)).To(Succeed())
		Expect(fromJSON.Spec.HarnessArgs).To(Equal(args))
	},
		Entry("omitted", NodeTimeout(time.Minute), nil, ""),
		Entry("empty", NodeTimeout(time.Minute), []string{}, `[]`),
		Entry("one empty argument", NodeTimeout(time.Minute), []string{""}, `[""]`),
		Entry("some", NodeTimeout(time.Minute), []string{"--model", "opus", "--model"}, `["--model", "opus", "--model"]`),
	)

	It("are omitted, not empty, when they are null", func(ctx context.Context) {
		s := object("StandingSession", `spec: {harnessArgs: [a]}`)
		mustCreate(ctx, newNamespace(ctx), s)
		Expect(patch(ctx, s, `spec: {harnessArgs: []}`)).To(Succeed())
		got, found := stored(ctx, s)
		Expect(found).To(BeTrue())
		Expect(got).To(BeEmpty())
		Expect(patch(ctx, s, `spec: {harnessArgs: null}`)).To(Succeed())
		_, found = stored(ctx, s)
		Expect(found).To(BeFalse())
	}, NodeTimeout(time.Minute))
})

var _ = Describe("the Go types", func() {
	It("round-trip false and zero of a class", func(ctx context.Context) {
		class := &api.SessionClass{
			ObjectMeta: metav1.ObjectMeta{Name: object("SessionClass").GetName()},
			Spec: api.SessionClassSpec{
				Harness: api.HarnessSpec{Name: "claude"},
				Tmux: api.TmuxPolicy{
					KeepSessionOnClose:      ptr.To(false),
					HarnessKillGraceSeconds: ptr.To[int32](0),
				},
				Announce: ptr.To(false),
			},
		}
		Expect(k8s.Create(ctx, class)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(k8s.Delete(ctx, class)).To(Succeed()) })
		var got api.SessionClass
		Expect(k8s.Get(ctx, key(class), &got)).To(Succeed())
		Expect(got.Spec.Tmux.KeepSessionOnClose).To(HaveValue(BeFalse()))
		Expect(got.Spec.Tmux.HarnessKillGraceSeconds).To(HaveValue(BeZero()))
		Expect(got.Spec.Announce).To(HaveValue(BeFalse()))
		Expect(got.Spec.Tmux.RemainOnExit).To(HaveValue(BeTrue()), "a default")
		Expect(got.Spec.Tmux.RetainedSecondsAfterClose).To(BeNil(), "none")
	}, NodeTimeout(time.Minute))

	It("round-trip autoStart false and true of a standing session", func(ctx context.Context) {
		ns := newNamespace(ctx)
		for name, auto := range map[string]bool{"no": false, "yes": true} {
			s := &api.StandingSession{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
				Spec:       api.StandingSessionSpec{AutoStart: ptr.To(auto)},
			}
			Expect(k8s.Create(ctx, s)).To(Succeed())
			var got api.StandingSession
			Expect(k8s.Get(ctx, key(s), &got)).To(Succeed())
			Expect(got.Spec.AutoStart).To(HaveValue(Equal(auto)))
		}
	}, NodeTimeout(time.Minute))

	It("know every field of the CRDs, and no other", func(ctx context.Context) {
		for kind, crd := range crds(ctx) {
			obj, err := scheme.Scheme.New(api.GroupVersion.WithKind(kind))
			Expect(err).NotTo(HaveOccurred())
			full := sample(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, "")
			Expect(runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(
				full.(map[string]any), obj, true)).To(Succeed(), kind)
			back, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
			Expect(err).NotTo(HaveOccurred())
			delete(back, "metadata")
			delete(full.(map[string]any), "metadata")
			Expect(json.Marshal(back)).To(MatchJSON(mustJSON(full)), kind)
		}
	}, NodeTimeout(time.Minute))
})
