package capability

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tendril-agent/tendril/internal/sandbox"
)

// gateVersion counts changes of the rules. What was admitted under older ones
// passes the gate again before its next run.
const gateVersion = 1

// submission is what goes through the gate.
type submission struct {
	def     Definition
	source  []byte
	version string // "" for one that is being registered
	// lenient is for workspaces that are older than the gate: what a new
	// capability would be refused for is a warning, as long as it can run.
	lenient bool
	// override: a person takes it although its type check fails.
	override bool

	lock  json.RawMessage // of its dependencies; found by the gate unless it is set
	prior *version        // what is active now: the same imports keep its lock
	// imports are what the source names, found by the gate.
	imports []sandbox.Import

	waiting  Wants // found by the gate: what a person must allow first
	overrode bool  // found by the gate: override was needed
}

// resubmission is a version that passes the gate once more, as it is.
func resubmission(v *version) *submission {
	return &submission{def: v.Definition, source: v.Source, lock: v.Lock, version: v.Version, lenient: v.Lenient}
}

// verdict is what a step found. A step that refuses returns a *[Refusal].
type verdict struct {
	note     string
	warnings []string
}

type gateStep struct {
	name  string
	judge func(context.Context, *submission) (verdict, error)
}

// steps are the gate, in order.
func (r *Registry) steps() []gateStep {
	return []gateStep{
		{StepShape, r.judgeShape},
		{StepModules, r.judgeModules},
		{StepDependencies, r.judgeDependencies},
		{StepPermissions, r.judgePermissions},
		{StepTypes, r.judgeTypes},
	}
}

// pass takes a submission through the gate. It writes nothing. report, which
// may be nil, hears of each step when it begins and when it is over.
func (r *Registry) pass(ctx context.Context, s *submission, report func(Step)) (Evidence, error) {
	if report == nil {
		report = func(Step) {}
	}
	if r.opts.Checker == nil {
		return Evidence{}, errors.New("nothing can be admitted: no checker of sources is set up")
	}
	evidence := Evidence{Gate: gateVersion}
	for _, step := range r.steps() {
		report(Step{Name: step.name, State: StepRunning})
		start := time.Now()
		found, err := step.judge(ctx, s)
		done := Step{Name: step.name, State: StepPassed, Note: found.note, Duration: time.Since(start)}
		switch {
		case err != nil:
			done.State, done.Note = StepFailed, shortly(err)
		case len(found.warnings) > 0:
			done.State, done.Note = StepWarned, strings.Join(found.warnings, "; ")
		}
		report(done)
		evidence.Steps = append(evidence.Steps, done)
		if err != nil {
			return evidence, err
		}
	}
	evidence.Overridden = s.overrode
	return evidence, nil
}

// shortly is err in a line; a refusal tells the rest itself.
func shortly(err error) string {
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return refusal.Message
	}
	return err.Error()
}

func (r *Registry) judgeShape(_ context.Context, s *submission) (verdict, error) {
	warnings, faults := checkShape(&s.def, s.source, s.lenient)
	more, wrong := checkPermissions(s.def.Permissions, r.opts.Workspace)
	warnings, faults = append(warnings, more...), slices.Concat(faults, wrong, r.checkSecrets(s.def.Permissions))
	if len(faults) > 0 {
		return verdict{}, &Refusal{Step: StepShape, Message: strings.Join(faults, "; "), Hint: "correct this and register again"}
	}
	return verdict{warnings: warnings}, nil
}

func (r *Registry) judgeModules(ctx context.Context, s *submission) (verdict, error) {
	imports, err := r.opts.Checker.Imports(ctx, s.def.Name, s.source)
	if err != nil {
		return verdict{}, syntaxRefusal(StepModules, err)
	}
	s.imports = imports
	imports = append(imports, findComputedImports(string(s.source))...)
	if bad, hint := checkImports(imports); len(bad) > 0 {
		return verdict{}, &Refusal{Step: StepModules, Message: count(len(bad), "import") + " that a capability cannot have", Diagnostics: bad, Hint: hint}
	}
	guards := findMainGuard(string(s.source))
	if len(guards) == 0 {
		return verdict{}, nil
	}
	if s.lenient {
		return verdict{warnings: []string{"import.meta.main is false here: what it guards does not run (" + formatDiagnostic(guards[0]) + ")"}}, nil
	}
	return verdict{}, &Refusal{
		Step: StepModules, Message: "the code is guarded by import.meta.main, and would silently do nothing", Diagnostics: guards,
		Hint: "take the guard away: put the code at the top level, or export default an async function of (args, context)",
	}
}

func (r *Registry) judgePermissions(ctx context.Context, s *submission) (verdict, error) {
	if s.def.Permissions == nil {
		return verdict{note: grantsOf(nil).String()}, nil
	}
	waiting, err := r.allow(ctx, Question{
		Name: s.def.Name, Capability: s.def.Capability, Version: s.version, Hash: admissionHash(&s.def, s.source, s.lock), Grants: grantsOf(s.def.Permissions),
	})
	if err != nil {
		return verdict{}, err
	}
	s.waiting = waiting
	if !waiting.None() {
		return verdict{warnings: []string{"waits for a person to allow " + waiting.String()}}, nil
	}
	return verdict{note: grantsOf(s.def.Permissions).String()}, nil
}

