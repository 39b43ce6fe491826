package testkit

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Turn is what a scripted model says in one reply. The builders write it as
// the real providers do, in several fragments.
type Turn struct {
	Reasoning string
	Text      string
	Calls     []Call
	Usage     *Usage
	// Finish is the provider's own word; "" is the right one for the content.
	Finish string
}

// Call is a tool call. Args is sent as it is, so that it can be broken.
type Call struct{ ID, Name, Args string }

// Usage counts tokens; Input excludes what the cache read and wrote.
type Usage struct{ Input, Output, CacheRead, CacheWrite int64 }

// OpenAIText is a Chat Completions stream that says text.
func OpenAIText(text string) Reply { return OpenAI(Turn{Text: text}) }

// OpenAICalls is a Chat Completions stream with calls.
func OpenAICalls(calls ...Call) Reply { return OpenAI(Turn{Calls: calls}) }

// AnthropicText is a Messages stream that says text.
func AnthropicText(text string) Reply { return Anthropic(Turn{Text: text}) }

// AnthropicCalls is a Messages stream with calls.
func AnthropicCalls(calls ...Call) Reply { return Anthropic(Turn{Calls: calls}) }

// JSON is a reply of one JSON value, such as an error.
func JSON(status int, value any) Reply {
	return Reply{Status: status, Body: mustJSON(value), Headers: map[string]string{"Content-Type": "application/json"}}
}

// object is a JSON object of a stream.
type object = map[string]any

// fragment is how many bytes of arguments go into one event.
const fragment = 8

// OpenAI is t as a Chat Completions stream.
func OpenAI(t Turn) Reply {
	var b bytes.Buffer
	delta := func(d object, finish any) {
		writeData(&b, object{"id": "chatcmpl-t", "object": "chat.completion.chunk", "created": 1, "model": "m",
			"choices": []object{{"index": 0, "delta": d, "finish_reason": finish}}})
	}
	delta(object{"role": "assistant", "content": ""}, nil)
	for _, s := range halves(t.Reasoning) {
		delta(object{"reasoning_content": s}, nil)
	}
	for _, s := range halves(t.Text) {
		delta(object{"content": s}, nil)
	}
	for i, c := range t.Calls {
		delta(object{"tool_calls": []object{{"index": i, "id": c.ID, "type": "function",
			"function": object{"name": c.Name, "arguments": ""}}}}, nil)
		for _, s := range fragments(c.Args) {
			delta(object{"tool_calls": []object{{"index": i, "function": object{"arguments": s}}}}, nil)
		}
	}
	delta(object{}, finishWord(t, "stop", "tool_calls"))
	if u := t.Usage; u != nil {
		writeData(&b, object{"id": "chatcmpl-t", "object": "chat.completion.chunk", "choices": []object{}, "usage": object{
			"prompt_tokens": u.Input + u.CacheRead, "completion_tokens": u.Output,
			"total_tokens":          u.Input + u.CacheRead + u.Output,
			"prompt_tokens_details": object{"cached_tokens": u.CacheRead}}})
	}
	b.WriteString("data: [DONE]\n\n")
	return Reply{Body: b.Bytes()}
}

// Anthropic is t as a Messages stream. Reasoning comes signed.
func Anthropic(t Turn) Reply {
	w := anthropicWriter{}
	w.event("message_start", object{"message": object{"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
		"content": []object{}, "stop_reason": nil, "stop_sequence": nil, "usage": inputUsage(t.Usage)}})
	w.event("ping", object{})
	if t.Reasoning != "" {
		deltas := []object{}
		for _, s := range halves(t.Reasoning) {
			deltas = append(deltas, object{"type": "thinking_delta", "thinking": s})
		}
		deltas = append(deltas, object{"type": "signature_delta", "signature": "c2lnbmVk"})
		w.block(object{"type": "thinking", "thinking": "", "signature": ""}, deltas)
	}
	if t.Text != "" {
		deltas := []object{}
		for _, s := range halves(t.Text) {
			deltas = append(deltas, object{"type": "text_delta", "text": s})
		}
		w.block(object{"type": "text", "text": ""}, deltas)
	}
	for _, c := range t.Calls {
		deltas := []object{}
		for _, s := range fragments(c.Args) {
			deltas = append(deltas, object{"type": "input_json_delta", "partial_json": s})
		}
		w.block(object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": object{}}, deltas)
	}
	output := int64(5)
	if t.Usage != nil {
		output = t.Usage.Output
	}
	w.event("message_delta", object{"delta": object{"stop_reason": finishWord(t, "end_turn", "tool_use"), "stop_sequence": nil},
		"usage": object{"output_tokens": output}})
	w.event("message_stop", object{})
	return Reply{Body: w.out.Bytes()}
}

// anthropicWriter writes events and numbers the blocks.
type anthropicWriter struct {
	out    bytes.Buffer
	blocks int
}

func (w *anthropicWriter) event(name string, data object) {
	data["type"] = name
	fmt.Fprintf(&w.out, "event: %s\n", name)
	writeData(&w.out, data)
}

func (w *anthropicWriter) block(start object, deltas []object) {
	w.event("content_block_start", object{"index": w.blocks, "content_block": start})
	for _, d := range deltas {
		w.event("content_block_delta", object{"index": w.blocks, "delta": d})
	}
	w.event("content_block_stop", object{"index": w.blocks})
	w.blocks++
}

func inputUsage(u *Usage) object {
	if u == nil {
		return object{"input_tokens": 10, "output_tokens": 1}
	}
	return object{"input_tokens": u.Input, "cache_read_input_tokens": u.CacheRead,
		"cache_creation_input_tokens": u.CacheWrite, "output_tokens": min(u.Output, 1)}
}

func finishWord(t Turn, text, calls string) string {
	switch {
	case t.Finish != "":
		return t.Finish
	case len(t.Calls) > 0:
		return calls
	}
	return text
}

func writeData(b *bytes.Buffer, value any) {
	fmt.Fprintf(b, "data: %s\n\n", mustJSON(value))
}

// mustJSON encodes maps, strings and numbers, which cannot fail.
func mustJSON(value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return raw
}

// halves cuts s into at most two strings between characters.
func halves(s string) []string {
	runes := []rune(s)
	if len(runes) < 2 {
		return fragmentsOf(runes, 1)
	}
	return fragmentsOf(runes, (len(runes)+1)/2)
}

func fragments(s string) []string { return fragmentsOf([]rune(s), fragment) }

func fragmentsOf(runes []rune, size int) []string {
	var all []string
	for len(runes) > 0 {
		n := min(size, len(runes))
		all = append(all, string(runes[:n]))
		runes = runes[n:]
	}
	return all
}
