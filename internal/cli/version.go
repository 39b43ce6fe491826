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
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
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
		},
	}
}
