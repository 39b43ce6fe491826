package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/tendril-agent/tendril/internal/config"
)

// readiness is what a client of ours learns of the agent.
type readiness struct {
	Workspace     string     `json:"workspace"`
	Model         string     `json:"model,omitempty"`  // "provider/model"
	Reason        string     `json:"reason,omitempty"` // of its choice
	ContextWindow int64      `json:"contextWindow,omitempty"`
	Problems      []obstacle `json:"problems"`
}

// obstacle is something that keeps prompts from working.
type obstacle struct {
	About   string `json:"about"` // settings, workspace, model or sandbox
	Message string `json:"message"`
}

func (r *readiness) add(about string, err error) {
	if err != nil {
		r.Problems = append(r.Problems, obstacle{about, err.Error()})
	}
}

// ready tells which workspace and model a prompt would use, and all that would
// keep it from working. It creates nothing.
func (g *engine) ready(ctx context.Context) (any, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := &readiness{Problems: []obstacle{}}
	cfg, dirs, err := g.load()
	if err != nil {
		r.add("settings", err)
		return r, nil
	}
	path, err := config.ResolveWorkspace(g.workspace, cfg, dirs)
	if err == nil {
		r.Workspace = path
		if _, missing := os.Stat(path); !errors.Is(missing, fs.ErrNotExist) {
			_, err = g.opened(ctx)
		}
	}
	r.add("workspace", err)
	choice, _, err := g.c.choose(ctx, cfg, g.model)
	if err == nil {
		r.Model, r.Reason = choice.Name(), choice.Reason
		r.ContextWindow, _ = modelFacts(cfg, choice)
	}
	r.add("model", err)
	r.add("sandbox", g.checkSandbox(ctx, cfg, dirs))
	return r, ctx.Err()
}

// checkSandbox says why nothing can run, and prepares the first run.
func (g *engine) checkSandbox(ctx context.Context, cfg *config.Config, dirs config.Dirs) error {
	if g.app != nil {
		return g.app.ready(ctx)
	}
	deno, err := g.c.deno(cfg, dirs)
	if err != nil {
		return err
	}
	runner := g.c.runner(cfg, deno, dirs)
	defer runner.Close()
	return checkLayer(ctx, cfg, runner)
}
