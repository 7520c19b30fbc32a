package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// box is the input box.
type box struct {
	parts  []part
	pastes int // folded pastes so far, for their labels
}

// part is typed text, or a paste that is shown as its label.
type part struct{ text, label string }

func (b *box) text() string {
	var s strings.Builder
	for _, p := range b.parts {
		s.WriteString(p.text)
	}
	return s.String()
}

// shown is the text as it stands in the box.
func (b *box) shown() string {
	var s strings.Builder
	for _, p := range b.parts {
		s.WriteString(firstOf(p.label, p.text))
	}
	return s.String()
}

func (b *box) clear() { b.parts = nil }

func (b *box) add(text, label string) {
	if n := len(b.parts); label == "" && n > 0 && b.parts[n-1].label == "" {
		b.parts[n-1].text += text
		return
	}
	b.parts = append(b.parts, part{text, label})
}

// backspace takes the last character, or the last folded paste as a whole.
func (b *box) backspace() {
	n := len(b.parts)
	if n == 0 {
		return
	}
	r := []rune(b.parts[n-1].text)
	if b.parts[n-1].label != "" || len(r) <= 1 {
		b.parts = b.parts[:n-1]
		return
	}
	b.parts[n-1].text = string(r[:len(r)-1])
}

// A paste longer than this is shown folded.
const (
	foldLines = 10
	foldBytes = 2000
)

// paste adds a pasted text, folded when it is long.
func (b *box) paste(text string, lines int) {
	newlines := strings.Count(text, "\n")
	if newlines < lines && len(text) < foldBytes {
		b.add(text, "")
		return
	}
	b.pastes++
	b.add(text, fmt.Sprintf("[Pasted text #%d +%d lines]", b.pastes, newlines))
}

// escapeSequence is what is taken out of a paste.
var escapeSequence = regexp.MustCompile("\x1b(\\[[0-9;?<>=]*[ -/]*[@-~])?")

// clean is a pasted body as it goes into the box: carriage returns are line ends,
// a tab is four spaces, other control characters go.
func clean(body string) (text string, removed int) {
	before := len(body)
	body = escapeSequence.ReplaceAllString(body, "")
	removed = before - len(body)
	body = strings.ReplaceAll(body, "\r", "\n")
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < 0x20 || r == 0x7f:
			removed++
			return -1
		}
		return r
	}, body)
	return strings.ReplaceAll(text, "\t", "    "), removed
}

func sha(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// input takes bytes of the terminal.
func (a *app) input(chunk []byte) {
	now := time.Now()
	keys := a.parser.feed(chunk)
	a.lastInput = now
	if len(a.parser.rest) > 0 && !a.parser.inPaste {
		a.expectMore(now)
	}
	a.keys(keys, now)
}

// expectMore takes what may be the beginning of a sequence for keys of its own when
// nothing follows: a lone escape soon, anything longer late.
func (a *app) expectMore(came time.Time) {
	wait := 50 * time.Millisecond
	if len(a.parser.rest) > 1 {
		wait = 2 * time.Second
	}
	a.after(wait, func() {
		switch {
		case a.lastInput != came:
		case inputWaits():
			a.expectMore(came)
		default:
			a.keys(a.parser.flush(), time.Now())
		}
	})
}

// inputWaits reports whether the terminal holds input that was not read yet.
func inputWaits() bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: 0, Events: unix.POLLIN}}, 0)
	return err == nil && n > 0
}

func (a *app) keys(keys []key, now time.Time) {
	const burstKeys = 3
	typed := 0
	for _, k := range keys {
		if k.kind == keyRune {
			typed++
		}
	}
	if typed >= burstKeys {
		a.lastPaste = now
	}
	for _, k := range keys {
		if a.ending {
			return
		}
		if k.kind == keyPaste {
			body := strings.ReplaceAll(k.text, "\r", "\n")
			a.log.event("frame", fields{"bytes": len(body), "sha256": sha(body), "lines": strings.Count(body, "\n") + 1})
		}
		switch {
		case a.dialog != nil:
			a.dialogKey(k)
		case a.picker:
			a.pickerKey(k)
		default:
			a.boxKey(k, now)
		}
	}
}

// boxKey is a key for the input box.
func (a *app) boxKey(k key, now time.Time) {
	armed := a.quitArmed
	a.quitArmed, a.notice = false, ""
	if (a.vimNormal || a.vimVisual) && a.vimKey(k) {
		return
	}
	switch k.kind {
	case keyRune:
		if !a.modes.has("drop-typed") {
			a.box.add(string(k.r), "")
		}
	case keyTab:
		a.box.add("    ", "")
	case keyPaste:
		a.boxPaste(k.text, now)
	case keyNewline:
		a.box.add("\n", "")
	case keyEnter:
		a.enter(now)
	case keyBackspace:
		a.box.backspace()
	case keyClear:
		a.box.clear()
	case keyEscape:
		switch {
		case a.modes.has("vim") && !a.vimNormal:
			a.vimNormal = true
		case a.turns.busy:
			a.interrupt()
		}
	case keyInterrupt:
		a.controlC(armed)
	case keyEOF:
		if a.box.text() == "" {
			a.finish(0, "prompt_input_exit")
		}
	case keyUnknown:
		a.log.event("unknown-key", fields{"raw": []byte(k.text)})
		if !a.framing && (k.text == string(pasteBegin) || k.text == string(pasteEnd)) {
			a.box.add(k.text[1:], "") // brackets that nobody asked for are text
		}
	}
}

