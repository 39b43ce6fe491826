package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/config"
	"github.com/tendril-agent/tendril/internal/host"
	"github.com/tendril-agent/tendril/internal/model"
	"github.com/tendril-agent/tendril/internal/secret"
)

const (
	testTime   = 20 * time.Second // of a whole test
	testTokens = 16               // of the shortest reply that all providers give
)

// testKey asks the provider of a key whether it is good: for its list of models,
// or, where that needs no key or there is none, for the shortest reply. An empty
// value is the one that is kept. Redirects are refused.
func (c *command) testKey(ctx context.Context, dirs config.Dirs, name string, use host.KeyUse) (host.KeyTest, error) {
	i := slices.IndexFunc(config.Providers(), func(p string) bool { return config.KeyEnv(p) == name })
	if err := secret.CheckName(name); err != nil {
		return host.KeyTest{}, err
	}
	if i < 0 {
		return host.KeyTest{}, fmt.Errorf("no provider has a key %s, so it cannot be tested; the keys of providers are %s", name, strings.Join(keyNames(), ", "))
	}
	provider, value := config.Providers()[i], use.Value
	if value == "" {
		found, err := c.secrets().Lookup(ctx, name)
		if err != nil {
			return host.KeyTest{}, err
		}
		value = found.Value
	}
	value = strings.TrimSpace(value)
	if err := secret.CheckValue(value); err != nil {
		return host.KeyTest{}, err
	}
	proposal, err := config.Propose(dirs, unsaved(provider, use)...)
	if err != nil {
		return host.KeyTest{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, testTime)
	defer cancel()
	cfg := proposal.Config()
	result := keyTest{cfg: cfg, at: config.Endpoint(cfg, provider, c.Getenv), key: value}.run(ctx)
	result.Message = strings.ReplaceAll(result.Message, value, "…") // nothing of ours says it, but an address may
	return result, nil
}

// unsaved are the changes of settings with which a key is to be used.
func unsaved(provider string, use host.KeyUse) []config.Change {
	var changes []config.Change
	for name, value := range map[string]*string{"baseURL": use.BaseURL, "modelId": use.ModelID} {
		if value == nil {
			continue
		}
		text := "null"
		if given := strings.TrimSpace(*value); given != "" {
			quoted, _ := json.Marshal(given) // strings always encode
			text = string(quoted)
		}
		changes = append(changes, config.Change{Path: "model." + provider + "." + name, Value: text})
	}
	return changes
}

// keyTest is a test of one key at one endpoint.
type keyTest struct {
	cfg *config.Config
	at  config.Choice
	key string
}

func (t keyTest) run(ctx context.Context) host.KeyTest {
	if t.at.BaseURL == "" {
		t.at.BaseURL = map[string]string{config.Anthropic: model.AnthropicURL, config.OpenAI: model.OpenAIURL}[t.at.Provider]
	}
	switch {
	case t.at.BaseURL == "":
		return host.KeyTest{Message: "the base URL of your resource is missing"}
	case t.at.Provider == config.OpenRouter && !t.cfg.Model.IsElsewhere(config.OpenRouter):
		return t.askAbout(ctx) // its list of models is public
	}
	listed, err := t.list(ctx, t.key)
	var status *statusError
	switch {
	case err == nil && t.isPublic(ctx), errors.Is(err, errNoList), errors.As(err, &status) && status.unknown():
		return t.reply(ctx)
	case err != nil:
		return host.KeyTest{Message: t.at.BaseURL + " " + err.Error()}
	}
	listed.choose(t.cfg, t.cfg.Model.Blocks[t.at.Provider].ModelID)
	result := host.KeyTest{OK: true, Message: fmt.Sprintf("%s accepts the key, and lists %s", t.at.BaseURL, plural(len(listed.Models), "model", "models"))}
	if listed.Warning != "" {
		result.Message += "; but " + listed.Warning
	}
	return result
}

// unknown says that a server does not know what it was asked for.
func (e *statusError) unknown() bool {
	return e.code == http.StatusNotFound || e.code == http.StatusMethodNotAllowed || e.code == http.StatusNotImplemented
}

// list asks for the list of models.
func (t keyTest) list(ctx context.Context, key string) (offer, error) {
	o := offer{Provider: t.at.Provider, Source: t.at.BaseURL}
	req, err := listRequest(ctx, t.at, key)
	if err != nil {
		return o, err
	}
	return o, o.ask(req, t.cfg)
}

// isPublic reports whether the list of models proves nothing, because everybody
// gets it.
func (t keyTest) isPublic(ctx context.Context) bool {
	_, err := t.list(ctx, "")
	return err == nil
}

// askAbout asks for what the provider knows of the key.
func (t keyTest) askAbout(ctx context.Context) host.KeyTest {
	req, err := keyRequest(ctx, t.at, "/key", t.key) // https://openrouter.ai/docs/api/api-reference/api-keys/get-current-key
	if err == nil {
		err = fetchJSON(req, &json.RawMessage{})
	}
	if err != nil {
		return host.KeyTest{Message: t.at.BaseURL + " " + err.Error()}
	}
	return host.KeyTest{OK: true, Message: t.at.BaseURL + " accepts the key"}
}

// reply asks the model for the shortest reply.
func (t keyTest) reply(ctx context.Context) host.KeyTest {
	choice, cfg := t.at, *t.cfg
	block := cfg.Model.Blocks[choice.Provider]
	if choice.Model = block.ModelID; choice.Model == "" {
		choice.Model = config.DefaultModel(choice.Provider)
	}
	if choice.Model == "" {
		return host.KeyTest{Message: choice.BaseURL + " does not say whether the key is good before a model is named"}
	}
	block.MaxTokens = testTokens
	cfg.Model.Blocks = maps.Clone(cfg.Model.Blocks)
	cfg.Model.Blocks[choice.Provider] = block
	request := agent.Request{Messages: []agent.Message{{Role: agent.RoleUser, Blocks: []agent.Block{agent.Text("Say ok.")}}}}
	for _, err := range connect(&cfg, choice, t.key).Stream(ctx, request) {
		if err != nil {
			return host.KeyTest{Message: err.Error(), Model: choice.Name()}
		}
	}
	return host.KeyTest{OK: true, Message: choice.BaseURL + " accepts the key: " + choice.Model + " has answered", Model: choice.Name()}
}
