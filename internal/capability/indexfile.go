package capability

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

const maxIndex = 16 << 20

// decodeIndex reads an index. The error says why it is unreadable as a whole;
// single entries that are go to bad. A byte order mark and CRLF are fine. Of an
// index that was read before, if there is one, entries that still have the same
// bytes are taken as they are.
func decodeIndex(data []byte, before *index) (*index, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errors.New("it is empty")
	}
	if c := findConflict(data); c != nil {
		return c.index(), nil
	}
	if err := checkJSON(data); err != nil {
		return nil, err
	}
	return readIndex(data, before)
}

// readIndex is decodeIndex of what is known to be JSON.
func readIndex(data []byte, before *index) (*index, error) {
	fields, err := members(data, nil)
	if err != nil {
		return nil, err
	}
	list := fields.get("capabilities")
	if list == nil {
		return nil, errors.New("it has no list of capabilities")
	}
	if kind := kindOf(list); kind != "an array" {
		return nil, &InputError{"capabilities", "want an array, got " + kind}
	}
	in := indexReader{out: &index{fields: fields.set("capabilities", encode([]int{})), size: len(data)}, byName: map[string]int{}, before: before}
	for at := skipBlanks(list, 1); list[at] != ']'; {
		at = nextItem(list, in.add(list, at))
	}
	return in.out, nil
}

type indexReader struct {
	out    *index
	byName map[string]int // places in out
	before *index         // what was read earlier, or nil
	at     int            // the place in before that comes next
	places map[string]int // of the names in before, once they are needed
}

// add reads the entry at a place of the list, and returns where it ends. One that
// is there already is dropped when it says the same, else both are in conflict.
func (in *indexReader) add(list []byte, start int) (end int) {
	if e := in.next(); e != nil && bytes.HasPrefix(list[start:], e.raw) {
		in.at++
		in.keep(e)
		return start + len(e.raw)
	}
	end = endOfValue(list, start)
	if e, err := in.decode(list[start:end:end]); err == nil {
		in.keep(e)
	} else {
		in.out.bad = append(in.out.bad, list[start:end:end])
	}
	return end
}

// next is the entry of the index before that mostly comes next.
func (in *indexReader) next() *entry {
	if in.before == nil || in.at >= len(in.before.entries) {
		return nil
	}
	if e := in.before.entries[in.at]; e.conflict == "" && e.raw != nil {
		return e
	}
	return nil
}

func (in *indexReader) keep(e *entry) {
	ix := in.out
	at, twice := in.byName[e.def.Name]
	if !twice {
		in.byName[e.def.Name] = len(ix.entries)
		ix.entries = append(ix.entries, e)
	} else if twin := ix.entries[at]; canonical(twin) != canonical(e) {
		conflict := fmt.Sprintf("tools/index.json has two entries of %s: %s and %s", e.def.Name, twin.describe(), e.describe())
		twin, e = twin.disputed(conflict), e.disputed(conflict)
		ix.entries[at] = twin
		ix.entries = append(ix.entries, e)
		ix.disputes = append(ix.disputes, dispute{e.def.Name, twin, e})
	}
}

// disputed is a copy of an entry that is in conflict.
func (e *entry) disputed(conflict string) *entry {
	out := *e
	out.conflict = conflict
	return &out
}

func (in *indexReader) decode(raw json.RawMessage) (*entry, error) {
	if in.before == nil {
		return readEntry(raw)
	}
	e, err := decodeEntry(bytes.Clone(raw)) // a part of raw would hold on to the whole file
	if err != nil {
		return nil, err
	}
	if in.places == nil {
		in.places = map[string]int{}
		for i, e := range in.before.entries {
			in.places[e.def.Name] = i
		}
	}
	if at, ok := in.places[e.def.Name]; ok {
		in.at = at + 1
	}
	return e, nil
}

// encode writes the index in the layout of the seed: two blanks to indent.
func (ix *index) encode() []byte {
	p := printer{out: make([]byte, 0, ix.size+ix.size/8)}
	p.write([]byte("{"))
	for i, m := range ix.fields {
		p.key(i, m.key)
		if m.key != "capabilities" {
			p.write(m.value)
			continue
		}
		p.write([]byte("["))
		for i, e := range ix.entries {
			if i > 0 {
				p.write([]byte(","))
			}
			if ix.tidy && e.raw != nil {
				p.value(e.raw)
				continue
			}
			p.object(e.fields)
		}
		p.write([]byte("]"))
	}
	p.write([]byte("}"))
	return append(p.out, '\n')
}

func decodeEntry(raw json.RawMessage) (*entry, error) {
	if err := checkJSON(raw); err != nil {
		return nil, err
	}
	return readEntry(raw)
}

// readEntry is decodeEntry of what is known to be JSON.
func readEntry(raw json.RawMessage) (*entry, error) {
	fields, err := members(raw, nil)
	if err != nil {
		return nil, err
	}
	e := &entry{fields: fields, raw: raw}
	if e.def, err = definitionOf(fields.get, "entry"); err != nil {
		// A newer program may know permissions that we do not: such an entry
		// stays in its place, but does not run from here.
		e.problem = err.Error()
		known := fields.set("permissions", nil).set("examples", nil)
		if e.def, err = definitionOf(known.get, "entry"); err != nil {
			return nil, err
		}
	}
	e.terms = termsOf(&e.def)
	if !validName(e.def.Name) {
		return nil, fmt.Errorf("%s is not the name of a capability", quote(e.def.Name))
	}
	if fields.get("capability") == nil {
		return nil, errors.New("entry.capability is missing")
	}
	for key, to := range map[string]*string{"version": &e.version, "sha256": &e.hash, "status": &e.status} {
		if *to, err = DecodeString(fields.get(key), "entry."+key); err != nil {
			return nil, err
		}
	}
	if e.pending, err = decodeRef(fields.get("pending")); err != nil {
		return nil, err
	}
	if e.hash != "" && !validHash(e.hash) {
		return nil, errors.New("entry.sha256 is not a SHA-256")
	}
	return e, nil
}
