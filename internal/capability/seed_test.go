package capability

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tendril-agent/tendril/internal/sandbox"
)

func seedIndex(names ...string) string {
	var entries []string
	for _, n := range names {
		entries = append(entries, `{"name":"`+n+`","capability":"Does it.","triggers":["t"],"suppression":[],"tool_path":"`+n+`.ts","created":"2026-01-01","created_by":"model","version":"1.0.0"}`)
	}
	return `{"version":"1.0.0","capabilities":[` + strings.Join(entries, ",") + `]}`
}

func TestSeedWorkspace_OpensAsItIs(t *testing.T) {
	opts := testOptions(t)
	opts.Checker = checker{check: func(string, string) ([]sandbox.Diagnostic, error) {
		return []sandbox.Diagnostic{{Line: 1, Column: 2, Code: "TS1", Message: "loose types"}}, nil
	}}
	writeTool(t, opts, "index.json", seedIndex("a", strings.Repeat("long_", 20)))
	writeTool(t, opts, "a.ts", "await fetch('https://example.com'); if (import.meta.main) {}")
	before := readTool(t, opts, "index.json")
	r := openWith(t, opts)
	if l := list(t, r, ""); l.Total != 2 || l.Capabilities[0].Status != StatusUnproven {
		t.Errorf("listing %s", encode(l))
	}
	v := resolve(t, r, "a")
	wantNote(t, v.Notes, "1 type error")
	wantNote(t, v.Notes, "import.meta.main")
	wantNote(t, v.Notes, "without network")
	if v.Grant.Net != nil || v.Grant.Read != nil || v.Version != "1.0.0" {
		t.Errorf("runnable %+v", v)
	}
	if readTool(t, opts, "index.json") != before {
		t.Error("running rewrote index.json")
	}
	writeTool(t, opts, "a.ts", "edited")
	if drifted := resolve(t, r, "a"); string(drifted.Source) != string(v.Source) {
		t.Error("an edit after the admission runs")
	}
	var missing *MissingSourceError
	if _, err := r.Resolve(t.Context(), strings.Repeat("long_", 20), nil); !errors.As(err, &missing) {
		t.Errorf("an entry without source: %v", err)
	}
}

func TestSeedWorkspace_GraphRuleRefuses(t *testing.T) {
	opts := testOptions(t)
	opts.Checker = checker{imports: func(string) ([]sandbox.Import, error) {
		return []sandbox.Import{{Specifier: "./b.ts", Line: 1, Column: 15}}, nil
	}}
	writeTool(t, opts, "index.json", seedIndex("a"))
	writeTool(t, opts, "a.ts", `import b from "./b.ts"`)
	var refused *RefusedError
	if _, err := openWith(t, opts).Resolve(t.Context(), "a", nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), "line 1, column 15") {
		t.Errorf("got %v", err)
	}
}

func TestSeedWorkspace_NetworkAfterApproval(t *testing.T) {
	opts := testOptions(t)
	opts.Policy.AllowedDomains = []string{"example.com"}
	writeTool(t, opts, "index.json", seedIndex("a"))
	writeTool(t, opts, "a.ts", "await fetch('https://example.com')")
	r := openWith(t, opts)
	wantNote(t, resolve(t, r, "a").Notes, "tendril capability approve --workspace")
	if err := r.ApproveWorkspace(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v := resolve(t, r, "a"); !slices.Equal(v.Grant.Net, []string{"example.com"}) || len(v.Notes) > 1 {
		t.Errorf("grant %v, notes %q", v.Grant, v.Notes)
	}

	for answer, want := range map[Answer]int{AllowOnce: 1, Deny: 0} {
		opts.DB = openDB(t, filepath.Join(t.TempDir(), "x.db"))
		p := &person{answer: answer}
		opts.Approver = p
		r = openWith(t, opts)
		for turn := 1; turn <= 2; turn++ {
			ctx, asked := InTurn(t.Context()), turn
			if answer == AllowOnce {
				asked = 1
			}
			for range 2 {
				if v, err := r.Resolve(ctx, "a", nil); err != nil || len(v.Grant.Net) != want || len(p.asked) != asked {
					t.Errorf("%s: grant %v after %d questions in %d turns: %v", answer, v.Grant, len(p.asked), turn, err)
				}
			}
		}
	}
}

func TestIndexFiles(t *testing.T) {
	files, _ := filepath.Glob("testdata/index/*.json")
	if len(files) < 9 {
		t.Fatalf("inputs: %v", files)
	}
	readable := []string{"index-crlf.json", "index-good.json", "index-hostile-text.json"}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			opts := testOptions(t)
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			writeTool(t, opts, "index.json", string(data))
			for _, name := range []string{"cap_a", "cap_b"} {
				writeTool(t, opts, name+".ts", "console.log('"+name+"')")
			}
			r := openWith(t, opts)
			want := []string{"cap_a", "cap_b"}
			switch filepath.Base(file) {
			case "index-hostile-text.json", "index-wrong-types.json":
				want = want[:1]
			}
			l := list(t, r, "")
			if got := names(l); !slices.Equal(got, want) {
				t.Errorf("listed %v, want %v", got, want)
			}
			if raw := string(encode(l)); strings.ContainsAny(raw, "\x00\x1b") || strings.Contains(raw, "null") {
				t.Errorf("listing: %q", raw)
			}
			aside, _ := filepath.Glob(filepath.Join(opts.Workspace, "tools/index.json.unreadable-*"))
			if slices.Contains(readable, filepath.Base(file)) {
				if len(aside) > 0 || len(r.Notices()) > 0 {
					t.Errorf("a good file was set aside: %v, %v", aside, r.Notices())
				}
			} else if kept, err := os.ReadFile(strings.Join(aside, "")); err != nil || string(kept) != string(data) || len(r.Notices()) != 1 {
				t.Errorf("set aside %v (%v), notices %v", aside, err, r.Notices())
			}
			register(t, r, definition("another"), "1")
			for _, name := range append(want, "another") {
				resolve(t, openWith(t, opts), name)
			}
			if again := openWith(t, opts); len(again.Notices()) > 0 || !json.Valid([]byte(readTool(t, opts, "index.json"))) {
				t.Errorf("the second open: %v", again.Notices())
			}
			if found, _ := filepath.Glob(filepath.Join(filepath.Dir(opts.Workspace), "evil*")); len(found) > 0 {
				t.Errorf("written outside: %v", found)
			}
		})
	}
}

