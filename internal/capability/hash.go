package capability

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// admissionHash names a version by its content: what runs, and what was said of
// it. It is the SHA-256, in hexadecimal, of
//
//	"tendril-version 1\n"
//	for each of source, definition, lock: its length in decimal, "\n", its bytes, "\n"
//
// The definition is the JSON object of name, capability, triggers, suppression,
// parameters, permissions and examples (the fields that an entry of the index
// holds as well), without blanks, absent fields left out, members in this order
// and those of schemas and examples sorted by key. The lock is a JSON object
// without blanks, its members sorted, and empty for a version without remote
// dependencies.
func admissionHash(def *Definition, source, lock []byte) string {
	h := sha256.New()
	h.Write([]byte("tendril-version 1\n"))
	for _, part := range [][]byte{source, canonicalDefinition(def), lock} {
		fmt.Fprintf(h, "%d\n", len(part))
		h.Write(part)
		h.Write([]byte("\n"))
	}
	return hex.EncodeToString(h.Sum(nil))
}

func canonicalDefinition(def *Definition) []byte {
	d := *def
	d.Replaces, d.Reason = "", ""
	d.Triggers, d.Suppression = orEmpty(d.Triggers), orEmpty(d.Suppression)
	d.Parameters = canonicalJSON(d.Parameters)
	if def.Permissions != nil {
		p := *def.Permissions
		p.Limits = canonicalJSON(p.Limits)
		d.Permissions = &p
	}
	d.Examples = nil
	for _, e := range def.Examples {
		d.Examples = append(d.Examples, Example{Args: canonicalJSON(e.Args), Expect: canonicalJSON(e.Expect)})
	}
	return encode(d)
}

// canonicalJSON sorts keys and drops blanks; numbers keep their digits.
func canonicalJSON(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return encode(string(raw)) // not JSON: refused by the gate, hashed as it is
	}
	return encode(v)
}

// digest is the SHA-256 of a file's bytes, "" for none.
func digest(data []byte) string {
	if data == nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
