package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tendril-agent/tendril/internal/capability"
	"github.com/tendril-agent/tendril/internal/terminal"
)

func (c *command) permissionsCommand(with func(func(context.Context, *app, []string) error) func(*cobra.Command, []string) error) *cobra.Command {
	var revoke bool
	cmd := &cobra.Command{
		Use: "permissions [name]", Short: "List what capabilities may do, or take the network away from one", Args: takes(0, 1),
		Long: `List what each capability may reach, and who allowed it: policy (sandbox.policy.network in the settings) or you.
With --revoke the capability loses the network until you approve it again, whatever policy says; without a
name, what you approved for a whole older workspace is taken back.`,
		Example: "  tendril capability permissions\n  tendril capability permissions top_stories --revoke\n  tendril capability approve top_stories",
	}
	cmd.Flags().BoolVar(&revoke, "revoke", false, "take the network away")
	cmd.RunE = with(func(ctx context.Context, a *app, args []string) error {
		if revoke {
			return c.revoke(ctx, a, strings.Join(args, ""))
		}
		return c.listPermissions(ctx, a, strings.Join(args, ""))
	})
	return cmd
}

func (c *command) listPermissions(ctx context.Context, a *app, name string) error {
	list, err := a.registry.Permissions(ctx)
	if err != nil {
		return err
	}
	if name != "" {
		info, err := a.registry.Show(ctx, name) // says what is wrong with the name
		if err != nil {
			return err
		}
		kept := list[:0]
		for _, p := range list {
			if p.Name == info.Definition.Name {
				kept = append(kept, p)
			}
		}
		list = kept
	}
	if c.json {
		return writeJSON(c.Out, map[string]any{"policy": a.cfg.Sandbox.Network, "allowed_domains": a.cfg.Sandbox.AllowedDomains, "capabilities": list})
	}
	for _, p := range list {
		c.print("%s\n", terminal.Line(fmt.Sprintf("%s %s: %s%s", p.Name, p.Version, p.Grants, networkNote(p))))
	}
	if len(list) == 0 {
		c.print("no capabilities yet\n")
	}
	return nil
}

// networkNote says who allowed the network, or what it waits for.
func networkNote(p capability.Permission) string {
	switch p.Network {
	case capability.NetworkGranted:
		return " (network allowed by policy)"
	case capability.NetworkApproved:
		return " (network allowed by you)"
	case capability.NetworkWaits:
		return " (network waits for you: tendril capability approve " + p.Name + ")"
	case capability.NetworkRevoked:
		return " (network taken away by you; to give it back: tendril capability approve " + p.Name + ")"
	case capability.NetworkRefused:
		return " (network refused by the settings)"
	}
	return ""
}

func (c *command) revoke(ctx context.Context, a *app, name string) error {
	if name == "" {
		if err := a.registry.RevokeWorkspace(ctx); err != nil {
			return err
		}
		return c.result(map[string]any{"revoked": a.workspace.Path()}, "took back what was approved for capabilities of "+a.workspace.Path()+" that declare no hosts")
	}
	approved, err := a.registry.Revoke(ctx, name)
	if errors.Is(err, capability.ErrNothingToDo) {
		return c.result(map[string]any{"name": name, "changed": false}, fmt.Sprintf("%s has no network to lose", name))
	}
	if err != nil {
		return err
	}
	return c.result(map[string]any{"name": name, "changed": true, "approved": approved},
		fmt.Sprintf("%s has no network until you approve it again: tendril capability approve %s", name, name))
}
