package capability

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// folding is a system that does not tell fetch.ts from Fetch.ts, made on one
// that does: all spellings that are there lead to the same file.
type folding struct {
	system
	workspace string
}

func (s folding) Rename(from, to string) error {
	if err := s.system.Rename(from, to); err != nil {
		return err
	}
	path := filepath.Join(s.workspace, to)
	found, err := os.ReadDir(filepath.Dir(path))
	for _, d := range found {
		if name := d.Name(); strings.EqualFold(name, filepath.Base(path)) && name != filepath.Base(path) {
			other := filepath.Join(filepath.Dir(path), name)
			err = errors.Join(err, os.Remove(other), os.Link(path, other))
		}
	}
	return err
}

// A foreign file may have the name of a readable copy but for the case of its
// letters. Its text is not lost, whether the file system tells the two apart or
// not; the name of the capability stays what it is.
func TestForeignFileOfOtherCase(t *testing.T) {
	for _, folded := range []bool{false, true} {
		opts := testOptions(t)
		writeTool(t, opts, "Fetch.ts", "foreign")
		if folded {
			opts.system = folding{systemOf(t, opts), opts.Workspace}
			err := os.Link(filepath.Join(opts.Workspace, "tools/Fetch.ts"), filepath.Join(opts.Workspace, "tools/fetch.ts"))
			if errors.Is(err, os.ErrExist) {
				t.Log("a real file system that folds")
			} else if err != nil {
				t.Skip("no hard links here:", err)
			}
		}
		r := openWith(t, opts)
		if l := list(t, r, ""); l.Total != 0 {
			t.Errorf("folded %v: %v are listed", folded, names(l))
		}
		for _, text := range []string{"one", "two"} {
			register(t, r, definition("fetch"), text)
			r = openWith(t, opts)
			if v := resolve(t, r, "fetch"); string(v.Source) != text || len(v.Notes) > 0 || len(r.Notices()) > 0 {
				t.Errorf("folded %v: %q runs, notes %q, notices %q", folded, v.Source, v.Notes, r.Notices())
			}
		}
		kept := readTool(t, opts, "Fetch.ts") == "foreign"
		for _, k := range keptVersions(r.root, "fetch") {
			data, err := readFile(r.root, k.base+".ts", maxKept)
			kept = kept || err == nil && string(data) == "foreign"
		}
		if !kept {
			t.Errorf("folded %v: the foreign text is lost", folded)
		}
		// The list is rebuilt with the one name.
		writeTool(t, opts, "index.json", "{")
		if l := list(t, openWith(t, opts), ""); l.Total != 1 || l.Capabilities[0].Name != "fetch" {
			t.Errorf("folded %v: rebuilt as %v", folded, names(l))
		}
	}
}
