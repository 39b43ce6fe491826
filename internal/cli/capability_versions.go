package cli

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/capability"
	"github.com/tendril-agent/tendril/internal/terminal"
)

// withApp makes the body of a command of a function that gets the open workspace.
type withApp func(func(context.Context, *app, []string) error) func(*cobra.Command, []string) error

// versionCommands go back and forth between versions, and put capabilities away.
func (c *command) versionCommands(with withApp) []*cobra.Command {
	const name = "count_words"
	var override bool
	accept := &cobra.Command{
		Use: "accept name", Short: "Make your edit of tools/<name>.ts a version, through the gate", Args: takes(1, 1),
		Long: `Make what you changed in tools/<name>.ts, or in its entry in tools/index.json, the active version. It passes
the gate first. With --override it may fail the type check; imports and permissions are never overridden.`,
		Example: "  tendril capability diff " + name + "\n  tendril capability accept " + name,
		RunE: with(func(ctx context.Context, a *app, args []string) error {
			return c.capabilityAccept(ctx, a, args[0], override)
		}),
	}
	accept.Flags().BoolVar(&override, "override", false, "accept it although its type check fails")
	return []*cobra.Command{
		{
			Use: "register file.ts [definition.json]", Short: "Register a capability that you have as files, through the gate", Args: takes(1, 2),
			Long: `Register the TypeScript module in FILE.TS with the definition beside it: the JSON object that registerCapability
takes, in a file of the same name that ends in .json. A capability of that name gets a new version.`,
			Example: "  tendril capability register examples/capabilities/summarise_csv.ts", RunE: with(c.capabilityRegister),
		},
		{
			Use: "history name", Short: "List the versions of a capability: who, when, how often they ran", Args: takes(1, 1),
			Example: "  tendril capability history " + name, RunE: with(c.capabilityHistory),
		},
		{
			Use: "diff name [from] [to]", Short: "Compare two versions, or your edit with what runs", Args: takes(1, 3),
			Long: `Compare two versions. FROM and TO are a number (1.0.0), a number with the beginning of a hash (1.0.0-3fa9), the
beginning of a hash, "active", "pending" or "file" (tools/<name>.ts and its entry). Without them: the active version
with the one that waits for you, else with your edit of the file, else the version before with the active one.`,
			Example: "  tendril capability diff " + name + "\n  tendril capability diff " + name + " 1.0.0\n  tendril capability diff " + name + " 1.0.0 file",
			RunE:    with(c.capabilityDiff),
		},
		accept,
		{
			Use: "rollback name [version]", Short: "Go back to an earlier version, under a new number", Args: takes(1, 2),
			Example: "  tendril capability rollback " + name + "\n  tendril capability rollback " + name + " 1.0.0", RunE: with(c.capabilityRollback),
		},
		{
			Use: "update name", Short: "Take the newest dependencies that its imports allow, through the gate", Args: takes(1, 1),
			Long: `Resolve the npm:, jsr: and https: imports of a capability anew, lock what was found, and make that a version. It
passes the gate first; the version before stays, to go back to with rollback.`,
			Example: "  tendril capability update " + name, RunE: with(c.capabilityUpdate),
		},
		{
			Use: "restore name", Short: "Bring back an archived or deleted capability, or its file as it was", Args: takes(1, 1),
			Long: `Bring back a capability that was archived or deleted. Of one that is active, write tools/<name>.ts and its entry as
the active version has them; what you had written there is kept as a version.`,
			Example: "  tendril capability restore " + name, RunE: with(c.capabilityRestore),
		},
		{
			Use: "archive name...", Short: "Put capabilities away: kept, but neither listed nor run", Args: takes(1, 1000),
			Example: "  tendril capability archive " + name, RunE: with(c.capabilityArchive),
		},
		{
			Use: "delete name...", Short: "Remove capabilities; their versions stay, and restore brings them back", Args: takes(1, 1000),
			Example: "  tendril capability delete " + name, RunE: with(c.capabilityDelete),
		},
	}
}

// person says who decides here.
func person() capability.Provenance {
	by := capability.Provenance{By: capability.ByHuman}
	if u, err := user.Current(); err == nil {
		by.Person = u.Username
	}
	return by
}

// gateSteps shows the steps of the gate on stderr as they happen.
func (c *command) gateSteps() func(capability.Step) {
	r := newRenderer(c.Out, newStatusLine(c.Err, false), c.style())
	return func(s capability.Step) {
		if s.State != capability.StepRunning {
			r.progress(agent.Progress{Step: s.Name, State: string(s.State), Note: s.Note, MS: s.Duration.Milliseconds()})
		}
	}
}

func (c *command) capabilityHistory(ctx context.Context, a *app, args []string) error {
	versions, err := a.registry.History(ctx, args[0])
	if err != nil {
		return err
	}
	if c.json {
		return writeJSON(c.Out, map[string]any{"name": args[0], "versions": versions})
	}
	now := time.Now()
	number, state := 0, 0
	for _, v := range versions {
		number, state = max(number, len(v.Version)), max(state, len(v.State))
	}
	for _, v := range versions {
		hash := v.Hash[:min(8, len(v.Hash))]
		when := ""
		if !v.Created.IsZero() {
			when = ago(now, v.Created)
		}
		c.print("%-*s  %-8s  %-*s  %-10s  %s\n", number, v.Version, hash, state, v.State, when, terminal.Line(story(v)))
	}
	return nil
}

