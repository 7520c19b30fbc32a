package v1alpha1_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// who asks: a user and its groups.
type who struct {
	user   string
	groups []string
}

var (
	theController = who{user: "theloop-controller"}
	theAgent      = who{user: "theloop-agent:build1", groups: []string{"theloop:agents"}}
	agentPod      = who{user: "system:serviceaccount:theloop-system:theloop-agent"}
)

// may asks the server whether somebody may do a verb to "resource[/subresource]",
// in the form [group:]resource; the group of ours is the default.
func may(ctx context.Context, w who, verb, resource, ns string) bool {
	GinkgoHelper()
	attrs := authorizationv1.ResourceAttributes{Verb: verb, Group: "theloop.dev", Version: "*", Namespace: ns}
	if group, rest, ok := strings.Cut(resource, ":"); ok {
		attrs.Group, resource = group, rest
	}
	attrs.Resource, attrs.Subresource, _ = strings.Cut(resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: &attrs, User: w.user, Groups: append(slices.Clone(w.groups), "system:authenticated"),
	}}
	Expect(k8s.Create(ctx, review)).To(Succeed())
	return review.Status.Allowed
}

// as is a client that acts as somebody.
func as(w who) client.Client {
	GinkgoHelper()
	cfg := rest.CopyConfig(restConfig)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: w.user, Groups: append(slices.Clone(w.groups), "system:authenticated")}
	http, err := rest.HTTPClientFor(cfg)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(http.CloseIdleConnections)
	c, err := client.New(cfg, client.Options{HTTPClient: http, Mapper: k8s.RESTMapper()})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// aggregated are our roles that a cluster adds to its role view, edit or admin: by
// its own selectors, which go through each other.
func aggregated(ctx context.Context, name string) []string {
	GinkgoHelper()
	var roles rbacv1.ClusterRoleList
	Expect(k8s.List(ctx, &roles)).To(Succeed())
	byName := map[string]rbacv1.ClusterRole{}
	for _, role := range roles.Items {
		byName[role.Name] = role
	}
	found := map[string]bool{}
	var walk func(name string)
	walk = func(name string) {
		rule := byName[name].AggregationRule
		if found[name] || rule == nil {
			found[name] = true
			return
		}
		found[name] = true
		for _, selector := range rule.ClusterRoleSelectors {
			sel, err := metav1.LabelSelectorAsSelector(&selector)
			Expect(err).NotTo(HaveOccurred())
			for _, role := range roles.Items {
				if sel.Matches(labels.Set(role.Labels)) {
					walk(role.Name)
				}
			}
		}
	}
	walk(name)
	var ours []string
	for role := range found {
		if strings.HasPrefix(role, "theloop-") {
			ours = append(ours, role)
		}
	}
	slices.Sort(ours)
	return ours
}

// person is a fresh user with what our roles add to a role of the cluster. The
// controller that adds them up is not part of an API server, so they are bound one
// by one.
func person(ctx context.Context, role string) who {
	GinkgoHelper()
	w := who{user: role + "-" + rand.String(8)}
	ours := aggregated(ctx, role)
	Expect(ours).NotTo(BeEmpty())
	for _, name := range ours {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: w.user + "-" + name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: w.user}},
		}
		Expect(k8s.Create(ctx, binding)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(k8s.Delete(ctx, binding)).To(Succeed()) })
	}
	Eventually(ctx, func() bool { return may(ctx, w, "list", "standingsessions", "default") }).Should(BeTrue())
	return w
}

const (
	reading  = "get list watch"
	writing  = "create update patch delete deletecollection"
	sessions = "workitemsessions standingsessions"
)

