package host

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/tendril-agent/tendril/internal/config"
	"github.com/tendril-agent/tendril/internal/jsonrpc"
)

// Overview is what the app works with.
type Overview struct {
	SettingsError string `json:"settingsError,omitempty" doc:"Why the settings cannot be read, and what to do; then the rest is not known"`
	Workspace     Place  `json:"workspace"`
	Model         *Model `json:"model,omitempty" doc:"That a prompt would use; left out until the agent has told it"`
	ModelError    string `json:"modelError,omitempty"`
	Demo          bool   `json:"demo" doc:"The model is the demo, which needs no key"`
	Deno          Deno   `json:"deno"`
	SetupNeeded   bool   `json:"setupNeeded" doc:"Something is missing without which no prompt works, or there is no workspace yet"`

	Fixed []string `json:"fixed" enum:"workspace,model" doc:"What the command line has chosen: settings that would change it are refused"`
}

// Place is a folder.
type Place struct {
	Path   string `json:"path"`
	Exists bool   `json:"exists"`
	Error  string `json:"error,omitempty" doc:"Why it cannot be used"`
}

// Deno is what runs capabilities.
type Deno struct {
	Path    string `json:"path,omitempty"`
	Version string `json:"version,omitempty"`
	Origin  string `json:"origin,omitempty" doc:"Where it was found"`
	Error   string `json:"error,omitempty" doc:"Why nothing can run"`
}

// Model is the model of a prompt.
type Model struct {
	Provider      string `json:"provider"`
	Model         string `json:"model"`
	Name          string `json:"name" doc:"provider/model, or demo"`
	Reason        string `json:"reason" doc:"Why this one"`
	ContextWindow int64  `json:"contextWindow,omitempty" doc:"In tokens; left out when it is not known"`
}

// readiness is what an agent says of prompts in its workspace.
type readiness struct {
	Workspace     string     `json:"workspace"`
	Model         string     `json:"model"`
	Reason        string     `json:"reason"`
	ContextWindow int64      `json:"contextWindow"`
	Problems      []obstacle `json:"problems"`
}

// obstacle is what keeps prompts from working. About is settings, workspace,
// model, sandbox, or agent for one that does not answer.
type obstacle struct {
	About   string `json:"about"`
	Message string `json:"message"`
}

func (r readiness) has(about string) bool {
	return slices.ContainsFunc(r.Problems, func(o obstacle) bool { return o.About == about })
}

// readyWithin is how long an agent may take to know what prompts would use.
const readyWithin = 30 * time.Second

// askReady asks an agent what a prompt would use.
func askReady(ctx context.Context, c *child) (readiness, error) {
	asking, cancel := context.WithTimeout(c.ctx, readyWithin)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	var r readiness
	err := c.conn.Call(asking, "_tendril/ready", struct{}{}, &r)
	switch {
	case err == nil:
		return r, nil
	case ctx.Err() != nil:
		return r, ctx.Err()
	case c.ctx.Err() != nil:
		<-c.done
		return r, c.why()
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("the agent did not say within %s whether it is ready", readyWithin)
	}
	return r, err
}

// startReady starts an agent only to ask it, and ends it. That it cannot be
// asked is an obstacle as well.
func startReady(ctx context.Context, cmd *exec.Cmd) readiness {
	c, err := startChild(ctx, cmd, quiet{})
	var r readiness
	if err == nil {
		r, err = askReady(ctx, c)
		c.stop()
	}
	if err != nil {
		text := err.Error()
		if words := c.lastWords(); len(words) > 0 {
			text += ": " + words[len(words)-1]
		}
		r.Problems = append(r.Problems, obstacle{"agent", text})
	}
	return r
}

// quiet is the peer of an agent that is only asked.
type quiet struct{}

func (quiet) handle(_ context.Context, _ *child, r *jsonrpc.Request) (any, error) {
	return nil, jsonrpc.MethodNotFound(r.Method)
}
func (quiet) overheard(string, []byte) {}

// look finds out what can be seen without an agent.
func (h *Host) look() {
	var place Place
	var settingsError string
	_, _, err := config.Load(h.Home)
	if err != nil {
		settingsError = err.Error()
	} else if place, err = h.Setup.Workspace(""); err != nil {
		place.Error = err.Error()
	}
	deno := h.Setup.Deno()
	h.services.mu.Lock()
	defer h.services.mu.Unlock()
	o := &h.services.overview
	o.SettingsError, o.Workspace, o.Deno = settingsError, place, deno
}

// learn keeps what an agent says of prompts, and tells clients.
func (h *Host) learn(c *child) {
	r, err := askReady(c.ctx, c)
	if current, _ := h.supervisor.ready(); current != c {
		return // the next one will tell
	}
	if err != nil {
		r.Problems = append(r.Problems, obstacle{"model", err.Error()})
	}
	h.look()
	h.services.mu.Lock()
	h.services.overview.take(r)
	h.services.mu.Unlock()
	h.hub.publish("settings", struct{}{})
}

// take puts what an agent says beside what was seen without it.
func (o *Overview) take(r readiness) {
	o.Model, o.ModelError, o.Demo = nil, "", r.Model == "demo"
	if r.Model != "" {
		provider, model, _ := strings.Cut(r.Model, "/")
		o.Model = &Model{Provider: provider, Model: model, Name: r.Model, Reason: r.Reason, ContextWindow: r.ContextWindow}
	}
	for _, p := range r.Problems {
		to := &o.Workspace.Error
		switch p.About {
		case "settings":
			to = &o.SettingsError
		case "model":
			to = &o.ModelError
		case "sandbox":
			to = &o.Deno.Error
		}
		if *to == "" {
			*to = p.Message
		}
	}
}

// overview is what was found out last.
func (h *Host) overview() Overview {
	h.services.mu.Lock()
	defer h.services.mu.Unlock()
	o := h.services.overview
	o.Fixed = h.fixed()
	o.SetupNeeded = o.SettingsError != "" || !o.Workspace.Exists || o.Workspace.Error != "" || o.ModelError != "" || o.Deno.Error != ""
	return o
}
