package capability

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
	by       Provenance
	evidence Evidence
	pending  bool // it waits for a person
	note     string
	base     *entry // that of its capability, when the index has none
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
		if err := r.keepDrift(ix, c.def.Name, c.source, &c.def); err != nil {
			return err
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
		return r.commit(ctx, ix, v, entry, c.by.Request)
	})
	return v, writeError(err)
}

// newVersion makes a candidate the next version of its capability, whose entry,
// if there is one, is before.
func (r *Registry) newVersion(before *entry, c *candidate) *version {
	v := &version{
		Name: c.def.Name, Version: nextNumber(r.root, c.def.Name, before).String(),
		Hash:       admissionHash(&c.def, c.source, nil),
		CreatedBy:  c.by.By,
		Created:    r.opts.Now().UTC().Truncate(1e9),
		Person:     c.by.Person,
		Model:      c.by.Model,
		Session:    c.by.Session,
		Note:       c.note,
		Definition: c.def, Gate: &c.evidence, Source: c.source,
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

// commit is the six operations, for a version and the entry that then stands for
// its capability. An error before the commit point undoes them.
func (r *Registry) commit(ctx context.Context, ix *index, v *version, entry *entry, request string) error {
	j, err := r.stage(v, entry.hash == "")
	if err != nil {
		return r.undone(err)
	}
	if v.Gate != nil {
		if err := r.recordAdmission(ctx, v, *v.Gate, request); err != nil {
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

// begin writes the journal.
func (r *Registry) begin(j journal) (journal, error) {
	current, _ := readableCopy(r.root, j.Name) // unreadable: nothing that a repair may replace
	j.Copy = digest(current)
	return j, replace(r.disk, journalPath, indent(encode(j)))
}

// stage writes the journal and the files of a version.
func (r *Registry) stage(v *version, old bool) (journal, error) {
	j, err := r.begin(journal{Name: v.Name, versionRef: v.ref(), Old: old})
	if err != nil {
		return j, err
	}
	return j, writeVersion(r.disk, v)
}

// keepAlone keeps a version that no index names: a person's text before an
// update, or the source of an old workspace as it was admitted.
func (r *Registry) keepAlone(v *version) error {
	if _, err := r.stage(v, false); err != nil {
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
	if _, ok := parseNumber(j.Version); err != nil || !ok || !validName(j.Name) || !j.Deleted && !validHash(j.Hash) {
		r.notify("the journal of an interrupted change cannot be read, so it was neither completed nor undone", "")
		return r.clear(journalPath)
	}
	outcome, err := r.conclude(&j)
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
		r.notify(fmt.Sprintf("an interrupted %s of %s %s was %s", j.what(), j.Name, j.Version, outcome), "")
	}
	return nil
}

// what the journal is of, in a word.
func (j *journal) what() string {
	switch {
	case j.Deleted:
		return "deletion"
	case j.Kept:
		return "change"
	}
	return "registration"
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

// conclude brings what a journal names to the old or the new state, as index.json
// says, and returns what was done in a word.
func (r *Registry) conclude(j *journal) (outcome string, err error) {
	e, readable := r.entryNow(j.Name)
	base := versionBase(j.Name, j.versionRef)
	switch {
	case !readable:
		return "", nil // what was kept stays, to rebuild the index from
	case j.Deleted && e != nil:
		return r.undo(j, tombstonePath(j.Name, j.Version))
	case j.Deleted:
		return "completed", r.removeCopy(j)
	case !e.names(j) && j.Kept:
		return "undone", nil
	case !e.names(j):
		return r.undo(j, base+".json", base+".ts")
	case e.waits(j) && j.Kept:
		return "undone", nil
	case e.waits(j):
		return "completed", nil
	}
	v, err := readVersion(r.root, base)
	if err != nil {
		return "", nil // resolving it will say so
	}
	return "completed", r.writeCopy(*j, v.Source)
}

// removeCopy removes the readable copy of what is deleted, unless a person has
// edited it since.
func (r *Registry) removeCopy(j *journal) error {
	current, err := readableCopy(r.root, j.Name)
	if err != nil || current == nil || digest(current) != j.Copy {
		return nil
	}
	return r.disk.Remove(copyPath(j.Name))
}

// undo removes the files of a change that was not committed. Only the newest can
// be one that was interrupted: a journal that names an older one, from
// elsewhere, removes nothing.
func (r *Registry) undo(j *journal, files ...string) (outcome string, err error) {
	number, _ := parseNumber(j.Version)
	kept, deleted := records(r.root, j.Name)
	if deleted.compare(number) > 0 || len(kept) > 0 && kept[len(kept)-1].number.compare(number) > 0 {
		return "", nil
	}
	for _, file := range files {
		if _, err := r.root.Lstat(file); errors.Is(err, fs.ErrNotExist) {
			continue // to remove it would be an error where nothing can be written
		}
		if err := r.disk.Remove(file); err != nil {
			return "", err
		}
	}
	return "undone", r.removeEmpty(j.Name)
}

// undone undoes a change that failed with err, which it returns.
func (r *Registry) undone(err error) error {
	if again := r.recover(); again != nil {
		r.notify(fmt.Sprintf("what was written of a failed change could not be removed: %v", again), "the next start tries it again")
	}
	return err
}

// names reports whether an entry stands for the version of a journal.
func (e *entry) names(j *journal) bool {
	switch {
	case e == nil:
		return false
	case j.Old:
		return e.hash == ""
	}
	return e.hash == j.Hash && e.version == j.Version || e.waits(j)
}

// waits reports whether the version of a journal waits beside the active one.
func (e *entry) waits(j *journal) bool { return e.pending != nil && *e.pending == j.versionRef }

// entryNow is the entry of a name, nil when the index has none. Of an index that
// cannot be read nobody knows.
func (r *Registry) entryNow(name string) (e *entry, readable bool) {
	data, err := readFile(r.root, indexPath, maxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, true
	}
	if err != nil {
		return nil, false
	}
	ix, err := decodeIndex(data, nil)
	if err != nil || ix.conflict != "" {
		return nil, false
	}
	return ix.find(name), true
}

// removeEmpty removes the folder of a name that has no version any more.
func (r *Registry) removeEmpty(name string) error {
	folder := versionsPath + "/" + name
	if left, err := readNames(r.root, folder); err != nil || len(left) > 0 {
		return err
	}
	return r.disk.Remove(folder)
}
