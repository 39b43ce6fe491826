package capability

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// ErrNothingToDo means that a person's decision would change nothing.
var ErrNothingToDo = errors.New("nothing to do")

// Accept makes a person's edit of tools/<name>.ts the new active version, after
// the gate. by is kept as its author's session, "" if there is none.
func (r *Registry) Accept(ctx context.Context, name, by string) (*Admission, error) {
	e, err := r.find(ctx, name)
	if err != nil {
		return nil, err
	}
	source, err := readableCopy(r.root, name)
	if err != nil {
		return nil, fmt.Errorf("accept %s: %w", name, err)
	}
	if source == nil {
		return nil, fmt.Errorf("accept %s: tools/%s.ts does not exist", name, name)
	}
	def := e.def
	if v, err := r.active(e); err == nil {
		def = v.Definition
		if e.hash != "" && bytes.Equal(v.Source, source) {
			return nil, fmt.Errorf("accept %s: tools/%s.ts is the active version %s: %w", name, name, v.Version, ErrNothingToDo)
		}
	}
	s := &submission{def: def, source: source}
	evidence, err := r.pass(ctx, s, nil)
	if err != nil {
		return nil, fmt.Errorf("accept %s: %w", name, err)
	}
	c := candidate{def: def, source: source, by: Provenance{By: ByHuman, Session: by}, evidence: evidence, pending: len(s.waiting) > 0}
	v, err := r.keep(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("accept %s: %w", name, err)
	}
	return r.admission(ctx, v, evidence, c.pending)
}

// Approve records that a person allows what the waiting version of a capability
// asks for, or else its active one, and makes a waiting version active. The
// approval holds for the same or fewer hosts of later versions too.
func (r *Registry) Approve(ctx context.Context, name string) (*Admission, error) {
	e, err := r.find(ctx, name)
	if err != nil {
		return nil, err
	}
	v, err := r.waiting(e)
	if err != nil {
		return nil, err
	}
	if v.Definition.Permissions == nil || len(v.Definition.Permissions.Net) == 0 {
		return nil, fmt.Errorf("approve %s: it declares no hosts: %w (of an older workspace: tendril capability approve --workspace)", name, ErrNothingToDo)
	}
	if err := r.opts.Policy.check(v.Definition.Permissions.Net); err != nil {
		return nil, fmt.Errorf("approve %s: %w", name, err)
	}
	evidence, err := r.admit(ctx, v, nil)
	if err != nil {
		return nil, err
	}
	if err := r.recordApproval(ctx, name, v.Definition.Permissions.Net); err != nil {
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
