package capability

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// migrations are the tables of this package. Times are RFC 3339 in UTC. A row
// of admissions says that this machine's gate has let a version pass; nothing
// runs without one. approvals holds what a person allowed for good; its row
// with the name ” is for a whole workspace. revocations has the capabilities
// whose network a person took away: they ask, whatever policy says.
var migrations = []string{`
	CREATE TABLE admissions (
		hash TEXT PRIMARY KEY, name TEXT NOT NULL, version TEXT NOT NULL,
		gate INTEGER NOT NULL, lenient INTEGER NOT NULL,
		evidence TEXT NOT NULL, request TEXT NOT NULL, admitted TEXT NOT NULL
	) STRICT;
	CREATE TABLE approvals (
		workspace TEXT NOT NULL, name TEXT NOT NULL, host TEXT NOT NULL, approved TEXT NOT NULL,
		PRIMARY KEY (workspace, name, host)
	) STRICT;
	CREATE TABLE runs (
		id INTEGER PRIMARY KEY, workspace TEXT NOT NULL, name TEXT NOT NULL, version TEXT NOT NULL, hash TEXT NOT NULL,
		session TEXT NOT NULL, started TEXT NOT NULL, duration_ms INTEGER NOT NULL,
		outcome TEXT NOT NULL, output_bytes INTEGER NOT NULL
	) STRICT;
	CREATE INDEX runs_by_name ON runs (workspace, name);
	CREATE TABLE usage (
		workspace TEXT NOT NULL, name TEXT NOT NULL, hash TEXT NOT NULL,
		runs INTEGER NOT NULL, succeeded INTEGER NOT NULL, last TEXT NOT NULL,
		PRIMARY KEY (workspace, name, hash)
	) STRICT`, `
	CREATE TABLE revocations (
		workspace TEXT NOT NULL, name TEXT NOT NULL, revoked TEXT NOT NULL,
		PRIMARY KEY (workspace, name)
	) STRICT`,
}

// Run is one execution, for the ledger.
type Run struct {
	Name        string
	Version     string
	Hash        string
	Session     string
	Started     time.Time
	Duration    time.Duration
	Outcome     string // "ok" is a success
	OutputBytes int64
}

// Record keeps a run. The first success of a version proves it.
func (r *Registry) Record(ctx context.Context, run Run) error {
	succeeded := 0
	if run.Outcome == "ok" {
		succeeded = 1
	}
	started := run.Started.UTC().Format(time.RFC3339Nano)
	err := r.opts.DB.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO runs
			(workspace, name, version, hash, session, started, duration_ms, outcome, output_bytes) VALUES (?,?,?,?,?,?,?,?,?)`,
			r.workspace, run.Name, run.Version, run.Hash, run.Session, started, run.Duration.Milliseconds(), run.Outcome, run.OutputBytes)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO usage (workspace, name, hash, runs, succeeded, last) VALUES (?,?,?,1,?,?)
			ON CONFLICT (workspace, name, hash) DO UPDATE SET
			runs = runs + 1, succeeded = succeeded + excluded.succeeded, last = max(last, excluded.last)`,
			r.workspace, run.Name, run.Hash, succeeded, started)
		return err
	})
	if err != nil {
		return fmt.Errorf("record the run of %s: %w", run.Name, err)
	}
	return nil
}

// Usage sums up the runs of a capability.
type Usage struct {
	Runs      int    `json:"runs"`
	Succeeded int    `json:"succeeded"`
	Last      string `json:"last,omitempty"` // RFC 3339
}

// track is the usage of all capabilities of a workspace.
type track map[string]map[string]Usage // by name, by hash

// has reports whether a version has run with success; hash "" means any.
func (t track) has(name, hash string) bool {
	if hash != "" {
		return t[name][hash].Succeeded > 0
	}
	for _, u := range t[name] {
		if u.Succeeded > 0 {
			return true
		}
	}
	return false
}

func (t track) sum(name string) Usage {
	var sum Usage
	for _, u := range t[name] {
		sum.Runs += u.Runs
		sum.Succeeded += u.Succeeded
		sum.Last = max(sum.Last, u.Last)
	}
	return sum
}

// usage reads the usage of these capabilities of this workspace; without names
// that of all.
func (r *Registry) usage(ctx context.Context, names ...string) (track, error) {
	const all = "SELECT name, hash, runs, succeeded, last FROM usage WHERE workspace = ?"
	query, args := all, []any{r.workspace}
	if len(names) > 0 {
		query, args = all+" AND name IN (SELECT value FROM json_each(?))", append(args, string(encode(names)))
	}
	rows, err := r.opts.DB.SQL.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	defer rows.Close()
	t := track{}
	for rows.Next() {
		var name, hash string
		var u Usage
		if err := rows.Scan(&name, &hash, &u.Runs, &u.Succeeded, &u.Last); err != nil {
			return nil, fmt.Errorf("read the ledger: %w", err)
		}
		if t[name] == nil {
			t[name] = map[string]Usage{}
		}
		t[name][hash] = u
	}
	return t, rows.Err()
}

