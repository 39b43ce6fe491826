package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

const (
	maxFileBytes = 1 << 20
	maxDepth     = 64
)

// object is a JSON object that keeps what it does not understand: the order of
// its members and the spelling of every value.
type object struct{ members []member }

// member has either obj, when its value is an object, or raw.
type member struct {
	key string
	obj *object
	raw json.RawMessage
}

// parse reads a settings file. Every error says where in the text it is.
func parse(data []byte) (*object, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if err := checkSyntax(data); err != nil {
		return nil, err
	}
	return parseObject(data, "", 0)
}

// parseObject splits a valid JSON object into its members.
func parseObject(data []byte, path string, depth int) (*object, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%s: is nested more than %d levels deep", path, maxDepth)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if _, err := dec.Token(); err != nil { // the opening brace
		return nil, err
	}
	o := &object{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m := member{key: fmt.Sprint(token)}
		if err := dec.Decode(&m.raw); err != nil {
			return nil, err
		}
		here := childPath(path, m.key)
		if o.find(m.key) != nil {
			return nil, fmt.Errorf("%s: occurs twice; remove one of the two", here)
		}
		if m.raw[0] == '{' {
			if m.obj, err = parseObject(m.raw, here, depth+1); err != nil {
				return nil, err
			}
			m.raw = nil
		}
		o.members = append(o.members, m)
	}
	return o, nil
}

func (o *object) find(key string) *member {
	for i := range o.members {
		if o.members[i].key == key {
			return &o.members[i]
		}
	}
	return nil
}

func (o *object) remove(key string) {
	o.members = slices.DeleteFunc(o.members, func(m member) bool { return m.key == key })
}

// lookup follows path; nil means that there is nothing.
func (o *object) lookup(path []string) *member {
	at := &member{obj: o}
	for _, key := range path {
		if at == nil || at.obj == nil {
			return nil
		}
		at = at.obj.find(key)
	}
	return at
}

// set puts value at path and makes the objects on the way. A null removes what
// is there.
func (o *object) set(path []string, value member) error {
	here := ""
	for _, key := range path[:len(path)-1] {
		here = childPath(here, key)
		m := o.find(key)
		switch {
		case m == nil:
			o.members = append(o.members, member{key: key})
			m = &o.members[len(o.members)-1]
			fallthrough
		case m.isNull():
			m.obj, m.raw = &object{}, nil
		case m.obj == nil:
			return fmt.Errorf("%s is no object", here)
		}
		o = m.obj
	}
	last := path[len(path)-1]
	m := o.find(last)
	switch {
	case value.isNull():
		o.remove(last)
	case m != nil:
		m.obj, m.raw = value.obj, value.raw
	default:
		value.key = last
		o.members = append(o.members, value)
	}
	return nil
}

// isNull reports whether m counts as not there.
func (m *member) isNull() bool {
	return m == nil || m.obj == nil && (len(m.raw) == 0 || string(m.raw) == "null")
}

// withDefaults returns a document in which every setting that o lacks has the
// value of defaults.
func (o *object) withDefaults(defaults *object) *object {
	merged := &object{members: slices.Clone(o.members)}
	for _, d := range defaults.members {
		m := merged.find(d.key)
		switch {
		case m == nil:
			merged.members = append(merged.members, d)
		case m.isNull():
			*m = d
		case m.obj != nil && d.obj != nil:
			m.obj = m.obj.withDefaults(d.obj)
		}
	}
	return merged
}

// appendJSON appends the compact form of m's value.
func (m *member) appendJSON(dst []byte) []byte {
	if m.obj == nil {
		return append(dst, m.raw...)
	}
	dst = append(dst, '{')
	for i := range m.obj.members {
		if i > 0 {
			dst = append(dst, ',')
		}
		child := &m.obj.members[i]
		dst = append(dst, quote(child.key)...)
		dst = append(dst, ':')
		dst = child.appendJSON(dst)
	}
	return append(dst, '}')
}

// indented returns m's value as it is written to a file or shown.
func (m *member) indented() ([]byte, error) {
	var b bytes.Buffer
	if err := json.Indent(&b, m.appendJSON(nil), "", "  "); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// quote encodes s without the escapes that are meant for HTML.
func quote(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
