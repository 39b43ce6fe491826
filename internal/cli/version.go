package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/tendril-agent/tendril/internal/sandbox"
)

// version is what this source is; a release sets it when it is built.
var version = "0.1.0-dev"

func (c *command) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  tendril version --json",
		Args:    takes(0, 0),
		RunE:    func(*cobra.Command, []string) error { return c.printVersion() },
	}
}

// versionFlag lets a root that has no other use of its own print the version.
func (c *command) versionFlag(root *cobra.Command) {
	wanted := root.Flags().BoolP("version", "v", false, "print the version")
	otherwise := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if *wanted {
			return c.printVersion()
		}
		return otherwise(cmd, args)
	}
}

func (c *command) printVersion() error {
	revision := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	platform := runtime.GOOS + "/" + runtime.GOARCH
	text := fmt.Sprintf("tendril %s (%s, %s, Deno %s)", version, platform, runtime.Version(), sandbox.TestedVersion)
	return c.result(map[string]string{
		"version": version, "revision": revision, "platform": platform, "go": runtime.Version(), "deno": sandbox.TestedVersion,
	}, text)
}
