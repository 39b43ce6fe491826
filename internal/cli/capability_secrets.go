package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tendril-agent/tendril/internal/config"
	"github.com/tendril-agent/tendril/internal/secret"
)

// isOwnKey reports whether a secret is for Tendril itself: a key of a provider, a
// credential of AWS, or the password of the app.
func isOwnKey(name string) bool {
	return slices.Contains(secretNames(), name) || strings.HasPrefix(name, "AWS_")
}

// capabilitySecrets are the secrets that capabilities may be given.
type capabilitySecrets struct{ store *secret.Store }

// Value implements [agent.Secrets].
func (s capabilitySecrets) Value(ctx context.Context, name string) (string, error) {
	if isOwnKey(name) {
		return "", errors.New("it is a key of Tendril's own")
	}
	found, err := s.store.Lookup(ctx, name)
	var missing *secret.NotFoundError
	if errors.As(err, &missing) {
		return "", errors.Join(missing.Problems...)
	}
	return found.Value, err
}

// secretUses tells, by name of a secret, which capabilities of the configured
// workspace may use it; nothing where that cannot be found out.
func (c *command) secretUses(ctx context.Context) map[string][]string {
	cfg, dirs, err := c.settings()
	if err != nil {
		return nil
	}
	path, err := config.ResolveWorkspace("", cfg, dirs)
	if err != nil {
		return nil
	}
	if _, err := os.Stat(filepath.Join(path, "tools")); err != nil {
		return nil
	}
	a, err := c.open(ctx, cfg, dirs, openOptions{inspect: true})
	if err != nil {
		return nil
	}
	defer a.close()
	uses, err := a.registry.SecretUses(ctx)
	if err != nil {
		return nil
	}
	return uses
}
