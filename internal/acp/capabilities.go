package acp

import (
	"context"
	"errors"

	"github.com/tendril-agent/tendril/internal/capability"
	"github.com/tendril-agent/tendril/internal/jsonrpc"
)

// Methods for an editor in which a person edits tools/<name>.ts. Nobody is asked
// in them: what needs a permission is kept pending.
const (
	methodCapabilities = "_tendril/capabilities"
	methodDiff         = "_tendril/capability/diff"
	methodAccept       = "_tendril/capability/accept"
	methodRestore      = "_tendril/capability/restore"
)

// listed is a capability in the answer to methodCapabilities.
type listed struct {
	Name       string   `json:"name"`
	Capability string   `json:"capability"`
	Version    string   `json:"version"`
	Status     string   `json:"status"`
	Path       string   `json:"path"`
	Notes      []string `json:"notes"` // where what runs is not what stands in the file
}

// accepted is the answer to methodAccept: one of the two.
type accepted struct {
	Admission *capability.Admission `json:"admission,omitempty"`
	Refusal   *capability.Refusal   `json:"refusal,omitempty"`
}

// capabilityParams are those of all methods about one capability.
type capabilityParams struct {
	Name     string `json:"name"`
	From     string `json:"from"`
	To       string `json:"to"`
	Override bool   `json:"override"`
}

// onCapabilities answers the methods about capabilities. They take time: a gate
// may run.
func (s *server) onCapabilities(ctx context.Context, r *jsonrpc.Request) (any, error) {
	var p capabilityParams
	if r.Method != methodCapabilities {
		if err := decode(r.Params, &p); err != nil {
			return nil, err
		}
		if p.Name == "" {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.name is missing: the name of a capability")
		}
	}
	return jsonrpc.Later(func() (any, error) {
		var answer any
		err := s.Registry(ctx, func(registry *capability.Registry) (err error) {
			answer, err = s.capabilities(capability.Unattended(ctx), registry, r.Method, p)
			return err
		})
		return answer, capabilityError(err)
	}), nil
}

func (s *server) capabilities(ctx context.Context, registry *capability.Registry, method string, p capabilityParams) (any, error) {
	switch method {
	case methodDiff:
		return registry.Diff(ctx, p.Name, p.From, p.To)
	case methodRestore:
		return registry.Restore(ctx, p.Name, s.By, nil)
	case methodAccept:
		admission, err := registry.Accept(ctx, p.Name, capability.Acceptance{By: s.By, Override: p.Override}, nil)
		var refusal *capability.Refusal
		if errors.As(err, &refusal) {
			return accepted{Refusal: refusal}, nil
		}
		return accepted{Admission: admission}, err
	}
	names, err := registry.Names(ctx)
	if err != nil {
		return nil, err
	}
	list := []listed{}
	for _, name := range names {
		info, err := registry.Show(ctx, name)
		var gone *capability.UnknownError
		var conflict *capability.ConflictError
		switch {
		case errors.As(err, &gone): // meanwhile
		case errors.As(err, &conflict):
			list = append(list, listed{Name: name, Status: capability.StatusConflict, Path: registry.SourcePath(name), Notes: []string{err.Error()}})
		case err != nil:
			return nil, err
		default:
			list = append(list, listed{name, info.Definition.Capability, info.Version, info.Status, registry.SourcePath(name), info.Notes})
		}
	}
	return map[string]any{"capabilities": list}, nil
}

// capabilityError is the client's to read. Its data has the kind of what is wrong.
func capabilityError(err error) error {
	if err == nil {
		return nil
	}
	var unknown *capability.UnknownError
	kind := "registry"
	switch {
	case errors.As(err, &unknown):
		kind = "unknown"
	case errors.Is(err, capability.ErrNothingToDo):
		kind = "unchanged"
	case errors.Is(err, capability.ErrNoVersion):
		kind = "no_version"
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error(), Data: map[string]string{"kind": kind}}
}
