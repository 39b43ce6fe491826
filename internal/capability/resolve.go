package capability

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/tendril-agent/tendril/internal/sandbox"
)

// Runnable is an admitted version, ready for the sandbox.
type Runnable struct {
	Name       string
	Version    string
	Hash       string
	Source     []byte
	Lock       []byte          // of its remote dependencies, nil for none
	Parameters json.RawMessage // JSON Schema of args, or nil
	Grant      sandbox.Grant
	Secrets    []string       // names of those that it is to get
	Limits     sandbox.Limits // zero where the definition sets none
	// Notes are for the person and the model: drift, what was not granted.
	Notes []string
}

// Resolve finds the version of a capability that may run. One that this machine
// has not admitted goes through the gate first, which report, if not nil, is
// told of. Errors are *[UnknownError], *[PendingError], *[RefusedError],
// *[MissingSourceError], *[ConflictError], or those of disk and database.
func (r *Registry) Resolve(ctx context.Context, name string, report func(Step)) (*Runnable, error) {
	e, err := r.find(ctx, name)
	if err != nil {
		return nil, err
	}
	if e.status == StatusArchived {
		return nil, &ArchivedError{name}
	}
	var notes []string
	if e.pending != nil {
		if e, notes, err = r.tryPending(ctx, e, report); err != nil {
			return nil, err
		}
	}
	v, err := r.active(e)
	if err != nil {
		return nil, err
	}
	evidence, err := r.admit(ctx, v, report)
	if err != nil {
		return nil, err
	}
	grant, more, err := r.grant(ctx, v)
	if err != nil {
		return nil, err
	}
	if e.status == StatusPending {
		if err := r.activate(ctx, v); err != nil && !unwritable(err) {
			return nil, err
		}
	}
	notes = slices.Concat(notes, more, r.drift(v))
	if v.Lenient {
		notes = append(notes, evidence.Warnings()...)
	}
	limits := limitsOf(v.Definition.Permissions)
	return &Runnable{
		Name: v.Name, Version: v.Version, Hash: v.Hash, Source: v.Source, Lock: v.Lock, Parameters: v.Definition.Parameters,
		Grant: grant, Secrets: secretsOf(v.Definition.Permissions), Limits: limits, Notes: notes,
	}, nil
}

func secretsOf(p *Permissions) []string {
	if p == nil {
		return nil
	}
	return p.Secrets
}

func limitsOf(p *Permissions) sandbox.Limits {
	if p == nil {
		return sandbox.Limits{}
	}
	limits, err := parseLimits(p.Limits)
	if err != nil {
		return sandbox.Limits{} // the gate refuses these
	}
	return limits
}

// find looks a name up in the index.
func (r *Registry) find(ctx context.Context, name string) (*entry, error) {
	ix, err := r.load(ctx)
	if err != nil {
		return nil, err
	}
	return r.entryOf(ix, name)
}

// entryOf is the entry of a name in the index, or why there is none.
func (r *Registry) entryOf(ix *index, name string) (*entry, error) {
	e := ix.find(name)
	switch {
	case e == nil && ix.conflict != "" && len(ix.entries) == 0:
		return nil, &ConflictError{Message: ix.conflict}
	case e == nil:
		unknown := &UnknownError{Name: name, Near: near(name, ix.live())}
		if validName(name) {
			unknown.Loose = r.hasCopy(name)
			unknown.Kept = len(keptVersions(r.root, name)) > 0
		}
		return nil, unknown
	case e.conflict != "":
		return nil, &ConflictError{Name: name, Message: e.conflict}
	}
	return e, nil
}

// active reads the version that an entry stands for. Its bytes are those of its
// hash.
func (r *Registry) active(e *entry) (*version, error) {
	if e.hash == "" {
		return r.activeOld(e)
	}
	ref := versionRef{e.version, e.hash}
	v, err := r.readRef(e, ref)
	if errors.Is(err, fs.ErrNotExist) {
		// The files of the version did not travel along. The entry and the
		// readable copy are as good, when they are what was hashed.
		source, errCopy := readableCopy(r.root, e.def.Name)
		lock := keptLock(r.root, e)
		if errCopy != nil || source == nil || e.problem != "" || admissionHash(&e.def, source, lock) != e.hash {
			return nil, r.missing(e)
		}
		v := r.versionOf(e, e.version, source, lock)
		v.unkept = true
		return v, nil
	}
	if err != nil {
		return nil, &RefusedError{e.def.Name, e.version, err}
	}
	v.Lenient = false // the entry is in our format, whatever the file says
	return v, nil
}

