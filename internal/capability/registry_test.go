package capability

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tendril-agent/tendril/internal/sandbox"
	"github.com/tendril-agent/tendril/internal/store"
)

func TestMain(m *testing.M) {
	if os.Getenv("CAPABILITY_CHILD") != "" {
		child()
		return
	}
	goleak.VerifyTestMain(m)
}

// checker is a Checker of func fields; without them everything is fine.
type checker struct {
	imports func(source string) ([]sandbox.Import, error)
	check   func(source, argsType string) ([]sandbox.Diagnostic, error)
}

func (c checker) Imports(_ context.Context, _ string, source []byte) ([]sandbox.Import, error) {
	if c.imports == nil {
		return nil, nil
	}
	return c.imports(string(source))
}

func (c checker) Lock(context.Context, string, []byte, []string) ([]byte, error) { return nil, nil }

func (c checker) HoldsModules(context.Context, string, []byte, []byte) error { return nil }

func (c checker) RegistryHost(string) string { return "" }

func (c checker) Check(_ context.Context, _ string, source, _ []byte, argsType string) ([]sandbox.Diagnostic, error) {
	if c.check == nil {
		return nil, nil
	}
	return c.check(string(source), argsType)
}

// person answers every question the same way, and remembers them.
type person struct {
	answer Answer
	asked  []Question
}

func (p *person) Approve(_ context.Context, q Question) (Answer, error) {
	p.asked = append(p.asked, q)
	return p.answer, nil
}

var noon = time.Date(2026, 4, 11, 12, 0, 0, 0, time.UTC)