func TestIndex_DamagedAfterVersions(t *testing.T) {
	for _, damage := range []string{"", "\x00\x00", "null", "[]", `"x"`, "{}", `{"capabilities":{}}`, "{", "missing", "huge"} {
		opts := testOptions(t)
		r := openWith(t, opts)
		register(t, r, definition("x"), "one")
		register(t, r, definition("x"), "two")
		path := filepath.Join(opts.Workspace, "tools/index.json")
		switch damage {
		case "missing":
			os.Remove(path)
		case "huge":
			if err := os.Truncate(path, maxIndex+1); err != nil {
				t.Fatal(err)
			}
		default:
			writeTool(t, opts, "index.json", damage)
		}
		// The open registry and a new one both mend it.
		if v := resolve(t, r, "x"); string(v.Source) != "two" || len(r.Notices()) != 1 {
			t.Errorf("%q: %q runs, notices %v", damage, v.Source, r.Notices())
		}
		if v := resolve(t, openWith(t, opts), "x"); string(v.Source) != "two" {
			t.Errorf("%q: %q runs", damage, v.Source)
		}
	}
}

// What a seed workspace's capabilities were is remembered from their first run.
func TestSeedWorkspace_DamagedIndexKeepsTheDescriptions(t *testing.T) {
	for _, damage := range []string{"", "\x00", "null", "{", "missing"} {
		opts := testOptions(t)
		writeTool(t, opts, "index.json", seedIndex("ran", "never_ran"))
		writeTool(t, opts, "ran.ts", "1")
		writeTool(t, opts, "never_ran.ts", "2")
		resolve(t, openWith(t, opts), "ran")
		if damage == "missing" {
			os.Remove(filepath.Join(opts.Workspace, "tools/index.json"))
		} else {
			writeTool(t, opts, "index.json", damage)
		}
		for _, c := range list(t, openWith(t, opts), "").Capabilities {
			lost := strings.Contains(c.Capability, "description was lost")
			if lost != (c.Name == "never_ran") || !lost && !slices.Equal(c.Triggers, []string{"t"}) {
				t.Errorf("%q: %s", damage, encode(c))
			}
		}
	}
}

func TestIndex_GitConflict(t *testing.T) {
	opts := testOptions(t)
	r := openWith(t, opts)
	register(t, r, definition("same"), "1")
	register(t, r, definition("x"), "one")
	index := readTool(t, opts, "index.json")
	register(t, r, definition("x"), "two")
	other := readTool(t, opts, "index.json")
	at := strings.Index(index, "    {\n      \"name\": \"x\"")
	text := index[:at] + "<<<<<<< HEAD\n" + index[at:] + "=======\n" + other[at:] + ">>>>>>> feature\n"
	writeTool(t, opts, "index.json", text)
	r = openWith(t, opts)
	l := list(t, r, "")
	if l.Total != 2 || l.Capabilities[1].Status != StatusConflict || !strings.Contains(l.Message, `"feature"`) {
		t.Errorf("listing %s", encode(l))
	}
	resolve(t, r, "same")
	var conflict *ConflictError
	if _, err := r.Resolve(t.Context(), "x", nil); !errors.As(err, &conflict) || !strings.Contains(err.Error(), "1.0.0") || !strings.Contains(err.Error(), "1.1.0") {
		t.Errorf("resolve: %v", err)
	}
	if _, err := r.Register(t.Context(), definition("y"), "1", Provenance{}, nil); !errors.As(err, &conflict) {
		t.Errorf("register: %v", err)
	}
	if readTool(t, opts, "index.json") != text {
		t.Error("the conflict was written over")
	}
}

