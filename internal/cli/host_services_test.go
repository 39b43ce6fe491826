//go:build linux

package cli_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/host"
	"github.com/tendril-agent/tendril/internal/testkit"
)

// keyedServer answers as a compatible endpoint does that wants the key canary:
// with its models, and with replies of the provider behind it.
func keyedServer(t *testing.T, canary string, provider *testkit.Provider, public bool) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		allowed := r.Header.Get("Authorization") == "Bearer "+canary
		switch {
		case r.Method == "GET" && r.URL.Path == "/v1/models" && (allowed || public):
			fmt.Fprint(w, `{"data":[{"id":"scripted"},{"id":"other"}]}`)
		case !allowed:
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"message":"Incorrect API key provided: %s"}}`, r.Header.Get("Authorization"))
		default:
			req, _ := http.NewRequestWithContext(r.Context(), r.Method, provider.URL+r.URL.Path, r.Body)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			defer resp.Body.Close()
			w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
			w.WriteHeader(resp.StatusCode)
			_, _ = bufio.NewReader(resp.Body).WriteTo(w)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// bare is a home in which nothing is set up but Deno.
func bare(t *testing.T) *sandboxed {
	t.Helper()
	s := newSandboxed(t, testkit.NewProvider(t))
	if err := os.Remove(filepath.Join(s.home, "config.json")); err != nil {
		t.Fatal(err)
	}
	s.env = slices.DeleteFunc(s.env, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasSuffix(name, "_API_KEY") || strings.HasPrefix(name, "AWS_")
	})
	return s
}

func settings(changes ...any) map[string]any {
	var list []any
	for i := 0; i < len(changes); i += 2 {
		list = append(list, map[string]any{"path": changes[i], "value": changes[i+1]})
	}
	return map[string]any{"changes": list}
}

func (c *hostClient) overview() host.State {
	c.t.Helper()
	var s host.State
	c.must("GET", "/api/state", nil, &s)
	return s
}

// TestHost_FirstStart: nothing is there; step by step a prompt works, and the
// key is nowhere but in the file of secrets.
func TestHost_FirstStart(t *testing.T) {
	t.Parallel()
	p := testkit.NewProvider(t, testkit.OpenAIText("hello"), testkit.OpenAIText("it works"))
	server := keyedServer(t, plainCanary, p, false)
	s := bare(t)
	c := s.host()
	c.ready()
	w := c.record()
	eventually(t, "the agent tells what is missing", func() bool { return w.overview().ModelError != "" })
	state := w.overview()
	if !state.SetupNeeded || state.Workspace.Exists || state.Workspace.Path != filepath.Join(filepath.Dir(s.home), "tendril-workspace") || state.Deno.Version == "" || state.Model != nil {
		t.Errorf("%+v", state.Overview)
	}
	var setup host.SetupState
	c.must("GET", "/api/setup", nil, &setup)
	if !setup.Needed || len(setup.Providers) != 7 || setup.Providers[0].Found || !strings.Contains(setup.ModelError, "no model is set up") {
		t.Errorf("%+v", setup)
	}

	for path, status := range map[string]int{"/etc": 422, "~": 422, s.home: 422, "relative": 422, "/a,b": 422, s.ws: 200} {
		if got, text := w.call("POST", "/api/setup/workspace", map[string]string{"path": path}, nil); got != status {
			t.Errorf("%s: %d %s", path, got, text)
		}
	}
	if _, err := os.Stat(s.ws); err == nil {
		t.Error("checking a folder has created it")
	}
	w.must("PUT", "/api/settings", settings("workspace", s.ws), nil)
	if _, err := os.Stat(s.ws); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(state.Workspace.Path); err == nil {
		t.Error("the folder that nobody chose was created")
	}
	w.must("PUT", "/api/settings", settings("model.openai.baseURL", server.URL+"/v1", "model.openai.modelId", "scripted", "model.provider", "openai"), nil)

	var test host.KeyTest
	if status, text := w.call("POST", "/api/keys/OPENAI_API_KEY/test", map[string]any{}, nil); status != 404 {
		t.Errorf("%d %s", status, text)
	}
	w.must("POST", "/api/keys/OPENAI_API_KEY/test", map[string]string{"value": "sk-wrong-wrong-wrong"}, &test)
	if test.OK || !strings.Contains(test.Message, "does not accept the key (401)") {
		t.Errorf("%+v", test)
	}
	w.must("POST", "/api/keys/OPENAI_API_KEY/test", map[string]string{"value": plainCanary}, &test)
	if !test.OK || !strings.Contains(test.Message, "2 models") {
		t.Errorf("%+v", test)
	}
	var kept host.KeptKey
	w.must("PUT", "/api/keys/OPENAI_API_KEY", map[string]string{"value": plainCanary}, &kept)
	if kept.Place != "file" || !strings.Contains(kept.Warning, "not encrypted") {
		t.Errorf("%+v", kept)
	}
	w.must("POST", "/api/keys/OPENAI_API_KEY/test", map[string]any{}, &test)
	if !test.OK {
		t.Errorf("%+v", test)
	}
	eventually(t, "all is there", func() bool { return !w.overview().SetupNeeded })
	if m := w.overview().Model; m == nil || m.Provider != "openai" || m.Model != "scripted" || !strings.Contains(m.Reason, "OPENAI_API_KEY is in") {
		t.Errorf("%+v", m)
	}
	eventually(t, "the agent runs", func() bool { return w.overview().Agent.Status == "ready" })
	id := c.newSession()
	c.prompt(id, "hello?")
	c.says(id, "hello")
	c.turn(id)
	var keys host.KeyList
	w.must("GET", "/api/keys", nil, &keys)
	if len(keys.Keys) != 1 || keys.Keys[0].Provider != "openai" || !slices.Equal(keys.Keys[0].Places, []string{"file"}) {
		t.Errorf("%+v", keys)
	}
	w.must("GET", "/api/settings", nil, nil)
	w.must("GET", "/api/doctor", nil, nil)
	w.must("GET", "/api/models", nil, nil)
	c.done()
	w.check(plainCanary)
}

// TestHost_KeyTests: what proves nothing is not taken for a proof.
func TestHost_KeyTests(t *testing.T) {
	t.Parallel()
	p := testkit.NewProviderFunc(t, func(testkit.Request) testkit.Reply { return testkit.OpenAIText("ok") })
	public := keyedServer(t, plainCanary, p, true)
	redirecting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, public.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer redirecting.Close()
	const closed = "http://127.0.0.1:1" // one that was just closed may be somebody else's by now
	s := bare(t)
	c := s.host()
	c.ready()
	w := c.record()
	for _, k := range []struct {
		url, value string
		ok         bool
		message    string
	}{
		{public.URL, plainCanary, true, "scripted has answered"}, // its list is for everybody, so the model was asked
		{public.URL, "wrong-" + plainCanary, false, "key"},
		{redirecting.URL, plainCanary, false, "redirects"},
		{closed, plainCanary, false, "cannot be reached"},
		{p.URL, plainCanary, true, "scripted has answered"}, // it has no list
	} {
		w.must("PUT", "/api/settings", settings("model.openai.baseURL", k.url+"/v1", "model.openai.modelId", "scripted"), nil)
		var test host.KeyTest
		w.must("POST", "/api/keys/OPENAI_API_KEY/test", map[string]string{"value": k.value}, &test)
		if test.OK != k.ok || !strings.Contains(test.Message, k.message) {
			t.Errorf("%s: %+v", k.url, test)
		}
		w.must("PUT", "/api/settings", settings("model", nil), nil)
	}
	for name, status := range map[string]int{"AZURE_OPENAI_API_KEY": 200, "OTHER_KEY": 422, "no-name": 422, "AWS_SECRET": 422} {
		if got, text := w.call("POST", "/api/keys/"+name+"/test", map[string]string{"value": "x"}, nil); got != status {
			t.Errorf("%s: %d %s", name, got, text)
		}
	}
	c.done()
	w.check(plainCanary)
}

// TestHost_SettingsThatDoNotWork are not saved, and the agent goes on.
func TestHost_SettingsThatDoNotWork(t *testing.T) {
	t.Parallel()
	p := testkit.NewProviderFunc(t, func(r testkit.Request) testkit.Reply {
		if body := string(r.Body); strings.Contains(body, "wait") && !strings.Contains(body, "go on") {
			return hanging("waiting")
		}
		return testkit.OpenAIText("done")
	})
	s := newSandboxed(t, p)
	s.env = slices.DeleteFunc(s.env, func(v string) bool { return strings.HasPrefix(v, "DENO_PATH=") })
	deno := testkit.Deno(t)
	path := filepath.Join(s.home, "config.json")
	c := s.host()
	c.ready()
	c.must("PUT", "/api/settings", settings("sandbox.denoPath", deno), nil)
	before, _ := os.ReadFile(path)
	for _, wrong := range []map[string]any{
		settings("sandbox.denoPath", "/bin/false"),
		settings("workspace", "/etc/tendril"),
		settings("model.provider", "anthropic", "model.anthropic.modelId", "x"), // it has no key
		settings("model.provider", "nobody"),
		settings("agent.maxTurns", "many"),
		settings("sandbox.denoPath", deno, "agent.maxTurns", -1),
	} {
		status, text := c.call("PUT", "/api/settings", wrong, nil)
		if status != 422 || !strings.Contains(text, `"refused"`) || strings.Contains(text, ".settings-") {
			t.Errorf("%v: %d %s", wrong, status, text)
		}
	}
	if after, _ := os.ReadFile(path); string(after) != string(before) {
		t.Errorf("%s", after)
	}
	id := c.newSession()
	c.prompt(id, "wait")
	c.says(id, "waiting")
	if status, text := c.call("PUT", "/api/settings", settings("agent.maxTurns", 7), nil); status != 409 || !strings.Contains(text, id) {
		t.Errorf("%d %s", status, text)
	}
	restarts := c.overview().Agent.Restarts
	change := settings("agent.maxTurns", 7)
	change["interrupt"] = true
	c.must("PUT", "/api/settings", change, nil)
	if end := c.turn(id); end.Stop != "interrupted" {
		t.Errorf("%+v", end)
	}
	c.until("another agent", func() bool { return c.state.Agent.Restarts > restarts && c.state.Agent.Status == "ready" })
	c.prompt(id, "go on")
	c.says(id, "done")
	c.turn(id)
	if left, _ := filepath.Glob(filepath.Join(s.home, ".settings-*")); len(left) > 0 {
		t.Errorf("%v", left)
	}
	c.done()
}

// TestHost_Capabilities are listed, shown, run and edited by their names.
func TestHost_Capabilities(t *testing.T) {
	t.Parallel()
	p := testkit.NewProvider(t, register("greet", "export default (args) => 'hello ' + args.name;"), testkit.OpenAIText("kept"))
	s := newSandboxed(t, p)
	c := s.host()
	c.ready()
	id := c.newSession()
	c.prompt(id, "greet")
	c.turn(id)
	var list host.CapabilityList
	c.must("GET", "/api/capabilities?query=long", nil, &list)
	if list.Total != 1 || list.Capabilities[0].Name != "greet" || list.Capabilities[0].Status != "unproven" || list.Capabilities[0].Version != "1.0.0" {
		t.Errorf("%+v", list)
	}
	var run host.CapabilityRun
	c.must("POST", "/api/capabilities/greet/run", map[string]any{"args": map[string]any{"name": "you"}}, &run)
	if run.Status != "ok" || run.Output != "hello you" || run.Version != "1.0.0" || len(run.Detail) == 0 {
		t.Errorf("%+v", run)
	}
	var info host.CapabilityInfo
	c.must("GET", "/api/capabilities/greet", nil, &info)
	if info.Status != "active" || !strings.Contains(info.Source, "hello") || len(info.Gate) != 5 || info.Runs != 1 || len(info.Versions) != 1 || len(info.Grants.Net) != 0 || info.CreatedBy != "model" {
		t.Errorf("%+v", info)
	}

	definition := map[string]any{"name": "greet", "capability": "Greets.", "triggers": []string{"greet", "say hello"}, "suppression": []string{}}
	edit := func(code, version string) (int, string, host.Problem) {
		status, text := c.call("PUT", "/api/capabilities/greet", map[string]any{"definition": definition, "code": code, "version": version}, nil)
		var problem host.Problem
		_ = json.Unmarshal([]byte(text), &problem)
		return status, text, problem
	}
	if status, text, p := edit("const n: number = 'one';\nexport default () => n;", "1.0.0"); status != 422 || p.Step != "types" || len(p.Problems) != 1 || p.Problems[0].Line != 1 {
		t.Errorf("%d %s", status, text)
	}
	if status, text, p := edit("import 'https://localhost/x.ts';", ""); status != 422 || p.Step != "modules" {
		t.Errorf("%d %s", status, text)
	}
	if status, text, _ := edit("export default () => 'edited';", "1.0.0"); status != 200 || !strings.Contains(text, `"1.1.0"`) {
		t.Errorf("%d %s", status, text)
	}
	if status, text, p := edit("export default () => 'late';", "1.0.0"); status != 409 || p.Code != "changed" {
		t.Errorf("%d %s", status, text)
	}
	c.must("GET", "/api/capabilities/greet", nil, &info)
	if info.CreatedBy != "human" || info.Version != "1.1.0" {
		t.Errorf("%+v", info)
	}
	c.must("POST", "/api/capabilities/greet/run", map[string]any{}, &run)
	if run.Output != "edited" {
		t.Errorf("%+v", run)
	}

	// Nobody is asked: what policy asks about is not run.
	c.must("PUT", "/api/settings", settings("sandbox.policy.network", "ask"), nil)
	definition["permissions"] = map[string]any{"net": []string{"example.com"}}
	if status, text, _ := edit("export default async () => { throw new Error('it ran'); }", ""); status != 200 || !strings.Contains(text, `"pending"`) {
		t.Errorf("%d %s", status, text)
	}
	c.must("POST", "/api/capabilities/greet/run", map[string]any{}, &run) // the last good one stays
	if run.Output != "edited" || run.Version != "1.1.0" {
		t.Errorf("%+v", run)
	}
	for _, name := range []string{"none", "..%2Fgreet", "%2Fetc%2Fpasswd", "index.json", "a%00b"} {
		for method, path := range map[string]string{"GET": "", "POST": "/run"} {
			status, text := c.call(method, "/api/capabilities/"+name+path, map[string]any{}, nil)
			if status != 404 || strings.Contains(text, s.ws) {
				t.Errorf("%s %s: %d %s", method, name, status, text)
			}
		}
	}
	for _, args := range []any{[]int{1}, "x", 1} {
		if status, text := c.call("POST", "/api/capabilities/greet/run", map[string]any{"args": args}, nil); status != 422 {
			t.Errorf("%v: %d %s", args, status, text)
		}
	}
	c.done()
}

// recorder keeps all that a host tells.
type recorder struct {
	*hostClient
	mu   sync.Mutex
	told strings.Builder
}

// record follows the events and the debug view.
func (c *hostClient) record() *recorder {
	c.t.Helper()
	w := &recorder{hostClient: c}
	for _, path := range []string{"/api/events", "/api/debug/events"} {
		req, err := http.NewRequestWithContext(c.t.Context(), "GET", c.address+path, nil)
		if err != nil {
			c.t.Fatal(err)
		}
		req.Header.Set("X-Tendril-Token", c.token)
		resp, err := c.http.Do(req)
		if err != nil {
			c.t.Fatal(err)
		}
		go func() {
			defer resp.Body.Close()
			_, _ = bufio.NewReader(resp.Body).WriteTo(w)
		}()
	}
	return w
}

func (w *recorder) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.told.Write(p)
}

func (w *recorder) call(method, path string, body, v any) (int, string) {
	w.t.Helper()
	status, text := w.hostClient.call(method, path, body, v)
	_, _ = w.Write([]byte(text))
	return status, text
}

func (w *recorder) must(method, path string, body, v any) {
	w.t.Helper()
	if status, text := w.call(method, path, body, v); status >= 300 {
		w.t.Fatalf("%s %s: %d %s\n%s", method, path, status, text, w.s.errs.String())
	}
}

// check fails when a secret is in an answer, an event, the log or a file other
// than that of secrets.
func (w *recorder) check(secret string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.told.Len() < 10_000 {
		w.t.Errorf("only %d bytes were told", w.told.Len())
	}
	if form := spill(w.told.String(), secret); form != "" {
		w.t.Errorf("the host told %s", form)
	}
	if form := spill(w.s.errs.String(), secret); form != "" {
		w.t.Errorf("the log tells %s", form)
	}
	err := filepath.WalkDir(filepath.Dir(w.s.home), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == "secrets.json" {
			return err
		}
		data, err := os.ReadFile(path)
		if form := spill(string(data), secret); form != "" {
			w.t.Errorf("%s holds %s", path, form)
		}
		return err
	})
	if err != nil {
		w.t.Error(err)
	}
}

// TestHost_Demo needs no key.
func TestHost_Demo(t *testing.T) {
	t.Parallel()
	c := bare(t).host("--model", "demo")
	eventually(t, "the model is known", func() bool { return c.overview().Model != nil })
	if o := c.overview(); !o.Demo || o.ModelError != "" || o.Model.Name != "demo" {
		t.Errorf("%+v", o.Overview)
	}
	c.must("PUT", "/api/settings", settings("workspace", c.s.ws), nil)
	eventually(t, "nothing is missing", func() bool { return !c.overview().SetupNeeded })
	c.done()
}

// The workspace stays open for those who use it while the settings change.
func TestHost_ManyAtOnce(t *testing.T) {
	t.Parallel()
	s := newSandboxed(t, testkit.NewProvider(t))
	if err := os.MkdirAll(s.ws, 0o755); err != nil {
		t.Fatal(err)
	}
	c := s.host()
	c.ready()
	var all sync.WaitGroup
	for _, path := range []string{"/api/capabilities", "/api/capabilities?query=x", "/api/keys", "/api/settings", "/api/state", "/api/setup", "/api/providers", "/api/models?provider=anthropic"} {
		all.Go(func() {
			for range 20 {
				if status, text := c.call("GET", path, nil, nil); status != 200 {
					t.Errorf("%s: %d %s", path, status, text)
				}
			}
		})
	}
	for i := range 4 {
		all.Go(func() { c.must("PUT", "/api/settings", settings("registry.maxCapabilities", 100+i), nil) })
	}
	all.Wait()
	c.done()
}

// TestHost_SkipsFirstStart: who says with what to begin is asked nothing, and a
// folder that cannot be the workspace is refused at once.
func TestHost_SkipsFirstStart(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--model", "demo"}, {"--model", "demo", "--workspace", filepath.Join(t.TempDir(), "new", "folder")}} {
		c := bare(t).host(args...)
		c.ready()
		w := c.record()
		eventually(t, "nothing is missing", func() bool { o := w.overview(); return o.Demo && !o.SetupNeeded && o.Workspace.Exists })
		c.done()
	}
	s := bare(t)
	if code := s.wait(s.start("--no-open", "--workspace", "/etc"), time.Minute); code != 3 || !strings.Contains(s.errs.String(), "choose another folder") {
		t.Errorf("%d %s", code, s.errs.String())
	}
}

// TestHost_BrokenSettings: the terminal and the app say what to do, and go on
// once the file is mended.
func TestHost_BrokenSettings(t *testing.T) {
	t.Parallel()
	s := newSandboxed(t, testkit.NewProvider(t))
	path := filepath.Join(s.home, "config.json")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("{\n  oops\n}"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := s.host()
	c.ready()
	const want = "config.json: line 2, column 3: invalid character 'o' looking for beginning of object key string; mend it there, or move the file away"
	o := c.overview()
	if !strings.Contains(o.SettingsError, want) || !o.SetupNeeded || o.Workspace.Error != "" {
		t.Errorf("%+v", o.Overview)
	}
	if status, text := c.call("GET", "/api/setup", nil, nil); status != 422 || !strings.Contains(text, `"settings"`) || !strings.Contains(text, "move the file away") {
		t.Errorf("%d %s", status, text)
	}
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	c.must("POST", "/api/agent/restart", map[string]any{}, nil)
	eventually(t, "they are read", func() bool { o := c.overview(); return o.SettingsError == "" && o.Model != nil })
	c.done()
	if text := s.errs.String(); !strings.Contains(text, want) {
		t.Errorf("the terminal says %s", text)
	}
}

// TestHost_ClosedWorkspace: that a workspace cannot be written, or created, is
// told before anything was built in it.
func TestHost_ClosedWorkspace(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	s := newSandboxed(t, testkit.NewProvider(t))
	if err := os.Mkdir(s.ws, 0o555); err != nil {
		t.Fatal(err)
	}
	c := s.host()
	c.ready()
	if o := c.overview(); !o.Workspace.Exists || !strings.Contains(o.Workspace.Error, "cannot be written: permission denied; choose another folder") {
		t.Errorf("%+v", o.Overview)
	}
	for path, want := range map[string]string{s.ws: "cannot be written", filepath.Join(s.ws, "new"): "cannot be created in"} {
		if status, text := c.call("POST", "/api/setup/workspace", map[string]string{"path": path}, nil); status != 422 || !strings.Contains(text, want) {
			t.Errorf("%d %s", status, text)
		}
		if status, text := c.call("PUT", "/api/settings", settings("workspace", path, "agent.maxTurns", 7), nil); status != 422 || !strings.Contains(text, want) {
			t.Errorf("%d %s", status, text)
		}
	}
	var d host.Diagnosis
	c.must("GET", "/api/doctor", nil, &d)
	at := slices.IndexFunc(d.Checks, func(k host.Check) bool { return k.Name == "workspace" })
	if d.OK || at < 0 || d.Checks[at].State != "failed" || !strings.Contains(d.Checks[at].Text, "cannot be written") {
		t.Errorf("%+v", d)
	}
	c.done()
}

// TestHost_Fixed: what the command line has chosen holds, and a change that would
// have no effect is refused before anything happens.
func TestHost_Fixed(t *testing.T) {
	t.Parallel()
	s := bare(t)
	c := s.host("--workspace", s.ws, "--model", "demo")
	c.ready()
	if o := c.overview(); !slices.Equal(o.Fixed, []string{"workspace", "model"}) || o.Workspace.Path != s.ws {
		t.Errorf("%+v", o.Overview)
	}
	other := filepath.Join(filepath.Dir(s.ws), "other")
	for _, change := range []map[string]any{settings("workspace", other), settings("agent.maxTurns", 7, "model.provider", "openai"), settings("model", nil)} {
		if status, text := c.call("PUT", "/api/settings", change, nil); status != 409 || !strings.Contains(text, `"fixed"`) || !strings.Contains(text, "was started with --") {
			t.Errorf("%d %s", status, text)
		}
	}
	for _, path := range []string{other, filepath.Join(s.home, "config.json")} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s was made", path)
		}
	}
	c.must("PUT", "/api/settings", settings("agent.maxTurns", 7, "model.openai.modelId", "scripted"), nil)
	c.done()

	c = s.host()
	if o := c.overview(); o.Fixed == nil || len(o.Fixed) > 0 {
		t.Errorf("%+v", o.Overview)
	}
	c.done()
}

// TestHost_KeyTestsUnsaved: a key is tried where it is to be used, which the
// settings need not say yet, and nowhere else.
func TestHost_KeyTestsUnsaved(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := map[string][]string{} // what each server was asked for
	server := func(name string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			asked[name] = append(asked[name], r.URL.Path)
			if r.Header.Get("Authorization") != "Bearer "+plainCanary && r.Header.Get("api-key") != plainCanary {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			fmt.Fprint(w, `{"data":[{"id":"scripted"}]}`)
		}))
		t.Cleanup(s.Close)
		return s.URL + "/v1"
	}
	saved, typed := server("saved"), server("typed")
	c := bare(t).host()
	c.ready()
	w := c.record()
	w.must("PUT", "/api/settings", settings("model.openai.baseURL", saved), nil)
	test := func(name string, body map[string]any) (status int, text string, result host.KeyTest) {
		status, text = w.call("POST", "/api/keys/"+name+"/test", body, &result)
		return status, text, result
	}
	for _, name := range []string{"OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "ANTHROPIC_API_KEY"} {
		status, text, got := test(name, map[string]any{"value": plainCanary, "baseURL": typed, "modelId": "scripted"})
		if name != "ANTHROPIC_API_KEY" && !got.OK || status != 200 || !strings.Contains(got.Message, typed) { // Anthropic's key is in another header
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if _, text, got := test("AZURE_OPENAI_API_KEY", map[string]any{"value": plainCanary}); got.OK || !strings.Contains(got.Message, "the base URL of your resource is missing") {
		t.Errorf("%s", text)
	}
	for _, wrong := range []string{"no address", "ftp://127.0.0.1", typed + "?key=x"} {
		if status, text, _ := test("OPENAI_API_KEY", map[string]any{"value": plainCanary, "baseURL": wrong}); status != 422 || !strings.Contains(text, `"path":"model.openai.baseURL"`) || strings.Contains(text, "config.json") {
			t.Errorf("%s: %d %s", wrong, status, text)
		}
	}
	mu.Lock()
	if len(asked["saved"]) > 0 || len(asked["typed"]) == 0 {
		t.Errorf("%v", asked)
	}
	mu.Unlock()
	if _, text, got := test("OPENAI_API_KEY", map[string]any{"value": plainCanary}); !got.OK || !strings.Contains(got.Message, saved) {
		t.Errorf("%s", text)
	}
	if o, err := os.ReadFile(filepath.Join(c.s.home, "config.json")); err != nil || strings.Contains(string(o), typed) {
		t.Errorf("a test has saved %s %v", o, err)
	}
	for _, path := range []string{"settings", "setup", "models?provider=anthropic", "doctor"} {
		w.must("GET", "/api/"+path, nil, nil)
	}
	c.done()
	w.check(plainCanary)
}
