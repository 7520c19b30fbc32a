package cliconfig

import (
	"fmt"
	"slices"
	"strings"
)

// Place is where something stands in a file.
type Place struct {
	// Path of keys and indices, such as standingSessions.sessions[2].name. "" is the
	// file as a whole.
	Path string
	// Line and Column count from 1; 0 is not known.
	Line, Column int
}

// String is "path (line:column)", as far as it is known.
func (p Place) String() string {
	switch {
	case p.Line == 0:
		return p.Path
	case p.Path == "":
		return fmt.Sprintf("%d:%d", p.Line, p.Column)
	}
	return fmt.Sprintf("%s (%d:%d)", p.Path, p.Line, p.Column)
}

// Problem is one thing that is wrong with a file.
type Problem struct {
	Place
	// Message says what is wrong and what to do about it.
	Message string
}

// InvalidError is a file that cannot be used, with everything that is wrong with it in
// the order of the file.
type InvalidError struct {
	// File is the path of the file.
	File string
	// Problems has at least one.
	Problems []Problem
}

func (e *InvalidError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the configuration file %s cannot be used:", e.File)
	for _, p := range e.Problems {
		b.WriteString("\n  ")
		if place := p.Place.String(); place != "" {
			b.WriteString(place + ": ")
		}
		b.WriteString(p.Message)
	}
	return b.String()
}

// unknownKey says which key was probably meant, and which there are.
func unknownKey(key string, known []string) string {
	message := excerpt(key) + " is not a key here"
	if near := nearest(key, known); near != "" {
		message += fmt.Sprintf(": did you mean %q?", near)
	}
	return message + " (known are " + strings.Join(known, ", ") + ")"
}

// nearest is the known word that is most like the given one, "" when none is much like
// it. The case of letters does not count.
func nearest(word string, known []string) string {
	best, least := "", 0
	for _, k := range known {
		d := distance(strings.ToLower(word), strings.ToLower(k))
		if d <= max(len(word), len(k))/2 && (best == "" || d < least) {
			best, least = k, d
		}
	}
	return best
}

// longestWord that is compared: nobody means a key by a longer one.
const longestWord = 64

// distance is how many letters must be put in, taken out or changed to make b of a.
func distance(a, b string) int {
	if len(a) > longestWord {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := left
			if a[i] != b[j] {
				change++
			}
			left = row[j+1]
			row[j+1] = min(change, row[j]+1, left+1)
		}
	}
	return row[len(b)]
}

// inOrder sorts problems by their place in the file.
func inOrder(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
}
