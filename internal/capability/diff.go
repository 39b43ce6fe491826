package capability

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/tendril-agent/tendril/internal/sandbox"
)

// What a [Side] may be besides a version.
const (
	SideActive  = "active"
	SidePending = "pending"
	SideFile    = "file" // tools/<name>.ts and the entry, as they stand there
)

// Side is what is compared.
type Side struct {
	Label   string `json:"label"` // a version's number, or "tools/<name>.ts"
	Version string `json:"version,omitempty"`
	Hash    string `json:"sha256,omitempty"`

	def    Definition
	source []byte
	lock   []byte
}

// Diff is how two versions of a capability differ: unified diffs, "" where they
// do not.
type Diff struct {
	Name       string `json:"name"`
	From       Side   `json:"from"`
	To         Side   `json:"to"`
	Definition string `json:"definition"`
	Source     string `json:"source"`
	// Dependencies is about the list of locked remote modules.
	Dependencies string `json:"dependencies"`
}

// Same reports whether there is no difference.
func (d *Diff) Same() bool { return d.Definition == "" && d.Source == "" && d.Dependencies == "" }

// Diff compares two versions, named as for [Registry.Rollback], or "active",
// "pending" or "file". One that is left out is the active version; with both left out
// it compares what a person would decide next: the active version with the one
// that waits, else with the file where that was changed, else the version before
// with the active one.
func (r *Registry) Diff(ctx context.Context, name, from, to string) (*Diff, error) {
	d, err := r.diff(ctx, name, from, to)
	if err != nil {
		return nil, fmt.Errorf("compare versions of %s: %w", name, err)
	}
	return d, nil
}

func (r *Registry) diff(ctx context.Context, name, from, to string) (*Diff, error) {
	ix, err := r.load(ctx)
	if err != nil {
		return nil, err
	}
	e, err := r.entryOf(ix, name)
	var unknown *UnknownError
	var conflict *ConflictError
	if err != nil && !(errors.As(err, &unknown) && unknown.Kept) && !(errors.As(err, &conflict) && validName(name) && from != "" && to != "") {
		return nil, err
	}
	if from, to, err = r.sides(e, from, to); err != nil {
		return nil, err
	}
	d := &Diff{Name: name}
	if d.From, err = r.side(name, e, from); err != nil {
		return nil, err
	}
	if d.To, err = r.side(name, e, to); err != nil {
		return nil, err
	}
	old, now := d.From.def, d.To.def
	d.Definition = unified(d.From.Label, indent(canonicalDefinition(&old)), d.To.Label, indent(canonicalDefinition(&now)))
	d.Source = unified(d.From.Label, d.From.source, d.To.Label, d.To.source)
	d.Dependencies = unified(d.From.Label, dependencyList(d.From.lock), d.To.Label, dependencyList(d.To.lock))
	return d, nil
}

// dependencyList is a line for each dependency, with its hash.
func dependencyList(lock []byte) []byte {
	found, err := sandbox.Dependencies(lock)
	if err != nil {
		return []byte(err.Error() + "\n")
	}
	var out bytes.Buffer
	for _, d := range found {
		fmt.Fprintf(&out, "%s %s\n", d, d.Integrity)
	}
	return out.Bytes()
}

// sides completes what was left out.
func (r *Registry) sides(e *entry, from, to string) (string, string, error) {
	switch {
	case from != "" && to == "":
		return from, SideActive, nil
	case to != "":
		return cmp.Or(from, SideActive), to, nil
	case e == nil:
		return "", "", errors.New("it has no active version; name two of its versions")
	case e.pending != nil:
		return SideActive, SidePending, nil
	}
	v, err := r.active(e)
	if err != nil {
		return "", "", err
	}
	if current, err := readableCopy(r.root, v.Name); err == nil && current != nil && (!bytes.Equal(current, v.Source) || len(entryDrift(e, v)) > 0) {
		return SideActive, SideFile, nil
	}
	before, err := r.earlier(e, "")
	if err != nil {
		return "", "", err
	}
	return before.Version + "-" + short(before.Hash), SideActive, nil
}

func (r *Registry) side(name string, e *entry, text string) (Side, error) {
	if e == nil && (text == SideActive || text == SidePending || text == SideFile) {
		return Side{}, errors.New("it has no active version; name two of its versions")
	}
	var v *version
	var err error
	switch text {
	case SideActive:
		v, err = r.active(e)
	case SidePending:
		if e.pending == nil && e.status != StatusPending {
			return Side{}, errors.New("no version of it waits for a person")
		}
		v, err = r.waiting(e)
	case SideFile:
		return r.fileSide(e)
	default:
		v, err = r.pick(name, text)
	}
	if err != nil {
		return Side{}, err
	}
	return Side{v.Version, v.Version, v.Hash, v.Definition, v.Source, v.Lock}, nil
}

func (r *Registry) fileSide(e *entry) (Side, error) {
	name := e.def.Name
	source, err := readableCopy(r.root, name)
	if err != nil {
		return Side{}, err
	}
	if source == nil {
		return Side{}, fmt.Errorf("tools/%s.ts does not exist", name)
	}
	side := Side{Label: copyPath(name), def: e.def, source: source}
	if v, err := r.active(e); err == nil {
		side.def, side.lock = edited(&v.Definition, e), v.Lock
	}
	return side, nil
}

func unified(from string, old []byte, to string, now []byte) string {
	_, text, _ := bytes.Cut(diff.Diff(from, old, to, now), []byte("\n")) // without its first line, a command
	return string(text)
}
