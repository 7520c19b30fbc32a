// Package apply writes status by server-side apply, so that several writers share
// one status: each field and each condition type has one owner.
package apply

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Field managers. They are constant, so that a session that changes hosts or
// controllers leaves no stale owner behind.
const (
	// Agent owns what is known of a session on its host.
	Agent client.FieldOwner = "theloop-agent"
	// Hub owns what is known of a session centrally.
	Hub client.FieldOwner = "theloop-controller"
)

// Status writes the part of an object's status that one owner owns: status must hold
// nothing else, and the whole of it, because a field that is left out is given up. A
// status equal to before costs no request. obj becomes what the server answered. What
// somebody else wrote into those fields keeps the owner out, unless client.ForceOwnership is
// among the options: a person's edit of what is observed is no reason to stop observing.
func Status(ctx context.Context, c client.Client, owner client.FieldOwner, obj client.Object, before, status any, opts ...client.SubResourcePatchOption) error {
	was, err := json.Marshal(before)
	if err != nil {
		return fmt.Errorf("encoding a status: %w", err)
	}
	is, err := json.Marshal(status)
	if err != nil {
		return fmt.Errorf("encoding a status: %w", err)
	}
	if bytes.Equal(was, is) {
		return nil
	}
	gvk, err := apiutil.GVKForObject(obj, c.Scheme())
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{
		"apiVersion": gvk.GroupVersion().String(),
		"kind":       gvk.Kind,
		// The UID keeps a status of a deleted object from reaching its successor.
		"metadata": map[string]any{"name": obj.GetName(), "namespace": obj.GetNamespace(), "uid": obj.GetUID()},
		"status":   json.RawMessage(is),
	})
	if err != nil {
		return err
	}
	return c.Status().Patch(ctx, obj, client.RawPatch(types.ApplyPatchType, patch), append(opts, owner)...)
}

// Owned returns the conditions of these types alone, in a stable order.
func Owned(conditions []metav1.Condition, kinds ...string) []metav1.Condition {
	out := []metav1.Condition{}
	for _, k := range kinds {
		if i := slices.IndexFunc(conditions, func(c metav1.Condition) bool { return c.Type == k }); i >= 0 {
			out = append(out, conditions[i])
		}
	}
	return out
}
