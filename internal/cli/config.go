package cli

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tendril-agent/tendril/internal/config"
)

func (c *command) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Read and change the settings",
		Long: `Read and change the settings. A change is checked before it is saved; unknown fields are kept. A setting
that is taken away (unset, or the value null) has its default again. Keys are never settings: see tendril secret.

Exit codes: 0 done, 2 usage, 3 a wrong value or unusable settings.`,
	}
	set := &cobra.Command{
		Use:   "set path value",
		Short: "Change a setting",
		Example: `  tendril config set agent.maxTurns 50
  tendril config set model.anthropic.modelId claude-sonnet-4-6
  tendril config set model.ollama.contextWindow 32768
  tendril config set model.prices.gpt-5.1 '{"input": 1.25, "output": 10, "cacheRead": 0.125}'
  tendril config set sandbox.allowedDomains '["example.com"]'`,
		Args: takes(2, 2),
		RunE: func(_ *cobra.Command, args []string) error { return c.configSet(args[0], args[1]) },
	}
	set.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return flagError(cmd, fmt.Errorf("%w; a value that begins with - goes behind --, as in: tendril config set PATH -- -5", err))
	})
	c.group(cmd).AddCommand(
		&cobra.Command{
			Use:     "get [path]",
			Short:   "Print a setting, a section, or all",
			Example: "  tendril config get\n  tendril config get agent.maxTurns",
			Args:    takes(0, 1),
			RunE:    func(_ *cobra.Command, args []string) error { return c.configGet(args) },
		},
		set,
		&cobra.Command{
			Use:     "unset path",
			Short:   "Take a setting away, so that its default holds",
			Example: "  tendril config unset agent.budget.turnUSD\n  tendril config unset model",
			Args:    takes(1, 1),
			RunE:    func(_ *cobra.Command, args []string) error { return c.configUnset(args[0]) },
		},
		&cobra.Command{
			Use:   "path",
			Short: "Print where the settings are",
			Args:  takes(0, 0),
			RunE:  func(*cobra.Command, []string) error { return c.configPath() },
		},
	)
	return cmd
}

// tendrilFolder is the folder of the settings, which must be known here.
func (c *command) tendrilFolder() (string, error) {
	dirs, err := config.Locate(c.Getenv)
	return dirs.Tendril, err
}

func (c *command) configGet(args []string) error {
	home, err := c.tendrilFolder()
	if err != nil {
		return err
	}
	path := ""
	if len(args) == 1 {
		path = args[0]
	}
	value, err := config.Get(home, path)
	if err != nil {
		return err
	}
	if c.json {
		return writeJSON(c.Out, value)
	}
	text := string(value)
	var plain string
	if json.Unmarshal(value, &plain) == nil {
		text = plain
	}
	c.print("%s\n", text)
	return nil
}

func (c *command) configSet(path, value string) error {
	dirs, err := config.Locate(c.Getenv)
	if err != nil {
		return err
	}
	warnings, err := config.Set(dirs, config.Change{Path: path, Value: value})
	if err != nil {
		return err
	}
	for _, w := range warnings {
		c.warn("%s", w)
	}
	return c.result(map[string]any{"path": path, "saved": true}, fmt.Sprintf("%s is set", path))
}

func (c *command) configUnset(path string) error {
	dirs, err := config.Locate(c.Getenv)
	if err != nil {
		return err
	}
	warnings, err := config.Set(dirs, config.Change{Path: path, Value: "null"})
	if err != nil {
		return err
	}
	for _, w := range warnings {
		c.warn("%s", w)
	}
	return c.result(map[string]any{"path": path, "unset": true}, fmt.Sprintf("%s has its default", path))
}

func (c *command) configPath() error {
	home, err := c.tendrilFolder()
	if err != nil {
		return err
	}
	if home == "" {
		return &exitError{code: exitConfig, err: errors.New("there is no folder for settings; set HOME or TENDRIL_HOME")}
	}
	return c.result(map[string]string{"path": config.Path(home)}, config.Path(home))
}
