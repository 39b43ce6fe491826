package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tendril-agent/tendril/internal/capability"
	"github.com/tendril-agent/tendril/internal/terminal"
)

func (c *command) capabilityCommand() *cobra.Command {
	var workspace string
	var explain, archived bool
	cmd := &cobra.Command{
		Use:     "capability",
		Aliases: []string{"cap"},
		Short:   "See, run and approve capabilities, their versions, and the health of the registry",
		Long: `See and run what is kept in the workspace, accept your own edits, go back to earlier versions, and allow what a
capability asks for.

Exit codes: 0 done, 1 failed or no such capability, 2 usage, 3 settings, 5 sandbox or Deno missing,
130 interrupted.`,
	}
	cmd.PersistentFlags().StringVar(&workspace, "workspace", "", "`folder` of the registry (default: from the settings)")
	var with withApp = func(do func(context.Context, *app, []string) error) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, args []string) error {
			return c.withRegistry(cmd.Context(), workspace, func(a *app) error { return do(cmd.Context(), a, args) })
		}
	}
	list := &cobra.Command{
		Use: "list [query]", Short: "List capabilities, the best for a query first", Args: takes(0, 1),
		Example: "  tendril capability list\n  tendril capability list \"count words\"",
		RunE: with(func(ctx context.Context, a *app, args []string) error {
			return c.capabilityList(ctx, a, args, archived)
		}),
	}
	list.Flags().BoolVar(&archived, "archived", false, "list those that are archived or deleted")
	show := &cobra.Command{
		Use: "show name", Short: "Show definition, permissions, versions, evidence and source", Args: takes(1, 1),
		Example: "  tendril capability show count_words",
		RunE:    with(c.capabilityShow),
	}
	run := &cobra.Command{
		Use: "run name [arguments]", Short: "Run a capability with a JSON object of arguments; - reads it from stdin", Args: takes(1, 2),
		Example: "  tendril capability run count_words\n  tendril capability run count_words '{\"extensions\": [\"md\"]}'\n  tendril capability run count_words --explain",
		RunE:    with(func(ctx context.Context, a *app, args []string) error { return c.capabilityRun(ctx, a, args, explain) }),
	}
	run.Flags().BoolVar(&explain, "explain", false, "tell on stderr what the run might do, and what it did")
	approve := &cobra.Command{
		Use: "approve name", Short: "Allow what a capability asks for", Args: takes(0, 2),
		Long: `Allow what the waiting version of a capability asks for. With --workspace and no name: allow network
access to all capabilities in the format of the original Tendril, which declare no hosts.`,
		Example: "  tendril capability approve fetch_news\n  tendril capability approve --workspace",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.capabilityApprove(cmd, args)
		},
	}
	approve.Flags().String("workspace", "", "`=folder` of the registry; without a name: approve the whole workspace")
	approve.Flags().Lookup("workspace").NoOptDefVal = configuredWorkspace
	commands := slices.Concat([]*cobra.Command{list, show, run, approve, c.permissionsCommand(with)},
		c.versionCommands(with), c.healthCommands(&workspace, with))
	for _, named := range commands {
		if strings.Contains(named.Use, "name") {
			named.ValidArgsFunction = c.completeNames(&workspace)
		}
	}
	c.group(cmd).AddCommand(commands...)
	return cmd
}

// withRegistry opens the workspace for one command.
func (c *command) withRegistry(ctx context.Context, workspace string, do func(*app) error) error {
	return c.withOpen(ctx, openOptions{workspace: workspace, approver: c.approver(), listBytes: everything}, do)
}

// inspectRegistry is withRegistry that leaves everything as it is found.
func (c *command) inspectRegistry(ctx context.Context, workspace string, do func(*app) error) error {
	return c.withOpen(ctx, openOptions{workspace: workspace, inspect: true}, do)
}

func (c *command) withOpen(ctx context.Context, o openOptions, do func(*app) error) error {
	cfg, dirs, err := c.settings()
	if err != nil {
		return err
	}
	a, err := c.open(ctx, cfg, dirs, o)
	if err != nil {
		return err
	}
	return errors.Join(do(a), a.close())
}

