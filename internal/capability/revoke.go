package capability

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/tendril-agent/tendril/internal/sandbox"
)

// NetworkState says why a capability may, or may not, use the network.
type NetworkState string

// The states of a capability's network.
const (
	NetworkNone     NetworkState = "none"     // it declares no hosts
	NetworkGranted  NetworkState = "granted"  // by policy
	NetworkApproved NetworkState = "approved" // by a person
	NetworkWaits    NetworkState = "waits"    // for a person
	NetworkRevoked  NetworkState = "revoked"  // by a person: it waits for one
	NetworkRefused  NetworkState = "refused"  // by policy
)

// Permission is what one capability may do.
type Permission struct {
	Name    string       `json:"name"`
	Version string       `json:"version"`
	Grants  Grants       `json:"grants"`
	Network NetworkState `json:"network"`
	// Approved are the hosts that a person has allowed for good.
	Approved []string `json:"approved"`
	// Secrets are those that a person has allowed for good, each with the hosts
	// that it may be used with.
	Secrets []string `json:"secrets"`
}

// Permissions lists what each capability may do, by name. It asks nobody and
// runs no gate.
func (r *Registry) Permissions(ctx context.Context) ([]Permission, error) {
	ix, err := r.load(ctx)
	if err != nil {
		return nil, err
	}
	approved, revoked, err := r.decided(ctx)
	if err != nil {
		return nil, err
	}
	list := []Permission{}
	for _, e := range ix.entries {
		list = append(list, r.permission(e, approved[e.def.Name], revoked[e.def.Name]))
	}
	slices.SortFunc(list, func(a, b Permission) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// decided reads the hosts that a person has allowed, and what was revoked, by
// capability.
func (r *Registry) decided(ctx context.Context) (approved map[string][]string, revoked map[string]bool, err error) {
	rows, err := r.opts.DB.SQL.QueryContext(ctx, `SELECT name, host, 0 FROM approvals WHERE workspace = ?1
		UNION ALL SELECT name, '', 1 FROM revocations WHERE workspace = ?1`, r.workspace)
	if err != nil {
		return nil, nil, fmt.Errorf("read the approvals: %w", err)
	}
	defer rows.Close()
	approved, revoked = map[string][]string{}, map[string]bool{}
	for rows.Next() {
		var name, host string
		var taken bool
		if err := rows.Scan(&name, &host, &taken); err != nil {
			return nil, nil, fmt.Errorf("read the approvals: %w", err)
		}
		if taken {
			revoked[name] = true
		} else {
			approved[name] = append(approved[name], host)
		}
	}
	return approved, revoked, rows.Err()
}

func (r *Registry) permission(e *entry, approved []string, revoked bool) Permission {
	declared := e.def.Permissions
	if v, err := r.active(e); err == nil { // else the entry is all that there is
		declared = v.Definition.Permissions
	}
	p := Permission{Name: e.def.Name, Version: e.version, Grants: grantsOf(declared), Secrets: approvedSecrets(approved)}
	hosts, _ := splitApprovals(approved)
	p.Approved = orEmpty(hosts)
	p.Network = r.networkState(p, revoked)
	return p
}

func (r *Registry) networkState(p Permission, revoked bool) NetworkState {
	switch {
	case len(p.Grants.Net) == 0:
		return NetworkNone
	case r.opts.Policy.check(p.Grants.Net) != nil:
		return NetworkRefused
	case revoked:
		return NetworkRevoked
	case len(uncovered(p.Approved, p.Grants.Net)) == 0:
		return NetworkApproved
	case r.opts.Policy.Network == NetworkAsk || slices.Contains(p.Grants.Net, sandbox.AnyHost):
		return NetworkWaits
	}
	return NetworkGranted
}

// Revoke takes the network and the secrets away from a capability until a person
// approves it again, whatever policy says, also for later versions. It returns what had been
// approved. The error matches [ErrNothingToDo] when it declares no hosts.
func (r *Registry) Revoke(ctx context.Context, name string) ([]string, error) {
	e, err := r.find(ctx, name)
	if err != nil {
		return nil, err
	}
	approved, err := r.approved(ctx, name)
	if err != nil {
		return nil, err
	}
	p := r.permission(e, approved, false)
	if len(approved) == 0 && p.Network == NetworkNone {
		return nil, nothingToDo(name + " has neither network nor secrets")
	}
	err = r.opts.DB.Write(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "DELETE FROM approvals WHERE workspace = ? AND name = ?", r.workspace, name); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO revocations (workspace, name, revoked) VALUES (?,?,?)",
			r.workspace, name, r.opts.Now().UTC().Format(time.RFC3339))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("revoke the network of %s: %w", name, err)
	}
	return append(p.Approved, p.Secrets...), nil
}

func (r *Registry) isRevoked(ctx context.Context, name string) (bool, error) {
	var n int
	row := r.opts.DB.SQL.QueryRowContext(ctx, "SELECT count(*) FROM revocations WHERE workspace = ? AND name = ?", r.workspace, name)
	if err := row.Scan(&n); err != nil {
		return false, fmt.Errorf("read the revocations of %s: %w", name, err)
	}
	return n > 0, nil
}

// RevokeWorkspace takes back what [Registry.ApproveWorkspace] allowed.
func (r *Registry) RevokeWorkspace(ctx context.Context) error {
	err := r.opts.DB.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM approvals WHERE workspace = ? AND name = ''", r.workspace)
		return err
	})
	if err != nil {
		return fmt.Errorf("revoke the network of the workspace: %w", err)
	}
	return nil
}
