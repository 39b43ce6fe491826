package host

import (
	"context"
	"os/exec"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/capability"
)

// Services are what the app shows and changes beside conversations. All are set.
type Services struct {
	// Workspace and Model are those of the command line, "" where it has none. They
	// go before the settings as long as the host runs.
	Workspace, Model string
	// Trial makes the command of an agent that reads its settings from a file. It
	// is not started yet.
	Trial  func(settings string) *exec.Cmd
	Keys   Keys
	Models Models
	Setup  Setup
	// Capabilities lends the workspace, as the settings are now.
	Capabilities func(ctx context.Context, use func(Workbench) error) error
	Doctor       func(context.Context) []Check
}

// Keys keeps the keys of providers. No error of it holds a value.
type Keys interface {
	List(context.Context) ([]Key, error)
	// Keep keeps a value. The warning is empty when all is well.
	Keep(name, value string) (KeptKey, error)
	Forget(name string) error
}

// Models knows the providers of models.
type Models interface {
	Providers(context.Context) ([]Provider, error)
	List(ctx context.Context, provider string) (ModelList, error)
	// Test asks the provider of a key whether it is good. An error is about the
	// question, not about the key; a [config.Error] is about where it is to be used.
	Test(ctx context.Context, name string, use KeyUse) (KeyTest, error)
}

// Setup is what must be there before anything works.
type Setup interface {
	// Workspace checks a folder; "" is the one of the settings. It creates nothing.
	Workspace(given string) (Place, error)
	Deno() Deno
	// FetchDeno fetches Deno, and says how far it is.
	FetchDeno(ctx context.Context, say func(string)) error
}

// Workbench is an open workspace.
type Workbench struct {
	Registry *capability.Registry
	Executor *agent.Executor
	By       capability.Provenance // the person
	// Ready says why nothing can run.
	Ready func(context.Context) error
}

// services is the state of what is beside conversations.
type services struct {
	changing sync.Mutex // held while settings are changed

	mu       sync.Mutex
	overview Overview
	fetching bool // Deno is
	stale    bool // the agent is to start afresh once no turn runs

	ctx   context.Context // of what goes on without a client; nil when nothing may begin
	tasks sync.WaitGroup
}

func (h *Host) servicesAPI(api huma.API) {
	h.settingsAPI(api)
	h.keysAPI(api)
	h.modelsAPI(api)
	h.capabilitiesAPI(api)
	h.setupAPI(api)
}

// attend learns from each new agent what a prompt would use, and starts the
// agent afresh when that is wished and no turn runs, until ctx ends.
func (h *Host) attend(ctx context.Context) {
	h.services.mu.Lock()
	h.services.ctx = ctx
	h.services.mu.Unlock()
	h.sweepTrials()
	h.look()
	tasks := &h.services.tasks
	defer func() {
		h.services.mu.Lock()
		h.services.ctx = nil // nothing begins any more
		h.services.mu.Unlock()
		tasks.Wait()
	}()
	var known *child
	for ctx.Err() == nil {
		_, changed, ok := h.hub.after(h.hub.position())
		if c, err := h.supervisor.ready(); err == nil && c != known {
			known = c
			tasks.Go(func() { h.learn(c) })
		}
		if h.restartWished() {
			_ = h.supervisor.startAfresh(ctx) // it fails only when ctx ends
			continue
		}
		if !ok { // a lot has happened
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// restartWished takes the wish for an agent that starts afresh, unless a turn
// runs.
func (h *Host) restartWished() bool {
	if len(h.running()) > 0 {
		return false
	}
	h.services.mu.Lock()
	defer h.services.mu.Unlock()
	wished := h.services.stale
	h.services.stale = false
	return wished
}

// running are the sessions in which a turn runs.
func (h *Host) running() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var ids []string
	for id, c := range h.conversations {
		if c.running {
			ids = append(ids, id)
		}
	}
	return ids
}

// renewAgent lets the agent start afresh, at once or after the turns that run:
// it reads settings and keys only once. Clients are told to look again.
func (h *Host) renewAgent() {
	h.services.mu.Lock()
	h.services.stale = true
	h.services.mu.Unlock()
	h.look()
	h.hub.publish("settings", struct{}{})
}
