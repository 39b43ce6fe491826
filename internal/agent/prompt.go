package agent

import (
	_ "embed" // the texts
	"encoding/json"
	"strings"
)

//go:embed text/system.md
var systemText string

// noRemoteImports is what the prompt says while remote dependencies are refused.
const noRemoteImports = "No `npm:`, `jsr:` or `https:` imports either in this version: they are refused; write it with what Deno has."

// SystemPrompt is the instruction for a workspace. The workspace's path is
// written as a JSON string, so that no folder name can pose as an instruction.
func SystemPrompt(workspace string) string {
	path, _ := json.Marshal(workspace) // a string always marshals
	return strings.NewReplacer("{{workspace}}", string(path), "{{imports}}", noRemoteImports).Replace(systemText)
}
