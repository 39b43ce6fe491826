package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// small mounts a file system of 64 KiB.
func small(t *testing.T) *Workspace {
	t.Helper()
	path := t.TempDir()
	if err := syscall.Mount("tendril-test", path, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("nothing can be mounted here:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(path, syscall.MNT_DETACH) })
	return open(t, path)
}

func TestWriteText_DiskFull(t *testing.T) {
	w := small(t)
	first, err := w.WriteText("f", "first", "")
	if err != nil {
		t.Fatal(err)
	}
	for path, version := range map[string]string{"f": first, "new": ""} {
		_, err := w.WriteText(path, strings.Repeat("x", 100_000), version)
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "free some space") || strings.Contains(err.Error(), ".tmp") {
			t.Error(err)
		}
	}
	if data, _ := os.ReadFile(filepath.Join(w.Path(), "f")); string(data) != "first" {
		t.Errorf("%q", data)
	}
	if got := names(t, w.Path()); len(got) != 1 {
		t.Errorf("left behind %q", got)
	}
	if _, err := w.WriteText("f", "second", first); err != nil {
		t.Error(err)
	}
}

func TestWriteText_ReadOnlyDisk(t *testing.T) {
	w := small(t)
	first, err := w.WriteText("f", "first", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tendril-test", w.Path(), "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Skip(err)
	}
	for path, version := range map[string]string{"f": first, "new": ""} {
		if _, err := w.WriteText(path, "x", version); !errors.Is(err, ErrReadOnly) || strings.Contains(err.Error(), ".tmp") {
			t.Error(err)
		}
	}
	if file, err := w.ReadText("f"); err != nil || file.Text != "first" {
		t.Errorf("%+v, %v", file, err)
	}
}
