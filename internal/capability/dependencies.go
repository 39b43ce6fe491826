package capability

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/tendril-agent/tendril/internal/sandbox"
)

// remoteImports are the imports of other modules than Deno's own, as the source
// spells them, sorted, each once.
func remoteImports(imports []sandbox.Import) []string {
	var specifiers []string
	for _, imp := range imports {
		if isRemote(imp.Specifier) {
			specifiers = append(specifiers, imp.Specifier)
		}
	}
	slices.Sort(specifiers)
	return slices.Compact(specifiers)
}

// importHosts are the hosts of https: imports.
func importHosts(specifiers []string) []string {
	var hosts []string
	for _, specifier := range specifiers {
		if u, err := url.Parse(specifier); err == nil && u.Scheme == "https" && !slices.Contains(hosts, u.Host) {
			hosts = append(hosts, u.Host)
		}
	}
	return hosts
}

// judgeDependencies resolves and locks the remote modules that a source imports,
// or, of a version that has a lock, makes sure that they are here as it says.
// What imports the same as the version before keeps its lock: only
// [Registry.Update] takes newer ones.
func (r *Registry) judgeDependencies(ctx context.Context, s *submission) (verdict, error) {
	specifiers := remoteImports(s.imports)
	switch {
	case len(specifiers) == 0 && s.lock != nil:
		return verdict{}, &Refusal{Step: StepDependencies, Message: "it has a lock of dependencies and imports none", Hint: "register it again"}
	case len(specifiers) == 0:
		return verdict{note: "none"}, nil
	case s.lock == nil && s.version != "" && !s.lenient:
		return verdict{}, &Refusal{Step: StepDependencies, Message: "its remote imports are not locked", Hint: "register it again"}
	}
	if err := r.mayImport(specifiers); err != nil {
		return verdict{}, err
	}
	if s.lock == nil && s.prior != nil && s.prior.Lock != nil {
		before, err := r.opts.Checker.Imports(ctx, s.prior.Name, s.prior.Source)
		if err == nil && slices.Equal(remoteImports(before), specifiers) {
			s.lock = s.prior.Lock
		}
	}
	var err error
	if s.lock != nil {
		err = r.opts.Checker.HoldsModules(ctx, s.def.Name, s.source, s.lock)
	} else {
		var lock []byte
		lock, err = r.opts.Checker.Lock(ctx, s.def.Name, s.source, importHosts(specifiers))
		s.lock = canonicalJSON(lock)
	}
	if err != nil {
		return verdict{}, dependencyRefusal(err)
	}
	found, err := sandbox.Dependencies(s.lock)
	if err != nil {
		return verdict{}, err
	}
	for _, specifier := range specifiers {
		if !sandbox.Locks(s.lock, specifier) { // Deno goes on without what is imported dynamically
			return verdict{}, &Refusal{
				Step: StepDependencies, Message: fmt.Sprintf("the import of %s could not be fetched", quote(specifier)),
				Hint: "correct its name and version, or try again when its registry or server can be reached",
			}
		}
	}
	return verdict{note: "locked: " + namesOf(found)}, nil
}

// mayImport says what policy itself forbids.
func (r *Registry) mayImport(specifiers []string) error {
	hosts := importHosts(specifiers)
	for _, specifier := range specifiers {
		kind, _, _ := strings.Cut(specifier, ":")
		if host := r.opts.Checker.RegistryHost(kind); host != "" && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	err := r.opts.Policy.check(hosts)
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		return err
	}
	refusal.Step = StepDependencies
	refusal.Message = "its remote imports cannot be fetched: " + refusal.Message
	if r.opts.Policy.Network == NetworkDeny {
		refusal.Hint = "use Web APIs, the Deno namespace and node: modules alone, or tell the user"
	}
	return refusal
}

// namesOf lists dependencies for a person, the source's own first.
func namesOf(found []sandbox.Dependency) string {
	const most = 8
	var names []string
	for _, d := range found {
		if d.Direct || d.Kind == "https" {
			names = append(names, d.String())
		}
	}
	if len(names) > most {
		names = append(names[:most], fmt.Sprintf("%d more", len(names)-most))
	}
	if n := len(found) - len(names); n > 0 && len(names) < most {
		names = append(names, fmt.Sprintf("%d that these need", n))
	}
	return strings.Join(names, ", ")
}

// dependencyRefusal turns what is wrong with a dependency into a refusal.
func dependencyRefusal(err error) error {
	var found *sandbox.DependencyError
	if !errors.As(err, &found) {
		return err
	}
	hints := map[sandbox.Problem]string{
		sandbox.Unreachable: "try again when the network is there, or do it without this dependency",
		sandbox.NotFound:    "correct the name or the version, and register again",
		sandbox.TooYoung:    "name an older version, as in npm:name@1.2.3, and register again",
		sandbox.Changed:     "do not use it; tell the user, and take another package or an earlier version",
		sandbox.Forbidden:   "import only npm:, jsr: and https: modules that need no other hosts",
	}
	hint := hints[found.Problem]
	if hint == "" {
		hint = "take another package or version, or do it without"
	}
	return &Refusal{Step: StepDependencies, Message: found.Message, Hint: hint}
}

// Update resolves the dependencies of the active version anew and takes it
// through the gate with them, as a new version. The error matches
// [ErrNothingToDo] when it has none, or they are the newest already.
func (r *Registry) Update(ctx context.Context, name string, by Provenance, report func(Step)) (*Admission, error) {
	a, err := r.update(ctx, name, by, report)
	if err != nil {
		return nil, fmt.Errorf("update %s: %w", name, err)
	}
	return a, nil
}

func (r *Registry) update(ctx context.Context, name string, by Provenance, report func(Step)) (*Admission, error) {
	e, err := r.find(ctx, name)
	if err != nil {
		return nil, err
	}
	if e.status == StatusArchived {
		return nil, &ArchivedError{name}
	}
	v, err := r.active(e)
	if err != nil {
		return nil, err
	}
	s := &submission{def: v.Definition, source: v.Source, lenient: v.Lenient}
	if s.override, err = r.overridden(ctx, v.Hash); err != nil {
		return nil, err
	}
	evidence, err := r.pass(ctx, s, report)
	if err != nil {
		return nil, err
	}
	switch {
	case s.lock == nil:
		return nil, nothingToDo("it has no remote dependencies")
	case string(s.lock) == string(v.Lock):
		return nil, nothingToDo("its dependencies are the newest that its imports allow")
	}
	kept, err := r.keep(ctx, candidate{
		def: v.Definition, source: v.Source, lock: s.lock, by: by, evidence: evidence, pending: !s.waiting.None(), note: "dependencies updated",
	})
	if err != nil {
		return nil, err
	}
	return r.admission(ctx, kept, evidence, !s.waiting.None())
}
