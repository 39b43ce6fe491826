package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/config"
	"github.com/tendril-agent/tendril/internal/mcp"
)

// defaultMCPAddress is where `tendril mcp --http` listens. The port spells TEND.
const defaultMCPAddress = "127.0.0.1:8363"

type mcpOptions struct {
	workspace string
	expose    bool
	http      string // address to listen on; empty: stdio
}

func (c *command) mcpCommand() *cobra.Command {
	var o mcpOptions
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve the capabilities to other agents by MCP",
		Long: `Serve the capabilities of the workspace to other agents by the Model Context Protocol: on stdin and stdout,
or with --http on this machine. They get the three tools listCapabilities, registerCapability and execute;
with --expose-capabilities also each capability as a tool of its own. Nobody can be asked here: what needs a
person waits for ` + "`tendril capability approve`" + `.`,
		Example: `  claude mcp add tendril -- tendril mcp
  tendril mcp --workspace ~/notes --expose-capabilities
  tendril mcp --http
  tendril mcp --http 127.0.0.1:9000`,
		Args: takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if o.http != defaultMCPAddress {
					return usageError("mcp takes no argument but the address after --http; see: tendril mcp --help")
				}
				o.http = args[0]
			}
			return c.mcp(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.workspace, "workspace", "", "`folder` to work in (default: from the settings)")
	f.BoolVar(&o.expose, "expose-capabilities", false, "each active capability is a tool, too")
	f.StringVar(&o.http, "http", "", "serve by HTTP at this `address` of this machine, 127.0.0.1:8363 if none is given")
	f.Lookup("http").NoOptDefVal = defaultMCPAddress
	return cmd
}

// mcp serves until the client goes away or the process is told to end.
func (c *command) mcp(ctx context.Context, o mcpOptions) (err error) {
	out := c.Out
	c.Out = c.Err // stdout is the protocol's alone
	address, err := loopback(o.http)
	if err != nil {
		return err
	}
	cfg, dirs, err := c.settings()
	if err != nil {
		return err
	}
	a, err := c.open(ctx, cfg, dirs, openOptions{workspace: o.workspace, create: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	if a.denoErr != nil {
		c.warn("nothing can run: %v", a.denoErr)
	}
	server, err := mcp.New(c.mcpServer(a, o))
	if err != nil {
		return err
	}
	if address != "" {
		return c.mcpHTTP(ctx, server, address, dirs)
	}
	ctx, stop := untilHungUp(ctx, out)
	defer stop()
	if err := server.ServeStdio(ctx, c.In, out); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func (c *command) mcpServer(a *app, o mcpOptions) mcp.Options {
	options := mcp.Options{
		Tools: agent.Tools(a.registry, a.executor()), Workspace: a.workspace.Path(), Version: version, Warn: c.warn,
		Prepare: func() { a.runner.Prepare(a.workspace.Path()) },
	}
	if o.expose {
		options.Expose = a.registry
	}
	return options
}

// mcpHTTP serves by HTTP. A token that is new is shown, once.
func (c *command) mcpHTTP(ctx context.Context, server *mcp.Server, address string, dirs config.Dirs) error {
	if dirs.Tendril == "" {
		return &exitError{code: exitConfig, err: errors.New("there is no folder to keep the token of the HTTP server in; set HOME, or TENDRIL_HOME")}
	}
	path := filepath.Join(dirs.Tendril, "mcp-token")
	token, created, err := mcp.Token(path)
	if err != nil {
		return &exitError{code: exitConfig, err: err}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w; name another address: tendril mcp --http 127.0.0.1:PORT", address, err)
	}
	url := "http://" + l.Addr().String() + mcp.Path
	fmt.Fprintf(c.Err, "serving MCP at %s; each request needs the header Authorization: Bearer TOKEN\n", url)
	if created {
		fmt.Fprintf(c.Err, "the token is kept in %s and shown this once; for example:\n  claude mcp add --transport http tendril %s --header \"Authorization: Bearer %s\"\n", path, url, token)
	} else {
		fmt.Fprintf(c.Err, "the token is in %s; remove the file to get a new one\n", path)
	}
	return server.Serve(ctx, l, token)
}

// loopback checks an address to listen on. It is "" for "".
func loopback(address string) (string, error) {
	if address == "" {
		return "", nil
	}
	if _, err := strconv.ParseUint(address, 10, 16); err == nil {
		address = "127.0.0.1:" + address
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", usageError("--http %s: an address is needed, such as %s", address, defaultMCPAddress)
	}
	if strings.EqualFold(host, "localhost") {
		host = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || !ip.IsLoopback() {
		return "", usageError("--http %s: MCP is served on this machine only, at 127.0.0.1 or [::1]; from elsewhere use a tunnel: ssh -L %s:127.0.0.1:%s HOST", address, port, port)
	}
	return net.JoinHostPort(ip.String(), port), nil
}
