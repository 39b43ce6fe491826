// Package mcp serves the registry to other agents by the Model Context Protocol
// (https://modelcontextprotocol.io): the three tools of package agent, and, when
// asked for, each capability as a tool of its own; over stdio and over
// streamable HTTP.
package mcp

import (
	"context"
	"crypto/sha256"
	_ "embed" // the texts
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/capability"
)

var (
	// Clients show at most 2 KiB of the instructions, and of each description.
	//go:embed text/instructions.md
	instructionsText string
	// What the model of another agent must know to write a capability.
	//go:embed text/code.md
	codeText string
)

// newestProtocol is the newest version with sessions, which cancellation and
// changes of the list of tools need here.
const newestProtocol = "2025-11-25"

// maxCalls is how many calls are worked on at once; more wait for their turn.
const maxCalls = 8

// Registry is what the exposed tools are made of. *[capability.Registry] is one.
type Registry interface {
	Active(ctx context.Context) ([]capability.Definition, error)
	// IndexInfo changes whenever the capabilities do, in any process. Nil means
	// that there are none.
	IndexInfo() fs.FileInfo
}

// Options make a [Server].
type Options struct {
	Tools     []agent.Tool // listCapabilities, registerCapability, execute
	Expose    Registry     // each of its active capabilities becomes a tool, too; nil: none does
	Workspace string
	Version   string
	Prepare   func()                           // called at the first call of a tool: more are likely; may be nil
	Warn      func(format string, args ...any) // tells the person; from any goroutine
}

// Server serves any number of sessions.
type Server struct {
	sdk     *sdk.Server
	expose  *exposed // nil: capabilities are no tools of their own
	warn    func(format string, args ...any)
	prepare func()
	running running
	turns   chan struct{} // one element for each call that is worked on
}

// New makes a server. It fails when a tool's schema does not compile.
func New(o Options) (*Server, error) {
	folder, _ := json.Marshal(o.Workspace) // a JSON string, so that no folder name can pose as an instruction
	if o.Prepare == nil {
		o.Prepare = func() {}
	}
	s := &Server{warn: o.Warn, prepare: sync.OnceFunc(o.Prepare), turns: make(chan struct{}, maxCalls)}
	s.sdk = sdk.NewServer(&sdk.Implementation{Name: "tendril", Title: "Tendril", Version: o.Version}, &sdk.ServerOptions{
		Instructions:              strings.ReplaceAll(strings.TrimSpace(instructionsText), "{{workspace}}", string(folder)),
		Capabilities:              &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}},
		SupportedProtocolVersions: slices.DeleteFunc(sdk.SupportedProtocolVersions(), func(v string) bool { return v > newestProtocol }),
	})
	s.sdk.AddReceivingMiddleware(s.recovered)
	for _, tool := range o.Tools {
		checked, err := agent.Check(tool)
		if err != nil {
			return nil, err
		}
		spec := checked.Spec()
		if spec.Name == agent.RegisterTool {
			spec.Description += "\n\n" + strings.TrimSpace(codeText)
		}
		s.sdk.AddTool(&sdk.Tool{
			Name: spec.Name, Description: spec.Description, InputSchema: spec.Schema,
			Annotations: &sdk.ToolAnnotations{ReadOnlyHint: spec.Name == agent.ListTool},
		}, s.handler(checked, func(args json.RawMessage) json.RawMessage { return args }))
		if spec.Name == agent.ExecuteTool && o.Expose != nil {
			s.expose = &exposed{registry: o.Expose, execute: checked, tools: make(map[string]exposedTool)}
		}
	}
	return s, nil
}

// recovered turns a panic into an error reply. What it was is for the person.
func (s *Server) recovered(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (result sdk.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				s.warn("%s failed: %v; this is a bug of ours", method, p)
				result, err = nil, fmt.Errorf("%s failed inside Tendril; this is a bug of ours, and other requests still work", method)
			}
		}()
		return next(ctx, method, req)
	}
}

// sessionName is what the registry and the ledger call a session. An HTTP
// session's own id is a secret, so it is not that.
func sessionName(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "mcp-" + hex.EncodeToString(sum[:8])
}
