package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tendril-agent/tendril/internal/config"
	"github.com/tendril-agent/tendril/internal/host"
	"github.com/tendril-agent/tendril/internal/secret"
)

// secrets is the store of the user's secrets, one for the process: it remembers
// that the keychain is unavailable.
func (c *command) secrets() *secret.Store {
	if c.store == nil {
		dirs, _ := config.Locate(c.Getenv) // without a folder the environment is left
		c.store = secret.Open(secret.Options{Dir: dirs.Tendril, Getenv: c.Getenv, Keychain: c.Keychain})
	}
	return c.store
}

// keyNames are the names of the keys of all providers.
func keyNames() []string {
	var names []string
	for _, provider := range config.Providers() {
		if name := config.KeyEnv(provider); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// secretNames are the names of all secrets that something uses.
func secretNames() []string { return append(keyNames(), host.PasswordName) }

// keys are the keys of providers that one choice of a model looked for.
type keys struct {
	found    map[string]secret.Found
	problems []string // why places that may hold one could not be asked
}

// get is a getenv that finds the keys of providers in the secrets, too.
func (k *keys) get(ctx context.Context, c *command, name string) string {
	if !slices.Contains(keyNames(), name) {
		return c.Getenv(name)
	}
	if f, ok := k.found[name]; ok {
		return f.Value
	}
	f, err := c.secrets().Lookup(ctx, name)
	k.found[name] = f
	var missing *secret.NotFoundError
	if errors.As(err, &missing) {
		for _, p := range missing.Problems {
			k.add(p.Error())
		}
	}
	return f.Value
}

// lookup is a getenv that finds the keys of providers in the secrets, too, and
// says nothing of what keeps it from them.
func (c *command) lookup(ctx context.Context) func(name string) string {
	k := &keys{found: map[string]secret.Found{}}
	return func(name string) string { return k.get(ctx, c, name) }
}

// add adds a problem once: several keys may have the same.
func (k *keys) add(problem string) {
	if !slices.Contains(k.problems, problem) {
		k.problems = append(k.problems, problem)
	}
}

// choose finds the model to use, and its key, if it needs one. The reason of the
// choice says where the key was found. The errors are those of [config.Choose],
// with what kept us from finding keys.
func (c *command) choose(ctx context.Context, cfg *config.Config, flag string) (config.Choice, string, error) {
	k := &keys{found: map[string]secret.Found{}}
	choice, err := config.Choose(ctx, cfg, flag, func(name string) string { return k.get(ctx, c, name) }, probeOllama)
	switch {
	case errors.Is(err, config.ErrModelFlag):
		return choice, "", &exitError{code: exitUsage, err: err}
	case err != nil && ctx.Err() != nil:
		return choice, "", ctx.Err()
	case err != nil && len(k.problems) > 0:
		return choice, "", fmt.Errorf("%s\n%w", strings.Join(k.problems, "\n"), err) // the cause first
	case err != nil:
		return choice, "", err
	}
	for _, p := range k.problems {
		c.warn("%s", p)
	}
	if p := choice.Provider; flag == "" && cfg.Model.Blocks[p].ModelID == "" && cfg.Model.IsElsewhere(p) {
		c.warn("model.%s.baseURL is set and model.%s.modelId is not, so %s is asked for %s; name its own model: tendril config set model.%s.modelId …", p, p, choice.BaseURL, choice.Model, p)
	}
	f := k.found[choice.KeyEnv]
	choice.Reason = reason(choice, f.Place, c.secrets().Path())
	return choice, f.Value, nil
}

// reason is why a model was chosen, with the place of its key when that is not
// the environment.
func reason(choice config.Choice, place secret.Place, file string) string {
	where := ""
	switch place {
	case secret.InKeychain:
		where = choice.KeyEnv + " is in the keychain"
	case secret.InFile:
		where = choice.KeyEnv + " is in " + file
	default:
		return choice.Reason
	}
	if choice.Reason == choice.KeyEnv+" is set" {
		return where
	}
	return choice.Reason + ", " + where
}
