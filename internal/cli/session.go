package cli

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tendril-agent/tendril/internal/session"
)

func (c *command) sessionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "session",
		Short: "Find, read, export and delete conversations",
		Long: `Every conversation is kept on this machine, in the database of the Tendril folder. ID is a session's id,
as much of its beginning as is unique, or "last". To go on with one: tendril run --session ID "prompt".

Exit codes: 0 done, 1 failed, 2 usage, also when there is no such session.`,
	}
	c.group(cmd).AddCommand(c.sessionListCommand(), c.sessionExportCommand())
	add := func(use, short, example string, args cobra.PositionalArgs, run func(context.Context, *session.Store, []string) error) {
		cmd.AddCommand(&cobra.Command{
			Use: use, Short: short, Example: example, Args: args,
			RunE: func(cmd *cobra.Command, args []string) error {
				return c.withSessions(cmd.Context(), func(s *session.Store) error { return run(cmd.Context(), s, args) })
			},
		})
	}
	add("show ID", "Show a session", "  tendril session show last", takes(1, 1), c.sessionShow)
	add("rename ID TITLE", "Give a session another title", `  tendril session rename last "The expenses of March"`, takes(2, 2), c.sessionRename)
	add("fork ID", "Begin a session with what was said in another one", "  tendril session fork last", takes(1, 1), c.sessionFork)
	add("delete ID...", "Delete sessions with all that was said in them", "  tendril session delete 3kq9", takes(1, math.MaxInt), c.sessionDelete)
	return cmd
}

// withSessions opens the sessions for one command.
func (c *command) withSessions(ctx context.Context, do func(*session.Store) error) (err error) {
	_, dirs, err := c.settings()
	if err != nil {
		return err
	}
	db, err := c.databaseToRead(ctx, dirs)
	if err != nil {
		return err
	}
	defer func() {
		if e := db.Close(); err == nil {
			err = e
		}
	}()
	sessions, err := session.Open(ctx, db)
	if err != nil {
		return err
	}
	defer func() {
		if e := sessions.Close(); err == nil {
			err = e
		}
	}()
	return do(sessions)
}

func (c *command) sessionListCommand() *cobra.Command {
	var q session.Query
	cmd := &cobra.Command{
		Use:     "list [TEXT]",
		Aliases: []string{"search"},
		Short:   "List sessions, or search for words that were said",
		Example: "  tendril session list\n  tendril session list expenses march --limit 5",
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Text = strings.Join(args, " ")
			return c.withSessions(cmd.Context(), func(s *session.Store) error { return c.sessionList(cmd.Context(), s, q) })
		},
	}
	cmd.Flags().IntVar(&q.Limit, "limit", 20, "most sessions to list; 0 is all")
	cmd.Flags().StringVar(&q.Folder, "folder", "", "only those that worked in this `folder`")
	cmd.Flags().StringVar(&q.After, "after", "", "the `cursor` of the page before (\"next\" in --json)")
	return cmd
}

func (c *command) sessionList(ctx context.Context, sessions *session.Store, q session.Query) error {
	if q.Limit < 0 {
		return usageError("--limit %d: must be 0 or more", q.Limit)
	}
	list, next, err := sessions.List(ctx, q)
	if err != nil {
		return err
	}
	if c.json {
		return writeJSON(c.Out, struct {
			Sessions []session.Info `json:"sessions"`
			Next     string         `json:"next,omitempty"`
		}{list, next})
	}
	if len(list) == 0 {
		c.print("no sessions\n")
		return nil
	}
	now := time.Now()
	for _, info := range list {
		c.print("%s  %-18s %s\n", clip(info.ID, 8)[:8], ago(now, info.Updated), sessionTitle(info))
		if info.Match != "" {
			c.print("          %s\n", strings.Join(strings.Fields(info.Match), " "))
		}
	}
	if next != "" {
		c.print("there are more; see: tendril session list --limit 0\n")
	}
	return nil
}

