package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

func TestText_ByteForByte(t *testing.T) {
	w := open(t, t.TempDir())
	last := ""
	for _, text := range []string{
		"", "no newline at the end", "one\n", "dos\r\nlines\r\n", "mixed\r\nlines\nold mac\rend", "\uFEFFwith a mark\r\n", "\uFEFF", " \t\n\n\n", "e\u0301 é 😍 \u2028 \u202e \x1b[31m",
		strings.Repeat("x", MaxText), strings.Repeat("é", MaxText/2),
	} {
		saved, err := w.WriteText("f.txt", text, last)
		if err != nil {
			t.Fatal(err)
		}
		data, _ := os.ReadFile(filepath.Join(w.Path(), "f.txt"))
		file, err := w.ReadText("f.txt")
		if err != nil || string(data) != text || file.Text != text || file.Version != saved || file.Size != int64(len(text)) || file.Binary || file.TooLarge {
			t.Errorf("%.20q: on disk %.20q, read %.20q, %v", text, data, file.Text, err)
		}
		last = saved
	}
}

func TestText_WhatIsNone(t *testing.T) {
	for name, c := range map[string]struct {
		content  string
		tooLarge bool
	}{
		"nul": {"a\x00b", false}, "utf-16": {"\xff\xfea\x00", false}, "latin 1": {"caf\xe9", false}, "cut": {"\xf0\x9f\x98", false}, "png": {"\x89PNG\r\n\x1a\n", false},
		"one too many": {strings.Repeat("x", MaxText+1), true}, "much": {strings.Repeat("x\x00", MaxText), true},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, t.TempDir())
			path := filepath.Join(w.Path(), "f")
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			file, err := w.ReadText("f")
			if err != nil || file.Binary == c.tooLarge || file.TooLarge != c.tooLarge || file.Text != "" || file.Version != "" || file.Size != int64(len(c.content)) {
				t.Errorf("%d, %v, %v, %v", file.Size, file.Binary, file.TooLarge, err)
			}
			for _, known := range []string{file.Version, version([]byte(c.content))} {
				if _, err := w.WriteText("f", "", known); !errors.Is(err, ErrContent) {
					t.Error(err)
				}
			}
			if _, err := w.WriteText("new", c.content, ""); !errors.Is(err, ErrContent) {
				t.Error(err)
			}
			if data, _ := os.ReadFile(path); string(data) != c.content {
				t.Error("it was changed")
			}
			if got := names(t, w.Path()); len(got) != 1 {
				t.Errorf("left behind %q", got)
			}
		})
	}
}

func TestWriteText_Versions(t *testing.T) {
	w := open(t, t.TempDir())
	changed := func(what string, err error, current string) {
		t.Helper()
		var e *ChangedError
		if !errors.Is(err, ErrChanged) || !errors.As(err, &e) || e.Version != current {
			t.Errorf("%s: %v, version %q", what, err, current)
		}
	}
	_, err := w.WriteText("f", "x", version([]byte("never")))
	changed("missing", err, "")
	first, err := w.WriteText("f", "first", "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.WriteText("f", "x", "")
	changed("create over", err, first)
	if err := os.WriteFile(filepath.Join(w.Path(), "f"), []byte("by another program"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = w.WriteText("f", "x", first)
	changed("changed", err, version([]byte("by another program")))
	if _, err := w.WriteText("f", "second", version([]byte("by another program"))); err != nil {
		t.Error(err)
	}
	if _, err := w.WriteText("none/f", "x", ""); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := os.Mkdir(filepath.Join(w.Path(), "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteText("folder", "x", ""); !errors.Is(err, ErrPath) {
		t.Error(err)
	}
	if data, _ := os.ReadFile(filepath.Join(w.Path(), "f")); string(data) != "second" {
		t.Errorf("%q", data)
	}
	if got := names(t, w.Path()); len(got) != 2 {
		t.Errorf("left behind %q", got)
	}
}

func TestWriteText_Modes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("has no such modes")
	}
	w := open(t, t.TempDir())
	for _, mode := range []fs.FileMode{0o600, 0o640, 0o755, 0o666, 0o777, 0o200 | 0o444} {
		path := filepath.Join(w.Path(), "f")
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		if _, err := w.WriteText("f", "x", version(nil)); err != nil {
			t.Error(err)
		}
		if info, _ := os.Stat(path); info.Mode() != mode {
			t.Errorf("%v became %v", mode, info.Mode())
		}
	}
	if _, err := w.WriteText("new", "x", ""); err != nil {
		t.Error(err)
	}
	if info, _ := os.Stat(filepath.Join(w.Path(), "new")); info.Mode()&^0o022 != 0o644&^0o022 { // what the umask leaves
		t.Error(info.Mode())
	}
}

// Of many who save over the same version one wins, and each text that was saved
// is the base of the next.
func TestWriteText_AtOnce(t *testing.T) {
	w := open(t, t.TempDir())
	var wg sync.WaitGroup
	var mu sync.Mutex
	next := map[string]string{} // by the version that was replaced
	for i := range 8 {
		wg.Go(func() {
			for n := 0; n < 20; {
				base := ""
				if file, err := w.ReadText("f"); err == nil {
					base = file.Version
				}
				text := fmt.Sprintf("%d-%d", i, n)
				_, err := w.WriteText("f", text, base)
				if errors.Is(err, ErrChanged) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				n++
				mu.Lock()
				if other, ok := next[base]; ok {
					t.Errorf("%q and %q both replaced %q", other, text, base)
				}
				next[base] = text
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	at := ""
	for range next {
		at = version([]byte(next[at]))
	}
	if file, err := w.ReadText("f"); err != nil || file.Version != at || len(next) != 8*20 {
		t.Errorf("%d saves, %+v, %v", len(next), file, err)
	}
	if got := names(t, w.Path()); len(got) != 1 {
		t.Errorf("left behind %q", got)
	}
}

func TestWriteText_ReadOnlyWorkspace(t *testing.T) {
	w, _, err := Open(readOnly(t))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.WriteText("new.txt", "x", ""); err == nil || strings.Contains(err.Error(), ".tmp") {
		t.Error(err)
	}
}
