package acp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/jsonrpc"
)

// translator tells a client the events of a session, live or replayed. It is
// used by one goroutine.
type translator struct {
	server  *server
	session *session
	id      string
	replay  bool
	raw     bool              // the client wants events
	calls   map[string]*call  // that run
	kept    map[string]string // the source of each capability, as far as the session tells

	// Of a replay: what was shown of a reply that may never have become whole.
	text, thought strings.Builder

	order []string    // of the ids in calls
	used  agent.Event // the last usage that was reported
}

func (s *server) newTranslator(ss *session, replay bool) *translator {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &translator{server: s, session: ss, id: ss.conversation.ID(), replay: replay, raw: s.events, calls: map[string]*call{}, kept: map[string]string{}}
}

func (t *translator) send(u sdk.SessionUpdate) { t.server.update(t.id, u) }

func (t *translator) event(ctx context.Context, e agent.Event) {
	if t.raw {
		t.pass(e)
		return
	}
	switch e.Type {
	case agent.TurnStarted:
		t.started(e)
	case agent.TextDelta, agent.ReasoningDelta:
		t.delta(e)
	case agent.AssistantMessage:
		t.message(e)
	case agent.ToolCallStarted:
		t.callStarted(ctx, e)
	case agent.ToolCallProgress:
		t.callProgress(e)
	case agent.ToolCallFinished:
		t.callFinished(e)
	case agent.UsageReported:
		t.usage(e)
	case agent.Retry:
		t.notice("retry", fmt.Sprintf("%s; trying again in %.1f s", e.Retry.Message, float64(e.Retry.WaitMS)/1000))
	case agent.ContextShortened:
		t.notice("context_shortened", fmt.Sprintf("%d older results are shown to the model in short from now on", len(e.Shortened.Calls)))
	case agent.TurnFinished:
		t.close()
	}
}

// pass hands on an event as it is. A tool starts when that is written.
func (t *translator) pass(e agent.Event) {
	err := t.server.conn.Notify(methodEvent, e)
	if err == nil && e.Type == agent.ToolCallStarted {
		err = t.server.conn.Sync()
	}
	if err != nil && !errors.Is(err, jsonrpc.ErrClosed) {
		t.server.Log(err.Error())
	}
}

// started shows the user's message when it is replayed: a client that sent it
// has it.
func (t *translator) started(e agent.Event) {
	t.close()
	if e.Note != "" {
		t.notice("turn", e.Note)
	}
	if !t.replay || e.Message == nil {
		return
	}
	for _, b := range e.Message.Blocks {
		if b.Type == agent.BlockText && b.Text != "" {
			t.send(sdk.UpdateUserMessageText(b.Text))
		}
	}
}

// delta sends a piece of a reply. In a replay the whole reply follows, unless it
// was interrupted.
func (t *translator) delta(e agent.Event) {
	switch {
	case t.replay && e.Type == agent.TextDelta:
		t.text.WriteString(e.Text)
	case t.replay:
		t.thought.WriteString(e.Text)
	case e.Type == agent.TextDelta:
		t.send(sdk.UpdateAgentMessageText(e.Text))
	default:
		t.send(sdk.UpdateAgentThoughtText(e.Text))
	}
}

// message sends a whole reply of a replay.
func (t *translator) message(e agent.Event) {
	if !t.replay || e.Message == nil {
		return
	}
	t.text.Reset()
	t.thought.Reset()
	for _, b := range e.Message.Blocks {
		switch {
		case b.Text == "" || b.Redacted:
		case b.Type == agent.BlockText:
			t.send(sdk.UpdateAgentMessageText(b.Text))
		case b.Type == agent.BlockReasoning:
			t.send(sdk.UpdateAgentThoughtText(b.Text))
		}
	}
}

// close ends what is open at the end of a turn, or of what is known of it: a
// reply that was interrupted is shown as far as it came, and a call that never
// finished as failed.
func (t *translator) close() {
	if t.thought.Len() > 0 {
		t.send(sdk.UpdateAgentThoughtText(t.thought.String()))
	}
	if t.text.Len() > 0 {
		t.send(sdk.UpdateAgentMessageText(t.text.String()))
	}
	t.text.Reset()
	t.thought.Reset()
	for _, id := range t.order {
		if c := t.calls[id]; c != nil {
			t.finish(id, sdk.ToolCallStatusFailed, content("interrupted: this call did not finish, and effects it already made may remain; it was not run again"), nil)
		}
	}
	t.order = nil
}

// usage tells how full the model's window is and what the session has cost; in a
// replay once, at its end.
func (t *translator) usage(e agent.Event) {
	if e.CostUSD != nil {
		sum := *e.CostUSD
		if t.session.cost != nil {
			sum += *t.session.cost
		}
		t.session.cost = &sum
	}
	t.used = e
	if !t.replay {
		t.sendUsage()
	}
}

// sendUsage sends the last usage. The protocol has no place for a window that is
// not known: then the answer to the prompt tells the usage alone.
func (t *translator) sendUsage() {
	if t.used.ContextWindow <= 0 {
		return
	}
	u := sdk.SessionUsageUpdate{
		Size: int(t.used.ContextWindow), Used: int(t.used.ContextTokens), Meta: meta(map[string]any{"usage": t.used.Usage}),
	}
	if t.session.cost != nil {
		u.Cost = &sdk.Cost{Amount: *t.session.cost, Currency: "USD"}
	}
	t.send(sdk.SessionUpdate{UsageUpdate: &u})
}

// notice tells what the protocol has no update for, in a method of ours.
func (t *translator) notice(kind, message string) {
	if t.replay {
		return
	}
	err := t.server.conn.Notify(methodNotice, map[string]string{"sessionId": t.id, "kind": kind, "message": message})
	if err != nil {
		t.server.Log(message)
	}
}
