package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/jsonrpc"
)

// The modes of a session. A mode makes the settings stricter, never laxer.
const (
	modePolicy = "policy" // as the settings say
	modeAsk    = "ask"    // a person is asked about each new host
)

// session is an open conversation.
type session struct {
	conversation Conversation

	mu     sync.Mutex
	folder string
	agent  *agent.Agent // of folder; nil before the first prompt
	mode   string
	last   *turn // the newest one
	closed bool

	cost *float64 // of all that is known, in USD; used by the turn that has the session
}

func newSession(c Conversation, folder string) *session {
	return &session{conversation: c, folder: folder, mode: c.Mode()}
}

// turn is something that has the session for itself: a prompt or a replay.
type turn struct {
	session *session
	ctx     context.Context
	cancel  context.CancelFunc
	done    chan struct{}   // its answer was sent
	before  <-chan struct{} // that of the turn before it; nil for none
	callID  string          // of the tool call that runs

	// Of session.mu.
	cancelled bool
	finished  bool // its answer is about to be sent
}

// begin takes the session. While another turn has it, it is refused, unless that
// turn was cancelled: then it is waited for, with [turn.wait].
func (ss *session) begin(ctx context.Context) (*turn, error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.closed {
		return nil, notFound(ss.conversation.ID())
	}
	t := &turn{session: ss, done: make(chan struct{})}
	if last := ss.last; last != nil {
		if !last.finished && !last.cancelled {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "this session is busy with another prompt; wait for its answer, or cancel it with session/cancel")
		}
		t.before = last.done
	}
	t.ctx, t.cancel = agent.Cancellable(ctx)
	ss.last = t
	return t, nil
}

// wait waits for the answer of the turn before this one.
func (t *turn) wait() {
	if t.before != nil {
		<-t.before
	}
}

// over lets the next turn begin. It is called before the answer is sent, because
// the client may send its next prompt as soon as it has that.
func (t *turn) over() {
	t.session.mu.Lock()
	defer t.session.mu.Unlock()
	t.finished = true
}

// end says that the answer was sent.
func (t *turn) end() {
	t.over()
	t.cancel()
	close(t.done)
}

// interrupt cancels the turn that runs, if one does.
func (ss *session) interrupt() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if t := ss.last; t != nil && !t.finished {
		t.cancelled = true
		t.cancel()
	}
}

// stop cancels the turn that runs and lets none begin. It returns what is closed
// when the last one has ended; nil when there was none.
func (ss *session) stop() <-chan struct{} {
	ss.interrupt()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.closed = true
	if ss.last == nil {
		return nil
	}
	return ss.last.done
}

// moveTo changes the folder that the session works in.
func (ss *session) moveTo(folder string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if folder != ss.folder {
		ss.folder, ss.agent = folder, nil
	}
}

// agentOf returns the session's agent, and makes it when there is none yet. Only
// the turn that has the session calls it.
func (s *server) agentOf(ctx context.Context, ss *session) (*agent.Agent, error) {
	ss.mu.Lock()
	folder, a := ss.folder, ss.agent
	ss.mu.Unlock()
	if a != nil {
		return a, nil
	}
	a, err := s.Agent(ctx, folder)
	if err != nil {
		return nil, err
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.folder == folder {
		ss.agent = a
	}
	return a, nil
}

func (ss *session) currentMode() string {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.mode
}

// modes are what a client can choose from. Where the settings always ask, both
// come to the same.
func (s *server) modes(current string) *sdk.SessionModeState {
	policy := "Network access as the settings say: declared public hosts are allowed."
	if s.Ask() {
		policy = "Network access as the settings say: you are asked about each new host."
	}
	return &sdk.SessionModeState{
		CurrentModeId: sdk.SessionModeId(current),
		AvailableModes: []sdk.SessionMode{
			{Id: modePolicy, Name: "Policy", Description: &policy},
			{Id: modeAsk, Name: "Ask", Description: sdk.Ptr("You are asked about each new host, whatever the settings allow.")},
		},
	}
}

// setMode changes the mode from the next prompt on, and keeps it with the session.
func (s *server) setMode(ctx context.Context, params json.RawMessage) (any, error) {
	var p sdk.SetSessionModeRequest
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	ss, err := s.find(string(p.SessionId))
	if err != nil {
		return nil, err
	}
	if p.ModeId != modeAsk && p.ModeId != modePolicy {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "there is no mode %.40q; the modes are %s and %s", string(p.ModeId), modeAsk, modePolicy)
	}
	ss.mu.Lock()
	ss.mode = string(p.ModeId)
	ss.mu.Unlock()
	return jsonrpc.Later(func() (any, error) {
		if err := ss.conversation.SetMode(ctx, string(p.ModeId)); err != nil {
			return nil, fmt.Errorf("the mode holds for now, and cannot be kept: %w", err)
		}
		return sdk.SetSessionModeResponse{}, nil
	}), nil
}

// cancel ends the turn that runs. What was sent before it has been handed on
// before it, so it finds its prompt.
func (s *server) cancel(params json.RawMessage) error {
	ss, err := s.sessionOf(params)
	if err != nil {
		return err
	}
	ss.interrupt()
	return nil
}
