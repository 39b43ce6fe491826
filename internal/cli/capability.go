package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/user"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/capability"
	"github.com/tendril-agent/tendril/internal/sandbox"
	"github.com/tendril-agent/tendril/internal/terminal"
)

func (c *command) capabilityCommand() *cobra.Command {
	var workspace string
	var explain bool
	cmd := &cobra.Command{
		Use:     "capability",
		Aliases: []string{"cap"},
		Short:   "See, run, accept and approve capabilities, and what they may do",
		Long: `See and run what is kept in the workspace, accept your own edits, and allow what a capability asks for.

Exit codes: 0 done, 1 failed or no such capability, 2 usage, 3 settings, 5 sandbox or Deno missing,
130 interrupted.`,
	}
	cmd.PersistentFlags().StringVar(&workspace, "workspace", "", "`folder` of the registry (default: from the settings)")
	with := func(do func(context.Context, *app, []string) error) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, args []string) error {
			return c.withRegistry(cmd.Context(), workspace, func(a *app) error { return do(cmd.Context(), a, args) })
		}
	}
	list := &cobra.Command{
		Use: "list [query]", Short: "List capabilities, the best for a query first", Args: takes(0, 1),
		Example: "  tendril capability list\n  tendril capability list \"count words\"",
		RunE:    with(c.capabilityList),
	}
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
	accept := &cobra.Command{
		Use: "accept name", Short: "Make your edit of tools/<name>.ts a version, through the gate", Args: takes(1, 1),
		Example: "  tendril capability accept count_words",
		RunE:    with(c.capabilityAccept),
	}
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
	permissions := c.permissionsCommand(with)
	for _, named := range []*cobra.Command{show, run, accept, approve, permissions} {
		named.ValidArgsFunction = c.completeNames(&workspace)
	}
	c.group(cmd).AddCommand(list, show, run, accept, approve, permissions)
	return cmd
}

