package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

var (
	// ErrReadOnly means that a place cannot be written here: it is protected, or
	// the system says so.
	ErrReadOnly = errors.New("it is read-only")
	// ErrGate means that a file is the source of a capability: it changes by
	// going through the gate, and not here.
	ErrGate = errors.New("it goes through the gate")
)

// ProtectedError says what is protected, and why. It matches [ErrReadOnly] or
// [ErrGate].
type ProtectedError struct {
	Path  string // as it was asked for
	Place string // what is protected: "tools/index.json", ".git"
	Why   string // for a person: "git keeps it; change it with git"
	kind  error
}

func (e *ProtectedError) Error() string {
	return fmt.Sprintf("%s cannot be changed here: %s", shown(e.Path), e.Why)
}

func (e *ProtectedError) Unwrap() error { return e.kind }

// CheckWrite says without writing whether a path can be written here. The error
// of what is protected is a [*ProtectedError]; that the file is missing is none.
func (w *Workspace) CheckWrite(path string) error {
	p, err := w.find(path)
	if err != nil {
		return err
	}
	defer p.close()
	return p.checkWrite()
}

func (p *place) checkWrite() error {
	if protected := p.protection(); protected != nil {
		return protected
	}
	if p.name == "" || p.info != nil && !p.info.Mode().IsRegular() {
		return p.refuse("is " + p.kind() + " and no file")
	}
	return nil
}

// protection says what protects the place, or nil.
func (p *place) protection() *ProtectedError {
	if p.protected != nil {
		return p.protected
	}
	return p.marks.protection(p.path, p.folders, p.name, p.info)
}

// readOnly is the reason for a person, or "".
func (p *place) readOnly() string {
	if e := p.protection(); e != nil {
		return e.Why
	}
	return ""
}

// marks is what the protected names are now, links followed; nil when missing.
// With it a protection holds whatever another name of the same thing is: in
// other case, in the short form of Windows, or through a link.
type marks struct{ tools, versions, index fs.FileInfo }

func (w *Workspace) marks() (m marks) {
	m.tools, _ = w.root.Stat("tools") // what cannot be looked at cannot be met
	m.versions, _ = w.root.Stat("tools/.versions")
	m.index, _ = w.root.Stat("tools/index.json")
	return m
}

// protection says what protects a name in the last of the folders, or these
// folders when it is "". A name counts as it is spelled on every system, since a
// workspace moves between them: ".GIT" is protected on Linux too.
func (m marks) protection(asked string, folders []folder, name string, info fs.FileInfo) *ProtectedError {
	protect := func(kind error, place, why string) *ProtectedError {
		return &ProtectedError{Path: asked, Place: place, Why: why, kind: kind}
	}
	steps := folders[1:len(folders):len(folders)]
	if name != "" {
		steps = append(steps, folder{name: name, info: info})
	}
	inTools := -1 // how many steps below tools
	if same(folders[0].info, m.tools) {
		inTools = 0
	}
	for i, step := range steps {
		if inTools >= 0 {
			inTools++
		}
		last := i == len(steps)-1
		switch {
		case folds(step.name, ".git") || same(step.info, folders[0].git) || same(step.info, folders[i].git):
			return protect(ErrReadOnly, ".git", "git keeps it; change it with git")
		case i == 0 && folds(step.name, displayCopy):
			return protect(ErrReadOnly, displayCopy, "it is kept for the copy of the system prompt, which nothing reads back")
		case inTools == 1 && folds(step.name, ".versions") || same(step.info, m.versions):
			return protect(ErrReadOnly, "tools/.versions", "the versions of capabilities never change")
		case last && inTools == 1 && folds(step.name, "index.json") || same(step.info, m.index):
			return protect(ErrReadOnly, "tools/index.json", "the registry of capabilities keeps it; change the capabilities instead")
		case last && inTools == 1 && isSource(step):
			return protect(ErrGate, "tools/"+step.name, "it is the source of a capability; change the capability, so that it goes through the gate")
		case i == 0 && folds(step.name, "tools") || same(step.info, m.tools):
			inTools = 0
		}
	}
	if name != "" && info != nil && info.Mode().IsRegular() && info.Mode().Perm()&0o222 == 0 {
		return protect(ErrReadOnly, asked, "nobody has permission to write it")
	}
	return nil
}

// isSource reports whether an entry of tools is the source of a capability. It
// is by its extension alone: what has no valid name the gate refuses.
func isSource(step folder) bool {
	return strings.EqualFold(path.Ext(visible(step.name)), ".ts") && (step.info == nil || !step.info.IsDir())
}

func same(a, b fs.FileInfo) bool { return a != nil && b != nil && os.SameFile(a, b) }