// completeNames completes names of capabilities.
func (c *command) completeNames(workspace *string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		quiet := *c
		quiet.Err = io.Discard
		_ = quiet.withRegistry(cmd.Context(), *workspace, func(a *app) error { // no names is a fine answer
			listing, err := a.registry.List(cmd.Context(), "")
			for _, s := range listing.Capabilities {
				names = append(names, s.Name)
			}
			return err
		})
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func (c *command) capabilityList(ctx context.Context, a *app, args []string, archived bool) error {
	if archived {
		return c.archivedList(ctx, a)
	}
	listing, err := a.registry.List(ctx, strings.Join(args, " "))
	if err != nil {
		return err
	}
	notes, err := a.registry.Drift(ctx)
	if err != nil {
		return err
	}
	if c.json {
		return writeJSON(c.Out, struct {
			capability.Listing
			Notes []string `json:"notes,omitempty"`
		}{listing, notes})
	}
	defer func() {
		for _, n := range notes {
			c.warn("%s", n)
		}
	}()
	if archived, err := a.registry.Archived(ctx); err == nil && len(archived) > 0 && listing.Total == 0 {
		c.print("all that is here is archived or deleted; see: tendril capability list --archived\n")
		return nil
	}
	if listing.Total == 0 {
		c.print("no capabilities yet in %s; ask for something: tendril run \"…\"\n", a.workspace.Path())
		return nil
	}
	c.summaries(listing.Capabilities)
	return nil
}

func (c *command) summaries(list []capability.Summary) {
	width := 0
	for _, s := range list {
		width = max(width, len(s.Name))
	}
	for _, s := range list {
		c.print("%-*s  %-8s  %s\n", width, terminal.Line(s.Name), s.Status, terminal.Line(s.Capability))
	}
}

func (c *command) archivedList(ctx context.Context, a *app) error {
	archived, err := a.registry.Archived(ctx)
	if err != nil {
		return err
	}
	if c.json {
		return writeJSON(c.Out, map[string]any{"capabilities": archived})
	}
	c.summaries(archived)
	if len(archived) == 0 {
		c.print("none is archived or deleted\n")
	}
	return nil
}

func (c *command) capabilityShow(ctx context.Context, a *app, args []string) error {
	info, err := a.registry.Show(ctx, args[0])
	if err != nil {
		return err
	}
	if c.json {
		return writeJSON(c.Out, info)
	}
	c.print("%s", infoText(info))
	return nil
}

// infoText lays an Info out for a person.
func infoText(i *capability.Info) string {
	var b strings.Builder
	row := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%-13s %s\n", name, strings.ReplaceAll(terminal.Clean(text), "\n", "\n"+strings.Repeat(" ", 14)))
		}
	}
	d := i.Definition
	fmt.Fprintf(&b, "%s %s (%s)\n", terminal.Line(d.Name), i.Version, i.Status)
	row("does", d.Capability)
	row("when", strings.Join(d.Triggers, "\n"))
	row("not when", strings.Join(d.Suppression, "\n"))
	row("parameters", string(d.Parameters))
	row("permissions", i.Grants.String())
	var locked []string
	for _, d := range i.Dependencies {
		line := d.String() + "  " + d.Integrity
		if !d.Direct && d.Kind != "https" {
			line += "  (needed by others)"
		}
		locked = append(locked, line)
	}
	row("dependencies", strings.Join(locked, "\n"))
	if len(i.Approved) > 0 {
		row("approved", strings.Join(i.Approved, ", "))
	}
	row("secrets", strings.Join(i.Secrets, "\n"))
	if i.Pending != "" {
		row("waiting", fmt.Sprintf("%s waits for you: tendril capability approve %s", i.Pending, d.Name))
	}
	var versions []string
	for _, v := range i.Versions {
		versions = append(versions, strings.TrimSpace(v.Version+" "+v.State))
	}
	row("versions", strings.Join(versions, ", "))
	if i.Evidence != nil {
		var steps []string
		if i.Evidence.Overridden {
			steps = append(steps, "taken by a person despite its type check")
		}
		for _, s := range i.Evidence.Steps {
			steps = append(steps, fmt.Sprintf("%s %s (%s)", s.Name, s.State, duration(s.Duration.Milliseconds())))
		}
		row("gate", strings.Join(steps, ", "))
	} else {
		row("gate", "this machine has not checked it yet; that happens before its first run")
	}
	if i.Usage.Runs > 0 {
		row("runs", fmt.Sprintf("%d, %d with success, last %s", i.Usage.Runs, i.Usage.Succeeded, i.Usage.Last))
	}
	row("note", strings.Join(i.Notes, "\n"))
	fmt.Fprintf(&b, "\n%s\n", strings.TrimRight(i.Source, "\n"))
	return b.String()
}

func (c *command) admitted(a *capability.Admission, what string) error {
	for _, w := range a.Warnings {
		c.warn("%s", w)
	}
	return c.result(a, fmt.Sprintf("%s %s %s (%s); %s", what, a.Name, a.Version, a.Status, a.Grants))
}
