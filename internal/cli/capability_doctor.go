package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tendril-agent/tendril/internal/capability"
	"github.com/tendril-agent/tendril/internal/terminal"
)

// healthCommands look at a registry and mend it.
func (c *command) healthCommands(workspace *string, with withApp) []*cobra.Command {
	var fix bool
	doctor := &cobra.Command{
		Use: "doctor", Short: "Read the whole registry, say what is wrong and how it is mended", Args: takes(0, 0),
		Long: `Read everything that is kept in tools/: the index, versions and their hashes, edits, conflicts, what a crash has
left. Nothing is changed without --fix, and --fix decides nothing that is yours to decide.

Exit codes: 0 all is well, 1 something is wrong (notes do not count).`,
		Example: "  tendril capability doctor\n  tendril capability doctor --fix",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if fix {
				return c.withRegistry(cmd.Context(), *workspace, func(a *app) error { return c.registryFix(cmd.Context(), a) })
			}
			return c.inspectRegistry(cmd.Context(), *workspace, func(a *app) error { return c.registryExamine(cmd.Context(), a) })
		},
	}
	doctor.Flags().BoolVar(&fix, "fix", false, "mend what needs no decision")
	var ours, theirs bool
	resolve := &cobra.Command{
		Use: "resolve [name=ours|name=theirs ...]", Short: "End a conflict that git left in tools/index.json",
		Long: `End a conflict that git left in tools/index.json. Capabilities that were added on one side, and a version that was
made from the other side's, are taken together. Where both sides changed the same one you choose: ours is the side
above ("<<<<<<<"), theirs the one below (">>>>>>>"). The version that is not taken is kept.`,
		Example: "  tendril capability resolve\n  tendril capability resolve count_words=theirs\n  tendril capability resolve --ours",
	}
	resolve.Flags().BoolVar(&ours, "ours", false, "take the upper side of all")
	resolve.Flags().BoolVar(&theirs, "theirs", false, "take the lower side of all")
	resolve.MarkFlagsMutuallyExclusive("ours", "theirs")
	resolve.RunE = with(func(ctx context.Context, a *app, args []string) error {
		otherwise := capability.Choice("")
		switch {
		case ours:
			otherwise = capability.Ours
		case theirs:
			otherwise = capability.Theirs
		}
		return c.capabilityResolve(ctx, a, args, otherwise)
	})
	return []*cobra.Command{
		doctor, resolve,
		{
			Use: "verify [name...]", Short: "Take capabilities through the gate again, and compare their hashes", Args: takes(0, 1000),
			Long: `Take the active versions of all capabilities, or of those that are named, through the gate again, and compare what is
kept of them with its hashes. What the gate refuses now does not run any more. What a person took despite its type
check passes.

Exit codes: 0 all passed, 1 one did not, 5 Deno missing.`,
			Example: "  tendril capability verify\n  tendril capability verify count_words", RunE: with(c.capabilityVerify),
		},
	}
}

func (c *command) registryExamine(ctx context.Context, a *app) error {
	found, err := a.registry.Examine(ctx)
	if err != nil {
		return err
	}
	if c.json {
		if err := writeJSON(c.Out, map[string]any{"findings": found}); err != nil {
			return err
		}
		return unwell(found)
	}
	fixable := 0
	for _, f := range found {
		if f.Fixable {
			fixable++
		}
	}
	c.findings(found)
	switch {
	case len(found) == 0:
		c.print("nothing is wrong\n")
	case fixable > 0:
		c.print("%s mended by: tendril capability doctor --fix\n", plural(fixable, "of these is", "of these are"))
	}
	return unwell(found)
}

