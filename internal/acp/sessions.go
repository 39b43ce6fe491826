package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/jsonrpc"
)

// Sessions keeps conversations. It is used by many goroutines at once.
type Sessions interface {
	// Create begins a conversation of a client about a folder.
	Create(ctx context.Context, folder, client string) (Conversation, error)
	// Load opens a kept conversation for writing. Its error matches [ErrNotFound]
	// when there is none.
	Load(ctx context.Context, id string) (Conversation, error)
	// List returns a page of the conversations about a folder ("" for all), newest
	// first, and what the next page begins before, "" when there is none.
	List(ctx context.Context, folder, before string) (page []Info, next string, err error)
}

// Conversation is one that is open for writing, until Close.
type Conversation interface {
	agent.Log
	ID() string
	Folder() string
	// Mode is what it was opened with, and SetMode keeps another one.
	Mode() string
	SetMode(ctx context.Context, mode string) error
	Close() error
}

// Info is what a listing tells of a conversation.
type Info struct {
	ID, Title, Folder string
	Updated           time.Time
}

// ErrNotFound means that there is no such conversation.
var ErrNotFound = errors.New("session not found")

// folder checks the cwd of a request.
func (s *server) folder(ctx context.Context, cwd string) (string, error) {
	if !filepath.IsAbs(cwd) {
		return "", jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.cwd must be an absolute path, not %.200q", cwd)
	}
	folder, err := s.Folder(ctx, cwd)
	if err != nil {
		return "", jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.cwd: %v", err)
	}
	return folder, nil
}

// opening are the parameters that session/new and session/load share. The
// servers are only counted, so their shapes do not matter.
type opening struct {
	SessionID   string            `json:"sessionId"`
	Cwd         string            `json:"cwd"`
	MCPServers  []json.RawMessage `json:"mcpServers"`
	Directories []string          `json:"additionalDirectories"`
}

func (s *server) logIgnored(o opening) {
	if n := len(o.MCPServers); n > 0 {
		s.Log(fmt.Sprintf("%d MCP servers of the client are ignored: capabilities are Tendril's tools", n))
	}
	if n := len(o.Directories); n > 0 {
		s.Log(fmt.Sprintf("%d additional directories of the client are ignored: a session has one folder", n))
	}
}

func (s *server) newSession(ctx context.Context, params json.RawMessage) (any, error) {
	var p opening
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	s.mu.Lock()
	client := s.client
	s.mu.Unlock()
	return jsonrpc.Later(func() (any, error) {
		folder, err := s.folder(ctx, p.Cwd)
		if err != nil {
			return nil, err
		}
		s.logIgnored(p)
		conversation, err := s.Sessions.Create(ctx, folder, client)
		if err != nil {
			return nil, fmt.Errorf("the session cannot be kept: %w", err)
		}
		s.add(newSession(conversation, folder))
		return sdk.NewSessionResponse{SessionId: sdk.SessionId(conversation.ID()), Modes: s.modes(conversation.Mode())}, nil
	}), nil
}

// loadSession replays a conversation, and then answers. The session is busy
// until then.
func (s *server) loadSession(ctx context.Context, r *jsonrpc.Request) (any, error) {
	var p opening
	if err := decode(r.Params, &p); err != nil {
		return nil, err
	}
	if p.SessionID == "" {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.sessionId is missing")
	}
	return jsonrpc.Later(func() (any, error) {
		folder, err := "", error(nil)
		if p.Cwd != "" {
			if folder, err = s.folder(ctx, p.Cwd); err != nil {
				return nil, err
			}
		}
		ss, err := s.open(ctx, p.SessionID)
		if err != nil {
			return nil, err
		}
		t, err := ss.begin(ctx)
		if err != nil {
			return nil, err
		}
		defer t.end()
		t.wait()
		s.logIgnored(p)
		if folder != "" {
			ss.moveTo(folder)
		}
		if err := s.replay(t.ctx, ss); err != nil {
			return nil, fmt.Errorf("the session cannot be read: %w", err)
		}
		t.over()
		r.Reply(sdk.LoadSessionResponse{Modes: s.modes(ss.currentMode())}, nil)
		return nil, nil
	}), nil
}

// open finds a session, in this process or among those that are kept.
func (s *server) open(ctx context.Context, id string) (*session, error) {
	s.opens.Lock() // two loads of one session open it once
	defer s.opens.Unlock()
	if ss, err := s.find(id); err == nil {
		return ss, nil
	}
	conversation, err := s.Sessions.Load(ctx, id)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, jsonrpc.Errorf(codeNotFound, "there is no session %.80q; session/list names those that are kept", id)
	case err != nil:
		return nil, err
	}
	ss := newSession(conversation, conversation.Folder())
	s.add(ss)
	return ss, nil
}

func (s *server) replay(ctx context.Context, ss *session) error {
	events, err := ss.conversation.Events(ctx)
	if err != nil {
		return err
	}
	ss.cost = nil
	tr := s.newTranslator(ss, true)
	if tr.raw {
		return nil
	}
	for _, e := range events {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		tr.event(ctx, e)
	}
	tr.close()
	tr.sendUsage()
	return nil
}

func (s *server) listSessions(ctx context.Context, params json.RawMessage) (any, error) {
	var p sdk.ListSessionsRequest
	if params != nil {
		if err := decode(params, &p); err != nil {
			return nil, err
		}
	}
	return jsonrpc.Later(func() (any, error) {
		var folder, before string
		if p.Cursor != nil {
			before = *p.Cursor
		}
		if p.Cwd != nil {
			var err error
			if folder, err = s.folder(ctx, *p.Cwd); err != nil {
				return nil, err
			}
		}
		page, next, err := s.Sessions.List(ctx, folder, before)
		if err != nil {
			return nil, fmt.Errorf("the sessions cannot be listed: %w", err)
		}
		out := sdk.ListSessionsResponse{Sessions: []sdk.SessionInfo{}}
		for _, info := range page {
			entry := sdk.SessionInfo{SessionId: sdk.SessionId(info.ID), Cwd: info.Folder, UpdatedAt: sdk.Ptr(info.Updated.UTC().Format(time.RFC3339))}
			if info.Title != "" {
				entry.Title = &info.Title
			}
			out.Sessions = append(out.Sessions, entry)
		}
		if next != "" {
			out.NextCursor = &next
		}
		return out, nil
	}), nil
}

// closeSession cancels what runs in a session and lets another process have it.
func (s *server) closeSession(params json.RawMessage) (any, error) {
	ss, err := s.sessionOf(params)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	delete(s.sessions, ss.conversation.ID())
	s.mu.Unlock()
	last := ss.stop()
	return jsonrpc.Later(func() (any, error) {
		if last != nil {
			<-last
		}
		return sdk.CloseSessionResponse{}, ss.conversation.Close()
	}), nil
}

// sessionOf finds the open session that params name.
func (s *server) sessionOf(params json.RawMessage) (*session, error) {
	var p struct {
		SessionID string `json:"sessionId"`
	}
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	return s.find(p.SessionID)
}

func (s *server) find(id string) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ss := s.sessions[id]; ss != nil {
		return ss, nil
	}
	return nil, notFound(id)
}

func (s *server) add(ss *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[ss.conversation.ID()] = ss
}

func notFound(id string) error {
	return jsonrpc.Errorf(codeNotFound, "there is no open session %.80q; begin one with session/new, or open a kept one with session/load", id)
}
