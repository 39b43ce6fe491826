package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// protectedPaths lead to protected places of what plant makes, each in another way.
var protectedPaths = []string{
	"tools/index.json", "Tools/Index.json", "tools/INDEX.JSON", "toolſ/index.json", "tools/ind\u200cex.json", "TOOLS/.Versions/new.ts",
	"tools/.versions", "tools/.versions/new.ts", "tools/.versions/x/1.0.0-ab.ts", "tools/.versions/x/1.0.0-ab.json",
	".git", ".GIT", ".git/config", ".Git/config", ".g\u200dit/config", ".git/hooks/pre-commit", ".git/new", "docs/.git/config", "docs/.GIT", "sub/.git",
	"system-prompt.txt", "System-Prompt.TXT", "ſystem-prompt.txt",
	"to-git/config", "to-git/hooks/new", "to-config", "to-index", "to-tools/index.json", "to-tools/.versions/x/new", "here/.git/config", "inside/.git/config",
}

// gatePaths are sources of capabilities.
var gatePaths = []string{"tools/x.ts", "tools/new.ts", "tools/X.TS", "Tools/x.ts", "tools/x.t\u200cs", "to-tools/x.ts", "to-tools/new.ts", "to-source", "tools/-.ts", "tools/.ts"}

func TestProtected(t *testing.T) {
	w, above := plant(t)
	before := snapshot(t, above, func(string) bool { return true })
	check := func(paths []string, want error) {
		for _, path := range paths {
			_, isThere := w.ReadText(path)
			for _, version := range []string{"", "0123", "1234567890abcdef1234567890abcdef"} {
				_, err := w.WriteText(path, "text", version)
				var protected *ProtectedError
				if !errors.Is(err, want) || !errors.As(err, &protected) || protected.Why == "" || protected.Path != path {
					// Where case counts, a folder under a protected name may be missing.
					if missing := strings.Contains(path, "/") && isThere != nil && os.IsNotExist(errors.Unwrap(err)); !missing {
						t.Errorf("%q, version %q: %v", path, version, err)
					}
				}
			}
		}
	}
	check(protectedPaths, ErrReadOnly)
	check(gatePaths, ErrGate)
	checkSame(t, before, snapshot(t, above, func(string) bool { return true }))
}

func TestProtected_IsRead(t *testing.T) {
	w, _ := plant(t)
	for path, text := range map[string]string{
		"tools/index.json": "{}", "tools/.versions/x/1.0.0-ab.ts": "version", "tools/x.ts": "source", ".git/config": "git",
		"system-prompt.txt": "You are Tendril", "to-config": "git", "to-source": "source",
	} {
		if file, err := w.ReadText(path); err != nil || file.Text != text || file.ReadOnly == "" {
			t.Errorf("%s: %+v, %v", path, file, err)
		}
	}
	folder, err := w.List("to-git")
	if err != nil || len(folder.Entries) != 2 {
		t.Fatal(folder, err)
	}
	for _, e := range folder.Entries {
		if e.ReadOnly == "" {
			t.Errorf("%+v", e)
		}
	}
}

func TestCheckWrite(t *testing.T) {
	w, _ := plant(t)
	for path, want := range map[string]error{
		"a.txt": nil, "new.txt": nil, "docs/new.ts": nil, ".env": nil, ".env.local": nil, "deno.json": nil, ".npmrc": nil, "package.json": nil, ".gitignore": nil,
		"tools/notes.txt": nil, "tools/x.ts.bak": nil, "docs/index.json": nil, "docs/system-prompt.txt": nil, "inside.txt": nil,
		"tools/x.ts": ErrGate, "tools/index.json": ErrReadOnly, ".git/config": ErrReadOnly, "docs": ErrPath, "": ErrPath, "here": ErrPath, "out.txt": ErrPath,
	} {
		if err := w.CheckWrite(path); !errors.Is(err, want) {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// The folder of the registry may be a link, and other names may lead to what it
// keeps: a protection is of the thing.
func TestProtected_ByWhatItIs(t *testing.T) {
	w := open(t, t.TempDir())
	below := func(name string) string { return filepath.Join(w.Path(), filepath.FromSlash(name)) }
	if err := errors.Join(
		os.MkdirAll(below("registry/kept/x"), 0o755), os.MkdirAll(below("vcs/hooks"), 0o755),
		os.WriteFile(below("registry/index.json"), []byte("{}"), 0o600), os.WriteFile(below("registry/x.ts"), nil, 0o600),
		os.WriteFile(below("source.ts"), nil, 0o600), os.Link(below("registry/index.json"), below("hard.json")),
	); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"tools": "registry", "registry/.versions": "kept", ".git": "vcs", "registry/linked.ts": "../source.ts"} {
		if err := os.Symlink(target, below(name)); err != nil {
			t.Skip(err)
		}
	}
	for path, want := range map[string]error{
		"registry/index.json": ErrReadOnly, "registry/kept/x/new": ErrReadOnly, "vcs/hooks/new": ErrReadOnly, ".git/new": ErrReadOnly, "hard.json": ErrReadOnly,
		"registry/x.ts": ErrGate, "registry/new.ts": ErrGate, "tools/new.ts": ErrGate, "tools/linked.ts": ErrGate, "registry/notes.txt": nil, "source.ts": nil,
	} {
		if err := w.CheckWrite(path); !errors.Is(err, want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestProtected_WithoutPermission(t *testing.T) {
	w := open(t, t.TempDir())
	file := filepath.Join(w.Path(), "kept.txt")
	if err := os.WriteFile(file, []byte("kept"), 0o400); err != nil {
		t.Fatal(err)
	}
	read, err := w.ReadText("kept.txt")
	if err != nil || read.ReadOnly == "" {
		t.Errorf("%+v, %v", read, err)
	}
	if _, err := w.WriteText("kept.txt", "x", read.Version); !errors.Is(err, ErrReadOnly) {
		t.Error(err)
	}
	if data, _ := os.ReadFile(file); string(data) != "kept" {
		t.Errorf("%q", data)
	}
}
