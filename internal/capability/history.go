package capability

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// VersionInfo is a version that is kept, or the record of a deletion.
type VersionInfo struct {
	Version   string    `json:"version"`
	Hash      string    `json:"sha256,omitempty"` // of an unreadable one the beginning; "" for a deletion
	State     string    `json:"state,omitempty"`  // active, pending, deleted, unreadable; "" for an earlier one
	CreatedBy string    `json:"created_by,omitempty"`
	Person    string    `json:"person,omitempty"`
	Model     string    `json:"model,omitempty"`
	Session   string    `json:"session,omitempty"`
	Created   time.Time `json:"created,omitzero"`
	Parent    string    `json:"parent,omitempty"` // hash of the version that was active before
	Note      string    `json:"note,omitempty"`
	// Request is what the user had asked for when it was written; only the
	// machine where that was knows it.
	Request string `json:"request,omitempty"`
	// Admitted is when this machine's gate let it pass; zero: it has not yet.
	Admitted time.Time `json:"admitted,omitzero"`
	Usage    Usage     `json:"usage"`
}

// The states of a [VersionInfo].
const (
	VersionActive     = "active"
	VersionPending    = "pending"
	VersionDeleted    = "deleted"
	VersionUnreadable = "unreadable"
)

// History tells what is kept of a capability, newest first, also of a deleted or
// archived one. The error is an *[UnknownError] when nothing is.
func (r *Registry) History(ctx context.Context, name string) ([]VersionInfo, error) {
	ix, err := r.load(ctx)
	if err != nil {
		return nil, err
	}
	e, err := r.entryOf(ix, name)
	var unknown *UnknownError
	var conflict *ConflictError
	if errors.As(err, &unknown) && unknown.Kept || errors.As(err, &conflict) && validName(name) {
		err = nil // also of a deleted one, and of one in conflict, where a person must know what to choose
	}
	if err != nil {
		return nil, err
	}
	versions, err := r.versionInfos(ctx, name, e)
	slices.Reverse(versions)
	return versions, err
}

// versionInfos tells of the versions and deletions of a capability, oldest first.
func (r *Registry) versionInfos(ctx context.Context, name string, e *entry) ([]VersionInfo, error) {
	used, err := r.usage(ctx, name)
	if err != nil {
		return nil, err
	}
	infos := r.deletions(name)
	for _, k := range keptVersions(r.root, name) {
		v, err := readVersion(r.root, k.base)
		if err != nil {
			infos = append(infos, VersionInfo{Version: k.number.String(), Hash: k.hash, State: VersionUnreadable, Note: err.Error()})
			continue
		}
		info := VersionInfo{
			Version: v.Version, Hash: v.Hash, CreatedBy: v.CreatedBy, Person: v.Person, Model: v.Model, Session: v.Session,
			Created: v.Created, Parent: v.Parent, Note: v.Note, Usage: used[name][v.Hash],
		}
		infos = append(infos, info)
	}
	slices.SortStableFunc(infos, func(a, b VersionInfo) int {
		na, _ := parseNumber(a.Version)
		nb, _ := parseNumber(b.Version)
		return na.compare(nb)
	})
	r.markActive(infos, e)
	return infos, r.addAdmissions(ctx, infos)
}

// deletions are the records of deletions.
func (r *Registry) deletions(name string) []VersionInfo {
	infos := []VersionInfo{}
	files, _ := readNames(r.root, versionsPath+"/"+name) // unreadable: none
	for _, file := range files {
		n, ok := parseTombstone(file)
		if !ok {
			continue
		}
		info := VersionInfo{Version: n.String(), State: VersionDeleted}
		if t, _, err := readTombstone(r.root, name, n); err == nil {
			info.CreatedBy, info.Person, info.Session, info.Created = t.CreatedBy, t.Person, t.Session, t.Created
		} else {
			info.Note = "cannot be read: " + err.Error()
		}
		infos = append(infos, info)
	}
	return infos
}

func (r *Registry) markActive(infos []VersionInfo, e *entry) {
	if e == nil {
		return
	}
	active := versionRef{e.version, e.hash}
	if v, err := r.active(e); err == nil {
		active = v.ref()
	}
	for i := range infos {
		switch ref := (versionRef{infos[i].Version, infos[i].Hash}); {
		case infos[i].State != "":
		case ref == active && e.status == StatusPending, e.pending != nil && ref == *e.pending:
			infos[i].State = VersionPending
		case ref == active:
			infos[i].State = VersionActive
		}
	}
}

// addAdmissions adds when this machine's gate let versions pass, and what had been
// asked for. After a rollback several have the same hash.
func (r *Registry) addAdmissions(ctx context.Context, infos []VersionInfo) error {
	at := map[string][]int{}
	for i, info := range infos {
		at[info.Hash] = append(at[info.Hash], i)
	}
	rows, err := r.opts.DB.SQL.QueryContext(ctx, "SELECT hash, request, admitted, gate FROM admissions WHERE hash IN (SELECT value FROM json_each(?))",
		string(encode(slices.Collect(maps.Keys(at)))))
	if err != nil {
		return fmt.Errorf("read the admissions: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var hash, request, text string
		var gate int
		if err := rows.Scan(&hash, &request, &text, &gate); err != nil {
			return fmt.Errorf("read the admissions: %w", err)
		}
		var admitted time.Time
		if gate >= gateVersion {
			admitted, _ = time.Parse(time.RFC3339, text) // ours; a zero time is no harm
		}
		for _, i := range at[hash] {
			infos[i].Request, infos[i].Admitted = request, admitted
		}
	}
	return rows.Err()
}