// withRegistry opens the workspace for one command.
func (c *command) withRegistry(ctx context.Context, workspace string, do func(*app) error) error {
	cfg, dirs, err := c.settings()
	if err != nil {
		return err
	}
	a, err := c.open(ctx, cfg, dirs, openOptions{workspace: workspace, approver: c.approver(), listBytes: everything})
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

func (c *command) capabilityList(ctx context.Context, a *app, args []string) error {
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
	if listing.Total == 0 {
		c.print("no capabilities yet in %s; ask for something: tendril run \"…\"\n", a.workspace.Path())
		return nil
	}
	width := 0
	for _, s := range listing.Capabilities {
		width = max(width, len(s.Name))
	}
	for _, s := range listing.Capabilities {
		c.print("%-*s  %-8s  %s\n", width, terminal.Line(s.Name), s.Status, terminal.Line(s.Capability))
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
	if len(i.Approved) > 0 {
		row("approved", strings.Join(i.Approved, ", "))
	}
	if i.Pending != "" {
		row("waiting", fmt.Sprintf("%s waits for you: tendril capability approve %s", i.Pending, d.Name))
	}
	var versions []string
	for _, v := range i.Versions {
		versions = append(versions, v.Version)
	}
	row("versions", strings.Join(versions, ", "))
	if i.Evidence != nil {
		var steps []string
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

func (c *command) capabilityRun(ctx context.Context, a *app, args []string, explain bool) error {
	arguments := json.RawMessage("{}")
	if len(args) == 2 {
		var err error
		if arguments, err = c.arguments(ctx, args[1]); err != nil {
			return err
		}
		if !json.Valid(arguments) {
			return usageError(`the arguments are not valid JSON: %s; for example: tendril capability run %s '{"n": 1}'`, clip(string(arguments), 100), args[0])
		}
	}
	if err := a.ready(ctx); err != nil {
		return err
	}
	status := newStatusLine(c.Err, false)
	r := newRenderer(c.Out, status, c.style())
	executor := a.executor()
	executor.Explain = explain
	x, err := executor.Execute(ctx, args[0], arguments, "", func(p agent.Progress) {
		if p.Step != "" && p.State != "running" {
			r.progress(p)
		}
	})
	if err != nil {
		return err
	}
	for _, n := range x.Notes {
		if !r.told(n) {
			c.warn("%s", n)
		}
	}
	if c.json {
		if err := writeJSON(c.Out, x); err != nil {
			return err
		}
	} else {
		c.showRun(x)
		c.explain(x)
	}
	switch x.Outcome {
	case sandbox.OK:
		return nil
	case sandbox.Cancelled:
		return &exitError{code: exitInterrupted, err: errSilent, silent: true}
	}
	return &exitError{code: exitFailed, err: errSilent, silent: true}
}

// arguments are those of the command line, or stdin for "-".
func (c *command) arguments(ctx context.Context, given string) (json.RawMessage, error) {
	if given != "-" {
		return json.RawMessage(given), nil
	}
	data, err := readIn(ctx, c.In, maxPromptBytes)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the arguments cannot be read from stdin: %w", err)
	case len(data) > maxPromptBytes:
		return nil, usageError("the arguments on stdin are longer than %d MiB", maxPromptBytes>>20)
	}
	return data, nil
}

var errSilent = errors.New("already told")

// showRun prints the result on stdout, and what else was printed on stderr.
func (c *command) showRun(x *agent.Execution) {
	if x.Outcome != sandbox.OK {
		fmt.Fprintf(c.Err, "%s\n", terminal.Clean(strings.TrimRight(x.Text, "\n")))
		return
	}
	if x.Value != nil && x.Stdout != "" {
		fmt.Fprintf(c.Err, "%s\n", terminal.Clean(strings.TrimRight(x.Stdout, "\n")))
	}
	if x.Stderr != "" {
		fmt.Fprintf(c.Err, "%s\n", terminal.Clean(strings.TrimRight(x.Stderr, "\n")))
	}
	c.print("%s\n", strings.TrimRight(x.Text, "\n"))
}

func (c *command) capabilityAccept(ctx context.Context, a *app, args []string) error {
	admission, err := a.registry.Accept(ctx, args[0], capability.Acceptance{By: person()}, nil)
	if errors.Is(err, capability.ErrNothingToDo) {
		return c.result(map[string]any{"name": args[0], "changed": false}, fmt.Sprintf("tools/%s.ts is the active version already", args[0]))
	}
	if err != nil {
		return err
	}
	return c.admitted(admission, "accepted")
}

// person says who decides here.
func person() capability.Provenance {
	by := capability.Provenance{By: capability.ByHuman}
	if u, err := user.Current(); err == nil {
		by.Person = u.Username
	}
	return by
}

// configuredWorkspace is what a bare --workspace of approve stands for.
const configuredWorkspace = "configured"

func (c *command) capabilityApprove(cmd *cobra.Command, args []string) error {
	flag := cmd.Flags().Lookup("workspace")
	folder := flag.Value.String()
	if folder == configuredWorkspace {
		folder = ""
	}
	if n := len(args); folder == "" && flag.Changed && n > 0 && strings.ContainsAny(args[n-1], `/\.~`) {
		folder, args = args[n-1], args[:n-1] // "--workspace folder": no name holds one of these
	}
	switch {
	case len(args) == 0 && !flag.Changed:
		return usageError("name a capability, or use --workspace for all of an older workspace; see: tendril capability approve --help")
	case len(args) > 1:
		return usageError("one name at a time; see: tendril capability approve --help")
	}
	return c.withRegistry(cmd.Context(), folder, func(a *app) error {
		if len(args) == 0 {
			return c.approveWorkspace(cmd.Context(), a)
		}
		return c.approveOne(cmd.Context(), a, args[0])
	})
}

func (c *command) approveWorkspace(ctx context.Context, a *app) error {
	if err := a.registry.ApproveWorkspace(ctx); err != nil && !errors.Is(err, capability.ErrNothingToDo) {
		return err
	}
	return c.result(map[string]any{"approved": a.workspace.Path()}, "approved network access for the capabilities of "+a.workspace.Path()+" that declare no hosts")
}

func (c *command) approveOne(ctx context.Context, a *app, name string) error {
	admission, err := a.registry.Approve(ctx, name)
	if errors.Is(err, capability.ErrNothingToDo) {
		return c.result(map[string]any{"name": name, "changed": false}, fmt.Sprintf("%s waits for nothing", name))
	}
	if err != nil {
		return err
	}
	admission.Warnings = nil // they were about the approval that is now given
	return c.admitted(admission, "approved")
}

func (c *command) admitted(a *capability.Admission, what string) error {
	for _, w := range a.Warnings {
		c.warn("%s", w)
	}
	return c.result(a, fmt.Sprintf("%s %s %s (%s); %s", what, a.Name, a.Version, a.Status, a.Grants))
}