var _ = Describe("config/rbac", func() {
	BeforeEach(func(ctx context.Context) {
		objs := manifests("rbac/*.yaml")
		slices.SortStableFunc(objs, func(a, b *unstructured.Unstructured) int { return order(a) - order(b) })
		for _, obj := range objs {
			Expect(k8s.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("test"), client.ForceOwnership)).
				To(Succeed(), "%s %s", obj.GetKind(), obj.GetName())
		}
		Eventually(ctx, func() bool { return may(ctx, theController, "list", "sessionhosts", "") }).Should(BeTrue())
		Eventually(ctx, func() bool { return may(ctx, theAgent, "list", "sessionclasses", "") }).Should(BeTrue())
		Eventually(ctx, func() bool { return may(ctx, theAgent, "update", "coordination.k8s.io:leases", "theloop-system") }).Should(BeTrue())
		Eventually(ctx, func() bool { return may(ctx, theController, "list", "coordination.k8s.io:leases", "theloop-system") }).Should(BeTrue())
	}, NodeTimeout(time.Minute))

	It("adds the viewer's role to view, edit and admin, the editor's to edit and admin, the admin's to admin", func(ctx context.Context) {
		Expect(aggregated(ctx, "view")).To(Equal([]string{"theloop-viewer"}))
		Expect(aggregated(ctx, "edit")).To(Equal([]string{"theloop-editor", "theloop-viewer"}))
		Expect(aggregated(ctx, "admin")).To(Equal([]string{"theloop-admin", "theloop-editor", "theloop-viewer"}))
	}, NodeTimeout(time.Minute))

	It("lets people do what their role says, and no more", func(ctx context.Context) {
		viewer, editor, admin := person(ctx, "view"), person(ctx, "edit"), person(ctx, "admin")
		everything := sessions + " sessionmessages sessionclasses sessionhosts"
		for _, w := range []who{viewer, editor, admin} {
			expectMay(ctx, w, reading, everything, "default")
			expectMayNot(ctx, w, "patch update", "workitemsessions/status standingsessions/status sessionmessages/status sessionhosts/status", "default")
		}
		expectMayNot(ctx, viewer, writing, everything, "default")

		expectMay(ctx, editor, writing, sessions+" sessionmessages", "default")
		expectMayNot(ctx, editor, writing, "sessionclasses sessionhosts", "")

		expectMay(ctx, admin, writing, everything, "default")

		nobody := who{user: "nobody-" + rand.String(8)}
		expectMayNot(ctx, nobody, reading+" "+writing, everything, "default")
	}, NodeTimeout(2*time.Minute))

	It("refuses a viewer who speaks, and lets an editor", func(ctx context.Context) {
		viewer, editor := person(ctx, "view"), person(ctx, "edit")
		msg := object("SessionMessage")
		msg.SetNamespace("default")
		err := as(viewer).Create(ctx, msg)
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		Expect(err.Error()).To(ContainSubstring(`cannot create resource "sessionmessages"`))
		expectAbsent(ctx, msg)

		Expect(as(editor).Create(ctx, msg)).To(Succeed())
		Expect(as(viewer).Get(ctx, key(msg), msg)).To(Succeed())
		class := object("SessionClass")
		err = as(editor).Create(ctx, class)
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
	}, NodeTimeout(time.Minute))

	It("lets an admin edit classes and hosts", func(ctx context.Context) {
		admin := as(person(ctx, "admin"))
		class := object("SessionClass")
		Expect(admin.Create(ctx, class)).To(Succeed())
		Expect(admin.Patch(ctx, class, mergePatch(`spec: {permissions: Deny}`))).To(Succeed())
		Expect(admin.Delete(ctx, class)).To(Succeed())
		host := object("SessionHost")
		mustCreate(ctx, "", host)
		Expect(admin.Patch(ctx, host, mergePatch(`spec: {scheduling: Draining}`))).To(Succeed())
	}, NodeTimeout(time.Minute))

	It("gives the agent what it needs, in a cluster and without one", func(ctx context.Context) {
		for _, w := range []who{theAgent, agentPod} {
			expectMay(ctx, w, "get list watch patch", sessions, "default")
			expectMay(ctx, w, "get list watch create", "sessionmessages", "default")
			expectMay(ctx, w, "get list watch", "sessionclasses", "")
			expectMay(ctx, w, "get list watch create", "sessionhosts", "")
			expectMay(ctx, w, "patch", "workitemsessions/status standingsessions/status sessionmessages/status sessionhosts/status", "default")
			expectMay(ctx, w, "get create update", "coordination.k8s.io:leases", "theloop-system")
			expectMay(ctx, w, "get", ":configmaps", "default")
			expectMay(ctx, w, "create", "events.k8s.io:events", "default")
		}
	}, NodeTimeout(time.Minute))

	It("gives the agent no more than that", func(ctx context.Context) {
		for _, w := range []who{theAgent, agentPod} {
			expectMayNot(ctx, w, "create delete deletecollection update", sessions, "default")
			expectMayNot(ctx, w, "delete deletecollection update patch", "sessionmessages", "default")
			expectMayNot(ctx, w, writing, "sessionclasses", "")
			expectMayNot(ctx, w, "delete deletecollection update patch", "sessionhosts", "")
			expectMayNot(ctx, w, reading+" "+writing, ":secrets", "default")
			expectMayNot(ctx, w, reading+" "+writing, ":secrets", "theloop-system")
			expectMayNot(ctx, w, "list watch "+writing, ":configmaps", "default")
			expectMayNot(ctx, w, reading+" "+writing, "coordination.k8s.io:leases", "kube-system")
			expectMayNot(ctx, w, reading+" "+writing, ":pods :nodes :namespaces :serviceaccounts", "default")
			expectMayNot(ctx, w, "create", ":pods/exec :serviceaccounts/token", "default")
			expectMayNot(ctx, w, "impersonate", ":users :groups", "")
			expectMayNot(ctx, w, "bind escalate "+writing, "rbac.authorization.k8s.io:clusterroles rbac.authorization.k8s.io:clusterrolebindings", "")
		}
	}, NodeTimeout(time.Minute))

	It("refuses an agent that deletes a session or reads a secret", func(ctx context.Context) {
		agent := as(theAgent)
		session := object("StandingSession")
		mustCreate(ctx, newNamespace(ctx), session)
		err := agent.Delete(ctx, session.DeepCopy())
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		Expect(k8s.Get(ctx, key(session), session)).To(Succeed())
		err = agent.List(ctx, &corev1.SecretList{})
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
	}, NodeTimeout(time.Minute))

	It("gives the controller what it needs and no more", func(ctx context.Context) {
		for _, w := range []who{theController, {user: "system:serviceaccount:theloop-system:theloop-controller"}} {
			expectMay(ctx, w, "get list watch patch", sessions, "default")
			expectMay(ctx, w, "get list watch patch delete", "sessionmessages", "default")
			expectMay(ctx, w, "get list watch", "sessionhosts", "")
			expectMay(ctx, w, "patch", "workitemsessions/status standingsessions/status sessionmessages/status sessionhosts/status", "default")
			expectMay(ctx, w, "delete", "workitemsessions", "default") // those of pull requests, with their work item's
			expectMayNot(ctx, w, "create deletecollection update", sessions, "default")
			expectMayNot(ctx, w, "delete", "standingsessions", "default")
			expectMayNot(ctx, w, "create deletecollection update", "sessionmessages", "default")
			expectMayNot(ctx, w, writing, "sessionclasses sessionhosts", "")
			expectMayNot(ctx, w, reading+" "+writing, ":secrets", "default")
			expectMayNot(ctx, w, reading+" "+writing, ":secrets", "theloop-system")
		}
	}, NodeTimeout(time.Minute))

	It("has no wildcard and names its own groups only", func() {
		for _, obj := range manifests("rbac/*.yaml") {
			text := fmt.Sprint(obj.Object)
			Expect(text).NotTo(ContainSubstring("*"), obj.GetName())
			Expect(text).NotTo(ContainSubstring("secrets"), obj.GetName())
			if obj.GetKind() != "Namespace" {
				Expect(obj.GetName()).To(HavePrefix("theloop-"))
			}
		}
	})
})

// order puts the namespace before what is in it.
func order(obj *unstructured.Unstructured) int {
	if obj.GetKind() == "Namespace" {
		return 0
	}
	return 1
}

func expectMay(ctx context.Context, w who, verbs, resources, ns string) {
	GinkgoHelper()
	check(ctx, w, verbs, resources, ns, true)
}

func expectMayNot(ctx context.Context, w who, verbs, resources, ns string) {
	GinkgoHelper()
	check(ctx, w, verbs, resources, ns, false)
}

func check(ctx context.Context, w who, verbs, resources, ns string, want bool) {
	GinkgoHelper()
	for _, resource := range strings.Fields(resources) {
		for _, verb := range strings.Fields(verbs) {
			Expect(may(ctx, w, verb, resource, ns)).To(Equal(want), "%s may %s %s in %q: %v", w.user, verb, resource, ns, want)
		}
	}
}
