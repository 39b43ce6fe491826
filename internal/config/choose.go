package config

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// Probe asks the Ollama server at host which models it has. It gives up soon
// when nothing answers there.
type Probe func(ctx context.Context, host string) (models []string, err error)

// Choice is the model that a run uses.
type Choice struct {
	Provider string // [Demo] has no other field but Reason
	Model    string
	BaseURL  string // empty: the provider's own
	KeyEnv   string // the environment variable with the key; empty: none is needed
	Reason   string // why this one, such as "ANTHROPIC_API_KEY is set"
}

// Name is "provider/model", or "demo".
func (c Choice) Name() string {
	if c.Provider == Demo {
		return Demo
	}
	return c.Provider + "/" + c.Model
}

// chooser is what a choice depends on.
type chooser struct {
	model      Model
	file       string
	getenv     func(string) string
	probe      Probe
	ollamaRuns bool // found out by probe
}

// Choose finds the model to use: the one of override ("provider/model" or
// "demo", from --model), else that of the settings, else what is there: a key in
// the environment or a running Ollama. Its errors match [ErrConfig] and say what
// to do; those of override match [ErrModelFlag] too.
func Choose(ctx context.Context, cfg *Config, override string, getenv func(string) string, probe Probe) (Choice, error) {
	c := &chooser{model: cfg.Model, file: cfg.file, getenv: getenv, probe: probe}
	switch {
	case override != "":
		return c.override(override)
	case c.model.Provider != "":
		return c.configured()
	}
	return c.detect(ctx)
}

func (c *chooser) override(override string) (Choice, error) {
	if override == Demo {
		return Choice{Provider: Demo, Reason: "--model"}, nil
	}
	provider, model, _ := strings.Cut(override, "/")
	switch {
	case !isProvider(provider):
		return Choice{}, &modelFlagError{fmt.Sprintf("--model %q: %s, and demo, which needs no key; it looks like anthropic/%s",
			override, unknownProvider(provider), defaultAnthropicModel)}
	case strings.TrimSpace(model) != model || model == "" || strings.ContainsFunc(model, invisible):
		return Choice{}, &modelFlagError{fmt.Sprintf("--model %q names no model; it looks like %s/%s", override, provider, exampleModel(provider))}
	}
	return c.choice(provider, model, "--model")
}

func exampleModel(provider string) string {
	if provider == Bedrock {
		return exampleBedrock
	}
	return DefaultModel(provider)
}

func (c *chooser) configured() (Choice, error) {
	provider := c.model.Provider
	if problems := c.model.missing(); provider != Bedrock && len(problems) > 0 {
		return Choice{}, &Error{File: c.file, Problems: problems}
	}
	return c.choice(provider, c.model.Blocks[provider].ModelID, "model.provider in the settings")
}

// choice completes a choice, and checks that its key is there.
func (c *chooser) choice(provider, model, reason string) (Choice, error) {
	if provider == Bedrock {
		return Choice{}, failf("provider bedrock comes with version %s; until then choose another one with --model or `tendril config set model.provider …` (%s)",
			bedrockVersion, strings.Join([]string{Anthropic, OpenAI, Ollama}, ", "))
	}
	block := c.model.Blocks[provider]
	choice := Choice{Provider: provider, Model: model, BaseURL: block.BaseURL, KeyEnv: KeyEnv(provider), Reason: reason}
	if provider == Ollama && choice.BaseURL == "" {
		choice.BaseURL = c.ollamaHost() + "/v1"
	}
	if choice.KeyEnv == "" || c.isSet(choice.KeyEnv) {
		return choice, nil
	}
	hint := "or try it without a key: --model demo"
	if block.BaseURL != "" {
		hint = "any text will do when " + block.BaseURL + " wants no key"
	}
	return Choice{}, failf("%s needs a key, and %s is not set; keep it with: tendril secret set %s; or for this shell: export %s=… (%s)", choice.Name(), choice.KeyEnv, choice.KeyEnv, choice.KeyEnv, hint)
}

func (c *chooser) isSet(env string) bool { return strings.TrimSpace(c.getenv(env)) != "" }

func (c *chooser) ollamaHost() string {
	return cmp.Or(c.model.Blocks[Ollama].Host, defaultOllamaHost)
}

// detect takes the first provider that is there. Those that the settings say
// something about go before the others.
func (c *chooser) detect(ctx context.Context) (Choice, error) {
	order := []string{Anthropic, OpenAI, Ollama}
	slices.SortStableFunc(order, func(a, b string) int { return c.mentioned(b) - c.mentioned(a) })
	for _, provider := range order {
		if model, reason := c.available(ctx, provider); model != "" {
			return c.choice(provider, model, reason)
		}
		if ctx.Err() != nil {
			return Choice{}, ctx.Err()
		}
	}
	return Choice{}, c.nothingFound()
}

// available returns a provider's model when the provider is there, and how that
// shows.
func (c *chooser) available(ctx context.Context, provider string) (model, reason string) {
	if env := KeyEnv(provider); env != "" {
		if !c.isSet(env) {
			return "", ""
		}
		return cmp.Or(c.model.Blocks[provider].ModelID, DefaultModel(provider)), env + " is set"
	}
	models, err := c.probe(ctx, c.ollamaHost())
	if err != nil {
		return "", ""
	}
	c.ollamaRuns = true
	return c.installed(models), "Ollama answers at " + c.ollamaHost()
}

// mentioned is 1 when the settings have a block for provider, else 0.
func (c *chooser) mentioned(provider string) int {
	if c.model.Blocks[provider] != (Block{}) {
		return 1
	}
	return 0
}

// installed picks one of the models that an Ollama server has: the configured
// one, the default, or the first; empty when there is none.
func (c *chooser) installed(models []string) string {
	if id := c.model.Blocks[Ollama].ModelID; id != "" {
		return id
	}
	for _, name := range models {
		if base, _, _ := strings.Cut(name, ":"); base == defaultOllamaModel {
			return name
		}
	}
	return cmp.Or(models...)
}

func (c *chooser) nothingFound() error {
	ollama := "start it; nothing answers at " + c.ollamaHost()
	if c.ollamaRuns {
		ollama = "it runs at " + c.ollamaHost() + " but has no model: ollama pull " + defaultOllamaModel
	}
	bedrock := "comes with version " + bedrockVersion
	if c.isSet("AWS_ACCESS_KEY_ID") || c.isSet("AWS_PROFILE") {
		bedrock = "AWS credentials are there, but this provider " + bedrock
	}
	return failf(`no model is set up; do one of these:
  anthropic  tendril secret set ANTHROPIC_API_KEY, or export ANTHROPIC_API_KEY=…
  openai     tendril secret set OPENAI_API_KEY, or export OPENAI_API_KEY=…
             for a compatible endpoint also: tendril config set model.openai.baseURL https://…/v1
  ollama     %s
  bedrock    %s
or try it without a key: --model demo`, ollama, bedrock)
}
