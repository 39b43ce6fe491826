//go:build linux && (amd64 || arm64)

package window

import (
	"context"
	"os/exec"
)

// canSandbox reports whether the process that draws the page can be put into WebKit's sandbox: a WebKit
// whose Bubblewrap cannot make namespaces, as in many containers, ends the whole program.
func canSandbox(ctx context.Context, getenv func(string) string) bool {
	bwrap := lookPath(getenv, "bwrap")
	if bwrap == "" || lookPath(getenv, "xdg-dbus-proxy") == "" {
		return false
	}
	probe := exec.CommandContext(ctx, bwrap, "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true")
	return probe.Run() == nil
}
