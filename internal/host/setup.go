package host

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// SetupState is what is there of all that prompts need.
type SetupState struct {
	Needed     bool       `json:"needed"`
	Workspace  Place      `json:"workspace"`
	Deno       Deno       `json:"deno"`
	Fetching   bool       `json:"fetching" doc:"Deno is being fetched"`
	Model      *Model     `json:"model,omitempty"`
	ModelError string     `json:"modelError,omitempty"`
	Providers  []Provider `json:"providers"`
}

// SetupProgress is news of something that the app fetches.
type SetupProgress struct {
	Step  string `json:"step" enum:"deno"`
	State string `json:"state" enum:"running,done,failed"`
	Text  string `json:"text"`
}

// Check is one thing that was checked.
type Check struct {
	Name  string `json:"name"`
	State string `json:"state" enum:"ok,warning,failed"`
	Text  string `json:"text"`
	Hint  string `json:"hint,omitempty"`
}

// Diagnosis is what a check of everything has found.
type Diagnosis struct {
	OK     bool    `json:"ok" doc:"Nothing failed"`
	Checks []Check `json:"checks"`
}

func (h *Host) setupAPI(api huma.API) {
	huma.Register(api, op("GET", "/api/setup", "getSetup", "What is there, and what is missing", 200), h.getSetup)
	huma.Register(api, op("POST", "/api/setup/deno", "fetchDeno", "Fetch Deno, which runs capabilities; events tell how far it is", 202), h.fetchDeno)
	huma.Register(api, op("POST", "/api/setup/workspace", "checkWorkspace", "Check a folder that is to be the workspace; nothing is created", 200), h.checkWorkspace)
	huma.Register(api, op("GET", "/api/doctor", "getDoctor", "Check everything", 200), func(ctx context.Context, _ *struct{}) (*of[Diagnosis], error) {
		d := Diagnosis{OK: true, Checks: h.Doctor(ctx)}
		for _, c := range d.Checks {
			d.OK = d.OK && c.State != "failed"
		}
		return &of[Diagnosis]{d}, nil
	})
}

func (h *Host) getSetup(ctx context.Context, _ *struct{}) (*of[SetupState], error) {
	providers, err := h.Models.Providers(ctx)
	if err != nil {
		return nil, failure(err)
	}
	o := h.overview()
	h.services.mu.Lock()
	fetching := h.services.fetching
	h.services.mu.Unlock()
	return &of[SetupState]{SetupState{o.SetupNeeded, o.Workspace, o.Deno, fetching, o.Model, o.ModelError, providers}}, nil
}

// fetchDeno begins to fetch Deno, which goes on when the client is gone and ends
// with the host.
func (h *Host) fetchDeno(context.Context, *Nothing) (*struct{}, error) {
	h.services.mu.Lock()
	defer h.services.mu.Unlock()
	switch {
	case h.services.fetching:
		return nil, problemOf(http.StatusConflict, "running", errors.New("deno is being fetched already"))
	case h.services.ctx == nil:
		return nil, problemOf(http.StatusServiceUnavailable, "", errors.New("the host is ending"))
	}
	h.services.fetching = true
	ctx := h.services.ctx
	h.services.tasks.Go(func() { h.fetch(ctx) })
	return nil, nil
}

func (h *Host) fetch(ctx context.Context) {
	say := func(state, text string) { h.hub.publish("setup", SetupProgress{"deno", state, text}) }
	err := h.Setup.FetchDeno(ctx, func(text string) { say("running", text) })
	h.services.mu.Lock()
	h.services.fetching = false
	h.services.mu.Unlock()
	if err != nil {
		say("failed", err.Error())
		return
	}
	h.renewAgent()
	say("done", "Deno is there")
}

func (h *Host) checkWorkspace(_ context.Context, in *struct {
	Body struct {
		Path string `json:"path" minLength:"1" maxLength:"4096" doc:"Absolute, or beginning with ~/"`
	}
},
) (*of[Place], error) {
	place, err := h.Setup.Workspace(in.Body.Path)
	if err != nil {
		return nil, problemOf(http.StatusUnprocessableEntity, "workspace", err)
	}
	return &of[Place]{place}, nil
}
