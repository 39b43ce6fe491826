package store_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tendril-agent/tendril/internal/store"
)

func TestOpenReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tendril.db")
	if _, err := store.OpenReadOnly(t.Context(), path); err == nil {
		t.Fatal("there is none")
	}
	writer := open(t, path)
	if err := writer.Migrate(t.Context(), "x", steps); err != nil {
		t.Fatal(err)
	}
	insert := func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), "INSERT INTO things (name) VALUES ('a')")
		return err
	}
	if err := writer.Write(t.Context(), insert); err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		before, _ := os.ReadDir(filepath.Dir(path))
		db, err := store.OpenReadOnly(t.Context(), path)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		defer db.Close()
		if err := db.Migrate(t.Context(), "x", steps); err != nil {
			t.Errorf("%s: nothing is to be migrated: %v", when, err)
		}
		var n int
		if err := db.SQL.QueryRowContext(t.Context(), "SELECT count(*) FROM things").Scan(&n); err != nil || n != 1 {
			t.Errorf("%s: %d rows, %v", when, n, err)
		}
		if err := db.Write(t.Context(), insert); err == nil || !strings.Contains(err.Error(), path+" is read-only; to change something") {
			t.Errorf("%s: %v", when, err)
		}
		if after, _ := os.ReadDir(filepath.Dir(path)); len(after) != len(before) {
			t.Errorf("%s: %v became %v", when, before, after)
		}
	}
	check("while another program has it open")
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	check("alone")
	if err := os.Chmod(filepath.Dir(path), 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Dir(path), 0o700) // else it cannot be removed
	check("in a folder that cannot be written")
}

// SQLite's codes are told in words, once, with what to do.
func TestWrite_FullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tendril.db")
	db := open(t, path)
	if err := db.Migrate(t.Context(), "x", steps); err != nil {
		t.Fatal(err)
	}
	err := db.Write(t.Context(), func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(t.Context(), "PRAGMA max_page_count = 1"); err != nil { // as full as a disk can be
			return err
		}
		_, err := tx.ExecContext(t.Context(), "INSERT INTO things (name) VALUES (zeroblob(1000000))")
		return err
	})
	want := "the database " + path + " cannot be written: the disk is full; make room, then try again"
	if err == nil || err.Error() != want || db.Noted(err).Error() != want {
		t.Errorf("%v", err)
	}
}
