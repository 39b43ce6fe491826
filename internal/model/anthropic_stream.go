package model

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/tendril-agent/tendril/internal/agent"
)

// anthropicReply assembles one Messages stream.
type anthropicReply struct {
	endpoint *endpoint

	blocks map[int64]*anthropicBlock
	calls  []*pendingCall
	usage  agent.Usage
	state  progress
	why    agent.Finish
}

// anthropicBlock is a content block whose deltas are still arriving.
type anthropicBlock struct {
	kind      string
	text      joinedString // of text and thinking
	signature joinedString
	call      *pendingCall
	start     json.RawMessage // the input that came with the start of a call
}

func newAnthropicReply(e *endpoint) *anthropicReply {
	return &anthropicReply{endpoint: e, blocks: map[int64]*anthropicBlock{}}
}

// anthropicEvent is any event of the stream.
type anthropicEvent struct {
	Type    string `json:"type"`
	Index   int64  `json:"index"`
	Message struct {
		Usage anthropicUsage `json:"usage"`
	} `json:"message"`
	Usage anthropicUsage  `json:"usage"`
	Block anthropicStart  `json:"content_block"`
	Delta anthropicChange `json:"delta"`
}

type anthropicStart struct {
	Type      string          `json:"type"`
	Text      json.RawMessage `json:"text"`
	Thinking  json.RawMessage `json:"thinking"`
	Signature json.RawMessage `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
}

type anthropicChange struct {
	Type        string          `json:"type"`
	Text        json.RawMessage `json:"text"`
	Thinking    json.RawMessage `json:"thinking"`
	Signature   json.RawMessage `json:"signature"`
	PartialJSON json.RawMessage `json:"partial_json"`
	StopReason  string          `json:"stop_reason"`
}

type anthropicUsage struct {
	Input      tokens `json:"input_tokens"`
	Output     tokens `json:"output_tokens"`
	CacheRead  tokens `json:"cache_read_input_tokens"`
	CacheWrite tokens `json:"cache_creation_input_tokens"`
}

func (r *anthropicReply) progress() progress { return r.state }

func (r *anthropicReply) add(ev event) ([]agent.Part, error) {
	data := bytes.TrimSpace(ev.data)
	if len(data) == 0 || string(data) == "[DONE]" { // the latter comes from proxies
		return nil, nil
	}
	if isErrorFrame(ev) {
		return r.flush(), r.endpoint.inStream(data)
	}
	var e anthropicEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return r.flush(), r.endpoint.broken("the reply holds an event that is no message: %s", r.endpoint.clean(string(data)))
	}
	if e.Type == "" {
		e.Type = ev.name
	}
	return r.event(e), nil
}

// event handles one event; unknown types are left out.
func (r *anthropicReply) event(e anthropicEvent) []agent.Part {
	switch e.Type {
	case "message_start":
		return r.count(e.Message.Usage)
	case "content_block_start":
		return r.start(e.Index, e.Block)
	case "content_block_delta":
		return r.change(e.Index, e.Delta)
	case "content_block_stop":
		return r.stop(e.Index)
	case "message_delta":
		r.finished(e.Delta.StopReason)
		return r.count(e.Usage)
	case "message_stop":
		r.state = replyClosed
	}
	return nil
}

func (r *anthropicReply) start(index int64, s anthropicStart) []agent.Part {
	parts := r.stop(index)
	b := &anthropicBlock{kind: s.Type}
	r.blocks[index] = b
	switch s.Type {
	case "redacted_thinking":
		return append(parts, agent.Part{Reasoning: &agent.Block{Type: agent.BlockReasoning, Text: s.Data, Redacted: true}})
	case "tool_use":
		b.call = &pendingCall{id: s.ID, name: s.Name}
		b.start = s.Input
		r.calls = append(r.calls, b.call)
	case "text":
		return append(parts, b.say(s.Text)...)
	case "thinking":
		b.signature.add(s.Signature)
		return append(parts, b.think(s.Thinking)...)
	}
	return parts
}

func (r *anthropicReply) change(index int64, d anthropicChange) []agent.Part {
	b := r.blocks[index]
	if b == nil {
		if d.Type != "text_delta" {
			return nil
		}
		b = &anthropicBlock{kind: "text"} // a proxy left the start out
		r.blocks[index] = b
	}
	switch {
	case d.Type == "text_delta":
		return b.say(d.Text)
	case d.Type == "thinking_delta":
		return b.think(d.Thinking)
	case d.Type == "signature_delta":
		b.signature.add(d.Signature)
	case d.Type == "input_json_delta" && b.call != nil:
		b.call.args.add(d.PartialJSON)
	}
	return nil
}

func (b *anthropicBlock) say(raw json.RawMessage) []agent.Part {
	if isString(raw) {
		b.text.add(raw)
	}
	if text := b.text.take(); text != "" {
		return []agent.Part{{Text: text}}
	}
	return nil
}

func (b *anthropicBlock) think(raw json.RawMessage) []agent.Part {
	if isString(raw) {
		b.text.add(raw)
	}
	if text := b.text.take(); text != "" {
		return []agent.Part{{Reasoning: &agent.Block{Type: agent.BlockReasoning, Text: text}}}
	}
	return nil
}

// stop ends a block: held back text comes out, thinking is signed, and a call
// without deltas takes the input of its start.
func (r *anthropicReply) stop(index int64) []agent.Part {
	b := r.blocks[index]
	if b == nil {
		return nil
	}
	delete(r.blocks, index)
	rest, signature := b.text.rest(), b.signature.rest()
	switch {
	case b.call != nil:
		if b.call.args.blank() && string(b.start) != "{}" {
			b.call.args = joinedString{}
			b.call.args.add(b.start)
		}
	case b.kind == "thinking" && (rest != "" || signature != ""):
		return []agent.Part{{Reasoning: &agent.Block{Type: agent.BlockReasoning, Text: rest, Signature: signature}}}
	case rest != "":
		return []agent.Part{{Text: rest}}
	}
	return nil
}

func (r *anthropicReply) finished(reason string) {
	switch reason {
	case "":
	case "max_tokens", "model_context_window_exceeded":
		r.why = agent.FinishMaxTokens
	case "refusal":
		r.why = agent.FinishRefusal
	default: // end_turn, tool_use and unknown words: the calls decide
		r.why = agent.FinishStop
	}
}

// count takes over figures, which are cumulative and so never shrink.
func (r *anthropicReply) count(u anthropicUsage) []agent.Part {
	sum := agent.Usage{
		Input:      grown(r.usage.Input, u.Input),
		Output:     grown(r.usage.Output, u.Output),
		CacheRead:  grown(r.usage.CacheRead, u.CacheRead),
		CacheWrite: grown(r.usage.CacheWrite, u.CacheWrite),
	}
	if sum == r.usage {
		return nil
	}
	r.usage = sum
	return []agent.Part{usagePart(sum)}
}

// flush ends the blocks that are still open, in order.
func (r *anthropicReply) flush() []agent.Part {
	var parts []agent.Part
	for _, index := range slices.Sorted(maps.Keys(r.blocks)) {
		parts = append(parts, r.stop(index)...)
	}
	return parts
}

func (r *anthropicReply) finish() []agent.Part {
	why := r.why
	if why == "" {
		why = agent.FinishStop
	}
	return append(r.flush(), finishParts(r.calls, why)...)
}
