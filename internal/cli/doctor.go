package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/capability"
	"github.com/tendril-agent/tendril/internal/config"
	"github.com/tendril-agent/tendril/internal/sandbox"
	"github.com/tendril-agent/tendril/internal/terminal"
	"github.com/tendril-agent/tendril/internal/workspace"
)

// check is one line of doctor's report.
type check struct {
	Name  string `json:"name"`
	State string `json:"state"` // ok, warning, failed
	Text  string `json:"text"`
	Hint  string `json:"hint,omitempty"`
	err   error
}

func passed(name, format string, args ...any) check {
	return check{Name: name, State: "ok", Text: fmt.Sprintf(format, args...)}
}

func warned(name, text, hint string) check {
	return check{Name: name, State: "warning", Text: text, Hint: hint}
}

func broken(name string, err error) check {
	return check{Name: name, State: "failed", Text: err.Error(), err: err}
}

func (c *command) doctorCommand() *cobra.Command {
	var workspace string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check everything, and say what to do",
		Long: `Check settings, Deno, the sandbox (a tiny program runs in it), the workspace, its registry, the secrets
and the model. Ollama, or a base URL in the settings, is asked for its list of models; nothing else is sent
to a model provider.

Exit codes: 0 all is well, else that of the first failed check: 1, 3, 4 or 5.`,
		Example: "  tendril doctor\n  tendril doctor --json",
		Args:    takes(0, 0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.doctor(cmd.Context(), workspace) },
	}
	cmd.Flags().StringVar(&workspace, "workspace", "", "`folder` to check (default: from the settings)")
	return cmd
}

func (c *command) doctor(ctx context.Context, workspace string) error {
	checks := c.checks(ctx, workspace)
	var failure error
	for _, k := range checks {
		if k.err != nil && failure == nil {
			failure = &exitError{code: max(exitCode(k.err), exitFailed), err: k.err, silent: true}
		}
	}
	if c.json {
		return errors.Join(writeJSON(c.Out, map[string]any{"ok": failure == nil, "checks": checks}), failure)
	}
	s := style{color: terminal.ColorEnabled(c.Getenv, c.OutTTY)}
	for _, k := range checks {
		mark := map[string]string{"ok": s.ok("v"), "warning": s.warn("!"), "failed": s.fail("x")}[k.State]
		c.printRaw(mark + " ")
		c.print("%-10s %s\n", k.Name, indented(k.Text))
		if k.Hint != "" {
			c.print("  %-10s %s\n", "", indented(k.Hint))
		}
	}
	return failure
}

// indented keeps the lines of a text below each other.
func indented(s string) string { return strings.ReplaceAll(s, "\n", "\n             ") }

func (c *command) checks(ctx context.Context, workspaceFlag string) []check {
	dirs, err := config.Locate(c.Getenv)
	if err != nil {
		return []check{broken("home", err)}
	}
	var checks []check
	if err := config.Prepare(dirs.Tendril); err != nil {
		checks = append(checks, broken("home", err))
	}
	cfg, warnings, err := config.Load(dirs.Tendril)
	if err != nil {
		return append(checks, broken("settings", err))
	}
	path := config.Path(dirs.Tendril)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		path = "none yet, so the defaults hold (" + path + ")"
	}
	checks = append(checks, passed("settings", "%s", path))
	for _, w := range warnings {
		checks = append(checks, warned("settings", w.String(), ""))
	}
	deno, err := c.deno(cfg, dirs)
	if err != nil {
		checks = append(checks, broken("deno", err))
	} else {
		checks = append(checks, passed("deno", "%s at %s (%s)", deno.Version, deno.Path, deno.Origin), c.checkSandbox(ctx, cfg, dirs, deno))
	}
	checks = append(checks, c.checkRegistry(ctx, cfg, dirs, workspaceFlag)...)
	return append(append(checks, c.checkSecrets(ctx)), c.checkModel(ctx, cfg)...)
}

