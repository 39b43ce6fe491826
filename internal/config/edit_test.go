package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

func compact(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, data); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func saved(t *testing.T, home string) string {
	t.Helper()
	data, err := os.ReadFile(Path(home))
	if err != nil {
		t.Fatal(err)
	}
	return string(compact(t, data))
}

func TestSet_KeepsWhatItDoesNotKnow(t *testing.T) {
	home := homeWith(t, `{"z":{"b":1,"a":[1.50,{"y":1,"x":2}]},"agent":{"future":9007199254740993,"maxTurns":3,"other":"<\u00e9\/>"},"big":1E+400,"a":null,"":{"\"":0}}`)
	if _, err := Set(Dirs{Tendril: home}, Change{"agent.maxTurns", "4"}); err != nil {
		t.Fatal(err)
	}
	want := `{"z":{"b":1,"a":[1.50,{"y":1,"x":2}]},"agent":{"future":9007199254740993,"maxTurns":4,"other":"<\u00e9\/>"},"big":1E+400,"a":null,"":{"\"":0}}`
	if got := saved(t, home); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestSet_Values(t *testing.T) {
	for _, c := range []struct{ before, path, value, want string }{
		{`{}`, "agent.maxTurns", "5", `{"agent":{"maxTurns":5}}`},
		{`{}`, "agent.maxTurns", " 5\n", `{"agent":{"maxTurns":5}}`},
		{`{}`, "workspace", "/w", `{"workspace":"/w"}`},
		{`{}`, "workspace", `"/w"`, `{"workspace":"/w"}`},
		{`{}`, "model.openai.modelId", "gpt-5.1", `{"model":{"openai":{"modelId":"gpt-5.1"}}}`},
		{`{}`, "model.openai.modelId", `"5"`, `{"model":{"openai":{"modelId":"5"}}}`},
		{`{}`, "model.openai.modelId", `<a&b>`, `{"model":{"openai":{"modelId":"<a&b>"}}}`},
		{`{}`, `model.prices."gpt-5.1".input`, "1.25", `{"model":{"prices":{"gpt-5.1":{"input":1.25}}}}`},
		{`{}`, "model.prices.gpt-4.1.input", "2", `{"model":{"prices":{"gpt-4.1":{"input":2}}}}`},
		{`{}`, "model.prices.openai/gpt-4.1", `{"input":2}`, `{"model":{"prices":{"openai/gpt-4.1":{"input":2}}}}`},
		{`{"model":{"prices":{"gpt-4.1":{"input":2}}}}`, "model.prices.gpt-4.1", "null", `{"model":{"prices":{}}}`},
		{`{}`, "agent", `{"maxTurns": 5}`, `{"agent":{"maxTurns":5}}`},
		{`{"agent":null}`, "agent.maxTurns", "5", `{"agent":{"maxTurns":5}}`},
		{`{}`, "sandbox.allowedDomains", `["a.example"]`, `{"sandbox":{"allowedDomains":["a.example"]}}`},
		{`{"agent":{"maxTurns":5,"x":1}}`, "agent.maxTurns", "null", `{"agent":{"x":1}}`},
		{`{"agent":{"maxTurns":5,"x":1}}`, "agent.x", "null", `{"agent":{"maxTurns":5}}`},
		{`{"agent":{"x":1}}`, "agent.x", "2", `{"agent":{"x":2}}`},
		{`{}`, "agent.maxTurns", "null", `{"agent":{}}`},
	} {
		home := homeWith(t, c.before)
		if _, err := Set(Dirs{Tendril: home}, Change{c.path, c.value}); err != nil {
			t.Errorf("%s %s %s: %v", c.before, c.path, c.value, err)
			continue
		}
		if got := saved(t, home); got != c.want {
			t.Errorf("%s %s %s:\ngot  %s\nwant %s", c.before, c.path, c.value, got, c.want)
		}
	}
}

func TestSet_Refuses(t *testing.T) {
	for _, c := range []struct{ before, path, value, want string }{
		{`{}`, "agent.maxTurns", "0", "agent.maxTurns: must be a whole number"},
		{`{}`, "agent.maxTurns", "many", "not a text"},
		{`{}`, "agent", "5", "agent: must be an object"},
		{`{}`, "agent.maxTurn", "5", "agent.maxTurn is no setting; there are agent.maxTurns, agent.timeoutMs, agent.budget"},
		{`{}`, "agent.maxTurn", "null", "agent.maxTurn is no setting"},
		{`{}`, "model.prices.input", "3", "model.prices.input: names no model; it looks like model.prices.gpt-5.1.input"},
		{`{}`, "model.prices.openai", `{"input":1}`, "model.prices.openai: names no model"},
		{`{}`, `model.prices.""`, `{"input":1}`, `model.prices."": names no model: it is empty`},
		{`{}`, `model.prices."a\u001bb"`, `{"input":1}`, "names no model: it must not hold control characters"},
		{`{}`, "model.prices.m.inputs", "3", `model.prices."m.inputs": must be an object`},
		{`{}`, "nothing", "5", "nothing is no setting; there are workspace, model"},
		{`{}`, "a.b.c", "5", "`tendril config get` shows"},
		{`{}`, "", "5", "is no setting"},
		{`{}`, "agent..maxTurns", "5", "is no setting"},
		{`{}`, "agent.", "5", "is no setting"},
		{`{}`, `model."open`, "5", "is no setting"},
		{`{}`, `model."openai"x`, "5", "is no setting"},
		{`{}`, "agent.maxTurns.deep", "5", "agent.maxTurns.deep is no setting"},
		{`{"agent":{"maxTurns":5}}`, "agent.maxTurns.deep", "5", "agent.maxTurns is no object"},
		{`{}`, "model.openai.apiKey", "canary", "tendril secret set OPENAI_API_KEY"},
		{`{}`, "model.provider", "openai", "model.openai.modelId: missing; set it with: tendril config set model.openai.modelId gpt-"},
		{`{}`, "model.provider", "ollama", "model.ollama.host: missing"},
		{`{}`, "model.provider", "mistral", "unknown provider"},
		{`{}`, "model.provider", "azure", "model.azure.baseURL: missing"},
		{`{"model":{"provider":"openai","openai":{"modelId":"m"}}}`, "model.openai.modelId", "null", "model.openai.modelId: missing"},
		{`{}`, "agent", `{"maxTurns":1,"maxTurns":2}`, "occurs twice"},
	} {
		home := homeWith(t, c.before)
		_, err := Set(Dirs{Tendril: home}, Change{c.path, c.value})
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s %s: got %v, want %s", c.path, c.value, err, c.want)
		}
		if got := saved(t, home); got != c.before {
			t.Errorf("%s %s: the file is now %s", c.path, c.value, got)
		}
	}
}

