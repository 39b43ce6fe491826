package capability

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
)

// A registration is kept in this order, each operation durable before the next:
//
//	1. the journal: which version comes
//	2. the version's files
//	3. the admission, in the database
//	4. index.json: the commit point
//	5. the readable copy
//	6. the journal is removed
//
// A crash before 4 leaves the old state: the version's files are removed again.
// A crash after 4 leaves the new one: the readable copy is written.
//
// A deletion is kept in the same order: its record takes the place of the
// version, an index without the entry is the commit point, and the readable copy
// is removed.

// journal says what was being kept when a crash came.
type journal struct {
	Name string `json:"name"`
	versionRef
	// Deleted: not a version was kept, but the record of a deletion.
	Deleted bool `json:"deleted,omitempty"`
	// Old: the entry has the seed's format, and does not name its version.
	Old bool `json:"old,omitempty"`
	// Kept: the version was there before, and stays whatever happens.
	Kept bool `json:"kept,omitempty"`
	// Copy is the SHA-256 of the readable copy before, "" when there was none:
	// only that one is replaced after a crash.
	Copy string `json:"copy,omitempty"`
}

// candidate is a version that passed the gate and is to be kept.
type candidate struct {
	def      Definition
	source   []byte
	lock     json.RawMessage
	by       Provenance
	evidence Evidence
	pending  bool // it waits for a person
	note     string
	base     *entry // that of its capability, when the index has none
	edit     bool   // the source is what stood in tools/<name>.ts: what stands there by now is newer
}

// keep makes a candidate a version of its capability. Only what the gate cannot
// know before is checked again under the lock.
func (r *Registry) keep(ctx context.Context, c candidate) (v *version, err error) {
	err = r.exclusively(ctx, func() error {
		ix, err := r.loadLocked()
		if err != nil {
			return err
		}
		if err := r.mayRegister(ctx, ix, c.def.Name); err != nil {
			return err
		}
		if v = r.unchanged(ix, &c); v != nil {
			return r.recordAdmission(ctx, v, c.evidence, c.by.Request)
		}
		if !c.edit {
			if err := r.keepDrift(ix, c.def.Name, c.source, &c.def); err != nil {
				return err
			}
		}
		before := ix.find(c.def.Name)
		if before == nil {
			before = c.base
		}
		v = r.newVersion(before, &c)
		entry := activeEntry(before, v, StatusActive)
		switch {
		case c.pending && ix.find(c.def.Name) != nil && before.status != StatusPending:
			entry = pendingEntry(before, v)
		case c.pending:
			entry = activeEntry(before, v, StatusPending)
		}
		return r.commit(ctx, ix, v, entry, &c)
	})
	return v, writeError(err)
}

// newVersion makes a candidate the next version of its capability, whose entry,
// if there is one, is before.
func (r *Registry) newVersion(before *entry, c *candidate) *version {
	v := &version{
		Name: c.def.Name, Version: nextNumber(r.root, c.def.Name, before).String(),
		Hash:       admissionHash(&c.def, c.source, c.lock),
		CreatedBy:  c.by.By,
		Created:    r.opts.Now().UTC().Truncate(1e9),
		Person:     c.by.Person,
		Model:      c.by.Model,
		Session:    c.by.Session,
		Note:       c.note,
		Definition: c.def, Lock: c.lock, Gate: &c.evidence, Source: c.source,
	}
	if before != nil {
		v.Parent = before.hash
	}
	return v
}

// unchanged returns the active version when the candidate is the same, so that
// registering the same thing again does not make a version.
func (r *Registry) unchanged(ix *index, c *candidate) *version {
	e := ix.find(c.def.Name)
	if e == nil || e.hash == "" || e.status != StatusActive || e.pending != nil || c.pending ||
		e.hash != admissionHash(&c.def, c.source, c.lock) {
		return nil
	}
	v, err := readVersion(r.root, versionBase(c.def.Name, versionRef{e.version, e.hash}))
	if err != nil {
		return nil
	}
	if current, err := readableCopy(r.root, c.def.Name); err != nil || !bytes.Equal(current, c.source) {
		return nil
	}
	return v
}

