package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/config"
)

// fieldOwner of what `up` applies.
const fieldOwner client.FieldOwner = "the-loop-up"

// manifests reads every object of the embedded files that match.
func manifests(pattern string) ([]*unstructured.Unstructured, error) {
	files, err := fs.Glob(config.Manifests, pattern)
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	var out []*unstructured.Unstructured
	for _, name := range files {
		data, err := config.Manifests.ReadFile(name)
		if err != nil {
			return nil, err
		}
		dec := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
		for {
			u := &unstructured.Unstructured{}
			if err := dec.Decode(u); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("manifest %s: %w", name, err)
			}
			if len(u.Object) > 0 {
				out = append(out, u)
			}
		}
	}
	return out, nil
}

// install applies the CRDs, the roles and the admission policies, and waits until every kind is served.
func install(ctx context.Context, c client.Client) error {
	var crds []string
	for _, pattern := range []string{"crd/bases/*.yaml", "rbac/*.yaml", "policy/*.yaml"} {
		objs, err := manifests(pattern)
		if err != nil {
			return err
		}
		for _, u := range objs {
			if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), fieldOwner, client.ForceOwnership); err != nil {
				return fmt.Errorf("applying %s %s: %w", u.GetKind(), u.GetName(), err)
			}
			if u.GetKind() == "CustomResourceDefinition" {
				crds = append(crds, u.GetName())
			}
		}
	}
	for _, name := range crds {
		if err := established(ctx, c, name); err != nil {
			return err
		}
	}
	return nil
}

// established waits until a CRD is served.
func established(ctx context.Context, c client.Client, name string) error {
	last := "it has no conditions yet"
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		for _, cond := range crd.Status.Conditions {
			if cond.Status != apiextensionsv1.ConditionTrue {
				last = string(cond.Type) + ": " + cond.Message
			}
			if cond.Type == apiextensionsv1.Established && cond.Status == apiextensionsv1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("the CRD %s is not served (%s): %w", name, last, err)
	}
	return nil
}

// demoHarness is the harness that stands in where no real one is installed.
const demoHarness = "fakeharness"

// demoClass is the class that runs it.
const demoClass = "demo"

// defaultClass creates a default SessionClass where there is none. Without a real
// harness on PATH it runs the demo harness that was built with the program.
func defaultClass(ctx context.Context, c client.Client, binDir string) (string, error) {
	var list api.SessionClassList
	if err := c.List(ctx, &list, client.MatchingLabels{api.DefaultClassLabel: "true"}); err != nil {
		return "", err
	}
	if len(list.Items) > 0 {
		return list.Items[0].Name, nil
	}
	class := &api.SessionClass{
		ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{api.DefaultClassLabel: "true"}},
		Spec:       api.SessionClassSpec{Harness: api.HarnessSpec{Name: "claude"}},
	}
	if _, err := exec.LookPath("claude"); err != nil {
		demo := filepath.Join(binDir, demoHarness)
		if _, err := exec.LookPath(demo); err != nil {
			return "", fmt.Errorf("neither claude is on PATH nor the demo harness at %s: install Claude Code, or run make build", demo)
		}
		class.Name, class.Spec.Harness.Binary = demoClass, demo
		// The configuration of a harness that is not there is nobody's to write.
		class.Spec.Trust.Enabled = new(false)
	}
	if err := c.Create(ctx, class, fieldOwner); err != nil && !apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("creating SessionClass %s: %w", class.Name, err)
	}
	return class.Name, nil
}

// sample creates the sample session unless it is there already: a later `up` must not
// undo what a person did to it.
func sample(ctx context.Context, c client.Client) (client.ObjectKey, error) {
	objs, err := manifests("samples/standingsession.yaml")
	if err != nil {
		return client.ObjectKey{}, err
	}
	u := objs[0]
	if err := c.Create(ctx, u, fieldOwner); err != nil && !apierrors.IsAlreadyExists(err) {
		return client.ObjectKey{}, fmt.Errorf("creating the sample StandingSession: %w", err)
	}
	return client.ObjectKeyFromObject(u), nil
}
