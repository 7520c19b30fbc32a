package main

import (
	"bytes"
	"unicode/utf8"
)

// keyKind is what one token of the input is.
type keyKind int

const (
	keyRune keyKind = iota
	keyPaste
	keyEnter
	keyNewline
	keyBackspace
	keyEscape
	keyUp
	keyDown
	keyTab
	keyInterrupt // ^C
	keyEOF       // ^D
	keyClear     // ^U
	keyUnknown
)

// key is one token of the input.
type key struct {
	kind keyKind
	r    rune
	text string // the body of a frame, or the bytes of an unknown sequence
}

var (
	pasteBegin = []byte("\x1b[200~")
	pasteEnd   = []byte("\x1b[201~")
)

// parser cuts the bytes of the terminal into keys. It keeps what may be the
// beginning of something longer for the next call.
type parser struct {
	// framing: bracketed paste is on, so its markers mean a paste.
	framing bool
	rest    []byte
	inPaste bool
	paste   []byte
}

// feed takes more bytes and returns the keys that are complete.
func (p *parser) feed(b []byte) []key {
	p.rest = append(p.rest, b...)
	var keys []key
	for len(p.rest) > 0 {
		if p.inPaste {
			body, ok := p.body()
			if !ok {
				return keys
			}
			keys = append(keys, key{kind: keyPaste, text: body})
			continue
		}
		k, n := p.one()
		if n == 0 {
			return keys
		}
		p.rest = p.rest[n:]
		if k.kind == keyPaste {
			p.inPaste = true
			continue
		}
		keys = append(keys, k)
	}
	return keys
}

// flush gives what was kept as keys of its own: nothing follows a lone escape.
func (p *parser) flush() []key {
	if p.inPaste || len(p.rest) == 0 {
		return nil
	}
	k := key{kind: keyUnknown, text: string(p.rest)}
	if len(p.rest) == 1 && p.rest[0] == 0x1b {
		k = key{kind: keyEscape}
	}
	p.rest = nil
	return []key{k}
}

// body moves what has come of a frame out of rest and reports its end.
func (p *parser) body() (string, bool) {
	if i := bytes.Index(p.rest, pasteEnd); i >= 0 {
		text := string(append(p.paste, p.rest[:i]...))
		p.rest, p.paste, p.inPaste = p.rest[i+len(pasteEnd):], nil, false
		return text, true
	}
	// The end may have come in part.
	keep := min(len(p.rest), len(pasteEnd)-1)
	p.paste = append(p.paste, p.rest[:len(p.rest)-keep]...)
	p.rest = append([]byte(nil), p.rest[len(p.rest)-keep:]...)
	return "", false
}

// one reads one key; it consumes nothing when the key is not complete.
func (p *parser) one() (key, int) {
	c := p.rest[0]
	switch {
	case c == 0x1b:
		return p.escape()
	case c == '\r':
		return key{kind: keyEnter}, 1
	case c == '\n':
		return key{kind: keyNewline}, 1
	case c == 0x7f || c == 0x08:
		return key{kind: keyBackspace}, 1
	case c == 0x03:
		return key{kind: keyInterrupt}, 1
	case c == 0x04:
		return key{kind: keyEOF}, 1
	case c == 0x15:
		return key{kind: keyClear}, 1
	case c == '\t':
		return key{kind: keyTab}, 1
	case c < 0x20:
		return key{kind: keyUnknown, text: string(c)}, 1
	}
	if !utf8.FullRune(p.rest) {
		return key{}, 0
	}
	r, n := utf8.DecodeRune(p.rest)
	return key{kind: keyRune, r: r}, n
}

// escape reads an escape sequence.
func (p *parser) escape() (key, int) {
	b := p.rest
	switch {
	case len(b) == 1:
		return key{}, 0
	case b[1] != '[' && b[1] != 'O':
		// Escape and another character at once: the character is lost.
		if !utf8.FullRune(b[1:]) {
			return key{}, 0
		}
		_, n := utf8.DecodeRune(b[1:])
		return key{kind: keyUnknown, text: string(b[:1+n])}, 1 + n
	}
	end := 2
	for end < len(b) && b[end] < 0x40 {
		end++
	}
	if end == len(b) {
		return key{}, 0
	}
	seq := b[:end+1]
	switch {
	case bytes.Equal(seq, pasteBegin) && p.framing:
		return key{kind: keyPaste}, len(seq)
	case string(seq[2:]) == "A":
		return key{kind: keyUp}, len(seq)
	case string(seq[2:]) == "B":
		return key{kind: keyDown}, len(seq)
	}
	return key{kind: keyUnknown, text: string(seq)}, len(seq)
}
