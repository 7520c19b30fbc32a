package v1alpha1_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sample is a value that a schema describes, with every field set to something
// other than its zero value.
func sample(schema *apiextensionsv1.JSONSchemaProps, name string) any {
	switch {
	case schema.XIntOrString: // a quantity
		return "1"
	case len(schema.Enum) > 0:
		var value any
		Expect(json.Unmarshal(schema.Enum[0].Raw, &value)).To(Succeed())
		return value
	}
	switch schema.Type {
	case "object":
		if schema.AdditionalProperties != nil {
			return map[string]any{"key": sample(schema.AdditionalProperties.Schema, name)}
		}
		fields := map[string]any{}
		for name, field := range schema.Properties {
			fields[name] = sample(&field, name)
		}
		return fields
	case "array":
		return []any{sample(schema.Items.Schema, name)}
	case "boolean":
		return true
	case "integer":
		return int64(3)
	}
	if schema.Format == "date-time" {
		if slices.Contains([]string{"acceptedTime", "deliveredTime", "finishedTime", "time"}, name) {
			return "2026-01-02T03:04:05.000006Z"
		}
		return "2026-01-02T03:04:05Z"
	}
	return name
}

func mustJSON(value any) []byte {
	GinkgoHelper()
	text, err := json.Marshal(value)
	Expect(err).NotTo(HaveOccurred())
	return text
}

var _ = Describe("config/samples", func() {
	It("are accepted by kubectl create with strict validation, as a dry run of the server", func(ctx context.Context) {
		out := kubectlOK(ctx, "create", "--dry-run=server", "--validate=strict", "-o", "name",
			"-f", filepath.Join(configDir, "samples"))
		Expect(out).To(ContainSubstring("standingsession.theloop.dev/hello\n"))
		Expect(out).To(ContainSubstring("workitemsession.theloop.dev/github-octo-repo-15\n"))
		Expect(out).To(ContainSubstring("sessionclass.theloop.dev/default\n"))
		Expect(out).To(MatchRegexp(`sessionmessage\.theloop\.dev/hello-[a-z0-9]{5}\n`))
	}, NodeTimeout(time.Minute))

	It("are created, in a namespace of one's own too", func(ctx context.Context) {
		ns := newNamespace(ctx)
		seen := map[string]bool{}
		for _, obj := range manifests("samples/*.yaml") {
			kind := obj.GetKind()
			seen[kind] = true
			if clusterScoped(kind) { // others may have a class of that name
				obj.SetName(object(kind).GetName())
			} else {
				Expect(obj.GetNamespace()).To(Equal("default"), kind)
			}
			mustCreate(ctx, ns, obj)
			Expect(obj.GetUID()).NotTo(BeEmpty())
		}
		Expect(seen).To(HaveLen(len(kinds)-1), "all but the SessionHost, which the agent creates")
		Expect(seen).NotTo(HaveKey("SessionHost"))
	}, NodeTimeout(time.Minute))

	It("fit together: the message is for the sample of a session, the class is the default", func() {
		byKind := map[string]*unstructured.Unstructured{}
		for _, obj := range manifests("samples/*.yaml") {
			byKind[obj.GetKind()] = obj
		}
		Expect(at(byKind["SessionMessage"], "spec", "sessionRef", "kind")).To(Equal("StandingSession"))
		Expect(at(byKind["SessionMessage"], "spec", "sessionRef", "name")).To(Equal(byKind["StandingSession"].GetName()))
		Expect(byKind["SessionMessage"].GetNamespace()).To(Equal(byKind["StandingSession"].GetNamespace()))
		Expect(byKind["SessionClass"].GetLabels()).To(HaveKeyWithValue("theloop.dev/default-class", "true"))
	})

	It("can be applied again and again, but for the message, which is said once each time it is created", func(ctx context.Context) {
		ns := newNamespace(ctx)
		for _, obj := range manifests("samples/*.yaml") {
			if obj.GetKind() == "SessionMessage" {
				Expect(obj.GetGenerateName()).NotTo(BeEmpty())
				continue
			}
			if clusterScoped(obj.GetKind()) {
				obj.SetName(object(obj.GetKind()).GetName())
				DeferCleanup(func(ctx context.Context) { Expect(k8s.Delete(ctx, obj)).To(Succeed()) })
			} else {
				obj.SetNamespace(ns)
			}
			versions := map[string]bool{}
			for range 2 {
				again := obj.DeepCopy()
				Expect(k8s.Apply(ctx, client.ApplyConfigurationFromUnstructured(again), client.FieldOwner("test"))).To(Succeed())
				versions[again.GetResourceVersion()] = true
			}
			Expect(versions).To(HaveLen(1), obj.GetKind())
		}
	}, NodeTimeout(time.Minute))
})
