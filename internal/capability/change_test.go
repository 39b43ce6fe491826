package capability

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tendril-agent/tendril/internal/sandbox"
)

func rollback(t testing.TB, r *Registry, name, to string) *Admission {
	t.Helper()
	a, err := r.Rollback(t.Context(), name, to, Provenance{By: ByHuman, Person: "ada"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// states are the versions of a capability with their states, newest first.
func states(t testing.TB, r *Registry, name string) string {
	t.Helper()
	infos, err := r.History(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, i := range infos {
		out = append(out, strings.TrimSpace(i.Version+" "+i.State))
	}
	return strings.Join(out, ", ")
}

func TestRollback(t *testing.T) {
	opts := testOptions(t)
	r := openWith(t, opts)
	first := register(t, r, definition("x"), "one")
	register(t, r, definition("x"), "two")
	a := rollback(t, r, "x", "")
	if v := resolve(t, r, "x"); a.Version != "1.2.0" || string(v.Source) != "one" || readTool(t, opts, "x.ts") != "one" {
		t.Errorf("%s: %q runs", a.Version, v.Source)
	}
	if a := rollback(t, r, "x", ""); a.Version != "1.3.0" || string(resolve(t, r, "x").Source) != "two" {
		t.Error("a rollback of a rollback does not undo it")
	}
	for _, to := range []string{"1.0.0", first.Hash[:6], first.Hash, "1.0.0-" + first.Hash[:12]} {
		if _, err := r.Rollback(t.Context(), "x", to, Provenance{}, nil); err != nil || string(resolve(t, r, "x").Source) != "one" {
			t.Errorf("%s: %v", to, err)
		}
		register(t, r, definition("x"), "two")
	}
	if got := states(t, r, "x"); !strings.HasPrefix(got, "1.11.0 active, 1.10.0, ") {
		t.Error(got)
	}
	for to, want := range map[string]error{"1.1.0": ErrNothingToDo, "9.9.9": ErrNoVersion, "f": ErrNoVersion, "../x": ErrNoVersion, "1.0.0-ffff": ErrNoVersion} {
		if _, err := r.Rollback(t.Context(), "x", to, Provenance{}, nil); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", to, err, want)
		}
	}
	var unknown *UnknownError
	if _, err := r.Rollback(t.Context(), "y", "", Provenance{}, nil); !errors.As(err, &unknown) {
		t.Error(err)
	}
	register(t, r, definition("once"), "1")
	if _, err := r.Rollback(t.Context(), "once", "", Provenance{}, nil); !errors.Is(err, ErrNothingToDo) {
		t.Error(err)
	}
}

// TestRollback_PassesTheGate when this machine has not admitted that version, and
// asks for hosts that nobody has allowed.
func TestRollback_PassesTheGate(t *testing.T) {
	opts := testOptions(t)
	r := openWith(t, opts)
	def := definition("x")
	def.Permissions = &Permissions{Net: []string{"example.com"}}
	register(t, r, def, "bad now")
	register(t, r, definition("x"), "two")
	opts.DB = openDB(t, filepath.Join(t.TempDir(), "another.db"))
	refuse := true
	opts.Checker = checker{check: func(source, _ string) ([]sandbox.Diagnostic, error) {
		if refuse && source == "bad now" {
			return []sandbox.Diagnostic{{Line: 1, Column: 1, Message: "no"}}, nil
		}
		return nil, nil
	}}
	opts.Policy.Network = NetworkAsk
	r = openWith(t, opts)
	var refusal *Refusal
	if _, err := r.Rollback(t.Context(), "x", "", Provenance{}, nil); !errors.As(err, &refusal) || string(resolve(t, r, "x").Source) != "two" {
		t.Errorf("the gate said no: %v", err)
	}
	refuse = false
	if a := rollback(t, r, "x", ""); a.Status != StatusPending || string(resolve(t, r, "x").Source) != "two" {
		t.Errorf("nobody has allowed the host: %+v", a)
	}
	if _, err := r.Approve(t.Context(), "x"); err != nil || string(resolve(t, r, "x").Source) != "bad now" {
		t.Error(err)
	}
}

func TestArchive(t *testing.T) {
	opts := testOptions(t)
	opts.Max = 2
	r := openWith(t, opts)
	register(t, r, definition("x"), "one")
	register(t, r, definition("y"), "1")
	if err := r.Archive(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	if err := r.Archive(t.Context(), "x"); !errors.Is(err, ErrNothingToDo) {
		t.Error(err)
	}
	var archived *ArchivedError
	if _, err := r.Resolve(t.Context(), "x", nil); !errors.As(err, &archived) || !strings.Contains(err.Error(), "tendril capability restore x") {
		t.Error(err)
	}
	if got := names(list(t, r, "x")); !slices.Equal(got, []string{"y"}) {
		t.Errorf("listed: %v", got)
	}
	if active, err := r.Active(t.Context()); err != nil || len(active) != 1 {
		t.Errorf("active: %v, %v", active, err)
	}
	if kept, err := r.Archived(t.Context()); err != nil || len(kept) != 1 || kept[0].Status != StatusArchived {
		t.Errorf("archived: %v, %v", kept, err)
	}
	if readTool(t, opts, "x.ts") != "one" {
		t.Error("the file is gone")
	}
	register(t, r, definition("z"), "1") // an archived one takes no place
	if _, err := r.Restore(t.Context(), "x", Provenance{}, nil); err == nil || !strings.Contains(err.Error(), "maxCapabilities") {
		t.Errorf("restored over the limit: %v", err)
	}
	if err := r.Archive(t.Context(), "z"); err != nil {
		t.Fatal(err)
	}
	done, err := r.Restore(t.Context(), "x", Provenance{}, nil)
	if err != nil || done.What != RestoredArchived || done.Version != "1.0.0" || string(resolve(t, r, "x").Source) != "one" {
		t.Errorf("%+v, %v", done, err)
	}
	a, err := r.Register(t.Context(), definition("z"), "2", Provenance{}, nil)
	if err == nil || !strings.Contains(err.Error(), "maxCapabilities") {
		t.Errorf("an archived one came back over the limit: %+v, %v", a, err)
	}
	if err := r.Archive(t.Context(), "y"); err != nil {
		t.Fatal(err)
	}
	if a := register(t, r, definition("z"), "2"); !strings.Contains(strings.Join(a.Warnings, " "), "was archived") {
		t.Errorf("no word of it: %v", a.Warnings)
	}
	if err := r.Archive(t.Context(), "z"); err != nil {
		t.Fatal(err)
	}
	writeTool(t, opts, "z.ts", "edited")
	if notes, err := r.Drift(t.Context()); err != nil || len(notes) > 0 { // what does not run does not differ from what runs
		t.Errorf("%q, %v", notes, err)
	}
	if a, err := r.Accept(t.Context(), "z", Acceptance{}, nil); err != nil || !strings.Contains(strings.Join(a.Warnings, " "), "was archived") {
		t.Errorf("no word of it: %+v, %v", a, err)
	}
	if err := r.Archive(t.Context(), "z"); err != nil {
		t.Fatal(err)
	}
	if a := rollback(t, r, "z", "1.0.0"); !strings.Contains(strings.Join(a.Warnings, " "), "was archived") {
		t.Errorf("no word of it: %v", a.Warnings)
	}
}

func TestDelete(t *testing.T) {
	opts := testOptions(t)
	r := openWith(t, opts)
	writeTool(t, opts, "index.json", `{"version":"1.0.0","team":"blue","capabilities":[]}`)
	register(t, r, definition("x"), "one")
	register(t, r, definition("x"), "two")
	index := strings.Replace(readTool(t, opts, "index.json"), `"name": "x",`, `"name": "x", "owner": "ada",`, 1)
	writeTool(t, opts, "index.json", index)
	writeTool(t, opts, "x.ts", "a person's work")
	if err := r.Delete(t.Context(), "x", Provenance{By: ByHuman, Person: "ada"}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(opts.Workspace, "tools/x.ts")); err == nil || strings.Contains(readTool(t, opts, "index.json"), `"x"`) {
		t.Error("it is still there")
	}
	var unknown *UnknownError
	if _, err := r.Resolve(t.Context(), "x", nil); !errors.As(err, &unknown) || !strings.Contains(err.Error(), "tendril capability restore x") {
		t.Error(err)
	}
	if !keptSomewhere(r, "a person's work") {
		t.Error("a person's text is lost")
	}
	if got := states(t, r, "x"); got != "1.3.0 deleted, 1.2.0, 1.1.0, 1.0.0" {
		t.Error(got)
	}
	if gone, err := r.Archived(t.Context()); err != nil || len(gone) != 1 || gone[0].Status != VersionDeleted || gone[0].Capability != "Does x." {
		t.Errorf("deleted: %+v, %v", gone, err)
	}
	for range 2 { // a lost index does not bring it back
		os.Remove(filepath.Join(opts.Workspace, "tools/index.json"))
		r = openWith(t, opts)
		if l := list(t, r, ""); l.Total != 0 {
			t.Errorf("back: %v", names(l))
		}
	}
	done, err := r.Restore(t.Context(), "x", Provenance{By: ByHuman}, nil)
	if err != nil || done.What != RestoredDeleted || done.Version != "1.4.0" {
		t.Fatalf("%+v, %v", done, err)
	}
	if v := resolve(t, r, "x"); string(v.Source) != "two" || readTool(t, opts, "x.ts") != "two" || !strings.Contains(readTool(t, opts, "index.json"), `"owner": "ada"`) {
		t.Errorf("%q runs; index %s", v.Source, readTool(t, opts, "index.json"))
	}
	if err := r.Delete(t.Context(), "x", Provenance{By: ByHuman}); err != nil {
		t.Fatal(err)
	}
	if a := register(t, r, definition("x"), "new"); a.Version != "1.6.0" {
		t.Errorf("a new one of the name is %s", a.Version)
	}
	if err := r.Delete(t.Context(), "y", Provenance{}); !errors.As(err, &unknown) {
		t.Error(err)
	}
}

// A capability in the seed's format, which has no versions, is deleted and comes
// back as it was.
func TestDelete_SeedWorkspace(t *testing.T) {
	for _, ran := range []bool{false, true} {
		opts := testOptions(t)
		writeTool(t, opts, "index.json", seedIndex("x"))
		writeTool(t, opts, "x.ts", "one")
		r := openWith(t, opts)
		if ran {
			resolve(t, r, "x")
		}
		if err := r.Delete(t.Context(), "x", Provenance{By: ByHuman}); err != nil {
			t.Fatal(err)
		}
		if l := list(t, openWith(t, opts), ""); l.Total != 0 {
			t.Errorf("still there: %v", names(l))
		}
		if done, err := r.Restore(t.Context(), "x", Provenance{By: ByHuman}, nil); err != nil || done.What != RestoredDeleted {
			t.Fatalf("%+v, %v", done, err)
		}
		if v := resolve(t, r, "x"); string(v.Source) != "one" || readTool(t, opts, "x.ts") != "one" || strings.Contains(readTool(t, opts, "index.json"), "sha256") {
			t.Errorf("%q runs; index %s", v.Source, readTool(t, opts, "index.json"))
		}
		if a := register(t, r, definition("x"), "two"); a.Version == "1.0.0" {
			t.Error("its number was given again")
		}
	}
}

func TestRestore_Files(t *testing.T) {
	opts := testOptions(t)
	r := openWith(t, opts)
	def := definition("x")
	def.Parameters = []byte(`{"type":"object"}`)
	register(t, r, def, "one")
	if _, err := r.Restore(t.Context(), "x", Provenance{}, nil); !errors.Is(err, ErrNothingToDo) {
		t.Error(err)
	}
	writeTool(t, opts, "x.ts", "a person's work")
	done, err := r.Restore(t.Context(), "x", Provenance{}, nil)
	if err != nil || done.What != RestoredFile || done.Kept != "1.1.0" || readTool(t, opts, "x.ts") != "one" || !keptSomewhere(r, "a person's work") {
		t.Errorf("%+v, %v", done, err)
	}
	os.Remove(filepath.Join(opts.Workspace, "tools/x.ts"))
	if _, err := r.Restore(t.Context(), "x", Provenance{}, nil); err != nil || readTool(t, opts, "x.ts") != "one" {
		t.Error(err)
	}
	index := readTool(t, opts, "index.json")
	writeTool(t, opts, "index.json", strings.Replace(index, def.Capability, "Does something else.", 1))
	if info, err := r.Show(t.Context(), "x"); err != nil || len(info.Notes) != 1 || info.Definition.Capability != def.Capability {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := r.Restore(t.Context(), "x", Provenance{}, nil); err != nil || readTool(t, opts, "index.json") != index {
		t.Errorf("%v\n%s", err, readTool(t, opts, "index.json"))
	}
}

func TestAccept_EntryAndOverride(t *testing.T) {
	opts := testOptions(t)
	bad := true
	opts.Checker = checker{check: func(source, _ string) ([]sandbox.Diagnostic, error) {
		if bad && source == "ill typed" {
			return []sandbox.Diagnostic{{Line: 1, Column: 1, Message: "no"}}, nil
		}
		return nil, nil
	}, imports: func(source string) ([]sandbox.Import, error) {
		if source == "imports" {
			return []sandbox.Import{{Specifier: "./y.ts"}}, nil
		}
		return nil, nil
	}}
	r := openWith(t, opts)
	def := definition("x")
	def.Parameters = []byte(`{"type":"object"}`)
	register(t, r, def, "one")
	writeTool(t, opts, "index.json", strings.Replace(readTool(t, opts, "index.json"), def.Capability, "Does something else.", 1))
	a, err := r.Accept(t.Context(), "x", Acceptance{By: Provenance{Person: "ada"}}, nil)
	if err != nil || a.Version != "1.1.0" {
		t.Fatalf("%+v, %v", a, err)
	}
	info, err := r.Show(t.Context(), "x")
	if err != nil || info.Definition.Capability != "Does something else." || string(info.Definition.Parameters) == "" || info.Versions[1].Person != "ada" || info.Versions[1].CreatedBy != ByHuman {
		t.Errorf("%+v, %v", info, err)
	}
	var refusal *Refusal
	for text, override := range map[string]bool{"ill typed": false, "imports": true} {
		writeTool(t, opts, "x.ts", text)
		if _, err := r.Accept(t.Context(), "x", Acceptance{Override: override}, nil); !errors.As(err, &refusal) {
			t.Errorf("%s was accepted: %v", text, err)
		}
	}
	writeTool(t, opts, "x.ts", "ill typed")
	if a, err = r.Accept(t.Context(), "x", Acceptance{Override: true}, nil); err != nil || !a.Evidence.Overridden || len(a.Warnings) == 0 {
		t.Fatalf("%+v, %v", a, err)
	}
	if v := resolve(t, r, "x"); string(v.Source) != "ill typed" {
		t.Errorf("%q runs", v.Source)
	}
	verdicts, err := r.Verify(t.Context(), nil, nil) // it stays overridden
	if err != nil || len(verdicts) != 1 || !verdicts[0].Passed || !verdicts[0].Evidence.Overridden {
		t.Errorf("%+v, %v", verdicts, err)
	}
	opts.DB = openDB(t, filepath.Join(t.TempDir(), "another.db"))
	if _, err := openWith(t, opts).Resolve(t.Context(), "x", nil); err == nil {
		t.Error("what one person took runs on another's machine")
	}
}

// TestVerify: a version that the gate refuses now does not run any more.
func TestVerify(t *testing.T) {
	opts := testOptions(t)
	refuse := false
	opts.Checker = checker{check: func(source, _ string) ([]sandbox.Diagnostic, error) {
		if refuse && source == "one" {
			return []sandbox.Diagnostic{{Line: 1, Column: 1, Message: "no"}}, nil
		}
		return nil, nil
	}}
	r := openWith(t, opts)
	register(t, r, definition("x"), "zero")
	register(t, r, definition("x"), "one")
	register(t, r, definition("y"), "1")
	writeTool(t, opts, ".versions/x/"+versionFile(t, opts, "x", "1.0.0"), "changed")
	verdicts, err := r.Verify(t.Context(), nil, nil)
	if err != nil || len(verdicts) != 2 || !verdicts[0].Passed || len(verdicts[0].Damaged) != 1 || !verdicts[1].Passed {
		t.Errorf("%+v, %v", verdicts, err)
	}
	refuse = true
	var steps []string
	verdicts, err = r.Verify(t.Context(), []string{"x"}, func(_ string, s Step) { steps = append(steps, s.Name) })
	if err != nil || len(verdicts) != 1 || verdicts[0].Passed || len(steps) == 0 {
		t.Errorf("%+v, %v, %v", verdicts, err, steps)
	}
	var refused *RefusedError
	if _, err := r.Resolve(t.Context(), "x", nil); !errors.As(err, &refused) {
		t.Errorf("it runs: %v", err)
	}
	refuse = false
	resolve(t, r, "x")
	var unknown *UnknownError
	if _, err := r.Verify(t.Context(), []string{"z"}, nil); !errors.As(err, &unknown) {
		t.Error(err)
	}
}

func TestDiff(t *testing.T) {
	opts := testOptions(t)
	r := openWith(t, opts)
	def := definition("x")
	register(t, r, def, "one\n")
	if _, err := r.Diff(t.Context(), "x", "", ""); !errors.Is(err, ErrNothingToDo) {
		t.Errorf("there is nothing before: %v", err)
	}
	def.Capability = "Does more."
	register(t, r, def, "two\n")
	check := func(from, to, source, definition string) {
		t.Helper()
		d, err := r.Diff(t.Context(), "x", from, to)
		if err != nil || !strings.Contains(d.Source, source) || !strings.Contains(d.Definition, definition) || (source == "") != (d.Source == "") {
			t.Errorf("%s to %s: %s, %v", from, to, encode(d), err)
		}
	}
	check("", "", "-one\n+two\n", `+  "capability": "Does more."`)
	check("1.1.0", "1.0.0", "-two\n+one\n", `-  "capability": "Does more."`)
	check("1.1.0", "", "", "")
	writeTool(t, opts, "x.ts", "three\n")
	check("", "", "+++ tools/x.ts\n", "")
	check("1.0.0", "file", "-one\n+three\n", "Does more.")
	for _, bad := range [][2]string{{"9.9.9", ""}, {"pending", ""}, {"", "9.9.9"}} {
		if d, err := r.Diff(t.Context(), "x", bad[0], bad[1]); err == nil {
			t.Errorf("%v: %s", bad, encode(d))
		}
	}
	if err := r.Delete(t.Context(), "x", Provenance{}); err != nil {
		t.Fatal(err)
	}
	check("1.0.0", "1.1.0", "-one\n+two\n", "")
	if d, err := r.Diff(t.Context(), "x", "", ""); err == nil {
		t.Errorf("of a deleted one: %s", encode(d))
	}
}

// TestAccept_EditedMeanwhile: what a person writes while the gate looks at an
// earlier text stays where it is.
func TestAccept_EditedMeanwhile(t *testing.T) {
	opts := testOptions(t)
	opts.Checker = checker{check: func(source, _ string) ([]sandbox.Diagnostic, error) {
		if source == "two" {
			writeTool(t, opts, "x.ts", "three")
		}
		return nil, nil
	}}
	r := openWith(t, opts)
	register(t, r, definition("x"), "one")
	writeTool(t, opts, "x.ts", "two")
	a, err := r.Accept(t.Context(), "x", Acceptance{}, nil)
	if err != nil || a.Version != "1.1.0" || !strings.Contains(strings.Join(a.Warnings, " "), "changed again meanwhile") {
		t.Errorf("%+v, %v", a, err)
	}
	if v := resolve(t, r, "x"); string(v.Source) != "two" || readTool(t, opts, "x.ts") != "three" {
		t.Errorf("%q runs, the file is %q", v.Source, readTool(t, opts, "x.ts"))
	}
}

// TestUnkept_IsKeptAgain: version files that did not travel along are written
// again by the first run, before an edit could lose them.
func TestUnkept_IsKeptAgain(t *testing.T) {
	for _, admitted := range []bool{true, false} {
		opts := testOptions(t)
		register(t, openWith(t, opts), definition("x"), "one")
		os.RemoveAll(filepath.Join(opts.Workspace, "tools/.versions"))
		if !admitted {
			opts.DB = openDB(t, filepath.Join(t.TempDir(), "another.db"))
		}
		r := openWith(t, opts)
		resolve(t, r, "x")
		writeTool(t, opts, "x.ts", "edited")
		if v := resolve(t, r, "x"); string(v.Source) != "one" || states(t, r, "x") != "1.0.0 active" {
			t.Errorf("%q runs; %s", v.Source, states(t, r, "x"))
		}
	}
}

// TestRebuild_MixedWorkspace: ours, archived ones and those in the seed's format
// that ran here are all in an index that is rebuilt.
func TestRebuild_MixedWorkspace(t *testing.T) {
	for _, damage := range []string{"", "[]", `{"capabilities":null}`, "missing"} {
		opts := testOptions(t)
		writeTool(t, opts, "index.json", seedIndex("seed"))
		writeTool(t, opts, "seed.ts", "1")
		r := openWith(t, opts)
		resolve(t, r, "seed")
		register(t, r, definition("ours"), "2")
		if damage == "missing" {
			os.Remove(filepath.Join(opts.Workspace, "tools/index.json"))
		} else {
			writeTool(t, opts, "index.json", damage)
		}
		for name, want := range map[string]string{"seed": "1", "ours": "2"} {
			if v := resolve(t, openWith(t, opts), name); string(v.Source) != want {
				t.Errorf("%q: %s is %q", damage, name, v.Source)
			}
		}
	}
}
