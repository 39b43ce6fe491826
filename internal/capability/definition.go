// Package capability keeps the registry: what each capability is, its immutable
// versions, and the gate that a version passes before it runs.
package capability

import (
	"encoding/json"
)

// Definition is what a model (or a person) says about a capability when it
// registers one. Its JSON form is the input of registerCapability and, with the
// fields of [Entry], an entry of tools/index.json.
type Definition struct {
	Name        string          `json:"name"`
	Capability  string          `json:"capability"` // one sentence of what it does
	Triggers    []string        `json:"triggers"`
	Suppression []string        `json:"suppression"`
	Parameters  json.RawMessage `json:"parameters,omitempty"` // JSON Schema of args
	Permissions *Permissions    `json:"permissions,omitempty"`
	Examples    []Example       `json:"examples,omitempty"`
	// Replaces and Reason speak to the gate's duplicate step; they are kept with
	// the version.
	Replaces string `json:"replaces,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// Permissions is what a capability declares that it needs. Omitted Read or
// Write (nil) mean the workspace minus protected paths; omitted Net means none.
type Permissions struct {
	Net     []string        `json:"net,omitzero"`
	Read    []string        `json:"read,omitzero"`
	Write   []string        `json:"write,omitzero"`
	Secrets []string        `json:"secrets,omitempty"`
	Limits  json.RawMessage `json:"limits,omitempty"`
}

// Example is a call that proves a capability.
type Example struct {
	Args   json.RawMessage `json:"args"`
	Expect json.RawMessage `json:"expect,omitempty"`
}
