package store

import (
	"os"
	"strings"
)

// suspect is the suffix of a file beside the database which asks the next
// opening for a full check.
const suspect = ".check"

// Noted returns err, in words when it is one of the disk. When it says that the file itself is damaged, the next
// opening checks all of it, however large it is, and sets it aside if need be;
// the error then says so.
func (db *DB) Noted(err error) error {
	if db.path == Memory || !damaged(err) {
		return explained(err, db.path)
	}
	if os.WriteFile(db.path+suspect, nil, 0o600) != nil {
		return err
	}
	return &damageError{err}
}

type damageError struct{ err error }

func (e *damageError) Error() string {
	return "the database is damaged (" + strings.TrimSuffix(e.err.Error(), ".") + "); the next start sets it aside and begins a new one"
}

func (e *damageError) Unwrap() error { return e.err }
