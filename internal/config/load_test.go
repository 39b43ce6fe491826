package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// homeWith is a Tendril folder with the given settings.
func homeWith(t *testing.T, settings string) string {
	t.Helper()
	home := t.TempDir()
	if err := os.WriteFile(Path(home), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	return home
}

func load(t *testing.T, home string) (*Config, []Warning) {
	t.Helper()
	cfg, warnings, err := Load(home)
	if err != nil {
		t.Fatal(err)
	}
	return cfg, warnings
}

func TestLoad_Defaults(t *testing.T) {
	for name, home := range map[string]string{
		"no folder":    "",
		"missing":      filepath.Join(t.TempDir(), "none", "here"),
		"no file":      t.TempDir(),
		"empty object": homeWith(t, "{}"),
		"nulls":        homeWith(t, `{"workspace":null,"model":null,"sandbox":{"policy":null,"timeoutMs":null},"registry":null,"agent":{"maxTurns":null}}`),
	} {
		t.Run(name, func(t *testing.T) {
			cfg, warnings := load(t, home)
			if len(warnings) > 0 {
				t.Errorf("warnings: %v", warnings)
			}
			if cfg.Workspace != "~/tendril-workspace" || cfg.Model.Provider != "" || cfg.Sandbox.Limits.Timeout != 45*time.Second ||
				cfg.Sandbox.Network != "auto" || cfg.Sandbox.Require != "any" || cfg.Registry.MaxCapabilities != 500 || cfg.Agent.MaxTurns != 100 {
				t.Errorf("got %+v", cfg)
			}
		})
	}
}

const everything = `{
	"workspace": "~/w",
	"model": {
		"provider": "ollama",
		"bedrock": {"modelId": "b", "region": "us-east-1", "profile": "p", "baseURL": "https://b.example"},
		"ollama": {"host": "http://10.0.0.1:11434/", "modelId": "o", "contextWindow": 32768, "maxTokens": 4096},
		"gemini": {"modelId": "ge"},
		"openrouter": {"modelId": "a/b"},
		"azure": {"modelId": "z", "baseURL": "https://n.openai.azure.com/openai/v1"},
		"openai": {"modelId": "g", "baseURL": "https://example.com/v1/"},
		"anthropic": {"modelId": "a"},
		"prices": {"gpt-5.1": {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}, "free": {"input": 0}}
	},
	"sandbox": {
		"denoPath": "/opt/deno", "timeoutMs": 1000, "allowedDomains": ["example.com", "*.example.com:443", "[2001:db8::1]:443", "*"],
		"policy": {"network": "ask"}, "require": "os", "caFile": "/ca.pem",
		"limits": {"outputBytes": 1, "rssMB": 2, "heapMB": 3, "fileMB": 4, "writtenMB": 5, "files": 6, "processes": 7, "cpuS": 8}
	},
	"registry": {"maxCapabilities": 9, "listBytes": 10},
	"agent": {"maxTurns": 11, "timeoutMs": 12, "budget": {"turnUSD": 0.5, "sessionUSD": 5, "dayUSD": 50}}
}`

func TestLoad_Everything(t *testing.T) {
	cfg, warnings := load(t, homeWith(t, everything))
	want := &Config{
		Workspace: "~/w",
		Model: Model{
			Provider: Ollama,
			Blocks: map[string]Block{
				Bedrock:    {ModelID: "b", Region: "us-east-1", Profile: "p", BaseURL: "https://b.example"},
				Ollama:     {ModelID: "o", Host: "http://10.0.0.1:11434", ContextWindow: 32768, MaxTokens: 4096},
				Gemini:     {ModelID: "ge"},
				OpenRouter: {ModelID: "a/b"},
				Azure:      {ModelID: "z", BaseURL: "https://n.openai.azure.com/openai/v1"},
				OpenAI:     {ModelID: "g", BaseURL: "https://example.com/v1"},
				Anthropic:  {ModelID: "a"},
			},
			Prices: map[string]Prices{"gpt-5.1": {new(3.0), new(15.0), new(0.3), new(3.75)}, "free": {Input: new(0.0)}},
		},
		Sandbox: Sandbox{
			DenoPath: "/opt/deno", AllowedDomains: []string{"example.com", "*.example.com:443", "[2001:db8::1]:443", "*"},
			CAFile: "/ca.pem", Network: "ask", Require: "os",
			Limits: Limits{time.Second, 1, 2, 3, 4, 5, 6, 7, 8 * time.Second},
		},
		Registry: Registry{9, 10},
		Agent:    Agent{11, 12 * time.Millisecond, Budget{0.5, 5, 50}},
		file:     cfg.file,
	}
	if !reflect.DeepEqual(cfg, want) {
		t.Errorf("got  %+v\nwant %+v", cfg, want)
	}
	if len(warnings) > 0 {
		t.Errorf("warnings: %v", warnings)
	}
}

func TestLoad_LimitGoesBeforeTimeout(t *testing.T) {
	cfg, _ := load(t, homeWith(t, `{"sandbox":{"timeoutMs":1000,"limits":{"timeoutMs":2000}}}`))
	if cfg.Sandbox.Limits.Timeout != 2*time.Second {
		t.Errorf("got %v", cfg.Sandbox.Limits.Timeout)
	}
}

func TestLoad_WrongValues(t *testing.T) {
	for settings, want := range map[string]string{
		`{"agent":{"maxTurns":0}}`:                                            "agent.maxTurns: must be a whole number greater than 0 and at most 2147483647, not 0",
		`{"agent":{"maxTurns":-1}}`:                                           "agent.maxTurns: must be a whole number greater than 0 and at most 2147483647, not -1",
		`{"agent":{"maxTurns":1.5}}`:                                          "not 1.5",
		`{"agent":{"maxTurns":1e2}}`:                                          "not 1e2",
		`{"agent":{"maxTurns":99999999999999999999}}`:                         "not 99999999999999999999",
		`{"agent":{"maxTurns":"5"}}`:                                          "agent.maxTurns: must be a whole number greater than 0 and at most 2147483647, not a text",
		`{"agent":{"maxTurns":true}}`:                                         "not true or false",
		`{"agent":{"maxTurns":[5]}}`:                                          "not a list",
		`{"agent":{"maxTurns":{}}}`:                                           "agent.maxTurns: must be a whole number greater than 0, not an object",
		`{"agent":{"timeoutMs":2147483648}}`:                                  "agent.timeoutMs: must be",
		`{"agent":5}`:                                                         "agent: must be an object, not a number",
		`{"agent":{"budget":{"turnUSD":0}}}`:                                  "agent.budget.turnUSD: must be greater than 0",
		`{"agent":{"budget":{"dayUSD":-2}}}`:                                  "agent.budget.dayUSD: must not be negative",
		`{"agent":{"budget":{"dayUSD":1e999}}}`:                               "agent.budget.dayUSD: is out of range",
		`{"workspace":7}`:                                                     "workspace: must be a text, not a number",
		`{"workspace":" "}`:                                                   "workspace: must not be blank",
		`{"workspace":"a\u0000b"}`:                                            "workspace: must not hold control characters",
		`{"model":{"provider":"mistral"}}`:                                    `model.provider: unknown provider "mistral"; there are anthropic, openai, gemini, openrouter, azure, bedrock, ollama`,
		`{"model":{"ollama":{"contextWindow":0}}}`:                            "model.ollama.contextWindow: must be a whole number greater than 0",
		`{"model":{"gemini":{"maxTokens":"8k"}}}`:                             "model.gemini.maxTokens: must be a whole number greater than 0",
		`{"model":{"prices":{"m":{"output":-1}}}}`:                            "model.prices.m.output: must not be negative",
		`{"model":{"prices":{"m":{"output":1e300}}}}`:                         "model.prices.m.output: must not be negative, nor more than 1000000",
		`{"agent":{"budget":{"turnUSD":1e300}}}`:                              "agent.budget.turnUSD: must not be negative, nor more than 1000000",
		`{"model":{"openai":{"baseURL":"https://example.com:99999/v1"}}}`:     "has no port that can be",
		`{"model":{"openai":{"baseURL":"https://example.com:0/v1"}}}`:         "has no port that can be",
		`{"model":{"ollama":{"host":"http://localhost:"}}}`:                   "has no port that can be",
		`{"model":{"provider":"Anthropic"}}`:                                  "there are anthropic",
		`{"model":"gpt"}`:                                                     "model: must be an object, not a text",
		`{"model":{"openai":[]}}`:                                             "model.openai: must be an object, not a list",
		`{"model":{"openai":{"modelId":{"a":1}}}}`:                            "model.openai.modelId: must be a text, not an object",
		`{"model":{"openai":{"modelId":"a\nb"}}}`:                             "model.openai.modelId: must not hold control characters",
		`{"model":{"openai":{"modelId":"a\u202eb"}}}`:                         "model.openai.modelId: must not hold control characters",
		`{"model":{"ollama":{"host":"localhost:11434"}}}`:                     "model.ollama.host: \"localhost:11434\" is no URL; it looks like http://localhost:11434",
		`{"model":{"ollama":{"host":"http://"}}}`:                             "model.ollama.host",
		`{"model":{"ollama":{"host":"http://localhost:11434/v1/"}}}`:          "model.ollama.host: must not end in /v1",
		`{"model":{"openai":{"baseURL":"ftp://example.com"}}}`:                "model.openai.baseURL",
		`{"model":{"openai":{"baseURL":"https://example.com?x=1"}}}`:          "model.openai.baseURL: must end with the path",
		`{"model":{"openai":{"baseURL":"https://example.com/#a"}}}`:           "model.openai.baseURL: must end with the path",
		`{"model":{"openai":{"baseURL":"https://exa mple.com"}}}`:             "model.openai.baseURL",
		`{"model":{"prices":{"m.1":{"input":"3"}}}}`:                          `model.prices."m.1".input: must be a number, not a text`,
		`{"model":{"prices":{"m":3}}}`:                                        "model.prices.m: must be an object, not a number",
		`{"sandbox":{"policy":{"network":"maybe"}}}`:                          `sandbox.policy.network: "maybe" is not known; choose one of auto, ask, deny`,
		`{"sandbox":{"require":"all"}}`:                                       "choose one of os, any",
		`{"sandbox":{"allowedDomains":"example.com"}}`:                        "sandbox.allowedDomains: must be a list of texts, not a text",
		`{"sandbox":{"allowedDomains":["a.example",5]}}`:                      "sandbox.allowedDomains: must be a list of texts, not a list",
		`{"sandbox":{"allowedDomains":["https://a.example/x"]}}`:              "only the host belongs here",
		`{"sandbox":{"allowedDomains":["a.example,b.example"]}}`:              "is no host",
		`{"sandbox":{"allowedDomains":["a.example",""]}}`:                     `entry 2, "", is empty`,
		`{"sandbox":{"limits":{"files":0}}}`:                                  "sandbox.limits.files",
		`{"agent":{"maxTurns":1,"maxTurns":2}}`:                               "agent.maxTurns: occurs twice",
		`[]`:                                                                  "must hold an object",
		`"hi"`:                                                                "must hold an object",
		`null`:                                                                "must hold an object",
		`{"x":` + strings.Repeat(`{"x":`, 70) + `1` + strings.Repeat(`}`, 71): "levels deep",
	} {
		_, _, err := Load(homeWith(t, settings))
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\ngot  %v\nwant %s", settings, err, want)
		}
	}
}