func TestSet_AllOrNone(t *testing.T) {
	home := homeWith(t, `{}`)
	if _, err := Set(Dirs{Tendril: home}, Change{"workspace", "/w"}, Change{"agent.maxTurns", "0"}); err == nil || saved(t, home) != `{}` {
		t.Errorf("got %v, %s", err, saved(t, home))
	}
	if _, err := Set(Dirs{Tendril: home}, Change{"model.provider", "openai"}, Change{"model.openai.modelId", "m"}); err != nil {
		t.Errorf("in any order: %v", err)
	}
}

func TestSet_MendsOneProblemAtATime(t *testing.T) {
	home := homeWith(t, `{"workspace":1,"agent":{"maxTurns":0},"model":{"provider":"bedrock"}}`)
	for _, c := range []Change{
		{"agent.maxTurns", "5"},
		{"workspace", "/w"},
		{"model.bedrock.modelId", "m"},
		{"model.bedrock.region", "us-east-1"},
	} {
		if _, err := Set(Dirs{Tendril: home}, c); err != nil {
			t.Errorf("%v: %v", c, err)
		}
	}
	if cfg, _ := load(t, home); len(cfg.Model.missing()) > 0 || cfg.Agent.MaxTurns != 5 {
		t.Errorf("got %+v", cfg)
	}
}

func TestSet_ReturnsNewWarningsOnly(t *testing.T) {
	home := homeWith(t, `{"agent":{"old":1}}`)
	warnings, err := Set(Dirs{Tendril: home}, Change{"model.openai.baseURL", "http://example.com"})
	if err != nil || len(warnings) != 1 || warnings[0].Path != "model.openai.baseURL" {
		t.Errorf("got %v, %v", warnings, err)
	}
}

