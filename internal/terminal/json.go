package terminal

import (
	"fmt"
	"unicode/utf8"
)

// EscapeJSON rewrites one encoded JSON value so that it carries nothing raw
// that [Clean] would change: such characters become \u escapes. The value that
// it decodes to stays the same. It returns line itself when nothing changes.
func EscapeJSON(line []byte) []byte {
	var out []byte
	done := 0
	for i := 0; i < len(line); {
		r, n := utf8.DecodeRune(line[i:])
		if r == utf8.RuneError && n == 1 || r >= 0x7f && (hidden(r) || separates(r)) {
			out = append(out, line[done:i]...)
			out = appendEscape(out, r)
			done = i + n
		}
		i += n
	}
	if done == 0 {
		return line
	}
	return append(out, line[done:]...)
}

func appendEscape(dst []byte, r rune) []byte {
	if r > 0xffff {
		r -= 0x10000
		return fmt.Appendf(dst, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
	}
	return fmt.Appendf(dst, `\u%04x`, r)
}
