package model

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tendril-agent/tendril/internal/agent"
)

// bedrockReply assembles one ConverseStream.
type bedrockReply struct {
	endpoint *endpoint

	blocks  map[int64]*bedrockOpen
	calls   []*pendingCall
	stopped bool // the message is whole
	counted bool // and its figures came
	why     agent.Finish
}

// bedrockOpen is a content block whose deltas are still arriving.
type bedrockOpen struct {
	text      joinedString
	thought   joinedString
	signature joinedString
	redacted  []byte
	call      *pendingCall
}

func newBedrockReply(e *endpoint) *bedrockReply {
	return &bedrockReply{endpoint: e, blocks: map[int64]*bedrockOpen{}}
}

// bedrockEvent is any event of the stream.
type bedrockEvent struct {
	Index int64 `json:"contentBlockIndex"`
	Start struct {
		Use *struct {
			ID   string `json:"toolUseId"`
			Name string `json:"name"`
		} `json:"toolUse"`
	} `json:"start"`
	Delta struct {
		Text json.RawMessage `json:"text"`
		Use  struct {
			Input json.RawMessage `json:"input"`
		} `json:"toolUse"`
		Reasoning struct {
			Text      json.RawMessage `json:"text"`
			Signature json.RawMessage `json:"signature"`
			Redacted  string          `json:"redactedContent"`
		} `json:"reasoningContent"`
	} `json:"delta"`
	StopReason string        `json:"stopReason"`
	Usage      *bedrockUsage `json:"usage"`
}

// bedrockUsage counts; the input is without what the cache read and wrote.
type bedrockUsage struct {
	Input      tokens `json:"inputTokens"`
	Output     tokens `json:"outputTokens"`
	CacheRead  tokens `json:"cacheReadInputTokens"`
	CacheWrite tokens `json:"cacheWriteInputTokens"`
}

func (r *bedrockReply) progress() progress {
	switch {
	case r.stopped && r.counted:
		return replyClosed
	case r.stopped:
		return replyWhole
	}
	return replyOpen
}

func (r *bedrockReply) add(ev event) ([]agent.Part, error) {
	if ev.name == "error" {
		return r.flush(), r.endpoint.inStream(ev.data)
	}
	var e bedrockEvent
	if err := json.Unmarshal(ev.data, &e); err != nil {
		return r.flush(), r.endpoint.broken("the reply holds an event that is no message: %s", r.endpoint.clean(string(ev.data)))
	}
	switch ev.name { // unknown names are left out
	case "contentBlockStart":
		return r.start(e), nil
	case "contentBlockDelta":
		return r.change(e), nil
	case "contentBlockStop":
		return r.stop(e.Index), nil
	case "messageStop":
		r.stopped = true
		return r.finished(e.StopReason)
	case "metadata":
		return r.count(e.Usage), nil
	}
	return nil, nil
}

// start begins a call; other blocks begin with their first delta.
func (r *bedrockReply) start(e bedrockEvent) []agent.Part {
	parts := r.stop(e.Index)
	b := &bedrockOpen{}
	if use := e.Start.Use; use != nil {
		b.call = &pendingCall{id: use.ID, name: use.Name}
		r.calls = append(r.calls, b.call)
	}
	r.blocks[e.Index] = b
	return parts
}

func (r *bedrockReply) change(e bedrockEvent) []agent.Part {
	b := r.blocks[e.Index]
	if b == nil {
		b = &bedrockOpen{}
		r.blocks[e.Index] = b
	}
	thought := e.Delta.Reasoning
	if b.call != nil {
		b.call.args.add(e.Delta.Use.Input)
		return nil
	}
	if isString(e.Delta.Text) {
		b.text.add(e.Delta.Text)
	}
	if isString(thought.Text) {
		b.thought.add(thought.Text)
	}
	if isString(thought.Signature) {
		b.signature.add(thought.Signature)
	}
	if raw, err := base64.StdEncoding.DecodeString(thought.Redacted); err == nil {
		b.redacted = append(b.redacted, raw...)
	}
	var parts []agent.Part
	if text := b.thought.take(); text != "" {
		parts = append(parts, agent.Part{Reasoning: &agent.Block{Type: agent.BlockReasoning, Text: text}})
	}
	if text := b.text.take(); text != "" {
		parts = append(parts, agent.Part{Text: text})
	}
	return parts
}

// stop ends a block: held back text comes out, and reasoning is signed.
func (r *bedrockReply) stop(index int64) []agent.Part {
	b := r.blocks[index]
	if b == nil {
		return nil
	}
	delete(r.blocks, index)
	var parts []agent.Part
	if text, signature := b.thought.rest(), b.signature.rest(); text != "" || signature != "" {
		parts = append(parts, agent.Part{Reasoning: &agent.Block{Type: agent.BlockReasoning, Text: text, Signature: signature}})
	}
	if len(b.redacted) > 0 {
		data := base64.StdEncoding.EncodeToString(b.redacted)
		parts = append(parts, agent.Part{Reasoning: &agent.Block{Type: agent.BlockReasoning, Text: data, Redacted: true}})
	}
	if text := b.text.rest(); text != "" {
		parts = append(parts, agent.Part{Text: text})
	}
	return parts
}

// finished takes the reason for the end. A call that the provider itself could
// not read is a failure when nothing of it came; what came is judged as any call.
func (r *bedrockReply) finished(reason string) ([]agent.Part, error) {
	switch {
	case reason == "max_tokens" || reason == "model_context_window_exceeded":
		r.why = agent.FinishMaxTokens
	case reason == "guardrail_intervened" || reason == "content_filtered":
		r.why = agent.FinishRefusal
	case strings.HasPrefix(reason, "malformed_") && len(r.calls) == 0:
		return r.flush(), r.endpoint.broken("the model wrote something that Bedrock could not read: %s", r.endpoint.clean(reason))
	default: // end_turn, tool_use, stop_sequence and unknown words: the calls decide
		r.why = agent.FinishStop
	}
	return nil, nil
}

func (r *bedrockReply) count(u *bedrockUsage) []agent.Part {
	r.counted = true
	if u == nil {
		return nil
	}
	return []agent.Part{usagePart(agent.Usage{
		Input: int64(u.Input), Output: int64(u.Output), CacheRead: int64(u.CacheRead), CacheWrite: int64(u.CacheWrite),
	})}
}

// flush ends the blocks that are still open, in order.
func (r *bedrockReply) flush() []agent.Part {
	var parts []agent.Part
	for _, index := range slices.Sorted(maps.Keys(r.blocks)) {
		parts = append(parts, r.stop(index)...)
	}
	return parts
}

func (r *bedrockReply) finish() []agent.Part {
	return append(r.flush(), finishParts(r.calls, r.why)...)
}
