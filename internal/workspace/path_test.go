package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// canary is text that lies outside of a workspace. Nothing may read or change it.
const canary = "canary: this lies outside of the workspace"

// plant makes a workspace with files, protected places and links of all kinds,
// beside a folder with a canary, and returns it with the folder above both.
func plant(t testing.TB) (w *Workspace, above string) {
	t.Helper()
	above = t.TempDir()
	path := filepath.Join(above, "w")
	for name, text := range map[string]string{
		"outside/canary.txt": canary, "outside/folder/canary.txt": canary, "outside/index.json": canary,
		"w/a.txt": "a", "w/docs/b.txt": "b", "w/docs/deep/c.txt": "c", "w/100% 😍 #1?/d.txt": "d", "w/%2e%2e/e.txt": "e", "w/-dash": "dash",
		"w/.git/config": "git", "w/.git/hooks/pre-commit": "git", "w/docs/.git/config": "git", "w/sub/.git": "gitdir: ../.git",
		"w/tools/index.json": "{}", "w/tools/.versions/x/1.0.0-ab.ts": "version", "w/tools/x.ts": "source", "w/tools/notes.txt": "notes",
		"w/system-prompt.txt": "You are Tendril", "w/.env": "KEY=1", "w/deno.json": "{}",
	} {
		file := filepath.Join(above, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"out": "../outside", "out.txt": "../outside/canary.txt", "docs/out": "../../outside", "root": "/", "absolute": filepath.Join(above, "outside"),
		"absolute-inside": filepath.Join(path, "docs"), "up": "..", "here": ".", "loop": "loop", "loop-a": "loop-b", "loop-b": "loop-a",
		"nowhere": "docs/none.txt", "nowhere-out": "../outside/none.txt", "inside": "docs", "inside.txt": "docs/b.txt", "docs/back": "../docs/deep",
		"to-git": ".git", "to-config": "docs/../.git/config", "to-index": "tools/index.json", "to-tools": "tools", "to-source": "to-tools/x.ts",
		"out-and-in": "../w/a.txt", "through": "inside/deep/../../a.txt",
	} {
		if err := os.Symlink(filepath.FromSlash(target), filepath.Join(path, filepath.FromSlash(name))); err != nil {
			t.Skip("links cannot be made here:", err)
		}
	}
	w, warnings, err := Open(path)
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	t.Cleanup(func() { w.Close() })
	return w, above
}

// snapshot is everything below a folder that keep takes, by its path: mode and content or target.
func snapshot(t testing.TB, folder string, keep func(rel string) bool) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(folder, path)
		if rel = filepath.ToSlash(rel); err != nil || !keep(rel) {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		var data []byte
		switch {
		case info.Mode().IsRegular():
			data, err = os.ReadFile(path)
		case info.Mode()&fs.ModeSymlink != 0:
			var target string
			target, err = os.Readlink(path)
			data = []byte(target)
		}
		all[rel] = info.Mode().String() + " " + string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// untouchable is what no call may change, in what plant made.
func untouchable(rel string) bool {
	switch rel {
	case "w/tools/index.json", "w/tools/x.ts", "w/system-prompt.txt":
		return true
	}
	return strings.HasPrefix(rel, "outside") || strings.HasPrefix(rel+"/", "w/.git/") || strings.HasPrefix(rel+"/", "w/docs/.git/") ||
		strings.HasPrefix(rel+"/", "w/sub/.git/") || strings.HasPrefix(rel+"/", "w/tools/.versions/")
}

func checkSame(t testing.TB, before, after map[string]string) {
	t.Helper()
	for name, was := range before {
		if after[name] != was {
			t.Errorf("%s was %q, is %q", name, was, after[name])
		}
	}
	for name := range after {
		if _, ok := before[name]; !ok {
			t.Errorf("%s is new", name)
		}
	}
}

// useEverything gives a path to every method, looks at where they lead, and
// leaves no new file.
func useEverything(t testing.TB, w *Workspace, path, text string) {
	t.Helper()
	revealed, revealErr := w.Reveal(path)
	if revealErr == nil {
		rel, err := filepath.Rel(w.Path(), revealed)
		real, realErr := filepath.EvalSymlinks(revealed)
		if err != nil || !filepath.IsLocal(rel) || realErr != nil || real != revealed {
			t.Errorf("%q was revealed as %s, which is %s", path, revealed, real)
		}
	}
	if folder, err := w.List(path); err == nil {
		entries, err := os.ReadDir(revealed)
		if err != nil || revealErr != nil || len(entries) != len(folder.Entries) || folder.Path != path {
			t.Errorf("%q was listed as %+v, but leads to %s: %v, %v", path, folder, revealed, revealErr, err)
		}
	}
	file, err := w.ReadText(path)
	if strings.Contains(file.Text, "canary") {
		t.Errorf("%q read %+v", path, file)
	}
	_, _ = w.WriteText(path, text, file.Version)
	_, createErr := w.WriteText(path, text, "")
	if createErr == nil || errors.Is(err, fs.ErrNotExist) && file.Version == "" && errors.Is(createErr, ErrChanged) {
		_ = w.root.Remove(path)
	}
	_ = w.CheckWrite(path)
}

// hostilePaths lead, or seem to lead, out of the workspace or past a protection.
var hostilePaths = []string{
	"..", "../", "../outside/canary.txt", "../../evil.ts", "tools/../../evil.ts", "docs/../../outside/canary.txt", "docs/..", "./a.txt", ".", "a.txt/", "docs//b.txt", "//a.txt", "/", "/a.txt",
	"/etc/passwd", "//server/share/x", `\\server\share\x`, `\\?\C:\x`, `\\.\NUL`, `..\outside\canary.txt`, `docs\b.txt`, `C:\Windows\win.ini`,
	"file:///etc/passwd", "docs/\x00/b.txt", "a.txt\x00.png", "a\n.txt", "a\x7f", "a\u0085", "\xff\xfe", "docs/\xc0\xae\xc0\xae/a", "a\x1b[31m",
	"out", "out/canary.txt", "out/new.txt", "out.txt", "out/folder", "docs/out/canary.txt", "root", "root/etc/passwd", "absolute", "absolute/canary.txt",
	"absolute-inside/b.txt", "up", "up/outside/canary.txt", "here/up/outside/canary.txt", "loop", "loop-a/x", "nowhere", "nowhere-out", "out-and-in",
	strings.Repeat("here/", 50) + "a.txt", strings.Repeat("a/", 3000), strings.Repeat("x", 5000), "a.txt/x", "docs/none/x.txt", "here/.", "inside/../a.txt",
}

// newNames are names that some system takes for another one.
var newNames = []string{
	"CON", "con", "NUL.txt", "aux.txt", "docs/COM1", "docs/lpt9.log", "COM¹", "com0", "CONIN$", "prn .x", "AUX .txt", "a:b", "a.txt:stream", "tools/index.json::$DATA",
	"C:x", "C:", "C:/Windows", "docs/x.", "docs/x ", "docs/x. .", "file:x", "tools/index.json.", "tools/index.json ",
}

func TestPaths_Refused(t *testing.T) {
	w, above := plant(t)
	before := snapshot(t, above, func(string) bool { return true })
	for _, path := range append(hostilePaths, newNames...) {
		if _, err := w.ReadText(path); !errors.Is(err, ErrPath) && !errors.Is(err, fs.ErrNotExist) && !strings.Contains(err.Error(), "too long") {
			t.Errorf("%q was read: %v", path, err)
		}
		_, err := w.WriteText(path, "written", "")
		if err == nil {
			t.Errorf("%q was written", path)
		} else if strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r == 0x7f }) || strings.Contains(err.Error(), ".tmp") {
			t.Errorf("%q: the error %q", path, err)
		}
		useEverything(t, w, path, "written")
	}
	checkSame(t, before, snapshot(t, above, func(string) bool { return true }))
}

