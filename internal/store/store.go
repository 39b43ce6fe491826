// Package store opens the SQLite database of a user. It knows nothing of what
// is in it: every package that keeps something brings its own migrations.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Memory is the path of a database that lasts as long as the process: the
// choice where no folder can be written.
const Memory = ":memory:"

// checkedBytes is the size up to which a database is read whole when it is
// opened, to find damage before it is met in the middle of a turn. Beyond it
// only its header, schema and versions are read.
const checkedBytes = 4 << 20

// DB is an open database. It is safe for concurrent use, and the same file may
// be open in several processes.
type DB struct {
	// SQL takes statements. Transactions are immediate: they hold the write
	// lock from their first statement on.
	SQL    *sql.DB
	path   string
	notice string
}

// Open opens the database at path, or makes it: mode 0600, in a folder that is
// created with mode 0700. A file that is damaged is renamed to
// <path>.damaged-<UTC time> and a new database takes its place; [DB.Notice]
// then says so. A database written by a newer program is refused with
// [ErrNewer].
func Open(ctx context.Context, path string) (*DB, error) {
	if path == Memory {
		return openMemory(ctx)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("create the folder of the database %s: %w", path, err)
	}
	// One process at a time: the first one makes the file and switches it to
	// WAL, and only one may set a damaged one aside.
	unlock, err := lockedfile.MutexAt(path + ".lock").Lock()
	if err != nil {
		return nil, fmt.Errorf("lock the database %s: %w", path, err)
	}
	defer unlock()
	db, err := openFile(ctx, path)
	if !damaged(err) {
		return db, explained(err, path)
	}
	aside, err := setAside(path, time.Now())
	if err != nil {
		return nil, err
	}
	_ = os.Remove(path + suspect) // else the next opening checks once more
	if db, err = openFile(ctx, path); err != nil {
		return nil, explained(err, path)
	}
	db.notice = fmt.Sprintf("the database %s was damaged; it was kept as %s and a new one was started", path, filepath.Base(aside))
	return db, nil
}

// OpenReadOnly opens the database at path, which must be there, to read it only:
// for a folder that cannot be written. Nothing beside it is created, and what
// is damaged stays where it is.
func OpenReadOnly(ctx context.Context, path string) (*DB, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("the database %s is not there", path))
	}
	mode := url.Values{"mode": {"ro"}}
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() == 0 {
		mode.Set("immutable", "1") // without a write-ahead log SQLite would make one
	}
	conn, err := sql.Open("sqlite", dsn(path, mode, "busy_timeout(10000)", "foreign_keys(1)"))
	if err != nil {
		return nil, fmt.Errorf("open the database %s: %w", path, err)
	}
	db, err := ready(ctx, conn, path)
	return db, explained(err, path)
}

// Notice is what the user must be told about the opening, or "".
func (db *DB) Notice() string { return db.notice }

// Close closes the database.
func (db *DB) Close() error { return db.SQL.Close() }

func openMemory(ctx context.Context) (*DB, error) {
	conn, err := sql.Open("sqlite", "file::memory:?_txlock=immediate&_pragma=foreign_keys(1)")
	if err != nil {
		return nil, fmt.Errorf("open a database in memory: %w", err)
	}
	conn.SetMaxOpenConns(1) // each connection would be a database of its own
	conn.SetConnMaxLifetime(0)
	return ready(ctx, conn, Memory)
}

func openFile(ctx context.Context, path string) (*DB, error) {
	if err := makePrivate(path); err != nil {
		return nil, err
	}
	conn, err := sql.Open("sqlite", dsn(path, url.Values{}, "busy_timeout(10000)", "journal_mode(WAL)", "synchronous(NORMAL)", "foreign_keys(1)"))
	if err != nil {
		return nil, fmt.Errorf("open the database %s: %w", path, err)
	}
	if err := probe(ctx, conn, path); err != nil {
		conn.Close()
		return nil, fmt.Errorf("read the database %s: %w", path, err)
	}
	return ready(ctx, conn, path)
}

// ready prepares the table of versions that migrations use.
func ready(ctx context.Context, conn *sql.DB, path string) (*DB, error) {
	db := &DB{SQL: conn, path: path}
	if err := db.prepare(ctx); err != nil {
		conn.Close()
		return nil, fmt.Errorf("prepare the database %s: %w", path, err)
	}
	return db, nil
}

// makePrivate creates the file, or narrows its mode, before SQLite sees it: the
// write-ahead log takes its mode from it.
func makePrivate(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("the database %s is not a regular file", path)
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if err := f.Chmod(0o600); err != nil {
		return fmt.Errorf("make the database private: %w", err)
	}
	return nil
}

func dsn(path string, query url.Values, pragmas ...string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // C:/…
		path = "/" + path
	}
	query.Set("_txlock", "immediate")
	query["_pragma"] = pragmas
	u := url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}
	return u.String()
}

// probe reads enough of the database to know whether it is one.
func probe(ctx context.Context, conn *sql.DB, path string) error {
	var n int
	if err := conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&n); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() > checkedBytes && !exists(path+suspect) {
		return err
	}
	var verdict string
	if err := conn.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return err
	}
	if verdict != "ok" {
		return fmt.Errorf("%w: %s", errDamaged, verdict)
	}
	if err := os.Remove(path + suspect); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

var errDamaged = errors.New("the database is damaged")

// damaged reports whether err says that the file itself is broken, and not
// only out of reach.
func damaged(err error) bool {
	var e *sqlite.Error
	if errors.As(err, &e) {
		code := e.Code() & 0xff
		return code == sqlite3.SQLITE_CORRUPT || code == sqlite3.SQLITE_NOTADB
	}
	return errors.Is(err, errDamaged)
}

// setAside renames the database and what belongs to it, and returns the new
// path.
func setAside(path string, now time.Time) (string, error) {
	base := path + ".damaged-" + now.UTC().Format("20060102T150405Z")
	aside := base
	for n := 2; exists(aside); n++ {
		aside = fmt.Sprintf("%s-%d", base, n)
	}
	for _, suffix := range []string{"-wal", "-shm", ""} {
		err := os.Rename(path+suffix, aside+suffix)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("the database %s is damaged and cannot be set aside: %w", path, err)
		}
	}
	return aside, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
