package catalog

import (
	"regexp"
	"strings"
)

var (
	// shortDate ends a dated name of Anthropic, as in claude-sonnet-4-5-20250929.
	shortDate = regexp.MustCompile(`-\d{8}$`)
	// longDate ends a dated name of OpenAI, as in gpt-5.1-2025-11-13.
	longDate = regexp.MustCompile(`-\d{4}-\d{2}-\d{2}$`)
	// bedrockVersion ends a name of Bedrock, as in …-v1:0.
	bedrockVersion = regexp.MustCompile(`-v\d+(:\d+)?$`)
)

// findAnthropic knows that a name without a date means the dated model, and a
// date on a name that the catalogue has without one means that model.
func findAnthropic(models []Model, model string) (Model, bool) {
	if base := shortDate.ReplaceAllString(model, ""); base != model {
		return exact(models, base)
	}
	base := strings.TrimSuffix(model, "-latest")
	if m, ok := exact(models, base); ok {
		return m, true
	}
	if m, ok := dated(models, base); ok {
		return m, true
	}
	if first, ok := strings.CutSuffix(base, "-0"); ok { // claude-sonnet-4-0 is the first claude-sonnet-4
		return dated(models, first)
	}
	return Model{}, false
}

// dated finds the only model that is base with a date.
func dated(models []Model, base string) (Model, bool) {
	var found []Model
	for _, m := range models {
		if stem := shortDate.ReplaceAllString(m.ID, ""); stem == base && stem != m.ID {
			found = append(found, m)
		}
	}
	if len(found) != 1 {
		return Model{}, false
	}
	return found[0], true
}

// dearerSnapshot is the one dated model of OpenAI that costs something else than
// the model that it is a snapshot of.
const dearerSnapshot = "gpt-4o-2024-05-13"

func findOpenAI(models []Model, model string) (Model, bool) {
	m, ok := exact(models, longDate.ReplaceAllString(model, ""))
	if model == dearerSnapshot {
		m.Price = Price{}
	}
	return m, ok
}

// findGemini knows the form in which Gemini's own listing spells its models.
func findGemini(models []Model, model string) (Model, bool) {
	return exact(models, strings.TrimPrefix(model, "models/"))
}

// findOpenRouter knows the suffixes that every model accepts. They choose
// another supplier or add a service, so the price is open; the model is the
// same. All other suffixes make a model of its own, which the catalogue has or
// has not.
func findOpenRouter(models []Model, model string) (Model, bool) {
	base, variant, _ := strings.Cut(model, ":")
	switch variant {
	case "nitro", "floor", "exacto", "online":
		m, ok := exact(models, base)
		m.Price = Price{}
		return m, ok
	}
	return Model{}, false
}

// findBedrock takes an inference profile of a region (us.anthropic.…), a bare
// model, either as an ARN, and either without the version at its end. The
// catalogue has the prices of profiles in the United States and in Europe.
// Those of the United States are the base prices, which hold for global profiles
// too. Elsewhere the price is open.
func findBedrock(models []Model, model string) (Model, bool) {
	id, ok := bedrockID(model)
	if !ok {
		return Model{}, false
	}
	if m, ok := exact(models, id); ok {
		return m, true
	}
	region, base := "", bedrockVersion.ReplaceAllString(id, "")
	if prefix, rest, ok := strings.Cut(base, "."); ok && strings.Contains(rest, ".") {
		region, base = prefix, rest
	}
	if region == "global" {
		region = "us"
	}
	var found []Model
	for _, m := range models {
		prefix, rest, _ := strings.Cut(bedrockVersion.ReplaceAllString(m.ID, ""), ".")
		switch {
		case rest != base:
		case prefix == region:
			return m, true
		default:
			found = append(found, m)
		}
	}
	return common(found)
}

// bedrockID takes the model out of an ARN. Those of profiles and deployments
// that an account made for itself do not say which model they lead to.
func bedrockID(model string) (id string, ok bool) {
	if !strings.HasPrefix(model, "arn:") {
		return model, true
	}
	parts := strings.SplitN(model, ":", 6) // arn:partition:bedrock:region:account:kind/id
	kind, id, _ := strings.Cut(parts[len(parts)-1], "/")
	return id, len(parts) == 6 && (kind == "foundation-model" || kind == "inference-profile")
}

// common is what holds wherever the same model is offered.
func common(found []Model) (Model, bool) {
	if len(found) == 0 {
		return Model{}, false
	}
	m := found[0]
	for _, other := range found[1:] {
		m.Context, m.MaxOutput = min(m.Context, other.Context), min(m.MaxOutput, other.MaxOutput)
	}
	m.Price = Price{}
	return m, true
}
