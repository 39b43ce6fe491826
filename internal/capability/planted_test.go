//go:build unix

package capability

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// plants are what somebody may have put where the registry keeps its own: all
// hold, or lead to, the text "foreign".
var plants = map[string]func(path string) error{
	"link out":         func(path string) error { return os.Symlink("../../../outside", path) },
	"link in":          func(path string) error { return os.Symlink("../../notes.txt", path) },
	"link to nowhere":  func(path string) error { return os.Symlink("nowhere", path) },
	"link to itself":   func(path string) error { return os.Symlink(filepath.Base(path), path) },
	"pipe":             func(path string) error { return syscall.Mkfifo(path, 0o600) },
	"empty folder":     func(path string) error { return os.Mkdir(path, 0o755) },
	"file":             func(path string) error { return os.WriteFile(path, []byte("foreign"), 0o600) },
	"folder with file": folderWithFile,
}

func folderWithFile(path string) error {
	if err := os.Mkdir(path, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(path, "foreign"), []byte("foreign"), 0o600)
}

func planted(t *testing.T, name string, plant func(string) error) Options {
	t.Helper()
	opts := testOptions(t)
	register(t, openWith(t, opts), definition("x"), "one")
	for _, file := range []string{"ws/notes.txt", "outside"} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(opts.Workspace), file), []byte("foreign"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(opts.Workspace, name)
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if err := plant(path); err != nil {
		t.Fatal(err)
	}
	return opts
}

// What has the name of the scratch file or the journal is neither followed nor
// waited for; a folder with something in it is set aside.
func TestPlanted_ScratchAndJournal(t *testing.T) {
	for _, name := range []string{scratchPath, journalPath} {
		for kind, plant := range plants {
			t.Run(filepath.Base(name)+"/"+kind, func(t *testing.T) {
				opts := planted(t, name, plant)
				r := openWith(t, opts)
				if v := resolve(t, r, "x"); string(v.Source) != "one" {
					t.Errorf("%q runs", v.Source)
				}
				register(t, r, definition("x"), "two")
				if v := resolve(t, openWith(t, opts), "x"); string(v.Source) != "two" {
					t.Errorf("then %q runs", v.Source)
				}
				for _, file := range []string{"ws/notes.txt", "outside"} {
					if data, err := os.ReadFile(filepath.Join(filepath.Dir(opts.Workspace), file)); string(data) != "foreign" {
						t.Errorf("%s is %q, %v", file, data, err)
					}
				}
				told := r.Notices()
				aside, _ := filepath.Glob(filepath.Join(opts.Workspace, name+".unreadable-*/foreign"))
				if kind == "folder with file" && (len(aside) != 1 || !strings.Contains(told[len(told)-1].Message, filepath.Base(filepath.Dir(aside[0])))) {
					t.Errorf("set aside: %q, notices %q", aside, told)
				}
			})
		}
	}
}

// What stands in the way of the lock, of the versions or of one's versions is
// left alone and named; listing goes on.
func TestPlanted_LockAndFolders(t *testing.T) {
	for _, name := range []string{lockPath, versionsPath, versionsPath + "/x"} {
		for kind, plant := range plants {
			if strings.HasSuffix(kind, "file") && name == lockPath || strings.Contains(kind, "folder") && name != lockPath {
				continue // as it may be
			}
			t.Run(filepath.Base(name)+"/"+kind, func(t *testing.T) {
				opts := planted(t, name, plant)
				r := openWith(t, opts)
				if l := list(t, r, ""); l.Total != 1 {
					t.Errorf("%d are listed", l.Total)
				}
				_, err := r.Register(t.Context(), definition("x"), "two", Provenance{}, nil)
				if name == lockPath && kind == "folder with file" && err == nil {
					t.Error("registered without a lock")
				}
				if err != nil && !strings.Contains(err.Error(), "tools/.versions") {
					t.Errorf("registering: %v", err)
				}
				for _, file := range []string{"ws/notes.txt", "outside"} {
					if data, err := os.ReadFile(filepath.Join(filepath.Dir(opts.Workspace), file)); string(data) != "foreign" {
						t.Errorf("%s is %q, %v", file, data, err)
					}
				}
			})
		}
	}
}

// A journal that came from elsewhere, by git or by somebody, undoes nothing of
// the history.
func TestPlanted_JournalOfAnOldVersion(t *testing.T) {
	opts := testOptions(t)
	r := openWith(t, opts)
	old := register(t, r, definition("x"), "one")
	register(t, r, definition("x"), "two")
	writeTool(t, opts, ".versions/.journal", string(encode(journal{Name: "x", versionRef: versionRef{old.Version, old.Hash}})))
	r = openWith(t, opts)
	if !keptSomewhere(r, "one") || r.interrupted() {
		t.Error("the old version is gone, or the journal is not")
	}
	if v := resolve(t, r, "x"); string(v.Source) != "two" || readTool(t, opts, "x.ts") != "two" {
		t.Errorf("%q runs", v.Source)
	}
}
