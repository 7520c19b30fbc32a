package main

import (
	"fmt"
	"os"
	"strings"
	"time"
	"unicode"

	"golang.org/x/term"
)

// Styles are SGR parameters.
const (
	styleNone   = ""
	styleDim    = "2"
	styleBold   = "1"
	styleAccent = "38;5;79"
	styleUser   = "1;38;5;255"
	styleWarn   = "38;5;215"
)

// entry is one paragraph of the transcript. Its text wraps behind its marker.
type entry struct {
	marker, markerStyle string
	text, style         string
	lines               int // of the whole text
}

func userEntry(text string) entry {
	return entry{marker: "❯ ", markerStyle: styleAccent, text: text, style: styleUser}
}

// Bounds of what is kept and shown.
const (
	maxHistory    = 2000 // entries
	maxEntryLines = 12   // lines of one entry
	maxEntryBytes = 8192 // bytes of one entry
	minWidth      = 20
	indicatorLead = 2 // blank columns before the status line
)

// screen draws the program: the transcript scrolls away above, and below it a live
// region (indicator, box or dialog, status line) is redrawn in place.
type screen struct {
	out           *os.File
	width, height int
	history       []entry
	fresh         []entry  // entries that are not drawn yet
	live          []string // rows of the live region as drawn
	cursorRow     int      // row of the live region in which the cursor stands
	drawn         bool
	repaint       bool // everything has to be drawn anew
	alt           bool
	lastDraw      time.Time
	drawLater     bool
}

// raw writes bytes past everything.
func (s *screen) raw(text string) {
	if s.out != nil {
		_, _ = s.out.WriteString(text)
	}
}

// open takes the terminal and shows what is there from the start.
func (s *screen) open(a *app) {
	s.out = os.Stdout
	s.resize()
	s.raw("\x1b]0;✳ fakeharness\x07")
	if a.modes.has("alt-screen") {
		s.enterAlt()
	}
	s.reset(a)
	for _, t := range a.conv.turns {
		if t.role == "user" {
			s.add(entry{})
			s.add(userEntry(t.text))
			continue
		}
		s.add(entry{marker: "● ", markerStyle: styleAccent, text: t.text})
	}
}

func (s *screen) enterAlt() {
	s.raw("\x1b[?1049h")
	s.alt, s.repaint, s.drawn = true, true, false
}

// close leaves the terminal as it was found.
func (s *screen) close(a *app) {
	s.draw(a, nil, 0, 0)
	s.raw("\x1b[?2004l\x1b[?25h")
	if s.alt {
		s.raw("\x1b[?1049l")
	}
}

// reset begins a new transcript with the banner.
func (s *screen) reset(a *app) {
	s.history, s.fresh = nil, banner(a)
	if s.drawn {
		s.repaint = true
	}
}

// resize notes the size of the terminal; everything is drawn anew, because the
// terminal may have wrapped the old rows.
func (s *screen) resize() {
	w, h, err := term.GetSize(1)
	if err != nil || w == 0 {
		w, h = 80, 24
	}
	s.width, s.height, s.repaint = max(w, minWidth), max(h, 1), s.drawn
}

// add puts an entry at the end of the transcript. Of a long text only the beginning
// can be seen, so only that is kept.
func (s *screen) add(e entry) {
	e.lines = strings.Count(e.text, "\n") + 1
	if len(e.text) > maxEntryBytes {
		e.text = strings.ToValidUTF8(e.text[:maxEntryBytes], "") + "…"
	}
	s.fresh = append(s.fresh, e)
}

// banner is the frame at the top.
func banner(a *app) []entry {
	rows := []string{"✻ fakeharness " + version + " · a coding agent without a model", "", "conversation  " + a.id, "directory     " + shortDir(a.cwd)}
	if a.opts.name != "" {
		rows = append(rows, "name          "+a.opts.name)
	}
	return []entry{{marker: frameMarker, text: strings.Join(rows, "\n")}}
}

// frameMarker marks the entry that is drawn as a frame.
const frameMarker = "frame"

func shortDir(dir string) string {
	if h := os.Getenv("HOME"); h != "" && h != "/" && (dir == h || strings.HasPrefix(dir, h+"/")) {
		return "~" + dir[len(h):]
	}
	return dir
}

// rows are an entry as rows of at most width columns, without line ends.
func (e entry) rows(width int) []string {
	if e.marker == frameMarker {
		return frame(e.text, width)
	}
	var out []string
	marker := e.marker
	for i, l := range strings.Split(printable(e.text), "\n") {
		if i == maxEntryLines {
			out = append(out, style(styleDim, strings.Repeat(" ", textWidth(marker))+fmt.Sprintf("… +%d lines", e.lines-i)))
			break
		}
		for _, r := range wrap(l, width-textWidth(e.marker), maxEntryLines) {
			out = append(out, style(e.markerStyle, marker)+style(e.style, r))
			marker = strings.Repeat(" ", textWidth(e.marker))
		}
	}
	return out
}

