package capability

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	maxTypeDepth = 24
	maxTypeBytes = 64 << 10
	openObject   = "{ [key: string]: any }"
)

// argsType writes the TypeScript type of args from the JSON Schema of the
// parameters. What it cannot express becomes any; so does a type that would be
// very deep or long. Without parameters args is any.
func argsType(parameters json.RawMessage) string {
	if len(parameters) == 0 {
		return "any"
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(parameters))
	if err != nil {
		return "any"
	}
	w := typeWriter{root: doc, left: maxTypeBytes}
	text := w.schema(doc, 0)
	if w.left < 0 {
		return "any"
	}
	return text
}

// typeWriter walks a schema. left is how many bytes it may still write; when
// they are used up everything becomes any, so a schema that grows by references
// to itself stays bounded.
type typeWriter struct {
	root any
	left int
	refs []string // those being followed
}

func (w *typeWriter) emit(text string) string {
	w.left -= len(text)
	return text
}

func (w *typeWriter) schema(s any, depth int) string {
	if depth > maxTypeDepth || w.left < 0 {
		return "any"
	}
	switch s := s.(type) {
	case bool:
		if !s {
			return w.emit("never")
		}
	case map[string]any:
		return w.emit(w.keywords(s, depth))
	}
	return w.emit("any")
}

// keywords joins what the keywords of one schema say: all of it must hold.
func (w *typeWriter) keywords(s map[string]any, depth int) string {
	var parts []string
	add := func(t string) {
		if t != "any" && !slices.Contains(parts, t) {
			parts = append(parts, t)
		}
	}
	if ref, ok := s["$ref"].(string); ok {
		add(w.ref(ref, depth))
	}
	if value, ok := s["const"]; ok {
		add(literal(value))
	} else if values, ok := s["enum"].([]any); ok {
		add(union(values, literal))
	} else {
		add(w.types(s, depth))
	}
	sub := func(s any) string { return w.schema(s, depth+1) }
	for _, key := range []string{"anyOf", "oneOf"} {
		if list, ok := s[key].([]any); ok {
			add(union(list, sub))
		}
	}
	if list, ok := s["allOf"].([]any); ok {
		for _, item := range list {
			add(sub(item))
		}
	}
	if len(parts) == 0 {
		return "any"
	}
	text := intersect(parts)
	if s["nullable"] == true {
		return "(" + text + " | null)"
	}
	return text
}

func intersect(parts []string) string {
	if len(parts) == 1 {
		return parts[0]
	}
	return "(" + strings.Join(parts, " & ") + ")"
}

// union joins the types of items; one that is any makes all of it any.
func union(items []any, typeOf func(any) string) string {
	var parts []string
	for _, item := range items {
		t := typeOf(item)
		if t == "any" {
			return "any"
		}
		if !slices.Contains(parts, t) {
			parts = append(parts, t)
		}
	}
	switch len(parts) {
	case 0:
		return "any"
	case 1:
		return parts[0]
	}
	return "(" + strings.Join(parts, " | ") + ")"
}

// types writes the "type" keyword, or what properties and items imply.
func (w *typeWriter) types(s map[string]any, depth int) string {
	switch t := s["type"].(type) {
	case string:
		return w.simple(t, s, depth)
	case []any:
		return union(t, func(item any) string {
			name, _ := item.(string)
			return w.simple(name, s, depth)
		})
	}
	if _, ok := s["properties"]; ok {
		return w.simple("object", s, depth)
	}
	if _, ok := s["items"]; ok {
		return w.simple("array", s, depth)
	}
	return "any"
}

func (w *typeWriter) simple(name string, s map[string]any, depth int) string {
	switch name {
	case "string", "number", "boolean", "null":
		return name
	case "integer":
		return "number"
	case "array":
		if _, ok := s["prefixItems"]; ok {
			return "Array<any>"
		}
		return "Array<" + w.schema(s["items"], depth+1) + ">"
	case "object":
		return w.object(s, depth)
	}
	return "any"
}

