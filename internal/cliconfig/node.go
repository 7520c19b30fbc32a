package cliconfig

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// reader walks the nodes of a file and collects what is wrong with it.
type reader struct {
	problems []Problem
	ignored  []Place
}

// at is a place of the node with this path.
func at(path string, n *yaml.Node) Place { return Place{Path: path, Line: n.Line, Column: n.Column} }

func (r *reader) refuse(where Place, format string, args ...any) {
	r.problems = append(r.problems, Problem{Place: where, Message: fmt.Sprintf(format, args...)})
}

// field is one key of a mapping, and what reads its value.
type field struct {
	key string
	// read is nil for a key that nothing acts upon.
	read func(path string, n *yaml.Node)
}

// mapping reads the keys of a mapping, and returns the node of each value that is there.
func (r *reader) mapping(path string, n *yaml.Node, fields []field) map[string]*yaml.Node {
	found := map[string]*yaml.Node{}
	for key, value := range r.pairs(path, n) {
		i := indexOf(fields, key.Value)
		if i < 0 {
			r.refuse(at(join(path, key.Value), key), "%s", unknownKey(key.Value, keysOf(fields)))
			continue
		}
		found[key.Value] = value
		if fields[i].read == nil {
			r.ignored = append(r.ignored, at(join(path, key.Value), key))
			continue
		}
		fields[i].read(join(path, key.Value), value)
	}
	return found
}

// pairs are the keys of a mapping with their values. What is no mapping, and a key that
// is there twice, are refused.
func (r *reader) pairs(path string, n *yaml.Node) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		if n.Kind != yaml.MappingNode {
			r.wrongKind(path, n, "a mapping")
			return
		}
		seen := map[string]*yaml.Node{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			switch before := seen[key.Value]; {
			case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
				r.refuse(at(path, key), "a key must be a plain string: merge keys, aliases and other kinds of keys are not read")
				continue
			case before != nil:
				r.refuse(at(join(path, key.Value), key), "the key is there twice, at %d:%d too: remove one of the two", before.Line, before.Column)
				continue
			}
			seen[key.Value] = key
			if !yield(key, value) {
				return
			}
		}
	}
}

// list reads each item of a list.
func (r *reader) list(path string, n *yaml.Node, read func(path string, n *yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		r.wrongKind(path, n, "a list")
		return
	}
	for i, item := range n.Content {
		read(path+"["+strconv.Itoa(i)+"]", item)
	}
}

// check returns what is wrong with a text, "" for nothing.
type check func(text string) string

// text reads a string.
func (r *reader) text(to *string, checks ...check) func(string, *yaml.Node) {
	return func(path string, n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
			r.wrongKind(path, n, "a string")
			return
		}
		for _, c := range checks {
			if wrong := c(n.Value); wrong != "" {
				r.refuse(at(path, n), "%s", wrong)
				return
			}
		}
		*to = n.Value
	}
}

// flag reads a boolean.
func (r *reader) flag(to *bool) func(string, *yaml.Node) {
	return func(path string, n *yaml.Node) {
		value := strings.ToLower(n.Value)
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" || value != "true" && value != "false" {
			r.wrongKind(path, n, "true or false")
			return
		}
		*to = value == "true"
	}
}

// texts reads a list of strings; to is never nil afterwards.
func (r *reader) texts(to *[]string, most int, checks ...check) func(string, *yaml.Node) {
	return func(path string, n *yaml.Node) {
		out := []string{}
		r.list(path, n, func(path string, n *yaml.Node) {
			var item string
			r.text(&item, checks...)(path, n)
			out = append(out, item)
		})
		if len(out) > most {
			r.refuse(at(path, n), "there are %d items: at most %d are allowed", len(out), most)
		}
		*to = out
	}
}

// wrongKind refuses a node that is not what belongs there.
func (r *reader) wrongKind(path string, n *yaml.Node, want string) {
	var got, hint string
	switch {
	case n.Kind == yaml.MappingNode:
		got = "a mapping"
	case n.Kind == yaml.SequenceNode:
		got = "a list"
	case n.Kind == yaml.AliasNode:
		got, hint = "an alias", ": aliases are not read, write the value out"
	case n.ShortTag() == "!!null":
		got, hint = "empty", ": remove the key, or give it a value"
		if want == "a list" {
			hint = ": remove the key, or write [] for none"
		}
	default:
		got = "the " + kindOf(n) + " " + excerpt(n.Value)
		if want == "a string" {
			hint = ": put it in quotes"
		}
	}
	r.refuse(at(path, n), "must be %s, and is %s%s", want, got, hint)
}

// kindOf a scalar, for a person.
func kindOf(n *yaml.Node) string {
	switch n.ShortTag() {
	case "!!str":
		return "string"
	case "!!bool":
		return "boolean"
	case "!!int", "!!float":
		return "number"
	}
	return "value"
}

// longestExcerpt of a value that is repeated to a person, in bytes.
const longestExcerpt = 60

// excerpt is the beginning of a value, quoted.
func excerpt(value string) string {
	if len(value) > longestExcerpt {
		value = value[:longestExcerpt] + "..."
	}
	return strconv.Quote(value)
}

// join appends a key to a path. A key that is no plain word is quoted.
func join(path, key string) string {
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`.[]"`, r) }) || key == "" {
		key = excerpt(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func indexOf(fields []field, key string) int {
	for i, f := range fields {
		if f.key == key {
			return i
		}
	}
	return -1
}

func keysOf(fields []field) []string {
	var keys []string
	for _, f := range fields {
		if f.read != nil {
			keys = append(keys, f.key)
		}
	}
	return keys
}
