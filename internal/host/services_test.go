package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/capability"
	"github.com/tendril-agent/tendril/internal/config"
	"github.com/tendril-agent/tendril/internal/secret"
	"github.com/tendril-agent/tendril/internal/store"
)

// servicesAt are services whose keys, settings and workspace are below home.
func servicesAt(home string) Services {
	s := testServices{home}
	return Services{
		Trial:  func(settings string) *exec.Cmd { return askedAgent(home, settings) },
		Keys:   testKeys{s},
		Models: s,
		Setup:  s,
		Capabilities: func(ctx context.Context, use func(Workbench) error) error {
			db, err := store.Open(ctx, store.Memory)
			if err != nil {
				return err
			}
			defer db.Close()
			registry, err := capability.Open(ctx, capability.Options{Workspace: filepath.Join(home, "ws"), DB: db})
			if err != nil {
				return err
			}
			defer registry.Close()
			return use(Workbench{Registry: registry, Ready: func(context.Context) error { return errors.New("there is no sandbox") }})
		},
		Doctor: func(context.Context) []Check {
			return []Check{{Name: "all", State: "failed", Text: "nothing was checked"}}
		},
	}
}

// askedAgent is an agent that says what works, as readyAnswer reads it in its
// settings.
func askedAgent(home, settings string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FAKE_AGENT=asked", "FAKE_SETTINGS="+settings, "FAKE_HOME="+home)
	return cmd
}

// readyAnswer finds problems that the name of the model tells. What was tried
// is written down.
func readyAnswer() string {
	path := os.Getenv("FAKE_SETTINGS")
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		panic(err)
	}
	if info, err := os.Stat(path); err == nil && filepath.Base(path) != "config.json" {
		tried := fmt.Sprintf("%s %s %v\n", filepath.Dir(path), info.Mode(), strings.Contains(string(text), "extra"))
		_ = os.WriteFile(filepath.Join(os.Getenv("FAKE_HOME"), "tried"), []byte(tried), 0o600)
	}
	r := readiness{Workspace: "/ws", Model: "openai/scripted", Reason: "as it was told", Problems: []obstacle{}}
	for _, about := range []string{"settings", "workspace", "model", "sandbox"} {
		if strings.Contains(string(text), "no-"+about) {
			r.Problems = append(r.Problems, obstacle{about, about + " is broken"})
		}
	}
	if strings.Contains(string(text), "crash") {
		fmt.Fprintln(os.Stderr, "the settings are too much for me")
		os.Exit(3)
	}
	data, _ := json.Marshal(r)
	return string(data)
}

// testServices are keys in a file, and a folder.
type testServices struct{ home string }

type testKeys struct{ testServices }

func (s testServices) secrets() *secret.Store { return secret.Open(secret.Options{Dir: s.home}) }

func (s testKeys) List(ctx context.Context) ([]Key, error) {
	list, err := s.secrets().List(ctx)
	keys := []Key{}
	for _, e := range list {
		keys = append(keys, Key{Name: e.Name, Places: []string{string(e.Places[0])}})
	}
	return keys, err
}

func (s testKeys) Keep(name, value string) (KeptKey, error) {
	kept, err := s.secrets().Set(name, value)
	return KeptKey{Place: string(kept.Place)}, err
}

func (s testKeys) Forget(name string) error { return s.secrets().Remove(name) }

func (s testServices) Providers(context.Context) ([]Provider, error) {
	return []Provider{{ID: "openai", Name: "OpenAI", Needs: []string{}}}, nil
}

func (s testServices) List(_ context.Context, provider string) (ModelList, error) {
	return ModelList{Provider: provider, Models: []ModelInfo{}}, nil
}

func (s testServices) Test(_ context.Context, name string, use KeyUse) (KeyTest, error) {
	if err := secret.CheckName(name); err != nil {
		return KeyTest{}, err
	}
	return KeyTest{OK: use.Value != "", Message: "tested"}, nil
}

