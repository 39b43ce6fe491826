package capability

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Severity says how much a [Finding] matters.
type Severity string

// The severities, worst first.
const (
	SeverityError   Severity = "error"   // something does not run, or is damaged
	SeverityWarning Severity = "warning" // what runs is not what stands in the files
	SeverityNote    Severity = "note"    // good to know
)

// Finding is something that is wrong with a registry.
type Finding struct {
	Severity Severity `json:"severity"`
	Name     string   `json:"name,omitempty"` // of the capability
	Problem  string   `json:"problem"`
	Mend     string   `json:"mend"`    // what mends it: a command, or what Fix does
	Fixable  bool     `json:"fixable"` // [Registry.Fix] does it; the others are for a person to decide

	fix func(context.Context, *Registry) error
}

// Examine reads everything that is kept and tells what is wrong, the worst
// first. It changes nothing; open the registry with Inspect to find it as it is.
func (r *Registry) Examine(ctx context.Context) ([]Finding, error) {
	x := &examination{r: r, found: []Finding{}}
	if err := x.index(ctx); err != nil {
		return nil, fmt.Errorf("examine the registry: %w", err)
	}
	for _, e := range x.ix.entries {
		if e.conflict != "" {
			continue
		}
		if err := x.entry(ctx, e); err != nil {
			return nil, fmt.Errorf("examine %s: %w", e.def.Name, err)
		}
	}
	x.files()
	order := []Severity{SeverityError, SeverityWarning, SeverityNote}
	slices.SortStableFunc(x.found, func(a, b Finding) int {
		return cmp.Or(slices.Index(order, a.Severity)-slices.Index(order, b.Severity), cmp.Compare(a.Name, b.Name))
	})
	return x.found, nil
}

// Fix mends what can be mended without a decision, and returns what it has
// mended and what is left. The error is about what could not be mended; the
// rest is all the same.
func (r *Registry) Fix(ctx context.Context) (mended, left []Finding, err error) {
	mended = []Finding{}
	found, err := r.Examine(ctx)
	if err != nil {
		return mended, nil, err
	}
	for _, f := range found {
		if f.fix == nil {
			continue
		}
		if failed := f.fix(ctx, r); failed != nil && !errors.Is(failed, ErrNothingToDo) {
			err = errors.Join(err, fmt.Errorf("mend %q: %w", f.Problem, failed))
			continue
		}
		mended = append(mended, f)
	}
	left, again := r.Examine(ctx)
	return mended, left, errors.Join(err, again)
}

// examination collects findings.
type examination struct {
	r     *Registry
	ix    *index
	found []Finding
}

func (x *examination) add(s Severity, name, mend, problem string, args ...any) {
	x.found = append(x.found, Finding{Severity: s, Name: name, Problem: fmt.Sprintf(problem, args...), Mend: mend})
}

// fixable adds a finding that fix mends.
func (x *examination) fixable(s Severity, name, mend, problem string, fix func(context.Context, *Registry) error) {
	x.found = append(x.found, Finding{Severity: s, Name: name, Problem: problem, Mend: mend, Fixable: true, fix: fix})
}

// repair takes the lock, which completes or undoes what a crash left, and mends
// the index.
func repair(ctx context.Context, r *Registry) error {
	return r.exclusively(ctx, func() error {
		_, err := r.loadLocked()
		return err
	})
}

func (x *examination) index(ctx context.Context) error {
	r := x.r
	if r.interrupted() {
		x.fixable(SeverityWarning, "", "it is completed or undone", "a change was interrupted", repair)
	}
	ix, damage, err := r.read()
	if err != nil {
		return err
	}
	if damage != "" {
		var how string
		if ix, how, err = r.rebuild(); err != nil {
			return err
		}
		x.fixable(SeverityError, "", "it is set aside and the list is rebuilt: "+how, damage, repair)
	}
	x.ix = ix
	const choose = "tendril capability resolve"
	switch _, _, err := r.decide(ix, nil, ""); {
	case ix.conflict == "" && len(ix.disputes) == 0:
	case len(ix.entries) == 0:
		x.add(SeverityError, "", "edit tools/index.json", "%s, and a side of it cannot be read", ix.conflict)
	case err == nil:
		x.fixable(SeverityError, "", "both sides are taken together: nothing in them contradicts", conflictText(ix), func(ctx context.Context, r *Registry) error {
			_, err := r.Settle(ctx, nil, "")
			return err
		})
	default:
		x.add(SeverityError, "", choose, "%s", conflictText(ix))
		for _, d := range ix.disputes {
			if _, ok := r.take(d, ""); !ok {
				x.add(SeverityError, d.name, choose+" "+d.name+"=ours (or =theirs)", "it is %s in ours and %s in theirs", side(d.ours), side(d.theirs))
			}
		}
	}
	return nil
}

