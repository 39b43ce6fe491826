package capability

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tendril-agent/tendril/internal/sandbox"
)

// Info is all that is known of a capability.
type Info struct {
	Definition Definition `json:"definition"`
	Status     string     `json:"status"`
	Version    string     `json:"version"`
	Hash       string     `json:"sha256,omitempty"`
	CreatedBy  string     `json:"created_by,omitempty"`
	Updated    time.Time  `json:"updated,omitzero"`
	Grants     Grants     `json:"grants"`
	// Approved are the hosts that a person has allowed for good.
	Approved []string `json:"approved"`
	// Secrets are those that a person has allowed for good, each with the hosts
	// that it may be used with.
	Secrets []string `json:"secrets"`
	// Pending is the number of a version that waits for a person.
	Pending  string        `json:"pending,omitempty"`
	Versions []VersionInfo `json:"versions"`
	// Evidence is what this machine's gate saw; nil: it has not seen it yet.
	Evidence *Evidence `json:"evidence"`
	Usage    Usage     `json:"usage"`
	// Notes tell of drift and of what is wrong.
	Notes  []string `json:"notes"`
	Source string   `json:"source"`
	// Dependencies are the remote modules that the active version is locked to.
	Dependencies []sandbox.Dependency `json:"dependencies"`
}

// Show tells all that is known of a capability. It runs no gate. Errors are
// those of [Registry.Resolve] that say that there is nothing to show.
func (r *Registry) Show(ctx context.Context, name string) (*Info, error) {
	e, err := r.find(ctx, name)
	if err != nil {
		return nil, err
	}
	used, err := r.usage(ctx, name)
	if err != nil {
		return nil, err
	}
	approved, err := r.approved(ctx, name)
	if err != nil {
		return nil, err
	}
	hosts, _ := splitApprovals(approved)
	info := &Info{
		Definition: e.def, Status: status(e, used), Version: e.version, Hash: e.hash, Grants: grantsOf(e.def.Permissions),
		Approved: orEmpty(hosts), Secrets: approvedSecrets(approved), Usage: used.sum(name), Notes: []string{}, Dependencies: []sandbox.Dependency{},
	}
	if info.Versions, err = r.versionInfos(ctx, name, e); err != nil {
		return nil, err
	}
	if e.pending != nil {
		info.Pending = e.pending.Version
	}
	return info, r.showActive(ctx, info, e)
}

// showActive adds what the active version itself tells.
func (r *Registry) showActive(ctx context.Context, info *Info, e *entry) error {
	v, err := r.active(e)
	if isAboutOne(err) {
		info.Notes = append(info.Notes, err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	info.Version, info.Hash, info.Definition = v.Version, v.Hash, v.Definition
	info.CreatedBy, info.Updated = v.CreatedBy, v.Created
	info.Grants = grantsOf(v.Definition.Permissions)
	info.Source = string(v.Source)
	if found, err := sandbox.Dependencies(v.Lock); err != nil {
		info.Notes = append(info.Notes, err.Error())
	} else {
		info.Dependencies = append(info.Dependencies, found...)
	}
	if e.status != StatusArchived {
		info.Notes = slices.Concat(info.Notes, r.drift(v), entryNote(e, v))
	}
	info.Evidence, err = r.admitted(ctx, v)
	return err
}

// isAboutOne reports whether err is about one capability, and others may be well.
func isAboutOne(err error) bool {
	var refused *RefusedError
	var missing *MissingSourceError
	var conflict *ConflictError
	return errors.As(err, &refused) || errors.As(err, &missing) || errors.As(err, &conflict)
}

// Drift tells, for all capabilities, where what runs is not what stands in tools/,
// or nothing can run: a line each.
func (r *Registry) Drift(ctx context.Context) ([]string, error) {
	ix, err := r.load(ctx)
	if err != nil {
		return nil, err
	}
	var notes []string
	for _, e := range ix.entries {
		if e.conflict != "" {
			notes = append(notes, e.conflict)
			continue
		}
		if e.status == StatusArchived {
			continue
		}
		v, err := r.active(e)
		switch {
		case isAboutOne(err):
			notes = append(notes, err.Error())
		case err != nil:
			return nil, err
		default:
			notes = slices.Concat(notes, r.drift(v), entryNote(e, v))
		}
	}
	return notes, nil
}

// SourcePath is where the readable copy of a capability is, or will be; "" when
// no capability can have that name.
func (r *Registry) SourcePath(name string) string {
	if !validName(name) {
		return ""
	}
	return filepath.Join(r.opts.Workspace, filepath.FromSlash(copyPath(name)))
}

// entryNote says when the entry is not what its active version says.
func entryNote(e *entry, v *version) []string {
	keys := entryDrift(e, v)
	if len(keys) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the entry of %s in tools/index.json was changed outside (%s); version %s counts until a person accepts the change with: tendril capability accept %s (or takes it back with: tendril capability restore %s)",
		v.Name, strings.Join(keys, ", "), v.Version, v.Name, v.Name)}
}

func canonicalOf(def *Definition) string { return string(canonicalDefinition(def)) }
