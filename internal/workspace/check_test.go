package workspace

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// What cannot be written or created is told, and no check leaves anything.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	closed := filepath.Join(dir, "closed")
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(closed, 0o555); err != nil {
		t.Fatal(err)
	}
	canBeClosed := os.Geteuid() != 0 && runtime.GOOS != "windows"
	for path, want := range map[string]string{
		dir:                               "",
		filepath.Join(dir, "new", "one"):  "",
		filepath.Join(dir, "file"):        "is no folder",
		filepath.Join(dir, "file", "one"): "file",
		closed:                            "cannot be written: permission denied; choose another folder",
		filepath.Join(closed, "a", "b"):   "cannot be created in " + closed + ": permission denied; choose another folder",
	} {
		if strings.HasPrefix(path, closed) && !canBeClosed {
			continue
		}
		err := Check(path)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), ".probe")) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("%v %v", left, err)
	}
}
