package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// configEdit sets one key of a JSON file.
type configEdit struct {
	// path are the keys from the root; all but the last name objects, which are made
	// when they are missing.
	path []string
	// value is JSON.
	value string
	// what says in words what the edit does, for Prepared.Applied.
	what string
	// onlyIfAbsent leaves any value that is there.
	onlyIfAbsent bool
	// companion is written, when it is absent, only together with an edit of the same
	// what: the harness removes it again.
	companion bool
}

// applyEdits edits the text of a JSON object. Everything but the edited keys stays
// byte for byte: other keys, their order, numbers, white space. The text is returned
// as it is when there is nothing to change. Errors do not name the file.
func applyEdits(text []byte, edits []configEdit) (out []byte, applied []string, err error) {
	if !json.Valid(text) {
		return nil, nil, errors.New("is not valid JSON: mend it, or move it away and the harness makes a new one")
	}
	if c := bytes.TrimSpace(text)[0]; c != '{' {
		return nil, nil, errors.New("holds no JSON object: mend it, or move it away and the harness makes a new one")
	}
	out = text
	for _, e := range edits {
		next, changed, err := applyEdit(out, e, applied)
		if err != nil {
			return nil, nil, err
		}
		if out = next; changed && (len(applied) == 0 || applied[len(applied)-1] != e.what) {
			applied = append(applied, e.what)
		}
	}
	return out, applied, nil
}

// applyEdit makes one edit, knowing what those before it have applied.
func applyEdit(text []byte, e configEdit, applied []string) (out []byte, changed bool, err error) {
	old, err := lookUp(text, e.path)
	if err != nil {
		return nil, false, err
	}
	switch {
	case old == nil:
		if e.companion && (len(applied) == 0 || applied[len(applied)-1] != e.what) {
			return text, false, nil
		}
	case e.onlyIfAbsent, string(old) == e.value:
		return text, false, nil
	}
	start := bytes.IndexByte(text, '{')
	end := bytes.LastIndexByte(text, '}') + 1
	root, err := setKey(text[start:end], newLayout(text[start:end]), e.path, e.value)
	if err != nil {
		return nil, false, err
	}
	return bytes.Join([][]byte{text[:start], root, text[end:]}, nil), true, nil
}

// lookUp returns the value at path, nil when it is absent. What should hold the value
// must be an object.
func lookUp(text []byte, path []string) (json.RawMessage, error) {
	value := json.RawMessage(bytes.TrimSpace(text))
	for i, key := range path {
		if value[0] != '{' {
			return nil, fmt.Errorf("has %q that holds no object: mend it", strings.Join(path[:i], "."))
		}
		list, err := membersOf(value)
		if err != nil {
			return nil, err
		}
		m := find(list, key)
		if m == nil {
			return nil, nil
		}
		value = value[m.valueStart:m.valueEnd]
	}
	return value, nil
}

// member is one key of an object, by offsets into the object's text.
type member struct {
	key                            string
	keyStart, valueStart, valueEnd int
	keyEnd                         int
}

// membersOf finds the members of an object. obj begins with { and ends with }.
func membersOf(obj []byte) ([]member, error) {
	dec := json.NewDecoder(bytes.NewReader(obj))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	var list []member
	for dec.More() {
		before := int(dec.InputOffset())
		tok, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m := member{keyEnd: int(dec.InputOffset())}
		m.key, _ = tok.(string)
		m.keyStart = before + bytes.IndexByte(obj[before:m.keyEnd], '"')
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, err
		}
		m.valueEnd = int(dec.InputOffset())
		m.valueStart = m.valueEnd - len(raw)
		if m.valueStart < m.keyEnd || !bytes.Equal(obj[m.valueStart:m.valueEnd], raw) {
			return nil, fmt.Errorf("could not be read near %q", m.key)
		}
		list = append(list, m)
	}
	return list, nil
}

// find returns the member that counts: the last one of that key, as in JavaScript.
func find(list []member, key string) *member {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].key == key {
			return &list[i]
		}
	}
	return nil
}

// layout is how a new member is written.
type layout struct {
	// outer stands before the closing brace of the object, inner before each key: a
	// line break and the indentation, or nothing.
	outer, inner string
	// unit is one step of indentation.
	unit string
}

// newLayout follows the style of the root object; an empty one gets two blanks.
func newLayout(root []byte) layout {
	l := layout{outer: "\n", unit: "  "}
	if lead, ok := leadOf(root); ok {
		if l.unit = strings.TrimLeft(lead, "\r\n"); lead == l.unit { // all on one line
			l.outer, l.unit = "", ""
		} else {
			l.outer = strings.TrimSuffix(lead, l.unit)
		}
	}
	l.inner = l.outer + l.unit
	return l
}

// leadOf is the white space before the first key of an object that has one.
func leadOf(obj []byte) (string, bool) {
	n := bytes.IndexByte(obj, '"')
	if n < 0 {
		return "", false
	}
	return string(obj[1:n]), true
}

// setKey sets the value at path in an object and makes the objects on the way.
func setKey(obj []byte, l layout, path []string, value string) ([]byte, error) {
	list, err := membersOf(obj)
	if err != nil {
		return nil, err
	}
	if lead, ok := leadOf(obj); ok {
		l.inner = lead
	}
	deeper := layout{outer: l.inner, inner: l.inner + l.unit, unit: l.unit}
	m := find(list, path[0])
	next := []byte(value)
	if len(path) > 1 {
		child := []byte("{}")
		if m != nil {
			child = obj[m.valueStart:m.valueEnd]
		}
		if next, err = setKey(child, deeper, path[1:], value); err != nil {
			return nil, err
		}
	}
	if m != nil {
		return bytes.Join([][]byte{obj[:m.valueStart], next, obj[m.valueEnd:]}, nil), nil
	}
	key, err := encode(path[0])
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return bytes.Join([][]byte{[]byte("{" + l.inner), key, []byte(": "), next, []byte(l.outer + "}")}, nil), nil
	}
	last := list[len(list)-1]
	colon := obj[last.keyEnd:last.valueStart]
	return bytes.Join([][]byte{obj[:last.valueEnd], []byte("," + l.inner), key, colon, next, obj[last.valueEnd:]}, nil), nil
}
