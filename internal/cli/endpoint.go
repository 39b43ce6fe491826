package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/tendril-agent/tendril/internal/config"
)

// checkEndpoint asks the base URL of the settings, or Ollama, for its models. A
// provider's own address is not asked: a key costs nothing to keep, and doctor
// is to work offline.
func (c *command) checkEndpoint(ctx context.Context, cfg *config.Config, choice config.Choice) []check {
	const name = "endpoint"
	if choice.Provider != config.Ollama && cfg.Model.Blocks[choice.Provider].BaseURL == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	o := offer{Provider: choice.Provider, Source: strings.TrimSuffix(choice.BaseURL, "/v1")}
	if choice.Provider == config.Ollama {
		if err := o.askOllama(ctx, cfg); err != nil {
			return []check{broken(name, err)}
		}
		return []check{o.check(cfg, choice)}
	}
	o.Source = choice.BaseURL
	req, err := c.modelsRequest(ctx, cfg, choice)
	if err == nil && req == nil {
		return []check{passed(name, "%s (not asked)", choice.BaseURL)}
	}
	if err == nil {
		err = o.ask(req, cfg)
	}
	var status *statusError
	switch {
	case err == nil:
		return []check{o.check(cfg, choice)}
	case errors.As(err, &status) && status.refused():
		return []check{broken(name, &exitError{code: exitConfig, err: fmt.Errorf("%s %w; keep the right one with: tendril secret set %s", o.Source, err, choice.KeyEnv)})}
	case errors.As(err, &status) && status.code < http.StatusInternalServerError, errors.Is(err, errNoList):
		return []check{warned(name, fmt.Sprintf("%s %v", o.Source, err), "it may not list its models, and work all the same; if a run fails, check model."+choice.Provider+".baseURL")}
	}
	return []check{broken(name, &exitError{code: exitProvider, err: fmt.Errorf("%s %w; check model.%s.baseURL", o.Source, err, choice.Provider)})}
}

// check says what a server that was asked has.
func (o *offer) check(cfg *config.Config, choice config.Choice) check {
	listed := len(o.Models)
	if o.choose(cfg, choice.Model); o.Warning != "" {
		return warned("endpoint", o.Warning, "see: tendril model list "+o.Provider)
	}
	return passed("endpoint", "%s answers, and lists %s", o.Source, plural(listed, "model", "models"))
}
