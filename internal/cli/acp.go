package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tendril-agent/tendril/internal/acp"
	"github.com/tendril-agent/tendril/internal/session"
	"github.com/tendril-agent/tendril/internal/terminal"
)

func (c *command) acpCommand() *cobra.Command {
	var workspace, model string
	cmd := &cobra.Command{
		Use:   "acp",
		Short: "Speak the Agent Client Protocol on stdin and stdout, for editors",
		Long: `Speak the Agent Client Protocol, version 1, on stdin and stdout: an editor starts this command. docs/editors.md
has the settings for Zed, JetBrains and Neovim. Capabilities are those of the workspace; the files that they work
on are those of the folder that the editor has open. Messages for people go to stderr.

Exit codes: 0 the editor closed stdin, 1 it closed stdout, 2 usage, 130 interrupted.`,
		Example: "  tendril acp\n  tendril acp --model ollama/qwen3",
		Args:    takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.acp(cmd.Context(), &engine{c: c, workspace: workspace, model: model, approver: acp.Approver{}})
		},
	}
	f := cmd.Flags()
	f.StringVar(&workspace, "workspace", "", "`folder` with the capabilities (default: from the settings)")
	f.StringVar(&model, "model", "", "`provider/model`, or demo (default: from the settings, or what is there)")
	f.StringVar(&c.settingsFile, "settings", "", "`file` to read the settings from, to try it")
	_ = f.MarkHidden("settings")
	_ = cmd.RegisterFlagCompletionFunc("model", completeModel) // these fail only for a flag that is not there
	return cmd
}

func (c *command) acp(ctx context.Context, g *engine) error {
	out := c.Out
	c.Out, c.json = c.Err, false // stdout is the protocol's alone
	if c.InTTY {
		c.warn("this speaks a protocol that editors speak; in a terminal you want: tendril run")
	}
	ctx, stop := untilHungUp(ctx, out)
	defer stop()
	defer g.close()
	return acp.Serve(ctx, acp.Options{
		In: c.In, Out: out, Log: func(text string) { fmt.Fprintf(c.Err, "! %s\n", terminal.Clean(text)) },
		Version: version, Sessions: conversations{g},
		Ask: func() bool {
			cfg, _, err := g.settings()
			return err == nil && cfg.Sandbox.Network == "ask"
		},
		Folder: func(_ context.Context, cwd string) (string, error) { return g.folder(cwd) },
		Agent:  g.agent, Ready: g.ready, Source: g.source, Registry: g.registry, By: person(),
	})
}

// conversations are the user's sessions as the protocol keeps them.
type conversations struct{ engine *engine }

// pageSize is how many sessions a client gets at once.
const pageSize = 50

// Create implements [acp.Sessions].
func (v conversations) Create(ctx context.Context, folder, client string) (acp.Conversation, error) {
	sessions, err := v.engine.sessions(ctx)
	if err != nil {
		return nil, err
	}
	if client == "" {
		client = "acp"
	}
	s, err := sessions.Create(ctx, session.New{Folder: folder, Client: client})
	if err != nil {
		return nil, err
	}
	return conversationIn{s, folder, session.ModePolicy}, nil
}

// Load implements [acp.Sessions].
func (v conversations) Load(ctx context.Context, id string) (acp.Conversation, error) {
	sessions, err := v.engine.sessions(ctx)
	if err != nil {
		return nil, err
	}
	info, err := sessions.Info(ctx, id)
	if errors.Is(err, session.ErrNotFound) {
		return nil, acp.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	s, err := sessions.Load(ctx, id)
	if err != nil {
		return nil, err
	}
	return conversationIn{s, info.Folder, info.Mode}, nil
}

// List implements [acp.Sessions].
func (v conversations) List(ctx context.Context, folder, before string) (page []acp.Info, next string, err error) {
	sessions, err := v.engine.sessions(ctx)
	if err != nil {
		return nil, "", err
	}
	list, next, err := sessions.List(ctx, session.Query{Folder: folder, Limit: pageSize, After: before})
	for _, info := range list {
		page = append(page, acp.Info{ID: info.ID, Title: info.Title, Folder: info.Folder, Updated: info.Updated})
	}
	return page, next, err
}

// conversationIn is a session with its folder and mode.
type conversationIn struct {
	*session.Session
	folder, mode string
}

// Folder implements [acp.Conversation].
func (c conversationIn) Folder() string { return c.folder }

// Mode implements [acp.Conversation].
func (c conversationIn) Mode() string { return c.mode }
