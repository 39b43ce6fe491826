//go:build linux

package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tendril-agent/tendril/internal/host"
	"github.com/tendril-agent/tendril/internal/testkit"
)

// seedWorkspace puts a capability greet, in the original's format, into the
// workspace.
func (s *sandboxed) seedWorkspace() {
	s.t.Helper()
	s.tool("index.json", `{"version":"1.0.0","capabilities":[{"name":"greet","capability":"Greets.","triggers":["user greets","user says hello"],`+
		`"suppression":[],"tool_path":"greet.ts","created":"2026-04-11","created_by":"model","version":"1.0.0"}]}`)
	s.tool("greet.ts", `export default () => "hello";`+"\n")
}

// tool writes a file of tools/.
func (s *sandboxed) tool(name, text string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Join(s.ws, "tools"), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.ws, "tools", name), []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sandboxed) readTool(name string) string {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.ws, "tools", name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}

// TestHost_Versions: what a person decides about capabilities, through the API.
func TestHost_Versions(t *testing.T) {
	t.Parallel()
	s := newSandboxed(t, testkit.NewProvider(t))
	s.seedWorkspace()
	c := s.host()
	c.ready()
	const at = "/api/capabilities/greet"
	fails := func(method, path string, body any, status int, code string) {
		t.Helper()
		var p host.Problem
		got, text := c.call(method, path, body, nil)
		_ = json.Unmarshal([]byte(text), &p)
		if got != status || p.Code != code {
			t.Errorf("%s %s: %d %s, want %d %s", method, path, got, text, status, code)
		}
	}
	var run host.CapabilityRun
	c.must("POST", at+"/run", map[string]any{}, &run)
	s.tool("greet.ts", `export default () => "good day";`+"\n")
	var d host.CapabilityDiff
	c.must("GET", at+"/diff", nil, &d)
	if !strings.Contains(d.Source, `+export default () => "good day";`) || d.Definition != "" || d.From.Version != "1.0.0" || d.To.Label != "tools/greet.ts" {
		t.Errorf("%+v", d)
	}
	var a host.CapabilityAdmission
	c.must("POST", at+"/accept", map[string]any{}, &a)
	fails("POST", at+"/accept", map[string]any{}, 409, "unchanged")
	c.must("POST", at+"/run", map[string]any{}, &run)
	if a.Version != "1.1.0" || len(a.Gate) != 5 || run.Output != "good day" {
		t.Errorf("%+v, %+v", a, run)
	}
	s.tool("greet.ts", `const n: string = 1; export default () => n;`)
	fails("POST", at+"/accept", map[string]any{}, 422, "refused")
	c.must("POST", at+"/accept", map[string]any{"override": true}, &a)
	if len(a.Warnings) == 0 {
		t.Errorf("%+v", a)
	}
	c.must("POST", at+"/rollback", map[string]any{"version": "1.0.0"}, &a)
	if a.Version != "1.3.0" {
		t.Errorf("%+v", a)
	}
	fails("POST", at+"/rollback", map[string]any{"version": "9.0.0"}, 404, "no_version")
	var h host.CapabilityHistory
	c.must("GET", at+"/history", nil, &h)
	if len(h.Versions) != 4 || h.Versions[0].State != "active" || h.Versions[0].CreatedBy != "human" || h.Versions[0].Person == "" || h.Versions[2].Runs != 1 || h.Versions[3].CreatedBy != "model" {
		t.Errorf("%+v", h)
	}

	c.must("POST", at+"/archive", map[string]any{}, nil)
	fails("POST", at+"/archive", map[string]any{}, 409, "unchanged")
	fails("POST", at+"/run", map[string]any{}, 409, "archived")
	var list host.CapabilityList
	var away host.ArchivedList
	c.must("GET", "/api/capabilities", nil, &list)
	c.must("GET", "/api/registry/archived", nil, &away)
	if list.Total != 0 || len(away.Capabilities) != 1 || away.Capabilities[0].Name != "greet" {
		t.Errorf("%+v, %+v", list, away)
	}
	var back host.CapabilityRestored
	c.must("POST", at+"/restore", map[string]any{}, &back)
	if back.What != "archived" {
		t.Errorf("%+v", back)
	}
	c.must("DELETE", at, nil, nil)
	fails("GET", at, nil, 404, "deleted")
	fails("DELETE", "/api/capabilities/none", nil, 404, "not_found")
	c.must("POST", at+"/restore", map[string]any{}, &back)
	if back.What != "deleted" || back.Version != "1.5.0" || s.readTool("greet.ts") != `export default () => "hello";`+"\n" {
		t.Errorf("%+v", back)
	}
	for _, name := range []string{"..%2Fgreet", "%2Fetc%2Fpasswd", "index.json", "a%00b"} {
		for path, method := range map[string]string{"/history": "GET", "/diff": "GET", "/rollback": "POST", "/accept": "POST", "/restore": "POST", "/archive": "POST", "": "DELETE"} {
			if status, text := c.call(method, "/api/capabilities/"+name+path, map[string]any{}, nil); status != 404 || strings.Contains(text, s.ws) {
				t.Errorf("%s %s%s: %d %s", method, name, path, status, text)
			}
		}
	}
	c.done()
}

