// Package terminal makes text from models, tools and files safe to show, and
// knows what the terminal at hand can do.
package terminal

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	esc = 0x1b
	// maxSequence is the longest control sequence, in bytes, that is removed as
	// a whole.
	maxSequence = 64
)

// Clean returns s without anything that drives a terminal or hides what it
// shows: control characters but newline and tab, colour and cursor sequences,
// bidirectional controls, invisible format characters. Line and paragraph
// separators become newlines, invalid UTF-8 becomes U+FFFD. Visible text stays
// as it is; so do the joiners that scripts and emoji need.
func Clean(s string) string {
	if isClean(s) {
		return s
	}
	out, _ := appendClean(nil, []byte(s), false)
	return string(out)
}

// Line is [Clean] for text that must stay on one line: newlines and tabs become
// spaces, so that no text can pretend to be a line of ours.
func Line(s string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(Clean(s))
}

// Writer cleans a stream as [Clean] does. A character or sequence that is split
// over writes is put together again. It is not safe for concurrent use.
type Writer struct {
	w    io.Writer
	held []byte // the start of a character or sequence
}

// NewWriter returns a Writer that writes to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write writes the clean form of p, except what may go on in the next write.
func (w *Writer) Write(p []byte) (int, error) {
	out, held := appendClean(nil, append(w.held, p...), true)
	w.held = bytes.Clone(held)
	if _, err := w.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush ends the stream: what was held back is written as the broken piece that
// it is.
func (w *Writer) Flush() error {
	out, _ := appendClean(nil, w.held, false)
	w.held = nil
	_, err := w.w.Write(out)
	return err
}

// appendClean appends the clean form of src to dst. With more to come, rest is
// the start of a character or sequence that src ends in.
func appendClean(dst, src []byte, more bool) (out, rest []byte) {
	for len(src) > 0 {
		if src[0] == esc {
			n, whole := sequence(src)
			if !whole && more {
				return dst, src
			}
			src = src[n:]
			continue
		}
		if more && !utf8.FullRune(src) {
			return dst, src
		}
		r, n := utf8.DecodeRune(src)
		switch {
		case separates(r):
			dst = append(dst, '\n')
		case !hidden(r):
			dst = utf8.AppendRune(dst, r)
		}
		src = src[n:]
	}
	return dst, nil
}

// sequence returns how many bytes to drop at an escape character: the whole of
// a control sequence (ESC [ parameters final), otherwise only the escape
// character, so that no text is swallowed. whole is false when src ends first.
func sequence(src []byte) (n int, whole bool) {
	if len(src) == 1 {
		return 1, false
	}
	if src[1] != '[' {
		return 1, true
	}
	for i, c := range src[2:min(len(src), maxSequence)] {
		switch {
		case c >= 0x40 && c <= 0x7e:
			return i + 3, true
		case c < 0x20 || c > 0x3f:
			return 1, true
		}
	}
	return 1, len(src) >= maxSequence
}

func isClean(s string) bool {
	for i, r := range s {
		if hidden(r) || separates(r) {
			return false
		}
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd") {
			return false
		}
	}
	return true
}

// separates reports whether r ends a line for some readers and not for others.
func separates(r rune) bool { return r == '\u2028' || r == '\u2029' }

// hidden reports whether r acts on a terminal, or on how other text looks,
// instead of being seen.
func hidden(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case r < 0x20, r >= 0x7f && r <= 0x9f: // C0, DEL, C1
		return true
	case r < 0xad:
		return false
	}
	switch {
	case r == 0x061c, r == 0x200e, r == 0x200f, // bidirectional marks
		r >= 0x202a && r <= 0x202e, // embeddings and overrides
		r >= 0x2066 && r <= 0x2069: // isolates
		return true
	case r == 0x00ad, r == 0x180e, r == 0x200b, r == 0xfeff, // zero width
		r >= 0x2060 && r <= 0x2065,   // word joiner, invisible operators
		r >= 0x206a && r <= 0x206f,   // deprecated format characters
		r >= 0xfff9 && r <= 0xfffb,   // interlinear annotations
		r >= 0x1d173 && r <= 0x1d17a, // musical format characters
		r >= 0xe0000 && r <= 0xe007f: // tags, which can spell hidden text
		return true
	}
	return false
}