func TestLoad_TellsAllProblems(t *testing.T) {
	home := homeWith(t, `{"workspace":1,"agent":{"maxTurns":0},"sandbox":{"require":"x"}}`)
	_, _, err := Load(home)
	var all *Error
	if !errors.As(err, &all) || len(all.Problems) != 3 {
		t.Fatalf("got %v", err)
	}
	if !strings.HasPrefix(err.Error(), Path(home)+" has 3 problems:\n  workspace: must be a text") {
		t.Errorf("got %v", err)
	}
}

func TestLoad_NeverShowsAPassword(t *testing.T) {
	for _, url := range []string{"https://user:canary@example.com", "ftp://canary@example.com", "https://u:canary@exa mple.com", "user:canary@host"} {
		_, _, err := Load(homeWith(t, `{"model":{"openai":{"baseURL":"`+url+`"}}}`))
		if err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestLoad_BrokenFiles(t *testing.T) {
	comments, err := os.ReadFile("../../testdata/cases/files/config-crlf-comments.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ settings, want string }{
		"comment":           {string(comments), "line 2, column 3: JSON has no comments"},
		"shell comment":     {"{\n# no\n}", "line 2, column 1: JSON has no comments"},
		"trailing comma":    {"{\r\n \"workspace\": \"/w\",\r\n}\r\n", "line 3, column 1: JSON has no comma before a closing bracket"},
		"comma in a list":   {`{"sandbox":{"allowedDomains":["a",]}}`, "line 1, column 35: JSON has no comma"},
		"empty":             {"", "is empty"},
		"blank":             {" \r\n", "is empty"},
		"only a BOM":        {"\ufeff", "is empty"},
		"nul":               {strings.Repeat("\x00", 40), "line 1, column 1: there is a NUL byte"},
		"nul at the end":    {"{}\n\x00\x00", "line 2, column 1: there is a NUL byte"},
		"cut off":           {"{\n\"workspace\": \"/w", "line 2, column 17: the file ends in the middle"},
		"cut after a comma": {`{"workspace": "/w",`, "the file ends in the middle"},
		"stale bytes":       {"{}\n\"old\"}", "line 2, column 1"},
		"single quotes":     {`{'workspace': "/w"}`, "line 1, column 2"},
		"not UTF-8":         {"{\n\"workspace\": \"/f\xfcr\"}", "line 2, column 17: there are bytes that are not UTF-8"},
		"UTF-16":            {"\xff\xfe{\x00}\x00", "the file is UTF-16; save it as UTF-8"},
		"too big":           {`{"workspace": "/w"}` + strings.Repeat(" ", maxFileBytes), "at most 1048576 are read"},
	} {
		t.Run(name, func(t *testing.T) {
			home := homeWith(t, c.settings)
			_, _, err := Load(home)
			if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), Path(home)) {
				t.Errorf("Load: %v, want %s", err, c.want)
			}
			if _, err := Set(Dirs{Tendril: home}, Change{"agent.maxTurns", "5"}); !errors.Is(err, ErrConfig) {
				t.Errorf("Set: %v", err)
			}
			if got, _ := os.ReadFile(Path(home)); string(got) != c.settings {
				t.Errorf("the file was changed to %q", got)
			}
		})
	}
}

