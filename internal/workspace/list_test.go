package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestList(t *testing.T) {
	w, _ := plant(t)
	folder, err := w.List("")
	if err != nil || folder.Omitted != 0 || folder.Path != "" {
		t.Fatal(folder, err)
	}
	entries := map[string]Entry{}
	var order []string
	for _, e := range folder.Entries {
		entries[e.Name] = e
		order = append(order, fmt.Sprint(e.Kind != KindFolder, e.Name))
		if e.Path != e.Name || e.Modified.IsZero() || (e.Kind != KindFile) != (e.Size == 0) {
			t.Errorf("%+v", e)
		}
	}
	if !slices.IsSorted(order) {
		t.Errorf("the order is %q", order)
	}
	for name, want := range map[string]struct {
		kind Kind
		why  string
	}{
		"a.txt": {KindFile, ""}, ".env": {KindFile, ""}, "docs": {KindFolder, ""}, "tools": {KindFolder, ""}, ".git": {KindFolder, "git"},
		"system-prompt.txt": {KindFile, "copy"}, "out": {KindLink, "outside"}, "out.txt": {KindLink, "outside"}, "root": {KindLink, "absolute"},
		"absolute-inside": {KindLink, "absolute"}, "up": {KindLink, "outside"}, "loop": {KindLink, "too many links"}, "nowhere": {KindLink, "nowhere"},
		"inside": {KindLink, ""}, "inside.txt": {KindLink, ""}, "to-git": {KindLink, "git"}, "to-index": {KindLink, "registry"}, "to-source": {KindLink, "gate"},
	} {
		if e, ok := entries[name]; !ok || e.Kind != want.kind || (e.ReadOnly == "") != (want.why == "") || !strings.Contains(e.ReadOnly, want.why) {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestList_BelowALink(t *testing.T) {
	w, _ := plant(t)
	for path, want := range map[string][]string{
		"docs": {".git", "deep", "b.txt", "back", "out"}, "inside": {".git", "deep", "b.txt", "back", "out"}, "docs/back": {"c.txt"}, "inside/deep": {"c.txt"},
		"to-tools": {".versions", "index.json", "notes.txt", "x.ts"},
	} {
		folder, err := w.List(path)
		if err != nil {
			t.Error(err)
			continue
		}
		var got []string
		for _, e := range folder.Entries {
			got = append(got, e.Name)
			if e.Path != path+"/"+e.Name {
				t.Errorf("%+v", e)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", path, got)
		}
	}
	for _, path := range []string{"a.txt", "out", "none", "inside.txt", "up", "absolute-inside"} {
		if folder, err := w.List(path); !errors.Is(err, ErrPath) && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, %v", path, folder, err)
		}
	}
}

func TestList_NamesThatNoPathCanHave(t *testing.T) {
	w := open(t, t.TempDir())
	for _, name := range []string{"bad\xffname", "new\nline", `back\slash`} {
		if err := os.WriteFile(filepath.Join(w.Path(), name), nil, 0o600); err != nil {
			t.Skip(err)
		}
	}
	folder, err := w.List("")
	if err != nil || len(folder.Entries) != 3 {
		t.Fatal(folder, err)
	}
	for i, name := range []string{`back\slash`, "bad\uFFFDname", "new\nline"} {
		if e := folder.Entries[i]; e.Path != "" || e.ReadOnly == "" || e.Name != name {
			t.Errorf("%+v", folder.Entries[i])
		}
	}
}

// Names that only Windows refuses are a person's own files elsewhere.
func TestList_NamesThatWindowsRefuses(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("cannot be made here")
	}
	w := open(t, t.TempDir())
	for _, name := range []string{"12:30.log", "aux.c", "end."} {
		if err := os.WriteFile(filepath.Join(w.Path(), name), []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := w.ReadText(name)
		if err != nil || file.Text != "old" {
			t.Errorf("%s: %+v, %v", name, file, err)
		}
		if _, err := w.WriteText(name, "new", file.Version); err != nil {
			t.Error(err)
		}
	}
}

func TestList_VeryManyEntries(t *testing.T) {
	w := open(t, t.TempDir())
	const files, folders = 2*maxEntries + 17, 3
	for i := range files {
		f, err := os.Create(filepath.Join(w.Path(), fmt.Sprintf("f%05d", i)))
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	for i := range folders {
		if err := os.Mkdir(filepath.Join(w.Path(), fmt.Sprintf("z%d", i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	folder, err := w.List("")
	if err != nil || len(folder.Entries) != maxEntries || folder.Omitted != files+folders-maxEntries {
		t.Fatal(len(folder.Entries), folder.Omitted, err)
	}
	for i, e := range folder.Entries {
		want := fmt.Sprintf("f%05d", i-folders)
		if i < folders {
			want = fmt.Sprintf("z%d", i)
		}
		if e.Name != want {
			t.Fatalf("%d is %q instead of %q", i, e.Name, want)
		}
	}
}

func TestList_Empty(t *testing.T) {
	w := open(t, t.TempDir())
	if folder, err := w.List(""); err != nil || folder.Entries == nil || len(folder.Entries) != 0 {
		t.Errorf("%#v, %v", folder, err) // an empty JSON array, not null
	}
}
