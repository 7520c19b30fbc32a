package main

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// idForm is the form of an id: C with three digits, the letters of the failures with two.
const idForm = `(?:C[0-9]{3}|[PNTHRGSUK][0-9]{2})`

var wholeID = regexp.MustCompile(`^` + idForm + `$`)

// caseList is cases.yaml.
type caseList struct {
	Groups []struct {
		Title string
		Parts []struct {
			Part  string
			Items map[string]string
		}
	}
	// Lacks says of ids that tests name what they leave unproved.
	Lacks map[string]string
}

// parseCases reads the list and refuses what is not well-formed.
func parseCases(data []byte) (*caseList, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	c := &caseList{}
	if err := dec.Decode(c); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var errs []error
	for _, g := range c.Groups {
		for _, p := range g.Parts {
			for id, text := range p.Items {
				switch {
				case !wholeID.MatchString(id):
					errs = append(errs, fmt.Errorf("%q is not an id", id))
				case seen[id]:
					errs = append(errs, fmt.Errorf("%s is there twice", id))
				case strings.TrimSpace(text) == "" || strings.ContainsAny(text, "|\n"):
					errs = append(errs, fmt.Errorf("%s needs one line of text without a bar", id))
				}
				seen[id] = true
			}
		}
	}
	for id := range c.Lacks {
		if !seen[id] {
			errs = append(errs, fmt.Errorf("lacks names %s, which does not exist", id))
		}
	}
	return c, join(errs)
}

// ids are all ids, in order.
func (c *caseList) ids() []string {
	var out []string
	for _, g := range c.Groups {
		for _, p := range g.Parts {
			for id := range p.Items {
				out = append(out, id)
			}
		}
	}
	slices.Sort(out)
	return out
}

// assign says by which specs each id is named. It refuses a spec that names an id that
// does not exist, and a note of what an id lacks when no spec names it.
func (c *caseList) assign(specs []spec) (map[string][]spec, error) {
	all := c.ids()
	exists := func(id string) bool { _, ok := slices.BinarySearch(all, id); return ok }
	found := map[string][]spec{}
	var errs []error
	for _, s := range specs {
		for _, n := range s.names {
			if !exists(n.first) || !exists(n.last) || n.first > n.last || n.first[0] != n.last[0] {
				errs = append(errs, fmt.Errorf("%s:%d: %s does not exist in hack/conformance/cases.yaml", s.file, s.line, n))
				continue
			}
			for _, id := range all {
				if s.proves() && n.first <= id && id <= n.last && !slices.ContainsFunc(found[id], s.same) {
					found[id] = append(found[id], s)
				}
			}
		}
	}
	for id := range c.Lacks {
		if len(found[id]) == 0 {
			errs = append(errs, fmt.Errorf("hack/conformance/cases.yaml: lacks names %s, but no test does: take it out", id))
		}
	}
	return found, join(errs)
}

// join is errors.Join in an order that does not change.
func join(errs []error) error {
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}
