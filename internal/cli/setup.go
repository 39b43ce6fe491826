package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tendril-agent/tendril/internal/config"
	"github.com/tendril-agent/tendril/internal/sandbox"
	"github.com/tendril-agent/tendril/internal/workspace"
)

type setupOptions struct {
	denoOnly  bool
	workspace string
	model     string
}

// setupResult is the --json output of setup.
type setupResult struct {
	Deno      string `json:"deno"`
	Version   string `json:"deno_version"`
	Origin    string `json:"deno_origin"`
	Settings  string `json:"settings,omitempty"`
	Workspace string `json:"workspace,omitempty"`
	Model     string `json:"model,omitempty"`
	ModelWhy  string `json:"model_reason,omitempty"`
	// Missing says what to do about a model, when none was found.
	Missing string `json:"missing,omitempty"`
}

func (c *command) setupCommand() *cobra.Command {
	var o setupOptions
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Fetch Deno, create the workspace, choose a model",
		Long: fmt.Sprintf(`Set up what Tendril needs, and say what was found and what is missing. Deno %s is fetched with npm from the
registry that npm is configured for, and checked against a hash in this program; a Deno that fits is
used as it is. It may be run again at any time.

Exit codes: 0 done (also when a model is still missing: it says what to do), 2 usage, 3 settings or
folder not usable, 5 Deno could not be fetched.`, sandbox.TestedVersion),
		Example: `  tendril setup
  tendril setup --workspace ~/tools --model ollama/qwen3`,
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.setup(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.denoOnly, "deno-only", false, "only fetch Deno")
	f.StringVar(&o.workspace, "workspace", "", "`folder` to make the workspace, saved in the settings")
	f.StringVar(&o.model, "model", "", "`provider/model` to use, saved in the settings")
	_ = cmd.RegisterFlagCompletionFunc("model", completeModel) // it fails only for a flag that is not there
	return cmd
}

func (c *command) setup(ctx context.Context, o setupOptions) error {
	cfg, dirs, err := c.settings()
	if err != nil {
		return err
	}
	if dirs.Tendril == "" {
		return &exitError{code: exitConfig, err: errors.New("there is no folder to set up; set HOME or TENDRIL_HOME")}
	}
	if err := config.Prepare(dirs.Tendril); err != nil {
		return err
	}
	deno, err := c.fetchDeno(ctx, cfg, dirs, func(news string) { fmt.Fprintf(c.Err, "%s\n", news) })
	if err != nil {
		return err
	}
	r := setupResult{Deno: deno.Path, Version: deno.Version, Origin: string(deno.Origin)}
	if !o.denoOnly {
		changes, err := c.setupModel(ctx, cfg, dirs, o, &r)
		if err != nil {
			return err
		}
		if r.Workspace, err = c.createWorkspace(o.workspace, cfg, dirs); err != nil {
			return err
		}
		if o.workspace != "" {
			changes = append(changes, config.Change{Path: "workspace", Value: r.Workspace})
		}
		if err := c.save(dirs, changes...); err != nil {
			return err
		}
	}
	if c.json {
		return writeJSON(c.Out, r)
	}
	c.showSetup(r)
	return nil
}

// fetchDeno uses a Deno that fits, or fetches the pinned one, and says how far
// it is.
func (c *command) fetchDeno(ctx context.Context, cfg *config.Config, dirs config.Dirs, say func(string)) (sandbox.Deno, error) {
	deno, err := c.deno(cfg, dirs)
	if !errors.Is(err, sandbox.ErrNoDeno) || c.Getenv("DENO_PATH") != "" {
		return deno, err
	}
	if deno, err = sandbox.Fetch(ctx, dirs.Tendril, secretNames(), say); err != nil && ctx.Err() == nil {
		err = &exitError{code: exitSandbox, err: err}
	}
	return deno, err
}

// createWorkspace makes sure that the workspace can be used.
func (c *command) createWorkspace(flag string, cfg *config.Config, dirs config.Dirs) (path string, err error) {
	if path, err = config.ResolveWorkspace(flag, cfg, dirs); err != nil {
		return "", err
	}
	w, warnings, err := workspace.Open(path)
	if err != nil {
		return "", &exitError{code: exitConfig, err: err}
	}
	for _, text := range warnings {
		c.warn("%s", text)
	}
	return path, w.Close()
}

// setupModel says which model will be used, and how the settings must change for
// that of --model.
func (c *command) setupModel(ctx context.Context, cfg *config.Config, dirs config.Dirs, o setupOptions, r *setupResult) ([]config.Change, error) {
	if o.model == config.Demo {
		r.Settings, r.Model, r.ModelWhy = config.Path(dirs.Tendril), config.Demo, "as you say; it plays only its own prompts"
		return []config.Change{{Path: "model.provider", Value: config.Demo}}, nil
	}
	r.Settings = config.Path(dirs.Tendril)
	choice, _, err := c.choose(ctx, cfg, o.model)
	switch {
	case ctx.Err() != nil, errors.Is(err, config.ErrModelFlag):
		return nil, err
	case err != nil:
		r.Missing = err.Error()
		provider, model, _ := strings.Cut(o.model, "/")
		if choice = config.Endpoint(cfg, provider, c.lookup(ctx)); !choice.IsComplete() {
			return nil, nil
		}
		choice.Model = model
	default:
		r.Model, r.ModelWhy = choice.Name(), choice.Reason
	}
	if o.model == "" {
		return nil, nil
	}
	changes := []config.Change{
		{Path: "model." + choice.Provider + ".modelId", Value: choice.Model},
		{Path: "model.provider", Value: choice.Provider},
	}
	block := cfg.Model.Blocks[choice.Provider]
	switch {
	case choice.Provider == config.Ollama && block.Host == "" && block.BaseURL == "":
		changes = append(changes, config.Change{Path: "model.ollama.host", Value: strings.TrimSuffix(choice.BaseURL, "/v1")})
	case choice.Provider == config.Bedrock && block.Region == "":
		changes = append(changes, config.Change{Path: "model.bedrock.region", Value: choice.Region})
	}
	return changes, nil
}

func (c *command) save(dirs config.Dirs, changes ...config.Change) error {
	if len(changes) == 0 {
		return nil
	}
	warnings, err := config.Set(dirs, changes...)
	for _, w := range warnings {
		c.warn("%s", w)
	}
	return err
}

func (c *command) showSetup(r setupResult) {
	c.print("✓ Deno %s at %s (%s)\n", r.Version, r.Deno, r.Origin)
	if r.Workspace == "" {
		return
	}
	c.print("✓ workspace %s\n", r.Workspace)
	if r.Missing != "" {
		c.print("! %s\n", r.Missing)
		return
	}
	c.print("✓ model %s (%s)\n\nready; try: tendril run \"how many files are in my workspace?\"\n", r.Model, r.ModelWhy)
}
