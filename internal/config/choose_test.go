package config

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func ollama(models ...string) Probe {
	return func(context.Context, string) ([]string, error) { return models, nil }
}

func noOllama(context.Context, string) ([]string, error) {
	return nil, errors.New("connection refused")
}

func env(vars ...string) func(string) string {
	return func(name string) string {
		for _, v := range vars {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

func TestChoose(t *testing.T) {
	const (
		anthropicKey = "ANTHROPIC_API_KEY=a"
		openaiKey    = "OPENAI_API_KEY=o"
		openai       = `{"model":{"provider":"openai","openai":{"modelId":"m","baseURL":"https://e.example/v1"},"ollama":{"host":"http://h:1"}}}`
	)
	for _, c := range []struct {
		name, settings, override string
		env                      func(string) string
		probe                    Probe
		want                     Choice
	}{
		{"the flag wins", openai, "anthropic/claude", env(anthropicKey), nil,
			Choice{Anthropic, "claude", "", "ANTHROPIC_API_KEY", "--model"}},
		{"a model with slashes", openai, "openai/meta/llama:3", env(openaiKey), nil,
			Choice{OpenAI, "meta/llama:3", "https://e.example/v1", "OPENAI_API_KEY", "--model"}},
		{"demo", openai, "demo", env(), nil, Choice{Provider: Demo, Reason: "--model"}},
		{"demo needs no usable provider", `{"model":{"provider":"bedrock"}}`, "demo", env(), nil, Choice{Provider: Demo, Reason: "--model"}},
		{"ollama by flag", openai, "ollama/llama", env(), nil, Choice{Ollama, "llama", "http://h:1/v1", "", "--model"}},
		{"ollama by flag alone", `{}`, "ollama/llama", env(), nil, Choice{Ollama, "llama", "http://localhost:11434/v1", "", "--model"}},
		{"the settings", openai, "", env(anthropicKey, openaiKey), nil,
			Choice{OpenAI, "m", "https://e.example/v1", "OPENAI_API_KEY", "model.provider in the settings"}},
		{"ollama in the settings", `{"model":{"provider":"ollama","ollama":{"modelId":"m","host":"http://h:1/"}}}`, "", env(), nil,
			Choice{Ollama, "m", "http://h:1/v1", "", "model.provider in the settings"}},
		{"another address for ollama", `{"model":{"provider":"ollama","ollama":{"modelId":"m","baseURL":"http://h:1/api"}}}`, "", env(), nil,
			Choice{Ollama, "m", "http://h:1/api", "", "model.provider in the settings"}},
		{"anthropic key", `{}`, "", env(anthropicKey, openaiKey), noOllama,
			Choice{Anthropic, DefaultModel(Anthropic), "", "ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY is set"}},
		{"openai key", `{}`, "", env("ANTHROPIC_API_KEY= ", openaiKey), noOllama,
			Choice{OpenAI, DefaultModel(OpenAI), "", "OPENAI_API_KEY", "OPENAI_API_KEY is set"}},
		{"a mentioned provider goes first", `{"model":{"openai":{"baseURL":"https://e.example/v1"}}}`, "", env(anthropicKey, openaiKey), noOllama,
			Choice{OpenAI, DefaultModel(OpenAI), "https://e.example/v1", "OPENAI_API_KEY", "OPENAI_API_KEY is set"}},
		{"a mentioned ollama goes first", `{"model":{"ollama":{"modelId":"m"}}}`, "", env(anthropicKey), ollama("x"),
			Choice{Ollama, "m", "http://localhost:11434/v1", "", "Ollama answers at http://localhost:11434"}},
		{"a mentioned ollama that is down", `{"model":{"ollama":{"modelId":"m"}}}`, "", env(anthropicKey), noOllama,
			Choice{Anthropic, DefaultModel(Anthropic), "", "ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY is set"}},
		{"ollama's default", `{}`, "", env(), ollama("x", "qwen3:8b"),
			Choice{Ollama, "qwen3:8b", "http://localhost:11434/v1", "", "Ollama answers at http://localhost:11434"}},
		{"ollama's first", `{}`, "", env(), ollama("x:1", "y"),
			Choice{Ollama, "x:1", "http://localhost:11434/v1", "", "Ollama answers at http://localhost:11434"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, _ := load(t, homeWith(t, c.settings))
			got, err := Choose(t.Context(), cfg, c.override, c.env, c.probe)
			if err != nil || got != c.want {
				t.Errorf("got %+v, %v\nwant %+v", got, err, c.want)
			}
		})
	}
}

func TestChoose_Refuses(t *testing.T) {
	for _, c := range []struct {
		name, settings, override string
		env                      func(string) string
		probe                    Probe
		want                     []string
		flag                     bool
	}{
		{"unknown provider", `{}`, "gemini/x", env(), nil, []string{`"gemini"`, "anthropic, openai, ollama, bedrock, and demo"}, true},
		{"no provider", `{}`, "gpt-5.1", env(), nil, []string{"unknown provider"}, true},
		{"no model", `{}`, "openai", env(), nil, []string{"names no model", "openai/gpt-"}, true},
		{"empty model", `{}`, "ollama/", env(), nil, []string{"names no model"}, true},
		{"control characters", `{}`, "ollama/a\x1b[2J", env(), nil, []string{"names no model"}, true},
		{"part of demo", `{}`, "demo/x", env(), nil, []string{"unknown provider"}, true},
		{"bedrock by flag", `{}`, "bedrock/x", env(), nil, []string{"comes with version 0.2"}, false},
		{"bedrock", `{"model":{"provider":"bedrock","bedrock":{"modelId":"m","region":"r"}}}`, "", env("ANTHROPIC_API_KEY=a"), nil,
			[]string{"comes with version 0.2", "--model", "anthropic, openai, ollama"}, false},
		{"bedrock, incomplete", `{"model":{"provider":"bedrock"}}`, "", env(), nil, []string{"comes with version 0.2"}, false},
		{"no key", `{"model":{"provider":"openai","openai":{"modelId":"m"}}}`, "", env("ANTHROPIC_API_KEY=a"), nil,
			[]string{"openai/m needs a key", "export OPENAI_API_KEY=", "--model demo"}, false},
		{"no key for an endpoint", `{"model":{"openai":{"baseURL":"http://localhost:1/v1"}}}`, "openai/m", env(), nil,
			[]string{"OPENAI_API_KEY is not set", "any text will do when http://localhost:1/v1 wants no key"}, false},
		{"openai incomplete", `{"model":{"provider":"openai","openai":{"modelId":""}}}`, "", env("OPENAI_API_KEY=o"), nil,
			[]string{"config.json: model.openai.modelId: missing; set it with: tendril config set model.openai.modelId gpt-"}, false},
		{"ollama incomplete", `{"model":{"provider":"ollama"}}`, "", env(), nil,
			[]string{"2 problems", "model.ollama.modelId: missing", "model.ollama.host: missing; set it with: tendril config set model.ollama.host http://localhost:11434"}, false},
		{"nothing", `{}`, "", env(), noOllama,
			[]string{"export ANTHROPIC_API_KEY=", "export OPENAI_API_KEY=", "nothing answers at http://localhost:11434", "bedrock    comes with version 0.2", "--model demo"}, false},
		{"ollama without a model", `{}`, "", env(), ollama(), []string{"ollama pull"}, false},
		{"AWS alone", `{}`, "", env("AWS_PROFILE=p"), noOllama, []string{"AWS credentials are there"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, _ := load(t, homeWith(t, c.settings))
			got, err := Choose(t.Context(), cfg, c.override, c.env, c.probe)
			if !errors.Is(err, ErrConfig) || errors.Is(err, ErrModelFlag) != c.flag {
				t.Fatalf("got %+v, %v", got, err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
		})
	}
}

func TestChoose_Cancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cfg, _ := load(t, "")
	_, err := Choose(ctx, cfg, "", env(), func(ctx context.Context, _ string) ([]string, error) {
		cancel()
		return nil, ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestChoice_Name(t *testing.T) {
	if got := (Choice{Provider: OpenAI, Model: "a/b"}).Name(); got != "openai/a/b" {
		t.Error(got)
	}
	if got := (Choice{Provider: Demo}).Name(); got != "demo" {
		t.Error(got)
	}
}
