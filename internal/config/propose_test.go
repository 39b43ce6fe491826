package config

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestPropose_SavesWhatItShowed(t *testing.T) {
	home := homeWith(t, `{"z":[1.50],"agent":{"future":1,"maxTurns":3}}`)
	p, err := Propose(Dirs{User: "/home/somebody", Tendril: home}, Change{"agent.maxTurns", "4"}, Change{"workspace", `"~/other"`})
	if err != nil {
		t.Fatal(err)
	}
	text, err := p.Text()
	if err != nil {
		t.Fatal(err)
	}
	if got := saved(t, home); got != `{"z":[1.50],"agent":{"future":1,"maxTurns":3}}` {
		t.Errorf("a proposal has written: %s", got)
	}
	candidate := filepath.Join(t.TempDir(), "candidate.json")
	if err := os.WriteFile(candidate, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := LoadFile(home, candidate)
	if err != nil || cfg.Agent.MaxTurns != 4 || cfg.Workspace != "~/other" {
		t.Errorf("the candidate reads as %+v, %v", cfg, err)
	}
	if err := p.Save(); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(Path(home)); !bytes.Equal(data, text) {
		t.Errorf("saved is %s, shown was %s", data, text)
	}
}

func TestProposal_SaveFindsOtherChanges(t *testing.T) {
	for name, before := range map[string]string{"there": `{"agent":{"maxTurns":3}}`, "not there": ""} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			if before != "" {
				home = homeWith(t, before)
			}
			p, err := Propose(Dirs{User: "/home/somebody", Tendril: home}, Change{"agent.maxTurns", "4"})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Set(Dirs{User: "/home/somebody", Tendril: home}, Change{"workspace", "~/other"}); err != nil {
				t.Fatal(err)
			}
			if err := p.Save(); !errors.Is(err, ErrChanged) || !errors.Is(err, ErrConfig) {
				t.Errorf("saved over another change: %v", err)
			}
			if got := saved(t, home); !strings.Contains(got, "~/other") || strings.Contains(got, "4") {
				t.Errorf("%s", got)
			}
		})
	}
}

func TestLoadFile_TellsOfTheSettings(t *testing.T) {
	home := homeWith(t, `{}`)
	if _, _, err := LoadFile(home, filepath.Join(home, "none.json")); !errors.Is(err, ErrConfig) {
		t.Errorf("a file that is not there: %v", err)
	}
	candidate := filepath.Join(home, "candidate.json")
	for _, text := range []string{`{"agent":{"maxTurns":0}}`, `{"agent":`} {
		if err := os.WriteFile(candidate, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := LoadFile(home, candidate)
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), Path(home)) || strings.Contains(err.Error(), "candidate") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestDescribe(t *testing.T) {
	d, err := Describe(homeWith(t, `{"agent":{"maxTurns":0,"typo":1},"other":{"apiKey":"sk-not-shown"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"agent.maxTurns", "model.azure.baseURL", "model.provider", "sandbox.policy.network", "sandbox.limits.cpuS", "workspace"} {
		if !slices.Contains(d.Known, want) {
			t.Errorf("%s is not among %v", want, d.Known)
		}
	}
	for _, section := range []string{"agent", "model", "model.azure", "sandbox.policy"} {
		if slices.Contains(d.Known, section) {
			t.Errorf("%s is a section", section)
		}
	}
	if len(d.Problems) != 1 || d.Problems[0].Path != "agent.maxTurns" || len(d.Warnings) != 2 {
		t.Errorf("problems %v, warnings %v", d.Problems, d.Warnings)
	}
	if text := string(d.Settings); strings.Contains(text, "sk-not-shown") || !strings.Contains(text, "tendril-workspace") {
		t.Errorf("%s", text)
	}
	if _, err := Describe(homeWith(t, `{`)); !errors.Is(err, ErrConfig) {
		t.Errorf("broken: %v", err)
	}
}

func TestAvailable(t *testing.T) {
	cfg, _ := load(t, homeWith(t, `{"model":{"provider":"openai","openai":{"modelId":"mine"},"azure":{"baseURL":"https://x.openai.azure.com/openai/v1"}}}`))
	lookup := env("OPENAI_API_KEY=k", "ANTHROPIC_API_KEY=k", "AZURE_OPENAI_API_KEY=k")
	var names []string
	for _, c := range Available(context.Background(), cfg, lookup, ollama("llama3")) {
		names = append(names, c.Name()+" "+c.Reason)
	}
	want := []string{"anthropic/claude-sonnet-4-6 ANTHROPIC_API_KEY is set", "openai/mine OPENAI_API_KEY is set", "ollama/llama3 Ollama answers at http://localhost:11434"}
	if !reflect.DeepEqual(names, want) { // azure has no model
		t.Errorf("%q", names)
	}
	for _, p := range Providers() {
		if Title(p) == "" {
			t.Errorf("%s has no title", p)
		}
	}
}