func (a *app) boxPaste(body string, now time.Time) {
	if n, ok := a.modes.numberOr("swallow-paste", 1); ok && n > 0 {
		a.modes["swallow-paste"] = fmt.Sprint(n - 1)
		a.log.event("paste-swallowed", nil)
		return
	}
	text, removed := clean(body)
	if removed > 0 {
		a.notice = fmt.Sprintf("Removed %d invisible characters", removed)
	}
	lines := foldLines
	if n, ok := a.modes.numberOr("fold", 3); ok {
		lines = n
	}
	a.box.paste(text, lines)
	a.lastPaste, a.pasted, a.imageHeld = now, true, false
	if _, ok := a.modes.take("permission-on-paste"); ok {
		a.askPermission("Bash", func(bool) {})
	}
}

func (a *app) controlC(armed bool) {
	switch {
	case a.turns.busy:
		a.interrupt()
	case a.box.text() != "":
		a.box.clear()
	case armed:
		a.finish(0, "prompt_input_exit")
	default:
		a.quitArmed, a.notice = true, "Press Ctrl-C again to exit"
	}
}

// vimKey is a key in normal or visual mode. It reports false for keys that mean the same
// in insert mode. As in Claude Code 2.1.332, a paste is text in every mode, and in visual
// mode a carriage return submits nothing.
func (a *app) vimKey(k key) bool {
	switch k.kind {
	case keyPaste, keyInterrupt, keyEOF, keyUnknown:
		return false
	case keyEscape:
		wasVisual := a.vimVisual
		a.vimNormal, a.vimVisual = true, false
		return wasVisual
	case keyEnter:
		if a.vimVisual {
			a.log.event("enter-held", fields{"why": "visual"})
		}
		return a.vimVisual
	case keyRune:
		a.vimCommand(k.r)
	}
	return true
}

// vimCommand is a character in normal or visual mode.
func (a *app) vimCommand(r rune) {
	twice := a.pendingD && r == 'd'
	a.pendingD = r == 'd' && !twice
	switch {
	case r == 'v' || r == 'V':
		a.vimNormal, a.vimVisual = a.vimVisual, a.vimNormal
	case a.vimVisual:
	case twice:
		a.box.clear()
	case r == 'i' || r == 'a' || r == 'A' || r == 'I':
		a.vimNormal = false
	case r == 'x':
		a.box.backspace()
	}
}

// enter is a carriage return in the box.
func (a *app) enter(now time.Time) {
	text := a.box.text()
	if why := a.holdsEnter(now, text); why != "" {
		a.log.event("enter-held", fields{"why": why})
		return
	}
	ghost, hasGhost := a.modes["ghost"]
	switch {
	case strings.TrimSpace(text) == "" && hasGhost:
		a.box.clear()
		a.log.event("ghost-accepted", nil)
		a.submit(firstOf(ghost, defaultGhost))
		return
	case strings.TrimSpace(text) == "":
		return
	case strings.HasSuffix(text, `\`):
		a.box.backspace()
		a.box.add("\n", "")
		return
	}
	a.box.clear()
	a.pasted = false
	a.submit(text)
}

// defaultGhost is the suggestion of the behaviour ghost.
const defaultGhost = "run the deployment"

// holdsEnter says why a carriage return does not submit, "" when it does.
func (a *app) holdsEnter(now time.Time, text string) string {
	since := now.Sub(a.lastPaste)
	if n, ok := a.modes.numberOr("swallow-cr", 1); ok && a.pasted && n > 0 {
		a.modes["swallow-cr"] = fmt.Sprint(n - 1)
		return "swallowed"
	}
	if ms, ok := a.modes.numberOr("sticky-paste", 200); ok && a.pasted {
		if since < time.Duration(ms)*time.Millisecond {
			a.lastPaste = now
			return "sticky"
		}
	}
	if ms, ok := a.modes.numberOr("burst", 120); ok && since < time.Duration(ms)*time.Millisecond {
		a.lastPaste = now
		a.box.add("\n", "")
		return "newline"
	}
	if last := text[strings.LastIndexAny(text, " \n")+1:]; a.modes.has("complete") && strings.Contains(last, "@") {
		a.box.add("/completed ", "")
		return "completed"
	}
	const imageGap = 300 * time.Millisecond
	if isImagePath(text) && a.pasted && !a.imageHeld && since < imageGap {
		a.imageHeld = true
		return "image"
	}
	return ""
}

// isImagePath: a message that is only the path of an image is looked at first.
func isImagePath(text string) bool {
	switch strings.ToLower(filepath.Ext(text)) {
	case ".png", ".jpg", ".jpeg", ".gif", ".webp":
		return filepath.IsAbs(text) && !strings.ContainsAny(text, " \n")
	}
	return false
}
