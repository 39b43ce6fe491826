package cli

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/tendril-agent/tendril/internal/config"
	"github.com/tendril-agent/tendril/internal/host"
	"github.com/tendril-agent/tendril/internal/secret"
	"github.com/tendril-agent/tendril/internal/workspace"
)

// services are what commands do, for the app. Settings and keys are read anew
// each time: they change while the host runs. It is safe for concurrent use.
type services struct {
	c       *command
	options hostOptions
	lender  *lender
}

func (c *command) services(o hostOptions) *services {
	s := &services{c: c, options: o}
	s.lender = &lender{s: s}
	return s
}

// of makes them those of a host.
func (s *services) of() host.Services {
	return host.Services{
		Workspace: s.options.workspace, Model: s.options.model,
		Trial: func(settings string) *exec.Cmd {
			cmd := s.c.agentCommand(s.options)
			cmd.Args = append(cmd.Args, "--settings", settings)
			return cmd
		},
		Keys: keyService{s}, Models: modelService{s}, Setup: setupService{s},
		Capabilities: func(ctx context.Context, use func(host.Workbench) error) error {
			return s.lender.use(ctx, func(a *app) error {
				return use(host.Workbench{Registry: a.registry, Executor: a.executor(), By: person(), Ready: a.ready})
			})
		},
		Doctor: func(ctx context.Context) []host.Check {
			var checks []host.Check
			for _, k := range s.command().checks(ctx, s.options.workspace) {
				checks = append(checks, host.Check{Name: k.Name, State: k.State, Text: k.Text, Hint: k.Hint})
			}
			return checks
		},
	}
}

// files lends the workspace for its files.
func (s *services) files(ctx context.Context, use func(*workspace.Workspace) error) error {
	return s.lender.use(ctx, func(a *app) error { return use(a.workspace) })
}

// folder is the workspace as the settings are now.
func (s *services) folder() (string, error) {
	cfg, dirs, err := s.command().settings()
	if err != nil {
		return "", err
	}
	return config.ResolveWorkspace(s.options.workspace, cfg, dirs)
}

// command is one that says nothing, and knows nothing from before: a keychain
// may be unlocked by now.
func (s *services) command() *command {
	c := *s.c
	c.Out, c.Err, c.json, c.store = io.Discard, io.Discard, false, nil
	return &c
}

// keyService implements [host.Keys].
type keyService struct{ *services }

func (s keyService) List(ctx context.Context) ([]host.Key, error) {
	list, err := s.command().secrets().List(ctx, keyNames()...)
	if err != nil {
		return nil, err
	}
	keys := []host.Key{}
	for _, e := range list {
		k := host.Key{Name: e.Name, Places: []string{}, Problem: e.Problem}
		for _, p := range e.Places {
			k.Places = append(k.Places, string(p))
		}
		k.Shadowed = len(e.Places) > 1 && e.Places[0] == secret.InEnvironment
		for _, p := range config.Providers() {
			if config.KeyEnv(p) == e.Name {
				k.Provider = p
			}
		}
		keys = append(keys, k)
	}
	return keys, nil
}

func (s keyService) Keep(name, value string) (host.KeptKey, error) {
	r, err := s.command().keep(name, strings.TrimSpace(value))
	return host.KeptKey{Place: string(r.Place), Warning: strings.Join(r.Warnings, "\n")}, err
}

func (s keyService) Forget(name string) error { return s.command().secrets().Remove(name) }

// modelService implements [host.Models].
type modelService struct{ *services }

func (s modelService) Providers(ctx context.Context) ([]host.Provider, error) {
	c := s.command()
	cfg, _, err := c.settings()
	if err != nil {
		return nil, err
	}
	found := map[string]config.Choice{}
	for _, choice := range config.Available(ctx, cfg, c.lookup(ctx), probeOllama) {
		found[choice.Provider] = choice
	}
	var list []host.Provider
	for _, id := range config.Providers() {
		choice, ok := found[id]
		p := host.Provider{ID: id, Name: config.Title(id), Found: ok, Reason: choice.Reason, KeyEnv: config.KeyEnv(id), Model: choice.Model, Needs: config.Needs(id)}
		if p.Model == "" {
			p.Model = config.DefaultModel(id)
		}
		if p.Needs == nil {
			p.Needs = []string{}
		}
		list = append(list, p)
	}
	return list, ctx.Err()
}

func (s modelService) List(ctx context.Context, provider string) (host.ModelList, error) {
	if provider != "" && !config.IsProvider(provider) {
		return host.ModelList{}, noProvider(provider)
	}
	c := s.command()
	cfg, _, err := c.settings()
	if err != nil {
		return host.ModelList{}, err
	}
	o, err := c.offered(ctx, cfg, provider)
	if err != nil {
		return host.ModelList{}, err
	}
	list := host.ModelList{Provider: o.Provider, Source: o.Source, Warning: o.Warning, Models: []host.ModelInfo{}}
	for _, m := range o.Models {
		list.Models = append(list.Models, host.ModelInfo{
			Model: m.Model, Name: m.Name, Chosen: m.Chosen, Context: m.Context, MaxOutput: m.MaxOutput,
			Input: m.Input, Output: m.Output, CacheRead: m.CacheRead, CacheWrite: m.CacheWrite, Reasons: m.CanReason, Tools: m.Tools, Size: m.Size,
		})
	}
	return list, nil
}

func (s modelService) Test(ctx context.Context, name string, use host.KeyUse) (host.KeyTest, error) {
	c := s.command()
	_, dirs, err := c.settings()
	if err != nil {
		return host.KeyTest{}, err
	}
	return c.testKey(ctx, dirs, name, use)
}

// setupService implements [host.Setup].
type setupService struct{ *services }

func (s setupService) Workspace(given string) (host.Place, error) {
	path, err := "", error(nil)
	if given == "" {
		path, err = s.folder()
	} else {
		var dirs config.Dirs
		if dirs, err = config.Locate(s.c.Getenv); err == nil {
			path, err = config.ResolveFolder(given, dirs)
		}
	}
	if err != nil {
		return host.Place{}, err
	}
	info, err := os.Stat(path)
	return host.Place{Path: path, Exists: err == nil && info.IsDir()}, workspace.Check(path)
}

func (s setupService) Deno() host.Deno {
	c := s.command()
	cfg, dirs, err := c.settings()
	if err != nil {
		return host.Deno{} // the settings are to be mended first
	}
	deno, err := c.deno(cfg, dirs)
	if err != nil {
		return host.Deno{Error: err.Error()}
	}
	return host.Deno{Path: deno.Path, Version: deno.Version, Origin: string(deno.Origin)}
}

func (s setupService) FetchDeno(ctx context.Context, say func(string)) error {
	c := s.command()
	cfg, dirs, err := c.settings()
	if err != nil {
		return err
	}
	_, err = c.fetchDeno(ctx, cfg, dirs, say)
	return err
}
