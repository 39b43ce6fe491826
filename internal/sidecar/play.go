package sidecar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tendril-agent/tendril/internal/agent"
)

// The updates, with the fields of the original in its order.
type (
	lifecycle struct {
		Update   string `json:"sessionUpdate"`
		Stage    string `json:"stage"`
		Agent    string `json:"agent_info"`
		Session  string `json:"acp_session_id"`
		Restored bool   `json:"is_restored"`
	}
	textContent struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	messageChunk struct {
		Update  string      `json:"sessionUpdate"`
		Text    string      `json:"text"`
		Content textContent `json:"content"`
	}
	toolCall struct {
		Update string          `json:"sessionUpdate"`
		ID     string          `json:"toolCallId"`
		Title  string          `json:"title"`
		Kind   string          `json:"kind"`
		Input  json.RawMessage `json:"input"`
	}
	toolCallUpdate struct {
		Update string       `json:"sessionUpdate"`
		ID     string       `json:"toolCallId"`
		Status agent.Status `json:"status"`
		Output string       `json:"rawOutput"` // JSON: a list of blocks with a text
		Title  string       `json:"title"`
	}
	// tokens are those of a turn. A cost that is not known is 0: the dialect has
	// no word for it.
	tokens struct {
		Input      int64 `json:"input_tokens"`
		Output     int64 `json:"output_tokens"`
		CacheWrite int64 `json:"cache_creation_tokens"`
		CacheRead  int64 `json:"cache_read_tokens"`
		Total      int64 `json:"total_tokens"`
		DurationMS int64 `json:"duration_ms"`
	}
	messageUsage struct {
		Update    string `json:"sessionUpdate"`
		MessageID string `json:"message_id"`
		tokens
	}
	queryResult struct {
		Update string  `json:"sessionUpdate"`
		Cost   float64 `json:"cost"`
		tokens
		ContextTokens int64 `json:"context_tokens"`
		ContextLimit  int64 `json:"context_limit"`
	}
	failure struct {
		Update  string `json:"sessionUpdate"`
		Message string `json:"message"`
	}
	promptComplete struct {
		Update string `json:"sessionUpdate"`
		Stop   string `json:"stop_reason"`
	}
)

// update sends an update. That it fails means that the connection is over, which
// ends the turn by its context.
func (s *server) update(u any) {
	_ = s.conn.Notify("session/update", struct {
		Update any `json:"update"`
	}{u})
}

// unknownWindow is what the original says of every model that it does not know.
const unknownWindow = 128_000

// play runs a turn and sends its updates but the last one, which it returns.
func (s *server) play(ctx context.Context, ss *session, text string) promptComplete {
	if strings.TrimSpace(text) == "" {
		s.update(failure{"error", "the prompt is empty; write what you want to be done"})
		return complete(agent.StopError)
	}
	if ss.agent == nil {
		a, err := s.Agent(ctx, ss.folder)
		if err != nil {
			return s.finish(ss, failed(ctx, err), nil)
		}
		ss.agent = a
	}
	var last agent.Event
	var usage *agent.Event
	for e := range ss.agent.Run(ctx, agent.Session{ID: ss.ID(), Log: ss}, []agent.Block{agent.Text(text)}) {
		if e.Type == agent.UsageReported {
			usage = &e
		}
		s.event(e)
		last = e
	}
	return s.finish(ss, last, usage)
}

// failed is the end of a turn that could not begin.
func failed(ctx context.Context, err error) agent.Event {
	e := agent.Event{Type: agent.TurnFinished, Stop: agent.StopError, Usage: &agent.Usage{}, Error: &agent.ErrorInfo{Message: err.Error()}}
	var m *agent.ModelError
	switch {
	case ctx.Err() != nil:
		e.Stop, e.Error = agent.StopCancelled, nil
	case errors.As(err, &m):
		e.Error.Message, e.Error.Hint = m.Message, m.Hint
	}
	return e
}

func (s *server) event(e agent.Event) {
	switch e.Type {
	case agent.TurnStarted, agent.Retry:
		if e.Retry != nil {
			e.Note = fmt.Sprintf("%s; trying again in %.1f s", e.Retry.Message, float64(e.Retry.WaitMS)/1000)
		}
		if e.Note != "" {
			s.Log(e.Note)
		}
	case agent.TextDelta:
		s.update(messageChunk{"agent_message_chunk", e.Text, textContent{"text", e.Text}})
	case agent.ToolCallStarted:
		kind := "other"
		if e.Tool == agent.ExecuteTool {
			kind = "execute"
		}
		s.update(toolCall{"tool_call", e.CallID, e.Tool, kind, e.Call.Input})
	case agent.ToolCallFinished:
		output, _ := json.Marshal([]map[string]string{{"text": e.Result.Text}}) // strings always encode
		s.update(toolCallUpdate{"tool_call_update", e.CallID, e.Result.Status, string(output), e.Tool})
	}
}

// finish sends what stands before the end of a turn, in the order of the
// original's written contract.
func (s *server) finish(ss *session, e agent.Event, last *agent.Event) promptComplete {
	if message := reason(e); message != "" {
		s.update(failure{"error", message})
	}
	u := *e.Usage
	used := tokens{u.Input, u.Output, u.CacheWrite, u.CacheRead, u.Input + u.Output + u.CacheWrite + u.CacheRead, e.DurationMS}
	s.update(messageUsage{"message_usage", fmt.Sprintf("%s-%d", ss.ID(), e.Turn), used})
	result := queryResult{Update: "query_result", tokens: used, ContextLimit: unknownWindow}
	if e.CostUSD != nil {
		result.Cost = *e.CostUSD
	}
	if last != nil {
		result.ContextTokens = last.ContextTokens
		if last.ContextWindow > 0 {
			result.ContextLimit = last.ContextWindow
		}
	}
	s.update(result)
	return complete(e.Stop)
}

// reason says why a turn ended early, "" when it did not or the person knows.
func reason(e agent.Event) string {
	switch e.Stop {
	case agent.StopError:
		if e.Error.Hint != "" {
			return e.Error.Message + "; " + e.Error.Hint
		}
		return e.Error.Message
	case agent.StopMaxTokens:
		return "the model's reply was cut at its token limit"
	case agent.StopMaxTurns:
		return "the limit of model calls for a turn is reached (agent.maxTurns)"
	case agent.StopTimeout:
		return "the time for a turn is over (agent.timeoutMs)"
	case agent.StopBudget:
		return fmt.Sprintf("the %s has cost what it may (agent.budget.%sUSD)", e.Budget, e.Budget)
	case agent.StopLoop:
		return "the model repeated the same call again and again"
	case agent.StopRefusal:
		return "the model refused to answer"
	}
	return ""
}

// complete is the end of a turn in the dialect's words.
func complete(stop agent.StopReason) promptComplete {
	word := string(stop)
	switch stop {
	case agent.StopCancelled, agent.StopInterrupted:
		word = "interrupted"
	case agent.StopTimeout, agent.StopBudget, agent.StopLoop:
		word = string(agent.StopMaxTurns)
	case agent.StopRefusal:
		word = string(agent.StopEndTurn)
	}
	return promptComplete{"prompt_complete", word}
}
