package capability

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// What [Registry.Restore] brought back.
const (
	RestoredArchived = "archived" // a capability that was archived
	RestoredDeleted  = "deleted"  // one that was deleted
	RestoredFile     = "file"     // tools/<name>.ts, or the entry, as the active version has them
)

// Restored is what [Registry.Restore] did.
type Restored struct {
	Name    string `json:"name"`
	What    string `json:"what"`
	Version string `json:"version"` // that is active now
	// Kept is the version that holds what a person had written into
	// tools/<name>.ts, when that was replaced.
	Kept string `json:"kept,omitempty"`
	// Status is that of the capability now.
	Status   string   `json:"status"`
	Warnings []string `json:"warnings"`
}

// Restore brings a capability back as it was: an archived or a deleted one, or
// else the files of an active one that were changed or removed outside; a
// person's text is kept as a version first. The error matches [ErrNothingToDo]
// when everything is in its place.
func (r *Registry) Restore(ctx context.Context, name string, by Provenance, report func(Step)) (*Restored, error) {
	done, err := r.restore(ctx, name, by, report)
	if err != nil {
		return nil, fmt.Errorf("restore %s: %w", name, err)
	}
	if done.Warnings == nil {
		done.Warnings = []string{}
	}
	return done, nil
}

func (r *Registry) restore(ctx context.Context, name string, by Provenance, report func(Step)) (*Restored, error) {
	e, err := r.find(ctx, name)
	var unknown *UnknownError
	switch {
	case errors.As(err, &unknown) && unknown.Kept:
		return r.undelete(ctx, name, by, report)
	case err != nil:
		return nil, err
	case e.status == StatusArchived:
		return r.unarchive(ctx, name)
	}
	return r.restoreFiles(ctx, name)
}

func (r *Registry) unarchive(ctx context.Context, name string) (*Restored, error) {
	var done *Restored
	err := r.change(ctx, name, func(ix *index, e *entry) error {
		if e.status != StatusArchived {
			return ErrNothingToDo // another process was faster
		}
		if err := r.mayRegister(ctx, ix, name); err != nil {
			return err
		}
		back := e.as(StatusActive)
		done = &Restored{Name: name, What: RestoredArchived, Version: e.version, Status: r.statusNow(ctx, back)}
		return r.writeIndex(ix.with(back))
	})
	return done, err
}

// statusNow is the status of an entry; without a ledger it counts as unproven.
func (r *Registry) statusNow(ctx context.Context, e *entry) string {
	used, _ := r.usage(ctx, e.def.Name)
	return status(e, used)
}

// undelete brings back what the last deletion removed, or an entry that is gone,
// as a new version.
func (r *Registry) undelete(ctx context.Context, name string, by Provenance, report func(Step)) (*Restored, error) {
	n, _ := deletion(r.root, name) // none: its entry was removed by hand, or in a merge
	v, e, err := r.buried(name, n)
	if err != nil {
		return nil, err
	}
	if e != nil && e.hash == "" {
		return r.undeleteOld(ctx, v, e, by)
	}
	a, err := r.again(ctx, v, e, candidate{by: by, note: "restored from " + v.Version}, report)
	if err != nil {
		return nil, err
	}
	return &Restored{Name: name, What: RestoredDeleted, Version: a.Version, Status: a.Status, Warnings: a.Warnings}, nil
}

// buried returns the version that was active when a capability was deleted, and
// its entry. Where the record does not tell, it is the newest that has passed a
// gate.
func (r *Registry) buried(name string, n number) (*version, *entry, error) {
	_, e, err := readTombstone(r.root, name, n)
	if err == nil && e.hash != "" {
		if v, err := r.readRef(e, versionRef{e.version, e.hash}); err == nil {
			return v, e, nil
		}
	}
	var newest *version
	for _, k := range slices.Backward(keptVersions(r.root, name)) {
		v, err := readVersion(r.root, k.base)
		if err != nil {
			continue
		}
		if v.Gate != nil {
			newest = v
			break
		}
		if newest == nil {
			newest = v
		}
	}
	if newest == nil {
		return nil, nil, fmt.Errorf("tools/.versions/%s holds no version of it that can be read: %w", name, fs.ErrNotExist)
	}
	return newest, e, nil
}

// undeleteOld brings an entry of the seed's format back, in that format.
func (r *Registry) undeleteOld(ctx context.Context, v *version, e *entry, by Provenance) (*Restored, error) {
	evidence, err := r.admitted(ctx, v)
	if err != nil {
		return nil, err
	}
	var again *version
	err = writeError(r.exclusively(ctx, func() error {
		ix, err := r.loadLocked()
		if err != nil {
			return err
		}
		if ix.find(v.Name) != nil {
			return ErrNothingToDo // another process was faster
		}
		if err := r.mayRegister(ctx, ix, v.Name); err != nil {
			return err
		}
		if err := r.keepDrift(ix, v.Name, v.Source, &v.Definition); err != nil {
			return err
		}
		again = r.newVersion(nil, &candidate{def: v.Definition, source: v.Source, lock: v.Lock, by: by, note: "restored from " + v.Version})
		again.Lenient, again.Gate = v.Lenient, evidence
		return r.commit(ctx, ix, again, e.as(StatusActive), &candidate{})
	}))
	if err != nil {
		return nil, err
	}
	return &Restored{Name: v.Name, What: RestoredDeleted, Version: again.Version, Status: r.statusNow(ctx, e.as(StatusActive))}, nil
}

// restoreFiles writes tools/<name>.ts and the entry as the active version has
// them.
func (r *Registry) restoreFiles(ctx context.Context, name string) (*Restored, error) {
	var done *Restored
	err := r.change(ctx, name, func(ix *index, e *entry) error {
		v, err := r.active(e)
		if err != nil {
			return err
		}
		current, err := readableCopy(r.root, name)
		if err != nil {
			return fmt.Errorf("tools/%s.ts would be replaced and cannot be kept: %w", name, err)
		}
		edited := !bytes.Equal(current, v.Source) || current == nil
		if !edited && len(entryDrift(e, v)) == 0 {
			return nothingToDo("everything is in its place")
		}
		if edited && !sameLines(current, v.Source) {
			if err := r.keepDrift(ix, name, v.Source, &v.Definition); err != nil {
				return err
			}
		}
		if !v.Lenient {
			e = restoredEntry(e, v)
		}
		done = &Restored{Name: name, What: RestoredFile, Version: v.Version, Kept: r.holder(name, current, v), Status: r.statusNow(ctx, e)}
		j, err := r.begin(journal{Name: name, versionRef: v.ref(), Old: e.hash == "", Kept: true})
		if err != nil {
			return r.undone(err)
		}
		return r.publish(ix.with(e), j, v)
	})
	return done, err
}

// restoredEntry is the entry of v, its status and what waits beside it as they
// were.
func restoredEntry(e *entry, v *version) *entry {
	status := e.status
	if status == "" {
		status = StatusActive
	}
	out := activeEntry(e, v, status)
	if e.pending != nil {
		out.pending = e.pending
		out.fields = out.fields.set("pending", encode(e.pending))
	}
	return out
}

// holder is the number of the version, other than v, that has this source.
func (r *Registry) holder(name string, source []byte, v *version) string {
	for _, k := range slices.Backward(keptVersions(r.root, name)) {
		kept, err := readFile(r.root, k.base+".ts", maxKept)
		if source != nil && err == nil && bytes.Equal(kept, source) && !bytes.Equal(kept, v.Source) {
			return k.number.String()
		}
	}
	return ""
}
