package host

import (
	"context"

	"github.com/danielgtaylor/huma/v2"
)

// Provider offers models.
type Provider struct {
	ID     string   `json:"id"`
	Name   string   `json:"name" doc:"For people"`
	Found  bool     `json:"found" doc:"It can be used as it is: a key is there, or it runs"`
	Reason string   `json:"reason,omitempty" doc:"How that shows"`
	KeyEnv string   `json:"keyEnv,omitempty" doc:"Name of its key; left out when it needs none"`
	Model  string   `json:"model,omitempty" doc:"That it would be used with"`
	Needs  []string `json:"needs" doc:"Settings below model.<id> that it needs beside modelId, such as region"`
}

// ProviderList is all providers.
type ProviderList struct {
	Providers []Provider `json:"providers"`
}

// ModelList is what a provider offers.
type ModelList struct {
	Provider string      `json:"provider"`
	Source   string      `json:"source" doc:"catalogue, or the address that was asked"`
	Models   []ModelInfo `json:"models"`
	Warning  string      `json:"warning,omitempty"`
}

// ModelInfo is one model; what is left out is not known. Prices are in USD for a
// million tokens.
type ModelInfo struct {
	Model      string   `json:"model"`
	Name       string   `json:"name,omitempty" doc:"For people"`
	Chosen     bool     `json:"chosen"`
	Context    *int64   `json:"context,omitempty" doc:"Tokens"`
	MaxOutput  *int64   `json:"maxOutput,omitempty" doc:"Tokens"`
	Input      *float64 `json:"input,omitempty" doc:"USD for a million tokens"`
	Output     *float64 `json:"output,omitempty"`
	CacheRead  *float64 `json:"cacheRead,omitempty"`
	CacheWrite *float64 `json:"cacheWrite,omitempty"`
	Reasons    *bool    `json:"reasons,omitempty" doc:"It can think first"`
	Tools      *bool    `json:"tools,omitempty" doc:"It can call tools"`
	Size       *int64   `json:"size,omitempty" doc:"Bytes on disk"`
}

func (h *Host) modelsAPI(api huma.API) {
	huma.Register(api, op("GET", "/api/providers", "listProviders", "All providers, and which of them can be used", 200),
		func(ctx context.Context, _ *struct{}) (*of[ProviderList], error) {
			list, err := h.Models.Providers(ctx)
			if err != nil {
				return nil, failure(err)
			}
			return &of[ProviderList]{ProviderList{list}}, nil
		})
	huma.Register(api, op("GET", "/api/models", "listModels", "The models of a provider", 200),
		func(ctx context.Context, in *struct {
			Provider string `query:"provider" maxLength:"100" doc:"Left out: the one that a prompt would use"`
		},
		) (*of[ModelList], error) {
			list, err := h.Models.List(ctx, in.Provider)
			if err != nil {
				return nil, failure(err)
			}
			return &of[ModelList]{list}, nil
		})
}