func (s testServices) Workspace(given string) (Place, error) {
	if given == "" {
		given = filepath.Join(s.home, "ws")
	}
	if !filepath.IsAbs(given) || strings.Contains(given, "..") {
		return Place{}, fmt.Errorf("%q cannot be a workspace", given)
	}
	_, err := os.Stat(given)
	return Place{Path: given, Exists: err == nil}, nil
}

func (s testServices) Deno() Deno { return Deno{Path: "/deno", Version: "2.9.6"} }

func (s testServices) FetchDeno(ctx context.Context, say func(string)) error {
	say("half of it is there")
	for ctx.Err() == nil {
		if _, err := os.Stat(filepath.Join(s.home, "go")); err == nil {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return ctx.Err()
}

// serveAsked starts a host whose agent says what its settings make of it.
func serveAsked(t *testing.T, settings string) (*running, string) {
	t.Helper()
	home := t.TempDir()
	if settings != "" {
		if err := os.WriteFile(config.Path(home), []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := serve(t, home, func(o *Options) {
		o.Command = func() *exec.Cmd { return askedAgent(home, config.Path(home)) }
	})
	r.signIn()
	r.wait("what the agent says", func() bool { o := r.overview(); return o.Model != nil })
	return r, home
}

func (r *running) wait(what string, ok func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("never: %s", what)
		}
	}
}

func (r *running) agent() Agent {
	r.supervisor.mu.Lock()
	defer r.supervisor.mu.Unlock()
	return r.supervisor.state
}

// change sends changes of settings, and returns the answer.
func (r *running) change(interrupt bool, changes ...string) (int, Problem) {
	r.t.Helper()
	body := fmt.Sprintf(`{"changes":[%s],"interrupt":%v}`, strings.Join(changes, ","), interrupt)
	resp, text := r.send("PUT", "/api/settings", body, nil)
	var p Problem
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		r.t.Fatalf("%d %s", resp.StatusCode, text)
	}
	if left, _ := filepath.Glob(filepath.Join(r.Home, trialName)); len(left) > 0 {
		r.t.Errorf("left after a trial: %v", left)
	}
	return resp.StatusCode, p
}

func set(path, value string) string { return fmt.Sprintf(`{"path":%q,"value":%s}`, path, value) }

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(data)
}

func TestSettings_AreTriedBeforeTheyAreWritten(t *testing.T) {
	t.Parallel()
	before := `{"model":{"openai":{"modelId":"good"}},"extra":{"kept":1.50}}`
	r, home := serveAsked(t, before)
	restarts := r.agent().Restarts
	for model, want := range map[string]string{"no-model": "model is broken", "no-sandbox no-model": "sandbox is broken", "crash": "too much for me"} {
		status, p := r.change(false, set("model.openai.modelId", `"`+model+`"`))
		if status != 422 || p.Code != "refused" || len(p.Problems) == 0 || !strings.Contains(p.Detail, want) {
			t.Errorf("%s: %d %+v", model, status, p)
		}
		if got := read(t, config.Path(home)); got != before {
			t.Errorf("%s was written: %s", model, got)
		}
	}
	for _, changes := range [][]string{{set("agent.maxTurns", "0")}, {set("agent.maxTurns", "7"), set("agent.no", "1")}, {set("workspace", `"relative"`)}, {set("a..b", "1")}, {set("model.openai.apiKey", `"x"`)}} {
		if status, p := r.change(false, changes...); status != 422 || p.Code != "refused" || p.Detail == "" || len(p.Problems) == 0 {
			t.Errorf("%v: %d %+v", changes, status, p)
		}
	}
	if got := read(t, config.Path(home)); got != before || r.agent().Restarts != restarts {
		t.Errorf("refused changes did something: %s", got)
	}

	next := r.events(t)
	if status, p := r.change(false, set("model.openai.modelId", `"better"`), set("agent.budget.dayUSD", "1.50")); status != 200 {
		t.Errorf("%d %+v", status, p)
	}
	if got := read(t, config.Path(home)); !strings.Contains(got, `"better"`) || !strings.Contains(got, "1.50") || !strings.Contains(got, `"kept": 1.50`) {
		t.Errorf("%s", got)
	}
	if tried := read(t, filepath.Join(home, "tried")); tried != fmt.Sprintf("%s -rw------- true\n", home) {
		t.Errorf("tried was %q", tried)
	}
	next("settings")
	r.wait("another agent", func() bool { return r.agent().Restarts == restarts+1 && r.agent().Status == "ready" })
}

