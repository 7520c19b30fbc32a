package harness

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
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
	// harness is of a version that draws another box. It is no reason to wait, but for the
	// moment in which a box may just be drawn.
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
	// Rows are those of what stands in the input box, down to the cursor's at least, the first
	// one with a ! before it where it would run in a shell; none where the box is empty or not
	// recognised, or where its beginning is out of sight.
	Rows(Screen) []string
}

// Led reports that what stands in the input box does not begin with text, which was pasted:
// a person had begun to type, and the paste is the end of a draft. A folded paste is shown
// by its mark. The beginning of a text is enough: our frames have no two that differ later
// alone, and characters further on may be drawn in another way. Of a text that is too tall for
// the box a row further on is the first that is seen.
func Led(d Drafter, s Screen, text string) bool {
	const enough, folded = 8, "[Pasted "
	rows := d.Rows(s)
	if len(rows) == 0 || d.Draft(s) != DraftTyped || strings.HasPrefix(rows[0], folded) {
		return false
	}
	head := rows[0]
	line, _, _ := strings.Cut(text, "\n")
	return !strings.HasPrefix(head, line[:min(enough, len(line))]) && !within(text, head, enough)
}

// Holds reports that text, which was pasted, stands in the input box, and nothing else as far
// as is to be seen: what Led cannot tell is not held. A mark of a folded paste is the text's
// where it tells the text's size. It is for a carriage return that nobody has asked for.
func Holds(d Drafter, s Screen, text string) bool {
	const enough = 8 // bytes, of the end of a tall text
	rows := d.Rows(s)
	if len(rows) == 0 || d.Draft(s) != DraftTyped {
		return false
	}
	seen, all := squeezed(strings.Join(rows, "")), squeezed(text)
	return seen != "" && (seen == all || len(seen) >= enough && tall(text) && strings.HasSuffix(all, seen) || folds(seen, text))
}

// foldMark is how a harness shows a folded paste, without its blanks, measured: Claude Code
// 2.1.332 "[Pasted text #1 +29 lines]", Codex 0.171.0 "[Pasted Content 2629 chars]", Gemini CLI
// 0.61.0 "[Pasted Text: 30 lines]".
var foldMark = regexp.MustCompile(`^\[Pasted(?:text#\d+|Content|Text:)(?:(\+?)(\d+)(lines|chars))?(?:#\d+)?\]$`)

// folds reports that the mark may be that of this text: it is of its size or, where the mark
// tells none, the text is one long line.
func folds(mark, text string) bool {
	const long = 500 // bytes: the least that was seen folded for its length is more
	m := foldMark.FindStringSubmatch(mark)
	if m == nil {
		return false
	}
	ends := strings.Count(text, "\n")
	switch plus, size, unit := m[1], m[2], m[3]; {
	case unit == "":
		return ends == 0 && len(text) >= long
	case unit == "chars":
		return size == strconv.Itoa(utf8.RuneCountInString(text)) || size == strconv.Itoa(len(utf16.Encode([]rune(text))))
	case plus == "": // it counts the lines, and not the ends of lines
		return ends > 0 && size == strconv.Itoa(ends+1)
	default:
		return size == strconv.Itoa(ends)
	}
}

// squeezed is a text without its blanks and without what takes no cell: it is the same however
// the text is wrapped.
func squeezed(text string) string {
	return strings.Map(func(r rune) rune {
		if unseen(r) || unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
}

// longLine is the bytes of a line that may be wrapped.
const longLine = 60

// tall reports that a text may have more lines than there is room for in the input box.
func tall(text string) bool {
	const most = 8 // lines, wrapped ones not counted
	return strings.Count(text, "\n") >= most || len(text) > most*longLine
}

// within reports that a row is one of a tall text: its words stand in it, or, where they are
// few, are a whole line of it or the end of one that is wrapped.
func within(text, row string, enough int) bool {
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
	return tall(text) && slices.ContainsFunc(strings.Split(text, "\n"), func(l string) bool {
		l = words(l)
		return l == row || len(l) > longLine && strings.HasSuffix(l, row)
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

// boxRows is what stands in a box behind one of its prompts, which is in column x and so wide
// with what is before it, and in its other rows, which are indented by so much.
func boxRows(box []screenRow, prompts string, x, width int) []string {
	var rows []string
	for _, row := range box {
		rows = append(rows, row.from(width).String())
	}
	switch prompt := box[0].at(x).r; {
	case prompt == '!':
		rows[0] = "!" + rows[0]
	case !strings.ContainsRune(prompts, prompt) || rows[0] == "":
		return nil
	}
	return rows
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
