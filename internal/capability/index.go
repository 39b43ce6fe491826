package capability

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
)

const indexVersion = "1.0.0"

// index is tools/index.json, with everything in it that we do not know. What
// was read is shared by all readers and does not change any more.
type index struct {
	fields  object // the top level; "capabilities" holds its place only
	entries []*entry
	size    int // of the file that it was read from
	// tidy: that has our layout, so entries can be written as they stand there.
	tidy bool
	// bad are entries that cannot be read, as they stand in the file.
	bad []json.RawMessage
	// conflict is set when the file holds git's conflict markers: then nothing
	// is written.
	conflict string
	// disputes are the capabilities of which it tells two things.
	disputes []dispute
}

// entry is one capability of the index: its fields as they stand there, and
// what we understand of them.
type entry struct {
	fields   object
	def      Definition
	version  string
	hash     string // "" in an entry of the seed's format
	status   string
	pending  *versionRef     // a version that waits while an older one is active
	conflict string          // both sides, when there are two
	problem  string          // why its permissions or examples cannot be read
	raw      json.RawMessage // as it stands in the file; nil: it was not read from one
	terms    func() []term   // what a search finds it by
}

// versionRef names a version.
type versionRef struct {
	Version string `json:"version"`
	Hash    string `json:"sha256"`
}

func emptyIndex() *index {
	return &index{fields: object{{"version", encode(indexVersion)}, {"capabilities", encode([]int{})}}}
}

func canonical(e *entry) string { return string(canonicalJSON(encode(e.fields))) }

// describe names the version of an entry.
func (e *entry) describe() string {
	if e.hash == "" {
		return e.version
	}
	return e.version + " (" + short(e.hash) + ")"
}

// short is the part of a hash that file names carry.
func short(hash string) string { return hash[:min(12, len(hash))] }

// author is ByModel or ByHuman, as the entry says.
func (e *entry) author() string {
	by, _ := DecodeString(e.fields.get("created_by"), "created_by")
	if by == "" {
		return ByModel
	}
	return by
}

func (ix *index) find(name string) *entry {
	for _, e := range ix.entries {
		if e.def.Name == name {
			return e
		}
	}
	return nil
}

// live are the names of those that are not archived.
func (ix *index) live() []string {
	var names []string
	for _, e := range ix.entries {
		if e.status != StatusArchived {
			names = append(names, e.def.Name)
		}
	}
	return names
}

func (ix *index) names() []string {
	names := make([]string, 0, len(ix.entries))
	for _, e := range ix.entries {
		names = append(names, e.def.Name)
	}
	return names
}

func decodeRef(raw json.RawMessage) (*versionRef, error) {
	if raw == nil {
		return nil, nil
	}
	var ref versionRef
	if err := json.Unmarshal(raw, &ref); err != nil || !validHash(ref.Hash) {
		return nil, errors.New("entry.pending is not a version and its sha256")
	}
	return &ref, nil
}

func validHash(hash string) bool {
	return len(hash) == 64 && strings.Trim(hash, "0123456789abcdef") == ""
}

// with returns a copy of the index in which e has the place of the entry of its
// name. A new one comes where the order of names has it, if the index has that
// order, so that two branches which add capabilities seldom meet; else last.
func (ix *index) with(changed *entry) *index {
	e := *changed
	e.raw = nil
	out := &index{fields: ix.fields, entries: slices.Clone(ix.entries), size: ix.size, tidy: ix.tidy}
	for i, old := range out.entries {
		if old.def.Name == e.def.Name {
			out.entries[i] = &e
			return out
		}
	}
	byName := func(a, b *entry) int { return strings.Compare(a.def.Name, b.def.Name) }
	at := len(out.entries)
	if slices.IsSortedFunc(out.entries, byName) {
		at, _ = slices.BinarySearchFunc(out.entries, &e, byName)
	}
	out.entries = slices.Insert(out.entries, at, &e)
	return out
}

// without returns a copy of the index that has no entry of name.
func (ix *index) without(name string) *index {
	out := &index{fields: ix.fields, entries: slices.Clone(ix.entries), size: ix.size, tidy: ix.tidy}
	out.entries = slices.DeleteFunc(out.entries, func(e *entry) bool { return e.def.Name == name })
	return out
}

// activeEntry is the entry of v as the active version of its capability, made
// from the entry that was there before, or nil.
func activeEntry(before *entry, v *version, status string) *entry {
	var old object
	if before != nil {
		old = before.fields
	}
	keep := func(key string, value json.RawMessage) json.RawMessage {
		if kept := old.get(key); kept != nil {
			return kept
		}
		return value
	}
	def := v.Definition
	fields := []member{
		{"name", encode(def.Name)},
		{"capability", encode(def.Capability)},
		{"triggers", encode(orEmpty(def.Triggers))},
		{"suppression", encode(orEmpty(def.Suppression))},
		{"tool_path", keep("tool_path", encode(def.Name+".ts"))},
		{"created", keep("created", encode(v.Created.Format(time.DateOnly)))},
		{"created_by", encode(v.CreatedBy)},
		{"version", encode(v.Version)},
		{"parameters", def.Parameters},
		{"permissions", optional(def.Permissions != nil, def.Permissions)},
		{"examples", optional(len(def.Examples) > 0, def.Examples)},
		{"sha256", encode(v.Hash)},
		{"updated", encode(v.Created.Format(time.RFC3339))},
		{"session", optional(v.Session != "", v.Session)},
		{"status", encode(status)},
		{"pending", nil},
	}
	out := old
	for _, m := range fields {
		out = out.set(m.key, m.value)
	}
	return &entry{fields: out, def: def, version: v.Version, hash: v.Hash, status: status, terms: termsOf(&def)}
}

// pendingEntry is the entry of before with v waiting beside its active version.
func pendingEntry(before *entry, v *version) *entry {
	e := *before
	e.pending = &versionRef{v.Version, v.Hash}
	e.fields = before.fields.set("pending", encode(e.pending))
	return &e
}

func optional(there bool, value any) json.RawMessage {
	if !there {
		return nil
	}
	return encode(value)
}
