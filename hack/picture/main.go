// Command picture draws what a terminal shows as an SVG image: it reads text with
// SGR escape sequences, as `tmux capture-pane -pe` prints it, from standard input.
// `make picture` draws the README's picture with it, from the real thing.
package main

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	cellWidth, lineHeight = 8.4, 18.0
	margin                = 16.0
	foreground            = "#d8dee9"
	background            = "#1f2430"
)

var palette = []string{
	"#3b4252", "#bf616a", "#a3be8c", "#ebcb8b", "#81a1c1", "#b48ead", "#88c0d0", "#e5e9f0",
	"#6b7487", "#d08770", "#b5d19c", "#f0d9a0", "#9ab8d8", "#c8a6c2", "#a0d4e0", "#ffffff",
}

// style is how characters are drawn from here on.
type style struct {
	color     string
	bold, dim bool
	reverse   bool
}

// span is a run of characters of one style.
type span struct {
	style
	column int
	text   string
}

func main() {
	if err := draw(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

func draw(in io.Reader, out io.Writer) error {
	var lines [][]span
	width := 0
	sc := bufio.NewScanner(in)
	for sc.Scan() {
		spans, columns := parse(sc.Text())
		lines, width = append(lines, spans), max(width, columns)
	}
	if err := sc.Err(); err != nil {
		return err
	}
	w, h := float64(width)*cellWidth+2*margin, float64(len(lines))*lineHeight+2*margin
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" role="img">`+"\n", w, h, w, h)
	fmt.Fprintf(out, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", background)
	fmt.Fprintln(out, `<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14" xml:space="preserve">`)
	for i, spans := range lines {
		for _, s := range spans {
			s.draw(out, margin+float64(i)*lineHeight)
		}
	}
	_, err := fmt.Fprintln(out, "</g>\n</svg>")
	return err
}

func (s span) draw(out io.Writer, top float64) {
	color := s.color
	x, w := margin+float64(s.column)*cellWidth, float64(utf8.RuneCountInString(s.text))*cellWidth
	if s.reverse {
		fmt.Fprintf(out, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", x, top, w, lineHeight, color)
		color = background
	}
	if strings.TrimSpace(s.text) == "" {
		return
	}
	attrs := ""
	if s.bold {
		attrs += ` font-weight="bold"`
	}
	if s.dim {
		attrs += ` opacity="0.6"`
	}
	fmt.Fprintf(out, `<text x="%.1f" y="%.1f" textLength="%.1f" fill="%s"%s>%s</text>`+"\n", x, top+14, w, color, attrs, html.EscapeString(s.text))
}

// parse splits a line into spans.
func parse(line string) ([]span, int) {
	var spans []span
	st, column := style{color: foreground}, 0
	for line != "" {
		if strings.HasPrefix(line, "\x1b[") {
			end := strings.IndexFunc(line[2:], func(r rune) bool { return r >= 0x40 && r <= 0x7e })
			if end < 0 {
				break
			}
			if line[2+end] == 'm' {
				st = st.apply(line[2 : 2+end])
			}
			line = line[2+end+1:]
			continue
		}
		text := line
		if i := strings.IndexByte(line, 0x1b); i > 0 {
			text = line[:i]
		}
		line = line[len(text):]
		spans = append(spans, span{style: st, column: column, text: text})
		column += utf8.RuneCountInString(text)
	}
	return spans, column
}

// apply takes the parameters of one SGR sequence into account.
func (s style) apply(params string) style {
	p := strings.Split(params, ";")
	for i := 0; i < len(p); i++ {
		n, _ := strconv.Atoi(p[i])
		switch {
		case n == 0:
			s = style{color: foreground}
		case n == 1:
			s.bold = true
		case n == 2:
			s.dim = true
		case n == 22:
			s.bold, s.dim = false, false
		case n == 7:
			s.reverse = true
		case n == 27:
			s.reverse = false
		case n >= 30 && n <= 37:
			s.color = palette[n-30]
		case n >= 90 && n <= 97:
			s.color = palette[n-90+8]
		case n == 39:
			s.color = foreground
		case n == 38 && i+2 < len(p) && p[i+1] == "5":
			k, _ := strconv.Atoi(p[i+2])
			s.color, i = indexed(k), i+2
		}
	}
	return s
}

// indexed is a colour of the 256-colour palette.
func indexed(k int) string {
	switch {
	case k < 16:
		return palette[max(0, k)]
	case k < 232:
		level := []int{0, 95, 135, 175, 215, 255}
		k -= 16
		return fmt.Sprintf("#%02x%02x%02x", level[k/36], level[k/6%6], level[k%6])
	}
	g := 8 + 10*(k-232)
	return fmt.Sprintf("#%02x%02x%02x", g, g, g)
}