func sessionTitle(info session.Info) string {
	title := info.Title
	if title == "" {
		title = "(empty)"
	}
	title += "  " + plural(info.Turns, "turn", "turns")
	if info.CostUSD != nil && *info.CostUSD > 0 {
		title += ", " + cost(*info.CostUSD, false)
	}
	return title
}

func (c *command) sessionShow(ctx context.Context, sessions *session.Store, args []string) error {
	text, err := c.exported(ctx, sessions, args[0], c.json)
	if err != nil {
		return err
	}
	if c.json {
		c.printRaw(text)
		return nil
	}
	c.print("%s", text)
	return nil
}

// exported is a session as Markdown, or as a line of JSON.
func (c *command) exported(ctx context.Context, sessions *session.Store, id string, asJSON bool) (string, error) {
	info, err := findSession(ctx, sessions, id)
	if err != nil {
		return "", err
	}
	events, err := sessions.Events(ctx, info.ID)
	if err != nil {
		return "", err
	}
	if !asJSON {
		return session.Markdown(info, events), nil
	}
	var out strings.Builder
	err = writeJSON(&out, session.Export{Session: info, Events: events})
	return out.String(), err
}

func (c *command) sessionExportCommand() *cobra.Command {
	var format, file string
	cmd := &cobra.Command{
		Use:     "export ID",
		Short:   "Write a session as Markdown or JSON",
		Example: "  tendril session export last > talk.md\n  tendril session export last --format json --output talk.json",
		Args:    takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "markdown" && format != "json" {
				return usageError("--format %q: must be markdown or json", format)
			}
			return c.withSessions(cmd.Context(), func(s *session.Store) error {
				text, err := c.exported(cmd.Context(), s, args[0], format == "json" || c.json)
				if err != nil {
					return err
				}
				return c.exportTo(file, text)
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", "markdown", "markdown or json")
	cmd.Flags().StringVarP(&file, "output", "o", "", "`file` to write, which must be new (default: stdout)")
	return cmd
}

// exportTo writes text to a new private file, or to stdout: as it is to a file
// or a pipe, cleaned to a terminal.
func (c *command) exportTo(file, text string) error {
	switch {
	case file == "" && c.OutTTY:
		c.print("%s", text)
		return nil
	case file == "":
		c.printRaw(text)
		return nil
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("the export cannot be written: %w", err)
	}
	if _, err := f.WriteString(text); err != nil {
		f.Close()
		return fmt.Errorf("the export cannot be written: %w", err)
	}
	return f.Close()
}

func (c *command) sessionRename(ctx context.Context, sessions *session.Store, args []string) error {
	info, err := findSession(ctx, sessions, args[0])
	if err != nil {
		return err
	}
	if err := sessions.Rename(ctx, info.ID, args[1]); err != nil {
		return err
	}
	if info, err = sessions.Info(ctx, info.ID); err != nil {
		return err
	}
	return c.result(info, fmt.Sprintf("%s is now called %q", info.ID, info.Title))
}

func (c *command) sessionFork(ctx context.Context, sessions *session.Store, args []string) error {
	from, err := findSession(ctx, sessions, args[0])
	if err != nil {
		return err
	}
	fork, err := sessions.Fork(ctx, from.ID, session.New{Folder: from.Folder, Client: "session fork"})
	if err != nil {
		return err
	}
	info, err := fork.Info(ctx)
	if err != nil {
		return err
	}
	return c.result(info, fmt.Sprintf("%s begins with the %s of %s; to go on with it: tendril run --session %s \"prompt\"",
		info.ID, plural(info.Turns, "turn", "turns"), from.ID, info.ID))
}

func (c *command) sessionDelete(ctx context.Context, sessions *session.Store, args []string) error {
	deleted := []string{}
	for _, id := range args {
		info, err := findSession(ctx, sessions, id)
		if err != nil {
			return err
		}
		if err := sessions.Delete(ctx, info.ID); err != nil {
			return err
		}
		deleted = append(deleted, info.ID)
	}
	return c.result(map[string]any{"deleted": deleted}, "deleted "+strings.Join(deleted, ", "))
}