func (c *command) registryFix(ctx context.Context, a *app) error {
	opened := a.registry.Notices() // what opening it has mended
	mended, left, failed := a.registry.Fix(ctx)
	if c.json && failed == nil {
		if err := writeJSON(c.Out, map[string]any{"opened": opened, "mended": mended, "left": left}); err != nil {
			return err
		}
		return unwell(left)
	}
	if c.json {
		return failed
	}
	for _, f := range mended {
		c.print("%s %s\n", c.style().ok("✓"), terminal.Line(subject(f)+f.Problem+": "+f.Mend))
	}
	c.findings(left)
	switch {
	case failed != nil:
		return failed
	case len(left)+len(mended)+len(opened) == 0:
		c.print("nothing is wrong\n")
	}
	return unwell(left)
}

func subject(f capability.Finding) string {
	if f.Name == "" {
		return ""
	}
	return f.Name + ": "
}

func (c *command) findings(found []capability.Finding) {
	s := style{color: terminal.ColorEnabled(c.Getenv, c.OutTTY)}
	signs := map[capability.Severity]string{capability.SeverityError: s.fail("✗"), capability.SeverityWarning: s.warn("!"), capability.SeverityNote: s.dim("·")}
	for _, f := range found {
		c.printRaw(signs[f.Severity] + " " + terminal.Line(subject(f)+f.Problem) + "\n    " + s.dim(terminal.Line("→ "+f.Mend)) + "\n")
	}
}

// unwell is the exit code for what is wrong.
func unwell(found []capability.Finding) error {
	if slices.ContainsFunc(found, func(f capability.Finding) bool { return f.Severity != capability.SeverityNote }) {
		return &exitError{code: exitFailed, err: errSilent, silent: true}
	}
	return nil
}

func (c *command) capabilityVerify(ctx context.Context, a *app, args []string) error {
	if err := a.ready(ctx); err != nil {
		return err
	}
	verdicts, err := a.registry.Verify(ctx, args, nil)
	if err != nil {
		return err
	}
	passed := true
	for _, v := range verdicts {
		passed = passed && v.Passed && len(v.Damaged) == 0
		if c.json {
			continue
		}
		sign, text := c.style().ok("✓"), "passed"
		switch {
		case !v.Passed:
			sign, text = c.style().fail("✗"), v.Problem
		case v.Evidence.Overridden:
			sign, text = c.style().warn("!"), "taken by a person despite its type check; "+strings.Join(v.Evidence.Warnings(), "; ")
		case len(v.Evidence.Warnings()) > 0:
			sign, text = c.style().warn("!"), strings.Join(v.Evidence.Warnings(), "; ")
		}
		c.print("%s %s %s: %s\n", sign, terminal.Line(v.Name), v.Version, text)
		for _, d := range v.Damaged {
			c.print("    %s\n", d)
		}
	}
	if c.json {
		if err := writeJSON(c.Out, map[string]any{"verdicts": verdicts}); err != nil {
			return err
		}
	} else if len(verdicts) == 0 {
		c.print("no capabilities yet\n")
	}
	if !passed {
		return &exitError{code: exitFailed, err: errSilent, silent: true}
	}
	return nil
}

func (c *command) capabilityResolve(ctx context.Context, a *app, args []string, otherwise capability.Choice) error {
	choices := map[string]capability.Choice{}
	for _, arg := range args {
		name, choice, _ := strings.Cut(arg, "=")
		if choice != string(capability.Ours) && choice != string(capability.Theirs) {
			return usageError("%q: write NAME=ours or NAME=theirs", clip(arg, 60))
		}
		choices[name] = capability.Choice(choice)
	}
	settled, err := a.registry.Settle(ctx, choices, otherwise)
	if errors.Is(err, capability.ErrNothingToDo) {
		return c.result(map[string]any{"changed": false}, "tools/index.json has no conflict")
	}
	if err != nil {
		return err
	}
	if c.json {
		return writeJSON(c.Out, map[string]any{"settled": settled})
	}
	for _, name := range slices.Sorted(maps.Keys(settled)) {
		state := "is " + settled[name]
		if settled[name] == "" {
			state = "is deleted"
		}
		c.print("%s\n", fmt.Sprintf("%s %s", name, state))
	}
	c.print("the conflict is resolved; what came from elsewhere is checked before it first runs, or now with: tendril capability verify\n")
	return nil
}