func TestPaths_OrdinaryNames(t *testing.T) {
	w, _ := plant(t)
	for path, text := range map[string]string{
		"a.txt": "a", "docs/deep/c.txt": "c", "100% 😍 #1?/d.txt": "d", "%2e%2e/e.txt": "e", "-dash": "dash", ".env": "KEY=1", "deno.json": "{}",
		"inside/b.txt": "b", "inside.txt": "b", "here/here/a.txt": "a", "inside/back/c.txt": "c", "through": "a", "docs/back/c.txt": "c", "tools/notes.txt": "notes",
	} {
		file, err := w.ReadText(path)
		if err != nil || file.Text != text || file.ReadOnly != "" {
			t.Errorf("%s: %+v, %v", path, file, err)
			continue
		}
		saved, err := w.WriteText(path, text+"!", file.Version)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if file, err = w.ReadText(path); file.Text != text+"!" || file.Version != saved || err != nil {
			t.Errorf("%s: then %+v, %v", path, file, err)
		}
		if _, err := w.WriteText(path, text, saved); err != nil {
			t.Errorf("%s: back: %v", path, err)
		}
	}
	for _, path := range []string{"inside.txt", "through", "inside", "here"} {
		if info, err := os.Lstat(filepath.Join(w.Path(), path)); err != nil || info.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("%s is no link any more: %v, %v", path, info.Mode(), err)
		}
	}
}

