package terminal

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// maxTyped bounds what is kept of what is typed while nobody reads, in bytes.
const maxTyped = 64 << 10

// Typed is the text that a person meant who typed raw: Enter is a newline, but
// not at the end; Backspace takes a character back, Ctrl-U a line; of other keys
// nothing is left.
func Typed(raw []byte) string {
	var text []byte
	for len(raw) > 0 {
		switch c := raw[0]; {
		case bytes.HasPrefix(raw, []byte("\x1bO")): // a key as some terminals send it
			raw = raw[min(2, len(raw)-1):]
		case c == esc:
			n, _ := sequence(raw)
			raw = raw[n-1:]
		case c == '\r':
			text = append(text, '\n')
		case c == '\b' || c == 0x7f:
			_, n := utf8.DecodeLastRune(text)
			text = text[:len(text)-n]
		case c == 0x15: // Ctrl-U
			text = text[:bytes.LastIndexByte(text, '\n')+1]
		default:
			text = append(text, c)
		}
		raw = raw[1:]
	}
	return strings.TrimRight(Clean(string(text)), "\n")
}
