// Package cli is the command line: commands, exit codes, terminal output. It is
// the only place where the packages are wired together.
package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/tendril-agent/tendril/internal/secret"
	"github.com/tendril-agent/tendril/internal/terminal"
)

// Std is the outside world of a command.
type Std struct {
	In         io.Reader
	Out, Err   io.Writer
	InTTY      bool
	OutTTY     bool
	ErrTTY     bool
	Getenv     func(string) string
	Executable string // path of the running binary, may be empty
	Exit       func(code int)
	Keychain   secret.Keychain // nil: there is none
}

// System is the world of the running process.
func System() Std {
	exe, _ := os.Executable() // without it only Deno beside us is not found
	return Std{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTTY: terminal.IsTTY(os.Stdin), OutTTY: terminal.IsTTY(os.Stdout), ErrTTY: terminal.IsTTY(os.Stderr),
		Getenv: os.Getenv, Executable: exe, Exit: os.Exit, Keychain: secret.System(),
	}
}

// Main runs one command and returns its exit code.
func Main(args []string, std Std) int {
	if in, ok := std.In.(*os.File); ok && std.InTTY {
		exit, restore := std.Exit, terminal.Keep(in)
		std.Exit = func(code int) { restore(); exit(code) }
	}
	ctx, interrupts, stop := interruptible(std)
	defer stop()
	out := &output{w: std.Out}
	std.Out = out
	c := &command{Std: std, interrupts: interrupts}
	root := c.root()
	root.SetArgs(args)
	root.SetIn(std.In)
	root.SetOut(std.Out)
	root.SetErr(std.Err)
	err := out.outcome(root.ExecuteContext(ctx))
	return report(err, c.json || wantsJSON(args), c.Out, c.Err) // c.Out is not stdout where a protocol has that
}

// command is what all commands share.
type command struct {
	Std
	json   bool
	status *statusLine     // of a running turn; nil when there is none
	quiet  *terminal.Quiet // while turns are played; nil when it is none
	store  *secret.Store

	settingsFile string // in the place of the one in our folder; "": that one

	interrupts *interrupts
}

func (c *command) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "tendril",
		Short: "An agent that builds its own tools, and keeps the ones that work",
		Long: `Without a command, Tendril opens its app, in a window or a page of your browser. The commands work in the terminal.

Tendril is an agent that builds its own tools. You ask for something; if a capability for it is kept, it
runs in a sandbox; if not, the model writes one, it passes a gate, and is kept for the next time.

Exit codes: 0 done, 1 failed or stopped early, 2 usage, 3 configuration or credentials, 4 model
provider, 5 sandbox or Deno missing, 130 interrupted. With --json an error is also one line on
stdout: {"type": "error", "error": {"message": …}, "exit_code": …}; stderr tells it to people.`,
		Example: `  tendril                               # opens the app
  tendril run --model demo              # what can be tried without a key
  tendril setup                         # Deno, workspace, provider
  tendril run "how many words are in my notes?"`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: noEmptyFlags,
	}
	root.PersistentFlags().BoolVar(&c.json, "json", false, "machine-readable output")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(helpCommand())
	c.group(root).AddCommand(c.runCommand(), c.chatCommand(), c.acpCommand(), c.sessionCommand(), c.capabilityCommand(), c.modelCommand(), c.setupCommand(), c.doctorCommand(), c.configCommand(), c.secretCommand(), c.mcpCommand(), c.sidecarCommand(), c.windowCommand(), c.versionCommand())
	c.hostFlags(root)
	c.versionFlag(root)
	usageErrors(root)
	return root
}

// usageErrors makes cobra's complaints about arguments and unknown commands
// usage errors, in the whole tree.
func usageErrors(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usageError("%w; see: %s --help", err, cmd.CommandPath())
			}
			return nil
		}
	}
	for _, child := range cmd.Commands() {
		usageErrors(child)
	}
}

// wantsJSON looks for --json before the flags are parsed, for their errors.
func wantsJSON(args []string) bool {
	for _, a := range args {
		if a == "--" {
			return false
		}
		if a == "--json" || a == "--json=true" {
			return true
		}
	}
	return false
}

// warn tells the person something that does not stop the command.
func (c *command) warn(format string, args ...any) {
	fmt.Fprintf(c.Err, "! %s\n", terminal.Line(fmt.Sprintf(format, args...)))
}

// style is the style of status lines on stderr.
func (c *command) style() style { return style{color: terminal.ColorEnabled(c.Getenv, c.ErrTTY)} }

// print writes cleaned text to stdout.
func (c *command) print(format string, args ...any) {
	fmt.Fprint(c.Out, terminal.Clean(fmt.Sprintf(format, args...)))
}

// printRaw writes text of ours, colours included, to stdout.
func (c *command) printRaw(s string) { fmt.Fprint(c.Out, s) }
