package config

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tendril-agent/tendril/internal/catalog"
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
		azureKey     = "AZURE_OPENAI_API_KEY=z"
		azure        = `{"model":{"provider":"azure","azure":{"modelId":"dep","baseURL":"https://n.openai.azure.com/openai/v1/"}}}`
		bedrock      = `{"model":{"provider":"bedrock","bedrock":{"modelId":"m","region":"eu-west-1","profile":"p"}}}`
		openai       = `{"model":{"provider":"openai","openai":{"modelId":"m","baseURL":"https://e.example/v1"},"ollama":{"host":"http://h:1"}}}`
	)
	for _, c := range []struct {
		name, settings, override string
		env                      func(string) string
		probe                    Probe
		want                     Choice
	}{
		{"the flag wins", openai, "anthropic/claude", env(anthropicKey), nil,
			Choice{Provider: Anthropic, Model: "claude", KeyEnv: "ANTHROPIC_API_KEY", Reason: "--model"}},
		{"a model with slashes", openai, "openai/meta/llama:3", env(openaiKey), nil,
			Choice{Provider: OpenAI, Model: "meta/llama:3", BaseURL: "https://e.example/v1", KeyEnv: "OPENAI_API_KEY", Reason: "--model"}},
		{"demo", openai, "demo", env(), nil, Choice{Provider: Demo, Reason: "--model"}},
		{"demo needs no usable provider", `{"model":{"provider":"bedrock"}}`, "demo", env(), nil, Choice{Provider: Demo, Reason: "--model"}},
		{"ollama by flag", openai, "ollama/llama", env(), nil, Choice{Provider: Ollama, Model: "llama", BaseURL: "http://h:1/v1", Reason: "--model"}},
		{"ollama by flag alone", `{}`, "ollama/llama", env(), nil, Choice{Provider: Ollama, Model: "llama", BaseURL: "http://localhost:11434/v1", Reason: "--model"}},
		{"the settings", openai, "", env(anthropicKey, openaiKey), nil,
			Choice{Provider: OpenAI, Model: "m", BaseURL: "https://e.example/v1", KeyEnv: "OPENAI_API_KEY", Reason: "model.provider in the settings"}},
		{"ollama in the settings", `{"model":{"provider":"ollama","ollama":{"modelId":"m","host":"http://h:1/"}}}`, "", env(), nil,
			Choice{Provider: Ollama, Model: "m", BaseURL: "http://h:1/v1", Reason: "model.provider in the settings"}},
		{"another address for ollama", `{"model":{"provider":"ollama","ollama":{"modelId":"m","baseURL":"http://h:1/api"}}}`, "", env(), nil,
			Choice{Provider: Ollama, Model: "m", BaseURL: "http://h:1/api", Reason: "model.provider in the settings"}},
		{"anthropic key", `{}`, "", env(anthropicKey, openaiKey), noOllama,
			Choice{Provider: Anthropic, Model: DefaultModel(Anthropic), KeyEnv: "ANTHROPIC_API_KEY", Reason: "ANTHROPIC_API_KEY is set"}},
		{"openai key", `{}`, "", env("ANTHROPIC_API_KEY= ", openaiKey), noOllama,
			Choice{Provider: OpenAI, Model: DefaultModel(OpenAI), KeyEnv: "OPENAI_API_KEY", Reason: "OPENAI_API_KEY is set"}},
		{"a mentioned provider goes first", `{"model":{"openai":{"baseURL":"https://e.example/v1"}}}`, "", env(anthropicKey, openaiKey), noOllama,
			Choice{Provider: OpenAI, Model: DefaultModel(OpenAI), BaseURL: "https://e.example/v1", KeyEnv: "OPENAI_API_KEY", Reason: "OPENAI_API_KEY is set"}},
		{"a mentioned ollama goes first", `{"model":{"ollama":{"modelId":"m"}}}`, "", env(anthropicKey), ollama("x"),
			Choice{Provider: Ollama, Model: "m", BaseURL: "http://localhost:11434/v1", Reason: "Ollama answers at http://localhost:11434"}},
		{"a mentioned ollama that is down", `{"model":{"ollama":{"modelId":"m"}}}`, "", env(anthropicKey), noOllama,
			Choice{Provider: Anthropic, Model: DefaultModel(Anthropic), KeyEnv: "ANTHROPIC_API_KEY", Reason: "ANTHROPIC_API_KEY is set"}},
		{"ollama's default", `{}`, "", env(), ollama("x", "qwen3:8b"),
			Choice{Provider: Ollama, Model: "qwen3:8b", BaseURL: "http://localhost:11434/v1", Reason: "Ollama answers at http://localhost:11434"}},
		{"ollama's first", `{}`, "", env(), ollama("x:1", "y"),
			Choice{Provider: Ollama, Model: "x:1", BaseURL: "http://localhost:11434/v1", Reason: "Ollama answers at http://localhost:11434"}},
		{"ollama at another address is asked there", `{"model":{"ollama":{"baseURL":"http://h:1/v1"}}}`, "", env(), ollama("x"),
			Choice{Provider: Ollama, Model: "x", BaseURL: "http://h:1/v1", Reason: "Ollama answers at http://h:1"}},
		{"gemini key", `{}`, "", env("GEMINI_API_KEY=g", "OPENROUTER_API_KEY=r", "AWS_PROFILE=p", "AWS_REGION=us-east-1"), noOllama,
			Choice{Provider: Gemini, Model: DefaultModel(Gemini), BaseURL: "https://generativelanguage.googleapis.com/v1beta/openai", KeyEnv: "GEMINI_API_KEY", Reason: "GEMINI_API_KEY is set"}},
		{"openrouter key", `{}`, "", env("OPENROUTER_API_KEY=r", "AWS_PROFILE=p", "AWS_REGION=us-east-1"), ollama("x"),
			Choice{Provider: OpenRouter, Model: "anthropic/claude-sonnet-4.6", BaseURL: "https://openrouter.ai/api/v1", KeyEnv: "OPENROUTER_API_KEY", Reason: "OPENROUTER_API_KEY is set"}},
		{"openrouter by flag", `{}`, "openrouter/anthropic/claude-sonnet-4.6", env("OPENROUTER_API_KEY=r"), nil,
			Choice{Provider: OpenRouter, Model: "anthropic/claude-sonnet-4.6", BaseURL: "https://openrouter.ai/api/v1", KeyEnv: "OPENROUTER_API_KEY", Reason: "--model"}},
		{"openrouter behind a proxy", `{"model":{"openrouter":{"baseURL":"https://e.example/v1"}}}`, "openrouter/a/b:free", env("OPENROUTER_API_KEY=r"), nil,
			Choice{Provider: OpenRouter, Model: "a/b:free", BaseURL: "https://e.example/v1", KeyEnv: "OPENROUTER_API_KEY", Reason: "--model"}},
		{"azure", azure, "", env(azureKey), nil, Choice{Provider: Azure, Model: "dep", BaseURL: "https://n.openai.azure.com/openai/v1",
			KeyEnv: "AZURE_OPENAI_API_KEY", KeyHeader: "api-key", Reason: "model.provider in the settings"}},
		{"azure is found", strings.Replace(azure, `"provider":"azure",`, "", 1), "", env(azureKey, openaiKey), nil, Choice{Provider: Azure, Model: "dep",
			BaseURL: "https://n.openai.azure.com/openai/v1", KeyEnv: "AZURE_OPENAI_API_KEY", KeyHeader: "api-key", Reason: "AZURE_OPENAI_API_KEY is set"}},
		{"azure's key alone is not enough", `{}`, "", env(azureKey), ollama("x"),
			Choice{Provider: Ollama, Model: "x", BaseURL: "http://localhost:11434/v1", Reason: "Ollama answers at http://localhost:11434"}},
		{"bedrock", bedrock, "", env("AWS_REGION=us-west-2"), nil,
			Choice{Provider: Bedrock, Model: "m", Region: "eu-west-1", Profile: "p", Reason: "model.provider in the settings"}},
		{"bedrock by flag", `{}`, "bedrock/m", env("AWS_DEFAULT_REGION=us-west-2"), nil, Choice{Provider: Bedrock, Model: "m", Region: "us-west-2", Reason: "--model"}},
		{"bedrock with an ARN", `{}`, "bedrock/arn:aws:bedrock:us-east-1:1:inference-profile/us.x", env("AWS_REGION=us-east-1"), nil,
			Choice{Provider: Bedrock, Model: "arn:aws:bedrock:us-east-1:1:inference-profile/us.x", Region: "us-east-1", Reason: "--model"}},
		{"AWS credentials", `{}`, "", env("AWS_PROFILE=p", "AWS_REGION=us-east-2"), ollama("x"),
			Choice{Provider: Bedrock, Model: "us.anthropic.claude-sonnet-4-6", Region: "us-east-2", Reason: "AWS_PROFILE is set"}},
		{"AWS credentials in Europe", `{}`, "", env("AWS_ACCESS_KEY_ID=a", "AWS_DEFAULT_REGION=eu-north-1"), noOllama,
			Choice{Provider: Bedrock, Model: "eu.anthropic.claude-sonnet-4-6", Region: "eu-north-1", Reason: "AWS_ACCESS_KEY_ID is set"}},
		{"AWS credentials elsewhere, with a model", `{"model":{"bedrock":{"modelId":"m"}}}`, "", env("AWS_BEARER_TOKEN_BEDROCK=a", "AWS_REGION=sa-east-1", anthropicKey), noOllama,
			Choice{Provider: Bedrock, Model: "m", Region: "sa-east-1", Reason: "AWS_BEARER_TOKEN_BEDROCK is set"}},
		{"AWS credentials elsewhere, without a model", `{}`, "", env("AWS_PROFILE=p", "AWS_REGION=sa-east-1"), ollama("x"),
			Choice{Provider: Ollama, Model: "x", BaseURL: "http://localhost:11434/v1", Reason: "Ollama answers at http://localhost:11434"}},
		{"AWS credentials without a region", `{}`, "", env("AWS_PROFILE=p"), ollama("x"),
			Choice{Provider: Ollama, Model: "x", BaseURL: "http://localhost:11434/v1", Reason: "Ollama answers at http://localhost:11434"}},
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
		{"unknown provider", `{}`, "mistral/x", env(), nil, []string{`"mistral"`, "anthropic, openai, gemini, openrouter, azure, bedrock, ollama, and demo"}, true},
		{"no provider", `{}`, "gpt-5.1", env(), nil, []string{"unknown provider"}, true},
		{"no model", `{}`, "openai", env(), nil, []string{"names no model", "openai/gpt-"}, true},
		{"empty model", `{}`, "ollama/", env(), nil, []string{"names no model"}, true},
		{"control characters", `{}`, "ollama/a\x1b[2J", env(), nil, []string{"names no model"}, true},
		{"part of demo", `{}`, "demo/x", env(), nil, []string{"unknown provider"}, true},
		{"bedrock by flag", `{}`, "bedrock/x", env("AWS_PROFILE=p"), nil, []string{"bedrock/x needs a region", "AWS_REGION", "model.bedrock.region us-east-1"}, false},
		{"bedrock without a model", `{}`, "bedrock/", env(), nil, []string{"it looks like bedrock/us.anthropic.claude-"}, true},
		{"bedrock, incomplete", `{"model":{"provider":"bedrock"}}`, "", env("AWS_REGION=us-east-1"), nil,
			[]string{"2 problems", "model.bedrock.modelId: missing", "model.bedrock.region: missing"}, false},
		{"azure by flag", `{}`, "azure/x", env("AZURE_OPENAI_API_KEY=z"), nil, []string{"azure/x needs the address", "model.azure.baseURL https://NAME.openai.azure.com/openai/v1"}, false},
		{"azure, incomplete", `{"model":{"provider":"azure"}}`, "", env(), nil, []string{"model.azure.modelId: missing", "model.azure.baseURL: missing"}, false},
		{"azure without a deployment", `{"model":{"azure":{"baseURL":"https://n.openai.azure.com/openai/v1"}}}`, "", env("AZURE_OPENAI_API_KEY=z"), noOllama,
			[]string{"tendril config set model.azure.modelId"}, false},
		{"gemini without a key", `{}`, "gemini/x", env(), nil, []string{"gemini/x needs a key", "export GEMINI_API_KEY="}, false},
		{"no key", `{"model":{"provider":"openai","openai":{"modelId":"m"}}}`, "", env("ANTHROPIC_API_KEY=a"), nil,
			[]string{"openai/m needs a key", "export OPENAI_API_KEY=", "--model demo"}, false},
		{"no key for an endpoint", `{"model":{"openai":{"baseURL":"http://localhost:1/v1"}}}`, "openai/m", env(), nil,
			[]string{"OPENAI_API_KEY is not set", "any text will do when http://localhost:1/v1 wants no key"}, false},
		{"openai incomplete", `{"model":{"provider":"openai","openai":{"modelId":""}}}`, "", env("OPENAI_API_KEY=o"), nil,
			[]string{"config.json: model.openai.modelId: missing; set it with: tendril config set model.openai.modelId gpt-"}, false},
		{"ollama incomplete", `{"model":{"provider":"ollama"}}`, "", env(), nil,
			[]string{"2 problems", "model.ollama.modelId: missing", "model.ollama.host: missing; set it with: tendril config set model.ollama.host http://localhost:11434"}, false},
		{"nothing", `{}`, "", env(), noOllama,
			[]string{"tendril secret set ANTHROPIC_API_KEY", "tendril secret set OPENAI_API_KEY", "nothing answers at http://localhost:11434", "tendril secret set OPENROUTER_API_KEY", "export AWS_PROFILE=", "--model demo"}, false},
		{"all but the key", `{"model":{"openai":{"baseURL":"http://localhost:1/v1","modelId":"m"}}}`, "", env(), noOllama,
			[]string{"openai/m needs a key, and OPENAI_API_KEY is not set", "any text will do when http://localhost:1/v1 wants no key"}, false},
		{"a model, and no key", `{"model":{"gemini":{"modelId":"g"}}}`, "", env(), noOllama, []string{"gemini/g needs a key, and GEMINI_API_KEY is not set"}, false},
		{"ollama without a model", `{}`, "", env(), ollama(), []string{"ollama pull"}, false},
		{"AWS alone", `{}`, "", env("AWS_PROFILE=p"), noOllama, []string{"bedrock     AWS_PROFILE is set; set the region: export AWS_REGION=us-east-1"}, false},
		{"AWS alone, elsewhere", `{}`, "", env("AWS_PROFILE=p", "AWS_REGION=us-gov-west-1"), noOllama, []string{"set a model of us-gov-west-1: tendril config set model.bedrock.modelId"}, false},
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

func TestChoose_CredentialsFile(t *testing.T) {
	home := t.TempDir()
	cfg, _ := load(t, "")
	region := "AWS_REGION=us-east-1"
	if got, err := Choose(t.Context(), cfg, "", env("HOME="+home, region), noOllama); err == nil {
		t.Errorf("without a file: %+v", got)
	}
	path := filepath.Join(home, ".aws", "credentials")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("[default]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, found := range []func(string) string{env("HOME="+home, region), env("AWS_SHARED_CREDENTIALS_FILE="+path, region)} {
		got, err := Choose(t.Context(), cfg, "", found, noOllama)
		if err != nil || got.Provider != Bedrock || got.Reason != path+" exists" {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	if got, err := Choose(t.Context(), cfg, "", env("HOME="+home, "AWS_SHARED_CREDENTIALS_FILE="+home, region), noOllama); err == nil {
		t.Errorf("a folder: %+v", got)
	}
}

// TestDefaults_AreKnown keeps every model that we choose by ourselves one that
// the catalogue has, with a price.
func TestDefaults_AreKnown(t *testing.T) {
	models := map[string]string{Bedrock: defaultBedrock("us-east-1"), "bedrock in europe": defaultBedrock("eu-west-1")}
	for _, provider := range Providers() {
		if model := DefaultModel(provider); model != "" && provider != Ollama {
			models[provider] = model
		}
	}
	for name, model := range models {
		provider, _, _ := strings.Cut(name, " ")
		known, ok := catalog.Find(provider, model)
		if !ok || known.ID != model || known.Price.Input == nil || known.Price.CacheRead == nil {
			t.Errorf("%s: %q is not in the catalogue: %+v", name, model, known)
		}
	}
}

func TestEndpoint(t *testing.T) {
	cfg, _ := load(t, homeWith(t, `{"model":{"ollama":{"baseURL":"http://h:1/x"},"bedrock":{"profile":"p"}}}`))
	for _, want := range []Choice{
		{Provider: Anthropic, KeyEnv: "ANTHROPIC_API_KEY"},
		{Provider: Azure, KeyEnv: "AZURE_OPENAI_API_KEY", KeyHeader: "api-key"},
		{Provider: Bedrock, Region: "r", Profile: "p"},
		{Provider: Ollama, BaseURL: "http://h:1/x"},
	} {
		if got := Endpoint(cfg, want.Provider, env("AWS_REGION=r")); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}
