package testkit

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Lint checks recorded requests against what the real providers refuse and
// returns one line for each broken rule; none means that all are clean. It
// knows OpenAI Chat Completions, Anthropic Messages and Bedrock Converse, and
// tells them apart by path and shape. Bodies without "messages" are not
// checked.
func Lint(requests []Request) []string {
	var l linter
	for _, r := range requests {
		l.request(r)
	}
	return l.broken
}

var legalName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

type linter struct {
	n      int
	broken []string
}

func (l *linter) errorf(format string, args ...any) {
	l.broken = append(l.broken, fmt.Sprintf("request %d: ", l.n)+fmt.Sprintf(format, args...))
}

func (l *linter) request(r Request) {
	l.n = r.N
	if !utf8.Valid(r.Body) {
		l.errorf("body-not-utf8")
		return
	}
	var value any
	if err := json.Unmarshal(r.Body, &value); err != nil {
		l.errorf("body-not-json %v", err)
		return
	}
	body, _ := value.(map[string]any)
	if _, ok := body["messages"]; !ok {
		return
	}
	l.escapes(string(r.Body))
	switch {
	case isBedrock(r.Path, body):
		l.bedrock(body)
	case strings.HasSuffix(strings.TrimRight(r.Path, "/"), "/messages"):
		l.anthropic(r.Body, body)
	default:
		l.openAI(body)
	}
}

func isBedrock(path string, body map[string]any) bool {
	if strings.Contains(path, "converse") || body["toolConfig"] != nil {
		return true
	}
	for _, m := range maps(body["messages"]) {
		for _, block := range maps(m["content"]) {
			if block["toolUse"] != nil || block["toolResult"] != nil {
				return true
			}
		}
	}
	return false
}

// escapes looks at the text of the JSON, because decoding it would repair it.
func (l *linter) escapes(body string) {
	lone, nul := false, strings.ContainsRune(body, 0)
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' {
			continue
		}
		unit, ok := escapedUnit(body[i:])
		switch {
		case !ok:
			i++ // the escaped character
			continue
		case unit == 0:
			nul = true
		case 0xD800 <= unit && unit < 0xDC00:
			low, ok := escapedUnit(body[i+6:])
			if ok && 0xDC00 <= low && low < 0xE000 {
				i += 6
			} else {
				lone = true
			}
		case 0xDC00 <= unit && unit < 0xE000:
			lone = true
		}
		i += 5
	}
	if lone {
		l.errorf("lone-surrogate")
	}
	if nul {
		l.errorf("NUL-in-string")
	}
}

// escapedUnit reads a \uXXXX at the start of s.
func escapedUnit(s string) (uint64, bool) {
	if len(s) < 6 || s[:2] != `\u` {
		return 0, false
	}
	unit, err := strconv.ParseUint(s[2:6], 16, 16)
	return unit, err == nil
}

// tool is a tool's name and its schema.
type tool struct {
	name   any
	schema any
}

func (l *linter) tools(tools []tool) {
	seen := map[string]bool{}
	for _, t := range tools {
		name, _ := t.name.(string)
		if seen[name] {
			l.errorf("duplicate-tool-name %q", name)
		}
		seen[name] = true
		if !legalName.MatchString(name) {
			l.errorf("tool-name %q", name)
		}
		l.schema(name, t.schema)
	}
}

func (l *linter) schema(name string, value any) {
	schema, ok := value.(map[string]any)
	if !ok || schema["type"] != "object" {
		l.errorf("schema-not-object %q", name)
		return
	}
	if properties, ok := schema["properties"]; ok {
		if _, isObject := properties.(map[string]any); !isObject {
			l.errorf("schema-properties %q", name)
		}
	}
	if required, ok := schema["required"]; ok && required == nil {
		l.errorf("schema-required-null %q", name)
	}
}

func (l *linter) openAI(body map[string]any) {
	seen, open := map[string]bool{}, []string{}
	for i, m := range maps(body["messages"]) {
		if m["role"] == "tool" {
			at := slices.Index(open, identifier(m["tool_call_id"]))
			if at < 0 {
				l.errorf("tool-result-without-call msg %d id=%v", i, m["tool_call_id"])
			} else {
				open = slices.Delete(open, at, at+1)
			}
			if s, ok := m["content"].(string); ok && blank(s) {
				l.errorf("blank-tool-content msg %d", i)
			}
			continue
		}
		if len(open) > 0 {
			l.errorf("call-without-result before msg %d: %v", i, open)
			open = nil
		}
		if m["role"] == "assistant" {
			open = append(open, l.openAIAssistant(i, m, seen)...)
		}
	}
	if len(open) > 0 {
		l.errorf("call-without-result at end: %v", open)
	}
	var list []tool
	for _, t := range maps(body["tools"]) {
		function, _ := t["function"].(map[string]any)
		list = append(list, tool{function["name"], function["parameters"]})
	}
	l.tools(list)
}

// openAIAssistant checks one assistant message and returns the ids of its
// calls.
func (l *linter) openAIAssistant(i int, m map[string]any, seen map[string]bool) []string {
	calls := maps(m["tool_calls"])
	if len(calls) == 0 && isEmpty(m["content"]) {
		l.errorf("empty-assistant msg %d", i)
	}
	var ids []string
	for _, call := range calls {
		id := identifier(call["id"])
		switch {
		case id == "":
			l.errorf("missing-id msg %d", i)
		case seen[id]:
			l.errorf("id-reused-in-history %q", id)
		}
		seen[id] = true
		ids = append(ids, id)
		function, _ := call["function"].(map[string]any)
		if name, _ := function["name"].(string); !legalName.MatchString(name) {
			l.errorf("tool-name %q", name)
		}
		l.arguments(i, function["arguments"])
	}
	return ids
}

func (l *linter) arguments(i int, value any) {
	text, ok := value.(string)
	if !ok {
		l.errorf("arguments-not-a-string msg %d", i)
		return
	}
	var arguments any
	if err := json.Unmarshal([]byte(text), &arguments); err != nil {
		l.errorf("arguments-not-json msg %d %.40q", i, text)
		return
	}
	if _, ok := arguments.(map[string]any); !ok {
		l.errorf("arguments-not-object msg %d", i)
	}
}

// identifier is an id as text; what is no string is told apart by its printed
// form, and nothing is "".
func identifier(value any) string {
	switch id := value.(type) {
	case nil:
		return ""
	case string:
		return id
	}
	return fmt.Sprint(value)
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// isEmpty reports whether content is absent, an empty list or blank.
func isEmpty(content any) bool {
	switch c := content.(type) {
	case nil:
		return true
	case string:
		return blank(c)
	case []any:
		return len(c) == 0
	}
	return false
}

// maps returns the objects of a JSON array.
func maps(list any) []map[string]any {
	items, _ := list.([]any)
	var all []map[string]any
	for _, item := range items {
		object, _ := item.(map[string]any)
		all = append(all, object)
	}
	return all
}
