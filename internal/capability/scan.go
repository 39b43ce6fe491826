package capability

import (
	"encoding/json"
	"slices"
)

// What is here takes apart JSON text that is known to be valid, without copying
// it: a value that it returns is a part of the text.

// members reads an object.
func members(data []byte, seen func(key string)) (object, error) {
	at := skipBlanks(data, 0)
	if data[at] != '{' {
		return nil, errNotObject
	}
	var o object
	var known places
	for at = skipBlanks(data, at+1); data[at] != '}'; {
		end := endOfString(data, at)
		m := member{key: text(data[at:end])}
		at = skipBlanks(data, skipBlanks(data, end)+1) // the colon
		end = endOfValue(data, at)
		m.value = data[at:end:end]
		if i := known.find(o, m.key); i >= 0 {
			o[i].value = m.value
			if seen != nil {
				seen(m.key)
			}
		} else {
			o = append(o, m)
		}
		at = nextItem(data, end)
	}
	return o, nil
}

// places finds the members of an object that is being read, also of one that
// somebody made long.
type places map[string]int

func (p *places) find(o object, key string) int {
	const few = 32
	if len(o) <= few {
		return slices.IndexFunc(o, func(m member) bool { return m.key == key })
	}
	if *p == nil {
		*p = places{}
	}
	for i := len(*p); i < len(o); i++ {
		(*p)[o[i].key] = i
	}
	if i, ok := (*p)[key]; ok {
		return i
	}
	return -1
}

// elements reads an array.
func elements(data []byte) []json.RawMessage {
	items := []json.RawMessage{}
	for at := skipBlanks(data, skipBlanks(data, 0)+1); data[at] != ']'; {
		end := endOfValue(data, at)
		items = append(items, data[at:end:end])
		at = nextItem(data, end)
	}
	return items
}

// nextItem is where the next member or element begins, or the closing bracket
// stands, after the one that ends at end.
func nextItem(data []byte, end int) int {
	at := skipBlanks(data, end)
	if data[at] == ',' {
		at = skipBlanks(data, at+1)
	}
	return at
}

func skipBlanks(data []byte, at int) int {
	for at < len(data) && (data[at] == ' ' || data[at] == '\n' || data[at] == '\r' || data[at] == '\t') {
		at++
	}
	return at
}

func endOfValue(data []byte, at int) int {
	switch data[at] {
	case '"':
		return endOfString(data, at)
	case '{', '[':
		return endOfBracket(data, at)
	}
	return endOfWord(data, at)
}

func endOfString(data []byte, at int) int {
	for at++; at < len(data) && data[at] != '"'; at++ {
		if data[at] == '\\' {
			at++
		}
	}
	return min(at+1, len(data))
}

func endOfBracket(data []byte, at int) int {
	depth := 0
	for {
		switch data[at] {
		case '"':
			at = endOfString(data, at)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if at++; depth == 0 {
			return at
		}
	}
}

// endOfWord is the end of a number, true, false or null.
func endOfWord(data []byte, at int) int {
	for at < len(data) && (data[at] >= '0' && data[at] <= '9' || data[at] >= 'a' && data[at] <= 'z' ||
		data[at] == '-' || data[at] == '+' || data[at] == '.' || data[at] == 'E') {
		at++
	}
	return at
}

// text is a string of JSON, decoded.
func text(raw []byte) string {
	if plain(raw) {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	_ = json.Unmarshal(raw, &s) // it is one
	return s
}

// plain reports whether raw is a JSON string that stands for its own bytes.
func plain(raw []byte) bool {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return false
	}
	for _, c := range raw[1 : len(raw)-1] {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
