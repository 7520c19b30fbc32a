package main

import (
	"fmt"
	"strings"
	"time"
)

// liveRegion is the lower part of the screen and where the cursor stands in it.
func (a *app) liveRegion() (rows []string, row, col int) {
	width := a.scr.width - 1
	rows = append(rows, "")
	if line := a.indicator(); line != "" {
		rows = append(rows, style(styleAccent, clip(line, width)), "")
	}
	switch {
	case a.picker:
		rows = append(rows, style(styleBold, "Resume a conversation"), clip("  Search: "+a.opts.resume, width), "", style(styleDim, "  Esc to leave"))
		return rows, len(rows) - 1, 0
	case a.dialog != nil:
		rows = append(rows, a.dialogRows(width)...)
		return rows, len(rows) - 1, 0
	}
	if a.notice != "" {
		rows = append(rows, style(styleDim, clip("  "+printable(a.notice), width)))
	}
	rule := style(styleDim, strings.Repeat("─", width))
	box, boxRow, boxCol := a.boxRows(width)
	row, col = len(rows)+1+boxRow, boxCol
	rows = append(rows, rule)
	rows = append(rows, box...)
	rows = append(rows, rule, a.statusLine(width))
	return rows, row, col
}

// indicator says that a turn runs, "" when none does or it must not show.
func (a *app) indicator() string {
	if !a.turns.busy {
		return ""
	}
	if ms, ok := a.modes.numberOr("indicator-late", 20000); ok && time.Since(a.turns.begun) < time.Duration(ms)*time.Millisecond {
		return ""
	}
	line := "✶ Thinking… (esc to interrupt)"
	if n := len(a.turns.queue); n > 0 {
		line += fmt.Sprintf(" · %d queued", n)
	}
	return line
}

// boxRows are the rows of the input box: its end when it is too high.
func (a *app) boxRows(width int) (rows []string, row, col int) {
	const prompt, most = "❯ ", 10
	text := a.box.shown()
	if text == "" {
		hint := style(styleDim, `Try "fix the failing test"`)
		if g, ok := a.modes["ghost"]; ok {
			hint = style(styleDim, firstOf(g, defaultGhost))
		}
		return []string{style(styleAccent, prompt) + hint}, 0, textWidth(prompt)
	}
	// Only the end can be seen, so only the end is laid out.
	if room := most * width * 4; len(text) > room {
		text = strings.ToValidUTF8(text[len(text)-room:], "")
	}
	lines := strings.Split(printable(text), "\n")
	var plain []string
	for _, l := range lines[max(0, len(lines)-most):] {
		plain = append(plain, wrap(l, width-textWidth(prompt)-1, most*width)...)
	}
	plain = plain[max(0, len(plain)-most):]
	for i, p := range plain {
		lead := strings.Repeat(" ", textWidth(prompt))
		if i == 0 {
			lead = style(styleAccent, prompt)
		}
		rows = append(rows, lead+p)
	}
	return rows, len(rows) - 1, textWidth(prompt) + textWidth(plain[len(plain)-1])
}

// statusLine is the last row.
func (a *app) statusLine(width int) string {
	state := "idle"
	switch {
	case !a.ready:
		state = "starting"
	case a.turns.busy:
		state = "busy"
	}
	parts := []string{state, fmt.Sprintf("turn %d", a.number())}
	for _, p := range []string{a.opts.model, a.opts.effort, a.opts.permissionMode} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	line := strings.Repeat(" ", indicatorLead) + a.vimIndicator() + strings.Join(parts, " · ")
	const hint = "/help for help"
	if gap := width - textWidth(line) - len(hint); gap > 1 {
		line += strings.Repeat(" ", gap) + hint
	}
	return style(styleDim, clip(printable(line), width))
}

// vimIndicator is how the mode of the input box shows. The normal mode does not.
func (a *app) vimIndicator() string {
	switch {
	case !a.modes.has("vim"), a.vimNormal:
		return ""
	case a.vimVisual:
		return "-- VISUAL -- "
	}
	return "-- INSERT -- "
}

// dialogRows are the rows of the open dialog.
func (a *app) dialogRows(width int) []string {
	d := a.dialog
	rows := []string{style(styleWarn, strings.Repeat("─", width)), " " + style(styleBold, clip(d.title, width-1))}
	if d.body != "" {
		for _, l := range strings.Split(d.body, "\n") {
			rows = append(rows, clip("   "+l, width))
		}
	}
	rows = append(rows, "")
	for i, o := range d.options {
		lead := "   "
		if i == d.selected {
			lead = style(styleAccent, " ❯ ")
		}
		rows = append(rows, lead+clip(fmt.Sprintf("%d. %s", i+1, o), width-3))
	}
	if d.takesText {
		rows = append(rows, style(styleDim, "   Type something: ")+clip(printable(excerpt(d.text, 200)), max(1, width-20)))
	}
	return append(rows, "", style(styleDim, clip("   Enter to confirm · Esc to cancel", width)))
}
