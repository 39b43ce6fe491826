package capability

import (
	"context"
	"fmt"
	"slices"
)

// change runs f with the entry of a capability while no other writer, in any
// process, is at work.
func (r *Registry) change(ctx context.Context, name string, f func(ix *index, e *entry) error) error {
	return writeError(r.exclusively(ctx, func() error {
		ix, err := r.loadLocked()
		if err != nil {
			return err
		}
		if ix.conflict != "" {
			return &ConflictError{Message: ix.conflict}
		}
		e, err := r.entryOf(ix, name)
		if err != nil {
			return err
		}
		return f(ix, e)
	}))
}

// Archive takes a capability out of listings: it is kept, and does not run until
// it is restored. The error matches [ErrNothingToDo] when it is archived already.
func (r *Registry) Archive(ctx context.Context, name string) error {
	err := r.change(ctx, name, func(ix *index, e *entry) error {
		if e.status == StatusArchived {
			return nothingToDo("it is archived already")
		}
		return r.writeIndex(ix.with(e.as(StatusArchived)))
	})
	if err != nil {
		return fmt.Errorf("archive %s: %w", name, err)
	}
	return nil
}

// as is the entry with another status. One in the seed's format has none while
// it is active.
func (e *entry) as(status string) *entry {
	out := *e
	out.status = status
	out.fields = e.fields.set("status", optional(e.hash != "" || status != StatusActive, status))
	return &out
}

// Delete removes a capability from the index and from tools/. Its versions stay,
// with a record of the deletion; [Registry.Restore] brings it back. What a person
// changed in tools/<name>.ts is kept as a version first.
func (r *Registry) Delete(ctx context.Context, name string, by Provenance) error {
	err := r.change(ctx, name, func(ix *index, e *entry) error {
		if err := r.keepDrift(ix, name, nil, &e.def); err != nil {
			return err
		}
		return r.bury(ix, e, by)
	})
	if err != nil {
		return fmt.Errorf("delete %s: %w", name, err)
	}
	return nil
}

// bury commits a deletion. An error before the commit point undoes it.
func (r *Registry) bury(ix *index, e *entry, by Provenance) error {
	name := e.def.Name
	j, err := r.begin(journal{Name: name, versionRef: versionRef{Version: nextNumber(r.root, name, e).String()}, Deleted: true})
	if err == nil {
		err = r.writeTombstone(e, by)
	}
	if err == nil {
		err = r.writeIndex(ix.without(name))
	}
	if err != nil {
		return r.undone(err)
	}
	if err := r.removeCopy(&j); err != nil {
		r.notify(fmt.Sprintf("%s is deleted, but tools/%s.ts could not be removed: %v", name, name, err), "the next start removes it")
		return nil
	}
	r.finish()
	return nil
}

// Rollback makes an earlier version the active one, under a new number: the one
// that to names (a number, or number-hash, or the beginning of a hash), or, when
// that is "", the last one before the active one that is another. One that this
// machine has not admitted goes through the gate. The error matches
// [ErrNothingToDo] when that version is active.
func (r *Registry) Rollback(ctx context.Context, name, to string, by Provenance, report func(Step)) (*Admission, error) {
	a, err := r.rollback(ctx, name, to, by, report)
	if err != nil {
		return nil, fmt.Errorf("roll %s back: %w", name, err)
	}
	return a, nil
}

func (r *Registry) rollback(ctx context.Context, name, to string, by Provenance, report func(Step)) (*Admission, error) {
	e, err := r.find(ctx, name)
	if err != nil {
		return nil, err
	}
	v, err := r.earlier(e, to)
	if err != nil {
		return nil, err
	}
	if v.Hash == e.hash && e.pending == nil && e.status == StatusActive {
		return nil, nothingToDo(v.Version + " is the active version already")
	}
	a, err := r.again(ctx, v, nil, candidate{by: by, note: "back to " + v.Version}, report)
	if err == nil && e.status == StatusArchived {
		a.Warnings = append(a.Warnings, unarchived(e))
	}
	return a, err
}

// unarchived says that a new version brings an archived capability back.
func unarchived(e *entry) string {
	return e.def.Name + " was archived; with this version it is listed and runs again"
}

// earlier is the version that a rollback goes to.
func (r *Registry) earlier(e *entry, to string) (*version, error) {
	if to != "" {
		return r.pick(e.def.Name, to)
	}
	active, _ := parseNumber(e.version) // of an unreadable one all are earlier
	for _, k := range slices.Backward(keptVersions(r.root, e.def.Name)) {
		if active != (number{}) && k.number.compare(active) >= 0 || k.hash == short(e.hash) {
			continue
		}
		if v, err := readVersion(r.root, k.base); err == nil && v.Gate != nil {
			return v, nil
		}
	}
	return nil, nothingToDo("there is no earlier version that has passed the gate")
}

// again makes a kept version the newest one of its capability, which has the
// entry base when the index has none. What c says is kept with it.
func (r *Registry) again(ctx context.Context, v *version, base *entry, c candidate, report func(Step)) (*Admission, error) {
	strict := *v
	strict.Lenient = false
	s := resubmission(&strict)
	evidence, err := r.admitted(ctx, &strict)
	switch {
	case err != nil:
		return nil, err
	case evidence != nil:
		if _, err := r.judgePermissions(ctx, s); err != nil {
			return nil, err
		}
	default:
		if s.override, err = r.overridden(ctx, v.Hash); err != nil {
			return nil, err
		}
		passed, err := r.pass(ctx, s, report)
		if err != nil {
			return nil, err
		}
		evidence = &passed
	}
	c.def, c.source, c.lock, c.evidence, c.pending, c.base = v.Definition, v.Source, s.lock, *evidence, !s.waiting.None(), base
	kept, err := r.keep(ctx, c)
	if err != nil {
		return nil, err
	}
	return r.admission(ctx, kept, *evidence, c.pending)
}
