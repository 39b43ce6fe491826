package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tendril-agent/tendril/internal/config"
	"github.com/tendril-agent/tendril/internal/session"
	"github.com/tendril-agent/tendril/internal/sidecar"
	"github.com/tendril-agent/tendril/internal/terminal"
)

// sidecarName is how the desktop shell of the original Tendril calls its agent.
const sidecarName = "tendril-agent"

// Args are the arguments of a command line, which begins with the name that the
// program was called by: under the agent's name it is `tendril sidecar`.
func Args(line []string) []string {
	if len(line) == 0 {
		return nil
	}
	if strings.TrimSuffix(filepath.Base(line[0]), ".exe") == sidecarName {
		return append([]string{"sidecar"}, line[1:]...)
	}
	return line[1:]
}

func (c *command) sidecarCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "sidecar [workspace]",
		Short: "Speak the original Tendril's protocol on stdin and stdout, for its desktop shell",
		Long: `Speak the protocol of the original Tendril's agent on stdin and stdout: its desktop shell starts this command.
Called under the name tendril-agent, the program behaves like it. docs/sidecar.md tells the differences.

Exit codes: 0 the shell closed stdin, 1 it closed stdout, 2 usage, 130 interrupted.`,
		Example: "  tendril sidecar\n  ln -s tendril tendril-agent; ./tendril-agent ~/tendril-workspace",
		Args:    takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			g := &engine{c: c}
			if len(args) > 0 {
				g.workspace = args[0]
			}
			return c.sidecar(cmd.Context(), g)
		},
	}
}

func (c *command) sidecar(ctx context.Context, g *engine) error {
	out := c.Out
	c.Out, c.json = c.Err, false // stdout is the protocol's alone
	if c.InTTY {
		c.warn("this speaks a protocol that programs speak; in a terminal you want: tendril run")
	}
	ctx, stop := untilHungUp(ctx, out)
	defer stop()
	defer g.close()
	return sidecar.Serve(ctx, sidecar.Options{
		In: c.In, Out: out, Log: func(text string) { fmt.Fprintf(c.Err, "! %s\n", terminal.Clean(text)) },
		Version: version, Agent: g.agent,
		Folder: func(path string) (string, error) {
			if path != "" {
				return g.folder(path)
			}
			cfg, dirs, err := g.settings()
			if err != nil {
				return "", err
			}
			return config.ResolveWorkspace(g.workspace, cfg, dirs)
		},
		Create: func(ctx context.Context, folder string) (sidecar.Session, error) {
			sessions, err := g.sessions(ctx)
			if err != nil {
				return nil, err
			}
			return sessions.Create(ctx, session.New{Folder: folder, Client: "sidecar"})
		},
		Load: g.kept,
	})
}

// kept opens a session that is kept, for [sidecar.Options].
func (g *engine) kept(ctx context.Context, id string) (sidecar.Session, string, error) {
	sessions, err := g.sessions(ctx)
	if err != nil {
		return nil, "", err
	}
	info, err := sessions.Info(ctx, id)
	if errors.Is(err, session.ErrNotFound) {
		return nil, "", sidecar.ErrNotFound
	}
	if err != nil {
		return nil, "", err
	}
	folder, err := g.folder(info.Folder)
	if err != nil {
		return nil, "", fmt.Errorf("the folder of the session: %w", err)
	}
	s, err := sessions.Load(ctx, id)
	if err != nil {
		return nil, "", err
	}
	return s, folder, nil
}
