package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tendril-agent/tendril/internal/host"
	"github.com/tendril-agent/tendril/internal/sandbox"
	"github.com/tendril-agent/tendril/internal/secret"
)

func (c *command) secretCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "secret",
		Short: "Keep keys in the keychain, or in a private file",
		Long: `Keep the keys of providers, and secrets for capabilities, in the keychain of the operating system. A
capability gets a secret only if it declares its name (permissions.secrets) and you allow that once; it is
a variable of the environment of its runs, and taken out of what they print. Where there is none they go into a
file that only you may read; it is not encrypted, and that is said. A variable of the environment with
the same name wins. A value is never shown.

Exit codes: 0 done, 1 no such secret, or it could not be removed from the keychain, 2 usage, 3 the
file of secrets cannot be used, 130 interrupted.`,
	}
	c.group(cmd).AddCommand(
		&cobra.Command{
			Use:   "set NAME",
			Short: "Keep a secret; the value is asked for, or comes from stdin",
			Example: `  tendril secret set ANTHROPIC_API_KEY            # asks for it, and shows nothing
  tendril secret set OPENAI_API_KEY < key.txt
  pass show openai | tendril secret set OPENAI_API_KEY`,
			Args:              oneName,
			ValidArgsFunction: completeKeys,
			RunE:              func(cmd *cobra.Command, args []string) error { return c.secretSet(cmd.Context(), args[0]) },
		},
		&cobra.Command{
			Use:     "list",
			Short:   "List names and places, without values",
			Example: "  tendril secret list\n  tendril secret list --json",
			Args:    takes(0, 0),
			RunE:    func(cmd *cobra.Command, _ []string) error { return c.secretList(cmd.Context()) },
		},
		&cobra.Command{
			Use:               "rm NAME",
			Short:             "Forget a secret",
			Example:           "  tendril secret rm OPENAI_API_KEY",
			Args:              oneName,
			ValidArgsFunction: completeKeys,
			RunE:              func(cmd *cobra.Command, args []string) error { return c.secretRemove(cmd.Context(), args[0]) },
		},
	)
	return cmd
}

// oneName refuses a value as an argument. It repeats nothing: it may be a secret.
func oneName(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return errors.New("name a secret, as in ANTHROPIC_API_KEY")
	case len(args) > 1 || strings.Contains(args[0], "="):
		return errors.New("only a name is taken: a value given here would stand in the history of the shell and in the list of processes; leave it out to be asked for it, or pipe it in")
	}
	return secret.CheckName(args[0])
}

func completeKeys(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return secretNames(), cobra.ShellCompDirectiveNoFileComp
}

// setResult is the --json output of secret set.
type setResult struct {
	Name     string       `json:"name"`
	Place    secret.Place `json:"place"`
	Path     string       `json:"path,omitempty"` // of the file
	Warnings []string     `json:"warnings,omitempty"`
}

func (c *command) secretSet(ctx context.Context, name string) error {
	value, err := c.secretValue(ctx, name)
	if err != nil {
		return err
	}
	r, err := c.keep(name, value)
	if err != nil {
		return err
	}
	where := "in the keychain"
	if r.Place == secret.InFile {
		where = "in " + r.Path
	}
	for _, w := range r.Warnings {
		c.warn("%s", w)
	}
	return c.result(r, name+" is "+where)
}

// keep keeps a secret.
func (c *command) keep(name, value string) (setResult, error) {
	if name == host.PasswordName && len(value) < host.MinPassword {
		return setResult{}, usageError("%s must have %d characters or more: whoever knows it can run programs here as you; nothing is changed", name, host.MinPassword)
	}
	kept, err := c.secrets().Set(name, value)
	if err != nil {
		return setResult{}, err
	}
	r := setResult{Name: name, Place: kept.Place, Warnings: setWarnings(name, kept, c.secrets().Path())}
	if kept.Place == secret.InFile {
		r.Path = c.secrets().Path()
	}
	if strings.TrimSpace(c.Getenv(name)) != "" {
		r.Warnings = append(r.Warnings, name+" is also set in the environment, which wins; to use the kept one: unset "+name)
	}
	if !isOwnKey(name) {
		if err := sandbox.CheckSecretName(name); err != nil {
			r.Warnings = append(r.Warnings, fmt.Sprintf("no capability can get it: %v", err))
		} else if len(value) < sandbox.MinSecret {
			r.Warnings = append(r.Warnings, fmt.Sprintf("no capability can get it: with fewer than %d characters it could not be kept out of results", sandbox.MinSecret))
		} else if strings.HasSuffix(name, "_KEY") {
			r.Warnings = append(r.Warnings, fmt.Sprintf("no provider has a key of this name, so it is for capabilities that ask for it; the keys of providers are %s", strings.Join(keyNames(), ", ")))
		}
	}
	return r, nil
}

