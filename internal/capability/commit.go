package capability

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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

// journal says which version was being kept when a crash came.
type journal struct {
	Name string `json:"name"`
	versionRef
	// Copy is the SHA-256 of the readable copy before, "" when there was none:
	// only that one is replaced after a crash.
	Copy string `json:"copy,omitempty"`
}

// candidate is a version that passed the gate and is to be kept.
type candidate struct {
	def      Definition
	source   []byte
	by       Provenance
	evidence Evidence
	pending  bool // it waits for a person
	note     string
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
			return r.recordAdmission(ctx, v, c.by.Request)
		}
		if err := r.keepDrift(ix, c.def.Name, c.source); err != nil {
			return err
		}
		v = r.newVersion(ix, &c)
		return r.commit(ctx, ix, v, &c)
	})
	return v, writeError(err)
}

func (r *Registry) newVersion(ix *index, c *candidate) *version {
	name := c.def.Name
	return &version{
		Name: name, Version: nextNumber(r.root, name, ix.find(name)).String(),
		Hash:       admissionHash(&c.def, c.source, nil),
		CreatedBy:  c.by.By,
		Created:    r.opts.Now().UTC().Truncate(1e9),
		Model:      c.by.Model,
		Session:    c.by.Session,
		Note:       c.note,
		Definition: c.def, Gate: &c.evidence, Source: c.source,
	}
}