func openDB(t testing.TB, path string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// testOptions are those of a new workspace with a database beside it.
func testOptions(t testing.TB) Options {
	t.Helper()
	return optionsIn(t, t.TempDir())
}

func optionsIn(t testing.TB, dir string) Options {
	t.Helper()
	ws := filepath.Join(dir, "ws")
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	return Options{
		Workspace: ws, DB: openDB(t, filepath.Join(dir, "home", "tendril.db")), Checker: checker{},
		Now: func() time.Time { return noon },
	}
}

func openWith(t testing.TB, opts Options) *Registry {
	t.Helper()
	r, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func definition(name string) Definition {
	return Definition{
		Name: name, Capability: "Does " + strings.ReplaceAll(name, "_", " ") + ".",
		Triggers: []string{"user asks for it", "user needs it"}, Suppression: []string{},
	}
}

func register(t testing.TB, r *Registry, def Definition, code string) *Admission {
	t.Helper()
	a, err := r.Register(t.Context(), def, code, Provenance{By: ByModel, Session: "s1", Request: "please do it"}, nil)
	if err != nil {
		t.Fatalf("register %s: %v", def.Name, err)
	}
	return a
}

func resolve(t testing.TB, r *Registry, name string) *Runnable {
	t.Helper()
	v, err := r.Resolve(t.Context(), name, nil)
	if err != nil {
		t.Fatalf("resolve %s: %v", name, err)
	}
	return v
}

func list(t testing.TB, r *Registry, query string) Listing {
	t.Helper()
	l, err := r.List(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func names(l Listing) []string {
	var out []string
	for _, s := range l.Capabilities {
		out = append(out, s.Name)
	}
	return out
}

func readTool(t testing.TB, opts Options, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(opts.Workspace, "tools", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func writeTool(t testing.TB, opts Options, name, text string) {
	t.Helper()
	path := filepath.Join(opts.Workspace, "tools", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func wantNote(t testing.TB, notes []string, part string) {
	t.Helper()
	if !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, part) }) {
		t.Errorf("no note with %q in %q", part, notes)
	}
}

func TestRegister_WritesTheSeedsFormat(t *testing.T) {
	opts := testOptions(t)
	r := openWith(t, opts)
	if _, err := os.Stat(filepath.Join(opts.Workspace, "tools")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("opening made the folder tools: %v", err)
	}
	l := list(t, r, "")
	if l.Total != 0 || l.Message == "" || string(encode(l.Capabilities)) != "[]" {
		t.Errorf("empty listing: %s", encode(l))
	}
	def := definition("fetch_url")
	def.Parameters = json.RawMessage(`{"type":"object","properties":{"id":{"const":9007199254740993}}}`)
	a := register(t, r, def, "console.log(1)\n")
	if a.Version != "1.0.0" || a.Status != StatusUnproven {
		t.Errorf("admission %+v", a)
	}
	want := `{
  "version": "1.0.0",
  "capabilities": [
    {
      "name": "fetch_url",
      "capability": "Does fetch url.",
      "triggers": [
        "user asks for it",
        "user needs it"
      ],
      "suppression": [],
      "tool_path": "fetch_url.ts",
      "created": "2026-04-11",
      "created_by": "model",
      "version": "1.0.0",
      "parameters": {
        "type": "object",
        "properties": {
          "id": {
            "const": 9007199254740993
          }
        }
      },
      "sha256": "` + a.Hash + `",
      "updated": "2026-04-11T12:00:00Z",
      "session": "s1",
      "status": "active"
    }
  ]
}
`
	if got := readTool(t, opts, "index.json"); got != want {
		t.Errorf("index.json:\n%s", got)
	}
	if got := readTool(t, opts, "fetch_url.ts"); got != "console.log(1)\n" {
		t.Errorf("readable copy: %q", got)
	}
	if got := readTool(t, opts, ".versions/fetch_url/1.0.0-"+a.Hash[:12]+".json"); strings.Contains(got, "please do it") {
		t.Error("the user's text left the database")
	}
}

func TestRegister_VersionsCountMinor(t *testing.T) {
	opts := testOptions(t)
	r := openWith(t, opts)
	for i, want := range []string{"1.0.0", "1.1.0", "1.2.0"} {
		if a := register(t, r, definition("x"), strings.Repeat("//\n", i+1)); a.Version != want {
			t.Errorf("version %s, want %s", a.Version, want)
		}
	}
	if a := register(t, r, definition("x"), strings.Repeat("//\n", 3)); a.Version != "1.2.0" {
		t.Errorf("the same again made version %s", a.Version)
	}
	// A person takes the entry out: gone, and not brought back.
	writeTool(t, opts, "index.json", `{"version":"1.0.0","capabilities":[]}`)
	r = openWith(t, opts)
	if l := list(t, r, ""); l.Total != 0 {
		t.Errorf("removed, but listed: %v", names(l))
	}
	var unknown *UnknownError
	if _, err := r.Resolve(t.Context(), "x", nil); !errors.As(err, &unknown) || !unknown.Loose {
		t.Errorf("a source without an entry: %v", err)
	}
	if a := register(t, r, definition("x"), "1"); a.Version != "1.3.0" {
		t.Errorf("version %s after a removal, want 1.3.0", a.Version)
	}
}

func TestRegister_KeepsWhatItDoesNotKnow(t *testing.T) {
	opts := testOptions(t)
	writeTool(t, opts, "index.json", "\ufeff"+`{"$comment":"mine","version":"1.0.0","capabilities":[
		{"x_first":1,"name":"a","capability":"Does a.","triggers":["t"],"suppression":[],"tool_path":"tools/a.ts","created":"2025-01-01","created_by":"model","version":"2.4.0","x_big":12345678901234567890.10,"x_last":{"z":1,"a":2}},
		{"name":"b","capability":"Does <b> & c.","triggers":[],"suppression":[]}],"after":[1, 2]}`)
	writeTool(t, opts, "a.ts", "old")
	r := openWith(t, opts)
	if a := register(t, r, definition("a"), "new"); a.Version != "2.6.0" { // 2.5.0 is the old text
		t.Errorf("version %s", a.Version)
	}
	got := readTool(t, opts, "index.json")
	at := 0
	for _, part := range []string{`"$comment"`, `"x_first": 1`, `"tool_path": "tools/a.ts"`, `"2025-01-01"`, `12345678901234567890.10`, `"z": 1`, `"a": 2`, `"sha256"`, `Does <b> & c.`, `"after"`} {
		i := strings.Index(got[at:], part)
		if i < 0 {
			t.Fatalf("%s is lost or out of order in:\n%s", part, got)
		}
		at += i
	}
	if kept := readTool(t, opts, ".versions/a/"+versionFile(t, opts, "a", "2.5.0")); kept != "old" {
		t.Errorf("the old text was not kept: %q", kept)
	}
}

func versionFile(t testing.TB, opts Options, name, number string) string {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(opts.Workspace, "tools/.versions", name, number+"-*.ts"))
	if len(found) != 1 {
		t.Fatalf("version %s of %s: %v", number, name, found)
	}
	return filepath.Base(found[0])
}

func TestRegister_Max(t *testing.T) {
	opts := testOptions(t)
	opts.Max = 2
	r := openWith(t, opts)
	register(t, r, definition("used"), "1")
	register(t, r, definition("unused"), "1")
	if err := r.Record(t.Context(), Run{Name: "used", Outcome: "ok", Started: noon}); err != nil {
		t.Fatal(err)
	}
	_, err := r.Register(t.Context(), definition("third"), "1", Provenance{}, nil)
	var refusal *Refusal
	if !errors.As(err, &refusal) || !strings.Contains(refusal.Hint, "unused") {
		t.Errorf("got %v", err)
	}
	register(t, r, definition("used"), "2")
}

func TestRegister_RefusalLeavesTheDiskUntouched(t *testing.T) {
	opts := testOptions(t)
	opts.Checker = checker{check: func(string, string) ([]sandbox.Diagnostic, error) {
		return []sandbox.Diagnostic{{Line: 3, Column: 5, Code: "TS2322", Message: "wrong"}}, nil
	}}
	r := openWith(t, opts)
	var steps []Step
	_, err := r.Register(t.Context(), definition("x"), "1", Provenance{}, func(s Step) { steps = append(steps, s) })
	if err == nil || !strings.Contains(err.Error(), "line 3, column 5: TS2322 wrong") || !strings.Contains(err.Error(), "to mend it") {
		t.Errorf("refusal: %v", err)
	}
	if last := steps[len(steps)-1]; last.Name != StepTypes || last.State != StepFailed {
		t.Errorf("last step %+v", last)
	}
	if found, _ := os.ReadDir(opts.Workspace); len(found) > 0 {
		t.Errorf("the workspace holds %v", found)
	}
}

func TestResolve_Errors(t *testing.T) {
	opts := testOptions(t)
	r := openWith(t, opts)
	a := register(t, r, definition("fetch_url"), "1")
	for _, name := range []string{"fetch_urls", "FETCH_URL", "fetch", "../evil", "a\x00b", strings.Repeat("a", 100000), ""} {
		var unknown *UnknownError
		if _, err := r.Resolve(t.Context(), name, nil); !errors.As(err, &unknown) || strings.ContainsAny(err.Error(), "\x00\x1b") || len(err.Error()) > 500 {
			t.Errorf("%.20q: %v", name, err)
		}
	}
	base := filepath.Join(opts.Workspace, "tools/.versions/fetch_url/1.0.0-"+a.Hash[:12])
	if err := os.WriteFile(base+".ts", []byte("evil"), 0o644); err != nil {
		t.Fatal(err)
	}
	var refused *RefusedError
	if _, err := r.Resolve(t.Context(), "fetch_url", nil); !errors.As(err, &refused) || !errors.Is(err, errHash) {
		t.Errorf("changed version file: %v", err)
	}
	os.Remove(base + ".ts")
	os.Remove(base + ".json")
	if v := resolve(t, r, "fetch_url"); string(v.Source) != "1" || v.Hash != a.Hash {
		t.Error("the readable copy and the entry are what was hashed, but do not run")
	}
	os.Remove(base + ".ts") // resolving has kept it again
	os.Remove(base + ".json")
	writeTool(t, opts, "fetch_url.ts", "changed")
	var missing *MissingSourceError
	if _, err := r.Resolve(t.Context(), "fetch_url", nil); !errors.As(err, &missing) {
		t.Errorf("no source: %v", err)
	}
}

// watching lets everything pass, and counts how often it saw a source.
func watching(seen map[string]int) Checker {
	return checker{imports: func(source string) ([]sandbox.Import, error) {
		seen[source]++
		return nil, nil
	}}
}