func TestLoad_FileKinds(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(Path(folder), 0o700); err != nil {
		t.Fatal(err)
	}
	belowFile := filepath.Join(Path(homeWith(t, "{}")), "home")
	for name, home := range map[string]string{"folder": folder, "below a file": belowFile} {
		if _, _, err := Load(home); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLoad_MarksAndLineEnds(t *testing.T) {
	cfg, _ := load(t, homeWith(t, "\ufeff{\r\n\t\"agent\": {\"maxTurns\": 7}\r\n}\r\n"))
	if cfg.Agent.MaxTurns != 7 {
		t.Errorf("got %d", cfg.Agent.MaxTurns)
	}
}

func TestLoad_Warnings(t *testing.T) {
	for settings, want := range map[string]string{
		`{"agent":{"maxturns":5}}`:                                                "agent.maxturns: is ignored; did you mean agent.maxTurns?",
		`{"agent":{"turns":5}}`:                                                   "agent.turns: is no setting and is ignored; there are maxTurns, timeoutMs, budget",
		`{"Agent":{}}`:                                                            "Agent: is ignored; did you mean agent?",
		`{"model":{"openai":{"apiKey":"canary"}}}`:                                "model.openai.apiKey: looks like a secret; secrets are not read from the settings: remove it here and keep it with: tendril secret set OPENAI_API_KEY",
		`{"other":{"deep":{"AUTH_TOKEN":"canary"}}}`:                              "other.deep.AUTH_TOKEN: looks like a secret",
		`{"model":{"openai":{"baseURL":"http://example.com/v1"}}}`:                "model.openai.baseURL: sends your key unencrypted over the network; use https",
		`{"model":{"openai":{"baseURL":"http://127.0.0.1:1/v1"}}}`:                "",
		`{"model":{"openai":{"baseURL":"http://localhost:1/v1"}}}`:                "",
		`{"model":{"ollama":{"host":"http://10.0.0.1:11434"}}}`:                   "",
		`{"model":{"azure":{"baseURL":"https://n.openai.azure.com/"}}}`:           "model.azure.baseURL: does not end in /openai/v1",
		`{"model":{"azure":{"baseURL":"https://n.openai.azure.com/openai/v1/"}}}`: "",
		`{"model":{"azure":{"apiKey":"canary"}}}`:                                 "model.azure.apiKey: looks like a secret; secrets are not read from the settings: remove it here and keep it with: tendril secret set AZURE_OPENAI_API_KEY",
		`{"theme":{"dark":true},"maxTokens":{"a":1},"version":"2"}`:               "",
	} {
		_, warnings := load(t, homeWith(t, settings))
		if want == "" && len(warnings) > 0 || want != "" && (len(warnings) != 1 || !strings.HasPrefix(warnings[0].String(), want)) {
			t.Errorf("%s: got %v, want %q", settings, warnings, want)
		}
	}
}

func TestLoad_FlatForm(t *testing.T) {
	const flat = `{"model":{"modelId":"m","region":"eu-west-1","profile":"p","extra":1},"workspace":"/w"}`
	home := homeWith(t, flat)
	cfg, warnings := load(t, home)
	if cfg.Model.Provider != Bedrock || cfg.Model.Blocks[Bedrock] != (Block{ModelID: "m", Region: "eu-west-1", Profile: "p"}) {
		t.Errorf("got %+v", cfg.Model)
	}
	if len(warnings) != 2 || !strings.Contains(warnings[1].String(), "early version") {
		t.Errorf("warnings: %v", warnings)
	}
	if got, _ := os.ReadFile(Path(home)); string(got) != flat {
		t.Errorf("loading wrote %s", got)
	}
	if _, err := Set(Dirs{Tendril: home}, Change{"agent.maxTurns", "5"}); err != nil {
		t.Fatal(err)
	}
	const want = `{
  "model": {
    "extra": 1,
    "provider": "bedrock",
    "bedrock": {
      "modelId": "m",
      "region": "eu-west-1",
      "profile": "p"
    }
  },
  "workspace": "/w",
  "agent": {
    "maxTurns": 5
  }
}
`
	if got, _ := os.ReadFile(Path(home)); string(got) != want {
		t.Errorf("got %s", got)
	}
}

func TestLoad_NotTheFlatForm(t *testing.T) {
	for _, settings := range []string{
		`{"model":{"modelId":"m","provider":"openai"}}`,
		`{"model":{"modelId":"m","openai":{"modelId":"x"}}}`,
		`{"model":{"region":"us-east-1"}}`,
		`{"model":[]}`,
	} {
		doc, err := parse([]byte(settings))
		if err != nil {
			t.Fatal(err)
		}
		if migrate(doc) {
			t.Errorf("migrated %s", settings)
		}
	}
}

func FuzzLoad(f *testing.F) {
	for _, s := range []string{everything, "{}", "{,}", `{"a":{"b":[1,{"c":1e999}]}}`, "\ufeff{\r\n}", `{"model":{"modelId":"m"}}`, "\x00", `{"":{"\"":1}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := parse(data)
		if err != nil {
			return
		}
		saved, err := (&member{obj: doc}).indented()
		if err != nil {
			t.Fatalf("cannot be saved: %v", err)
		}
		if before, after := decoded(t, bytes.TrimPrefix(data, []byte("\ufeff"))), decoded(t, saved); !reflect.DeepEqual(before, after) {
			t.Fatalf("changed by saving from %v to %v", before, after)
		}
		migrate(doc)
		inspect(doc)
	})
}

func decoded(t *testing.T, data []byte) (v any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return v
}
