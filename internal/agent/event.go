package agent

import (
	"encoding/json"
	"time"
)

// EventType names the kind of an [Event].
type EventType string

// The events of a turn, in the order in which they can appear. TurnFinished is
// the only terminal one: exactly one, always last.
const (
	TurnStarted      EventType = "turn_started"
	TextDelta        EventType = "text_delta"
	ReasoningDelta   EventType = "reasoning_delta"
	AssistantMessage EventType = "assistant_message" // one whole reply, as history keeps it
	UsageReported    EventType = "usage"             // of one model call
	ToolCallStarted  EventType = "tool_call_started"
	ToolCallProgress EventType = "tool_call_progress"
	ToolCallFinished EventType = "tool_call_finished"
	Retry            EventType = "retry"
	ContextShortened EventType = "context_shortened" // before a model call
	TurnFinished     EventType = "turn_finished"
)

// Event is something that happened in a turn. Which fields are set follows
// from Type. It is stored before it is shown, and is one line of --json.
type Event struct {
	Type    EventType `json:"type"`
	Seq     int64     `json:"seq"` // counts within the session, from 1
	Time    time.Time `json:"time"`
	Session string    `json:"session"`
	Turn    int       `json:"turn"` // counts within the session, from 1

	// Text is of TextDelta, ReasoningDelta.
	Text string `json:"text,omitempty"`
	// Model is "provider/model", of TurnStarted.
	Model string `json:"model,omitempty"`
	// Message is the user's (TurnStarted) or the assistant's (AssistantMessage).
	Message *Message `json:"message,omitempty"`
	// Call is of ToolCallStarted. CallID and Tool name it in the later two.
	// Note says what stands out about the call, or the turn.
	Call   *Call  `json:"call,omitempty"`
	Note   string `json:"note,omitempty"`
	CallID string `json:"call_id,omitempty"`
	Tool   string `json:"tool,omitempty"`

	Progress *Progress  `json:"progress,omitempty"` // ToolCallProgress
	Result   *Result    `json:"result,omitempty"`   // ToolCallFinished
	Usage    *Usage     `json:"usage,omitempty"`    // UsageReported; the sum in TurnFinished
	Retry    *RetryInfo `json:"retry,omitempty"`    // Retry

	// Of UsageReported and TurnFinished. CostUSD is nil when nothing of it is
	// known. CostPartial says that it is the least, or, without CostUSD, that there
	// may be one: some call came without figures, or has no known price.
	CostUSD     *float64 `json:"cost_usd,omitempty"`
	CostPartial bool     `json:"cost_partial,omitempty"`
	// ContextTokens is how much of ContextWindow the model call used; of
	// UsageReported. The window is 0 when unknown.
	ContextTokens int64 `json:"context_tokens,omitempty"`
	ContextWindow int64 `json:"context_window,omitempty"`

	Shortened *Shortened `json:"shortened,omitempty"` // ContextShortened

	// Of TurnFinished.
	Stop       StopReason `json:"stop_reason,omitempty"`
	Budget     string     `json:"budget,omitempty"` // of StopBudget: turn, session, day
	Error      *ErrorInfo `json:"error,omitempty"`
	ModelCalls int        `json:"model_calls,omitempty"`
	DurationMS int64      `json:"duration_ms,omitempty"` // ToolCallFinished, TurnFinished
}

// StopReason is why a turn ended.
type StopReason string

// The stop reasons.
const (
	StopEndTurn   StopReason = "end_turn"
	StopCancelled StopReason = "cancelled"
	StopMaxTurns  StopReason = "max_turns"
	StopTimeout   StopReason = "timeout"
	StopBudget    StopReason = "budget"
	StopLoop      StopReason = "loop"
	StopMaxTokens StopReason = "max_tokens"
	StopRefusal   StopReason = "refusal"
	StopError     StopReason = "error"
	// StopInterrupted is of a turn whose process ended in the middle of it.
	StopInterrupted StopReason = "interrupted"
)

// Status says how a tool call ended.
type Status string

// The two outcomes of a tool call.
const (
	Completed Status = "completed"
	Failed    Status = "failed"
)

// Result is the outcome of a tool call.
type Result struct {
	Status Status `json:"status"`
	// Text is what the model reads.
	Text string `json:"text"`
	// Detail is for the person and for programs, and depends on the tool:
	// a capability.Listing, a capability.Admission, an Execution, or a
	// capability.Refusal.
	Detail json.RawMessage `json:"detail,omitempty"`
}

// Progress is news from a tool that still runs: a step of the gate, or a line
// of live output.
type Progress struct {
	Step   string `json:"step,omitempty"`
	State  string `json:"state,omitempty"` // running, passed, warned, failed, skipped
	Note   string `json:"note,omitempty"`
	MS     int64  `json:"ms,omitempty"`
	Stream string `json:"stream,omitempty"` // stdout, stderr
	Line   string `json:"line,omitempty"`
}

// RetryInfo says why the same request is sent again, and when.
type RetryInfo struct {
	Attempt int       `json:"attempt"` // of the retry, from 1
	WaitMS  int64     `json:"wait_ms"`
	Kind    ErrorKind `json:"kind"`
	Message string    `json:"message"`
}

// Shortened says which results the model sees shortened from now on. Other
// events keep them whole.
type Shortened struct {
	Reason string   `json:"reason"` // "near_window" or "overflow"
	Calls  []string `json:"calls"`  // the ids of the calls
	Keep   int      `json:"keep"`   // bytes that stay of each
	Bytes  int      `json:"bytes"`  // left out in all
}

// ErrorInfo is an error as events carry it.
type ErrorInfo struct {
	Kind    string `json:"kind"` // an ErrorKind, or "internal", "store"
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}
