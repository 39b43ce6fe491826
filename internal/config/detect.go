package config

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// detect takes the first provider that is there. Those that the settings say
// something about go before the others.
func (c *chooser) detect(ctx context.Context) (Choice, error) {
	order := Providers()
	slices.SortStableFunc(order, func(a, b string) int { return c.mentioned(b) - c.mentioned(a) })
	for _, provider := range order {
		if model, reason := c.available(ctx, provider); model != "" {
			return c.choice(provider, model, reason)
		}
		if ctx.Err() != nil {
			return Choice{}, ctx.Err()
		}
	}
	if err := c.keyless(order); err != nil {
		return Choice{}, err
	}
	return Choice{}, c.nothingFound()
}

// Available lists what each provider that is there would be used with, in the
// order in which they are looked for.
func Available(ctx context.Context, cfg *Config, lookup func(name string) string, probe Probe) []Choice {
	c := &chooser{model: cfg.Model, file: cfg.file, lookup: lookup, probe: probe}
	var found []Choice
	for _, provider := range Providers() {
		model, reason := c.available(ctx, provider)
		if model == "" {
			continue
		}
		if choice, err := c.choice(provider, model, reason); err == nil {
			found = append(found, choice)
		}
	}
	return found
}

// keyless says what the first provider lacks that the settings describe but for
// its key; nil when they describe none.
func (c *chooser) keyless(order []string) error {
	for _, provider := range order {
		block, e := c.model.Blocks[provider], c.endpoint(provider)
		if e.KeyEnv == "" || !e.IsComplete() || block.BaseURL == "" && block.ModelID == "" || provider == Azure && block.ModelID == "" {
			continue
		}
		_, err := c.choice(provider, cmp.Or(block.ModelID, DefaultModel(provider)), "")
		return err
	}
	return nil
}

// available returns a provider's model when the provider is there, and how that
// shows.
func (c *chooser) available(ctx context.Context, provider string) (model, reason string) {
	block := c.model.Blocks[provider]
	switch provider {
	case Ollama:
		return c.ollama(ctx)
	case Bedrock:
		if credentials := c.awsCredentials(); credentials != "" && c.region() != "" {
			return cmp.Or(block.ModelID, defaultBedrock(c.region())), credentials
		}
		return "", ""
	case Azure:
		if block.BaseURL == "" {
			return "", ""
		}
	}
	env := KeyEnv(provider)
	if !c.isSet(env) {
		return "", ""
	}
	return cmp.Or(block.ModelID, DefaultModel(provider)), env + " is set"
}

func (c *chooser) ollama(ctx context.Context) (model, reason string) {
	models, err := c.probe(ctx, c.ollamaHost())
	if err != nil {
		return "", ""
	}
	c.ollamaRuns = true
	return c.installed(models), "Ollama answers at " + c.ollamaHost()
}

// installed picks one of the models that an Ollama server has: the configured
// one, the default, or the first; empty when there is none.
func (c *chooser) installed(models []string) string {
	if id := c.model.Blocks[Ollama].ModelID; id != "" {
		return id
	}
	for _, name := range models {
		if base, _, _ := strings.Cut(name, ":"); base == DefaultModel(Ollama) {
			return name
		}
	}
	return cmp.Or(models...)
}

// region is that of the settings, else that of the environment.
func (c *chooser) region() string {
	return cmp.Or(c.model.Blocks[Bedrock].Region, strings.TrimSpace(c.lookup("AWS_REGION")), strings.TrimSpace(c.lookup("AWS_DEFAULT_REGION")))
}

// awsCredentials says how AWS credentials show; empty when none do. Whether they
// are good is known only to AWS.
func (c *chooser) awsCredentials() string {
	if c.model.Blocks[Bedrock].Profile != "" {
		return "model.bedrock.profile is in the settings"
	}
	for _, name := range []string{
		"AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "AWS_PROFILE",
		"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
	} {
		if c.isSet(name) {
			return name + " is set"
		}
	}
	path := c.lookup("AWS_SHARED_CREDENTIALS_FILE")
	if home := userHome(c.lookup); path == "" && home != "" {
		path = filepath.Join(home, ".aws", "credentials")
	}
	if info, err := os.Stat(path); path != "" && err == nil && info.Mode().IsRegular() {
		return path + " exists"
	}
	return ""
}

func (c *chooser) nothingFound() error {
	ollama := "start it; nothing answers at " + c.ollamaHost()
	if c.ollamaRuns {
		ollama = "it runs at " + c.ollamaHost() + " but has no model: ollama pull " + DefaultModel(Ollama)
	}
	return failf(`no model is set up; do one of these:
  anthropic   tendril secret set ANTHROPIC_API_KEY (or: export ANTHROPIC_API_KEY=…, and so for the others)
  openai      tendril secret set OPENAI_API_KEY
              for a compatible endpoint also: tendril config set model.openai.baseURL https://…/v1
  gemini      tendril secret set GEMINI_API_KEY
  openrouter  tendril secret set OPENROUTER_API_KEY
  azure       %s
  bedrock     %s
  ollama      %s
or try it without a key: --model demo`, c.azureLacks(), c.bedrockLacks(), ollama)
}

func (c *chooser) azureLacks() string {
	block := c.model.Blocks[Azure]
	switch {
	case block.BaseURL == "":
		return "tendril secret set AZURE_OPENAI_API_KEY and: tendril config set model.azure.baseURL " + exampleAzureURL
	case block.ModelID == "":
		return "tendril config set model.azure.modelId " + exampleDeployment
	}
	return "tendril secret set AZURE_OPENAI_API_KEY"
}

func (c *chooser) bedrockLacks() string {
	credentials := c.awsCredentials()
	switch {
	case credentials == "":
		return "export AWS_PROFILE=… and AWS_REGION=…"
	case c.region() == "":
		return credentials + "; set the region: export AWS_REGION=" + exampleRegion
	}
	return credentials + "; set a model of " + c.region() + ": tendril config set model.bedrock.modelId …"
}
