package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// childPath writes the path of a member: keys with dots between them, where a
// key that has a dot of its own is quoted, as in model.prices."gpt-5.1".input.
func childPath(path, key string) string {
	if key == "" || strings.ContainsAny(key, ".\"") {
		key = string(quote(key))
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// joinPath writes the path of keys.
func joinPath(keys []string) string {
	path := ""
	for _, key := range keys {
		path = childPath(path, key)
	}
	return path
}

// splitPath reads what joinPath writes.
func splitPath(path string) ([]string, error) {
	if !utf8.ValidString(path) {
		return nil, failf("%q is no setting: it is not UTF-8", path)
	}
	var keys []string
	for rest := path; ; {
		key, n, err := firstKey(rest)
		if err != nil {
			return nil, failf("%q is no setting: %w; it looks like agent.maxTurns or model.prices.\"gpt-5.1\".input", path, err)
		}
		keys = append(keys, key)
		if n == len(rest) {
			return modelNames(keys), nil
		}
		rest = rest[n+1:] // the dot
	}
}

// modelNames joins the dots of a model's name in model.prices that nobody quoted:
// what follows it is known.
func modelNames(keys []string) []string {
	const at = 2 // the place of the name
	end := len(keys)
	if end > at+1 && slices.Contains(priceKinds, keys[end-1]) {
		end--
	}
	if end <= at+1 || keys[0] != "model" || keys[1] != "prices" {
		return keys
	}
	return append([]string{"model", "prices", strings.Join(keys[at:end], ".")}, keys[end:]...)
}

// firstKey returns the first key of a path and the bytes that it takes.
func firstKey(path string) (key string, n int, err error) {
	if !strings.HasPrefix(path, `"`) {
		key, _, _ = strings.Cut(path, ".")
		if key == "" || strings.Contains(key, `"`) {
			return "", 0, fmt.Errorf("it has an empty or half quoted part")
		}
		return key, len(key), nil
	}
	dec := json.NewDecoder(strings.NewReader(path))
	if err := dec.Decode(&key); err != nil {
		return "", 0, fmt.Errorf("it has a half quoted part")
	}
	n = int(dec.InputOffset())
	if n < len(path) && path[n] != '.' {
		return "", 0, fmt.Errorf("a quoted part must be followed by a dot")
	}
	return key, n, nil
}
