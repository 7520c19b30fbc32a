package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/cliconfig"
	"github.com/theloop-dev/the-loop/internal/harness"
)

// harness is the SessionClass that an entry runs with, "" for the default one, and the
// arguments of its harness, nil for those of the class.
func (d *declaration) harness(ctx context.Context, e *cliconfig.Session) (class string, args []string, err error) {
	var list api.SessionClassList
	if err := d.client.List(ctx, &list); err != nil {
		return "", nil, fmt.Errorf("listing the session classes: %w", err)
	}
	name := e.Harness
	if name == "" && e.Class == "" {
		name = d.file.Routing.DefaultHarness
	}
	switch {
	case e.Class != "":
		i := slices.IndexFunc(list.Items, func(c api.SessionClass) bool { return c.Name == e.Class })
		if i < 0 {
			return "", nil, fmt.Errorf("class: there is no SessionClass %s: create it, or name one of: %s", e.Class, described(list.Items))
		}
		class, name = e.Class, list.Items[i].Spec.Harness.Name
	case name != "":
		if class, err = d.classOf(ctx, name, list.Items); err != nil {
			return "", nil, err
		}
	default:
		for _, c := range list.Items {
			if isDefault(c) {
				name = c.Spec.Harness.Name
			}
		}
	}
	if e.HarnessArgs != nil {
		return class, e.HarnessArgs, nil
	}
	return class, d.file.Routing.HarnessArgs[name], nil
}

// classOf is the class that runs a harness: the default one, else the only one, else
// the one that is named like the harness. A known harness without any gets one.
func (d *declaration) classOf(ctx context.Context, name string, classes []api.SessionClass) (string, error) {
	var of []api.SessionClass
	for _, c := range classes {
		switch {
		case c.Spec.Harness.Name != name:
			continue
		case isDefault(c):
			return c.Name, nil
		}
		of = append(of, c)
	}
	switch {
	case len(of) == 1:
		return of[0].Name, nil
	case slices.ContainsFunc(of, func(c api.SessionClass) bool { return c.Name == name }):
		return name, nil
	case len(of) > 1:
		return "", fmt.Errorf("harness: more than one SessionClass runs %s: name one by the key class: %s", name, described(of))
	}
	adapter, err := harness.Get(name)
	if err == nil && adapter.Traits().Refusal != "" {
		return "", errors.New("harness: " + adapter.Traits().Refusal)
	}
	if err != nil || adapter.Binary() == "" {
		return "", fmt.Errorf("harness: no SessionClass runs %q, and none can be made of the name alone: create one, or use one of: %s", name, described(classes))
	}
	class := &api.SessionClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       api.SessionClassSpec{Harness: api.HarnessSpec{Name: name}},
	}
	if err := d.client.Create(ctx, class, fieldOwner); apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("harness: no SessionClass runs %s, and the name is taken by one that runs another: create one, and name it by the key class", name)
	} else if err != nil {
		return "", fmt.Errorf("creating SessionClass %s: %w", name, err)
	}
	d.log.Info("a session class was made for a declared harness", "class", name)
	return name, nil
}

func isDefault(c api.SessionClass) bool { return c.Labels[api.DefaultClassLabel] == "true" }

// described lists classes with their harnesses for a person.
func described(classes []api.SessionClass) string {
	var out []string
	for _, c := range classes {
		out = append(out, c.Name+" (runs "+c.Spec.Harness.Name+")")
	}
	if len(out) == 0 {
		return "there is none"
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