// What is missing anyway keeps nobody from completing the rest.
func TestSettings_StepByStep(t *testing.T) {
	t.Parallel()
	r, _ := serveAsked(t, `{"model":{"openai":{"modelId":"no-model"}}}`)
	if o := r.overview(); o.ModelError != "model is broken" || !o.SetupNeeded {
		t.Errorf("%+v", o)
	}
	ws := filepath.Join(t.TempDir(), "new", "ws")
	if status, p := r.change(false, set("workspace", `"`+ws+`"`)); status != 200 {
		t.Errorf("%d %+v", status, p)
	}
	if info, err := os.Stat(ws); err != nil || !info.IsDir() {
		t.Errorf("the workspace was not created: %v", err)
	}
	if status, p := r.change(false, set("model.openai.modelId", `"no-model no-sandbox"`)); status != 422 || len(p.Problems) != 1 || p.Problems[0].Text != "sandbox is broken" {
		t.Errorf("%d %+v", status, p)
	}
	if status, p := r.change(false, set("model.openai.modelId", `"good"`)); status != 200 {
		t.Errorf("%d %+v", status, p)
	}
	r.wait("the model", func() bool { return r.overview().ModelError == "" })
	if status, _ := r.change(false, set("model.openai.modelId", `"no-model"`)); status != 422 {
		t.Errorf("what works now may break: %d", status)
	}
}

// A file in which everything is broken can be mended.
func TestSettings_MendsWhatIsBroken(t *testing.T) {
	t.Parallel()
	r, _ := serveAsked(t, `{"agent":{"maxTurns":0},"model":{"openai":{"modelId":"no-settings"}}}`)
	resp, text := r.send("GET", "/api/settings", "", nil)
	var s Settings
	if err := json.Unmarshal([]byte(text), &s); err != nil || resp.StatusCode != 200 || len(s.Problems) != 1 || s.Problems[0].Path != "agent.maxTurns" || len(s.Known) < 30 {
		t.Errorf("%s", text)
	}
	if status, p := r.change(false, set("agent.maxTurns", "null"), set("model.openai.modelId", `"no-model"`)); status != 200 {
		t.Errorf("%d %+v", status, p)
	}
}

// occupy lets a turn run.
func (r *running) occupy(id string) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.Host
	h.mu.Lock()
	defer h.mu.Unlock()
	c := &conversation{id: id, running: true, transcript: newTranscript(nil)}
	h.conversations[id] = c
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		c.running = false
		h.tellState(c)
	}
}

func TestSettings_AskBeforeTheyInterrupt(t *testing.T) {
	t.Parallel()
	r, home := serveAsked(t, `{}`)
	restarts := r.agent().Restarts
	defer r.occupy("one")()
	defer r.occupy("two")()
	status, p := r.change(false, set("agent.maxTurns", "7"))
	slices.Sort(p.Sessions)
	if status != 409 || p.Code != "running" || !slices.Equal(p.Sessions, []string{"one", "two"}) || read(t, config.Path(home)) != "{}" {
		t.Errorf("%d %+v", status, p)
	}
	if status, p := r.change(true, set("agent.maxTurns", "7")); status != 200 || r.agent().Restarts != restarts+1 {
		t.Errorf("%d %+v", status, p)
	}
}

