package v1alpha1_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

// names are what a kind is asked for by, as design and documents promise.
var names = map[string]struct {
	plural, singular string
	short            []string
}{
	"WorkItemSession": {"workitemsessions", "workitemsession", []string{"worksessions", "worksession", "wis"}},
	"StandingSession": {"standingsessions", "standingsession", []string{"standing"}},
	"SessionMessage":  {"sessionmessages", "sessionmessage", []string{"smsg"}},
	"SessionClass":    {"sessionclasses", "sessionclass", []string{"sclass"}},
	"SessionHost":     {"sessionhosts", "sessionhost", []string{"shost"}},
}

// maxCRDSize keeps the CRDs far below what etcd and an annotation of kubectl apply
// (262144 bytes) can hold.
const maxCRDSize = 200 << 10

var _ = Describe("the CRDs", func() {
	It("M10 are all established, with every name they ask for", func(ctx context.Context) {
		for kind, crd := range crds(ctx) {
			Expect(crdCondition(crd, apiextensionsv1.NamesAccepted)).To(Equal(apiextensionsv1.ConditionTrue), kind)
			Expect(crdCondition(crd, apiextensionsv1.Established)).To(Equal(apiextensionsv1.ConditionTrue), kind)
			Expect(crdCondition(crd, apiextensionsv1.NonStructuralSchema)).To(BeEmpty(), kind)
			Expect(crd.Status.AcceptedNames).To(Equal(crd.Spec.Names), kind)
		}
	}, NodeTimeout(time.Minute))

	It("resolve by plural, singular, short names and the category theloop, and not by all", func(ctx context.Context) {
		served := map[string]metav1.APIResource{}
		for _, r := range resources(ctx)[api.GroupVersion.String()] {
			if !strings.Contains(r.Name, "/") {
				served[r.Kind] = r
			}
		}
		Expect(slices.Sorted(maps.Keys(served))).To(Equal(kinds))
		for kind, want := range names {
			got := served[kind]
			Expect(got.Name).To(Equal(want.plural))
			Expect(got.SingularName).To(Equal(want.singular))
			Expect(got.ShortNames).To(Equal(want.short))
			Expect(got.Categories).To(Equal([]string{"theloop"}))
			Expect(got.Namespaced).To(Equal(!clusterScoped(kind)))
		}
	}, NodeTimeout(time.Minute))

	It("share no name with each other nor with anything that a cluster serves", func(ctx context.Context) {
		owners := map[string]string{}
		ours := 0
		for groupVersion, list := range resources(ctx) {
			group := strings.Split(groupVersion, "/")[0]
			for _, r := range list {
				if strings.Contains(r.Name, "/") {
					continue
				}
				owner := r.Kind + "." + group
				if group == api.GroupVersion.Group {
					ours++
				}
				for _, name := range append([]string{r.Name, r.SingularName}, r.ShortNames...) {
					taken := owners[name]
					clash := taken != "" && taken != owner &&
						(group == api.GroupVersion.Group || strings.HasSuffix(taken, "."+api.GroupVersion.Group))
					Expect(clash).To(BeFalse(), "%s is %s and %s", name, taken, owner)
					owners[name] = owner
				}
			}
		}
		Expect(ours).To(Equal(len(kinds)))
		Expect(len(owners)).To(BeNumerically(">", 50), "the names of a whole cluster")
	}, NodeTimeout(time.Minute))

	It("M10 a short name that one of ours has keeps another kind from being served", func(ctx context.Context) {
		rival := &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: "sesames.theloop.dev"},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: api.GroupVersion.Group,
				Scope: apiextensionsv1.NamespaceScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{
					Plural: "sesames", Singular: "sesame", Kind: "Sesame", ListKind: "SesameList", ShortNames: []string{"smsg"},
				},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: "v1alpha1", Served: true, Storage: true,
					Schema: &apiextensionsv1.CustomResourceValidation{
						OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"},
					},
				}},
			},
		}
		Expect(k8s.Create(ctx, rival)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(k8s.Delete(ctx, rival)).To(Succeed()) })
		Eventually(func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(rival), rival)).To(Succeed())
			g.Expect(crdCondition(rival, apiextensionsv1.NamesAccepted)).To(Equal(apiextensionsv1.ConditionFalse))
		}).WithContext(ctx).Should(Succeed())
		Expect(crdCondition(rival, apiextensionsv1.Established)).NotTo(Equal(apiextensionsv1.ConditionTrue))
		Expect(crdCondition(crds(ctx)["SessionMessage"], apiextensionsv1.Established)).To(Equal(apiextensionsv1.ConditionTrue))
	}, NodeTimeout(time.Minute))

	It("describe every field", func(ctx context.Context) {
		for kind, crd := range crds(ctx) {
			Expect(crd.Spec.Versions).To(HaveLen(1))
			schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
			Expect(schema.Description).To(HavePrefix(kind))
			bare, count := undescribed(schema, nil)
			Expect(bare).To(ConsistOf("metadata"), "fields of %s without a description", kind) // a cluster knows that one
			Expect(count).To(BeNumerically(">=", 8), kind)
		}
	}, NodeTimeout(time.Minute))

	It("describe it in lines that kubectl explain leaves as they are", func(ctx context.Context) {
		for kind, crd := range crds(ctx) {
			Expect(longLines(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, nil)).To(BeEmpty(), kind)
		}
	}, NodeTimeout(time.Minute))

	It("bound every text and every list, so that validation stays cheap", func(ctx context.Context) {
		for kind, crd := range crds(ctx) {
			schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
			for _, part := range []string{"spec", "status"} {
				props, ok := schema.Properties[part]
				if !ok {
					continue
				}
				Expect(unbounded(&props, []string{part})).To(BeEmpty(), "fields of %s without a bound", kind)
			}
		}
	}, NodeTimeout(time.Minute))

	It("keep conditions of several writers apart (M6): a list map by type", func(ctx context.Context) {
		for kind, crd := range crds(ctx) {
			status, ok := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
			if kind == "SessionClass" {
				Expect(ok).To(BeFalse(), "a class has no status")
				continue
			}
			Expect(crd.Spec.Versions[0].Subresources.Status).NotTo(BeNil(), kind)
			conditions := status.Properties["conditions"]
			Expect(conditions.XListType).To(HaveValue(Equal("map")), kind)
			Expect(conditions.XListMapKeys).To(Equal([]string{"type"}), kind)
		}
	}, NodeTimeout(time.Minute))

	It("are small", func(ctx context.Context) {
		files, err := filepath.Glob(filepath.Join(configDir, "crd", "bases", "*.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(files).To(HaveLen(len(kinds)))
		for _, file := range files {
			info, err := os.Stat(file)
			Expect(err).NotTo(HaveOccurred())
			Expect(info.Size()).To(BeNumerically("<", maxCRDSize), file)
		}
		for kind, crd := range crds(ctx) {
			body, err := json.Marshal(crd)
			Expect(err).NotTo(HaveOccurred())
			Expect(len(body)).To(BeNumerically("<", maxCRDSize), kind)
		}
	}, NodeTimeout(time.Minute))
})

