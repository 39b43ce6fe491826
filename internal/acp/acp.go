// Package acp serves the Agent Client Protocol, version 1
// (https://agentclientprotocol.com), on a pair of streams: what editors and our
// own host speak. Methods, updates and their shapes are the protocol's; what is
// ours has the key "tendril" in _meta, or a method that begins with _tendril/.
//
// A client that puts {"tendril": {"events": true}} into the _meta of its
// capabilities, as our own host does, gets each event of a turn as it is stored,
// in _tendril/event, instead of updates; and no replay, because it reads sessions
// itself. _tendril/ready says which workspace and model a prompt would use, and all
// that keeps it from working. The methods of capabilities.go are for an editor in
// which a person edits a capability.
//
// Unstable in the protocol's schema of this version, and sent all the same,
// because clients ignore what they do not know: the update usage_update, and
// usage in the answer to session/prompt. session/list is young.
package acp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/capability"
	"github.com/tendril-agent/tendril/internal/jsonrpc"
)

// Options are what a server needs. All are set.
type Options struct {
	In  io.Reader
	Out io.Writer         // nothing else may write to it
	Log func(text string) // for the person who looks at stderr

	Version  string
	Sessions Sessions
	// Ask reports whether the settings ask a person for every network access, so
	// that no mode does less.
	Ask func() bool
	// Folder checks the cwd of a session, an absolute path, and returns it
	// resolved. Its error is the client's to read.
	Folder func(ctx context.Context, cwd string) (string, error)
	// Agent makes the agent that works in a folder. It is called by the first
	// prompt of a session; a failure is told, and the next prompt calls it again.
	Agent func(ctx context.Context, folder string) (*agent.Agent, error)
	// Ready says what a prompt in the configured workspace would use, and what
	// keeps it from working.
	Ready func(ctx context.Context) (any, error)
	// Source is the file of a capability and the text of its active version; ok
	// is false when there is none.
	Source func(ctx context.Context, name string) (path, text string, ok bool)
	// Registry lends the registry of the configured workspace, for the methods
	// about capabilities; By is the person at the client.
	Registry func(ctx context.Context, use func(*capability.Registry) error) error
	By       capability.Provenance
}

// server is one connection's state.
type server struct {
	Options
	conn *jsonrpc.Conn

	mu       sync.Mutex
	client   string // how the client calls itself
	events   bool   // it wants events, not updates
	sessions map[string]*session
	opens    sync.Mutex // held while a session is opened
}

// Serve serves one client until its stream ends, our output breaks, or ctx ends;
// see [jsonrpc.Conn.Serve]. Turns that run are interrupted then.
func Serve(ctx context.Context, o Options) error {
	s := &server{Options: o, sessions: make(map[string]*session)}
	s.conn = jsonrpc.New(jsonrpc.Options{In: o.In, Out: o.Out, Handler: s.handle, Log: o.Log})
	return s.conn.Serve(ctx)
}

// handle is the table of methods. What takes time is a [jsonrpc.Later].
func (s *server) handle(ctx context.Context, r *jsonrpc.Request) (any, error) {
	switch r.Method {
	case sdk.AgentMethodInitialize:
		return s.initialize(r.Params)
	case sdk.AgentMethodAuthenticate:
		return sdk.AuthenticateResponse{}, nil // keys are in the environment, the keychain or a file
	case sdk.AgentMethodSessionNew:
		return s.newSession(ctx, r.Params)
	case sdk.AgentMethodSessionLoad:
		return s.loadSession(ctx, r)
	case sdk.AgentMethodSessionList:
		return s.listSessions(ctx, r.Params)
	case sdk.AgentMethodSessionClose:
		return s.closeSession(r.Params)
	case sdk.AgentMethodSessionSetMode:
		return s.setMode(ctx, r.Params)
	case sdk.AgentMethodSessionPrompt:
		return s.prompt(ctx, r)
	case sdk.AgentMethodSessionCancel:
		return nil, s.cancel(r.Params)
	case methodReady:
		return jsonrpc.Later(func() (any, error) {
			known, err := s.Ready(ctx)
			if err != nil {
				return nil, setupError(err)
			}
			return known, nil
		}), nil
	case methodCapabilities, methodDiff, methodAccept, methodRestore:
		return s.onCapabilities(ctx, r)
	}
	return nil, jsonrpc.MethodNotFound(r.Method)
}

