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
	// Agent makes the agent that works in a folder.
	Agent func(ctx context.Context, folder string) (*agent.Agent, error)
}

// Session is a conversation that is open for writing.
type Session interface {
	agent.Log
	ID() string
}

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
	running *prompt // nil when idle
	ended   string  // the id of the last prompt that ended
}

// session is a conversation with its agent, which is made by the first prompt.
type session struct {
	Session
	folder string
	agent  *agent.Agent
}

// prompt is one that is at work.
type prompt struct {
	id     string
	cancel context.CancelFunc
}

// Serve serves one client until its stream ends, our output breaks, or ctx ends;
// see [jsonrpc.Conn.Serve]. A turn that runs is cancelled then.
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

// newSession answers, and then says that the session is there.
func (s *server) newSession(ctx context.Context, r *jsonrpc.Request) error {
	var p struct {
		Folder string `json:"workingDirectory"`
	}
	if err := decode(r.Params, &p); err != nil {
		return err
	}
	ss, err := s.open(ctx, p.Folder)
	if err != nil {
		return err
	}
	r.Reply(map[string]string{"sessionId": ss.ID()}, nil)
	s.update(lifecycle{"session_lifecycle", "connected", agentName, ss.ID(), false})
	return nil
}

// open begins a session, which is the current one from then on.
func (s *server) open(ctx context.Context, path string) (*session, error) {
	folder, err := s.Folder(path)
	if err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.workingDirectory: %v", err)
	}
	kept, err := s.Create(ctx, folder)
	if err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "the session cannot be kept: %v", err)
	}
	ss := &session{Session: kept, folder: folder}
	s.sessions[ss.ID()] = ss
	s.current = ss
	return ss, nil
}

// find is the session that a prompt names. One that comes before any session
// begins one in the workspace, as in the original.
func (s *server) find(ctx context.Context, id string) (*session, error) {
	if id != "" && id != "current" {
		if ss := s.sessions[id]; ss != nil {
			return ss, nil
		}
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "there is no session %.80q here; send new_session, or \"current\"", id)
	}
	if s.current != nil {
		return s.current, nil
	}
	return s.open(ctx, "")
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
	turn, cancel := context.WithCancel(ctx)
	if !s.begin(string(r.ID()), cancel) {
		cancel()
		return nil, jsonrpc.Errorf(codeBusy, "Prompt already in progress")
	}
	ss, err := s.find(ctx, p.SessionID)
	if err != nil {
		s.end()
		return nil, err
	}
	r.Reply(struct{}{}, nil)
	return jsonrpc.Later(func() (any, error) {
		last := s.play(turn, ss, text)
		s.end()
		s.update(last)
		return nil, nil
	}), nil
}

// begin notes that a prompt is at work. It reports false when another one is.
func (s *server) begin(id string, cancel context.CancelFunc) bool {
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
	if s.running == nil || string(p.ID) == s.ended && s.ended != s.running.id {
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
