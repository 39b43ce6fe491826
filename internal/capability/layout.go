package capability

import (
	"encoding/json"
	"strings"
)

// indent is the layout of the files below tools/: that of [json.Indent] with two
// spaces, and a final newline.
func indent(raw json.RawMessage) []byte {
	p := printer{out: make([]byte, 0, 2*len(raw))}
	p.write(raw)
	return append(p.out, '\n')
}

// printer lays out JSON text that it is given in pieces of whole tokens.
type printer struct {
	out   []byte
	depth int
}

// write prints tokens of valid JSON. Blanks between them make no difference.
func (p *printer) write(raw []byte) {
	for at := 0; at < len(raw); {
		next := at + 1
		switch raw[at] {
		case ' ', '\t', '\r', '\n':
		case '"':
			next = endOfString(raw, at)
			p.value(raw[at:next])
		case '{', '[':
			p.value(raw[at:next])
			p.depth++
		case '}', ']':
			p.depth--
			if !p.after("{[") {
				p.newLine()
			}
			p.out = append(p.out, raw[at])
		case ',':
			p.out = append(p.out, ',')
		case ':':
			p.out = append(p.out, ':', ' ')
		default: // numbers and words
			next = max(next, endOfWord(raw, at))
			p.value(raw[at:next])
		}
		at = next
	}
}

// value prints a token that begins a line after a bracket or a comma.
func (p *printer) value(token []byte) {
	if p.after("{[,") {
		p.newLine()
	}
	p.out = append(p.out, token...)
}

// after reports whether the last byte is one of some. A string ends with a quote,
// so it is never a byte of one.
func (p *printer) after(some string) bool {
	return len(p.out) > 0 && strings.IndexByte(some, p.out[len(p.out)-1]) >= 0
}

func (p *printer) newLine() {
	p.out = append(p.out, '\n')
	for range p.depth {
		p.out = append(p.out, ' ', ' ')
	}
}

func (p *printer) object(o object) {
	p.write([]byte("{"))
	for i, m := range o {
		p.key(i, m.key)
		p.write(m.value)
	}
	p.write([]byte("}"))
}

// key prints the key of member i of an object.
func (p *printer) key(i int, key string) {
	if i > 0 {
		p.out = append(p.out, ',')
	}
	if p.after("{,") {
		p.newLine()
	}
	p.out = append(appendString(p.out, key), ':', ' ')
}

// appendString appends a string in JSON.
func appendString(out []byte, s string) []byte {
	start := len(out)
	out = append(append(append(out, '"'), s...), '"')
	if plain(out[start:]) {
		return out
	}
	return append(out[:start], encode(s)...)
}
