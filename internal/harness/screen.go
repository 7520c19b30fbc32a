package harness

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Screen is what the terminal of a harness shows.
type Screen struct {
	// Text is the visible rows, one a line and not joined where they wrap, with the SGR
	// attributes with which they are drawn.
	Text string
	// CursorX and CursorY are the cursor's column and row, from 0.
	CursorX, CursorY int
}

// Draft says whether a person has typed something that is not submitted yet.
type Draft string

const (
	// DraftUnknown: no input box was recognised, as when a dialog or a menu is open or the
	// harness is of a version that draws another box. It is no reason to wait.
	DraftUnknown Draft = "Unknown"
	// DraftEmpty: the input box is there, with nothing in it but the harness's own hint.
	DraftEmpty Draft = "Empty"
	// DraftTyped: something stands in the input box. It can be a text of ours that waits for
	// its carriage return: the screen does not tell whose it is.
	DraftTyped Draft = "Typed"
)

// Drafter is implemented by an adapter that recognises the input box of its harness. A
// text that is typed into a box with something in it is submitted together with that:
// this was measured with Claude Code, "human draft event text".
type Drafter interface {
	// Draft reads the input box.
	Draft(Screen) Draft
	// Head is the first row of what stands in the input box, with a ! before it where it
	// would run in a shell; "" where the box is empty, out of sight or not recognised.
	Head(Screen) string
}

// Led reports that what stands in the input box does not begin with text, which was pasted:
// a person had begun to type, and the paste is the end of a draft. A folded paste is shown
// by its mark. The beginning of a text is enough: our frames have no two that differ later
// alone, and characters further on may be drawn in another way. Of a text that is too tall for
// the box a row further on is the first that is seen.
func Led(d Drafter, s Screen, text string) bool {
	const enough, folded = 8, "[Pasted "
	head := d.Head(s)
	if head == "" || d.Draft(s) != DraftTyped || strings.HasPrefix(head, folded) {
		return false
	}
	line, _, _ := strings.Cut(text, "\n")
	return !strings.HasPrefix(head, line[:min(enough, len(line))]) && !within(text, head, enough)
}

// within reports that a row is one of a tall text: its words stand in it, or, where they are
// few, are a whole line of it or the end of one that is wrapped.
func within(text, row string, enough int) bool {
	const (
		tall = 8  // lines, wrapped ones not counted
		long = 60 // bytes of a line that may be wrapped
	)
	words := func(s string) string {
		return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
			if unseen(r) && !unicode.IsSpace(r) {
				return -1
			}
			return r
		}, s)), " ")
	}
	row = words(row)
	if len(row) >= enough {
		return strings.Contains(words(text), row)
	}
	lines := strings.Split(text, "\n")
	return (len(lines) > tall || len(text) > tall*long) && slices.ContainsFunc(lines, func(l string) bool {
		l = words(l)
		return l == row || len(l) > long && strings.HasSuffix(l, row)
	})
}

// unseen reports that a character takes no cell of a screen.
func unseen(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf)
}

// cell is one character on a screen.
type cell struct {
	r                  rune
	bold, dim, reverse bool
}

// blank reports that nothing is seen in the cell; the block of a drawn cursor is nothing.
func (c cell) blank() bool { return unicode.IsSpace(c.r) }

// screenRow is the characters of a row, without the blanks at its end. A character that is
// two columns wide is one cell, so that a cell's index is its column only left of those.
type screenRow []cell

// at is a cell, a blank where the row has none.
func (r screenRow) at(i int) cell {
	if i < len(r) {
		return r[i]
	}
	return cell{r: ' '}
}

// indented reports that the first n columns are blank.
func (r screenRow) indented(n int) bool {
	for i := range n {
		if !r.at(i).blank() {
			return false
		}
	}
	return true
}

// from is what stands in the row from column i on.
func (r screenRow) from(i int) screenRow { return r[min(i, len(r)):] }

// trimmed is the row without the blanks at its end.
func (r screenRow) trimmed() screenRow {
	for len(r) > 0 && r[len(r)-1].blank() {
		r = r[:len(r)-1]
	}
	return r
}

func (r screenRow) String() string {
	var b strings.Builder
	for _, c := range r {
		b.WriteRune(c.r)
	}
	return b.String()
}

// screenRows takes a screen apart. Attributes go on from one row to the next.
func screenRows(text string) (rows []screenRow) {
	var now cell
	row := screenRow{}
	end := func() {
		rows, row = append(rows, row.trimmed()), screenRow{}
	}
	for text != "" {
		if rest, params, ok := cutSequence(text); ok {
			now.style(params)
			text = rest
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		switch {
		case r == '\n':
			end()
		case unseen(r):
		default:
			now.r = r
			row = append(row, now)
		}
	}
	if len(row) > 0 {
		end()
	}
	return rows
}

// cutSequence cuts the escape sequence at the beginning of text. Of a sequence that sets
// attributes it returns the parameters.
func cutSequence(text string) (rest, params string, ok bool) {
	switch {
	case strings.HasPrefix(text, "\x1b["):
		i := strings.IndexFunc(text[2:], func(r rune) bool { return r >= '@' && r <= '~' })
		if i < 0 {
			return "", "", true
		}
		if params = text[2 : 2+i]; text[2+i] != 'm' {
			return text[2+i+1:], "none", true
		}
		return text[2+i+1:], params, true
	case strings.HasPrefix(text, "\x1b]"): // a hyperlink
		i := strings.Index(text, "\x1b\\")
		if i < 0 {
			return "", "none", true
		}
		return text[i+2:], "none", true
	case strings.HasPrefix(text, "\x1b"):
		return text[min(len(text), 2):], "none", true
	}
	return text, "", false
}

// style applies the parameters of one sequence.
func (c *cell) style(params string) {
	codes := strings.Split(params, ";")
	for i := 0; i < len(codes); i++ {
		switch codes[i] {
		case "", "0":
			c.bold, c.dim, c.reverse = false, false, false
		case "1":
			c.bold = true
		case "2":
			c.dim = true
		case "22":
			c.bold, c.dim = false, false
		case "7":
			c.reverse = true
		case "27":
			c.reverse = false
		case "38", "48", "58": // a colour, whose numbers are no attributes
			switch {
			case i+1 < len(codes) && codes[i+1] == "5":
				i += 2
			case i+1 < len(codes) && codes[i+1] == "2":
				i += 4
			}
		}
	}
}

// promptOver is the row at or above y, within rows that are indented by so many columns, in
// which the first of them is not blank: where the prompt stands. It is -1 without one.
func promptOver(rows []screenRow, y, columns int) int {
	for y = min(y, len(rows)-1); y >= 0; y-- {
		if !rows[y].indented(columns) {
			return y
		}
	}
	return -1
}

// head is what stands behind the prompt, which is in column x and so wide with what is
// before it.
func head(row screenRow, prompt rune, x, width int) string {
	switch row.at(x).r {
	case prompt:
		return row.from(width).String()
	case '!':
		return "!" + row.from(width).String()
	}
	return ""
}

// written tells what stands in rows from a column on: something that is not dim, which was
// typed, or something dim, which is a hint.
func written(rows []screenRow, column int) (typed, hint bool) {
	for _, row := range rows {
		for _, c := range row.from(column) {
			if c.blank() {
				continue
			}
			if !c.dim {
				return true, false
			}
			hint = true
		}
	}
	return false, hint
}