// readRef reads a version that an entry names.
func (r *Registry) readRef(e *entry, ref versionRef) (*version, error) {
	if _, ok := parseNumber(ref.Version); !ok {
		return nil, fmt.Errorf("%s is not a version number", quote(ref.Version))
	}
	v, err := readVersion(r.root, versionBase(e.def.Name, ref))
	if err == nil && v.Hash != ref.Hash {
		return nil, errHash
	}
	return v, err
}

// activeOld reads what an entry in the seed's format stands for: the newest
// version that was kept of it, or else its source, which then has never run
// here.
func (r *Registry) activeOld(e *entry) (*version, error) {
	name := e.def.Name
	if e.problem != "" {
		return nil, &RefusedError{name, e.version, errors.New(e.problem)}
	}
	var newest *version
	kept := keptVersions(r.root, name)
	if _, deleted := deletion(r.root, name); deleted {
		kept = nil // it was made anew after that
	}
	for _, k := range slices.Backward(kept) {
		if newest != nil && newest.Version != k.number.String() {
			break
		}
		v, err := readVersion(r.root, k.base)
		if err != nil {
			return nil, &RefusedError{name, k.number.String(), err}
		}
		if v.Gate == nil {
			continue
		}
		if newest != nil {
			return nil, &ConflictError{Name: name, Message: fmt.Sprintf("%s has two versions %s: %s and %s", name, v.Version, short(newest.Hash), short(v.Hash))}
		}
		newest = v
	}
	if newest != nil {
		return newest, nil
	}
	source, err := readableCopy(r.root, name)
	if err != nil {
		return nil, &RefusedError{name, e.version, err}
	}
	if source == nil {
		return nil, r.missing(e)
	}
	number, ok := parseNumber(e.version)
	if next := nextNumber(r.root, name, nil); !ok || next.compare(firstNumber) > 0 {
		number = nextNumber(r.root, name, e)
	}
	v := r.versionOf(e, number.String(), source, nil)
	v.Lenient = true
	return v, nil
}

// versionOf makes a version of an entry and a source, not kept yet.
func (r *Registry) versionOf(e *entry, number string, source []byte, lock json.RawMessage) *version {
	return &version{
		Name: e.def.Name, Version: number, Hash: admissionHash(&e.def, source, lock), Lock: lock, CreatedBy: e.author(),
		Created: r.opts.Now().UTC().Truncate(time.Second), Definition: e.def, Source: source,
	}
}

func (r *Registry) missing(e *entry) error {
	missing := &MissingSourceError{Name: e.def.Name, Version: e.version, Edited: r.hasCopy(e.def.Name)}
	for _, k := range keptVersions(r.root, e.def.Name) {
		missing.Kept = append(missing.Kept, k.number.String())
	}
	return missing
}

// admit makes sure that this machine's gate has let v pass.
func (r *Registry) admit(ctx context.Context, v *version, report func(Step)) (*Evidence, error) {
	evidence, err := r.admitted(ctx, v)
	if err != nil {
		return nil, err
	}
	if evidence != nil {
		if v.unkept {
			return evidence, r.keepAdmitted(ctx, v, *evidence)
		}
		return evidence, nil
	}
	overridden, err := r.overridden(ctx, v.Hash)
	if err != nil {
		return nil, err
	}
	s := resubmission(v)
	s.override = overridden
	passed, err := r.pass(ctx, s, report)
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return nil, &RefusedError{v.Name, v.Version, err}
	}
	if err != nil {
		return nil, fmt.Errorf("admit %s %s: %w", v.Name, v.Version, err)
	}
	v.lockedAs(s)
	return &passed, r.keepAdmitted(ctx, v, passed)
}

// lockedAs takes over the lock that the gate made of the dependencies of a
// version in the seed's format, which has none of its own.
func (v *version) lockedAs(s *submission) {
	if v.Lock == nil && s.lock != nil {
		v.Lock = s.lock
		v.Hash = admissionHash(&v.Definition, v.Source, v.Lock)
	}
}

