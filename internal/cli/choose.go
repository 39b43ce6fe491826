package cli

import (
	"context"
	"net/netip"
	"net/url"
	"strings"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/catalog"
	"github.com/tendril-agent/tendril/internal/config"
	"github.com/tendril-agent/tendril/internal/model"
	"github.com/tendril-agent/tendril/internal/model/demo"
)

// chosenModel is a model with what is known of it.
type chosenModel struct {
	agent.Model
	facts func() agent.Facts // read when they are needed: the catalogue takes its time
}

// chooseModel finds the model to use and connects to it.
func (c *command) chooseModel(ctx context.Context, cfg *config.Config, flag string) (chosenModel, error) {
	choice, key, err := c.choose(ctx, cfg, flag)
	if err != nil {
		return chosenModel{}, err
	}
	catalog.Preload(choice.Provider) // in the background
	return chosenModel{connect(cfg, choice, key), func() agent.Facts {
		window, price := modelFacts(cfg, choice)
		return agent.Facts{ContextWindow: window, Price: price}
	}}, nil
}

// connect makes the adapter of a choice. Nothing is sent yet.
func connect(cfg *config.Config, choice config.Choice, key string) agent.Model {
	maxTokens := int64(cfg.Model.Blocks[choice.Provider].MaxTokens)
	switch choice.Provider {
	case config.Demo:
		return demo.Model{}
	case config.Anthropic:
		return model.NewAnthropic(model.AnthropicOptions{ModelID: choice.Model, APIKey: key, BaseURL: choice.BaseURL, MaxTokens: maxTokens})
	case config.Bedrock:
		return model.NewBedrock(model.BedrockOptions{
			ModelID: choice.Model, Region: choice.Region, Profile: choice.Profile, BaseURL: choice.BaseURL, MaxTokens: maxTokens,
		})
	case config.Ollama:
		if strings.HasSuffix(choice.BaseURL, "/v1") { // which NewOllama adds by itself
			return model.NewOllama(model.OllamaOptions{ModelID: choice.Model, Host: choice.BaseURL, MaxTokens: maxTokens})
		}
	}
	return model.NewOpenAI(model.OpenAIOptions{
		ModelID: choice.Model, APIKey: key, BaseURL: choice.BaseURL, MaxTokens: maxTokens,
		Provider: choice.Provider, KeyEnv: choice.KeyEnv, KeyHeader: choice.KeyHeader,
	})
}

// modelFacts joins what the settings and the catalogue know about a model: how
// many tokens a request and its reply may have together, 0 when that is not
// known, and what tokens cost. A compatible endpoint has prices of its own.
func modelFacts(cfg *config.Config, choice config.Choice) (contextWindow int64, price agent.Price) {
	known, _ := catalog.Find(choice.Provider, choice.Model)
	contextWindow = known.Context
	if own := cfg.Model.Blocks[choice.Provider].ContextWindow; own > 0 {
		contextWindow = int64(own)
	}
	if cfg.Model.IsElsewhere(choice.Provider) {
		known.Price = catalog.Price{}
	}
	if isLocal(choice) || choice.Provider == config.Demo {
		free := 0.0
		known.Price = catalog.Price{Input: &free, Output: &free}
	}
	own, ok := cfg.Model.Prices[choice.Provider+"/"+choice.Model]
	if !ok {
		own = cfg.Model.Prices[choice.Model]
	}
	return contextWindow, overridden(agent.Price(known.Price), own)
}

// isLocal says whether a model runs on this machine, where nobody bills tokens.
// Ollama also passes requests on to models in a cloud, which have it in their name.
func isLocal(choice config.Choice) bool {
	u, err := url.Parse(choice.BaseURL)
	if choice.Provider != config.Ollama || err != nil || strings.HasSuffix(choice.Model, "cloud") {
		return false
	}
	addr, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && addr.IsLoopback()
}

// overridden is price with what the settings say instead. Prices of tokens that
// go with an input or output price of the settings are not mixed with those of
// the catalogue, which are about another offer.
func overridden(price agent.Price, own config.Prices) agent.Price {
	if own.Input != nil || own.Output != nil {
		return agent.Price(own)
	}
	if own.CacheRead != nil {
		price.CacheRead = own.CacheRead
	}
	if own.CacheWrite != nil {
		price.CacheWrite = own.CacheWrite
	}
	return price
}
