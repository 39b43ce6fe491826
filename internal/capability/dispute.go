package capability

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Choice is the side of a conflict that a person takes.
type Choice string

// The sides, in git's words: ours is the upper one, theirs the lower one.
const (
	Ours   Choice = "ours"
	Theirs Choice = "theirs"
)

// Settled is what was made of a conflict: each disputed capability with the
// version that stands now, "" where it stays deleted.
type Settled map[string]string

// UndecidedError means that a person must choose.
type UndecidedError struct {
	Names   []string
	Message string // both sides of each
}

func (e *UndecidedError) Error() string {
	return fmt.Sprintf("%s; choose with: tendril capability resolve %s=ours (or =theirs; or --ours or --theirs for all)", e.Message, e.Names[0])
}

// Settle ends a conflict that git, or another writer, left in tools/index.json:
// each disputed capability is taken from the side that choices, or else
// otherwise, names. Without a choice it is taken when there is only one answer:
// the capability was added on one side only, or one side's version was made from
// the other's. What a person wrote into a readable copy is kept as a version. The
// errors are an *[UndecidedError], a *[ConflictError] when a side cannot be read,
// and [ErrNothingToDo].
func (r *Registry) Settle(ctx context.Context, choices map[string]Choice, otherwise Choice) (Settled, error) {
	settled := Settled{}
	err := writeError(r.exclusively(ctx, func() error {
		ix, err := r.loadLocked()
		if err != nil {
			return err
		}
		if len(ix.disputes) == 0 && ix.conflict == "" {
			return nothingToDo("tools/index.json has no conflict")
		}
		if len(ix.entries) == 0 {
			return &ConflictError{Message: ix.conflict + ", and a side of it cannot be read: edit the file"}
		}
		out, chosen, err := r.decide(ix, choices, otherwise)
		if err != nil {
			return err
		}
		for name, e := range chosen {
			settled[name] = ""
			if e != nil {
				settled[name] = e.version
			}
		}
		return r.settleFiles(ix, out, chosen)
	}))
	if err != nil {
		return nil, fmt.Errorf("resolve the conflict: %w", err)
	}
	return settled, nil
}

// decide makes an index without disputes, and says what each of them became.
func (r *Registry) decide(ix *index, choices map[string]Choice, otherwise Choice) (*index, map[string]*entry, error) {
	for name := range choices {
		if !slices.ContainsFunc(ix.disputes, func(d dispute) bool { return d.name == name }) {
			return nil, nil, fmt.Errorf("%s is not in conflict", quote(name))
		}
	}
	out := &index{fields: ix.fields}
	disputed := map[string]bool{}
	for _, d := range ix.disputes {
		disputed[d.name] = true
	}
	for _, e := range ix.entries {
		if !disputed[e.def.Name] {
			out.entries = append(out.entries, e)
		}
	}
	chosen := map[string]*entry{}
	undecided := UndecidedError{}
	for _, d := range ix.disputes {
		choice := choices[d.name]
		if choice == "" {
			choice = otherwise
		}
		e, ok := r.take(d, choice)
		if !ok {
			undecided.Names = append(undecided.Names, d.name)
			undecided.Message = strings.TrimPrefix(undecided.Message+"; "+fmt.Sprintf("%s is %s in ours and %s in theirs", d.name, side(d.ours), side(d.theirs)), "; ")
			continue
		}
		if e != nil {
			clean := *e
			clean.conflict = ""
			e = &clean
			out = out.with(e)
		}
		chosen[d.name] = e
	}
	if len(undecided.Names) > 0 {
		return nil, nil, &undecided
	}
	return out, chosen, nil
}

// take is the side of a dispute that stands; not ok when a person must choose.
func (r *Registry) take(d dispute, choice Choice) (e *entry, ok bool) {
	if d.ours == nil || d.theirs == nil {
		there := d.ours
		if there == nil {
			there = d.theirs
		}
		if _, deleted := deletion(r.root, d.name); !deleted && !r.wasDeleted(there) {
			return there, true // added on one side
		}
	}
	switch {
	case choice == Ours:
		return d.ours, true
	case choice == Theirs:
		return d.theirs, true
	case d.ours == nil || d.theirs == nil:
		return nil, false // deleted on one side, changed on the other
	case r.descends(d.theirs, d.ours):
		return d.theirs, true
	case r.descends(d.ours, d.theirs):
		return d.ours, true
	}
	return nil, false
}

// wasDeleted reports whether a deletion was recorded of the capability of e at
// or after its version.
func (r *Registry) wasDeleted(e *entry) bool {
	_, deleted := records(r.root, e.def.Name)
	n, _ := parseNumber(e.version)
	return deleted.compare(n) >= 0 && deleted != (number{})
}

// descends reports whether the version of later was made from that of earlier, as
// the kept versions tell.
func (r *Registry) descends(later, earlier *entry) bool {
	parents := map[string][]string{}
	for _, k := range keptVersions(r.root, later.def.Name) {
		if v, err := readVersion(r.root, k.base); err == nil && v.Parent != "" {
			parents[v.Hash] = append(parents[v.Hash], v.Parent)
		}
	}
	seen := map[string]bool{later.hash: true}
	for next := []string{later.hash}; len(next) > 0; next = next[1:] {
		for _, parent := range parents[next[0]] {
			if parent == earlier.hash {
				return later.hash != earlier.hash
			}
			if !seen[parent] {
				seen[parent] = true
				next = append(next, parent)
			}
		}
	}
	return false
}

// settleFiles writes the index out in the place of ix, and the readable copies
// that git could not merge or that stand for the other side.
func (r *Registry) settleFiles(ix, out *index, chosen map[string]*entry) error {
	sources := map[string][]byte{}
	for name, e := range chosen {
		var source []byte // nil: deleted
		like := ix.find(name)
		if e == nil {
			if err := r.writeTombstone(like, Provenance{By: ByHuman}); err != nil {
				return err
			}
		} else {
			v, err := r.active(e)
			if err != nil {
				continue // running it will say so
			}
			source = v.Source
		}
		current, err := readableCopy(r.root, name)
		if err != nil || bytes.Equal(current, source) && (current == nil) == (source == nil) {
			continue
		}
		if !r.isMerge(name, current) {
			if err := r.keepDrift(out, name, source, &like.def); err != nil {
				return err
			}
		}
		sources[name] = source
	}
	if err := r.writeIndex(out); err != nil {
		return err
	}
	for name, source := range sources {
		var err error
		if source == nil {
			err = r.disk.Remove(copyPath(name))
		} else {
			err = replace(r.disk, copyPath(name), source)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// isMerge reports whether text is git's own: two versions that are kept, with
// conflict markers.
func (r *Registry) isMerge(name string, text []byte) bool {
	c := findConflict(text)
	return c != nil && r.holds(name, c.sides[0]) && r.holds(name, c.sides[1])
}
