package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/sandbox"
	"github.com/tendril-agent/tendril/internal/terminal"
)

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
	status := newStatusLine(c.Err, c.ErrTTY && !c.json && c.Getenv("TERM") != "dumb")
	defer status.clear()
	r := newRenderer(c.Out, status, c.style())
	executor := a.executor()
	executor.Explain = explain
	x, err := executor.Execute(ctx, args[0], arguments, "", func(p agent.Progress) {
		switch {
		case p.Stream != "":
			status.wait(terminal.Line(clip(p.Line, 200))) // it is printed when the run is over
		case p.State != "running":
			r.progress(p)
		}
	})
	status.clear()
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
	for _, line := range filesText(x) {
		fmt.Fprintln(c.Err, terminal.Line(line))
	}
}
