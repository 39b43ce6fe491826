package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestProtected(t *testing.T) {
	ws := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(ws, ".env.staging"), nil, 0o600), os.WriteFile(filepath.Join(ws, ".ENV"), nil, 0o600), os.WriteFile(filepath.Join(ws, "env"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	read, write := Protected(ws)
	for name, want := range map[string][2]bool{
		".git": {true, true}, ".env": {true, true}, ".env.staging": {true, true}, ".ENV": {true, true}, "deno.json": {true, true},
		".npmrc": {true, true}, "package.json": {true, true}, "tools": {false, true}, ".envrc": {false, true}, ".mcp.json": {false, true}, "env": {false, false}, "data": {false, false},
	} {
		path := filepath.Join(ws, name)
		if got := [2]bool{slices.Contains(read, path), slices.Contains(write, path)}; got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

func TestWithin(t *testing.T) {
	for _, tt := range []struct {
		path, root string
		want       bool
	}{
		{"/a/b", "/a", true}, {"/a", "/a", true}, {"/ab", "/a", false}, {"/", "/a", false}, {"/a/..b", "/a", true}, {"/b", "/", true},
	} {
		if got := within(filepath.FromSlash(tt.path), filepath.FromSlash(tt.root)); got != tt.want {
			t.Errorf("%s in %s: %v", tt.path, tt.root, got)
		}
	}
}

func TestRealPath(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink(dir, filepath.Join(dir, "self")), os.Symlink("nowhere", filepath.Join(dir, "dead"))); err != nil {
		t.Skip("no links here")
	}
	if got, err := realPath(filepath.Join(dir, "self", "self", "new", "file")); err != nil || got != filepath.Join(dir, "new", "file") {
		t.Error(got, err)
	}
	for _, name := range []string{"dead", "dead/x"} {
		if got, err := realPath(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s: %s", name, got)
		}
	}
}
