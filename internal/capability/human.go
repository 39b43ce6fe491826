package capability

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrNothingToDo means that a person's decision would change nothing.
var ErrNothingToDo = errors.New("nothing to do")

// nothingToDo is an ErrNothingToDo that says why.
type nothingToDo string

func (e nothingToDo) Error() string        { return string(e) }
func (e nothingToDo) Is(target error) bool { return target == ErrNothingToDo }

// Acceptance is how a person accepts an edit.
type Acceptance struct {
	By Provenance
	// Override accepts the edit although its type check fails. The other steps
	// of the gate refuse all the same.
	Override bool
}

// Accept makes what a person changed in tools/<name>.ts, or in its entry in
// tools/index.json, the new active version, after the gate. What the entry does
// not tell is as it was: other programs drop what they do not know.
func (r *Registry) Accept(ctx context.Context, name string, how Acceptance, report func(Step)) (*Admission, error) {
	a, err := r.accept(ctx, name, how, report)
	var refusal *Refusal
	if errors.As(err, &refusal) { // its advice is for who registers
		own := *refusal
		own.Hint = strings.ReplaceAll(own.Hint, "register again", "accept it again")
		err = &own
	}
	if err != nil {
		return nil, fmt.Errorf("accept %s: %w", name, err)
	}
	return a, nil
}

func (r *Registry) accept(ctx context.Context, name string, how Acceptance, report func(Step)) (*Admission, error) {
	e, err := r.find(ctx, name)
	if err != nil {
		return nil, err
	}
	source, err := readableCopy(r.root, name)
	if err != nil {
		return nil, err
	}
	if source == nil {
		return nil, fmt.Errorf("tools/%s.ts does not exist; it can be had back with: tendril capability restore %s", name, name)
	}
	if findConflict(source) != nil {
		return nil, fmt.Errorf("tools/%s.ts holds git's conflict markers; edit it first, or take a version with: tendril capability rollback %s VERSION", name, name)
	}
	def := e.def
	v, err := r.active(e)
	if err == nil {
		def = edited(&v.Definition, e)
		same := bytes.Equal(v.Source, source) && canonicalOf(&def) == canonicalOf(&v.Definition)
		if same && e.hash == v.Hash {
			return nil, nothingToDo(fmt.Sprintf("tools/%s.ts is the active version %s already", name, v.Version))
		}
	}
	s := &submission{def: def, source: source, override: how.Override, prior: v}
	evidence, err := r.pass(ctx, s, report)
	if err != nil {
		return nil, err
	}
	how.By.By = ByHuman
	c := candidate{def: def, source: source, lock: s.lock, by: how.By, evidence: evidence, pending: !s.waiting.None(), edit: true}
	if v, err = r.keep(ctx, c); err != nil {
		return nil, err
	}
	a, err := r.admission(ctx, v, evidence, c.pending)
	if current, e := readableCopy(r.root, name); err == nil && (e != nil || !bytes.Equal(current, source)) && !c.pending {
		a.Warnings = append(a.Warnings, fmt.Sprintf("tools/%s.ts was changed again meanwhile: that is not in version %s, and waits for you", name, v.Version))
	}
	if err == nil && e.status == StatusArchived {
		a.Warnings = append(a.Warnings, unarchived(e))
	}
	return a, err
}

// edited is a definition with what its entry says otherwise.
func edited(def *Definition, e *entry) Definition {
	out := *def
	if e.problem != "" {
		return out
	}
	for key, take := range map[string]func(){
		"capability":  func() { out.Capability = e.def.Capability },
		"triggers":    func() { out.Triggers = e.def.Triggers },
		"suppression": func() { out.Suppression = e.def.Suppression },
		"parameters":  func() { out.Parameters = e.def.Parameters },
		"permissions": func() { out.Permissions = e.def.Permissions },
		"examples":    func() { out.Examples = e.def.Examples },
	} {
		if e.fields.get(key) != nil {
			take()
		}
	}
	return out
}

// entryDrift tells where an entry is not what its active version says: the keys,
// and "sha256" when another program has dropped what it did not know.
func entryDrift(e *entry, v *version) []string {
	var keys []string
	if e.hash == "" && !v.Lenient {
		keys = append(keys, "sha256")
	}
	now := edited(&v.Definition, e)
	if admissionHash(&now, v.Source, v.Lock) == v.Hash {
		return keys
	}
	fields := definitionFields(&now)
	for i, old := range definitionFields(&v.Definition) {
		if !bytes.Equal(fields[i].value, old.value) {
			keys = append(keys, old.key)
		}
	}
	return keys
}

// definitionFields are the parts of a definition that an entry has as well, in
// the form that is hashed; an absent one is nil.
func definitionFields(def *Definition) []member {
	fields, err := decodeObject(canonicalDefinition(def), nil)
	if err != nil {
		return nil // not reached: it was just encoded
	}
	var out []member
	for _, key := range []string{"capability", "triggers", "suppression", "parameters", "permissions", "examples"} {
		out = append(out, member{key, fields.get(key)})
	}
	return out
}

// Approve records that a person allows what the waiting version of a capability
// asks for, or else its active one, and makes a waiting version active. The
// approval holds for the same or fewer hosts and secrets of later versions too.
func (r *Registry) Approve(ctx context.Context, name string) (*Admission, error) {
	e, err := r.find(ctx, name)
	if err != nil {
		return nil, err
	}
	v, err := r.waiting(e)
	if err != nil {
		return nil, err
	}
	p := v.Definition.Permissions
	if p == nil || len(p.Net)+len(p.Secrets) == 0 {
		return nil, nothingToDo(name + " declares neither hosts nor secrets (of an older workspace: tendril capability approve --workspace)")
	}
	if len(p.Net) > 0 {
		if err := r.opts.Policy.check(p.Net); err != nil {
			return nil, fmt.Errorf("approve %s: %w", name, err)
		}
	}
	evidence, err := r.admit(ctx, v, nil)
	if err != nil {
		return nil, err
	}
	if err := r.recordApproval(ctx, name, append(slices.Clone(p.Net), secretItems(p.Secrets, p.Net)...)); err != nil {
		return nil, err
	}
	if err := r.activate(ctx, v); err != nil {
		return nil, fmt.Errorf("approve %s: %w", name, err)
	}
	return r.admission(ctx, v, *evidence, false)
}

// waiting is the version that waits for a person, or else the active one.
func (r *Registry) waiting(e *entry) (*version, error) {
	if e.pending == nil {
		return r.active(e)
	}
	v, err := r.readRef(e, *e.pending)
	if err != nil {
		return nil, &RefusedError{e.def.Name, e.pending.Version, err}
	}
	v.Lenient = false
	return v, nil
}

// ApproveWorkspace records that a person allows network access, to the hosts of
// the settings, for capabilities in the seed's format, which declare none.
func (r *Registry) ApproveWorkspace(ctx context.Context) error {
	return r.recordApproval(ctx, "", []string{anyHost})
}