// checkSandbox runs a tiny program that tries what no run may do.
func (c *command) checkSandbox(ctx context.Context, cfg *config.Config, dirs config.Dirs, deno sandbox.Deno) check {
	const name = "sandbox"
	folder, err := os.MkdirTemp("", "tendril-doctor-")
	if err != nil {
		return broken(name, fmt.Errorf("no temporary folder can be made: %w", err))
	}
	defer os.RemoveAll(folder)
	runner := c.runner(cfg, deno, dirs)
	defer runner.Close()
	layer := runner.Layer(ctx)
	started := time.Now()
	result, err := runner.Run(ctx, sandbox.Job{
		Name: "doctor", Workspace: folder, Args: json.RawMessage(`{"n": 41}`),
		Source: []byte(`export default () => {
  try {
    Deno.readTextFileSync("/etc/hosts");
    return "open";
  } catch (error) {
    if (!(error instanceof Deno.errors.NotCapable)) return String(error);
  }
  return args.n + 1;
};`),
	})
	switch {
	case err != nil:
		return broken(name, err)
	case result.Outcome != sandbox.OK:
		return broken(name, &exitError{code: exitSandbox, err: fmt.Errorf("a test program failed: %s", result.Text)})
	case result.Text != "42":
		return broken(name, &exitError{code: exitSandbox, err: fmt.Errorf("a test program got out or did not work: %s", result.Text)})
	}
	ran := fmt.Sprintf("a test program ran in %d ms", time.Since(started).Milliseconds())
	if !layer.On {
		return warned(name, "in force: Deno's permissions and limits; not in force: the operating system layer and the egress proxy, so files and hosts are guarded by Deno alone ("+ran+")",
			"it cannot start here: "+layer.Why+"; to refuse to run without it: tendril config set sandbox.require os")
	}
	return passed(name, "in force: the operating system layer, the egress proxy, Deno's permissions, limits (%s)", ran)
}

func (c *command) checkRegistry(ctx context.Context, cfg *config.Config, dirs config.Dirs, flag string) []check {
	path, err := config.ResolveWorkspace(flag, cfg, dirs)
	if err != nil {
		return []check{broken("workspace", err)}
	}
	checks := []check{passed("workspace", "%s", path)}
	if err := workspace.Check(path); err != nil {
		checks[0] = broken("workspace", &exitError{code: exitConfig, err: err})
	}
	a, err := c.open(ctx, cfg, dirs, openOptions{workspace: flag, inspect: true})
	if err != nil {
		if checks[0].err == nil {
			checks[0] = broken("workspace", err)
		}
		return checks
	}
	defer a.close() // nothing was written
	listing, err := a.registry.List(ctx, "")
	if err != nil {
		return append(checks, broken("registry", err))
	}
	checks = append(checks, passed("registry", "%s", plural(listing.Total, "capability", "capabilities")))
	found, err := a.registry.Examine(ctx)
	if err != nil {
		return append(checks, broken("registry", err))
	}
	for _, f := range found {
		mend := f.Mend
		if f.Fixable {
			mend = "tendril capability doctor --fix"
		}
		if f.Severity != capability.SeverityNote {
			checks = append(checks, warned("registry", subject(f)+f.Problem, mend))
		}
	}
	return checks
}

func (c *command) checkSecrets(ctx context.Context) check {
	const name = "secrets"
	list, err := c.secrets().List(ctx, keyNames()...)
	if err != nil {
		return broken(name, err)
	}
	if len(list) == 0 {
		return passed(name, "none")
	}
	var kept, problems []string
	for _, e := range list {
		kept = append(kept, fmt.Sprintf("%s (%s)", e.Name, placesText(e)))
		if e.Problem != "" {
			problems = append(problems, e.Problem)
		}
	}
	text := strings.Join(kept, ", ")
	if len(problems) > 0 {
		return warned(name, text, strings.Join(slices.Compact(problems), "\n"))
	}
	return passed(name, "%s", text)
}

func (c *command) checkModel(ctx context.Context, cfg *config.Config) []check {
	choice, _, err := c.choose(ctx, cfg, "")
	if err != nil {
		return []check{broken("model", err)}
	}
	model := passed("model", "%s (%s)\n%s", choice.Name(), choice.Reason, factsText(modelFacts(cfg, choice)))
	return append([]check{model}, c.checkEndpoint(ctx, cfg, choice)...)
}

// factsText says how much a model can read, and what it costs.
func factsText(contextWindow int64, price agent.Price) string {
	size, cost := "context not known", "price not known"
	if contextWindow > 0 {
		size = "context " + tokensText(contextWindow)
	}
	if price.Input != nil || price.Output != nil {
		cost = inOutText(price.Input, price.Output) + " for a million tokens of input / output"
	}
	if price.CacheRead != nil {
		cost += ", cache read " + usd(*price.CacheRead)
	}
	return size + "; " + cost
}

func noticeText(n capability.Notice) string {
	if n.Hint == "" {
		return n.Message
	}
	return n.Message + "; " + n.Hint
}
