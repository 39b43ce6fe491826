package capability

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

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
