package capability

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// seedEntry is an entry as the original Tendril knows it; it writes nothing else.
type seedEntry struct {
	Name        string   `json:"name"`
	Capability  string   `json:"capability"`
	Triggers    []string `json:"triggers"`
	Suppression []string `json:"suppression"`
	ToolPath    string   `json:"tool_path"`
	Created     string   `json:"created"`
	CreatedBy   string   `json:"created_by"`
	Version     string   `json:"version"`
}

// seedRegisters does what the original does when it registers something: it reads
// the index, writes tools/<name>.ts, puts the entry in the place of that of its
// name, and writes the index with the fields that it knows.
func seedRegisters(t *testing.T, opts Options, name, code string) {
	t.Helper()
	var ix struct {
		Version      string      `json:"version"`
		Capabilities []seedEntry `json:"capabilities"`
	}
	if err := json.Unmarshal([]byte(readTool(t, opts, "index.json")), &ix); err != nil {
		t.Fatalf("the original cannot read the index: %v", err)
	}
	for _, e := range ix.Capabilities {
		if e.Name == "" || e.Capability == "" || e.Triggers == nil || e.Suppression == nil || e.ToolPath != e.Name+".ts" || e.Version == "" {
			t.Fatalf("the original cannot use the entry %+v", e)
		}
		if _, err := os.Stat(filepath.Join(opts.Workspace, "tools", e.ToolPath)); err != nil {
			t.Fatal(err)
		}
	}
	entry := seedEntry{name, "Seed " + name + ".", []string{"t"}, []string{}, name + ".ts", "2026-04-12", "model", "1.0.0"}
	at := slices.IndexFunc(ix.Capabilities, func(e seedEntry) bool { return e.Name == name })
	if at < 0 {
		ix.Capabilities = append(ix.Capabilities, entry)
	} else {
		ix.Capabilities[at] = entry
	}
	writeTool(t, opts, name+".ts", code)
	data, err := json.MarshalIndent(ix, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	writeTool(t, opts, "index.json", string(data))
}

// TestSeed_BothWays: the original and ours use one workspace in turns.
func TestSeed_BothWays(t *testing.T) {
	opts := testOptions(t)
	r := openWith(t, opts)
	def := definition("x")
	def.Parameters = json.RawMessage(`{"type":"object","properties":{"n":{"type":"number"}}}`)
	def.Permissions = &Permissions{Read: []string{"data"}, Write: []string{}}
	register(t, r, def, "one")
	seedRegisters(t, opts, "y", "seed y")

	v := resolve(t, r, "x") // its fields were dropped, and it is what it was
	if string(v.Source) != "one" || len(v.Parameters) == 0 || !slices.Equal(v.Grant.Read, []string{"data"}) || v.Version != "1.0.0" {
		t.Errorf("%+v", v)
	}
	if y := resolve(t, r, "y"); string(y.Source) != "seed y" {
		t.Errorf("%q runs", y.Source)
	}
	info, err := r.Show(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	wantNote(t, info.Notes, "the entry of x in tools/index.json was changed outside (sha256)")
	if mended, left, err := r.Fix(t.Context()); err != nil || len(mended) != 1 || len(left) != 0 {
		t.Errorf("mended %s, left %s, %v", encode(mended), encode(left), err)
	}
	if entry := readTool(t, opts, "index.json"); !strings.Contains(entry, v.Hash) || !strings.Contains(entry, `"permissions"`) {
		t.Errorf("not mended: %s", entry)
	}

	seedRegisters(t, opts, "x", "seed's x") // it replaces ours, by its rules
	if v := resolve(t, r, "x"); string(v.Source) != "one" {
		t.Errorf("text that was not accepted runs: %q", v.Source)
	}
	d, err := r.Diff(t.Context(), "x", "", "")
	if err != nil || !strings.Contains(d.Source, "+seed's x") || !strings.Contains(d.Definition, `"Seed x."`) || strings.Contains(d.Definition, `-  "permissions"`) {
		t.Errorf("%s, %v", encode(d), err)
	}
	a, err := r.Accept(t.Context(), "x", Acceptance{}, nil)
	if err != nil || a.Version != "1.1.0" {
		t.Fatalf("%+v, %v", a, err)
	}
	if v := resolve(t, r, "x"); string(v.Source) != "seed's x" || len(v.Parameters) == 0 || !slices.Equal(v.Grant.Read, []string{"data"}) {
		t.Errorf("accepting has lost something: %+v", v)
	}

	seedRegisters(t, opts, "y", "seed's other y") // one that it has made itself
	if v := resolve(t, r, "y"); string(v.Source) != "seed y" {
		t.Errorf("text that was not accepted runs: %q", v.Source)
	}
	if _, err := r.Accept(t.Context(), "y", Acceptance{}, nil); err != nil || string(resolve(t, r, "y").Source) != "seed's other y" {
		t.Error(err)
	}

	if err := r.Delete(t.Context(), "x", Provenance{By: ByHuman}); err != nil {
		t.Fatal(err)
	}
	seedRegisters(t, opts, "x", "seed makes x anew")
	if v := resolve(t, r, "x"); string(v.Source) != "seed makes x anew" || v.Version != "1.3.0" {
		t.Errorf("%s: %q runs", v.Version, v.Source)
	}
}

// TestSeed_NetworkDoesNotWiden: an entry that lost its fields grants no network
// that the version did not declare, even in a workspace whose old capabilities
// have it.
func TestSeed_NetworkDoesNotWiden(t *testing.T) {
	opts := testOptions(t)
	r := openWith(t, opts)
	register(t, r, definition("x"), "await fetch('https://example.com')")
	if err := r.ApproveWorkspace(t.Context()); err != nil {
		t.Fatal(err)
	}
	seedRegisters(t, opts, "y", "await fetch('https://example.com')")
	if v := resolve(t, r, "x"); v.Grant.Net != nil {
		t.Errorf("x reaches %v", v.Grant.Net)
	}
	if v := resolve(t, r, "y"); len(v.Grant.Net) == 0 {
		t.Error("y has lost its network")
	}
}
