package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/config"
	"github.com/tendril-agent/tendril/internal/model/demo"
)

type runOptions struct {
	workspace string
	model     string
	maxTurns  int
	timeout   time.Duration
	session   which
}

func (c *command) runCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   `run "prompt"`,
		Short: "Run one turn in the terminal",
		Long: `Run one turn. The answer goes to stdout; what the agent does goes to stderr. With --json each event is
one line on stdout. Ctrl-C cancels the turn; a second one ends at once.

A file or a pipe on stdin is added to the prompt as data, at most 4 MiB of text; a pipe that stays open and
sends nothing for 3 s is left out, and that is said. In a loop that reads from stdin: tendril run … </dev/null.
A prompt of - is all of stdin, however long that takes.

The conversation is kept (see: tendril session). --continue goes on with the latest one of the workspace,
--session with the one of that id, or its beginning.

Exit codes: 0 the turn ended by itself, 1 it stopped early or failed, 2 usage, 3 configuration or
credentials, 4 model provider, 5 sandbox or Deno missing, 130 interrupted.`,
		Example: `  tendril run "how many words are in my notes?"
  tendril run --model ollama/qwen3 "sum expenses.csv by category"
  git log --oneline | tendril run "what changed this week?"
  tendril run - < prompt.txt
  tendril run --continue "and by month?"
  tendril run --model demo              # lists what the demo can play`,
		Args: onePrompt,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.run(cmd.Context(), o, args)
		},
	}
	c.turnFlags(cmd, &o)
	return cmd
}

// turnFlags adds the flags of the commands that play turns.
func (c *command) turnFlags(cmd *cobra.Command, o *runOptions) {
	f := cmd.Flags()
	f.StringVar(&o.workspace, "workspace", "", "`folder` to work in (default: from the settings)")
	f.StringVar(&o.model, "model", "", "`provider/model`, or demo (default: from the settings, or what is there)")
	_ = cmd.RegisterFlagCompletionFunc("model", completeModel) // it fails only for a flag that is not there
	f.IntVar(&o.maxTurns, "max-turns", 0, "most model calls of the turn (default: from the settings)")
	f.DurationVar(&o.timeout, "timeout", 0, "most time of the turn, such as 90s or 5m (default: from the settings)")
	f.BoolVar(&o.session.last, "continue", false, "go on with the latest session of the workspace")
	f.StringVar(&o.session.id, "session", "", "go on with the session of this `id`")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if f.Changed("max-turns") && o.maxTurns <= 0 {
			return usageError("--max-turns %d: must be 1 or more", o.maxTurns)
		}
		if o.session.last && f.Changed("session") {
			return usageError("--continue and --session name different sessions; give one of them")
		}
		if f.Changed("session") && strings.TrimSpace(o.session.id) == "" {
			return usageError("--session is empty; see: tendril session list")
		}
		if f.Changed("timeout") && o.timeout <= 0 {
			return usageError("--timeout %s: must be more than zero, such as 90s", o.timeout)
		}
		return nil
	}
}

func (c *command) run(ctx context.Context, o runOptions, args []string) error {
	if len(args) == 0 && o.model == config.Demo {
		return c.demoPrompts()
	}
	prompt, err := c.prompt(ctx, args)
	if err != nil {
		return err
	}
	return c.withConversation(ctx, o, "run", c.approver(), func(v *conversation) error {
		last, err := v.turn(ctx, prompt)
		if err == nil && last.Stop != agent.StopEndTurn {
			err = &exitError{code: stopCode(last), err: errors.New(string(last.Stop)), silent: true}
		}
		return err
	})
}

// front is how events are shown: as JSON lines or to a person.
func (c *command) front() (show func(agent.Event) error, done func()) {
	if c.json {
		return func(e agent.Event) error { return writeJSON(c.Out, e) }, func() {}
	}
	status := newStatusLine(c.Err, c.ErrTTY && c.Getenv("TERM") != "dumb")
	c.status = status
	r := newRenderer(c.Out, status, c.style())
	r.together = c.OutTTY && c.ErrTTY
	return r.event, status.close
}

// onePrompt refuses several words: a shell splits what is not quoted.
func onePrompt(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("the prompt must be one argument; put it in quotes: tendril run %q", clip(strings.Join(args, " "), 200))
	}
	return nil
}

// demoPrompts lists what the demo can play.
func (c *command) demoPrompts() error {
	if c.json {
		return writeJSON(c.Out, map[string]any{"model": demo.Name, "prompts": demo.Prompts()})
	}
	c.print("The demo model needs no key. Its words are scripted; it builds, checks and runs real\ncapabilities on the files of your workspace. It plays these prompts:\n\n")
	for _, p := range demo.Prompts() {
		c.print("  tendril run --model demo %q\n", p)
	}
	return nil
}
