package sandbox

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// escapes matches terminal sequences: CSI; OSC, DCS, SOS, PM and APC with their
// text, up to the end of the line when they are not closed; and the short ones.
var escapes = regexp.MustCompile(`(?:\x1b\[|\x{9b})[0-?]*[ -/]*[@-~]?` +
	`|(?:\x1b[\]PX^_]|[\x{90}\x{98}\x{9d}\x{9e}\x{9f}])[^\x07\x1b\x{9c}\n]*(?:\x07|\x1b\\|\x{9c})?` +
	`|\x1b[ -/]*[0-~]?`)

// cleanText makes output fit for a model, a terminal and a store: valid UTF-8,
// line ends as "\n", no terminal sequences, no control characters but "\n" and
// "\t", and none that change the direction of text.
func cleanText(raw []byte) string {
	text := strings.ToValidUTF8(string(raw), "\uFFFD")
	if strings.ContainsFunc(text, startsEscape) {
		text = escapes.ReplaceAllLiteralString(text, "")
	}
	if strings.Contains(text, "\r") {
		text = strings.ReplaceAll(text, "\r\n", "\n")
		text = strings.ReplaceAll(text, "\r", "\n")
	}
	if !strings.ContainsFunc(text, unwanted) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if unwanted(r) {
			return -1
		}
		return r
	}, text)
}

// escapeUnwanted writes what JSON allows in a string and [cleanText] would drop as
// escapes: nothing is lost, and nothing acts on a terminal.
func escapeUnwanted(json string) []byte {
	var out []byte
	for _, r := range json {
		if unwanted(r) {
			out = fmt.Appendf(out, "\\u%04x", r)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

func startsEscape(r rune) bool { return r == 0x1b || r >= 0x90 && r <= 0x9f }

func unwanted(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20, r >= 0x7f && r < 0xa0: // C0, DEL, C1
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // direction overrides
		return true
	}
	return false
}

// wholeRunes cuts a character that a cut left incomplete off the end.
func wholeRunes(raw []byte) []byte {
	for i := 1; i <= utf8.UTFMax && i <= len(raw); i++ {
		if last := raw[len(raw)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return raw[:len(raw)-i]
			}
			break
		}
	}
	return raw
}

// afterCut drops what a cut left of a character at the start.
func afterCut(raw []byte) []byte {
	for i := 0; i < utf8.UTFMax-1 && len(raw) > 0 && !utf8.RuneStart(raw[0]); i++ {
		raw = raw[1:]
	}
	return raw
}
