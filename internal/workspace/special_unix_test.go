//go:build unix

package workspace

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A pipe that nobody writes to would hold up whoever opens it.
func TestSpecialFilesAreNeverOpened(t *testing.T) {
	w := open(t, t.TempDir())
	if err := syscall.Mkfifo(filepath.Join(w.Path(), "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("pipe", filepath.Join(w.Path(), "to-pipe")); err != nil {
		t.Fatal(err)
	}
	made := []string{"pipe", "to-pipe", "pipe/x"}
	t.Chdir(w.Path()) // the name of a socket has to be short
	if listener, err := net.Listen("unix", "socket"); err == nil {
		defer listener.Close()
		made = append(made, "socket")
	}
	for _, path := range made {
		if _, err := w.ReadText(path); !errors.Is(err, ErrPath) {
			t.Errorf("%s: %v", path, err)
		}
		if _, err := w.WriteText(path, "x", ""); !errors.Is(err, ErrPath) {
			t.Errorf("%s: %v", path, err)
		}
		if _, err := w.List(path); !errors.Is(err, ErrPath) {
			t.Errorf("%s: %v", path, err)
		}
	}
	folder, err := w.List("")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range folder.Entries {
		if want := map[string]Kind{"pipe": KindOther, "socket": KindOther, "to-pipe": KindLink}[e.Name]; e.Kind != want || e.Kind == KindOther && e.ReadOnly == "" {
			t.Errorf("%+v", e)
		}
	}
}
