package capability

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// InputError says what is wrong with a JSON input, and where: Path reads like
// definition.permissions.net[1].
type InputError struct {
	Path    string
	Message string
}

func (e *InputError) Error() string { return e.Path + ": " + e.Message }

// DecodeObject reads raw as a JSON object that may hold the allowed keys and no
// others. Keys match exactly, case included, and none may be given twice, so
// that what is shown of an input and what is done with it are the same. A null
// counts as not given. path names the object in the *[InputError].
func DecodeObject(raw json.RawMessage, path string, allowed ...string) (map[string]json.RawMessage, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, &InputError{path, "want an object, got nothing"}
	}
	if kind := kindOf(raw); kind != "an object" {
		return nil, &InputError{path, "want an object, got " + kind}
	}
	var twice []string
	o, err := decodeObject(raw, func(key string) { twice = append(twice, key) })
	if err != nil {
		return nil, &InputError{path, "is not valid JSON: " + err.Error()}
	}
	if len(twice) > 0 {
		return nil, &InputError{path, fmt.Sprintf("the key %q is given twice; give it once", twice[0])}
	}
	fields := make(map[string]json.RawMessage, len(o))
	for _, m := range o {
		if !slices.Contains(allowed, m.key) {
			return nil, &InputError{path, unknownKey(m.key, allowed)}
		}
		if string(m.value) != "null" {
			fields[m.key] = m.value
		}
	}
	return fields, nil
}

func unknownKey(key string, allowed []string) string {
	for _, a := range allowed {
		if strings.EqualFold(key, a) {
			return fmt.Sprintf("unknown key %s; write it %q", quote(key), a)
		}
	}
	if len(allowed) == 0 {
		return fmt.Sprintf("unknown key %s; no keys are allowed here", quote(key))
	}
	return fmt.Sprintf("unknown key %s; the keys are %s", quote(key), strings.Join(allowed, ", "))
}

// kindOf names the type of a JSON value for a message.
func kindOf(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}

// DecodeString reads raw as a JSON string; nil is "".
func DecodeString(raw json.RawMessage, path string) (string, error) {
	if raw == nil {
		return "", nil
	}
	if plain(raw) {
		return string(raw[1 : len(raw)-1]), nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", &InputError{path, "want a string, got " + kindOf(raw)}
	}
	return s, nil
}

// decodeStrings reads raw as an array of strings. It is nil only when raw is.
func decodeStrings(raw json.RawMessage, path string) ([]string, error) {
	items, err := decodeArray(raw, path, "an array of strings")
	if items == nil || err != nil {
		return nil, err
	}
	list := make([]string, len(items))
	for i, item := range items {
		if kind := kindOf(item); kind != "a string" {
			return nil, &InputError{fmt.Sprintf("%s[%d]", path, i), "want a string, got " + kind}
		}
		list[i] = text(item)
	}
	return list, nil
}

func decodeArray(raw json.RawMessage, path, want string) ([]json.RawMessage, error) {
	if raw == nil {
		return nil, nil
	}
	if kind := kindOf(raw); kind != "an array" {
		return nil, &InputError{path, "want " + want + ", got " + kind}
	}
	if err := checkJSON(raw); err != nil {
		return nil, &InputError{path, "is not valid JSON: " + err.Error()}
	}
	return elements(raw), nil
}

// quote shows a foreign text in a message: short, and without control
// characters.
func quote(s string) string {
	return strconv.Quote(clip(s, 60))
}

// clip cuts s after n characters, and says so with an ellipsis.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	count := 0
	for i := range s {
		if count == n {
			return s[:i] + "…"
		}
		count++
	}
	return s
}