// setWarnings say what is not as good as it could be.
func setWarnings(name string, kept secret.Kept, path string) []string {
	var warnings []string
	if kept.Place == secret.InFile {
		mode := " (mode 0600)"
		if runtime.GOOS == "windows" {
			mode = ""
		}
		warnings = append(warnings, fmt.Sprintf("it is not encrypted: %s stands in plain text in %s, which only you may read%s, because %v", name, path, mode, kept.NotKeychain))
	}
	if kept.Leftover {
		warnings = append(warnings, "an older value is still in the keychain; it is not used any more, and is deleted by the next `tendril secret set` or `rm` that can reach the keychain")
	}
	return warnings
}

// maxTyped is the number of characters from which on [term.Terminal] drops some.
const maxTyped = 4096

// secretValue is what comes from stdin, without a last newline, or what is typed
// on a terminal.
func (c *command) secretValue(ctx context.Context, name string) (string, error) {
	if in, ok := c.In.(*os.File); ok && c.InTTY {
		return c.typedSecret(ctx, in, name)
	}
	data, err := readIn(ctx, c.In, secret.MaxValueBytes+2)
	if err != nil {
		return "", fmt.Errorf("the value cannot be read from stdin: %w", err)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r"), nil
}

// typedSecret asks for a value without showing it. However it ends, the terminal
// shows again what is typed. Ctrl-C and Ctrl-D give up.
func (c *command) typedSecret(ctx context.Context, in *os.File, name string) (string, error) {
	fd := int(in.Fd())
	fmt.Fprintf(c.Err, "value of %s (it is not shown): ", name)
	before, err := term.MakeRaw(fd)
	if err != nil {
		return "", fmt.Errorf("the terminal cannot hide what is typed: %w; pipe the value in", err)
	}
	keys := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{in, io.Discard}, "")
	data, err := cancellable(ctx, func() ([]byte, error) {
		line, err := keys.ReadPassword("")
		return []byte(line), err
	})
	_ = term.Restore(fd, before) // nothing is left to try
	fmt.Fprintln(c.Err)
	switch {
	case ctx.Err() != nil, errors.Is(err, io.EOF):
		return "", &exitError{code: exitInterrupted, err: errors.New("interrupted; nothing is changed")}
	case err != nil:
		return "", fmt.Errorf("the value cannot be read: %w; nothing is changed", err)
	case utf8.RuneCount(data) >= maxTyped:
		return "", usageError("a line of %d characters or more may be cut; pipe the value in: tendril secret set %s < file", maxTyped, name)
	}
	return string(data), nil
}

func (c *command) secretList(ctx context.Context) error {
	list, err := c.secrets().List(ctx, secretNames()...)
	if err != nil {
		return err
	}
	uses := c.secretUses(ctx)
	if c.json {
		type entry struct {
			secret.Entry
			Capabilities []string `json:"capabilities,omitempty"`
		}
		all := []entry{}
		for _, e := range list {
			all = append(all, entry{e, uses[e.Name]})
		}
		return writeJSON(c.Out, map[string]any{"secrets": all})
	}
	if len(list) == 0 {
		c.print("no secrets yet; keep one: tendril secret set ANTHROPIC_API_KEY\n")
		return nil
	}
	width := 0
	for _, e := range list {
		width = max(width, len(e.Name))
	}
	for _, e := range list {
		text := placesText(e)
		if users := uses[e.Name]; len(users) > 0 {
			text += "  for " + strings.Join(users, ", ")
		}
		c.print("%-*s  %s\n", width, e.Name, text)
		if e.Problem != "" {
			c.warn("%s: %s", e.Name, e.Problem)
		}
	}
	return nil
}

// placesText is "environment, which wins over the keychain" and the like.
func placesText(e secret.Entry) string {
	if len(e.Places) == 0 {
		return "missing"
	}
	text := string(e.Places[0])
	for i, p := range e.Places[1:] {
		text += []string{", which wins over the ", " and the "}[min(i, 1)] + string(p)
	}
	return text
}

func (c *command) secretRemove(ctx context.Context, name string) error {
	inEnvironment := strings.TrimSpace(c.Getenv(name)) != ""
	err := c.secrets().Remove(name)
	switch {
	case errors.Is(err, secret.ErrNotFound) && inEnvironment:
		return fmt.Errorf("no secret %s is kept; it is set in the environment: unset %s", name, name)
	case errors.Is(err, secret.ErrNotFound):
		return fmt.Errorf("there is no secret %s; see what is there: tendril secret list", name)
	case err != nil:
		return err
	}
	if inEnvironment {
		c.warn("%s is still set in the environment: unset %s", name, name)
	}
	for _, user := range c.secretUses(ctx)[name] {
		c.warn("%s needs it, and does not run without", user)
	}
	return c.result(map[string]any{"name": name, "removed": true}, name+" is forgotten")
}
