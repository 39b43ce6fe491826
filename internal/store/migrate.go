package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// ErrNewer means that a newer program has written the database.
var ErrNewer = errors.New("written by a newer version of this program; update it")

// layout is PRAGMA user_version: the layout of what this package itself keeps.
const layout = 1

// prepare makes the table that says how far each component has migrated.
func (db *DB) prepare(ctx context.Context) error {
	version, err := userVersion(ctx, db.SQL)
	if err != nil {
		return err
	}
	if version > layout {
		return fmt.Errorf("layout %d, this program knows %d: %w", version, layout, ErrNewer)
	}
	if version == layout {
		return nil
	}
	return db.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `
			CREATE TABLE IF NOT EXISTS migrations (component TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT;
			PRAGMA user_version = 1`)
		return err
	})
}

func userVersion(ctx context.Context, conn *sql.DB) (int, error) {
	var version int
	err := conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	return version, err
}

// Migrate brings the tables of component to the state after all steps. A step
// is one or more SQL statements; steps are only ever appended to. Those not yet
// taken run in order, in one transaction. More steps taken than given is
// [ErrNewer].
func (db *DB) Migrate(ctx context.Context, component string, steps []string) error {
	taken, err := stepsTaken(ctx, db.SQL, component)
	if err == nil && taken == len(steps) {
		return nil
	}
	err = db.Write(ctx, func(tx *sql.Tx) error { return migrate(ctx, tx, component, steps) })
	if err != nil {
		return fmt.Errorf("migrate the tables of %s: %w", component, err)
	}
	return nil
}

type queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func stepsTaken(ctx context.Context, q queryer, component string) (int, error) {
	var taken int
	err := q.QueryRowContext(ctx, "SELECT version FROM migrations WHERE component = ?", component).Scan(&taken)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return taken, err
}

func migrate(ctx context.Context, tx *sql.Tx, component string, steps []string) error {
	taken, err := stepsTaken(ctx, tx, component)
	if err != nil {
		return err
	}
	if taken > len(steps) {
		return fmt.Errorf("version %d, this program knows %d: %w", taken, len(steps), ErrNewer)
	}
	for i, step := range steps[taken:] {
		if _, err := tx.ExecContext(ctx, step); err != nil {
			return fmt.Errorf("step %d: %w", taken+i+1, err)
		}
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO migrations (component, version) VALUES (?, ?)
		ON CONFLICT (component) DO UPDATE SET version = excluded.version`, component, len(steps))
	return err
}

// Write runs f in one transaction, which is kept when f returns nil.
func (db *DB) Write(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := db.SQL.BeginTx(ctx, nil)
	if err != nil {
		return explained(err, db.path)
	}
	defer tx.Rollback() // no effect after Commit
	if err := f(tx); err != nil {
		return explained(err, db.path)
	}
	return explained(tx.Commit(), db.path)
}
