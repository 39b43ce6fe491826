package model

import (
	"encoding/json"
	"strings"
)

// toolSchema is a tool's JSON Schema with what providers insist on: "type":
// "object", an object "properties", an array "required". The other keywords
// stay as they are.
func toolSchema(raw json.RawMessage) map[string]json.RawMessage {
	schema := map[string]json.RawMessage{}
	if err := json.Unmarshal(wireInput(raw), &schema); err != nil || schema == nil {
		schema = map[string]json.RawMessage{}
	}
	schema["type"] = json.RawMessage(`"object"`)
	if !isObject(strings.TrimSpace(string(schema["properties"]))) {
		schema["properties"] = json.RawMessage(`{}`)
	}
	var required []string
	if json.Unmarshal(schema["required"], &required) != nil || required == nil {
		schema["required"] = json.RawMessage(`[]`)
	}
	return schema
}
