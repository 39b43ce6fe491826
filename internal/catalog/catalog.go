// Package catalog says what is known about models: how much they read and write,
// and what their tokens cost. The data is that of charm.land/catwalk, as it was
// when this program was built; nothing is asked over the network.
//
// It gives only what is certain. What the data leaves open, or fills with
// figures that cannot be, is unknown here, which is not zero.
package catalog

import (
	"slices"
	"sync"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"
)

// Model is what is known about one model.
type Model struct {
	ID   string // as its provider spells it
	Name string // for people
	// Context is how many tokens a request and its reply may have together;
	// 0 is unknown.
	Context int64
	// MaxOutput is how many tokens of a reply the catalogue advises to ask for
	// at most; some models can write more. 0 is unknown.
	MaxOutput int64
	Price     Price
	CanReason bool
}

// Price is in USD for a million tokens; nil is unknown.
type Price struct {
	Input, Output         *float64
	CacheRead, CacheWrite *float64
}

// sources has the files of the catalogue for each provider of ours, by its name.
var sources = map[string][]catwalk.InferenceProvider{
	"anthropic":  {catwalk.InferenceProviderAnthropic},
	"openai":     {catwalk.InferenceProviderOpenAI},
	"gemini":     {catwalk.InferenceProviderGemini},
	"openrouter": {catwalk.InferenceProviderOpenRouter},
	"azure":      {catwalk.InferenceProviderAzure},
	"bedrock":    {catwalk.InferenceProviderBedrock, catwalk.InferenceProviderBedrockEurope},
}

// load reads the data once. It takes about 10 ms, because catwalk decodes all of
// its providers at once, so it happens when the first question comes.
var load = sync.OnceValue(func() map[string][]Model {
	files := make(map[catwalk.InferenceProvider]catwalk.Provider)
	for _, p := range embedded.GetAll() {
		files[p.ID] = p
	}
	models := make(map[string][]Model, len(sources))
	for provider, ids := range sources {
		for _, id := range ids {
			for _, m := range files[id].Models {
				models[provider] = append(models[provider], convert(provider, m))
			}
		}
	}
	return models
})

// Preload reads the data in the background if there is any about provider, so
// that the first question need not wait for it.
func Preload(provider string) {
	if _, ok := sources[provider]; ok {
		go load()
	}
}

// Models lists the models that are known of provider, in the catalogue's order;
// none for a provider that it does not know.
func Models(provider string) []Model {
	if _, ok := sources[provider]; !ok {
		return nil
	}
	return slices.Clone(load()[provider])
}

// Find looks a model up by the name that a person or a setting uses for it. A
// name that could mean several models finds none.
func Find(provider, model string) (Model, bool) {
	models := Models(provider)
	if m, ok := exact(models, model); ok {
		return m, true
	}
	switch provider {
	case "anthropic":
		return findAnthropic(models, model)
	case "openai":
		return findOpenAI(models, model)
	case "gemini":
		return findGemini(models, model)
	case "openrouter":
		return findOpenRouter(models, model)
	case "bedrock":
		return findBedrock(models, model)
	}
	return Model{}, false // azure: a deployment has the name that somebody gave it
}

func exact(models []Model, id string) (Model, bool) {
	if i := slices.IndexFunc(models, func(m Model) bool { return m.ID == id }); i >= 0 {
		return models[i], true
	}
	return Model{}, false
}

func convert(provider string, m catwalk.Model) Model {
	return Model{
		ID: m.ID, Name: m.Name, Price: price(provider, m), CanReason: m.CanReason,
		Context: max(m.ContextWindow, 0), MaxOutput: max(m.DefaultMaxTokens, 0),
	}
}
