package workspace

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

func open(t *testing.T, path string) *Workspace {
	t.Helper()
	w, warnings, err := Open(path)
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestOpen_CreatesAndLeavesAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "100% 😍 #1?", `it's "q"`)
	for range 2 {
		w := open(t, path)
		if w.Path() != path {
			t.Errorf("path %q", w.Path())
		}
	}
	if got := names(t, path); len(got) > 0 {
		t.Errorf("created %q", got)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestOpen_Refuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", "relative", file, filepath.Join(file, "below"), t.TempDir() + "/a\x00b"} {
		if _, _, err := Open(path); err == nil || !strings.Contains(err.Error(), "workspace") {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// readOnly is a folder that nobody can write, root included.
func readOnly(t *testing.T) string {
	t.Helper()
	const path = "/proc/sys/kernel"
	if _, err := os.Stat(path); err != nil {
		t.Skip("no read-only folder here")
	}
	return path
}

func TestOpen_ReadOnlyIsAWarning(t *testing.T) {
	w, warnings, err := Open(readOnly(t))
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "cannot be written") || strings.Contains(warnings[0], ".tmp") {
		t.Fatal(err, warnings)
	}
	defer w.Close()
	if err := w.WriteDisplayCopy("You are Tendril."); err == nil {
		t.Error("no error")
	}
}

func TestWriteDisplayCopy(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	for name, prepare := range map[string]func(path string) error{
		"new":           func(string) error { return nil },
		"same":          func(path string) error { return os.WriteFile(path, []byte("You are Tendril."), 0o600) },
		"same size":     func(path string) error { return os.WriteFile(path, []byte("You are Tendril!"), 0o600) },
		"older":         func(path string) error { return os.WriteFile(path, []byte("You are Tendril, older"), 0o400) },
		"link outside":  func(path string) error { return os.Symlink(outside, path) },
		"dangling link": func(path string) error { return os.Symlink(outside+"-none", path) },
		"link to self":  func(path string) error { return os.Symlink(path, path) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
				t.Fatal(err)
			}
			w := open(t, t.TempDir())
			path := filepath.Join(w.Path(), displayCopy)
			if err := prepare(path); err != nil {
				t.Skip(err)
			}
			if err := w.WriteDisplayCopy("You are Tendril."); err != nil {
				t.Fatal(err)
			}
			info, err := os.Lstat(path)
			if err != nil || !info.Mode().IsRegular() {
				t.Errorf("%v, %v", info.Mode(), err)
			}
			if data, err := os.ReadFile(path); err != nil || string(data) != "You are Tendril." {
				t.Errorf("%q, %v", data, err)
			}
			if data, err := os.ReadFile(outside); err != nil || string(data) != "secret" {
				t.Errorf("the link was followed: %q, %v", data, err)
			}
			if got := names(t, w.Path()); len(got) != 1 {
				t.Errorf("left behind %q", got)
			}
		})
	}
}

func TestWriteDisplayCopy_OverAFolder(t *testing.T) {
	w := open(t, t.TempDir())
	if err := os.MkdirAll(filepath.Join(w.Path(), displayCopy, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteDisplayCopy("You are Tendril."); err == nil {
		t.Error("no error")
	}
	if got := names(t, w.Path()); len(got) != 1 {
		t.Errorf("left behind %q", got)
	}
}

func TestWriteDisplayCopy_FolderGone(t *testing.T) {
	w := open(t, filepath.Join(t.TempDir(), "w"))
	if err := os.Remove(w.Path()); err != nil {
		t.Skip(err)
	}
	if err := w.WriteDisplayCopy("You are Tendril."); err == nil {
		t.Error("no error")
	}
}

func TestWriteDisplayCopy_AtOnce(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			w := open(t, dir)
			if err := w.WriteDisplayCopy("You are Tendril" + strings.Repeat("x", 1000+i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := names(t, dir); len(got) != 1 || got[0] != displayCopy {
		t.Errorf("left behind %q", got)
	}
}

func TestWriteDisplayCopy_LeavesAFileOfTheUserAlone(t *testing.T) {
	for content, replaced := range map[string]bool{
		"my own notes\n": false, "You": false, "": true, "You are Tendril. You build tools.\n": true,
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "system-prompt.txt")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		w, _, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		err = w.WriteDisplayCopy("You are Tendril, new")
		got, _ := os.ReadFile(file)
		if (err == nil) != replaced || (string(got) != content) != replaced {
			t.Errorf("%q: %v, now %q", content, err, got)
		}
		w.Close()
	}
}
