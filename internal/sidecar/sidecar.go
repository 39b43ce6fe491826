// Package sidecar serves the dialect of the original Tendril's agent on a pair
// of streams, for its desktop shell: initialize, new_session, prompt and
// notifications/cancelled, answered with session/update notifications. Shapes
// and order are the original's; where it misreports, the truth stands in the
// same fields. docs/sidecar.md lists each difference.
package sidecar

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/jsonrpc"
)

// Options are what a server needs. All are set.
type Options struct {
	In  io.Reader
	Out io.Writer         // nothing else may write to it
	Log func(text string) // for the person who looks at stderr

	Version string
	// Folder checks where a session is to work, "" for the workspace, and returns
	// it resolved. Its error is the client's to read.
	Folder func(path string) (string, error)
	// Create begins a session that works in a folder.
	Create func(ctx context.Context, folder string) (Session, error)
	// Load opens a session that is kept, to go on with it. Without one of that id it
	// fails with [ErrNotFound].
	Load func(ctx context.Context, id string) (s Session, folder string, err error)
	// Agent makes the agent that works in a folder.
	Agent func(ctx context.Context, folder string) (*agent.Agent, error)
}

// Session is a conversation that is open for writing.
type Session interface {
	agent.Log
	ID() string
}

// ErrNotFound means that there is no session with that id.
var ErrNotFound = errors.New("there is no such session")

// The name by which the original calls itself, and its own code of an error.
const (
	agentName = "tendril-agent"
	codeBusy  = -32000
)

// server is the state of one connection. One prompt at a time is at work, as the
// shell expects.
type server struct {
	Options
	conn *jsonrpc.Conn

	// Used by the reading goroutine alone.
	sessions map[string]*session
	current  *session

	mu      sync.Mutex
	running *prompt         // nil when idle
	ended   json.RawMessage // the id of the last prompt that ended
}

// prompt is one that is at work.
type prompt struct {
	id     json.RawMessage
	cancel context.CancelFunc
}

// Serve serves one client until its stream ends, our output breaks, or ctx ends;
// see [jsonrpc.Conn.Serve]. A turn that runs is interrupted then.
func Serve(ctx context.Context, o Options) error {
	s := &server{Options: o, sessions: make(map[string]*session)}
	s.conn = jsonrpc.New(jsonrpc.Options{In: o.In, Out: o.Out, Handler: s.handle, Log: o.Log})
	return s.conn.Serve(ctx)
}

func (s *server) handle(ctx context.Context, r *jsonrpc.Request) (any, error) {
	switch r.Method {
	case "initialize":
		return map[string]any{"agentInfo": map[string]string{"name": agentName, "version": s.Version}, "authMethods": []string{}}, nil
	case "new_session":
		return nil, s.newSession(ctx, r)
	case "prompt":
		return s.prompt(ctx, r)
	case "notifications/cancelled":
		s.cancel(r.Params)
		return struct{}{}, nil
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found: %.100s", r.Method)
}

// prompt acknowledges a prompt, and plays it afterwards.
func (s *server) prompt(ctx context.Context, r *jsonrpc.Request) (any, error) {
	if r.IsNotification() {
		s.update(failure{"error", "a prompt needs an id; it was not run"})
		return nil, nil
	}
	var p struct {
		SessionID string            `json:"sessionId"`
		Messages  []json.RawMessage `json:"messages"`
	}
	if err := decode(r.Params, &p); err != nil {
		return nil, err
	}
	text, err := textOf(p.Messages)
	if err != nil {
		return nil, err
	}
	turn, cancel := agent.Cancellable(ctx)
	if !s.begin(r.ID(), cancel) {
		cancel()
		return nil, jsonrpc.Errorf(codeBusy, "Prompt already in progress")
	}
	ss, restored, err := s.find(ctx, p.SessionID)
	if err != nil {
		s.end()
		return nil, err
	}
	r.Reply(struct{}{}, nil)
	if restored {
		s.connected(ss, true)
	}
	return jsonrpc.Later(func() (any, error) { return nil, s.run(turn, ss, text) }), nil
}

// run plays a prompt and says that it has ended, also when we break inside it.
func (s *server) run(ctx context.Context, ss *session, text string) error {
	var last *promptComplete
	defer func() {
		if last == nil { // a panic passes by; the connection logs it
			s.update(failure{"error", "the turn failed inside Tendril; this is a bug of ours, and what it was is on stderr"})
			last = new(complete(agent.StopError))
		}
		s.end()
		s.update(last)
	}()
	last = new(s.play(ctx, ss, text))
	return nil
}

// begin notes that a prompt is at work. It reports false when another one is.
func (s *server) begin(id json.RawMessage, cancel context.CancelFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		return false
	}
	s.running = &prompt{id, cancel}
	return true
}

// end is called before prompt_complete is sent: the shell may send its next
// prompt as soon as it has that.
func (s *server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running.cancel()
	s.running, s.ended = nil, s.running.id
}

// cancel ends the prompt that runs, whatever it is called: the shell names
// "current". Only one that names the prompt before it came too late.
func (s *server) cancel(params json.RawMessage) {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	_ = decode(params, &p) // then it names none
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil || p.ID != nil && jsonrpc.SameID(p.ID, s.ended) && !jsonrpc.SameID(s.ended, s.running.id) {
		return
	}
	s.running.cancel()
}

// decode reads params, which may be absent.
func decode(params json.RawMessage, v any) error {
	if params == nil {
		return nil
	}
	if err := json.Unmarshal(params, v); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) && kind.Field != "" {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.%s must not be a %s", kind.Field, kind.Value)
		}
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params must be an object")
	}
	return nil
}

// textOf is the prompt: the string, or the first text block that says something,
// of the last message. It is "" when there is none.
func textOf(messages []json.RawMessage) (string, error) {
	if len(messages) == 0 {
		return "", nil
	}
	var m struct {
		Content json.RawMessage `json:"content"`
	}
	if err := decode(messages[len(messages)-1], &m); err != nil {
		return "", jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the last of params.messages must be an object with a content")
	}
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return text, nil
	}
	var blocks []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if m.Content != nil && json.Unmarshal(m.Content, &blocks) != nil {
		return "", jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the content of a message must be a string, or a list of blocks")
	}
	for _, b := range blocks {
		if b.Type == "text" && strings.TrimSpace(b.Text) != "" {
			return b.Text, nil
		}
	}
	return "", nil
}
