package testkit

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// BedrockText is a ConverseStream that says text.
func BedrockText(text string) Reply { return Bedrock(Turn{Text: text}) }

// BedrockCalls is a ConverseStream with calls.
func BedrockCalls(calls ...Call) Reply { return Bedrock(Turn{Calls: calls}) }

// Bedrock is t as a ConverseStream: an AWS event stream. Reasoning comes signed.
func Bedrock(t Turn) Reply {
	w := bedrockWriter{}
	w.event("messageStart", object{"role": "assistant"})
	if t.Reasoning != "" {
		var deltas []object
		for _, s := range halves(t.Reasoning) {
			deltas = append(deltas, object{"reasoningContent": object{"text": s}})
		}
		w.block(nil, append(deltas, object{"reasoningContent": object{"signature": "c2lnbmVk"}}))
	}
	if t.Text != "" {
		var deltas []object
		for _, s := range halves(t.Text) {
			deltas = append(deltas, object{"text": s})
		}
		w.block(nil, deltas)
	}
	for _, c := range t.Calls {
		var deltas []object
		for _, s := range fragments(c.Args) {
			deltas = append(deltas, object{"toolUse": object{"input": s}})
		}
		w.block(object{"toolUse": object{"toolUseId": c.ID, "name": c.Name}}, deltas)
	}
	w.event("messageStop", object{"stopReason": finishWord(t, "end_turn", "tool_use")})
	w.event("metadata", object{"usage": bedrockUsage(t.Usage), "metrics": object{"latencyMs": 1}})
	return awsReply(w.out.Bytes())
}

// BedrockEvents is an AWS event stream of single events, each a type and a
// payload. A type that ends in "Exception" makes an exception.
func BedrockEvents(events ...[2]string) Reply {
	var out bytes.Buffer
	for _, e := range events {
		kind := "event"
		if strings.HasSuffix(e[0], "Exception") {
			kind = "exception"
		}
		out.Write(awsMessage(kind, e[0], []byte(e[1])))
	}
	return awsReply(out.Bytes())
}

// ReplaceInFrames replaces the first old in the payloads of an AWS event stream
// and frames it again.
func ReplaceInFrames(stream []byte, old, with string) []byte {
	var out bytes.Buffer
	for len(stream) > 0 {
		size, headers := binary.BigEndian.Uint32(stream), binary.BigEndian.Uint32(stream[4:])
		payload := stream[12+headers : size-4]
		if at := bytes.Index(payload, []byte(old)); at >= 0 && old != "" {
			payload = bytes.Replace(payload, []byte(old), []byte(with), 1)
			old = ""
		}
		out.Write(awsFrame(stream[12:12+headers], payload))
		stream = stream[size:]
	}
	return out.Bytes()
}

func awsReply(body []byte) Reply {
	return Reply{Body: body, Headers: map[string]string{"Content-Type": "application/vnd.amazon.eventstream"}}
}

// bedrockWriter writes events and numbers the blocks.
type bedrockWriter struct {
	out    bytes.Buffer
	blocks int
}

func (w *bedrockWriter) event(name string, data object) {
	w.out.Write(awsMessage("event", name, mustJSON(data)))
}

// block writes a block. Only calls have a start, as on the real stream.
func (w *bedrockWriter) block(start object, deltas []object) {
	if start != nil {
		w.event("contentBlockStart", object{"contentBlockIndex": w.blocks, "start": start})
	}
	for _, d := range deltas {
		w.event("contentBlockDelta", object{"contentBlockIndex": w.blocks, "delta": d})
	}
	w.event("contentBlockStop", object{"contentBlockIndex": w.blocks})
	w.blocks++
}

func bedrockUsage(u *Usage) object {
	if u == nil {
		return object{"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}
	}
	return object{"inputTokens": u.Input, "outputTokens": u.Output, "totalTokens": u.Input + u.Output + u.CacheRead + u.CacheWrite,
		"cacheReadInputTokens": u.CacheRead, "cacheWriteInputTokens": u.CacheWrite}
}
