package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

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