// keepAdmitted keeps what the gate let pass, and that it did.
func (r *Registry) keepAdmitted(ctx context.Context, v *version, evidence Evidence) error {
	admitted := *v
	admitted.Gate = &evidence
	if err := r.keepIfNew(ctx, &admitted); err != nil {
		return fmt.Errorf("keep %s %s: %w", v.Name, v.Version, err)
	}
	return r.recordAdmission(ctx, v, evidence, "")
}

// keepIfNew keeps the bytes that were admitted, so that a later edit of the
// readable copy is seen as one. Where nothing can be written the admission
// alone must do.
func (r *Registry) keepIfNew(ctx context.Context, v *version) error {
	base := versionBase(v.Name, v.ref())
	if _, err := readVersion(r.root, base); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	err := r.exclusively(ctx, func() error {
		if _, err := readVersion(r.root, base); !errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return writeError(r.keepAlone(v))
	})
	if unwritable(err) {
		return nil
	}
	return err
}

// drift says when the readable copy is not what runs.
func (r *Registry) drift(v *version) []string {
	current, err := readableCopy(r.root, v.Name)
	switch {
	case err != nil:
		return []string{fmt.Sprintf("tools/%s.ts cannot be read (%v); version %s runs", v.Name, err, v.Version)}
	case current == nil:
		return []string{fmt.Sprintf("tools/%s.ts is missing; version %s runs; to have it back: tendril capability restore %s", v.Name, v.Version, v.Name)}
	case bytes.Equal(current, v.Source):
	case sameLines(current, v.Source):
		return []string{fmt.Sprintf("tools/%s.ts has other line ends than version %s, or a byte order mark, which git or an editor may have put there; to have it as it was: tendril capability restore %s", v.Name, v.Version, v.Name)}
	default:
		return []string{fmt.Sprintf("tools/%s.ts was changed outside; version %s runs until a person accepts the change with: tendril capability accept %s (or takes it back with: tendril capability restore %s)", v.Name, v.Version, v.Name, v.Name)}
	}
	return nil
}

// sameLines reports whether texts differ only in their line ends and byte order
// mark.
func sameLines(a, b []byte) bool {
	plain := func(text []byte) []byte {
		return bytes.ReplaceAll(bytes.TrimPrefix(text, []byte("\ufeff")), []byte("\r\n"), []byte("\n"))
	}
	return bytes.Equal(plain(a), plain(b))
}

// tryPending looks whether the version that waits beside the active one may
// take its place now. If not, the active one goes on, with a note.
func (r *Registry) tryPending(ctx context.Context, e *entry, report func(Step)) (*entry, []string, error) {
	v, err := r.readRef(e, *e.pending)
	if err == nil {
		v.Lenient = false
		_, err = r.admit(ctx, v, report)
	}
	if err == nil {
		_, _, err = r.grant(ctx, v)
	}
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if err != nil {
		return e, []string{fmt.Sprintf("version %s runs; the newer one does not yet: %v", e.version, err)}, nil
	}
	if err := r.activate(ctx, v); err != nil {
		return e, []string{fmt.Sprintf("version %s runs; %s was allowed but could not be made active: %v", e.version, v.Version, err)}, nil
	}
	e, err = r.find(ctx, v.Name)
	return e, nil, err
}

// activate makes a version that waited the active one.
func (r *Registry) activate(ctx context.Context, v *version) error {
	return writeError(r.exclusively(ctx, func() error {
		ix, err := r.loadLocked()
		if err != nil {
			return err
		}
		e := ix.find(v.Name)
		if ix.conflict != "" || e == nil || e.conflict != "" {
			return &ConflictError{Name: v.Name, Message: "the entry of " + v.Name + " has changed meanwhile"}
		}
		waits := e.pending != nil && *e.pending == v.ref()
		if !waits && (e.status != StatusPending || e.hash != v.Hash) {
			return nil // done by another process
		}
		if err := r.keepDrift(ix, v.Name, v.Source, &v.Definition); err != nil {
			return err
		}
		j, err := r.begin(journal{Name: v.Name, versionRef: v.ref(), Kept: true})
		if err != nil {
			return r.undone(err)
		}
		return r.publish(ix.with(activeEntry(e, v, StatusActive)), j, v)
	}))
}
