package capability

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/tendril-agent/tendril/internal/sandbox"
)

var mainGuard = regexp.MustCompile(`\bimport\s*\.\s*meta\s*\.\s*main\b`)

// findMainGuard returns the places of import.meta.main in the code of a source,
// comments and strings left out.
func findMainGuard(source string) []sandbox.Diagnostic {
	var found []sandbox.Diagnostic
	code := maskText(source)
	for _, at := range mainGuard.FindAllStringIndex(code, -1) {
		line, column := position(source, at[0])
		found = append(found, sandbox.Diagnostic{Line: line, Column: column, Message: "import.meta.main is always false in a capability"})
	}
	return found
}

// position turns a byte offset into line and column, both from 1, the column in
// characters.
func position(source string, offset int) (line, column int) {
	before := source[:offset]
	line = 1 + strings.Count(before, "\n")
	return line, 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
}

// maskText replaces comments and the text of strings by blanks, byte for byte.
// It is a reader of hints, not a parser: a quote inside a regular expression
// hides at most the rest of its line.
func maskText(source string) string {
	m := masker{source: source, out: []byte(source)}
	m.code(false)
	return string(m.out)
}

type masker struct {
	source string
	out    []byte
	at     int
	depth  int // of templates inside templates
}

const maxTemplateDepth = 100

func (m *masker) has(s string) bool { return strings.HasPrefix(m.source[m.at:], s) }

func (m *masker) blank(n int) {
	for range n {
		if m.at < len(m.out) {
			if m.out[m.at] != '\n' {
				m.out[m.at] = ' '
			}
			m.at++
		}
	}
}

// code reads code; inside a template's ${…} until its closing brace.
func (m *masker) code(inTemplate bool) {
	braces := 0
	for m.at < len(m.source) {
		switch c := m.source[m.at]; {
		case m.has("//"):
			m.until("\n")
		case m.has("/*"):
			m.blank(2)
			m.until("*/")
			m.blank(2)
		case c == '"' || c == '\'':
			m.quoted(c)
		case c == '`':
			m.template()
		case c == '{':
			braces++
			m.at++
		case c == '}':
			if inTemplate && braces == 0 {
				return
			}
			braces--
			m.at++
		default:
			m.at++
		}
	}
}

func (m *masker) until(end string) {
	for m.at < len(m.source) && !m.has(end) {
		m.blank(1)
	}
}

func (m *masker) quoted(quote byte) {
	m.blank(1)
	for m.at < len(m.source) {
		switch c := m.source[m.at]; {
		case c == '\\':
			m.blank(2)
		case c == quote:
			m.blank(1)
			return
		case c == '\n':
			return
		default:
			m.blank(1)
		}
	}
}

func (m *masker) template() {
	m.blank(1)
	for m.at < len(m.source) {
		switch c := m.source[m.at]; {
		case c == '\\':
			m.blank(2)
		case c == '`':
			m.blank(1)
			return
		case m.has("${") && m.depth < maxTemplateDepth:
			m.at += 2
			m.depth++
			m.code(true)
			m.depth--
		default:
			m.blank(1)
		}
	}
}

var networkHint = regexp.MustCompile(`\bfetch\s*\(|\bWebSocket\b|\bEventSource\b|\bDeno\s*\.\s*(connect|connectTls|resolveDns)\b|node:(http|https|net|tls|dgram|dns)\b|\b(https?|wss?)://`)

// seemsToUseNetwork is for advice only, never for a decision about permissions.
func seemsToUseNetwork(source []byte) bool { return networkHint.Match(source) }
