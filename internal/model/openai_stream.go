package model

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tendril-agent/tendril/internal/agent"
)

// openAIReply assembles one Chat Completions stream.
type openAIReply struct {
	endpoint *endpoint

	text      joinedString
	reasoning joinedString
	field     string // the field that reasoning came in, until it is signed off
	calls     []*pendingCall
	state     progress
	why       agent.Finish
	refused   bool
}

// chunk is one event. Fields that servers send in several shapes stay raw.
type chunk struct {
	Choices []choice     `json:"choices"`
	Usage   *openAIUsage `json:"usage"`
}

type choice struct {
	Index        int64  `json:"index"`
	Delta        delta  `json:"delta"`
	FinishReason string `json:"finish_reason"`
}

type delta struct {
	Content          json.RawMessage `json:"content"`
	Refusal          json.RawMessage `json:"refusal"`
	ReasoningContent json.RawMessage `json:"reasoning_content"`
	Reasoning        json.RawMessage `json:"reasoning"`
	ToolCalls        []callDelta     `json:"tool_calls"`
}

type callDelta struct {
	Index    *int64 `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
	// Extra is Gemini's signature of the call.
	Extra json.RawMessage `json:"extra_content"`
}

type openAIUsage struct {
	Prompt     tokens `json:"prompt_tokens"`
	Completion tokens `json:"completion_tokens"`
	Details    struct {
		Cached tokens `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func (r *openAIReply) progress() progress { return r.state }

func (r *openAIReply) add(ev event) ([]agent.Part, error) {
	data := bytes.TrimSpace(ev.data)
	switch {
	case len(data) == 0:
		return nil, nil
	case string(data) == "[DONE]":
		r.state = replyClosed
		return nil, nil
	case isErrorFrame(ev):
		return r.flush(), r.endpoint.inStream(data)
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return r.flush(), r.endpoint.broken("the reply holds an event that is no chat completion: %s", r.endpoint.clean(string(data)))
	}
	var parts []agent.Part
	for _, choice := range c.Choices {
		if choice.Index == 0 {
			if said := r.delta(choice.Delta); parts == nil {
				parts = said
			} else {
				parts = append(parts, said...)
			}
			if choice.FinishReason == "error" {
				return append(parts, r.flush()...), r.endpoint.errorf(agent.ErrOverloaded, "try again later", "the server failed in the middle of the reply")
			}
			r.finished(choice.FinishReason)
		}
	}
	if c.Usage != nil {
		parts = append(parts, counted(*c.Usage))
	}
	return parts, nil
}

func (r *openAIReply) delta(d delta) []agent.Part {
	var parts []agent.Part
	parts = append(parts, r.think(reasoningContent, d.ReasoningContent)...)
	if d.ReasoningContent == nil || string(d.ReasoningContent) == "null" {
		parts = append(parts, r.think(reasoningPlain, d.Reasoning)...)
	}
	if isString(d.Content) {
		r.text.add(d.Content)
	} else {
		said, thought := contentPieces(d.Content)
		for _, raw := range thought {
			parts = append(parts, r.think(reasoningParts, raw)...)
		}
		for _, raw := range said {
			r.text.add(raw)
		}
	}
	if isString(d.Refusal) {
		r.text.add(d.Refusal)
	}
	r.refused = r.refused || isString(d.Refusal) && string(d.Refusal) != `""`
	if text := r.text.take(); text != "" {
		parts = append(parts, r.signOff()...)
		parts = append(parts, agent.Part{Text: text})
	}
	for position, c := range d.ToolCalls {
		r.call(int64(position), c)
	}
	return parts
}

// contentPieces returns the strings of a content: one, or those of a list of
// parts, which are text, or thinking that is itself a list of parts of text.
func contentPieces(content json.RawMessage) (said, thought []json.RawMessage) {
	if isString(content) {
		return []json.RawMessage{content}, nil
	}
	var parts []struct {
		Type     string          `json:"type"`
		Text     json.RawMessage `json:"text"`
		Thinking json.RawMessage `json:"thinking"`
	}
	if len(content) == 0 || content[0] != '[' || json.Unmarshal(content, &parts) != nil {
		return nil, nil
	}
	for _, p := range parts {
		switch {
		case p.Type == "text" && isString(p.Text):
			said = append(said, p.Text)
		case p.Type == "thinking":
			inner, _ := contentPieces(p.Thinking)
			thought = append(thought, inner...)
		}
	}
	return said, thought
}

func isString(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '"' }

func (r *openAIReply) think(field string, raw json.RawMessage) []agent.Part {
	if !isString(raw) {
		return nil
	}
	r.reasoning.add(raw)
	text := r.reasoning.take()
	if text == "" {
		return nil
	}
	r.field = field
	return []agent.Part{{Reasoning: &agent.Block{Type: agent.BlockReasoning, Text: text}}}
}

// signOff ends the reasoning so far with the name of the field it came in.
func (r *openAIReply) signOff() []agent.Part {
	if r.field == "" {
		return nil
	}
	part := agent.Part{Reasoning: &agent.Block{Type: agent.BlockReasoning, Text: r.reasoning.rest(), Signature: r.field}}
	r.field = ""
	return []agent.Part{part}
}

// call adds a piece of a call. A call is known by its id, else by its index,
// else by its position in the array; an id that is new where another call is
// starts a new one.
func (r *openAIReply) call(position int64, c callDelta) {
	p := r.find(position, c)
	if p == nil {
		p = &pendingCall{index: position}
		if c.Index != nil {
			p.index, p.indexed = *c.Index, true
		}
		r.calls = append(r.calls, p)
	}
	if c.ID != "" {
		p.id = c.ID
	}
	if c.Function.Name != "" {
		p.name = c.Function.Name // servers repeat it: never appended
	}
	if isObject(string(c.Extra)) {
		p.signature = string(c.Extra)
	}
	p.args.add(c.Function.Arguments)
}

// find returns the latest call that c belongs to, or nil.
func (r *openAIReply) find(position int64, c callDelta) *pendingCall {
	index := position
	if c.Index != nil {
		index = *c.Index
	}
	for i := len(r.calls) - 1; i >= 0; i-- {
		p := r.calls[i]
		switch {
		case c.ID != "" && p.id == c.ID && (c.Index == nil || !p.indexed || p.index == index):
			return p
		case p.index != index || c.ID != "" && p.id != "":
			continue
		case (c.ID == "" || p.id == "") && c.Function.Name != "" && p.closedBefore(c.Function.Arguments):
			return nil
		}
		return p
	}
	return nil
}

// closedBefore reports whether more cannot belong to p: p has a whole object,
// and something visible comes after it.
func (p *pendingCall) closedBefore(more json.RawMessage) bool {
	var next joinedString
	next.add(more)
	return !next.blank() && isObject(strings.TrimSpace(p.args.text()))
}

func (r *openAIReply) finished(reason string) {
	if reason == "" {
		return
	}
	r.state = replyWhole
	switch reason {
	case "length":
		r.why = agent.FinishMaxTokens
	case "content_filter":
		r.why = agent.FinishRefusal
	default: // the calls decide: servers say "stop" with them, and invent words
		r.why = agent.FinishStop
	}
}

// counted takes what the cache gave out of the prompt, which includes it.
func counted(u openAIUsage) agent.Part {
	input := max(u.Prompt-u.Details.Cached, 0)
	if u.Prompt < 0 {
		input = noCount
	}
	return usagePart(agent.Usage{Input: int64(input), Output: int64(u.Completion), CacheRead: int64(u.Details.Cached)})
}

// flush returns what is held back.
func (r *openAIReply) flush() []agent.Part {
	parts := r.signOff()
	if text := r.text.rest(); text != "" {
		parts = append(parts, agent.Part{Text: text})
	}
	return parts
}

func (r *openAIReply) finish() []agent.Part {
	why := r.why
	if why == "" {
		why = agent.FinishStop
	}
	if r.refused {
		why = agent.FinishRefusal
	}
	return append(r.flush(), finishParts(inOrder(r.calls), why)...)
}