// unchanged returns the active version when the candidate is the same, so that
// registering the same thing again does not make a version.
func (r *Registry) unchanged(ix *index, c *candidate) *version {
	e := ix.find(c.def.Name)
	if e == nil || e.hash == "" || e.status == StatusPending || e.pending != nil || c.pending ||
		e.hash != admissionHash(&c.def, c.source, nil) {
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

// commit is the six operations. An error before the commit point undoes them.
func (r *Registry) commit(ctx context.Context, ix *index, v *version, c *candidate) error {
	before := ix.find(v.Name)
	entry := activeEntry(before, v, StatusActive)
	switch {
	case c.pending && before != nil && before.status != StatusPending:
		entry = pendingEntry(before, v)
	case c.pending:
		entry = activeEntry(before, v, StatusPending)
	}
	j, err := r.stage(v)
	if err != nil {
		return r.undone(err)
	}
	if err := r.recordAdmission(ctx, v, c.by.Request); err != nil {
		return r.undone(err)
	}
	return r.publish(ix.with(entry), j, v)
}

// publish is the commit point and what comes after it: what fails then is done
// by the next writer, or the next start.
func (r *Registry) publish(ix *index, j journal, v *version) error {
	if err := replace(r.disk, indexPath, ix.encode()); err != nil {
		return r.undone(err)
	}
	if e := ix.find(v.Name); e.pending == nil {
		if err := r.writeCopy(j, v.Source); err != nil {
			r.notify(fmt.Sprintf("%s %s is kept and active, but tools/%s.ts could not be written: %v", v.Name, v.Version, v.Name, err),
				"the next start writes it")
			return nil
		}
	}
	if err := r.disk.Remove(journalPath); err != nil {
		r.notify(fmt.Sprintf("the journal of a finished registration could not be removed: %v", err), "the next start removes it")
	}
	return nil
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

// stage writes the journal and the files of a version.
func (r *Registry) stage(v *version) (journal, error) {
	j, err := r.begin(v)
	if err != nil {
		return j, err
	}
	return j, writeVersion(r.disk, v)
}

// begin writes the journal.
func (r *Registry) begin(v *version) (journal, error) {
	current, _ := readableCopy(r.root, v.Name) // unreadable: nothing that a repair may replace
	j := journal{Name: v.Name, versionRef: v.ref(), Copy: digest(current)}
	return j, replace(r.disk, journalPath, indent(encode(j)))
}

// keepAlone keeps a version that no index names: a person's text before an
// update, or the source of an old workspace as it was admitted.
func (r *Registry) keepAlone(v *version) error {
	if _, err := r.stage(v); err != nil {
		return r.undone(err)
	}
	return r.disk.Remove(journalPath)
}

// keepDrift keeps the readable copy as a version when it is not the active
// version's text, before an update replaces it.
func (r *Registry) keepDrift(ix *index, name string, coming []byte) error {
	current, err := readableCopy(r.root, name)
	if err != nil {
		return fmt.Errorf("tools/%s.ts would be replaced and cannot be kept: %w", name, err)
	}
	if current == nil || bytes.Equal(current, coming) {
		return nil
	}
	for _, k := range keptVersions(r.root, name) {
		if source, err := readFile(r.root, k.base+".ts", maxKept); err == nil && bytes.Equal(source, current) {
			return nil
		}
	}
	def := Definition{Name: name, Triggers: []string{}, Suppression: []string{}, Capability: "Unknown: a source without an entry."}
	e := ix.find(name)
	if e != nil {
		def = e.def
	}
	c := candidate{def: def, source: current, by: Provenance{By: ByHuman}, note: "kept before an update; it has not passed the gate"}
	v := r.newVersion(ix, &c)
	v.Gate = nil
	v.Lenient = e == nil || e.hash == ""
	return r.keepAlone(v)
}

// recover completes or undoes what was interrupted, and says so. The lock is
// held.
func (r *Registry) recover() error {
	if err := r.clear(scratchPath); err != nil {
		return err
	}
	data, err := readFile(r.root, journalPath, 1<<16)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var j journal
	if err == nil {
		err = json.Unmarshal(data, &j)
	}
	if _, ok := parseNumber(j.Version); err != nil || !ok || !validName(j.Name) || !validHash(j.Hash) {
		r.notify("the journal of an interrupted registration cannot be read, so it was neither completed nor undone", "")
		return r.clear(journalPath)
	}
	outcome, err := r.settle(j)
	if err != nil {
		return err
	}
	// Who was killed may not have come to sync what it renamed.
	if err := r.disk.syncFolder(toolsPath); err != nil {
		return err
	}
	if err := r.disk.Remove(journalPath); err != nil {
		return err
	}
	if outcome != "" {
		r.notify(fmt.Sprintf("an interrupted registration of %s %s was %s", j.Name, j.Version, outcome), "")
	}
	return nil
}

// clear removes what has the name of a file of ours. A folder with something in
// it, which somebody else made, is set aside.
func (r *Registry) clear(name string) error {
	err := r.disk.Remove(name)
	if info, errStat := r.root.Lstat(name); err == nil || errStat != nil || !info.IsDir() {
		return err
	}
	aside := r.asideName(name)
	if err := r.disk.Rename(name, aside); err != nil {
		return err
	}
	r.notify(fmt.Sprintf("%s is no folder of the registry; it was kept as %s", name, aside), "look at what it holds, then remove it")
	return nil
}

// settle brings the version that a journal names to the old or the new state,
// as index.json says, and returns what was done in a word.
func (r *Registry) settle(j journal) (outcome string, err error) {
	e, readable := r.named(&j)
	base := versionBase(j.Name, j.versionRef)
	switch {
	case !readable:
		return "", nil // the version stays, to rebuild the index from
	case e == nil:
		return r.undo(&j)
	case e.pending != nil:
		return "completed", nil
	}
	v, err := readVersion(r.root, base)
	if err != nil {
		return "", nil // resolving it will say so
	}
	return "completed", r.writeCopy(j, v.Source)
}

// undo removes a version that no index names. Only the newest can be one that
// was interrupted: a journal that names an older one, from elsewhere, removes
// nothing.
func (r *Registry) undo(j *journal) (outcome string, err error) {
	number, _ := parseNumber(j.Version)
	for _, k := range keptVersions(r.root, j.Name) {
		if k.number.compare(number) > 0 {
			return "", nil
		}
	}
	base := versionBase(j.Name, j.versionRef)
	for _, file := range []string{base + ".json", base + ".ts"} {
		if _, err := r.root.Lstat(file); errors.Is(err, fs.ErrNotExist) {
			continue // to remove it would be an error where nothing can be written
		}
		if err := r.disk.Remove(file); err != nil {
			return "", err
		}
	}
	return "undone", r.removeEmpty(j.Name)
}

// undone undoes a registration that failed with err, which it returns.
func (r *Registry) undone(err error) error {
	if again := r.recover(); again != nil {
		r.notify(fmt.Sprintf("what was written of a failed registration could not be removed: %v", again), "the next start tries it again")
	}
	return err
}

// named returns the entry that names the version of the journal, or nil. A
// missing index names none; of one that cannot be read nobody knows.
func (r *Registry) named(j *journal) (e *entry, readable bool) {
	data, err := readFile(r.root, indexPath, maxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, true
	}
	if err != nil {
		return nil, false
	}
	ix, err := decodeIndex(data)
	if err != nil || ix.conflict != "" {
		return nil, false
	}
	for _, e := range ix.entries {
		active := e.def.Name == j.Name && e.hash == j.Hash && e.version == j.Version
		waiting := e.def.Name == j.Name && e.pending != nil && *e.pending == j.versionRef
		if active || waiting {
			return e, true
		}
	}
	return nil, true
}

// removeEmpty removes the folder of a name that has no version any more.
func (r *Registry) removeEmpty(name string) error {
	folder := versionsPath + "/" + name
	if left, err := readNames(r.root, folder); err != nil || len(left) > 0 {
		return err
	}
	return r.disk.Remove(folder)
}
