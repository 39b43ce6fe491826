package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// group makes cmd one that only holds others: bare it shows its help.
func (c *command) group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if c.json {
			return usageError("name one of its commands: %s; see: %s --help", strings.Join(commandNames(cmd), ", "), cmd.CommandPath())
		}
		return cmd.Help()
	}
	return cmd
}

func commandNames(cmd *cobra.Command) []string {
	var names []string
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() {
			names = append(names, child.Name())
		}
	}
	return names
}

func unknownCommand(cmd *cobra.Command, name string) error {
	cmd.SuggestionsMinimumDistance = 2
	near := cmd.SuggestionsFor(name)
	if len(near) == 0 {
		return fmt.Errorf("unknown command %q for %q", clip(name, 40), cmd.CommandPath())
	}
	return fmt.Errorf("unknown command %q for %q; did you mean %s?", clip(name, 40), cmd.CommandPath(), strings.Join(near, " or "))
}

// helpCommand is cobra's, but for a topic that is none it fails.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		RunE: func(cmd *cobra.Command, args []string) error {
			at := cmd.Root()
			for _, name := range args {
				i := slices.IndexFunc(at.Commands(), func(c *cobra.Command) bool { return c.Name() == name || c.HasAlias(name) })
				if i < 0 {
					return usageError("%w; see: %s --help", unknownCommand(at, name), at.CommandPath())
				}
				at = at.Commands()[i]
			}
			at.InitDefaultHelpFlag()
			return at.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if at, _, err := cmd.Root().Find(args); err == nil {
				return commandNames(at), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// takes refuses fewer arguments than least, and more than most.
func takes(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		path, names, _ := strings.Cut(cmd.Use, " ")
		written := strings.TrimSpace(strings.TrimSuffix(cmd.CommandPath(), path) + path + " " + names)
		switch {
		case len(args) < least:
			return fmt.Errorf("an argument is missing; it is: %s", written)
		case len(args) > most:
			return fmt.Errorf("%q is too much; it is: %s", clip(args[most], 40), written)
		}
		return nil
	}
}

// flagError says what is wrong with a flag in our words.
func flagError(cmd *cobra.Command, err error) error {
	var wrong *pflag.InvalidValueError
	if errors.As(err, &wrong) {
		kind := map[string]string{"int": "a whole number", "duration": "a time such as 90s or 5m", "bool": "true or false"}[wrong.GetFlag().Value.Type()]
		err = fmt.Errorf("--%s %s: must be %s", wrong.GetFlag().Name, clip(wrong.GetValue(), 40), kind)
	}
	return usageError("%w; see: %s --help", err, cmd.CommandPath())
}

// noEmptyFlags refuses --workspace ” and the like: an empty variable of a shell
// is not what "not given" means.
func noEmptyFlags(cmd *cobra.Command, _ []string) error {
	for _, name := range []string{"workspace", "model"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed && strings.TrimSpace(f.Value.String()) == "" {
			return usageError("--%s is empty; leave it out for the default", name)
		}
	}
	return nil
}
