package capability

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// readOnlyPlaces are what may be read-only, and where registering then goes well all
// the same: a file is replaced in its folder, whatever its own mode.
var readOnlyPlaces = map[string]bool{".": false, toolsPath: false, versionsPath: false, versionsPath + "/x": false, indexPath: true, lockPath: false}

// Where a place is read-only by permissions, listing and running go on, and
// registering is a clear error that leaves nothing behind.
func TestReadOnly_Permissions(t *testing.T) {
	if os.Getuid() == 0 && !again(t, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}) {
		return
	}
	for place, replaced := range readOnlyPlaces {
		lock := func(t *testing.T, opts Options) func() {
			var undo []func()
			// A folder is meant with all that is in it.
			err := filepath.WalkDir(filepath.Join(opts.Workspace, place), func(path string, d fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				info, err := d.Info()
				undo = append(undo, func() { _ = os.Chmod(path, info.Mode()) })
				return errors.Join(err, os.Chmod(path, info.Mode()&^0o222))
			})
			if err != nil {
				t.Error(err)
			}
			return func() {
				for _, f := range undo {
					f()
				}
			}
		}
		t.Run(place, func(t *testing.T) { testReadOnly(t, lock, replaced) })
	}
}

// So it is where a place is mounted read-only.
func TestReadOnly_Mounts(t *testing.T) {
	for who, user := range map[string]int{"root": 0, "ordinary user": ordinaryUser()} {
		t.Run(who, func(t *testing.T) {
			if !mounting(t, user) {
				return
			}
			for place := range readOnlyPlaces {
				lock := func(t *testing.T, opts Options) func() {
					path := filepath.Join(opts.Workspace, place)
					err := syscall.Mount(path, path, "", syscall.MS_BIND, "")
					if err == nil {
						err = syscall.Mount("", path, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
					}
					if err != nil {
						t.Skip("nothing can be mounted here:", err)
					}
					return func() { _ = syscall.Unmount(path, syscall.MNT_DETACH) }
				}
				t.Run(place, func(t *testing.T) { testReadOnly(t, lock, false) })
			}
		})
	}
}

func testReadOnly(t *testing.T, lock func(*testing.T, Options) (unlock func()), replaced bool) {
	opts := testOptions(t)
	r := openWith(t, opts)
	register(t, r, definition("x"), "one")
	register(t, r, definition("y"), "one")
	before := readTool(t, opts, "index.json")
	unlock := lock(t, opts)
	defer unlock()

	for when, db := range map[string]Options{"as before": opts, "a lost database": {DB: openDB(t, filepath.Join(t.TempDir(), "new.db"))}} {
		again := opts
		again.DB = db.DB
		r := openWith(t, again)
		if l := list(t, r, ""); l.Total != 2 || len(r.Notices()) > 0 {
			t.Errorf("%s: %d are listed, notices %v", when, l.Total, r.Notices())
		}
		if v := resolve(t, r, "x"); string(v.Source) != "one" || len(v.Notes) > 0 {
			t.Errorf("%s: %q runs, notes %q", when, v.Source, v.Notes)
		}
	}
	_, err := r.Register(t.Context(), definition("x"), "two", Provenance{}, nil)
	if replaced {
		if err != nil {
			t.Error(err)
		}
		return
	}
	if !errors.Is(err, ErrReadOnly) || !strings.Contains(err.Error(), "make it writable") && !strings.Contains(err.Error(), "mount the whole") || strings.Contains(err.Error(), "\n") {
		t.Errorf("registering: %v", err)
	}
	if got := readTool(t, opts, "index.json"); got != before {
		t.Errorf("the index was changed:\n%s", got)
	}
	if v := resolve(t, openWith(t, opts), "x"); string(v.Source) != "one" || len(v.Notes) > 0 {
		t.Errorf("afterwards %q runs, notes %q", v.Source, v.Notes)
	}
	unlock()
	r = openWith(t, opts)
	register(t, r, definition("x"), "two")
	if v := resolve(t, r, "x"); string(v.Source) != "two" || v.Version != "1.1.0" || len(v.Notes) > 0 {
		t.Errorf("in the end %+v", v)
	}
}
