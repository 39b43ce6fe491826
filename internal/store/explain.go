package store

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// failure is an error of SQLite in words that say what to do.
type failure struct {
	text string
	err  error
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.err }

// explained returns err in words, when it is one of the disk or of permissions.
// They say all that what wraps the error inside of this package would.
func explained(err error, path string) error {
	var e *sqlite.Error
	var told *failure
	if !errors.As(err, &e) || errors.As(err, &told) {
		return err
	}
	if text := words(e.Code(), path); text != "" {
		return &failure{text, err}
	}
	return err
}

// words are what an extended result code of SQLite means for a person; "" for
// one that is not about the surroundings. The codes are those of
// https://www.sqlite.org/rescode.html.
func words(code int, path string) string {
	switch code {
	case sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC, sqlite3.SQLITE_IOERR_TRUNCATE,
		sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP, sqlite3.SQLITE_IOERR_SHMOPEN:
		return fmt.Sprintf("the database %s cannot be written: the disk is full, or fails (SQLite's code %d); make room, then try again", path, code)
	}
	switch code & 0xff {
	case sqlite3.SQLITE_FULL:
		return fmt.Sprintf("the database %s cannot be written: the disk is full; make room, then try again", path)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return fmt.Sprintf("the database %s is read-only; to change something, make it and its folder writable, or set TENDRIL_HOME to another folder", path)
	case sqlite3.SQLITE_CANTOPEN:
		return fmt.Sprintf("the database %s cannot be opened; see that you may read and write it and its folder, and that the disk is not full", path)
	case sqlite3.SQLITE_IOERR:
		return fmt.Sprintf("the database %s cannot be read or written: the disk fails, or is gone (SQLite's code %d); check it, then try again", path, code)
	case sqlite3.SQLITE_BUSY:
		return fmt.Sprintf("the database %s is locked by another program; end that, or try again", path)
	}
	return ""
}