func TestLinksOutOfTheWorkspace(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege")
	}
	opts := testOptions(t)
	outside := filepath.Join(filepath.Dir(opts.Workspace), "outside.ts")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	writeTool(t, opts, "index.json", seedIndex("a"))
	if err := os.Symlink(outside, filepath.Join(opts.Workspace, "tools/a.ts")); err != nil {
		t.Fatal(err)
	}
	r := openWith(t, opts)
	if _, err := r.Resolve(t.Context(), "a", nil); err == nil {
		t.Error("a source outside the workspace runs")
	}
	if _, err := r.Register(t.Context(), definition("a"), "1", Provenance{}, nil); err == nil {
		t.Error("a link was replaced although its text could not be kept")
	}
	if data, _ := os.ReadFile(outside); string(data) != "secret" {
		t.Error("written through the link")
	}

	opts = testOptions(t)
	elsewhere := t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(opts.Workspace, "tools")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), opts); err == nil {
		t.Error("tools that leads out of the workspace was opened")
	}
	if found, _ := os.ReadDir(elsewhere); len(found) > 0 {
		t.Errorf("written outside: %v", found)
	}
}

func TestIndex_TwoEntriesOfOneName(t *testing.T) {
	opts := testOptions(t)
	one := `{"name":"a","capability":"Does it.","triggers":[],"suppression":[],"version":"1.0.0"}`
	writeTool(t, opts, "a.ts", "1")
	writeTool(t, opts, "index.json", `{"version":"1.0.0","capabilities":[`+one+`,`+one+`]}`)
	resolve(t, openWith(t, opts), "a")

	writeTool(t, opts, "index.json", `{"version":"1.0.0","capabilities":[`+one+`,`+strings.Replace(one, "1.0.0", "1.1.0", 1)+`]}`)
	r := openWith(t, opts)
	var conflict *ConflictError
	if _, err := r.Resolve(t.Context(), "a", nil); !errors.As(err, &conflict) || !strings.Contains(err.Error(), "1.0.0 and 1.1.0") {
		t.Errorf("resolve: %v", err)
	}
	if _, err := r.Register(t.Context(), definition("a"), "2", Provenance{}, nil); !errors.As(err, &conflict) {
		t.Errorf("register: %v", err)
	}
	register(t, r, definition("b"), "2")
}

func TestIndex_PermissionsOfANewerProgram(t *testing.T) {
	opts := testOptions(t)
	writeTool(t, opts, "index.json", `{"version":"1.0.0","capabilities":[{"name":"a","capability":"Does it.","triggers":[],"suppression":[],"permissions":{"gpu":true}}]}`)
	writeTool(t, opts, "a.ts", "1")
	r := openWith(t, opts)
	register(t, r, definition("b"), "2")
	var refused *RefusedError
	if _, err := r.Resolve(t.Context(), "a", nil); !errors.As(err, &refused) || !strings.Contains(readTool(t, opts, "index.json"), `"gpu": true`) {
		t.Errorf("resolve: %v", err)
	}
}

// What is nested too deep to be read is set aside like any other damage (case Z04).
func TestIndex_NestedTooDeep(t *testing.T) {
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	for what, text := range map[string]string{
		"index": deep, "field": `{"version":"1.0.0","capabilities":[],"x":` + deep + `}`,
		"entry": `{"version":"1.0.0","capabilities":[{"name":"x","capability":"Does x.","triggers":[],"parameters":` + deep + `}]}`,
	} {
		opts := testOptions(t)
		register(t, openWith(t, opts), definition("x"), "one")
		writeTool(t, opts, "index.json", text)
		r := openWith(t, opts)
		if v := resolve(t, r, "x"); string(v.Source) != "one" || len(r.Notices()) != 1 {
			t.Errorf("%s: %q runs, notices %v", what, v.Source, r.Notices())
		}
		name := ".versions/x/" + strings.TrimSuffix(versionFile(t, opts, "x", "1.0.0"), ".ts") + ".json"
		writeTool(t, opts, name, deep)
		os.Remove(filepath.Join(opts.Workspace, "tools/x.ts"))
		var refused *RefusedError
		if _, err := r.Resolve(t.Context(), "x", nil); !errors.As(err, &refused) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
