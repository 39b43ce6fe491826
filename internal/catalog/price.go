package catalog

import (
	"math"
	"strings"

	"charm.land/catwalk/pkg/catwalk"
)

// freeSuffix ends the names of models that OpenRouter gives away.
const freeSuffix = ":free"

// price takes from m what can be trusted. The names of catwalk's two fields for
// cached tokens mislead, and its files fill them differently:
//
//   - Anthropic, Bedrock and OpenRouter have the price of a cache write in
//     CostPer1MInCached and that of a read in CostPer1MOutCached;
//   - OpenAI, Azure and Gemini have the price of a read in either or in both, and
//     Gemini also the price of storage or of output.
//
// So a figure counts as what it may be by its size: a read costs less than
// input, a write does not.
func price(provider string, m catwalk.Model) Price {
	input, output := round(m.CostPer1MIn), round(m.CostPer1MOut)
	if provider == "openrouter" && strings.HasSuffix(m.ID, freeSuffix) && input == 0 && output == 0 {
		return Price{Input: new(float64), Output: new(float64), CacheRead: new(float64), CacheWrite: new(float64)}
	}
	if input <= 0 || output <= 0 { // a price of nothing is one that nobody filled in
		return Price{}
	}
	first, second := round(m.CostPer1MInCached), round(m.CostPer1MOutCached)
	p := Price{Input: &input, Output: &output}
	if first >= input && first <= 2*input {
		p.CacheWrite = &first
	}
	switch provider {
	case "anthropic", "bedrock", "openrouter":
		p.CacheRead = readPrice(input, second)
	default:
		// No cache of these is dearer than half of the input: what is more is
		// the price of something else.
		p.CacheRead = readPrice(input/2+tiny, first, second)
	}
	return p
}

// tiny is less than any price, so that a limit may be reached.
const tiny = 1e-9

// readPrice is the one figure above zero and below limit; nil when there is
// none, or when they differ.
func readPrice(limit float64, figures ...float64) *float64 {
	var found *float64
	for _, f := range figures {
		switch {
		case f <= 0 || f >= limit:
		case found == nil:
			found = &f
		case *found != f:
			return nil
		}
	}
	return found
}

// round takes off what binary fractions add, as in 0.39999999999999997.
func round(usd float64) float64 { return math.Round(usd*1e6) / 1e6 }
