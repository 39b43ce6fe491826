package capability

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// inspect opens a registry that leaves everything as it is.
func inspect(t testing.TB, opts Options) *Registry {
	t.Helper()
	opts.Inspect = true
	return openWith(t, opts)
}

// TestDoctor: each thing that may be wrong is found without a change, and is
// mended, or said how to mend it.
func TestDoctor(t *testing.T) {
	for _, c := range []struct {
		name     string
		damage   func(t *testing.T, opts Options)
		severity Severity
		problem  string
		mend     string // "": it is fixed
	}{
		{"whole", func(*testing.T, Options) {}, "", "", ""},
		{"index truncated", func(t *testing.T, opts Options) {
			writeTool(t, opts, "index.json", readTool(t, opts, "index.json")[:200])
		}, SeverityError, "cannot be read", ""},
		{"index missing", func(t *testing.T, opts Options) {
			os.Remove(filepath.Join(opts.Workspace, "tools/index.json"))
		}, SeverityError, "is missing", ""},
		{"journal left", func(t *testing.T, opts Options) {
			writeTool(t, opts, ".versions/.journal", "{}")
		}, SeverityWarning, "interrupted", ""},
		{"file edited", func(t *testing.T, opts Options) { writeTool(t, opts, "x.ts", "edited") }, SeverityWarning, "changed outside", "tendril capability accept x"},
		{"file with other line ends", func(t *testing.T, opts Options) {
			writeTool(t, opts, "x.ts", "\ufefftwo\r\n")
		}, SeverityWarning, "other line ends", ""},
		{"file missing", func(t *testing.T, opts Options) {
			os.Remove(filepath.Join(opts.Workspace, "tools/x.ts"))
		}, SeverityWarning, "is missing", ""},
		{"file a link", func(t *testing.T, opts Options) {
			path := filepath.Join(opts.Workspace, "tools/x.ts")
			os.Remove(path)
			writeTool(t, opts, "y.txt", "two\n")
			if err := os.Symlink("y.txt", path); err != nil {
				t.Fatal(err)
			}
		}, SeverityNote, "is a link", "nothing needs to be done"},
		{"file too large", func(t *testing.T, opts Options) {
			if err := os.Truncate(filepath.Join(opts.Workspace, "tools/x.ts"), maxKept+1); err != nil {
				t.Fatal(err)
			}
		}, SeverityWarning, "cannot be read", "make it a file that can be read"},
		{"version files gone, copy whole", func(t *testing.T, opts Options) {
			os.RemoveAll(filepath.Join(opts.Workspace, "tools/.versions/x"))
		}, SeverityWarning, "files of version 1.1.0 are missing", ""},
		{"definition of the version gone", func(t *testing.T, opts Options) {
			os.Remove(filepath.Join(opts.Workspace, "tools/.versions/x", strings.TrimSuffix(versionFile(t, opts, "x", "1.1.0"), ".ts")+".json"))
		}, SeverityWarning, "files of version 1.1.0 are missing", ""},
		{"version files gone", func(t *testing.T, opts Options) {
			os.RemoveAll(filepath.Join(opts.Workspace, "tools/.versions/x"))
			writeTool(t, opts, "x.ts", "edited")
		}, SeverityError, "source of x 1.1.0 is missing", "tendril capability accept x"},
		{"active version changed, copy whole", func(t *testing.T, opts Options) {
			writeTool(t, opts, ".versions/x/"+versionFile(t, opts, "x", "1.1.0"), "evil")
		}, SeverityError, "do not match its hash", ""},
		{"active version changed, copy too", func(t *testing.T, opts Options) {
			writeTool(t, opts, ".versions/x/"+versionFile(t, opts, "x", "1.1.0"), "evil")
			writeTool(t, opts, "x.ts", "evil")
		}, SeverityError, "do not match its hash", "rollback x"},
		{"old version changed", func(t *testing.T, opts Options) {
			writeTool(t, opts, ".versions/x/"+versionFile(t, opts, "x", "1.0.0"), "evil")
		}, SeverityWarning, "version 1.0.0 cannot be read", "from git or a backup"},
		{"entry edited", func(t *testing.T, opts Options) {
			writeTool(t, opts, "index.json", strings.Replace(readTool(t, opts, "index.json"), "Does x.", "Does y.", 1))
		}, SeverityWarning, "(capability)", "tendril capability restore x"},
		{"entry rewritten by another program", func(t *testing.T, opts Options) {
			writeTool(t, opts, "index.json", seedIndex("x"))
			writeTool(t, opts, "index.json", strings.NewReplacer(`"Seed x."`, `"Does x."`).Replace(rewritten(t, opts)))
		}, SeverityWarning, "another program has rewritten", ""},
		{"entry removed", func(t *testing.T, opts Options) {
			writeTool(t, opts, "index.json", `{"version":"1.0.0","capabilities":[]}`)
		}, SeverityWarning, "does not name it", "tendril capability restore x"},
		{"two entries", func(t *testing.T, opts Options) {
			index := readTool(t, opts, "index.json")
			at, end := strings.Index(index, "    {"), strings.LastIndex(index, "\n  ]")
			writeTool(t, opts, "index.json", index[:end]+",\n"+strings.Replace(index[at:end], "Does x.", "Does z.", 1)+index[end:])
		}, SeverityError, "two entries of x", "tendril capability resolve"},
		{"deleted, and in the index again", func(t *testing.T, opts Options) {
			index := readTool(t, opts, "index.json")
			deleteX(t, opts)
			writeTool(t, opts, "index.json", index)
			writeTool(t, opts, "x.ts", "two\n")
		}, SeverityNote, "was deleted (1.2.0)", "tendril capability delete x"},
		{"deleted, and its file is there again", func(t *testing.T, opts Options) {
			deleteX(t, opts)
			writeTool(t, opts, "x.ts", "two\n")
		}, SeverityNote, "does not run: x was deleted", "tendril capability restore x"},
		{"loose source", func(t *testing.T, opts Options) { writeTool(t, opts, "loose.ts", "1") }, SeverityNote, "no entry", "to be registered"},
		{"only in case", func(t *testing.T, opts Options) { writeTool(t, opts, "X.ts", "1") }, SeverityWarning, "only in case", "rename it"},
		{"set aside", func(t *testing.T, opts Options) { writeTool(t, opts, "index.json.unreadable-1", "{") }, SeverityNote, "set aside", "then remove it"},
		{"no .gitattributes", func(t *testing.T, opts Options) {
			os.Remove(filepath.Join(opts.Workspace, "tools/.gitattributes"))
		}, SeverityNote, ".gitattributes is missing", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			opts := testOptions(t)
			r := openWith(t, opts)
			register(t, r, definition("x"), "one")
			register(t, r, definition("x"), "two\n")
			c.damage(t, opts)
			before := snapshot(t, opts)
			found, err := inspect(t, opts).Examine(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if after := snapshot(t, opts); after != before {
				t.Errorf("looking has changed\n%s\nto\n%s", before, after)
			}
			if c.severity == "" {
				if len(found) > 0 {
					t.Errorf("found %s", encode(found))
				}
				return
			}
			if len(found) == 0 || found[0].Severity != c.severity || !strings.Contains(found[0].Problem, c.problem) || !strings.Contains(found[0].Mend, c.mend) {
				t.Fatalf("found %s", encode(found))
			}
			if found[0].Fixable != (c.mend == "") {
				t.Errorf("fixable: %s", encode(found))
			}
			r = openWith(t, opts) // as the command does: opening mends as well
			mended, left, err := r.Fix(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if c.mend == "" {
				for _, f := range left {
					if f.Severity != SeverityNote {
						t.Errorf("mended %s, left %s", encode(mended), encode(left))
					}
				}
				if v := resolve(t, openWith(t, opts), "x"); string(v.Source) != "two\n" {
					t.Errorf("%q runs", v.Source)
				}
			} else if len(left) == 0 {
				t.Error("what a person must decide is gone")
			}
		})
	}
}

// rewritten is the index as a program writes it that knows the seed's fields only.
func rewritten(t *testing.T, opts Options) string {
	t.Helper()
	ix, err := decodeIndex([]byte(readTool(t, opts, "index.json")), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range ix.entries {
		e.fields = e.fields.set("capability", encode("Does x.")).set("triggers", encode(definition("x").Triggers)).set("version", encode("1.1.0"))
	}
	return string(ix.encode())
}

// snapshot is all that is in tools/, but for the lock.
func snapshot(t *testing.T, opts Options) string {
	t.Helper()
	var b strings.Builder
	root := filepath.Join(opts.Workspace, "tools")
	err := filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() || info.Name() == ".lock" || info.Size() > 1<<20 {
			return err
		}
		data, err := os.ReadFile(path)
		b.WriteString(path + "\n" + string(data) + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
