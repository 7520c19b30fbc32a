package text

import (
	"strconv"
	"strings"
)

// Report says what Sanitize did to a text that a person may want to know of: how many
// characters it replaced and removed, by class. Line ends and the blanks at the end of
// a text are not counted. Reports are compared with ==; the zero Report is "nothing".
type Report struct {
	counts [len(classes)]int
}

func (r *Report) note(class int) {
	if e := classes[class].Effect; e == Replaced || e == Removed {
		r.counts[class]++
	}
}

// Count is how many characters of a class were replaced or removed. The name is that
// of one of Classes; there are none of any other.
func (r Report) Count(class string) int {
	for i, c := range classes {
		if c.Name == class {
			return r.counts[i]
		}
	}
	return 0
}

// Total is how many characters had this effect, which is Replaced or Removed.
func (r Report) Total(e Effect) int {
	n := 0
	for i, c := range classes {
		if c.Effect == e {
			n += r.counts[i]
		}
	}
	return n
}

// String is one line for people, such as "3 characters replaced: escape ×1, bidi ×2; 1
// character removed: invisible ×1", or "" when there is nothing to tell. The classes
// are in the order of Classes.
func (r Report) String() string {
	var parts []string
	for _, e := range []struct {
		effect Effect
		word   string
	}{{Replaced, "replaced"}, {Removed, "removed"}} {
		n := r.Total(e.effect)
		if n == 0 {
			continue
		}
		var each []string
		for i, c := range classes {
			if c.Effect == e.effect && r.counts[i] > 0 {
				each = append(each, c.Name+" ×"+strconv.Itoa(r.counts[i]))
			}
		}
		characters := " characters "
		if n == 1 {
			characters = " character "
		}
		parts = append(parts, strconv.Itoa(n)+characters+e.word+": "+strings.Join(each, ", "))
	}
	return strings.Join(parts, "; ")
}