// A new key is read by an agent that starts afresh, but no turn is interrupted
// for it.
func TestKeys_RenewTheAgent(t *testing.T) {
	t.Parallel()
	r, _ := serveAsked(t, `{}`)
	restarts := r.agent().Restarts
	end := r.occupy("one")
	if resp, text := r.send("PUT", "/api/keys/OPENAI_API_KEY", `{"value":"sk-canary-0123456789"}`, nil); resp.StatusCode != 200 || !strings.Contains(text, `"file"`) {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	r.Host.hub.publish("sessions", struct{}{}) // something happens meanwhile
	if resp, _ := r.send("GET", "/api/keys", "", nil); resp.StatusCode != 200 || r.agent().Restarts != restarts {
		t.Errorf("a turn was interrupted for a key")
	}
	end()
	r.wait("another agent", func() bool { return r.agent().Restarts == restarts+1 && r.agent().Status == "ready" })
	if resp, text := r.send("DELETE", "/api/keys/OPENAI_API_KEY", "", nil); resp.StatusCode != 204 {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	r.wait("another agent", func() bool { return r.agent().Restarts == restarts+2 && r.agent().Status == "ready" })
	if resp, text := r.send("DELETE", "/api/keys/OPENAI_API_KEY", "", nil); resp.StatusCode != 404 {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
}

// However wrong a request with a key is, no answer repeats the key.
func TestKeys_NeverComeBack(t *testing.T) {
	t.Parallel()
	r, home := serveAsked(t, `{}`)
	const canary = "sk-canary-4711"
	var answers strings.Builder
	for _, path := range []string{"/api/keys/OPENAI_API_KEY", "/api/keys/OPENAI_API_KEY/test", "/api/keys/" + canary, "/api/keys/" + canary + "/test", "/api/keys/" + strings.Repeat(canary, 20)} {
		method := "PUT"
		if strings.HasSuffix(path, "/test") {
			method = "POST"
		}
		for _, body := range []string{
			`{"value":"` + canary + `"}`, `{"value":["` + canary + `"]}`, `{"` + canary + `":1}`, `{"value":{"` + canary + `":1}}`, `"` + canary + `"`, canary, `{"value":"` + canary,
			`{"value":"` + canary + `","other":"` + canary + `"}`, `{"VALUE":"` + canary + `"}`, `{"value":"` + canary + `\n"}`, `{"value":"` + canary + `"}{`, `[{"value":"` + canary + `"}]`,
		} {
			resp, text := r.send(method, path, body, nil)
			if resp.StatusCode >= 500 {
				t.Errorf("%s %s: %d %s", path, body, resp.StatusCode, text)
			}
			if resp.StatusCode >= 400 && (!strings.Contains(resp.Header.Get("Content-Type"), "problem+json") || !strings.Contains(text, `"detail"`)) {
				t.Errorf("%s %s: %s", path, body, text)
			}
			answers.WriteString(text)
		}
		_, text := r.send("DELETE", strings.TrimSuffix(path, "/test"), "", nil)
		answers.WriteString(text)
	}
	for _, path := range []string{"/api/keys", "/api/state", "/api/settings", "/api/setup"} {
		_, text := r.send("GET", path, "", nil)
		answers.WriteString(text)
	}
	events, _, _ := r.Host.hub.after(r.Host.hub.start())
	debug, _, _ := r.Host.debug.after(r.Host.debug.start())
	for _, e := range append(events, debug...) {
		answers.Write(e.data)
	}
	r.mu.Lock()
	answers.WriteString(strings.Join(r.log, "\n"))
	r.mu.Unlock()
	if strings.Contains(answers.String(), "canary") {
		t.Errorf("the key came back: %s", answers.String())
	}
	if text := read(t, config.Path(home)); strings.Contains(text, "canary") {
		t.Errorf("%s", text)
	}
}

func TestSetup_FetchesOnce(t *testing.T) {
	t.Parallel()
	r, home := serveAsked(t, `{}`)
	next := r.events(t)
	if resp, text := r.send("POST", "/api/setup/deno", "{}", nil); resp.StatusCode != 202 {
		t.Fatalf("%d %s", resp.StatusCode, text)
	}
	if e := next("setup"); !strings.Contains(e, `"running"`) || !strings.Contains(e, "half of it") {
		t.Errorf("%s", e)
	}
	if resp, text := r.send("POST", "/api/setup/deno", "{}", nil); resp.StatusCode != 409 || !strings.Contains(text, `"running"`) {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	if err := os.WriteFile(filepath.Join(home, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := next("setup"); !strings.Contains(e, `"done"`) {
		t.Errorf("%s", e)
	}
	for path, status := range map[string]int{"relative": 422, "/a/../b": 422, home: 200} {
		resp, text := r.send("POST", "/api/setup/workspace", fmt.Sprintf(`{"path":%q}`, path), nil)
		if resp.StatusCode != status {
			t.Errorf("%s: %d %s", path, resp.StatusCode, text)
		}
	}
	resp, text := r.send("GET", "/api/doctor", "", nil)
	if resp.StatusCode != 200 || !strings.Contains(text, `"ok":false`) {
		t.Errorf("%s", text)
	}
}

// A fetch that still runs ends with the host.
func TestSetup_EndsWithTheHost(t *testing.T) {
	t.Parallel()
	r, _ := serveAsked(t, `{}`)
	if resp, text := r.send("POST", "/api/setup/deno", "{}", nil); resp.StatusCode != 202 {
		t.Fatalf("%d %s", resp.StatusCode, text)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

// events follows the events that come from now on; next returns the data of
// the next one of a type.
func (r *running) events(t *testing.T) (next func(kind string) string) {
	t.Helper()
	position := r.Host.hub.position()
	return func(kind string) string {
		t.Helper()
		for deadline := time.After(time.Minute); ; {
			events, changed, _ := r.Host.hub.after(position)
			for _, e := range events {
				if position = e.id; e.kind == kind {
					return string(e.data)
				}
			}
			if len(events) > 0 {
				continue
			}
			select {
			case <-changed:
			case <-deadline:
				t.Fatalf("no event %s", kind)
			}
		}
	}
}

// Capabilities have names; whatever else is sent finds nothing, and says so.
func TestCapabilities_NamesOnly(t *testing.T) {
	t.Parallel()
	r, home := serveAsked(t, `{}`)
	resp, text := r.send("GET", "/api/capabilities", "", nil)
	if resp.StatusCode != 200 || !strings.Contains(text, `"total":0`) {
		t.Errorf("without a workspace: %d %s", resp.StatusCode, text)
	}
	if _, err := os.Stat(filepath.Join(home, "ws")); err == nil {
		t.Error("looking at capabilities has created the workspace")
	}
	if err := os.MkdirAll(filepath.Join(home, "ws", "tools"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "ws", "tools", "loose.ts"), []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"none", "loose", "..%2F..%2Fconfig.json", "%2Fetc%2Fpasswd", "index.json", ".versions", "a%00b", "%F0%9F%92%A9", "con", strings.Repeat("x", 150)} {
		for _, send := range [][3]string{
			{"GET", "", ""},
			{"POST", "/run", `{"args":{}}`},
			{"PUT", "", `{"definition":{"name":"` + "none" + `","capability":"x","triggers":["a","b"],"suppression":[]},"code":"1"}`},
		} {
			resp, text := r.send(send[0], "/api/capabilities/"+name+send[1], send[2], nil)
			if resp.StatusCode < 400 || !strings.Contains(text, `"detail":"`) || strings.Contains(text, home) {
				t.Errorf("%s %s: %d %s", send[0], name, resp.StatusCode, text)
			}
		}
	}
	if resp, text := r.send("PUT", "/api/capabilities/other", `{"definition":{"name":"one","capability":"x","triggers":["a"],"suppression":[]},"code":""}`, nil); resp.StatusCode != 422 || !strings.Contains(text, `"step":"shape"`) {
		t.Errorf("another name: %d %s", resp.StatusCode, text)
	}
	if resp, text := r.send("PUT", "/api/capabilities/one", `{"definition":{"name":"one","tool_path":"/x","capability":"x","triggers":["a"]},"code":""}`, nil); resp.StatusCode != 422 || !strings.Contains(text, "unknown key") {
		t.Errorf("another key: %d %s", resp.StatusCode, text)
	}
}