// leastUsed returns up to n of names, those with the fewest and oldest runs.
func (r *Registry) leastUsed(ctx context.Context, names []string, n int) ([]string, error) {
	t, err := r.usage(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(names, func(a, b string) int {
		ua, ub := t.sum(a), t.sum(b)
		if ua.Runs != ub.Runs {
			return ua.Runs - ub.Runs
		}
		if ua.Last < ub.Last {
			return -1
		}
		return 1
	})
	return names[:min(n, len(names))], nil
}

// recordAdmission says that this machine's gate has let v pass. A strict
// admission is never replaced by a lenient one.
func (r *Registry) recordAdmission(ctx context.Context, v *version, evidence Evidence, request string) error {
	_, err := r.opts.DB.SQL.ExecContext(ctx, `INSERT INTO admissions
		(hash, name, version, gate, lenient, evidence, request, admitted) VALUES (?,?,?,?,?,?,?,?)
		ON CONFLICT (hash) DO UPDATE SET gate = excluded.gate, lenient = min(lenient, excluded.lenient),
		evidence = excluded.evidence, admitted = excluded.admitted`,
		v.Hash, v.Name, v.Version, gateVersion, v.Lenient, string(encode(evidence)), request, r.opts.Now().UTC().Format(time.RFC3339))
	if err != nil {
		return fmt.Errorf("record the admission of %s %s: %w", v.Name, v.Version, r.opts.DB.Noted(err))
	}
	return nil
}

// admitted reads the evidence of a version's admission on this machine; nil
// when there is none that counts.
func (r *Registry) admitted(ctx context.Context, v *version) (*Evidence, error) {
	var gate int
	var lenient bool
	var text string
	err := r.opts.DB.SQL.QueryRowContext(ctx, "SELECT gate, lenient, evidence FROM admissions WHERE hash = ?", v.Hash).
		Scan(&gate, &lenient, &text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the admission of %s %s: %w", v.Name, v.Version, err)
	}
	var evidence Evidence
	if gate < gateVersion || (lenient && !v.Lenient) || json.Unmarshal([]byte(text), &evidence) != nil {
		return nil, nil
	}
	return &evidence, nil
}

// overridden reports whether a person has let a version pass despite what its
// type check said, on this machine, under this or older rules of the gate.
func (r *Registry) overridden(ctx context.Context, hash string) (bool, error) {
	var text string
	err := r.opts.DB.SQL.QueryRowContext(ctx, "SELECT evidence FROM admissions WHERE hash = ?", hash).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the admission of %s: %w", short(hash), err)
	}
	var evidence Evidence
	return json.Unmarshal([]byte(text), &evidence) == nil && evidence.Overridden, nil
}

// withdraw takes a version's admission back: it passes the gate before it runs
// again.
func (r *Registry) withdraw(ctx context.Context, hash string) error {
	if _, err := r.opts.DB.SQL.ExecContext(ctx, "UPDATE admissions SET gate = 0 WHERE hash = ?", hash); err != nil {
		return fmt.Errorf("withdraw the admission of %s: %w", short(hash), err)
	}
	return nil
}

// anyHost is the host of an approval for a whole workspace.
const anyHost = "*"

func (r *Registry) recordApproval(ctx context.Context, name string, hosts []string) error {
	err := r.opts.DB.Write(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "DELETE FROM revocations WHERE workspace = ? AND name = ?", r.workspace, name); err != nil {
			return err
		}
		for _, host := range hosts {
			_, err := tx.ExecContext(ctx, "INSERT OR IGNORE INTO approvals (workspace, name, host, approved) VALUES (?,?,?,?)",
				r.workspace, name, host, r.opts.Now().UTC().Format(time.RFC3339))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("record the approval of %s: %w", name, err)
	}
	return nil
}

// approved returns the hosts that a person has allowed for a capability.
func (r *Registry) approved(ctx context.Context, name string) ([]string, error) {
	rows, err := r.opts.DB.SQL.QueryContext(ctx, "SELECT host FROM approvals WHERE workspace = ? AND name = ?", r.workspace, name)
	if err != nil {
		return nil, fmt.Errorf("read the approvals of %s: %w", name, err)
	}
	defer rows.Close()
	var hosts []string
	for rows.Next() {
		var host string
		if err := rows.Scan(&host); err != nil {
			return nil, fmt.Errorf("read the approvals of %s: %w", name, err)
		}
		hosts = append(hosts, host)
	}
	return hosts, rows.Err()
}