func (r *Registry) judgeTypes(ctx context.Context, s *submission) (verdict, error) {
	found, err := r.opts.Checker.Check(ctx, s.def.Name, s.source, s.lock, argsType(s.def.Parameters))
	if err != nil {
		return verdict{}, syntaxRefusal(StepTypes, err)
	}
	if len(found) == 0 {
		return verdict{}, nil
	}
	if !s.lenient && !s.override {
		return verdict{}, &Refusal{
			Step: StepTypes, Message: count(len(found), "type error"), Diagnostics: found,
			Hint: "correct these lines and register again; args has the type that definition.parameters describes",
		}
	}
	s.overrode = s.override && !s.lenient
	warnings := []string{count(len(found), "type error")}
	for _, d := range found[:min(3, len(found))] {
		warnings = append(warnings, formatDiagnostic(d))
	}
	return verdict{warnings: warnings}, nil
}

// syntaxRefusal turns a source that cannot be parsed into a refusal.
func syntaxRefusal(step string, err error) error {
	var syntax *sandbox.SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	return &Refusal{
		Step: step, Message: "the source cannot be parsed", Diagnostics: []sandbox.Diagnostic{syntax.Diagnostic},
		Hint: "correct the syntax; the source is a TypeScript module, and a * and / together end a block comment",
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// mayRegister says why a name cannot get a new version now, whatever it is.
func (r *Registry) mayRegister(ctx context.Context, ix *index, name string) error {
	if ix.conflict != "" {
		return &ConflictError{Message: ix.conflict}
	}
	if e := ix.find(name); e != nil {
		if e.conflict != "" {
			return &ConflictError{Name: name, Message: e.conflict}
		}
		if e.status != StatusArchived {
			return nil
		}
	}
	live := ix.live()
	if len(live) < r.opts.Max {
		return nil
	}
	least, err := r.leastUsed(ctx, live, 3)
	if err != nil {
		return err
	}
	slices.Sort(least)
	return &Refusal{
		Step:    StepShape,
		Message: fmt.Sprintf("the registry holds %d capabilities, and registry.maxCapabilities is %d", len(live), r.opts.Max),
		Hint: fmt.Sprintf("extend an existing capability under its own name, or tell the user to make room; the least used ones are %s, and a person can archive one with: tendril capability archive %s",
			strings.Join(least, ", "), least[0]),
	}
}

// Register takes a capability through the gate and keeps it: a new one, or a
// new version of the one with this name. When the gate refuses, the error is a
// *[Refusal] and the disk is untouched. A version whose network access nobody
// is there to allow is kept pending; the last good one stays active. report,
// which may be nil, is told of the gate's steps as they happen.
func (r *Registry) Register(ctx context.Context, def Definition, code string, by Provenance, report func(Step)) (*Admission, error) {
	ix, err := r.load(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.mayRegister(ctx, ix, def.Name); err != nil {
		return nil, err
	}
	if by.By == "" {
		by.By = ByModel
	}
	s := &submission{def: def, source: []byte(code)}
	if e := ix.find(def.Name); e != nil {
		s.prior, _ = r.active(e) // unreadable: nothing to go on from
	}
	evidence, err := r.pass(ctx, s, report)
	if err != nil {
		return nil, err
	}
	replaced := replaces(ix.find(def.Name), def)
	v, err := r.keep(ctx, candidate{def: def, source: s.source, lock: s.lock, by: by, evidence: evidence, pending: !s.waiting.None()})
	if err != nil {
		return nil, fmt.Errorf("keep %s: %w", def.Name, err)
	}
	a, err := r.admission(ctx, v, evidence, !s.waiting.None())
	if a != nil && replaced != "" {
		a.Warnings = append(a.Warnings, replaced)
	}
	return a, err
}

// replaces warns of a version that is described as something else than the one
// before it: the name may have been taken by mistake.
func replaces(old *entry, def Definition) string {
	switch {
	case old == nil:
		return ""
	case old.status == StatusArchived:
		return unarchived(old)
	case old.def.Capability == def.Capability:
		return ""
	}
	return fmt.Sprintf("%s %s was described as %s; if this does something else, register it under a name of its own", def.Name, old.version, quote(old.def.Capability))
}

func (r *Registry) admission(ctx context.Context, v *version, evidence Evidence, pending bool) (*Admission, error) {
	dependencies, err := sandbox.Dependencies(v.Lock)
	if err != nil {
		return nil, err
	}
	a := &Admission{
		Dependencies: append([]sandbox.Dependency{}, dependencies...),
		Name:         v.Name, Version: v.Version, Hash: v.Hash, Grants: grantsOf(v.Definition.Permissions),
		Evidence: evidence, Warnings: orEmpty(evidence.Warnings()), Status: StatusUnproven,
	}
	if pending {
		a.Status, a.Command = StatusPending, approveCommand(v.Name)
		return a, nil
	}
	used, err := r.usage(ctx, v.Name)
	if err == nil && used.has(v.Name, v.Hash) {
		a.Status = StatusActive
	}
	return a, err
}

func approveCommand(name string) string { return "tendril capability approve " + name }