func conflictText(ix *index) string {
	if ix.conflict != "" {
		return ix.conflict
	}
	return "tools/index.json has two entries of " + ix.disputes[0].name
}

// entry examines one capability.
func (x *examination) entry(ctx context.Context, e *entry) error {
	name := e.def.Name
	if e.problem != "" {
		x.add(SeverityError, name, "use the program that wrote it, or register it again", "its entry cannot be read whole: %s", e.problem)
	}
	v, err := x.r.active(e)
	switch {
	case isAboutOne(err):
		x.broken(e, err)
	case err != nil:
		return err
	case e.status != StatusArchived:
		if err := x.active(ctx, e, v); err != nil {
			return err
		}
	}
	x.versions(e)
	return nil
}

// broken is an entry whose version cannot be read.
func (x *examination) broken(e *entry, err error) {
	name := e.def.Name
	source, errCopy := readableCopy(x.r.root, name)
	whole := errCopy == nil && source != nil && e.hash != "" && e.problem == "" && admissionHash(&e.def, source, keptLock(x.r.root, e)) == e.hash
	if whole {
		x.fixable(SeverityError, name, "they are written again from tools/"+name+".ts, which has the same hash", err.Error(), func(ctx context.Context, r *Registry) error {
			return r.rewriteVersion(ctx, name)
		})
		return
	}
	var missing *MissingSourceError
	mend := "take its files back from git or a backup, or: tendril capability rollback " + name
	if errors.As(err, &missing) && missing.Edited {
		mend = "tendril capability accept " + name
	}
	x.add(SeverityError, name, mend, "%s", err)
}

// rewriteVersion writes the files of the active version from the readable copy
// and the entry, when they are what was hashed.
func (r *Registry) rewriteVersion(ctx context.Context, name string) error {
	return r.change(ctx, name, func(_ *index, e *entry) error {
		source, err := readableCopy(r.root, name)
		lock := keptLock(r.root, e)
		if err != nil || source == nil || admissionHash(&e.def, source, lock) != e.hash {
			return errors.Join(ErrNothingToDo, err)
		}
		v, base := r.versionOf(e, e.version, source, lock), versionBase(name, versionRef{e.version, e.hash})
		if data, err := readFile(r.root, base+".json", maxKept); err == nil {
			if known, err := decodeVersion(data); err == nil && known.Hash == e.hash && known.Version == e.version {
				return replace(r.disk, base+".ts", source) // who made it stays
			}
		}
		return writeVersion(r.disk, v)
	})
}

// active examines a capability that could run.
func (x *examination) active(ctx context.Context, e *entry, v *version) error {
	name := v.Name
	restore := func(ctx context.Context, r *Registry) error {
		_, err := r.Restore(ctx, name, Provenance{By: ByHuman}, nil)
		return err
	}
	decide := fmt.Sprintf("tendril capability accept %s, or tendril capability restore %s", name, name)
	if v.unkept {
		x.fixable(SeverityWarning, name, "they are written again from tools/"+name+".ts, which has the same hash",
			fmt.Sprintf("the files of version %s are missing in tools/.versions/%s (git add tools/* leaves them out)", v.Version, name),
			func(ctx context.Context, r *Registry) error { return r.rewriteVersion(ctx, name) })
	}
	current, err := readableCopy(x.r.root, name)
	keys := entryDrift(e, v)
	switch {
	case err != nil:
		x.add(SeverityWarning, name, "make it a file that can be read, or remove it", "tools/%s.ts cannot be read: %v; version %s runs", name, err, v.Version)
	case current == nil:
		x.fixable(SeverityWarning, name, "it is written again", fmt.Sprintf("tools/%s.ts is missing; version %s runs", name, v.Version), restore)
	case x.r.isMerge(name, current):
		x.fixable(SeverityWarning, name, "the active version is written; both sides are kept as versions",
			fmt.Sprintf("tools/%s.ts holds git's conflict markers; version %s runs", name, v.Version), restore)
	case !bytes.Equal(current, v.Source) && sameLines(current, v.Source):
		x.fixable(SeverityWarning, name, "it is written again as it was",
			fmt.Sprintf("tools/%s.ts has other line ends than version %s, or a byte order mark", name, v.Version), restore)
	case !bytes.Equal(current, v.Source):
		x.add(SeverityWarning, name, decide, "tools/%s.ts was changed outside; version %s runs", name, v.Version)
	case len(keys) == 1 && keys[0] == "sha256":
		x.fixable(SeverityWarning, name, "the entry is written again as it was", "another program has rewritten its entry without what it does not know", restore)
	case len(keys) > 0:
		x.add(SeverityWarning, name, decide, "its entry in tools/index.json was changed outside (%s); version %s counts", strings.Join(keys, ", "), v.Version)
	}
	evidence, err := x.r.admitted(ctx, v)
	if err == nil && evidence == nil {
		x.add(SeverityNote, name, "tendril capability verify "+name, "this machine has not checked version %s; that happens before its first run", v.Version)
	}
	if e.pending != nil || e.status == StatusPending {
		x.add(SeverityNote, name, approveCommand(name), "a version of it waits for a person")
	}
	return err
}