// frame draws text in a box.
func frame(text string, width int) []string {
	inner := 0
	lines := strings.Split(printable(text), "\n")
	for _, l := range lines {
		inner = max(inner, textWidth(l))
	}
	inner = min(inner+2, width-2)
	out := []string{style(styleAccent, "╭"+strings.Repeat("─", inner)+"╮")}
	for i, l := range lines {
		l = clip(l, inner-2)
		st := styleDim
		if i == 0 {
			st = styleBold
		}
		pad := strings.Repeat(" ", inner-2-textWidth(l))
		out = append(out, style(styleAccent, "│")+" "+style(st, l)+pad+" "+style(styleAccent, "│"))
	}
	return append(out, style(styleAccent, "╰"+strings.Repeat("─", inner)+"╯"))
}

// draw shows the fresh entries and the live region with the cursor at row and
// column of it.
func (s *screen) draw(a *app, live []string, row, col int) {
	var b strings.Builder
	b.WriteString("\x1b[?25l")
	if a.modes.has("garbage") {
		b.WriteString("\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b]0;\u202egarbage ; #{pane_id}\x07\x1b[?9999h\x1b[>7;7;7u\x1bP+q544e\x1b\\")
	}
	if s.drawn {
		if s.cursorRow > 0 {
			fmt.Fprintf(&b, "\x1b[%dA", s.cursorRow)
		}
		b.WriteString("\r\x1b[J")
	}
	s.history = append(s.history, s.fresh...)
	s.history = s.history[max(0, len(s.history)-maxHistory):]
	show := s.fresh
	if s.repaint || s.alt {
		b.WriteString("\x1b[H\x1b[2J")
		show = s.tail(s.height - len(live))
	}
	s.fresh, s.repaint = nil, false
	for _, e := range show {
		for _, r := range e.rows(s.width - 1) {
			b.WriteString(r + "\r\n")
		}
	}
	b.WriteString(strings.Join(live, "\r\n"))
	if up := len(live) - 1 - row; up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", up)
	}
	fmt.Fprintf(&b, "\r\x1b[%dC\x1b[?25h", max(1, col))
	if col == 0 {
		b.WriteString("\r")
	}
	s.live, s.cursorRow, s.drawn, s.lastDraw = live, row, true, time.Now()
	s.raw(b.String())
}

// tail is what of the transcript fits into so many rows.
func (s *screen) tail(rows int) []entry {
	first := len(s.history)
	for first > 0 {
		rows -= len(s.history[first-1].rows(s.width - 1))
		if rows < 0 {
			break
		}
		first--
	}
	return s.history[first:]
}

// draw brings the screen up to date, unless a behaviour makes it wait.
func (a *app) draw() {
	s := &a.scr
	live, row, col := a.liveRegion()
	if s.drawn && !s.repaint && len(s.fresh) == 0 && strings.Join(live, "\n") == strings.Join(s.live, "\n") {
		return
	}
	if ms, ok := a.modes.numberOr("redraw", 3000); ok && s.drawn && !a.ending {
		wait := time.Duration(ms)*time.Millisecond - time.Since(s.lastDraw)
		if wait > 0 {
			if !s.drawLater {
				s.drawLater = true
				a.after(wait, func() { s.drawLater = false })
			}
			return
		}
	}
	s.draw(a, live, row, col)
}

// style wraps text into an SGR sequence.
func style(sgr, text string) string {
	if sgr == "" || text == "" {
		return text
	}
	return "\x1b[" + sgr + "m" + text + "\x1b[0m"
}

// printable takes out of a text what would move the cursor or change the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\t':
			return ' '
		case unicode.IsControl(r) || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
			return '·'
		}
		return r
	}, text)
}

// wrap cuts a line into rows of at most width columns, at blanks where there are
// any; at most limit rows, the last of them cut short.
func wrap(text string, width, limit int) []string {
	width = max(width, 1)
	var rows []string
	r := []rune(text)
	for len(r) > 0 {
		if len(rows) == limit-1 {
			return append(rows, clip(string(r[:min(len(r), 4*width)]), width))
		}
		n, w, blank := 0, 0, -1
		for n < len(r) && w+runeWidth(r[n]) <= width {
			w += runeWidth(r[n])
			if r[n] == ' ' {
				blank = n
			}
			n++
		}
		if n == len(r) {
			return append(rows, string(r))
		}
		if blank > 0 {
			rows = append(rows, string(r[:blank]))
			r = r[blank+1:]
			continue
		}
		n = max(n, 1)
		rows = append(rows, string(r[:n]))
		r = r[n:]
	}
	if rows == nil {
		rows = []string{""}
	}
	return rows
}

// clip cuts text to width columns and marks that it was cut.
func clip(text string, width int) string {
	if textWidth(text) <= width {
		return text
	}
	w, out := 0, []rune{}
	for _, r := range text {
		if w += runeWidth(r); w > width-1 {
			break
		}
		out = append(out, r)
	}
	return string(out) + "…"
}

func textWidth(text string) int {
	w := 0
	for _, r := range text {
		w += runeWidth(r)
	}
	return w
}

// runeWidth is how many columns a character takes.
func runeWidth(r rune) int {
	switch {
	case r == 0x200d || unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3,
		r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60,
		r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1f64f, r >= 0x1f680 && r <= 0x1faff,
		r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}
