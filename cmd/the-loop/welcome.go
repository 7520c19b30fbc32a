package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

// welcome waits for the sample session and shows a person what there is and how to go
// on. A sample that does not become ready is told, and ends nothing.
func (o *upOptions) welcome(ctx context.Context, c *connection, admin client.WithWatch, out io.Writer) error {
	attach, word := "", "Ready"
	if o.sample {
		key, err := sample(ctx, admin)
		if err != nil {
			return ignoreStop(ctx, err)
		}
		s, err := awaitReady(ctx, admin, key, o.readyWithin)
		if err != nil {
			return ignoreStop(ctx, err)
		}
		attach = s.Status.AttachCommand
		if ready := meta.FindStatusCondition(s.Status.Conditions, api.ConditionReady); !meta.IsStatusConditionTrue(s.Status.Conditions, api.ConditionReady) {
			why := "nothing is known of it yet"
			if ready != nil {
				why = ready.Reason + ": " + ready.Message
			}
			fmt.Fprintf(out, "\nStandingSession %s is not ready: %s\n", key, why)
			word = "Up"
		}
	}
	fmt.Fprintln(out)
	if err := printStanding(ctx, c.admin, out); err != nil {
		return ignoreStop(ctx, err)
	}
	if attach != "" {
		fmt.Fprintf(out, "\nAttach (leave with Ctrl-b d):\n    %s\n", attach)
	}
	kubectl := "kubectl"
	if _, err := exec.LookPath(kubectl); err != nil && o.controlPlaneDir != "" {
		kubectl = filepath.Join(o.controlPlaneDir, "kubectl")
	}
	fmt.Fprintf(out, "\nWork with it from another shell:\n    export KUBECONFIG=%s\n    %s get theloop\n\n%s. Ctrl-C stops the-loop and leaves the sessions running; the-loop down ends everything.\n", c.kubeconfig, kubectl, word)
	return nil
}

// awaitReady waits until the session is ready, and returns how it stands then or when
// the time is over.
func awaitReady(ctx context.Context, c client.WithWatch, key types.NamespacedName, within time.Duration) (*api.StandingSession, error) {
	last := &api.StandingSession{}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		w, err := c.Watch(ctx, &api.StandingSessionList{}, client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name})
		if err != nil {
			return last, err
		}
		ready := follow(w, last)
		w.Stop()
		if ready || ctx.Err() != nil {
			return last, nil
		}
	}
}

// follow copies what a watch shows into last until the session is ready.
func follow(w watch.Interface, last *api.StandingSession) bool {
	for e := range w.ResultChan() {
		s, ok := e.Object.(*api.StandingSession)
		if !ok {
			continue
		}
		s.DeepCopyInto(last)
		// A session that is meant to be stopped is ready, too, once it is.
		c := meta.FindStatusCondition(s.Status.Conditions, api.ConditionReady)
		if c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == s.Generation {
			return true
		}
	}
	return false
}

// printStanding prints the table of `kubectl get standing`, as the server makes it.
func printStanding(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		return err
	}
	cfg = rest.CopyConfig(cfg)
	gv := api.GroupVersion
	cfg.GroupVersion, cfg.APIPath = &gv, "/apis"
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	rc, err := rest.RESTClientFor(cfg)
	if err != nil {
		return err
	}
	table := &metav1.Table{}
	err = rc.Get().Resource("standingsessions").SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(ctx).Into(table)
	if err != nil {
		return fmt.Errorf("listing the standing sessions: %w", err)
	}
	if len(table.Rows) == 0 {
		_, err := fmt.Fprintln(out, "There is no StandingSession yet: kubectl apply one.")
		return err
	}
	// The rows carry their objects as raw JSON, which the printer reads the namespace
	// from.
	for i := range table.Rows {
		m := &metav1.PartialObjectMetadata{}
		if err := runtime.DecodeInto(serializer.NewCodecFactory(scheme).UniversalDeserializer(), table.Rows[i].Object.Raw, m); err == nil {
			table.Rows[i].Object.Object = m
		}
	}
	return printers.NewTablePrinter(printers.PrintOptions{WithNamespace: true}).PrintObj(table, out)
}
