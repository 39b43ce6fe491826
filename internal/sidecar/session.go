package sidecar

import (
	"context"
	"errors"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/jsonrpc"
)

// session is a conversation with its agent, which is made by the first prompt.
type session struct {
	Session
	folder string
	agent  *agent.Agent
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
	s.connected(ss, false)
	return nil
}

// open begins a session, which is the current one from then on.
func (s *server) open(ctx context.Context, path string) (*session, error) {
	folder, err := s.Folder(path)
	switch {
	case err != nil && path != "":
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.workingDirectory: %v", err)
	case err != nil:
		return nil, err
	}
	kept, err := s.Create(ctx, folder)
	if err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "the session cannot be kept: %v", err)
	}
	return s.enter(kept, folder), nil
}

// enter makes a session the current one.
func (s *server) enter(kept Session, folder string) *session {
	s.current = &session{Session: kept, folder: folder}
	s.sessions[kept.ID()] = s.current
	return s.current
}

// connected says that a session is there.
func (s *server) connected(ss *session, restored bool) {
	s.update(lifecycle{"session_lifecycle", "connected", agentName, ss.ID(), restored})
}

// find is the session that a prompt names; restored when an earlier process kept
// it. A prompt that comes before any session begins one in the workspace, as in
// the original.
func (s *server) find(ctx context.Context, id string) (ss *session, restored bool, err error) {
	if id == "" || id == "current" {
		if s.current != nil {
			return s.current, false, nil
		}
		ss, err := s.open(ctx, "")
		return ss, false, err
	}
	if ss := s.sessions[id]; ss != nil {
		return ss, false, nil
	}
	kept, folder, err := s.Load(ctx, id)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, false, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "there is no session %.80q; send new_session, or name \"current\"", id)
	case err != nil:
		return nil, false, err
	}
	return s.enter(kept, folder), true, nil
}