// story tells of a version in a line.
func story(v capability.VersionInfo) string {
	var parts []string
	switch {
	case v.Person != "":
		parts = append(parts, "by "+v.Person)
	case v.Model != "":
		parts = append(parts, "by "+v.Model)
	case v.CreatedBy == capability.ByHuman:
		parts = append(parts, "by a person")
	case v.CreatedBy != "":
		parts = append(parts, "by a "+v.CreatedBy)
	}
	switch u := v.Usage; {
	case v.State == capability.VersionDeleted || v.State == capability.VersionUnreadable:
	case u.Runs > 0:
		parts = append(parts, fmt.Sprintf("%d of %s with success", u.Succeeded, plural(u.Runs, "run", "runs")))
	case v.Admitted.IsZero():
		parts = append(parts, "not checked on this machine")
	default:
		parts = append(parts, "never ran")
	}
	if v.Note != "" {
		parts = append(parts, v.Note)
	}
	if v.Request != "" {
		parts = append(parts, fmt.Sprintf("for %q", clip(v.Request, 60)))
	}
	return strings.Join(parts, "; ")
}

func (c *command) capabilityDiff(ctx context.Context, a *app, args []string) error {
	var sides [2]string
	copy(sides[:], args[1:])
	d, err := a.registry.Diff(ctx, args[0], sides[0], sides[1])
	if errors.Is(err, capability.ErrNothingToDo) {
		return c.result(map[string]any{"name": args[0], "changed": false}, args[0]+" has one version, and no change of it")
	}
	if err != nil {
		return err
	}
	if c.json {
		return writeJSON(c.Out, d)
	}
	if d.Same() {
		c.print("no difference between %s and %s\n", d.From.Label, d.To.Label)
		return nil
	}
	s := style{color: terminal.ColorEnabled(c.Getenv, c.OutTTY)}
	c.printRaw(s.diff("definition", d.Definition) + s.diff("dependencies", d.Dependencies) + s.diff("source", d.Source))
	return nil
}

// diff lays a unified diff out under a title; nothing for none.
func (s style) diff(title, text string) string {
	if text == "" {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", s.paint("1", title))
	for line := range strings.Lines(text) {
		line = terminal.Clean(strings.TrimRight(line, "\n"))
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "@@"):
			line = s.paint("2", line)
		case strings.HasPrefix(line, "+"):
			line = s.paint("32", line)
		case strings.HasPrefix(line, "-"):
			line = s.paint("31", line)
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

func (c *command) capabilityAccept(ctx context.Context, a *app, name string, override bool) error {
	admission, err := a.registry.Accept(ctx, name, capability.Acceptance{By: person(), Override: override}, c.gateSteps())
	if errors.Is(err, capability.ErrNothingToDo) {
		return c.result(map[string]any{"name": name, "changed": false}, fmt.Sprintf("tools/%s.ts is the active version already", name))
	}
	var refusal *capability.Refusal
	if errors.As(err, &refusal) && refusal.Step == capability.StepTypes {
		return fmt.Errorf("%w; or take it as it is with: tendril capability accept %s --override", err, name)
	}
	if err != nil {
		return err
	}
	return c.admitted(admission, "accepted")
}

func (c *command) capabilityRollback(ctx context.Context, a *app, args []string) error {
	if len(args) == 2 && args[1] == "" {
		return usageError("the version is empty; leave it out to go back by one, or see: tendril capability history %s", args[0])
	}
	admission, err := a.registry.Rollback(ctx, args[0], strings.Join(args[1:], ""), person(), c.gateSteps())
	if errors.Is(err, capability.ErrNothingToDo) {
		return c.result(map[string]any{"name": args[0], "changed": false}, err.Error())
	}
	if err != nil {
		return err
	}
	return c.admitted(admission, "rolled back:")
}

func (c *command) capabilityUpdate(ctx context.Context, a *app, args []string) error {
	admission, err := a.registry.Update(ctx, args[0], person(), c.gateSteps())
	if errors.Is(err, capability.ErrNothingToDo) {
		return c.result(map[string]any{"name": args[0], "changed": false}, err.Error())
	}
	if err != nil {
		return err
	}
	return c.admitted(admission, "updated:")
}

func (c *command) capabilityRestore(ctx context.Context, a *app, args []string) error {
	done, err := a.registry.Restore(ctx, args[0], person(), c.gateSteps())
	if errors.Is(err, capability.ErrNothingToDo) {
		return c.result(map[string]any{"name": args[0], "changed": false}, args[0]+" is as it was: there is nothing to restore")
	}
	if err != nil {
		return err
	}
	for _, w := range done.Warnings {
		c.warn("%s", w)
	}
	text := fmt.Sprintf("restored %s %s (%s)", done.Name, done.Version, done.Status)
	if done.What == capability.RestoredFile {
		text = fmt.Sprintf("restored tools/%s.ts and its entry, as version %s has them", done.Name, done.Version)
	}
	if done.Kept != "" {
		text += fmt.Sprintf("; what was there is kept as version %s", done.Kept)
	}
	return c.result(done, text)
}

func (c *command) capabilityArchive(ctx context.Context, a *app, args []string) error {
	return c.each(args, "archived", "is archived already", func(name string) error { return a.registry.Archive(ctx, name) })
}

func (c *command) capabilityDelete(ctx context.Context, a *app, args []string) error {
	return c.each(args, "deleted", "is deleted already", func(name string) error { return a.registry.Delete(ctx, name, person()) })
}

// each does something with each of some capabilities, and says how it is undone.
func (c *command) each(names []string, done, already string, do func(string) error) error {
	changed := []string{}
	for _, name := range names {
		err := do(name)
		switch {
		case errors.Is(err, capability.ErrNothingToDo):
			c.warn("%s %s", name, already)
		case err != nil:
			return err
		default:
			changed = append(changed, name)
		}
	}
	if c.json {
		return writeJSON(c.Out, map[string]any{done: changed})
	}
	for _, name := range changed {
		c.print("%s %s; to have it back: tendril capability restore %s\n", done, name, name)
	}
	return nil
}
