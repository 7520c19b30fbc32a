package harness

import (
	"fmt"
	"strings"
)

// adapters are all known harnesses, in the order in which they are listed to a
// person. A new harness is a file of its own, a test, and a line here.
var adapters = []Adapter{
	claude{},
	codex{},
	opencode{},
	gemini{},
	cursor{},
	custom{},
}

// Get returns the adapter with this name. The error of an unknown name lists the
// known ones.
func Get(name string) (Adapter, error) {
	for _, a := range adapters {
		if a.Name() == name {
			return a, nil
		}
	}
	return nil, fmt.Errorf("unknown harness %q: known are %s", name, strings.Join(Names(), ", "))
}

// Names are the names of all adapters.
func Names() []string {
	names := make([]string, len(adapters))
	for i, a := range adapters {
		names[i] = a.Name()
	}
	return names
}
