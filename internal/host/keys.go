package host

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tendril-agent/tendril/internal/config"
	"github.com/tendril-agent/tendril/internal/secret"
)

// Key is a key that is there, without its value.
type Key struct {
	Name     string   `json:"name"`
	Provider string   `json:"provider,omitempty" doc:"That uses it"`
	Places   []string `json:"places" enum:"environment,keychain,file" doc:"Where it is; the first one counts"`
	Shadowed bool     `json:"shadowed,omitempty" doc:"The one that is kept is not used, because the environment has another one"`
	Problem  string   `json:"problem,omitempty" doc:"Why it is not sure that it can be used"`
}

// KeyList is the keys that are there.
type KeyList struct {
	Keys []Key `json:"keys"`
}

// KeptKey is what became of a key that was kept.
type KeptKey struct {
	Place   string `json:"place" enum:"keychain,file"`
	Warning string `json:"warning,omitempty"`
}

// KeyTest is what a provider says of a key.
type KeyTest struct {
	OK      bool   `json:"ok"`
	Message string `json:"message"`
	Model   string `json:"model,omitempty" doc:"provider/model that answered or that is listed"`
}

// KeyUse is a key and where it is to be used, saved or not: it is sent nowhere
// else.
type KeyUse struct {
	Value   string  `json:"value,omitempty" doc:"Left out: the one that is kept, or in the environment"`
	BaseURL *string `json:"baseURL,omitempty" maxLength:"2000" doc:"The address as it is in the form; empty: the provider's own. Left out: as the settings say"`
	ModelID *string `json:"modelId,omitempty" maxLength:"500" doc:"The model as it is in the form; empty: none is named. Left out: as the settings say"`
}

// KeyPath is the name of a key. It is exported for the framework, which sets it.
type KeyPath struct {
	Name string `path:"name" maxLength:"100"`
}

func (h *Host) keysAPI(api huma.API) {
	huma.Register(api, op("GET", "/api/keys", "listKeys", "The keys that are there, without their values", 200), h.listKeys)
	huma.Register(api, op("GET", "/api/secrets", "listSecrets", "Which capabilities of the workspace a person has allowed to use which secrets", 200), h.listSecrets)
	huma.Register(api, op("PUT", "/api/keys/{name}", "keepKey", "Keep a key in the keychain, or else in a private file", 200), h.keepKey)
	huma.Register(api, op("DELETE", "/api/keys/{name}", "forgetKey", "Forget a key that is kept", 204), h.forgetKey)
	huma.Register(api, op("POST", "/api/keys/{name}/test", "testKey", "Ask the provider whether a key is good", 200), h.testKey)
}

func (h *Host) listKeys(ctx context.Context, _ *struct{}) (*of[KeyList], error) {
	list, err := h.Keys.List(ctx)
	if err != nil {
		return nil, keyProblem(err)
	}
	return &of[KeyList]{KeyList{list}}, nil
}

// SecretUse is a secret that capabilities were granted.
type SecretUse struct {
	Name         string   `json:"name"`
	Capabilities []string `json:"capabilities"`
}

// SecretList are the secrets that capabilities were granted.
type SecretList struct {
	Secrets []SecretUse `json:"secrets"`
}

func (h *Host) listSecrets(ctx context.Context, _ *struct{}) (*of[SecretList], error) {
	out := SecretList{Secrets: []SecretUse{}}
	err := h.onRegistry(ctx, false, func(b Workbench) error {
		uses, err := b.Registry.SecretUses(ctx)
		for _, name := range slices.Sorted(maps.Keys(uses)) {
			out.Secrets = append(out.Secrets, SecretUse{name, uses[name]})
		}
		return err
	})
	return &of[SecretList]{out}, err
}

func (h *Host) keepKey(_ context.Context, in *struct {
	KeyPath
	Body struct {
		Value string `json:"value"`
	}
},
) (*of[KeptKey], error) {
	kept, err := h.Keys.Keep(in.Name, in.Body.Value)
	if err != nil {
		return nil, keyProblem(err)
	}
	h.renewAgent()
	return &of[KeptKey]{kept}, nil
}

func (h *Host) forgetKey(_ context.Context, in *KeyPath) (*struct{}, error) {
	if err := h.Keys.Forget(in.Name); err != nil {
		return nil, keyProblem(err)
	}
	h.renewAgent()
	return nil, nil
}

func (h *Host) testKey(ctx context.Context, in *struct {
	KeyPath
	Body KeyUse
},
) (*of[KeyTest], error) {
	result, err := h.Models.Test(ctx, in.Name, in.Body)
	var wrong *config.Error
	switch {
	case errors.As(err, &wrong):
		p := refused(wrong)
		p.Detail = wrong.Problems[0].Reason // it is about the form, not about the file
		return nil, p
	case err != nil:
		return nil, keyProblem(err)
	}
	return &of[KeyTest]{result}, nil
}

// keyProblem is an error about a key. It holds no value: those of package secret
// do not.
func keyProblem(err error) error {
	switch {
	case errors.Is(err, secret.ErrInvalid):
		return problemOf(http.StatusUnprocessableEntity, "invalid", err)
	case errors.Is(err, secret.ErrNotFound):
		return problemOf(http.StatusNotFound, "not_found", err)
	case errors.Is(err, secret.ErrUnavailable):
		return problemOf(http.StatusServiceUnavailable, "keychain", err)
	case errors.Is(err, secret.ErrFile):
		return problemOf(http.StatusInternalServerError, "file", err)
	}
	return failure(err)
}