// resources are all resources that the server has, by group and version.
func resources(ctx context.Context) map[string][]metav1.APIResource {
	GinkgoHelper()
	d, err := discovery.NewDiscoveryClientForConfigAndClient(restConfig, transport)
	Expect(err).NotTo(HaveOccurred())
	byVersion := map[string][]metav1.APIResource{}
	Eventually(func(g Gomega) { // discovery follows the CRDs with a delay
		_, lists, err := d.ServerGroupsAndResources()
		g.Expect(err).NotTo(HaveOccurred())
		clear(byVersion)
		for _, list := range lists {
			byVersion[list.GroupVersion] = list.APIResources
		}
		ours := map[string]bool{}
		for _, r := range byVersion[api.GroupVersion.String()] {
			ours[r.Kind] = true
		}
		g.Expect(slices.Sorted(maps.Keys(ours))).To(Equal(kinds))
	}).WithContext(ctx).Should(Succeed())
	return byVersion
}

// undescribed are the paths of the fields without a description, and how many
// fields there are.
func undescribed(schema *apiextensionsv1.JSONSchemaProps, path []string) (bare []string, count int) {
	for name, field := range schema.Properties {
		here := append(slices.Clone(path), name)
		if strings.TrimSpace(field.Description) == "" {
			bare = append(bare, strings.Join(here, "."))
		}
		below, n := undescribed(&field, here)
		bare, count = append(bare, below...), count+n+1
	}
	for _, items := range children(schema) {
		below, n := undescribed(items, path)
		bare, count = append(bare, below...), count+n
	}
	return bare, count
}

// explainWidth is where kubectl explain breaks the lines of a description; one that
// is longer ends in a line of a word or two.
const explainWidth = 76

// longLines are the lines of our descriptions that kubectl explain would break.
func longLines(schema *apiextensionsv1.JSONSchemaProps, path []string) (long []string) {
	if len(path) == 0 || len(path) == 1 && slices.Contains([]string{"apiVersion", "kind", "metadata"}, path[0]) ||
		slices.Contains(path, "hostSelector") && len(path) > 2 || slices.Contains(path, "conditions") && len(path) > 2 {
		// types of Kubernetes
	} else {
		for line := range strings.Lines(schema.Description) {
			if line = strings.TrimRight(line, "\n"); len(line) > explainWidth {
				long = append(long, strings.Join(path, ".")+": "+line)
			}
		}
	}
	for name, field := range schema.Properties {
		long = append(long, longLines(&field, append(slices.Clone(path), name))...)
	}
	for _, items := range children(schema) {
		long = append(long, longLines(items, append(slices.Clone(path), "[]"))...)
	}
	return long
}

// unbounded are the paths of the texts and lists of ours without a maximum.
func unbounded(schema *apiextensionsv1.JSONSchemaProps, path []string) (open []string) {
	switch {
	case slices.Contains(path, "hostSelector"): // a type of Kubernetes
		return nil
	case schema.Type == "array" && schema.MaxItems == nil,
		schema.Type == "string" && schema.MaxLength == nil && len(schema.Enum) == 0 && schema.Format == "":
		open = append(open, strings.Join(path, "."))
	case schema.AdditionalProperties != nil:
		open = append(open, strings.Join(path, "."))
	}
	for name, field := range schema.Properties {
		open = append(open, unbounded(&field, append(slices.Clone(path), name))...)
	}
	for _, items := range children(schema) {
		open = append(open, unbounded(items, append(slices.Clone(path), "[]"))...)
	}
	return open
}

// children are the schemas of what a list or a map holds.
func children(schema *apiextensionsv1.JSONSchemaProps) (nested []*apiextensionsv1.JSONSchemaProps) {
	if schema.Items != nil && schema.Items.Schema != nil {
		nested = append(nested, schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		nested = append(nested, schema.AdditionalProperties.Schema)
	}
	return nested
}
