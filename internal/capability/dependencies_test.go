package capability_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/capability"
	"github.com/tendril-agent/tendril/internal/sandbox"
	"github.com/tendril-agent/tendril/internal/store"
	"github.com/tendril-agent/tendril/internal/testkit"
)

// machine is one of several that share a workspace.
func machine(t *testing.T, ws string, served *testkit.Modules, policy capability.Policy) *capability.Registry {
	home := t.TempDir()
	db, err := store.Open(t.Context(), filepath.Join(home, "tendril.db"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := capability.Open(t.Context(), capability.Options{
		Workspace: ws, DB: db, Policy: policy, Checker: &sandbox.Runner{
			Deno: sandbox.Deno{Path: testkit.Deno(t)}, Home: home, Registries: sandbox.Registries{NPM: served.NPM(), JSR: served.JSR()},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); db.Close() })
	return r
}

func number(n string) testkit.Package {
	return testkit.Package{Version: n, Files: map[string]string{"mod.js": "export const version = '" + n + "';", "mod.d.ts": "export const version: string;"}}
}

const imports = `import { version } from "npm:numbers@1";
export default () => version;
`

func TestDependencies_LockedAndUpdated(t *testing.T) {
	served, ws := testkit.NewModules(t, nil), t.TempDir()
	served.Publish("numbers", number("1.0.0"))
	r := machine(t, ws, served, capability.Policy{})
	a, err := r.Register(t.Context(), definition(t, `{}`), imports, capability.Provenance{}, nil)
	if err != nil || len(a.Dependencies) != 1 || a.Dependencies[0].String() != "npm:numbers@1.0.0" {
		t.Fatalf("%+v, %v", a, err)
	}
	first, err := r.Resolve(t.Context(), "x", nil)
	if err != nil || first.Lock == nil {
		t.Fatalf("%+v, %v", first, err)
	}
	served.Publish("numbers", number("1.1.0"))

	// The same imports keep the lock, whatever is newer.
	if a, err = r.Register(t.Context(), definition(t, `{}`), imports+"// better\n", capability.Provenance{}, nil); err != nil || a.Dependencies[0].Version != "1.0.0" {
		t.Fatalf("%+v, %v", a, err)
	}
	if a, err = r.Update(t.Context(), "x", capability.Provenance{By: capability.ByHuman}, nil); err != nil || a.Dependencies[0].Version != "1.1.0" {
		t.Fatalf("%+v, %v", a, err)
	}
	if _, err = r.Update(t.Context(), "x", capability.Provenance{}, nil); !errors.Is(err, capability.ErrNothingToDo) {
		t.Errorf("a second update: %v", err)
	}
	d, err := r.Diff(t.Context(), "x", "", "")
	if err != nil || !strings.Contains(d.Dependencies, "-npm:numbers@1.0.0") || !strings.Contains(d.Dependencies, "+npm:numbers@1.1.0") {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err = r.Rollback(t.Context(), "x", a.Version[:2]+"0.0", capability.Provenance{By: capability.ByHuman}, nil); err != nil {
		t.Fatal(err)
	}
	info, err := r.Show(t.Context(), "x")
	if err != nil || len(info.Dependencies) != 1 || info.Dependencies[0].Version != "1.0.0" || len(info.Notes) > 0 {
		t.Errorf("%+v, %v", info, err)
	}
	verdicts, err := r.Verify(t.Context(), nil, nil)
	if err != nil || !verdicts[0].Passed {
		t.Errorf("%+v, %v", verdicts, err)
	}
}

// A workspace that comes from another machine brings its locks, and what they
// name is fetched as it was locked, or not at all.
func TestDependencies_OnAnotherMachine(t *testing.T) {
	served, ws := testkit.NewModules(t, nil), t.TempDir()
	served.Publish("numbers", number("1.0.0"))
	if _, err := machine(t, ws, served, capability.Policy{}).Register(t.Context(), definition(t, `{}`), imports, capability.Provenance{}, nil); err != nil {
		t.Fatal(err)
	}
	served.Publish("numbers", number("1.1.0"))
	v, err := machine(t, ws, served, capability.Policy{}).Resolve(t.Context(), "x", nil)
	if err != nil || !strings.Contains(string(v.Lock), `"numbers@1.0.0"`) {
		t.Fatalf("%+v, %v", v, err)
	}
	evil := number("1.0.0")
	evil.Files["mod.js"] = "export const version = 'pwned';"
	served.Publish("numbers", evil)
	_, err = machine(t, ws, served, capability.Policy{}).Resolve(t.Context(), "x", nil)
	var refusal *capability.Refusal
	if !errors.As(err, &refusal) || refusal.Step != capability.StepDependencies || !strings.Contains(err.Error(), "numbers") {
		t.Errorf("a changed package: %v", err)
	}
	served.Down(true)
	_, err = machine(t, ws, served, capability.Policy{}).Resolve(t.Context(), "x", nil)
	if !errors.As(err, &refusal) || !strings.Contains(err.Error(), "try again") {
		t.Errorf("without network: %v", err)
	}
}

func TestDependencies_Refused(t *testing.T) {
	served := testkit.NewModules(t, nil)
	served.Publish("numbers", number("1.0.0"))
	young := number("2.0.0")
	young.Published = time.Now().Add(-2 * time.Hour)
	served.Publish("young", young)
	for name, c := range map[string]struct {
		code   string
		policy capability.Policy
		want   string
	}{
		"missing":   {`import "npm:none@1";`, capability.Policy{}, "does not exist"},
		"young":     {`import "npm:young@2";`, capability.Policy{}, "less than a day ago"},
		"no policy": {imports, capability.Policy{Network: capability.NetworkDeny}, "switched off"},
		"ceiling":   {imports, capability.Policy{AllowedDomains: []string{"api.example.com"}}, "not among the hosts"},
	} {
		t.Run(name, func(t *testing.T) {
			r := machine(t, t.TempDir(), served, c.policy)
			_, err := r.Register(t.Context(), definition(t, `{}`), c.code, capability.Provenance{}, nil)
			var refusal *capability.Refusal
			if !errors.As(err, &refusal) || refusal.Step != capability.StepDependencies || !strings.Contains(err.Error(), c.want) || refusal.Hint == "" {
				t.Errorf("got %v", err)
			}
			if list, err := r.List(t.Context(), ""); err != nil || list.Total != 0 {
				t.Errorf("%+v, %v", list, err)
			}
		})
	}
}

// One in the format of the seed imports what it did before the gate was there.
func TestDependencies_OfASeed(t *testing.T) {
	served, ws := testkit.NewModules(t, nil), t.TempDir()
	served.Publish("numbers", number("1.0.0"))
	entry, _ := json.Marshal([]map[string]any{{
		"name": "x", "capability": "Does x.", "triggers": []string{"user asks", "user needs"}, "suppression": []string{},
		"tool_path": "x.ts", "created": "2026-01-01", "created_by": "model", "version": "1.0.0",
	}})
	writeFile(t, filepath.Join(ws, "tools", "index.json"), string(entry))
	writeFile(t, filepath.Join(ws, "tools", "x.ts"), `import { version } from "npm:numbers@1"; console.log(version);`)
	r := machine(t, ws, served, capability.Policy{})
	for _, when := range []string{"first", "again"} {
		v, err := r.Resolve(t.Context(), "x", nil)
		if err != nil || v.Lock == nil {
			t.Fatalf("%s: %+v, %v", when, v, err)
		}
		served.Publish("numbers", number("1.1.0"))
		if !strings.Contains(string(v.Lock), `"numbers@1.0.0"`) {
			t.Errorf("%s: %s", when, v.Lock)
		}
	}
}

func writeFile(t *testing.T, path, text string) {
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}
