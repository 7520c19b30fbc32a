package v1alpha1_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

// mighty lets somebody do everything that RBAC can say, so that it is the policy which
// refuses.
func mighty(ctx context.Context, w who) client.Client {
	GinkgoHelper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "mighty-" + rand.String(8)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: w.user}},
	}
	Expect(k8s.Create(ctx, binding)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { Expect(k8s.Delete(ctx, binding)).To(Succeed()) })
	Eventually(ctx, func() bool { return may(ctx, w, "create", "sessionmessages", "default") }).Should(BeTrue())
	return as(w)
}

// asPod is a client that acts as a pod of the agents' ServiceAccount on a node.
func asPod(node string) client.Client {
	GinkgoHelper()
	cfg := rest.CopyConfig(restConfig)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: agentPod.user, Groups: []string{"system:authenticated"}}
	if node != "" {
		cfg.Impersonate.Extra = map[string][]string{"authentication.kubernetes.io/node-name": {node}}
	}
	http, err := rest.HTTPClientFor(cfg)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(http.CloseIdleConnections)
	c, err := client.New(cfg, client.Options{HTTPClient: http, Mapper: k8s.RESTMapper()})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// said is a message with a source, and a label of its host unless that is "".
func said(ns, source, host string) *unstructured.Unstructured {
	GinkgoHelper()
	m := object("SessionMessage", `spec: {source: `+source+`}`)
	m.SetNamespace(ns)
	if host != "" {
		m.SetLabels(map[string]string{api.HostLabel: host})
	}
	return m
}

