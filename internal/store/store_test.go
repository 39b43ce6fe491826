package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/tendril-agent/tendril/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var steps = []string{"CREATE TABLE things (name TEXT)", "ALTER TABLE things ADD COLUMN size INTEGER"}

func open(t *testing.T, path string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestOpen_PrivateFileInPrivateFolder(t *testing.T) {
	for _, name := range []string{"plain", "a b", "100% 😍 #1?", "it's \"q\"", "a,b&c=d;e"} {
		if runtime.GOOS == "windows" && strings.ContainsAny(name, `"?`) {
			continue
		}
		dir := filepath.Join(t.TempDir(), name)
		path := filepath.Join(dir, "tendril.db")
		db := open(t, path)
		if err := db.Migrate(t.Context(), "x", steps); err != nil {
			t.Fatal(err)
		}
		for p, want := range map[string]os.FileMode{dir: 0o700, path: 0o600, path + "-wal": 0o600} {
			info, err := os.Stat(p)
			if err != nil {
				t.Fatalf("%q: %v", name, err)
			}
			if runtime.GOOS != "windows" && info.Mode().Perm() != want {
				t.Errorf("%s has mode %v, want %v", p, info.Mode().Perm(), want)
			}
		}
	}
}

func TestOpen_NarrowsAnExistingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tendril.db")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	open(t, path)
	if info, _ := os.Stat(path); runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode().Perm())
	}
}

func TestOpen_Pragmas(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "tendril.db"))
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "1", "busy_timeout": "10000", "foreign_keys": "1"} {
		var got string
		if err := db.SQL.QueryRow("PRAGMA " + pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s = %q, %v; want %q", pragma, got, err, want)
		}
	}
}

func TestOpen_SetsADamagedFileAside(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good.db")
	db := open(t, good)
	if err := db.Migrate(t.Context(), "x", steps); err != nil {
		t.Fatal(err)
	}
	for i := range 2000 {
		if _, err := db.SQL.Exec("INSERT INTO things VALUES (?, ?)", strings.Repeat("n", 50), i); err != nil {
			t.Fatal(err)
		}
	}
	db.Close()
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	smashed := append([]byte(nil), whole...)
	for i := 4096; i < len(smashed); i++ {
		smashed[i] = byte(i * 7)
	}
	for name, content := range map[string][]byte{
		"text":        []byte("this is not a database, whatever its name says"),
		"NUL":         make([]byte, 8192),
		"overwritten": smashed,
		"truncated":   whole[:len(whole)/2],
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "tendril.db")
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			db := open(t, path)
			if db.Notice() == "" {
				t.Error("no notice")
			}
			if err := db.Migrate(t.Context(), "x", steps); err != nil {
				t.Fatal(err)
			}
			aside, _ := filepath.Glob(path + ".damaged-*Z")
			if len(aside) != 1 {
				t.Fatalf("set aside: %v", aside)
			}
			if kept, _ := os.ReadFile(aside[0]); string(kept) != string(content) {
				t.Error("the damaged file was not kept as it was")
			}
		})
	}
}

func TestOpen_UnreachableIsNotDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tendril.db")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(t.Context(), path); err == nil {
		t.Fatal("a folder was opened as a database")
	}
	if found, _ := filepath.Glob(path + ".damaged-*"); len(found) > 0 {
		t.Errorf("set aside: %v", found)
	}
}

func TestMigrate_StepsAreTakenOnceAndInOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tendril.db")
	db := open(t, path)
	for n := range len(steps) + 1 {
		for range 2 {
			if err := db.Migrate(t.Context(), "x", steps[:n]); err != nil {
				t.Fatalf("%d steps: %v", n, err)
			}
		}
	}
	if _, err := db.SQL.Exec("INSERT INTO things (name, size) VALUES ('a', 1)"); err != nil {
		t.Error(err)
	}
	if err := db.Migrate(t.Context(), "x", steps[:1]); !errors.Is(err, store.ErrNewer) {
		t.Errorf("older program: %v", err)
	}
}

func TestMigrate_AFailedStepLeavesNothing(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "tendril.db"))
	if err := db.Migrate(t.Context(), "x", append(steps[:1:1], "CREATE NONSENSE")); err == nil {
		t.Fatal("no error")
	}
	if err := db.Migrate(t.Context(), "x", steps); err != nil {
		t.Errorf("after a failed migration: %v", err)
	}
}

func TestOpen_RefusesANewerLayout(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tendril.db")
	db := open(t, path)
	if _, err := db.SQL.Exec("PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	db.Close()
	if _, err := store.Open(t.Context(), path); !errors.Is(err, store.ErrNewer) {
		t.Errorf("got %v", err)
	}
}

func TestMemory(t *testing.T) {
	db := open(t, store.Memory)
	if err := db.Migrate(t.Context(), "x", steps); err != nil {
		t.Fatal(err)
	}
	if _, err := db.SQL.Exec("INSERT INTO things (name, size) VALUES ('a', 1)"); err != nil {
		t.Error(err)
	}
}

// Several openers of a file that is not there yet, each with its own handle,
// as processes have them.
func TestOpen_ManyAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tendril.db")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			db, err := store.Open(context.Background(), path)
			if err != nil {
				t.Error(err)
				return
			}
			defer db.Close()
			if err := db.Migrate(context.Background(), "x", steps); err != nil {
				t.Error(err)
				return
			}
			for n := range 20 {
				err := db.Write(context.Background(), func(tx *sql.Tx) error {
					var count int
					if err := tx.QueryRow("SELECT count(*) FROM things").Scan(&count); err != nil {
						return err
					}
					_, err := tx.Exec("INSERT INTO things VALUES (?, ?)", fmt.Sprint(i, "-", n), count)
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	var distinct int
	if err := open(t, path).SQL.QueryRow("SELECT count(DISTINCT size) FROM things").Scan(&distinct); err != nil || distinct != 160 {
		t.Errorf("%d distinct counts, %v; want 160", distinct, err)
	}
}
