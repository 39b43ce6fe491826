package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tendril-agent/tendril/internal/capability"
)

// configuredWorkspace is what a bare --workspace of approve stands for.
const configuredWorkspace = "configured"

func (c *command) capabilityApprove(cmd *cobra.Command, args []string) error {
	flag := cmd.Flags().Lookup("workspace")
	folder := flag.Value.String()
	if folder == configuredWorkspace {
		folder = ""
	}
	if n := len(args); folder == "" && flag.Changed && n > 0 && strings.ContainsAny(args[n-1], `/\.~`) {
		folder, args = args[n-1], args[:n-1] // "--workspace folder": no name holds one of these
	}
	switch {
	case len(args) == 0 && !flag.Changed:
		return usageError("name a capability, or use --workspace for all of an older workspace; see: tendril capability approve --help")
	case len(args) > 1:
		return usageError("one name at a time; see: tendril capability approve --help")
	}
	return c.withRegistry(cmd.Context(), folder, func(a *app) error {
		if len(args) == 0 {
			return c.approveWorkspace(cmd.Context(), a)
		}
		return c.approveOne(cmd.Context(), a, args[0])
	})
}

func (c *command) approveWorkspace(ctx context.Context, a *app) error {
	if err := a.registry.ApproveWorkspace(ctx); err != nil && !errors.Is(err, capability.ErrNothingToDo) {
		return err
	}
	return c.result(map[string]any{"approved": a.workspace.Path()}, "approved network access for the capabilities of "+a.workspace.Path()+" that declare no hosts")
}

func (c *command) approveOne(ctx context.Context, a *app, name string) error {
	admission, err := a.registry.Approve(ctx, name)
	if errors.Is(err, capability.ErrNothingToDo) {
		return c.result(map[string]any{"name": name, "changed": false}, fmt.Sprintf("%s waits for nothing", name))
	}
	if err != nil {
		return err
	}
	admission.Warnings = nil // they were about the approval that is now given
	return c.admitted(admission, "approved")
}