// Methods of ours.
const (
	methodReady  = "_tendril/ready"
	methodEvent  = "_tendril/event" // its params are an [agent.Event]
	methodNotice = "_tendril/notice"
)

// codeNotFound is the protocol's code for a session that does not exist.
const codeNotFound = -32002

// decode reads params into v.
func decode(params json.RawMessage, v any) error {
	if params == nil {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params are missing")
	}
	if err := json.Unmarshal(params, v); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) && kind.Field != "" {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.%s must not be a %s", kind.Field, kind.Value)
		}
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params cannot be read: %v", err)
	}
	return nil
}

// initialize answers with what this agent can do. A client that speaks another
// version is offered ours, and disconnects if it cannot take it.
func (s *server) initialize(params json.RawMessage) (any, error) {
	var p struct {
		ProtocolVersion *json.RawMessage    `json:"protocolVersion"`
		ClientInfo      *sdk.Implementation `json:"clientInfo"`
		Capabilities    struct {
			Meta struct {
				Tendril struct {
					Events bool `json:"events"`
				} `json:"tendril"`
			} `json:"_meta"`
		} `json:"clientCapabilities"`
	}
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	var version uint16
	if p.ProtocolVersion == nil || json.Unmarshal(*p.ProtocolVersion, &version) != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
			"params.protocolVersion must be a number, such as %d; the dialect of the original desktop app is spoken by `tendril sidecar`", sdk.ProtocolVersionNumber)
	}
	s.mu.Lock()
	s.events = p.Capabilities.Meta.Tendril.Events
	if p.ClientInfo != nil {
		s.client = p.ClientInfo.Name
	}
	s.mu.Unlock()
	return sdk.InitializeResponse{
		ProtocolVersion: sdk.ProtocolVersionNumber,
		AgentInfo:       &sdk.Implementation{Name: "tendril", Title: sdk.Ptr("Tendril"), Version: s.Version},
		AuthMethods:     []sdk.AuthMethod{},
		AgentCapabilities: sdk.AgentCapabilities{
			Meta:                meta(map[string]any{"methods": []string{methodCapabilities, methodDiff, methodAccept, methodRestore}}),
			LoadSession:         true,
			PromptCapabilities:  sdk.PromptCapabilities{EmbeddedContext: true},
			SessionCapabilities: sdk.SessionCapabilities{List: &sdk.SessionListCapabilities{}, Close: &sdk.SessionCloseCapabilities{}},
		},
	}, nil
}

// meta is the _meta of something that says more than the protocol has room for.
func meta(v any) map[string]any { return map[string]any{"tendril": v} }

// notification is the protocol's SessionNotification.
type notification struct {
	SessionID string `json:"sessionId"`
	Update    any    `json:"update"`
}

// update sends an update of a session. That it fails means that the connection
// is over, which ends the turn by its context.
func (s *server) update(id string, u sdk.SessionUpdate) {
	err := s.conn.Notify(sdk.ClientMethodSessionUpdate, notification{id, tagged(u)})
	if err != nil && !errors.Is(err, jsonrpc.ErrClosed) {
		s.Log(err.Error())
	}
}

// tagged is the one variant of u, with its tag. The library's own encoding of
// the union reads numbers as floating point, which changes digits of a tool
// call's input.
func tagged(u sdk.SessionUpdate) any {
	switch {
	case u.ToolCall != nil:
		u.ToolCall.SessionUpdate = "tool_call"
		return u.ToolCall
	case u.ToolCallUpdate != nil:
		u.ToolCallUpdate.SessionUpdate = "tool_call_update"
		return u.ToolCallUpdate
	}
	return u
}
