package capability

import (
	"context"
	"errors"
	"fmt"
)

// Verdict is what a fresh look at a capability found.
type Verdict struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Hash    string `json:"sha256,omitempty"`
	// Passed: its active version is as it was kept, and the gate lets it pass.
	Passed bool `json:"passed"`
	// Problem says why not, and how to mend it.
	Problem  string   `json:"problem,omitempty"`
	Evidence Evidence `json:"evidence"`
	// Damaged are other versions that cannot be read.
	Damaged []string `json:"damaged"`
}

// Verify takes the active versions of capabilities through the gate again and
// compares all that is kept of them with its hashes; without names all that are
// not archived. A version that the gate refuses now does not run any more. report,
// which may be nil, hears of each step. The error is that of a name that is
// none, or of the gate itself.
func (r *Registry) Verify(ctx context.Context, names []string, report func(name string, s Step)) ([]Verdict, error) {
	ix, err := r.load(ctx)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		names = ix.live()
	}
	verdicts := []Verdict{}
	for _, name := range names {
		e, err := r.entryOf(ix, name)
		if err != nil {
			return verdicts, fmt.Errorf("verify: %w", err)
		}
		v, err := r.verify(ctx, e, func(s Step) {
			if report != nil {
				report(name, s)
			}
		})
		if err != nil {
			return verdicts, fmt.Errorf("verify %s: %w", name, err)
		}
		verdicts = append(verdicts, *v)
	}
	return verdicts, nil
}

func (r *Registry) verify(ctx context.Context, e *entry, report func(Step)) (*Verdict, error) {
	name := e.def.Name
	out := &Verdict{Name: name, Version: e.version, Hash: e.hash, Damaged: []string{}}
	if e.conflict != "" {
		out.Problem = (&ConflictError{Name: name, Message: e.conflict}).Error()
		return out, nil
	}
	for _, k := range keptVersions(r.root, name) {
		if _, err := readVersion(r.root, k.base); err != nil && k.hash != short(e.hash) {
			out.Damaged = append(out.Damaged, err.Error())
		}
	}
	v, err := r.active(e)
	if isAboutOne(err) {
		out.Problem = err.Error()
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	out.Version, out.Hash = v.Version, v.Hash
	overridden, err := r.overridden(ctx, v.Hash)
	if err != nil {
		return nil, err
	}
	s := resubmission(v)
	s.override = overridden
	out.Evidence, err = r.pass(ctx, s, report)
	var refusal *Refusal
	if errors.As(err, &refusal) {
		out.Problem = err.Error()
		return out, r.withdraw(ctx, v.Hash)
	}
	if err != nil {
		return nil, err
	}
	out.Passed = true
	v.lockedAs(s)
	return out, r.keepAdmitted(ctx, v, out.Evidence)
}
