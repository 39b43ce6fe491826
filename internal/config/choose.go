package config

import (
	"cmp"
	"context"
	"fmt"
	"strings"
)

// Probe asks the Ollama server at host which models it has. It gives up soon
// when nothing answers there.
type Probe func(ctx context.Context, host string) (models []string, err error)

// Choice is the model that a run uses.
type Choice struct {
	Provider  string // [Demo] has no other field but Reason
	Model     string
	BaseURL   string // as it is used, nothing is added to it; empty: the provider's own
	KeyEnv    string // the environment variable with the key; empty: none is needed
	KeyHeader string // how a compatible endpoint wants the key; empty: as a bearer token
	Region    string // bedrock
	Profile   string // bedrock; empty: the default credentials
	Reason    string // why this one, such as "ANTHROPIC_API_KEY is set"
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
	lookup     func(string) string
	probe      Probe
	ollamaRuns bool // found out by probe
}

// Choose finds the model to use: the one of override ("provider/model" or
// "demo", from --model), else that of the settings, else what is there: a key,
// AWS credentials or a running Ollama. lookup finds keys and environment
// variables by their name; it returns "" for what is not there. The errors match
// [ErrConfig] and say what to do; those of override match [ErrModelFlag] too.
func Choose(ctx context.Context, cfg *Config, override string, lookup func(name string) string, probe Probe) (Choice, error) {
	c := &chooser{model: cfg.Model, file: cfg.file, lookup: lookup, probe: probe}
	switch {
	case override != "":
		return c.override(override)
	case c.model.Provider == Demo:
		return Choice{Provider: Demo, Reason: "model.provider in the settings"}, nil
	case c.model.Provider != "":
		return c.configured()
	}
	return c.detect(ctx)
}

// Endpoint is what the settings and the environment say about a provider: a
// choice without a model, of which nothing is checked.
func Endpoint(cfg *Config, provider string, lookup func(name string) string) Choice {
	c := &chooser{model: cfg.Model, lookup: lookup}
	return c.endpoint(provider)
}

func (c *chooser) override(override string) (Choice, error) {
	if override == Demo {
		return Choice{Provider: Demo, Reason: "--model"}, nil
	}
	provider, model, _ := strings.Cut(override, "/")
	switch {
	case !IsProvider(provider):
		return Choice{}, &modelFlagError{fmt.Sprintf("--model %q: %s, and demo, which needs no key; it looks like anthropic/%s",
			override, unknownProvider(provider), DefaultModel(Anthropic))}
	case strings.TrimSpace(model) != model || model == "" || strings.ContainsFunc(model, invisible):
		return Choice{}, &modelFlagError{fmt.Sprintf("--model %q names no model; it looks like %s/%s", override, provider, exampleModel(provider))}
	}
	return c.choice(provider, model, "--model")
}

func (c *chooser) configured() (Choice, error) {
	if problems := c.model.missing(); len(problems) > 0 {
		return Choice{}, &Error{File: c.file, Problems: problems}
	}
	return c.choice(c.model.Provider, c.model.Blocks[c.model.Provider].ModelID, "model.provider in the settings")
}

// endpoint is a choice without model and reason.
func (c *chooser) endpoint(provider string) Choice {
	p, block := find(provider), c.model.Blocks[provider]
	choice := Choice{Provider: provider, BaseURL: cmp.Or(block.BaseURL, p.baseURL), KeyEnv: p.keyEnv, KeyHeader: p.keyHeader}
	switch provider {
	case Ollama:
		choice.BaseURL = cmp.Or(block.BaseURL, c.ollamaHost()+"/v1")
	case Bedrock:
		choice.Region, choice.Profile = c.region(), block.Profile
	}
	return choice
}

// IsComplete reports whether nothing is missing of an endpoint but perhaps a key.
func (c Choice) IsComplete() bool {
	return (c.Provider != Azure || c.BaseURL != "") && (c.Provider != Bedrock || c.Region != "")
}

// choice completes a choice, and checks that nothing is missing for it.
func (c *chooser) choice(provider, model, reason string) (Choice, error) {
	choice := c.endpoint(provider)
	choice.Model, choice.Reason = model, reason
	switch {
	case provider == Azure && choice.BaseURL == "":
		return Choice{}, failf("%s needs the address of your resource; set it with: tendril config set model.azure.baseURL %s", choice.Name(), exampleAzureURL)
	case provider == Bedrock && choice.Region == "":
		return Choice{}, failf("%s needs a region, and AWS_REGION is not set; set it with: tendril config set model.bedrock.region %s", choice.Name(), exampleRegion)
	case choice.KeyEnv == "" || c.isSet(choice.KeyEnv):
		return choice, nil
	}
	hint := "or try it without a key: --model demo"
	if own := c.model.Blocks[provider].BaseURL; own != "" {
		hint = "any text will do when " + own + " wants no key"
	}
	return Choice{}, failf("%s needs a key, and %s is not set; keep it with: tendril secret set %s; or for this shell: export %s=… (%s)", choice.Name(), choice.KeyEnv, choice.KeyEnv, choice.KeyEnv, hint)
}

func (c *chooser) isSet(name string) bool { return strings.TrimSpace(c.lookup(name)) != "" }

// ollamaHost is the server's address, without what an API adds to it.
func (c *chooser) ollamaHost() string {
	block := c.model.Blocks[Ollama]
	return cmp.Or(block.Host, strings.TrimSuffix(block.BaseURL, "/v1"), defaultOllamaHost)
}

// mentioned is 1 when the settings have a block for provider, else 0.
func (c *chooser) mentioned(provider string) int {
	if c.model.Blocks[provider] != (Block{}) {
		return 1
	}
	return 0
}