func TestSet_PrivateAndWhole(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes")
	}
	home := filepath.Join(t.TempDir(), "new", "home")
	for range 2 { // the second time over a file that others may read
		if _, err := Set(Dirs{Tendril: home}, Change{"workspace", "/w"}); err != nil {
			t.Fatal(err)
		}
		for path, mode := range map[string]os.FileMode{home: 0o700, Path(home): 0o600} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
				t.Errorf("%s: %v, %v", path, info.Mode(), err)
			}
		}
		if err := os.Chmod(Path(home), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(home)
	if err != nil || len(entries) != 2 { // the settings and the lock
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestSet_KeepsALink(t *testing.T) {
	home, dotfiles := t.TempDir(), homeWith(t, `{"x":1}`)
	if err := os.Symlink(Path(dotfiles), Path(home)); err != nil {
		t.Skip(err)
	}
	if _, err := Set(Dirs{Tendril: home}, Change{"workspace", "/w"}); err != nil {
		t.Fatal(err)
	}
	if got := saved(t, dotfiles); got != `{"x":1,"workspace":"/w"}` {
		t.Errorf("got %s", got)
	}
}

func TestSet_AfterACrash(t *testing.T) {
	home := homeWith(t, `{"x":1}`)
	if err := os.WriteFile(Path(home)+".tmp", []byte(`{"half`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Set(Dirs{Tendril: home}, Change{"workspace", "/w"}); err != nil || saved(t, home) != `{"x":1,"workspace":"/w"}` {
		t.Errorf("got %v, %s", err, saved(t, home))
	}
}

func TestSet_NoFolder(t *testing.T) {
	for _, home := range []string{"", filepath.Join(Path(homeWith(t, "{}")), "below-a-file")} {
		if _, err := Set(Dirs{Tendril: home}, Change{"workspace", "/w"}); !errors.Is(err, ErrConfig) {
			t.Errorf("%q: %v", home, err)
		}
	}
}

// TestSet_ManyProcesses runs this test binary again, so that several processes
// write at once.
func TestSet_ManyProcesses(t *testing.T) {
	const processes, each = 4, 10
	if home := os.Getenv("CONFIG_TEST_HOME"); home != "" {
		for i := range each {
			path := fmt.Sprintf("model.prices.m%s_%d.input", os.Getenv("CONFIG_TEST_PROCESS"), i)
			if _, err := Set(Dirs{Tendril: home}, Change{path, "1"}); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	home := t.TempDir()
	var wg sync.WaitGroup
	for p := range processes {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestSet_ManyProcesses$")
			cmd.Env = append(os.Environ(), "CONFIG_TEST_HOME="+home, fmt.Sprintf("CONFIG_TEST_PROCESS=%d", p))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	if cfg, _ := load(t, home); len(cfg.Model.Prices) != processes*each {
		t.Errorf("%d of %d changes are there", len(cfg.Model.Prices), processes*each)
	}
}

func TestGet(t *testing.T) {
	home := homeWith(t, `{"agent":{"maxTurns":5,"x":{"y":[1]}},"model":{"openai":{"modelId":"m","apiKey":"canary"},"prices":{"a.b":{"input":1}}},"token":"canary"}`)
	for path, want := range map[string]string{
		"agent.maxTurns":            `5`,
		"agent.x.y":                 `[1]`,
		"agent":                     `{"maxTurns":5,"x":{"y":[1]}}`,
		"workspace":                 `"~/tendril-workspace"`,
		"sandbox.timeoutMs":         `45000`,
		"sandbox.policy":            `{"network":"auto"}`,
		"model.provider":            `null`,
		"model.anthropic.modelId":   `null`,
		`model.prices."a.b".input`:  `1`,
		`"agent".maxTurns`:          `5`,
		"model.openai":              `{"modelId":"m","apiKey":"(hidden)"}`,
		"model.openai.apiKey":       `"(hidden)"`,
		"token":                     `"(hidden)"`,
		`model.prices."a.b".output`: `null`,
	} {
		got, err := Get(home, path)
		if err != nil || string(compact(t, got)) != want {
			t.Errorf("%s: got %s, %v, want %s", path, got, err, want)
		}
	}
	all, err := Get(home, "")
	if err != nil || !json.Valid(all) || strings.Contains(string(all), "canary") || !strings.Contains(string(all), "maxCapabilities") {
		t.Errorf("everything: %s, %v", all, err)
	}
	for _, path := range []string{"agent.turns", "x", "agent.maxTurns.y", ".", "model.openai."} {
		if got, err := Get(home, path); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: got %s, %v", path, got, err)
		}
	}
}

func TestGet_WithProblems(t *testing.T) {
	got, err := Get(homeWith(t, `{"agent":{"maxTurns":0}}`), "agent.maxTurns")
	if err != nil || string(got) != "0" {
		t.Errorf("got %s, %v", got, err)
	}
}

func FuzzPath(f *testing.F) {
	for _, s := range []string{"a", "a.b", `a."b.c".d`, `""`, `"a`, "a..b", `"\u0041".b`, `"a"b`, "model.prices.a.b.input", `model.prices."a.b".c.output`, "model.prices.input.input", "model.prices.input.\x9cnput"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		keys, err := splitPath(path)
		if err != nil {
			return
		}
		again, err := splitPath(joinPath(keys))
		if err != nil || strings.Join(again, "\x00") != strings.Join(keys, "\x00") {
			t.Fatalf("%q: %q, then %q (%v)", path, keys, again, err)
		}
	})
}

// A workspace that no command would take is not saved, however it is written.
func TestSet_Workspace(t *testing.T) {
	user := t.TempDir()
	dirs := Dirs{User: user, Tendril: filepath.Join(user, ".tendril")}
	if err := os.WriteFile(filepath.Join(user, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "  ", "relative/folder", ".", "~", user, filepath.Dir(user), "/", "/etc", "/usr/x", "/tmp", dirs.Tendril, user + "/../x", user + "/a,b", filepath.Join(user, "file"), "~/file"} {
		if _, err := Set(dirs, Change{"workspace", bad}); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "not saved: ") {
			t.Errorf("%q: %v", bad, err)
		}
		if cfg, _, err := Load(dirs.Tendril); err != nil || cfg.Workspace != "~/tendril-workspace" {
			t.Errorf("%q was saved: %v, %v", bad, cfg, err)
		}
	}
	for _, good := range []string{"~/w", filepath.Join(user, "w"), "/w"} {
		if _, err := Set(dirs, Change{"workspace", good}); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	if _, err := Set(dirs, Change{"workspace", "null"}); err != nil {
		t.Error(err)
	}
	// one that was there before can stay while something else is changed
	if err := os.WriteFile(Path(dirs.Tendril), []byte(`{"workspace":"relative"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Set(dirs, Change{"agent.maxTurns", "5"}); err != nil {
		t.Error(err)
	}
}