// versions examines what is kept of a capability besides the active version.
func (x *examination) versions(e *entry) {
	name := e.def.Name
	if n, deleted := deletion(x.r.root, name); deleted {
		x.add(SeverityNote, name, "tendril capability delete "+name+", or keep it: its next version ends this",
			"it was deleted (%s), and tools/index.json has it again, perhaps by a merge", n)
	}
	numbers := map[string]int{}
	for _, k := range keptVersions(x.r.root, name) {
		if numbers[k.number.String()]++; numbers[k.number.String()] == 2 {
			x.add(SeverityNote, name, "nothing needs to be done: both are kept, and the next one gets a new number", "two versions are called %s", k.number)
		}
		if _, err := readVersion(x.r.root, k.base); err != nil && k.base != versionBase(name, versionRef{e.version, e.hash}) {
			x.add(SeverityWarning, name, "take its files back from git or a backup; it cannot be rolled back to", "version %s cannot be read: %v", k.number, err)
		}
	}
}

// files examines the folders themselves.
func (x *examination) files() {
	r := x.r
	for _, name := range r.versionedNames() {
		_, deleted := deletion(r.root, name)
		if x.ix.find(name) == nil && !deleted && len(keptVersions(r.root, name)) > 0 {
			x.add(SeverityWarning, name, "tendril capability restore "+name, "versions of it are kept, and tools/index.json does not name it")
		}
	}
	names, _ := readNames(r.root, toolsPath) // unreadable: nothing to say
	slices.Sort(names)
	for _, file := range names {
		x.file(file)
	}
	for _, f := range []struct{ path, text string }{{attributesPath, attributes}, {ignorePath, ignored}} {
		if _, err := r.root.Lstat(f.path); errors.Is(err, fs.ErrNotExist) && len(x.ix.entries) > 0 {
			x.fixable(SeverityNote, "", "it is written", f.path+" is missing: git might change what is compared byte for byte", func(ctx context.Context, r *Registry) error {
				return r.exclusively(ctx, r.prepareForGit)
			})
		}
	}
}

// file examines a file of tools/.
func (x *examination) file(file string) {
	name, isSource := strings.CutSuffix(strings.ToLower(file), ".ts")
	info, err := x.r.root.Lstat(path.Join(toolsPath, file))
	switch {
	case err != nil:
	case strings.HasPrefix(file, path.Base(indexPath)+".unreadable-"):
		x.add(SeverityNote, "", "take from it what is missing, then remove it", "tools/%s is an index that could not be read and was set aside", file)
	case !isSource || !validName(name):
	case file != name+".ts":
		if x.ix.find(name) != nil {
			x.add(SeverityWarning, name, "rename it: on some systems both names are the same file", "tools/%s differs from tools/%s.ts only in case", file, name)
		}
	case x.ix.find(name) == nil:
		if _, deleted := deletion(x.r.root, name); deleted {
			x.add(SeverityNote, name, "tendril capability restore "+name+", which keeps this text as a version; or remove the file",
				"tools/%s does not run: %s was deleted", file, name)
		} else if len(keptVersions(x.r.root, name)) == 0 {
			x.add(SeverityNote, name, "ask for it to be registered, or add an entry", "tools/%s has no entry in tools/index.json, so it does not run", file)
		}
	case info.Mode()&fs.ModeSymlink != 0:
		x.add(SeverityNote, name, "nothing needs to be done: the next version replaces it by a file", "tools/%s is a link", file)
	}
}
