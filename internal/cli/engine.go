package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/capability"
	"github.com/tendril-agent/tendril/internal/config"
	"github.com/tendril-agent/tendril/internal/session"
)

// engine makes agents for the sessions of a process that serves others: their
// registry is that of the workspace, their files are those of the session's
// folder. All is opened when it is first needed, so that the process answers at
// once; what could not be opened is tried again the next time. It is safe for
// concurrent use.
type engine struct {
	c         *command
	workspace string // from --workspace
	model     string // from --model
	approver  capability.Approver

	mu   sync.Mutex
	cfg  *config.Config
	dirs config.Dirs
	app  *app
}

// settings loads the settings.
func (g *engine) settings() (*config.Config, config.Dirs, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.load()
}

// load is settings for the holder of the lock.
func (g *engine) load() (*config.Config, config.Dirs, error) {
	if g.cfg == nil {
		cfg, dirs, err := g.c.settings()
		if err != nil {
			return nil, dirs, err
		}
		g.cfg, g.dirs = cfg, dirs
	}
	return g.cfg, g.dirs, nil
}

// open opens the workspace.
func (g *engine) open(ctx context.Context) (*app, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened(ctx)
}

// opened is open for the holder of the lock.
func (g *engine) opened(ctx context.Context) (*app, error) {
	if g.app != nil {
		return g.app, nil
	}
	cfg, dirs, err := g.load()
	if err != nil {
		return nil, err
	}
	a, err := g.c.open(ctx, cfg, dirs, openOptions{workspace: g.workspace, create: true, approver: g.approver})
	if err != nil {
		return nil, err
	}
	if _, err := a.openSessions(ctx); err != nil {
		return nil, errors.Join(err, a.close())
	}
	g.app = a
	return a, nil
}

// sessions are those of the user.
func (g *engine) sessions(ctx context.Context) (*session.Store, error) {
	a, err := g.open(ctx)
	if err != nil {
		return nil, err
	}
	return a.sessions, nil
}

// folder checks the folder that a session is to work in, and returns it with all
// links resolved. Of those that do not exist yet only the workspace is taken:
// opening it creates it.
func (g *engine) folder(path string) (string, error) {
	cfg, dirs, err := g.settings()
	if err != nil {
		return "", err
	}
	folder, err := config.ResolveFolder(path, dirs)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(folder)
	switch {
	case err == nil && !info.IsDir():
		return "", fmt.Errorf("%q is no folder", path)
	case errors.Is(err, fs.ErrNotExist):
		if workspace, err := config.ResolveWorkspace(g.workspace, cfg, dirs); err != nil || workspace != folder {
			return "", fmt.Errorf("%q does not exist", path)
		}
	case err != nil:
		return "", fmt.Errorf("%q cannot be used: %w", path, err)
	}
	return folder, nil
}

// agent makes the agent of a folder. Its errors are of kind "configuration",
// "sandbox" or "setup", if not of a provider.
func (g *engine) agent(ctx context.Context, folder string) (*agent.Agent, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a, err := g.makeAgent(ctx, folder)
	return a, setupFailure(err)
}

func (g *engine) makeAgent(ctx context.Context, folder string) (*agent.Agent, error) {
	a, err := g.opened(ctx)
	if err != nil {
		return nil, err
	}
	m, err := g.c.chooseModel(ctx, g.cfg, g.model)
	if err != nil {
		return nil, err
	}
	if err := a.ready(ctx); err != nil {
		return nil, err
	}
	system := agent.SystemPrompt(folder)
	if folder == a.workspace.Path() {
		if err := a.workspace.WriteDisplayCopy(system); err != nil {
			g.c.warn("%v", err)
		}
	}
	executor := a.executor()
	executor.Workspace = folder
	return agent.New(agent.Options{
		Model: m, Facts: m.facts(), System: system, Tools: agent.Tools(a.registry, executor), Limits: runOptions{}.limits(a), Spending: a.sessions,
	})
}

// registry lends the registry of the configured workspace.
func (g *engine) registry(ctx context.Context, use func(*capability.Registry) error) error {
	a, err := g.open(ctx)
	if err != nil {
		return err
	}
	return use(a.registry)
}

// source is the file of a capability and the text of its active version.
func (g *engine) source(ctx context.Context, name string) (path, text string, ok bool) {
	a, err := g.open(ctx)
	if err != nil {
		return "", "", false
	}
	path = a.registry.SourcePath(name)
	info, err := a.registry.Show(ctx, name)
	if err != nil || info.Source == "" {
		return path, "", false
	}
	return path, info.Source, true
}

// setupFailure is why no agent can be made, with its kind.
func setupFailure(err error) error {
	var known *agent.ModelError
	if err == nil || errors.As(err, &known) {
		return err
	}
	kind := agent.ErrorKind("setup")
	switch exitCode(err) {
	case exitConfig:
		kind = "configuration"
	case exitSandbox:
		kind = "sandbox"
	}
	return &agent.ModelError{Kind: kind, Message: err.Error()}
}

// closeWithin is how long closing may take: what it would still do, the next
// start does.
const closeWithin = 300 * time.Millisecond

// close closes what was opened.
func (g *engine) close() {
	done := make(chan error, 1)
	go func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.app == nil {
			done <- nil
			return
		}
		done <- g.app.close()
	}()
	select {
	case err := <-done:
		if err != nil {
			g.c.warn("%v", err)
		}
	case <-time.After(closeWithin):
	}
}
