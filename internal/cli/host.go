package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/lockedfile"
	"github.com/spf13/cobra"

	"github.com/tendril-agent/tendril/internal/config"
	"github.com/tendril-agent/tendril/internal/host"
	"github.com/tendril-agent/tendril/internal/secret"
	"github.com/tendril-agent/tendril/internal/session"
	"github.com/tendril-agent/tendril/internal/terminal"
	"github.com/tendril-agent/tendril/internal/window"
	"github.com/tendril-agent/tendril/web"
)

// hostOptions are the flags of the app.
type hostOptions struct {
	noOpen           bool
	host             string
	port             int
	workspace, model string
}

// hostFlags makes the root command the app.
func (c *command) hostFlags(root *cobra.Command) {
	var o hostOptions
	f := root.Flags()
	f.BoolVar(&o.noOpen, "no-open", false, "print the link of the app instead of opening it")
	f.StringVar(&o.host, "host", "127.0.0.1", "`address` to listen at; another than loopback needs the secret "+host.PasswordName)
	f.IntVar(&o.port, "port", 0, "`port` to listen at (default: that of the last time, else any)")
	f.StringVar(&o.workspace, "workspace", "", "`folder` with the capabilities (default: from the settings)")
	f.StringVar(&o.model, "model", "", "`provider/model`, or demo (default: from the settings, or what is there)")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if o.port < 0 || o.port > 65535 {
			return usageError("--port %d: must be from 1 to 65535; see: %s --help", o.port, cmd.CommandPath())
		}
		return c.host(cmd.Context(), o)
	}
	_ = root.RegisterFlagCompletionFunc("model", completeModel) // it fails only for a flag that is not there
}

// host opens the app: that of the host that runs, or one of its own, which it
// serves until it is ended.
func (c *command) host(ctx context.Context, o hostOptions) error {
	dirs, err := config.Locate(c.Getenv)
	if err != nil {
		return err
	}
	if err := config.Prepare(dirs.Tendril); err != nil {
		return &exitError{code: exitConfig, err: err}
	}
	shown := &shownWindow{}
	h, closeAll, err := c.startHost(ctx, dirs, o, shown)
	if err != nil || h == nil {
		return err
	}
	defer closeAll()
	if o.noOpen {
		c.showLink(h.Link(), o)
		return h.Serve(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		served <- h.Serve(ctx)
		cancel()
	}()
	c.attendWindow(ctx, shown, h, dirs)
	cancel()
	return <-served
}

// startHost makes a host, unless one of this user runs: then that one shows the
// app. Two starts at once are one after the other.
func (c *command) startHost(ctx context.Context, dirs config.Dirs, o hostOptions, shown *shownWindow) (h *host.Host, closeAll func(), err error) {
	unlock, err := lockedfile.MutexAt(filepath.Join(dirs.Tendril, "host.lock")).Lock()
	if err != nil {
		return nil, nil, fmt.Errorf("the folder %s cannot be used: %w", dirs.Tendril, err)
	}
	defer unlock()
	switch running, err := host.Find(ctx, dirs.Tendril, !o.noOpen); {
	case err != nil:
		return nil, nil, err
	case running != nil:
		c.showRunning(ctx, running, o)
		return nil, nil, nil
	}
	if err := c.skipFirstStart(dirs, o); err != nil {
		return nil, nil, err
	}
	password, err := c.secrets().Lookup(ctx, host.PasswordName)
	if err != nil && !errors.Is(err, secret.ErrNotFound) {
		return nil, nil, err
	}
	db, err := c.database(ctx, dirs)
	if err != nil {
		return nil, nil, err
	}
	sessions, err := session.Open(ctx, db)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	services := c.services(o)
	closeAll = func() {
		services.lender.close()
		if err := errors.Join(sessions.Close(), db.Close()); err != nil {
			c.warn("%v", err)
		}
	}
	ui, _ := web.FS() // without it the host says so
	h, err = host.New(host.Options{
		UI: ui, Show: shown.raise,
		Home: dirs.Tendril, User: dirs.User, Version: version, Host: o.host, Port: o.port, Password: password.Value,
		Log:     func(text string) { fmt.Fprintf(c.Err, "! %s\n", terminal.Line(text)) },
		Command: func() *exec.Cmd { return c.agentCommand(o) },
		Files:   services.files, Reveal: func(folder string) error { return window.OpenFolder(folder, c.Getenv) },
		Sessions: sessions, Folder: services.folder,
		Services: services.of(),
	})
	if err != nil {
		closeAll()
		return nil, nil, &exitError{code: exitConfig, err: err}
	}
	return h, closeAll, nil
}

// showRunning opens the app of a host that runs.
func (c *command) showRunning(ctx context.Context, running *host.Opened, o hostOptions) {
	if running.Shown {
		fmt.Fprintln(c.Err, "Tendril runs already; its window came forward")
	} else {
		fmt.Fprintln(c.Err, "Tendril runs already")
		if o.noOpen || window.OpenBrowser(ctx, running.Link, c.Getenv) != nil {
			c.showLink(running.Link, o)
		}
	}
	if o.workspace != "" || o.model != "" || o.port != 0 {
		c.warn("it keeps its own workspace, model and address; end it first, or change them in its settings")
	}
}

// skipFirstStart creates the workspace for who says with what to begin: nobody
// needs to ask. Broken settings are told: the app goes on without them.
func (c *command) skipFirstStart(dirs config.Dirs, o hostOptions) error {
	cfg, _, err := c.settings()
	if err != nil {
		c.warn("%v", err)
	}
	if o.workspace == "" && (o.model == "" || err != nil) {
		return nil
	}
	if err != nil {
		cfg = &config.Config{} // the flag goes before them
	}
	_, err = c.createWorkspace(o.workspace, cfg, dirs)
	return err
}

// agentCommand is the agent of the app: this program, as an editor starts it.
func (c *command) agentCommand(o hostOptions) *exec.Cmd {
	args := []string{"acp"}
	for _, flag := range [][2]string{{"--workspace", o.workspace}, {"--model", o.model}} {
		if flag[1] != "" {
			args = append(args, flag[0], flag[1])
		}
	}
	cmd := exec.Command(c.Executable, args...) //nolint:noctx // it is us, and ends with its input
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, host.PasswordName+"=") })
	return cmd
}

// showLink prints the link of the app: it signs in who opens it, once.
func (c *command) showLink(link string, o hostOptions) {
	if c.json {
		_ = writeJSON(c.Out, map[string]any{"url": link}) // the host runs all the same
		return
	}
	fmt.Fprintln(c.Out, link)
	if o.noOpen {
		fmt.Fprintln(c.Err, "open it in a browser within 10 minutes; it works once. Ctrl-C ends Tendril")
	}
}