func (w *typeWriter) object(s map[string]any, depth int) string {
	properties, _ := s["properties"].(map[string]any)
	required := map[string]bool{}
	names := make([]string, 0, len(properties))
	for name := range properties {
		names = append(names, name)
	}
	list, _ := s["required"].([]any)
	for _, item := range list {
		name, ok := item.(string)
		if _, known := properties[name]; ok && !known && !required[name] {
			names = append(names, name)
		}
		required[name] = ok
	}
	slices.Sort(names)
	extra := w.extra(s, len(names) == 0, depth)
	if len(names) == 0 {
		return extra
	}
	var b strings.Builder
	b.WriteString("{ ")
	for _, name := range names {
		b.WriteString(propertyName(name))
		if !required[name] {
			b.WriteString("?")
		}
		t := "any"
		if schema, ok := properties[name]; ok {
			t = w.schema(schema, depth+1)
		}
		b.WriteString(": " + t + "; ")
	}
	b.WriteString("}")
	if extra == "" {
		return b.String()
	}
	return "(" + b.String() + " & " + extra + ")"
}

// extra is the type of the properties that are not named; "" when there should
// be none. A schema that says nothing about them counts as closed once it names
// some: a misspelt name in the code is worth an error.
func (w *typeWriter) extra(s map[string]any, unnamed bool, depth int) string {
	if _, ok := s["patternProperties"]; ok {
		return openObject
	}
	additional, said := s["additionalProperties"]
	switch {
	case !unnamed && (!said || additional == false):
		return ""
	case !unnamed || !said || additional == true:
		return openObject
	case additional == false:
		return "{ [key: string]: never }"
	}
	return "{ [key: string]: " + w.schema(additional, depth+1) + " }"
}

// propertyName is a quoted key. JSON's escapes are also those of TypeScript, and
// everything outside printable ASCII is escaped.
func propertyName(name string) string {
	quoted := string(encode(name))
	var b strings.Builder
	for _, r := range quoted {
		if r >= 0x20 && r < 0x7f {
			b.WriteRune(r)
			continue
		}
		b.WriteString(escapeRune(r))
	}
	return b.String()
}

func escapeRune(r rune) string {
	const digits = "0123456789abcdef"
	escape := func(u rune) string {
		return `\u` + string([]byte{digits[u>>12&15], digits[u>>8&15], digits[u>>4&15], digits[u&15]})
	}
	if r < 0x10000 {
		return escape(r)
	}
	r -= 0x10000
	return escape(0xd800+r>>10) + escape(0xdc00+r&0x3ff)
}

var plainNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?$`)

// literal is the type that holds one value.
func literal(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		if v {
			return "true"
		}
		return "false"
	case string:
		if len(v) > 1000 {
			return "string"
		}
		return propertyName(v)
	case json.Number:
		if plainNumber.MatchString(v.String()) {
			return v.String()
		}
		return "number"
	}
	return "any"
}

// ref follows a reference inside the schema. One that leads back to itself, or
// out, becomes any.
func (w *typeWriter) ref(ref string, depth int) string {
	if slices.Contains(w.refs, ref) {
		return "any"
	}
	target, ok := resolvePointer(w.root, ref)
	if !ok {
		return "any"
	}
	w.refs = append(w.refs, ref)
	defer func() { w.refs = w.refs[:len(w.refs)-1] }()
	return w.schema(target, depth+1)
}

func resolvePointer(doc any, ref string) (any, bool) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	if pointer == "" {
		return doc, true
	}
	if !strings.HasPrefix(pointer, "/") {
		return nil, false
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for key := range strings.SplitSeq(pointer[1:], "/") {
		object, ok := doc.(map[string]any)
		if !ok {
			return nil, false
		}
		if doc, ok = object[unescape.Replace(key)]; !ok {
			return nil, false
		}
	}
	return doc, true
}
