package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tendril-agent/tendril/internal/catalog"
	"github.com/tendril-agent/tendril/internal/config"
)

const (
	// listTime bounds the wait for a provider's list of models.
	listTime = 3 * time.Second
	// showAtOnce is how many models of an Ollama server are asked about at the
	// same time, maxShown how many at all.
	showAtOnce, maxShown = 4, 100
)

// modelInfo is what is known about one model; nil is unknown. Prices are in USD
// for a million tokens.
type modelInfo struct {
	Model      string   `json:"model"`
	Name       string   `json:"name"` // for people, may be empty
	Chosen     bool     `json:"chosen"`
	Context    *int64   `json:"context"` // tokens
	MaxOutput  *int64   `json:"max_output"`
	Input      *float64 `json:"input"`
	Output     *float64 `json:"output"`
	CacheRead  *float64 `json:"cache_read"`
	CacheWrite *float64 `json:"cache_write"`
	CanReason  *bool    `json:"can_reason"`
	Tools      *bool    `json:"tools"` // it can call them
	Size       *int64   `json:"size_bytes"`
}

// offer is the models of a provider.
type offer struct {
	Provider string      `json:"provider"`
	Source   string      `json:"source"` // "catalogue", or the address that was asked
	Warning  string      `json:"warning,omitempty"`
	Models   []modelInfo `json:"models"`
}

const catalogueSource = "catalogue"

// models finds what a provider offers: from its server where it has one that can
// be asked, else from the catalogue. at is the provider's endpoint.
func (c *command) models(ctx context.Context, cfg *config.Config, at config.Choice) (offer, error) {
	o := offer{Provider: at.Provider, Source: catalogueSource, Models: []modelInfo{}}
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	if at.Provider == config.Ollama {
		o.Source = strings.TrimSuffix(at.BaseURL, "/v1")
		err := o.askOllama(ctx, cfg)
		return o, err
	}
	req, err := c.modelsRequest(ctx, cfg, at)
	if err != nil {
		return o, err
	}
	if req != nil {
		if err = o.ask(req, cfg); err == nil {
			o.Source = at.BaseURL
			return o, nil
		}
		o.Warning = fmt.Sprintf("%s %v; this is what the catalogue knows of %s", at.BaseURL, err, at.Provider)
	}
	for _, m := range catalog.Models(at.Provider) {
		o.Models = append(o.Models, describe(cfg, at.Provider, m.ID))
	}
	return o, nil
}

// modelsRequest asks a compatible server for its models. It is nil for a
// provider that is not asked: its own endpoint needs a key that is not there, or
// lists much that is no chat model.
func (c *command) modelsRequest(ctx context.Context, cfg *config.Config, at config.Choice) (*http.Request, error) {
	key := ""
	if at.KeyEnv != "" {
		key = strings.TrimSpace(c.lookup(ctx)(at.KeyEnv))
	}
	if at.Provider == config.Bedrock || at.BaseURL == "" || key == "" && cfg.Model.Blocks[at.Provider].BaseURL == "" {
		return nil, nil
	}
	return listRequest(ctx, at, key)
}

// listRequest asks an endpoint for its models, with a key if there is one.
func listRequest(ctx context.Context, at config.Choice, key string) (*http.Request, error) {
	path := "/models"
	if at.Provider == config.Anthropic {
		path = "/v1/models?limit=1000"
	}
	return keyRequest(ctx, at, path, key)
}

// keyRequest asks an endpoint for what is at a path.
func keyRequest(ctx context.Context, at config.Choice, path, key string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.BaseURL+path, nil)
	if err != nil {
		return nil, err
	}
	switch {
	case key == "":
	case at.Provider == config.Anthropic:
		req.Header.Set("x-api-key", key)
		req.Header.Set("anthropic-version", "2023-06-01")
	case at.KeyHeader != "":
		req.Header.Set(at.KeyHeader, key)
	default:
		req.Header.Set("Authorization", "Bearer "+key)
	}
	return req, nil
}

// listed is a model as compatible servers list it; each has another name for the
// size of the context.
type listed struct {
	ID            string `json:"id"`
	ContextLength int64  `json:"context_length"`
	ContextWindow int64  `json:"context_window"`
	MaxModelLen   int64  `json:"max_model_len"`
}

// errNoList goes on from the server's address.
var errNoList = errors.New("does not answer with a list of models")

