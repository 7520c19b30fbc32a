package faketest

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Screen is a small terminal: enough of one to see what a program has drawn. It
// knows cursor movement, erasing, line ends, wrapping and scrolling, and passes over
// everything else. Every character is one column wide.
type Screen struct {
	columns, rows int
	cells         [][]rune
	row, col      int
	wrapped       bool // the cursor stands behind the last column
	rest          []byte
	scrolled      []string
}

// NewScreen is an empty screen.
func NewScreen(columns, rows int) *Screen {
	s := &Screen{}
	s.Resize(columns, rows)
	return s
}

// Resize changes the size; what does not fit is cut, as on a terminal without
// reflow.
func (s *Screen) Resize(columns, rows int) {
	cells := make([][]rune, rows)
	for i := range cells {
		cells[i] = blank(columns)
		if i < len(s.cells) {
			copy(cells[i], s.cells[i])
		}
	}
	s.columns, s.rows, s.cells = columns, rows, cells
	s.row, s.col = min(s.row, rows-1), min(s.col, columns-1)
}

func blank(columns int) []rune {
	return []rune(strings.Repeat(" ", columns))
}

// Write takes what a program writes.
func (s *Screen) Write(b []byte) {
	s.rest = append(s.rest, b...)
	for len(s.rest) > 0 {
		n := s.step()
		if n == 0 {
			return
		}
		s.rest = s.rest[n:]
	}
}

// step handles one character or sequence and returns its length, 0 when it is not
// complete.
func (s *Screen) step() int {
	switch c := s.rest[0]; {
	case c == 0x1b:
		return s.escape()
	case c == '\r':
		s.col, s.wrapped = 0, false
	case c == '\n':
		s.lineFeed()
	case c == '\b':
		s.col = max(0, s.col-1)
	case c < 0x20:
	default:
		if !utf8.FullRune(s.rest) {
			return 0
		}
		r, n := utf8.DecodeRune(s.rest)
		s.put(r)
		return n
	}
	return 1
}

func (s *Screen) put(r rune) {
	if s.wrapped {
		s.col, s.wrapped = 0, false
		s.lineFeed()
	}
	s.cells[s.row][s.col] = r
	if s.col == s.columns-1 {
		s.wrapped = true
		return
	}
	s.col++
}

func (s *Screen) lineFeed() {
	s.wrapped = false
	if s.row < s.rows-1 {
		s.row++
		return
	}
	s.scrolled = append(s.scrolled, strings.TrimRight(string(s.cells[0]), " "))
	s.cells = append(s.cells[1:], blank(s.columns))
}

// escape handles an escape sequence.
func (s *Screen) escape() int {
	b := s.rest
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case ']', '_', 'P': // a string, up to BEL or ST
		for i := 2; i < len(b); i++ {
			if b[i] == 0x07 {
				return i + 1
			}
			if b[i] == '\\' && b[i-1] == 0x1b {
				return i + 1
			}
		}
		return 0
	case '[':
		end := 2
		for end < len(b) && b[end] < 0x40 {
			end++
		}
		if end == len(b) {
			return 0
		}
		s.csi(string(b[2:end]), b[end])
		return end + 1
	}
	return 2
}

// csi handles a control sequence.
func (s *Screen) csi(params string, final byte) {
	first, second, _ := strings.Cut(params, ";")
	n, err := strconv.Atoi(first)
	if err != nil {
		n = 0
	}
	m, _ := strconv.Atoi(second)
	step := max(1, n)
	switch final {
	case 'A':
		s.row = max(0, s.row-step)
	case 'B':
		s.row = min(s.rows-1, s.row+step)
	case 'C':
		s.col = min(s.columns-1, s.col+step)
	case 'D':
		s.col = max(0, s.col-step)
	case 'H':
		s.row, s.col = min(s.rows, max(1, n))-1, min(s.columns, max(1, m))-1
	case 'J':
		s.erase(n)
	case 'K':
		copy(s.cells[s.row][s.col:], blank(s.columns))
	default:
		return
	}
	s.wrapped = false
}

// erase clears to the end of the screen, or all of it.
func (s *Screen) erase(what int) {
	from := s.row + 1
	if what == 2 {
		from = 0
	} else {
		copy(s.cells[s.row][s.col:], blank(s.columns))
	}
	for i := from; i < s.rows; i++ {
		s.cells[i] = blank(s.columns)
	}
}

// String is the screen, one line a row, blank ends left out.
func (s *Screen) String() string {
	lines := make([]string, s.rows)
	for i, c := range s.cells {
		lines[i] = strings.TrimRight(string(c), " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// Scrolled are the lines that left the screen at its top, oldest first.
func (s *Screen) Scrolled() []string { return s.scrolled }

// Cursor is where the cursor stands, counted from 0.
func (s *Screen) Cursor() (row, column int) { return s.row, s.col }
