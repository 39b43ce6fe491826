package mcp

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tendril-agent/tendril/internal/agent"
)

// handler answers calls of a tool. toInput makes the tool's input of a call's
// arguments, which are any JSON value, or nil.
//
// The call's context ends when the client cancels it, when its session ends, and
// when the server does; the tool then returns soon.
func (s *Server) handler(tool *agent.CheckedTool, toInput func(json.RawMessage) json.RawMessage) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		ctx, done := s.running.add(ctx, req.Session)
		defer done()
		defer withoutReply(ctx, req)
		select {
		case s.turns <- struct{}{}:
			defer func() { <-s.turns }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		s.prepare()
		args := req.Params.Arguments
		if len(args) == 0 || string(args) == "null" {
			args = json.RawMessage("{}")
		}
		in := agent.Invocation{Input: toInput(args), Session: sessionName(req.Session.ID()), Model: clientName(req.Session)}
		progress := startProgress(ctx, req)
		result := tool.Call(ctx, in, progress.report)
		progress.finish()
		if tool.Spec().Name == agent.RegisterTool {
			s.sync(ctx)
		}
		return toolResult(tool.Spec().Name, result), nil
	}
}

// withoutReply keeps a cancelled call from being answered, which the SDK would do
// over HTTP: it ends the stream that waits for the answer.
func withoutReply(ctx context.Context, req *sdk.CallToolRequest) {
	if ctx.Err() != nil && req.Extra != nil && req.Extra.CloseSSEStream != nil {
		req.Extra.CloseSSEStream(sdk.CloseSSEStreamArgs{})
	}
}

// clientName stands for the model, which a client does not tell.
func clientName(session *sdk.ServerSession) string {
	params := session.InitializeParams()
	if params == nil || params.ClientInfo == nil {
		return ""
	}
	name := params.ClientInfo.Name
	if len(name) > 100 || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
		return ""
	}
	return "mcp/" + name
}

// toolResult is a result as MCP carries it. What our own tools answer as a JSON
// object is structured content too; of a capability's result nothing is known.
func toolResult(tool string, r agent.Result) *sdk.CallToolResult {
	out := &sdk.CallToolResult{
		Content: []sdk.Content{&sdk.TextContent{Text: strings.ToValidUTF8(r.Text, "\uFFFD")}},
		IsError: r.Status != agent.Completed,
	}
	if tool != agent.ExecuteTool && !out.IsError && json.Valid([]byte(r.Text)) && strings.HasPrefix(r.Text, "{") {
		out.StructuredContent = json.RawMessage(r.Text)
	}
	return out
}

// running are the calls that are worked on.
type running struct {
	mu    sync.Mutex
	calls map[*runningCall]bool
}

type runningCall struct {
	session *sdk.ServerSession
	cancel  context.CancelFunc
}

// add notes a call. done must be called when it is over.
func (r *running) add(ctx context.Context, session *sdk.ServerSession) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancel(ctx)
	c := &runningCall{session, cancel}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls == nil {
		r.calls = make(map[*runningCall]bool)
	}
	r.calls[c] = true
	return ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.calls, c)
		cancel()
	}
}

// cancel ends the calls of the sessions that match.
func (r *running) cancel(match func(*sdk.ServerSession) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.calls {
		if match(c.session) {
			c.cancel()
		}
	}
}
