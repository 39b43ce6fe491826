package capability

import (
	"encoding/json"
	"errors"
	"os"
	"path"
	"strings"
	"time"
)

// tombstone says that a capability was deleted. It is kept beside the versions,
// under the number that the next one would have had.
type tombstone struct {
	Name      string    `json:"name"`
	Version   string    `json:"version"`
	CreatedBy string    `json:"created_by"`
	Created   time.Time `json:"created"`
	Person    string    `json:"person,omitempty"`
	Session   string    `json:"session,omitempty"`
	Entry     object    `json:"entry"` // as tools/index.json had it
}

const tombstoneEnding = "-deleted.json"

func tombstonePath(name, number string) string {
	return path.Join(versionsPath, name, number+tombstoneEnding)
}

// writeTombstone keeps that the capability of an entry was deleted.
func (r *Registry) writeTombstone(e *entry, by Provenance) error {
	name := e.def.Name
	t := tombstone{
		Name: name, Version: nextNumber(r.root, name, e).String(), CreatedBy: by.By,
		Created: r.opts.Now().UTC().Truncate(time.Second), Person: by.Person, Session: by.Session, Entry: e.fields,
	}
	return replace(r.disk, tombstonePath(name, t.Version), indent(encode(t)))
}

func parseTombstone(file string) (number, bool) {
	text, ok := strings.CutSuffix(file, tombstoneEnding)
	if !ok {
		return number{}, false
	}
	return parseNumber(text)
}

// readTombstone reads the record of a deletion and the entry that it holds.
func readTombstone(root *os.Root, name string, n number) (*tombstone, *entry, error) {
	data, err := readFile(root, tombstonePath(name, n.String()), maxKept)
	if err != nil {
		return nil, nil, err
	}
	fields, err := decodeObject(data, nil)
	if err != nil {
		return nil, nil, err
	}
	var t tombstone
	if err := json.Unmarshal(encode(fields.set("entry", nil)), &t); err != nil {
		return nil, nil, err
	}
	e, err := decodeEntry(fields.get("entry"))
	if err != nil {
		return nil, nil, err
	}
	if t.Name != name || e.def.Name != name {
		return nil, nil, errors.New("it is the record of another capability")
	}
	t.Entry = e.fields
	return &t, e, nil
}

// deletion returns the number under which a capability was deleted, if it was
// and nothing was kept of it since.
func deletion(root *os.Root, name string) (number, bool) {
	kept, deleted := records(root, name)
	if deleted == (number{}) || len(kept) > 0 && kept[len(kept)-1].number.compare(deleted) > 0 {
		return number{}, false
	}
	return deleted, true
}
