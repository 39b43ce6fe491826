package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/capability"
	"github.com/tendril-agent/tendril/internal/schema"
)

const (
	// pollEvery is how often the index is looked at for changes by others.
	pollEvery = time.Second
	// maxToolName is what is left of the 64 characters that providers take, after
	// the "mcp__tendril__" that clients put before a name.
	maxToolName = 50
	// maxDescription is how much of a description clients show, in bytes.
	maxDescription = 2 << 10
)

// exposed are the capabilities that are tools of their own.
type exposed struct {
	registry Registry
	execute  *agent.CheckedTool

	mu    sync.Mutex
	read  bool        // tools was made of an index
	seen  fs.FileInfo // that index
	tools map[string]exposedTool
}

// exposedTool is what a client sees of a capability.
type exposedTool struct {
	capability, description string
	schema                  json.RawMessage
}

func (t exposedTool) equal(u exposedTool) bool {
	return t.capability == u.capability && t.description == u.description && bytes.Equal(t.schema, u.schema)
}

// watch keeps the tools as the registry is, until ctx ends.
func (s *Server) watch(ctx context.Context) {
	if s.expose == nil {
		return
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.sync(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// sync makes the tools what the registry now holds. Clients are told of a
// change by the SDK.
func (s *Server) sync(ctx context.Context) {
	x := s.expose
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	info := x.registry.IndexInfo() // before the list: a change in between is seen the next time
	if x.read && sameFile(x.seen, info) {
		return
	}
	definitions, err := x.registry.Active(ctx)
	if err != nil {
		s.warn("the list of tools stays as it was: %v", err)
		return
	}
	x.seen, x.read = info, true
	now := toolsOf(definitions)
	for name := range x.tools {
		if _, still := now[name]; !still {
			s.sdk.RemoveTools(name)
			delete(x.tools, name)
		}
	}
	for name, tool := range now {
		if old, there := x.tools[name]; there && old.equal(tool) {
			continue
		}
		x.tools[name] = tool
		s.sdk.AddTool(&sdk.Tool{Name: name, Description: tool.description, InputSchema: tool.schema}, s.handler(x.execute, x.inputFor(tool.capability)))
	}
}

func sameFile(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// inputFor makes the input of execute of a capability's own arguments.
func (x *exposed) inputFor(name string) func(json.RawMessage) json.RawMessage {
	return func(args json.RawMessage) json.RawMessage {
		input, err := json.Marshal(map[string]any{"name": name, "args": args})
		if err != nil {
			return args // not JSON: the check says so
		}
		return input
	}
}

// toolsOf makes the tools, by name.
func toolsOf(definitions []capability.Definition) map[string]exposedTool {
	tools := make(map[string]exposedTool, len(definitions))
	for _, d := range definitions {
		tools[toolName(d.Name)] = exposedTool{d.Name, describe(d), inputSchema(d.Parameters)}
	}
	return tools
}

// toolName is the capability's own name, unless that is too long, means one of
// the three tools, or holds what no tool's name can.
func toolName(name string) string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
	if plain == name && len(name) <= maxToolName && name != agent.ExecuteTool {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	suffix := "_" + hex.EncodeToString(sum[:4])
	return plain[:min(len(plain), maxToolName-len(suffix))] + suffix
}

// describe says what a capability does and when it applies. The texts are data
// that a model or a person wrote.
func describe(d capability.Definition) string {
	var b strings.Builder
	b.WriteString(d.Capability)
	list(&b, "Use when", d.Triggers)
	list(&b, "Not when", d.Suppression)
	text := strings.ToValidUTF8(b.String(), "\uFFFD")
	if len(text) > maxDescription {
		text = strings.ToValidUTF8(text[:maxDescription-len("…")], "") + "…"
	}
	return text
}

func list(b *strings.Builder, title string, moments []string) {
	if len(moments) > 0 {
		fmt.Fprintf(b, "\n%s:\n- %s", title, strings.Join(moments, "\n- "))
	}
}

// noParameters is the schema of a tool that takes any object.
var noParameters = json.RawMessage(`{"type":"object","properties":{}}`)

// inputSchema is the schema of a capability's parameters as MCP wants it: a
// sound schema of an object. It comes from a file; execute checks the arguments
// against the admitted one.
func inputSchema(parameters json.RawMessage) json.RawMessage {
	if len(parameters) == 0 {
		return noParameters
	}
	if _, err := schema.Compile(parameters); err != nil {
		return noParameters
	}
	d := json.NewDecoder(bytes.NewReader(parameters))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil {
		return noParameters
	}
	object["type"] = "object"
	if _, there := object["properties"]; !there {
		object["properties"] = map[string]any{}
	}
	dropHeaders(object)
	out, err := json.Marshal(object)
	if err != nil {
		return noParameters
	}
	return out
}

// dropHeaders takes away "x-mcp-header", by which a schema would make clients
// send arguments as HTTP headers; the SDK panics over a malformed one.
func dropHeaders(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, v := range value {
			if strings.EqualFold(key, "x-mcp-header") {
				delete(value, key)
			}
			dropHeaders(v)
		}
	case []any:
		for _, v := range value {
			dropHeaders(v)
		}
	}
}