// ask fills o from a compatible server.
func (o *offer) ask(req *http.Request, cfg *config.Config) error {
	var raw json.RawMessage
	if err := fetchJSON(req, &raw); err != nil {
		return err
	}
	var reply struct {
		Data *[]listed `json:"data"`
	}
	if json.Unmarshal(raw, &reply) != nil || reply.Data == nil {
		reply.Data = new([]listed)
		if json.Unmarshal(raw, reply.Data) != nil { // some send the bare list
			return errNoList
		}
	}
	for _, l := range *reply.Data {
		id := l.ID
		if o.Provider == config.Gemini {
			id = strings.TrimPrefix(id, "models/")
		}
		if id == "" {
			continue
		}
		m := describe(cfg, o.Provider, id)
		if size := cmp.Or(l.ContextLength, l.ContextWindow, l.MaxModelLen); m.Context == nil && size > 0 {
			m.Context = &size
		}
		o.Models = append(o.Models, m)
	}
	return nil
}

// askOllama fills o from an Ollama server, with what each model can do as far as
// that is told in time.
func (o *offer) askOllama(ctx context.Context, cfg *config.Config) error {
	var tags ollamaTags
	if err := getJSON(ctx, o.Source+"/api/tags", &tags); err != nil {
		return &exitError{code: exitProvider, err: fmt.Errorf("%s %w; start it with `ollama serve` or check model.ollama.host", o.Source, err)}
	}
	for _, t := range tags.Models {
		m := describe(cfg, config.Ollama, t.Name)
		if t.Size > 0 {
			m.Size = &t.Size
		}
		o.Models = append(o.Models, m)
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, showAtOnce)
	for i := range o.Models[:min(len(o.Models), maxShown)] {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			showOllama(ctx, o.Source, &o.Models[i])
		})
	}
	all.Wait()
	return nil
}

// showOllama asks for the details of one model. Without an answer they stay
// unknown.
func showOllama(ctx context.Context, host string, m *modelInfo) {
	body, err := json.Marshal(map[string]string{"model": m.Model})
	if err != nil {
		return
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, host+"/api/show", bytes.NewReader(body))
	if err != nil {
		return
	}
	var details struct {
		Info         map[string]any `json:"model_info"`
		Capabilities []string       `json:"capabilities"`
	}
	if fetchJSON(req, &details) != nil {
		return
	}
	family := fmt.Sprint(details.Info["general.architecture"])
	if size, ok := details.Info[family+".context_length"].(float64); ok && m.Context == nil && size >= 1 && size < 1e12 {
		m.Context = new(int64(size))
	}
	if details.Capabilities != nil {
		m.Tools = new(slices.Contains(details.Capabilities, "tools"))
	}
}

// describe says what the settings and the catalogue know about a model.
func describe(cfg *config.Config, provider, id string) modelInfo {
	m := modelInfo{Model: id}
	size, price := modelFacts(cfg, config.Choice{Provider: provider, Model: id})
	m.Input, m.Output, m.CacheRead, m.CacheWrite = price.Input, price.Output, price.CacheRead, price.CacheWrite
	if size > 0 {
		m.Context = &size
	}
	if known, ok := catalog.Find(provider, id); ok {
		m.Name, m.CanReason = known.Name, &known.CanReason
		if known.MaxOutput > 0 {
			m.MaxOutput = &known.MaxOutput
		}
	}
	return m
}

// choose marks the chosen model and sorts. A chosen model that is not in the
// list is added.
func (o *offer) choose(cfg *config.Config, chosen string) {
	if chosen != "" {
		i := slices.IndexFunc(o.Models, func(m modelInfo) bool {
			return m.Model == chosen || o.Provider == config.Ollama && m.Model == chosen+":latest"
		})
		if i < 0 {
			o.Models = append(o.Models, describe(cfg, o.Provider, chosen))
			i = len(o.Models) - 1
			o.missing(chosen)
		}
		o.Models[i].Chosen = true
	}
	slices.SortFunc(o.Models, func(a, b modelInfo) int { return cmp.Compare(a.Model, b.Model) })
}

// missing warns of a chosen model that its provider does not list.
func (o *offer) missing(chosen string) {
	switch {
	case o.Source == catalogueSource, o.Provider == config.Azure: // which lists models, not deployments
	case o.Provider == config.Ollama:
		o.Warning = fmt.Sprintf("the chosen model %s is not there; fetch it with: ollama pull %s", chosen, chosen)
	default:
		o.Warning = fmt.Sprintf("%s does not list the chosen model %s", o.Source, chosen)
	}
}
