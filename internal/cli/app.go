package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/capability"
	"github.com/tendril-agent/tendril/internal/config"
	"github.com/tendril-agent/tendril/internal/sandbox"
	"github.com/tendril-agent/tendril/internal/session"
	"github.com/tendril-agent/tendril/internal/store"
	"github.com/tendril-agent/tendril/internal/terminal"
	"github.com/tendril-agent/tendril/internal/workspace"
)

// settings loads the settings and the user's folders, and tells the warnings.
func (c *command) settings() (*config.Config, config.Dirs, error) {
	dirs, err := config.Locate(c.Getenv)
	if err != nil {
		c.warn("%v", err)
	}
	load := config.Load
	if c.settingsFile != "" {
		load = func(home string) (*config.Config, []config.Warning, error) {
			return config.LoadFile(home, c.settingsFile)
		}
	}
	cfg, warnings, err := load(dirs.Tendril)
	if err != nil {
		return nil, dirs, err
	}
	for _, w := range warnings {
		c.warn("%s", w)
	}
	if names := notYet(cfg); len(names) > 0 {
		c.warn("set, but not enforced by this version: %s", strings.Join(names, ", "))
	}
	return cfg, dirs, nil
}

// notYet names the settings that are set and that nothing heeds yet: a bound
// that does not hold must not look as if it did.
func notYet(cfg *config.Config) []string {
	var names []string
	add := func(set bool, name string) {
		if set {
			names = append(names, name)
		}
	}
	if runtime.GOOS == "linux" {
		return names
	}
	l := cfg.Sandbox.Limits
	add(l.RSSMB != 0, "sandbox.limits.rssMB")
	add(l.FileMB != 0, "sandbox.limits.fileMB")
	add(l.WrittenMB != 0, "sandbox.limits.writtenMB")
	add(l.Files != 0, "sandbox.limits.files")
	add(l.Processes != 0, "sandbox.limits.processes")
	add(l.CPU != 0, "sandbox.limits.cpuS")
	return names
}

// deno finds Deno as the settings say.
func (c *command) deno(cfg *config.Config, dirs config.Dirs) (sandbox.Deno, error) {
	return sandbox.Find(sandbox.FindOptions{Configured: cfg.Sandbox.DenoPath, Home: dirs.Tendril, Executable: c.Executable, Getenv: c.Getenv})
}

// app is an open workspace with all that a turn needs but the model.
type app struct {
	cfg       *config.Config
	denoErr   error // why there is no Deno
	workspace *workspace.Workspace
	db        *store.DB
	registry  *capability.Registry
	sessions  *session.Store // nil until they are asked for
	runner    *sandbox.Runner
	secrets   agent.Secrets
	handed    agent.HandedOut
}

// openOptions say how a workspace is opened.
type openOptions struct {
	workspace string // from --workspace; empty: the configured one
	create    bool   // it may be new
	inspect   bool   // the registry stays as it is found
	approver  capability.Approver
	listBytes int // of a listing; zero: as the settings say
}

// everything is a listBytes that no registry reaches.
const everything = 1 << 30

// open opens a workspace. Without Deno the registry can still be read; ready
// says what keeps it from running anything.
func (c *command) open(ctx context.Context, cfg *config.Config, dirs config.Dirs, o openOptions) (*app, error) {
	deno, denoErr := c.deno(cfg, dirs)
	path, err := config.ResolveWorkspace(o.workspace, cfg, dirs)
	if err != nil {
		return nil, err
	}
	_, err = os.Stat(path)
	isNew := errors.Is(err, fs.ErrNotExist)
	if isNew && !o.create {
		return nil, &exitError{code: exitConfig, err: fmt.Errorf("the workspace %s does not exist yet; `tendril setup` creates it, and so does the first `tendril run`", path)}
	}
	a := &app{cfg: cfg, denoErr: denoErr, runner: c.runner(cfg, deno, dirs), secrets: capabilitySecrets{c.secrets()}}
	var warnings []string
	if a.workspace, warnings, err = workspace.Open(path); err != nil {
		return nil, &exitError{code: exitConfig, err: err}
	}
	if isNew {
		fmt.Fprintf(c.Err, "%s created the workspace %s\n", c.style().run("+"), terminal.Line(path))
	}
	for _, w := range warnings {
		c.warn("%s", w)
	}
	if a.db, err = c.database(ctx, dirs); err != nil {
		return nil, errors.Join(err, a.workspace.Close())
	}
	a.registry, err = capability.Open(ctx, capability.Options{
		Workspace: path, DB: a.db, Checker: a.runner, Max: cfg.Registry.MaxCapabilities, ListBytes: cmp.Or(o.listBytes, cfg.Registry.ListBytes),
		Policy:   capability.Policy{Network: capability.Network(cfg.Sandbox.Network), AllowedDomains: cfg.Sandbox.AllowedDomains},
		Approver: o.approver, Now: time.Now, Inspect: o.inspect, Reserved: isOwnKey,
	})
	if err != nil {
		return nil, errors.Join(err, a.close())
	}
	for _, n := range a.registry.Notices() {
		c.warn("%s", noticeText(n))
	}
	return a, nil
}