// TestHost_RegistryHealth: what is wrong is told, mended, decided.
func TestHost_RegistryHealth(t *testing.T) {
	t.Parallel()
	s := newSandboxed(t, testkit.NewProvider(t))
	s.seedWorkspace()
	c := s.host()
	c.ready()
	var found host.Findings
	c.must("GET", "/api/registry/findings", nil, &found)
	if len(found.Findings) == 0 || found.Findings[0].Severity != "note" {
		t.Errorf("%+v", found)
	}
	var v host.Verdicts
	c.must("POST", "/api/registry/verify", map[string]any{}, &v)
	if len(v.Verdicts) != 1 || !v.Verdicts[0].Passed || len(v.Verdicts[0].Gate) != 5 {
		t.Errorf("%+v", v)
	}
	if err := os.Remove(filepath.Join(s.ws, "tools/greet.ts")); err != nil {
		t.Fatal(err)
	}
	var mended host.Fixed
	c.must("POST", "/api/registry/fix", map[string]any{}, &mended)
	if len(mended.Mended) == 0 || s.readTool("greet.ts") == "" {
		t.Errorf("%+v", mended)
	}
	index := s.readTool("index.json")
	s.tool("index.json", "<<<<<<< HEAD\n"+index+"\n=======\n"+strings.Replace(index, "Greets.", "Greets all.", 1)+"\n>>>>>>> feature\n")
	if status, text := c.call("POST", "/api/registry/resolve", map[string]any{}, nil); status != 409 || !strings.Contains(text, `"undecided"`) || !strings.Contains(text, "greet is 1.0.0 in ours") {
		t.Errorf("%d %s", status, text)
	}
	var resolved host.ResolvedConflict
	c.must("POST", "/api/registry/resolve", map[string]any{"choices": []map[string]string{{"name": "greet", "take": "theirs"}}}, &resolved)
	if len(resolved.Resolved) != 1 || !strings.Contains(s.readTool("index.json"), "Greets all.") {
		t.Errorf("%+v", resolved)
	}
	c.done()
}

// TestACP_Capabilities: an editor shows what differs, and accepts or takes back
// what a person wrote.
func TestACP_Capabilities(t *testing.T) {
	t.Parallel()
	s := newSandboxed(t, testkit.NewProvider(t))
	s.seedWorkspace()
	c := s.acp("--workspace", s.ws, "--model", "demo")
	c.begin()
	ask := func(method string, params any, result any) acpMessage {
		t.Helper()
		m := c.answer(c.request(method, params))
		var whole struct {
			Result json.RawMessage `json:"result"`
		}
		if err := json.Unmarshal([]byte(m.raw), &whole); err != nil {
			t.Fatal(err)
		}
		if m.Error == nil {
			if err := json.Unmarshal(whole.Result, result); err != nil {
				t.Fatal(err)
			}
		}
		return m
	}
	greet := map[string]any{"name": "greet"}
	var accepted struct {
		Admission *struct{ Version string }
		Refusal   *struct {
			Step        string
			Diagnostics []struct{ Line, Column int }
		}
	}
	ask("_tendril/capability/accept", greet, &accepted)
	if accepted.Admission == nil || accepted.Admission.Version != "1.0.0" && accepted.Admission.Version != "1.1.0" {
		t.Errorf("%+v", accepted)
	}
	s.tool("greet.ts", "const n: string = 1;\nexport default () => n;\n")
	var list struct {
		Capabilities []struct {
			Name, Path string
			Notes      []string
		}
	}
	ask("_tendril/capabilities", map[string]any{}, &list)
	if len(list.Capabilities) != 1 || len(list.Capabilities[0].Notes) != 1 || filepath.Base(list.Capabilities[0].Path) != "greet.ts" {
		t.Errorf("%+v", list)
	}
	var d struct{ Source string }
	ask("_tendril/capability/diff", greet, &d)
	if !strings.Contains(d.Source, "+const n: string = 1;") {
		t.Errorf("%+v", d)
	}
	accepted.Admission = nil
	ask("_tendril/capability/accept", greet, &accepted)
	if accepted.Admission != nil || accepted.Refusal == nil || accepted.Refusal.Step != "types" || accepted.Refusal.Diagnostics[0].Line != 1 {
		t.Errorf("%+v", accepted)
	}
	var restored struct{ What, Kept string }
	ask("_tendril/capability/restore", greet, &restored)
	if restored.What != "file" || restored.Kept == "" || !strings.Contains(s.readTool("greet.ts"), "hello") {
		t.Errorf("%+v", restored)
	}
	for kind, params := range map[string]any{"unchanged": greet, "unknown": map[string]any{"name": "../x"}} {
		if m := ask("_tendril/capability/restore", params, &restored); m.Error == nil || m.Error.Data.Kind != kind {
			t.Errorf("%s: %s", kind, m.raw)
		}
	}
	for _, params := range []any{nil, map[string]any{}, map[string]any{"name": 1}, []int{1}} {
		if m := ask("_tendril/capability/accept", params, &restored); m.Error == nil || m.Error.Code != -32602 {
			t.Errorf("%v: %s", params, m.raw)
		}
	}
	c.done()
}