// commit is the six operations, for a version and the entry that then stands for
// its capability. An error before the commit point undoes them.
func (r *Registry) commit(ctx context.Context, ix *index, v *version, entry *entry, c *candidate) error {
	j := journal{Name: v.Name, versionRef: v.ref(), Old: entry.hash == ""}
	if c.edit {
		j.Copy = digest(c.source)
	}
	j, err := r.stage(v, j)
	if err != nil {
		return r.undone(err)
	}
	if v.Gate != nil {
		if err := r.recordAdmission(ctx, v, *v.Gate, c.by.Request); err != nil {
			return r.undone(err)
		}
	}
	return r.publish(ix.with(entry), j, v)
}

// publish is the commit point and what comes after it: what fails then is done
// by the next writer, or the next start.
func (r *Registry) publish(ix *index, j journal, v *version) error {
	if err := r.writeIndex(ix); err != nil {
		return r.undone(err)
	}
	if !ix.find(v.Name).waits(&j) {
		if err := r.writeCopy(j, v.Source); err != nil {
			r.notify(fmt.Sprintf("%s %s is kept and active, but tools/%s.ts could not be written: %v", v.Name, v.Version, v.Name, err),
				"the next start writes it")
			return nil
		}
	}
	r.finish()
	return nil
}

// finish ends what was committed. The next start removes a journal that stays.
func (r *Registry) finish() {
	if err := r.disk.Remove(journalPath); err != nil {
		r.notify(fmt.Sprintf("the journal of a finished change could not be removed: %v", err), "the next start removes it")
		return
	}
	if err := r.prepareForGit(); err != nil {
		r.notify(fmt.Sprintf("tools/.gitattributes and tools/.gitignore could not be written: %v", err), "they keep git from changing what Tendril compares byte for byte")
	}
}

// writeCopy writes the readable copy, unless a person has edited it since the
// journal was written: then their text stays, as drift.
func (r *Registry) writeCopy(j journal, source []byte) error {
	current, err := readableCopy(r.root, j.Name)
	if err != nil || digest(current) != j.Copy {
		return nil
	}
	return replace(r.disk, copyPath(j.Name), source)
}

// begin writes the journal. Where it does not say which readable copy may be
// replaced, that is the one that is there.
func (r *Registry) begin(j journal) (journal, error) {
	if j.Copy == "" {
		current, _ := readableCopy(r.root, j.Name) // unreadable: nothing that a repair may replace
		j.Copy = digest(current)
	}
	return j, replace(r.disk, journalPath, indent(encode(j)))
}

// stage writes the journal and the files of a version.
func (r *Registry) stage(v *version, j journal) (journal, error) {
	j, err := r.begin(j)
	if err != nil {
		return j, err
	}
	return j, writeVersion(r.disk, v)
}

// keepAlone keeps a version that no index names: a person's text before an
// update, or the source of an old workspace as it was admitted.
func (r *Registry) keepAlone(v *version) error {
	if _, err := r.stage(v, journal{Name: v.Name, versionRef: v.ref()}); err != nil {
		return r.undone(err)
	}
	return r.disk.Remove(journalPath)
}

// keepDrift keeps the readable copy as a version, with the definition of its
// entry, or of what comes, before a change replaces or removes it: unless its
// text is kept already.
func (r *Registry) keepDrift(ix *index, name string, coming []byte, like *Definition) error {
	current, err := readableCopy(r.root, name)
	if err != nil {
		return fmt.Errorf("tools/%s.ts would be replaced and cannot be kept: %w", name, err)
	}
	if current == nil || bytes.Equal(current, coming) || r.holds(name, current) {
		return nil
	}
	e := ix.find(name)
	c := candidate{source: current, by: Provenance{By: ByHuman}, note: "kept before a change; it has not passed the gate"}
	if c.def = *like; e != nil {
		c.def = e.def
		if e.hash == "" && len(keptVersions(r.root, name)) == 0 { // never ran here
			c.by.By = e.author()
		}
	}
	v := r.newVersion(e, &c)
	v.Gate = nil
	v.Lenient = e != nil && e.hash == ""
	return r.keepAlone(v)
}

// holds reports whether a version of name has this source.
func (r *Registry) holds(name string, source []byte) bool {
	for _, k := range slices.Backward(keptVersions(r.root, name)) { // mostly it is the newest
		if kept, err := readFile(r.root, k.base+".ts", maxKept); err == nil && bytes.Equal(kept, source) {
			return true
		}
	}
	return false
}
