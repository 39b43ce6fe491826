package config

import (
	"fmt"
	"strings"
)

// The providers, as model.provider and --model name them.
const (
	Anthropic = "anthropic"
	OpenAI    = "openai"
	Ollama    = "ollama"
	Bedrock   = "bedrock"
	// Demo is a model without a provider; only --model chooses it.
	Demo = "demo"
)

// The models that are used while no other is configured.
const (
	defaultAnthropicModel = "claude-sonnet-4-5"
	defaultOpenAIModel    = "gpt-5.1"
	defaultOllamaModel    = "qwen3"

	defaultOllamaHost = "http://localhost:11434"
	exampleRegion     = "us-east-1"
	exampleBedrock    = "anthropic.claude-…"
	bedrockVersion    = "0.2"
)

// Providers lists the providers that the settings may name.
func Providers() []string { return []string{Anthropic, OpenAI, Ollama, Bedrock} }

func isProvider(name string) bool {
	switch name {
	case Anthropic, OpenAI, Ollama, Bedrock:
		return true
	}
	return false
}

// KeyEnv is the environment variable with a provider's key; empty when there is
// none.
func KeyEnv(provider string) string {
	switch provider {
	case Anthropic:
		return "ANTHROPIC_API_KEY"
	case OpenAI:
		return "OPENAI_API_KEY"
	}
	return ""
}

// DefaultModel is the model of a provider while none is configured; empty when
// there is no sensible one.
func DefaultModel(provider string) string {
	switch provider {
	case Anthropic:
		return defaultAnthropicModel
	case OpenAI:
		return defaultOpenAIModel
	case Ollama:
		return defaultOllamaModel
	}
	return ""
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
	switch m.Provider {
	case Anthropic, OpenAI:
		need("modelId", b.ModelID, DefaultModel(m.Provider))
	case Ollama:
		need("modelId", b.ModelID, DefaultModel(Ollama))
		if b.BaseURL == "" {
			need("host", b.Host, defaultOllamaHost)
		}
	case Bedrock:
		need("modelId", b.ModelID, exampleBedrock)
		need("region", b.Region, exampleRegion)
	}
	return problems
}
