package agent

import (
	_ "embed" // the texts
	"encoding/json"
	"strings"
)

//go:embed text/system.md
var systemText string

// noRemoteImports is what the prompt says while remote dependencies are refused.
const remoteImports = "Packages are imported by name and exact version, as in `npm:zod@3.25.76` or `jsr:@std/csv@1.0.6`, and modules as `https://host/path`; they are fetched and locked when it is registered, never later, and a release younger than a day is refused. Prefer what Deno has; take well-known packages in pure JavaScript or WASM, since no native addon and no install script runs."

// SystemPrompt is the instruction for a workspace. The workspace's path is
// written as a JSON string, so that no folder name can pose as an instruction.
func SystemPrompt(workspace string) string {
	path, _ := json.Marshal(workspace) // a string always marshals
	return strings.NewReplacer("{{workspace}}", string(path), "{{imports}}", remoteImports).Replace(systemText)
}