// database opens the user's database, or one in memory, said, where nothing can
// be kept.
func (c *command) database(ctx context.Context, dirs config.Dirs) (*store.DB, error) {
	path := store.Memory
	if dirs.Tendril != "" {
		if err := config.Prepare(dirs.Tendril); err != nil {
			c.warn("%v", err)
		} else {
			path = filepath.Join(dirs.Tendril, "tendril.db")
		}
	}
	db, err := store.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	if notice := db.Notice(); notice != "" {
		c.warn("%s", notice)
	}
	return db, nil
}

// databaseToRead is database for commands that only look: where nothing can be
// written, because of permissions or a full disk, they look at what is there.
func (c *command) databaseToRead(ctx context.Context, dirs config.Dirs) (*store.DB, error) {
	path := filepath.Join(dirs.Tendril, "tendril.db")
	if _, err := os.Stat(path); dirs.Tendril == "" || err != nil {
		return c.database(ctx, dirs)
	}
	if config.Prepare(dirs.Tendril) != nil {
		return store.OpenReadOnly(ctx, path)
	}
	db, err := c.database(ctx, dirs)
	if err == nil {
		return db, nil
	}
	if readOnly, e := store.OpenReadOnly(ctx, path); e == nil {
		c.warn("%v", err)
		return readOnly, nil
	}
	return nil, err
}

// runner makes what runs capabilities.
func (c *command) runner(cfg *config.Config, deno sandbox.Deno, dirs config.Dirs) *sandbox.Runner {
	self := c.Executable
	if self != "" && runtime.GOOS == "linux" {
		self = "/proc/self/exe" // also when the file was replaced by a newer one meanwhile
	}
	from, err := registries(c.Getenv, dirs.User)
	if err != nil {
		c.warn("%v", err)
	}
	return &sandbox.Runner{
		Deno: deno, Home: dirs.Tendril, Self: self, RequireOS: cfg.Sandbox.Require == "os", CAFile: cfg.Sandbox.CAFile, Registries: from,
	}
}

// ready says why nothing can run, if so, and prepares the first run.
func (a *app) ready(ctx context.Context) error {
	if a.denoErr != nil {
		return a.denoErr
	}
	if err := checkLayer(ctx, a.cfg, a.runner); err != nil {
		return err
	}
	a.runner.Prepare(a.workspace.Path())
	return nil
}

// checkLayer says why nothing may run, if a layer of the sandbox is required
// that is not in force.
func checkLayer(ctx context.Context, cfg *config.Config, runner *sandbox.Runner) error {
	if cfg.Sandbox.Require != "os" {
		return nil
	}
	if layer := runner.Layer(ctx); !layer.On {
		return &exitError{code: exitSandbox, err: fmt.Errorf(`sandbox.require is "os", and the operating system layer is not in force (%s), so nothing may run; to run with Deno's permissions alone: tendril config set sandbox.require any`, layer.Why)}
	}
	return nil
}

func (a *app) close() error {
	var err error
	if a.registry != nil {
		err = a.registry.Close()
	}
	a.runner.Close()
	if a.sessions != nil {
		err = errors.Join(err, a.sessions.Close())
	}
	return errors.Join(err, a.db.Close(), a.workspace.Close())
}

// limits are the configured limits of a run.
func (a *app) limits() sandbox.Limits {
	l := a.cfg.Sandbox.Limits
	return sandbox.Limits{
		Timeout: l.Timeout, OutputBytes: int64(l.OutputBytes), HeapMB: l.HeapMB, RSSMB: l.RSSMB, FileMB: l.FileMB,
		WrittenMB: l.WrittenMB, Files: l.Files, Processes: l.Processes, CPU: l.CPU,
	}
}

// executor runs capabilities of the workspace.
func (a *app) executor() *agent.Executor {
	return &agent.Executor{Registry: a.registry, Runner: a.runner, Workspace: a.workspace.Path(), Limits: a.limits(), Secrets: a.secrets, Handed: &a.handed}
}