func TestNotPortable(t *testing.T) {
	for _, path := range newNames {
		bad := ""
		for _, name := range strings.Split(path, "/") {
			bad += notPortable(name)
		}
		if bad == "" {
			t.Errorf("%q passes", path)
		}
	}
	for _, name := range []string{"console.log", "com", "com10", "lpt", "COMx", "auxiliary.txt", ".con", "nul_", "a b", "naïve.txt", "😍", "null", "..a", "a,b", "100% 😍 #1?", `it's "q"`, "-dash", " lead"} {
		if why := notPortable(name); why != "" {
			t.Errorf("%q %s", name, why)
		}
	}
}

func TestReveal(t *testing.T) {
	w, _ := plant(t)
	for path, want := range map[string]string{
		"": "", "a.txt": "", "docs": "docs", "docs/b.txt": "docs", "inside/deep/c.txt": "docs/deep", "inside": "docs", "here": "", "to-config": ".git", ".git": ".git",
	} {
		if got, err := w.Reveal(path); err != nil || got != filepath.Join(w.Path(), filepath.FromSlash(want)) {
			t.Errorf("%q: %q, %v", path, got, err)
		}
	}
	for _, path := range []string{"none.txt", "docs/none", "out", "nowhere"} {
		if got, err := w.Reveal(path); err == nil {
			t.Errorf("%q: %q", path, got)
		}
	}
}

func TestReveal_WorkspaceMoved(t *testing.T) {
	w, above := plant(t)
	if err := os.Rename(w.Path(), filepath.Join(above, "elsewhere")); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink("outside", w.Path()); err != nil {
		t.Fatal(err)
	}
	if got, err := w.Reveal(""); err == nil {
		t.Errorf("revealed %q, which is not the workspace", got)
	}
	if file, err := w.ReadText("a.txt"); err != nil || file.Text != "a" {
		t.Errorf("%+v, %v", file, err)
	}
}

// FuzzPath gives every method paths that nobody thought of. Whatever they are,
// nothing outside is read or changed, no protected place changes, and nothing is
// left behind.
func FuzzPath(f *testing.F) {
	for _, path := range append(append(hostilePaths, newNames...), protectedPaths...) {
		f.Add(path, "text")
	}
	w, above := plant(f)
	before := snapshot(f, above, untouchable)
	f.Fuzz(func(t *testing.T, path, text string) {
		if strings.Contains(text, "canary") {
			t.Skip()
		}
		useEverything(t, w, path, text)
		checkSame(t, before, snapshot(t, above, untouchable))
		_ = filepath.WalkDir(w.Path(), func(file string, entry fs.DirEntry, err error) error {
			if err == nil && strings.HasPrefix(entry.Name(), ".save.") {
				t.Errorf("%s was left behind", file)
			}
			return nil
		})
	})
}
