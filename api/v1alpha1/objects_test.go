package v1alpha1_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// minimal is the least that each kind can be created from.
var minimal = map[string]string{
	"WorkItemSession": `spec: {workItem: {provider: github, owner: octo, repo: repo, number: 15}}`,
	"StandingSession": `spec: {}`,
	"SessionMessage":  `spec: {sessionRef: {kind: StandingSession, name: hello}, text: hi}`,
	"SessionClass":    `spec: {harness: {name: claude}}`,
	"SessionHost":     `{}`,
}

// kinds are all kinds of the group, sorted.
var kinds = slices.Sorted(maps.Keys(minimal))

func clusterScoped(kind string) bool { return kind == "SessionClass" || kind == "SessionHost" }

// newNamespace is the name of a fresh namespace.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "api-"}}
	Expect(k8s.Create(ctx, ns)).To(Succeed())
	return ns.Name
}

// object is the minimal object of a kind under a fresh name with some parts
// replaced: each change is YAML that is merged into it like a JSON merge patch,
// null removing a field. It is in no namespace yet.
func object(kind string, changes ...string) *unstructured.Unstructured {
	GinkgoHelper()
	obj := map[string]any{
		"apiVersion": "theloop.dev/v1alpha1",
		"kind":       kind,
		"metadata":   map[string]any{"name": "x" + rand.String(10)},
	}
	for _, change := range append([]string{minimal[kind]}, changes...) {
		merge(obj, content(change))
	}
	return &unstructured.Unstructured{Object: obj}
}

// content reads YAML with the types that an unstructured object holds.
func content(text string) map[string]any {
	GinkgoHelper()
	got := map[string]any{}
	Expect(yaml.Unmarshal([]byte(text), &got)).To(Succeed(), text)
	return got
}

func merge(into, change map[string]any) {
	for key, value := range change {
		nested, isMap := value.(map[string]any)
		old, hasMap := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isMap && hasMap:
			merge(old, nested)
		default:
			into[key] = value
		}
	}
}

// create creates the object in the namespace, if its kind has one, and removes it
// with the spec if it has none.
func create(ctx context.Context, ns string, obj *unstructured.Unstructured) error {
	GinkgoHelper()
	if !clusterScoped(obj.GetKind()) {
		obj.SetNamespace(ns)
		return k8s.Create(ctx, obj)
	}
	err := k8s.Create(ctx, obj)
	if err == nil {
		DeferCleanup(func(ctx context.Context) {
			Expect(client.IgnoreNotFound(k8s.Delete(ctx, obj))).To(Succeed())
		})
	}
	return err
}

// mustCreate is create for an object that is fine.
func mustCreate(ctx context.Context, ns string, obj *unstructured.Unstructured) {
	GinkgoHelper()
	Expect(create(ctx, ns, obj)).To(Succeed())
}

// patch sends the YAML as a JSON merge patch.
func patch(ctx context.Context, obj client.Object, text string) error {
	GinkgoHelper()
	return k8s.Patch(ctx, obj, mergePatch(text))
}

func mergePatch(text string) client.Patch {
	GinkgoHelper()
	body, err := json.Marshal(content(text))
	Expect(err).NotTo(HaveOccurred(), text)
	return client.RawPatch(types.MergePatchType, body)
}

// setStatus merges the YAML into the object's status.
func setStatus(ctx context.Context, obj client.Object, text string) {
	GinkgoHelper()
	Expect(k8s.Status().Patch(ctx, obj, mergePatch(text))).To(Succeed())
}

// expectRefused: the request was refused by validation, in these words.
func expectRefused(err error, words ...string) {
	GinkgoHelper()
	Expect(err).To(HaveOccurred(), "was accepted")
	Expect(apierrors.IsInvalid(err)).To(BeTrue(), "refused by validation: %v", err)
	for _, w := range words {
		Expect(err.Error()).To(ContainSubstring(w))
	}
}

// expectAbsent: nothing is left of the object.
func expectAbsent(ctx context.Context, obj *unstructured.Unstructured) {
	GinkgoHelper()
	if obj.GetName() == "" || strings.ContainsAny(obj.GetName(), "/%") || obj.GetName() == "." {
		return // cannot be asked for
	}
	err := k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj.DeepCopy())
	Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
}

// typed converts an object to its Go type.
func typed[T any](obj *unstructured.Unstructured) *T {
	GinkgoHelper()
	var t T
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &t)).To(Succeed())
	return &t
}

// at is the value at a path of fields, nil when there is none.
func at(obj *unstructured.Unstructured, path ...string) any {
	GinkgoHelper()
	value, _, err := unstructured.NestedFieldNoCopy(obj.Object, path...)
	Expect(err).NotTo(HaveOccurred())
	return value
}

// manifests are the objects of the files that match the pattern under config.
func manifests(pattern string) []*unstructured.Unstructured {
	GinkgoHelper()
	files, err := filepath.Glob(filepath.Join(configDir, pattern))
	Expect(err).NotTo(HaveOccurred())
	Expect(files).NotTo(BeEmpty(), pattern)
	var objs []*unstructured.Unstructured
	for _, file := range files {
		text, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		for _, doc := range strings.Split(string(text), "\n---\n") {
			if got := content(strings.TrimPrefix(doc, "---\n")); len(got) > 0 {
				objs = append(objs, &unstructured.Unstructured{Object: got})
			}
		}
	}
	return objs
}

// crds are the CRDs of the group as the server has them, by kind.
func crds(ctx context.Context) map[string]*apiextensionsv1.CustomResourceDefinition {
	GinkgoHelper()
	var list apiextensionsv1.CustomResourceDefinitionList
	Expect(k8s.List(ctx, &list)).To(Succeed())
	byKind := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for i := range list.Items {
		if crd := &list.Items[i]; minimal[crd.Spec.Names.Kind] != "" {
			byKind[crd.Spec.Names.Kind] = crd
		}
	}
	Expect(slices.Sorted(maps.Keys(byKind))).To(Equal(kinds))
	return byKind
}

// crdCondition is the status of a CRD's condition, "" when it has none.
func crdCondition(crd *apiextensionsv1.CustomResourceDefinition, t apiextensionsv1.CustomResourceDefinitionConditionType) apiextensionsv1.ConditionStatus {
	for _, c := range crd.Status.Conditions {
		if c.Type == t {
			return c.Status
		}
	}
	return ""
}

func key(obj client.Object) client.ObjectKey { return client.ObjectKeyFromObject(obj) }
