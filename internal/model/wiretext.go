package model

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// wireText makes s what every provider can take: valid UTF-8 without NUL.
func wireText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// wireInput is the input of a call for a request: an object, its digits
// untouched, without what providers refuse inside of strings.
func wireInput(input json.RawMessage) json.RawMessage {
	text := strings.TrimSpace(strings.ToValidUTF8(string(input), "\uFFFD"))
	if !isObject(text) {
		return json.RawMessage("{}")
	}
	return json.RawMessage(repairEscapes(text, true))
}

// repairEscapes replaces the escapes of lone surrogates in the JSON text s by
// that of U+FFFD, and with nul those of NUL too. Nothing else changes.
func repairEscapes(s string, nul bool) string {
	if !strings.Contains(s, `\u`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		unit, isUnit := escapedUnit(s[i:])
		low, hasLow := uint64(0), false
		if isUnit {
			low, hasLow = escapedUnit(s[i+6:])
		}
		n := 1
		switch {
		case isUnit && isHigh(unit) && hasLow && isLow(low):
			n = 12
		case isUnit && (isHigh(unit) || isLow(unit) || nul && unit == 0):
			b.WriteString(`\ufffd`)
			i += 6
			continue
		case s[i] == '\\':
			n = min(2, len(s)-i)
		}
		b.WriteString(s[i : i+n])
		i += n
	}
	return b.String()
}

func isHigh(unit uint64) bool { return 0xD800 <= unit && unit < 0xDC00 }
func isLow(unit uint64) bool  { return 0xDC00 <= unit && unit < 0xE000 }

// escapedUnit reads a \uXXXX at the start of s.
func escapedUnit(s string) (uint64, bool) {
	if len(s) < 6 || s[:2] != `\u` {
		return 0, false
	}
	unit, err := strconv.ParseUint(s[2:6], 16, 16)
	return unit, err == nil
}

// Providers refuse names and ids with other characters or more of them.
const (
	maxName = 64
	maxID   = 40
)

// legalName makes a tool name that a model invented fit for a request.
func legalName(name string) string {
	if name = legalChars(name, maxName); name == "" {
		return "unnamed"
	}
	return name
}

// legalChars replaces each character outside of [A-Za-z0-9_-] by an underscore
// and cuts after limit.
func legalChars(s string, limit int) string {
	var b strings.Builder
	for _, r := range s {
		if b.Len() == limit {
			break
		}
		if r == '_' || r == '-' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' {
			b.WriteRune(r)
		} else {
			b.WriteByte('_')
		}
	}
	return b.String()
}

// shorten cuts s to at most limit bytes, between two characters, and says so.
func shorten(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= limit {
		return s
	}
	end := limit
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return fmt.Sprintf("%s… (%d bytes more)", s[:end], len(s)-end)
}
