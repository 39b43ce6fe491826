package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/capability"
	"github.com/tendril-agent/tendril/internal/config"
	"github.com/tendril-agent/tendril/internal/sandbox"
	"github.com/tendril-agent/tendril/internal/secret"
	"github.com/tendril-agent/tendril/internal/session"
	"github.com/tendril-agent/tendril/internal/terminal"
)

// Exit codes of every command.
const (
	exitOK          = 0
	exitFailed      = 1 // also any stop but end_turn
	exitUsage       = 2
	exitConfig      = 3 // configuration or credentials
	exitProvider    = 4
	exitSandbox     = 5 // sandbox or Deno missing
	exitInterrupted = 130
)

// exitError carries an exit code with an error. silent means that the command
// has already said what went wrong.
type exitError struct {
	code   int
	err    error
	silent bool
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func usageError(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// exitCode is the one table from errors to exit codes.
func exitCode(err error) int {
	var exit *exitError
	var provider *agent.ModelError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		return exit.code
	case errors.Is(err, config.ErrConfig), errors.Is(err, secret.ErrFile):
		return exitConfig
	case errors.Is(err, secret.ErrInvalid), errors.Is(err, session.ErrTitle):
		return exitUsage
	case errors.Is(err, sandbox.ErrNoDeno):
		return exitSandbox
	case errors.As(err, &provider) && provider.Kind == agent.ErrCredentials:
		return exitConfig
	case errors.As(err, &provider):
		return exitProvider
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitFailed
}

// stopCode is the exit code of a turn.
func stopCode(e agent.Event) int {
	switch e.Stop {
	case agent.StopEndTurn:
		return exitOK
	case agent.StopCancelled:
		return exitInterrupted
	case agent.StopError:
		switch kind := agent.ErrorKind(e.Error.Kind); kind {
		case agent.ErrCredentials:
			return exitConfig
		case "internal", "store":
			return exitFailed
		default:
			return exitProvider
		}
	}
	return exitFailed
}

// personText is err as a person reads it. The text of an unknown capability is
// for a model, which could register one.
func personText(err error) string {
	if exitCode(err) == exitInterrupted && errors.Is(err, context.Canceled) {
		return "interrupted"
	}
	var unknown *capability.UnknownError
	if !errors.As(err, &unknown) {
		return err.Error()
	}
	text := fmt.Sprintf("there is no capability %q", clip(unknown.Name, 64))
	if unknown.Kept {
		text += fmt.Sprintf("; versions of it are kept, and it comes back with: tendril capability restore %s", unknown.Name)
	}
	if unknown.Loose && !unknown.Kept {
		text += fmt.Sprintf("; tools/%s.ts exists, but does not run without an entry in tools/index.json", unknown.Name)
	}
	if len(unknown.Near) > 0 {
		text += "; near it: " + strings.Join(unknown.Near, ", ")
	}
	return text + "; see what there is: tendril capability list"
}

// report tells the person, or the program that reads --json, what went wrong.
func report(err error, asJSON bool, out, errOut io.Writer) int {
	code := exitCode(err)
	var exit *exitError
	if err == nil || errors.As(err, &exit) && exit.silent {
		return code
	}
	text := personText(err)
	if asJSON {
		line, _ := json.Marshal(map[string]any{"type": "error", "error": map[string]any{"message": text}, "exit_code": code})
		fmt.Fprintf(out, "%s\n", terminal.EscapeJSON(line))
	}
	fmt.Fprintf(errOut, "tendril: %s\n", terminal.Clean(text))
	return code
}
