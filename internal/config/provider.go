package config

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// The providers, as model.provider and --model name them.
const (
	Anthropic  = "anthropic"
	OpenAI     = "openai"
	Gemini     = "gemini"
	OpenRouter = "openrouter"
	Azure      = "azure"
	Bedrock    = "bedrock"
	Ollama     = "ollama"
	// Demo is a model without a provider; it is chosen by name only.
	Demo = "demo"
)

const (
	defaultOllamaHost = "http://localhost:11434"
	exampleRegion     = "us-east-1"
	exampleAzureURL   = "https://NAME.openai.azure.com/openai/v1"
	exampleDeployment = "my-deployment"
	bedrockModel      = "anthropic.claude-sonnet-4-6" // behind us. or eu.
)

// preset is what a provider needs and where it is.
type preset struct {
	name      string
	title     string   // for people
	needs     []string // settings of its block without which it is not complete, beside the model
	keyEnv    string   // the environment variable with the key; empty: none is needed
	keyHeader string   // of the key when it is sent to a compatible endpoint; empty: as a bearer token
	baseURL   string   // empty: the one that its adapter knows, or that the settings must have
	model     string   // while none is configured; empty: there is no sensible one
	domain    string   // where its own service is; empty: it may be anywhere
}

// presets are in the order in which they are looked for.
//
// The models of OpenAI and Gemini are the last ones whose tools work in the
// Chat Completions API as it is spoken here: later ones of OpenAI refuse tools
// there while they reason, later ones of Gemini want their thought signatures
// back.
var presets = []preset{
	{name: Anthropic, title: "Anthropic", keyEnv: "ANTHROPIC_API_KEY", model: "claude-sonnet-4-6", domain: "anthropic.com"},
	{name: OpenAI, title: "OpenAI", keyEnv: "OPENAI_API_KEY", model: "gpt-5.1", domain: "openai.com"},
	{name: Gemini, title: "Google Gemini", keyEnv: "GEMINI_API_KEY", model: "gemini-2.5-pro", baseURL: "https://generativelanguage.googleapis.com/v1beta/openai", domain: "googleapis.com"},
	{name: OpenRouter, title: "OpenRouter", keyEnv: "OPENROUTER_API_KEY", model: "anthropic/claude-sonnet-4.6", baseURL: "https://openrouter.ai/api/v1", domain: "openrouter.ai"},
	{name: Azure, title: "Azure OpenAI", needs: []string{"baseURL"}, keyEnv: "AZURE_OPENAI_API_KEY", keyHeader: "api-key"},
	{name: Bedrock, title: "Amazon Bedrock", needs: []string{"region"}},
	{name: Ollama, title: "Ollama", needs: []string{"host"}, model: "qwen3"},
}

// Providers lists the providers that the settings may name.
func Providers() []string {
	var names []string
	for _, p := range presets {
		names = append(names, p.name)
	}
	return names
}

// find is the zero preset when there is no provider of that name.
func find(provider string) preset {
	if i := slices.IndexFunc(presets, func(p preset) bool { return p.name == provider }); i >= 0 {
		return presets[i]
	}
	return preset{}
}

// IsProvider reports whether the settings may name a provider so.
func IsProvider(name string) bool { return name != "" && find(name).name == name }

// KeyEnv is the environment variable with a provider's key; empty when there is
// none.
func KeyEnv(provider string) string { return find(provider).keyEnv }

// DefaultModel is the model of a provider while none is configured; empty when
// there is no sensible one.
func DefaultModel(provider string) string { return find(provider).model }

// Title is a provider's name for people.
func Title(provider string) string { return find(provider).title }

// Needs are the settings of a provider's block, such as "region", that it needs
// beside a model.
func Needs(provider string) []string { return slices.Clone(find(provider).needs) }

// IsElsewhere reports whether the base URL of the settings leads to another
// service than the provider's own: a compatible endpoint, whose models and prices
// are its own.
func (m Model) IsElsewhere(provider string) bool {
	own, domain := m.Blocks[provider].BaseURL, find(provider).domain
	u, err := url.Parse(own)
	return own != "" && domain != "" && err == nil && u.Hostname() != domain && !strings.HasSuffix(u.Hostname(), "."+domain)
}

// defaultBedrock is the inference profile of a region; empty where none is
// certain to be there.
func defaultBedrock(region string) string {
	for _, geography := range []string{"us", "eu"} {
		if strings.HasPrefix(region, geography+"-") && !strings.HasPrefix(region, "us-gov-") {
			return geography + "." + bedrockModel
		}
	}
	return ""
}

// exampleModel is what a model of provider looks like.
func exampleModel(provider string) string {
	switch provider {
	case Bedrock:
		return defaultBedrock(exampleRegion)
	case Azure:
		return exampleDeployment
	}
	return DefaultModel(provider)
}

func unknownProvider(name string) string {
	return fmt.Sprintf("unknown provider %q; there are %s", name, strings.Join(Providers(), ", "))
}

// missing tells what the active provider's block lacks.
func (m Model) missing() []Problem {
	b := m.Blocks[m.Provider]
	var problems []Problem
	need := func(key, value, example string) {
		if value == "" {
			path := "model." + m.Provider + "." + key
			problems = append(problems, Problem{Path: path, Reason: "missing; set it with: tendril config set " + path + " " + example})
		}
	}
	if m.Provider == "" || m.Provider == Demo {
		return nil
	}
	need("modelId", b.ModelID, exampleModel(m.Provider))
	values := map[string]string{"host": cmp.Or(b.BaseURL, b.Host), "region": b.Region, "baseURL": b.BaseURL}
	examples := map[string]string{"host": defaultOllamaHost, "region": exampleRegion, "baseURL": exampleAzureURL}
	for _, key := range find(m.Provider).needs {
		need(key, values[key], examples[key])
	}
	return problems
}
