package capability

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tendril-agent/tendril/internal/sandbox"
)

// ErrReadOnly means that the folder of the registry cannot be written. Listing
// and running go on.
var ErrReadOnly = errors.New("the workspace cannot be written")

// ErrFull means that the disk of the registry has no room, or a quota is used
// up. Listing and running go on.
var ErrFull = errors.New("the disk of the workspace is full")

// Refusal is the gate's no. Nothing on disk has changed. Its text is for the
// model: the step, the places in its own source, and how to mend them.
type Refusal struct {
	Step        string               `json:"step"`
	Message     string               `json:"message"`
	Diagnostics []sandbox.Diagnostic `json:"diagnostics,omitempty"`
	Hint        string               `json:"hint,omitempty"`
	Denied      []string             `json:"denied,omitempty"` // hosts and secrets that a person was asked about and did not allow
}

// shownDiagnostics is how many places a refusal spells out.
const shownDiagnostics = 10

func (e *Refusal) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "refused at the step %q: %s", e.Step, e.Message)
	for i, d := range e.Diagnostics {
		if i == shownDiagnostics {
			fmt.Fprintf(&b, "\n  … and %d more", len(e.Diagnostics)-i)
			break
		}
		b.WriteString("\n  " + formatDiagnostic(d))
	}
	if e.Hint != "" {
		b.WriteString("\nto mend it: " + e.Hint)
	}
	return b.String()
}

func formatDiagnostic(d sandbox.Diagnostic) string {
	text := d.Message
	if d.Code != "" {
		text = d.Code + " " + text
	}
	if d.Line == 0 {
		return text
	}
	return fmt.Sprintf("line %d, column %d: %s", d.Line, d.Column, text)
}

// UnknownError means that no capability has this name.
type UnknownError struct {
	Name string
	Near []string // names that look like it, best first
	// Loose is set when tools/<name>.ts exists without an entry in the index.
	Loose bool
	// Kept is set when versions of it are kept: it was deleted, or its entry was
	// removed.
	Kept bool
}

func (e *UnknownError) Error() string {
	text := fmt.Sprintf("there is no capability %s", quote(e.Name))
	if e.Loose && !e.Kept {
		text += fmt.Sprintf("; tools/%s.ts exists, but a source without an entry in tools/index.json does not run: register it", e.Name)
	}
	if e.Kept {
		text += "; versions of it are kept, and a person can bring it back with: tendril capability restore " + e.Name
	}
	if len(e.Near) > 0 {
		text += "; near it: " + strings.Join(e.Near, ", ")
	}
	return text + "; list the capabilities, or register one"
}

// ArchivedError means that a person has archived a capability: it is kept, and
// does not run.
type ArchivedError struct{ Name string }

func (e *ArchivedError) Error() string {
	return fmt.Sprintf("%s is archived and does not run; a person can bring it back with: tendril capability restore %s", e.Name, e.Name)
}

// PendingError means that a version waits until a person allows what it asks
// for.
type PendingError struct {
	Name    string
	Version string
	Wants   Wants  // what nobody has allowed yet
	Command string // allows them
}

func (e *PendingError) Error() string {
	return fmt.Sprintf("%s %s waits for a person to allow %s; they can run: %s", e.Name, e.Version, e.Wants, e.Command)
}

// RefusedError means that a registered version may not run here: this machine
// has not admitted it and its gate said no, or its bytes are not what was
// admitted.
type RefusedError struct {
	Name    string
	Version string
	Err     error // often a *[Refusal]
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s %s may not run: %v", e.Name, e.Version, e.Err)
}

func (e *RefusedError) Unwrap() error { return e.Err }

// MissingSourceError means that an entry names a version whose source is gone.
type MissingSourceError struct {
	Name    string
	Version string
	Kept    []string // versions of it that are still there, oldest first
	Edited  bool     // tools/<name>.ts is there, with another text
}

func (e *MissingSourceError) Error() string {
	text := fmt.Sprintf("the source of %s %s is missing", e.Name, e.Version)
	if len(e.Kept) > 0 {
		text += fmt.Sprintf("; tools/.versions/%s still holds %s", e.Name, strings.Join(e.Kept, ", "))
	}
	switch {
	case e.Edited:
		text += fmt.Sprintf("; tools/%s.ts holds another text, which a person can make a version with: tendril capability accept %s", e.Name, e.Name)
	case len(e.Kept) > 0:
		text += fmt.Sprintf("; a person can go back to it with: tendril capability rollback %s %s", e.Name, e.Kept[len(e.Kept)-1])
	default:
		text += fmt.Sprintf(": neither tools/%s.ts nor a version of it is there; a person can put the file back and run: tendril capability accept %s", e.Name, e.Name)
	}
	return text + "; or register it again"
}

// ConflictError means that git, or another writer, left two versions of the
// truth. Nothing is overwritten until a person has chosen.
type ConflictError struct {
	Name    string // of the capability, or "" for the whole index
	Message string // both sides
}

func (e *ConflictError) Error() string {
	return e.Message + "; nothing is written until a person has chosen with: tendril capability resolve"
}