var _ = Describe("config/policy", Serial, func() {
	var ns string
	var agent client.Client

	BeforeEach(func(ctx context.Context) {
		for _, obj := range append(manifests("rbac/00_namespace.yaml"), manifests("policy/*.yaml")...) {
			Expect(k8s.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("test"), client.ForceOwnership)).
				To(Succeed(), "%s %s", obj.GetKind(), obj.GetName())
			if obj.GetKind() != "Namespace" {
				DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(k8s.Delete(ctx, obj))).To(Succeed()) })
			}
		}
		ns = newNamespace(ctx)
		agent = mighty(ctx, theAgent)
		mighty(ctx, agentPod)
		// A policy is enforced some time after it is stored.
		Eventually(ctx, func() error {
			return agent.Create(ctx, said(ns, `{type: Boot, actor: the-loop}`, "build2"), client.DryRunAll)
		}).Should(MatchError(apierrors.IsInvalid, "IsInvalid"))
		somebody := mighty(ctx, who{user: "somebody-" + rand.String(8)})
		Eventually(ctx, func() error {
			return somebody.Create(ctx, said(ns, `{actor: alice}`, ""), client.DryRunAll)
		}).Should(MatchError(apierrors.IsInvalid, "IsInvalid"))
	}, NodeTimeout(time.Minute))

	// bound is a session that a host has.
	bound := func(ctx context.Context, kind, host string) *unstructured.Unstructured {
		GinkgoHelper()
		s := object(kind, `spec: {hostName: `+host+`}`)
		mustCreate(ctx, ns, s)
		return s
	}
	status := func(c client.Client, ctx context.Context, obj *unstructured.Unstructured, patch string) error {
		return c.Status().Patch(ctx, obj.DeepCopy(), mergePatch(patch))
	}

	It("lets an agent write what belongs to its host", func(ctx context.Context) {
		for _, kind := range []string{"WorkItemSession", "StandingSession"} {
			s := bound(ctx, kind, "build1")
			Expect(status(agent, ctx, s, `status: {restarts: 3}`)).To(Succeed())
			Expect(agent.Patch(ctx, s, mergePatch(`metadata: {finalizers: [theloop.dev/session]}`))).To(Succeed())
			Expect(agent.Patch(ctx, s, mergePatch(`metadata: {finalizers: []}`))).To(Succeed())
		}
		boot := said(ns, `{type: Boot, actor: the-loop, id: boot/1}`, "build1")
		Expect(agent.Create(ctx, boot)).To(Succeed())
		Expect(status(agent, ctx, boot, `status: {sequence: 1, outcome: Queued}`)).To(Succeed())
		theirs := said(ns, `{actor: alice}`, "build1")
		Expect(k8s.Create(ctx, theirs)).To(Succeed())
		Expect(status(agent, ctx, theirs, `status: {sequence: 2, outcome: Held}`)).To(Succeed())

		host := &api.SessionHost{ObjectMeta: metav1.ObjectMeta{Name: "build1"}}
		Expect(agent.Create(ctx, host)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(k8s.Delete(ctx, host)).To(Succeed()) })
		Expect(agent.Status().Patch(ctx, host, mergePatch(`status: {agentVersion: "1"}`))).To(Succeed())
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: api.LeaseNamespace, Name: "build1"}}
		Expect(agent.Create(ctx, lease)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(k8s.Delete(ctx, lease)).To(Succeed()) })
		Expect(agent.Update(ctx, lease)).To(Succeed())
	}, NodeTimeout(time.Minute))

	It("refuses an agent what belongs to another host or to none, and says what it may write", func(ctx context.Context) {
		only := ContainSubstring("the agent of host build1 may write only what belongs to it: sessions with spec.hostName build1, " +
			"messages with the label theloop.dev/host=build1, and the SessionHost and the Lease build1; this one belongs to ")
		refuses := func(err error, belongs string) {
			GinkgoHelper()
			Expect(err).To(MatchError(And(only, ContainSubstring("belongs to "+belongs))))
		}
		for _, kind := range []string{"WorkItemSession", "StandingSession"} {
			s := bound(ctx, kind, "build2")
			refuses(status(agent, ctx, s, `status: {restarts: 3}`), "build2")
			refuses(agent.Patch(ctx, s.DeepCopy(), mergePatch(`metadata: {finalizers: [theloop.dev/session]}`)), "build2")
			free := object(kind)
			mustCreate(ctx, ns, free)
			refuses(status(agent, ctx, free, `status: {restarts: 3}`), "no host")
		}
		refuses(agent.Create(ctx, said(ns, `{type: Boot, actor: the-loop}`, "build2")), "build2")
		refuses(agent.Create(ctx, said(ns, `{type: Boot, actor: the-loop}`, "")), "no host")
		theirs := said(ns, `{}`, "build2")
		Expect(k8s.Create(ctx, theirs)).To(Succeed())
		refuses(status(agent, ctx, theirs, `status: {sequence: 2}`), "build2")
		refuses(agent.Patch(ctx, theirs.DeepCopy(), mergePatch(`metadata: {labels: {theloop.dev/host: build1}}`)), "build2")
		host := object("SessionHost")
		mustCreate(ctx, "", host)
		refuses(status(agent, ctx, host, `status: {agentVersion: "1"}`), host.GetName())
		refuses(agent.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: api.LeaseNamespace, Name: "build2"}}), "build2")
	}, NodeTimeout(time.Minute))

	It("refuses an agent that creates a session, changes what it should be, or speaks for a person", func(ctx context.Context) {
		spec := ContainSubstring("an agent may change the status and the finalizers of a session, and neither create one nor change its spec")
		mine := bound(ctx, "StandingSession", "build1")
		Expect(agent.Patch(ctx, mine.DeepCopy(), mergePatch(`spec: {state: Stopped}`))).To(MatchError(spec))
		other := object("StandingSession", `spec: {hostName: build1}`)
		other.SetNamespace(ns)
		Expect(agent.Create(ctx, other)).To(MatchError(spec))
		first := ContainSubstring("an agent may create first messages only: spec.source.type Boot with spec.source.actor the-loop")
		for _, source := range []string{`{type: Person, actor: the-loop}`, `{type: GitHub, actor: the-loop}`, `{type: Boot, actor: alice}`, `{type: Boot}`, `{}`} {
			Expect(agent.Create(ctx, said(ns, source, "build1"))).To(MatchError(first), source)
		}
	}, NodeTimeout(time.Minute))

	It("knows the host of a pod by its node, and refuses one that does not say", func(ctx context.Context) {
		mine, other := bound(ctx, "WorkItemSession", "build1"), bound(ctx, "WorkItemSession", "build2")
		Expect(status(asPod("build1"), ctx, mine, `status: {restarts: 3}`)).To(Succeed())
		Expect(status(asPod("build1"), ctx, other, `status: {restarts: 3}`)).To(MatchError(ContainSubstring("the agent of host build1 may write only")))
		Expect(status(asPod(""), ctx, mine, `status: {restarts: 4}`)).To(MatchError(ContainSubstring("the identity of this agent names no host: it must be the user theloop-agent:<host>")))
		astray := mighty(ctx, who{user: "build1", groups: theAgent.groups})
		Expect(status(astray, ctx, mine, `status: {restarts: 4}`)).To(MatchError(ContainSubstring("names no host")))
	}, NodeTimeout(time.Minute))

	It("lets people speak in their own name or in none, and in no other", func(ctx context.Context) {
		alice := who{user: "alice-" + rand.String(8)}
		c := mighty(ctx, alice)
		for _, source := range []string{`{}`, `{type: Person}`, `{actor: ` + alice.user + `}`, `{actor: ` + alice.user + `, type: Person, trust: Operator}`} {
			Expect(c.Create(ctx, said(ns, source, ""))).To(Succeed(), source)
		}
		Expect(c.Create(ctx, said(ns, `{actor: bob}`, ""))).To(MatchError(ContainSubstring(
			"spec.source.actor must be left out or be your own user name " + alice.user + ": only the ingress speaks in the name of others, and this message says bob")))
		Expect(c.Create(ctx, said(ns, `{actor: the-loop}`, ""))).To(MatchError(ContainSubstring("be your own user name")))
		for _, kind := range []string{"GitHub", "Slack", "System", "Boot"} {
			Expect(c.Create(ctx, said(ns, `{type: `+kind+`}`, ""))).To(MatchError(ContainSubstring(
				"spec.source.type must be left out or be Person: only programs of the-loop create messages of the type "+kind)), kind)
		}
	}, NodeTimeout(time.Minute))

	It("lets the ingress speak for others, the controller for itself, and a master as he likes", func(ctx context.Context) {
		for _, user := range []string{"theloop-ingress", "system:serviceaccount:theloop-system:theloop-ingress"} {
			ingress := mighty(ctx, who{user: user})
			for _, source := range []string{`{type: GitHub, actor: bob, trust: Untrusted}`, `{type: Slack, actor: U1}`, `{type: System}`, `{actor: bob}`} {
				Expect(ingress.Create(ctx, said(ns, source, ""))).To(Succeed(), "%s %s", user, source)
			}
		}
		controller := mighty(ctx, theController)
		Expect(controller.Create(ctx, said(ns, `{type: System, actor: the-loop}`, ""))).To(Succeed())
		Expect(controller.Create(ctx, said(ns, `{type: GitHub}`, ""))).To(MatchError(ContainSubstring("only programs of the-loop create messages of the type GitHub")))
		Expect(controller.Create(ctx, said(ns, `{actor: bob}`, ""))).To(MatchError(ContainSubstring("this message says bob")))
		Expect(k8s.Create(ctx, said(ns, `{type: GitHub, actor: bob}`, ""))).To(Succeed(), "the administrator of this suite is one of system:masters")
	}, NodeTimeout(time.Minute))

	It("leaves the leases of others alone", func(ctx context.Context) {
		c := mighty(ctx, who{user: "kubelet-" + rand.String(8)})
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "any"}}
		Expect(c.Create(ctx, lease)).To(Succeed())
		Expect(c.Update(ctx, lease)).To(Succeed())
	}, NodeTimeout(time.Minute))
})
