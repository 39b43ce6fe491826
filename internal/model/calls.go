package model

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tendril-agent/tendril/internal/agent"
)

// maxMalformed is how many bytes of broken arguments are kept for the model to
// see.
const maxMalformed = 500

// pendingCall is a tool call whose arguments are still arriving.
type pendingCall struct {
	id, name  string
	signature string
	index     int64
	indexed   bool
	args      joinedString
}

// finish is the call as it came. Blank, absent or null arguments mean an empty
// object, unless the reply was cut at its token limit. A JSON string that holds
// one whole object is unwrapped once: tools take objects, so it can mean
// nothing else. Everything else that is no object makes the call malformed.
func (p *pendingCall) finish(cut bool) agent.Call {
	call := agent.Call{ID: p.id, Name: p.name, Input: json.RawMessage("{}"), Signature: p.signature}
	sent := p.args.text()
	trimmed := strings.TrimSpace(sent)
	if unwrapped, ok := unwrapString(trimmed); ok {
		trimmed = unwrapped
	}
	switch {
	case isObject(trimmed):
		call.Input = json.RawMessage(repairEscapes(trimmed, false))
	case trimmed != "" && trimmed != "null":
		call.Malformed = shorten(sent, maxMalformed)
	case cut:
		call.Malformed = "(nothing: the reply was cut at its token limit)"
	}
	return call
}

// unwrapString takes the object, or nothing, out of a JSON string.
func unwrapString(s string) (string, bool) {
	var inner string
	if !strings.HasPrefix(s, `"`) || json.Unmarshal([]byte(s), &inner) != nil {
		return "", false
	}
	inner = strings.TrimSpace(inner)
	return inner, inner == "" || isObject(inner)
}

func isObject(s string) bool {
	return strings.HasPrefix(s, "{") && json.Valid([]byte(s))
}

// finishParts ends a reply: its calls, if they may run, and the reason.
func finishParts(calls []*pendingCall, why agent.Finish) []agent.Part {
	if why == agent.FinishRefusal {
		return []agent.Part{{Finish: why}}
	}
	if why == agent.FinishStop && len(calls) > 0 {
		why = agent.FinishCalls
	} else if why == agent.FinishCalls && len(calls) == 0 {
		why = agent.FinishStop
	}
	parts := make([]agent.Part, 0, len(calls)+1)
	for _, p := range calls {
		call := p.finish(why == agent.FinishMaxTokens)
		parts = append(parts, agent.Part{Call: &call})
	}
	return append(parts, agent.Part{Finish: why})
}

// inOrder sorts calls by the index that the server gave them; where one has
// none, the order of arrival counts.
func inOrder(calls []*pendingCall) []*pendingCall {
	if slices.ContainsFunc(calls, func(p *pendingCall) bool { return !p.indexed }) {
		return calls
	}
	slices.SortStableFunc(calls, func(a, b *pendingCall) int {
		switch {
		case a.index < b.index:
			return -1
		case a.index > b.index:
			return 1
		}
		return 0
	})
	return calls
}

// joinedString is a string that arrives as several JSON strings. They are
// joined before they are decoded, so that a surrogate pair or a character that
// was cut between two of them is whole again.
type joinedString struct {
	body []byte // the inside of the literals, still escaped
}

// add appends raw, which is a whole JSON string, or an object that stands for
// its own text. Null and absent add nothing.
func (j *joinedString) add(raw json.RawMessage) {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0 || string(raw) == "null":
	case raw[0] == '"' && len(raw) >= 2:
		j.body = append(j.body, raw[1:len(raw)-1]...)
	default:
		j.addText(string(raw))
	}
}

func (j *joinedString) addText(s string) {
	literal, err := json.Marshal(s)
	if err == nil {
		j.body = append(j.body, literal[1:len(literal)-1]...)
	}
}

func (j *joinedString) blank() bool { return strings.TrimSpace(j.text()) == "" }

// text decodes what came so far; lone surrogates and bytes that are no UTF-8
// become U+FFFD.
func (j *joinedString) text() string { return decodeBody(j.body) }

func decodeBody(body []byte) string {
	if bytes.IndexByte(body, '\\') < 0 && utf8.Valid(body) { // most text has no escapes
		return string(body)
	}
	literal := make([]byte, 0, len(body)+2)
	literal = append(append(append(literal, '"'), body...), '"')
	var s string
	if json.Unmarshal(literal, &s) != nil {
		return ""
	}
	return s
}

// take returns the text so far and forgets it, except for the first half of a
// surrogate pair at its end, which waits for the second.
func (j *joinedString) take() string {
	keep := len(j.body) - openSurrogate(j.body)
	s := decodeBody(j.body[:keep])
	j.body = append(j.body[:0], j.body[keep:]...)
	return s
}

// rest returns what is left, at the end of the reply.
func (j *joinedString) rest() string {
	s := j.text()
	j.body = nil
	return s
}

// openSurrogate returns the length of the high surrogate's escape that body
// ends in, or 0.
func openSurrogate(body []byte) int {
	const length = len(`\ud83d`)
	start := len(body) - length
	if start < 0 {
		return 0
	}
	if unit, ok := escapedUnit(string(body[start:])); !ok || unit < 0xD800 || unit >= 0xDC00 {
		return 0
	}
	backslashes := 0
	for i := start - 1; i >= 0 && body[i] == '\\'; i-- {
		backslashes++
	}
	if backslashes%2 == 1 {
		return 0 // the backslash is itself escaped
	}
	return length
}

// tokens is a count of tokens. What a server writes instead of a count is
// [noCount], for a reply must not fail by its statistics.
type tokens int64

// noCount is a figure that nobody can believe.
const noCount = -1

// UnmarshalJSON implements [json.Unmarshaler].
func (t *tokens) UnmarshalJSON(raw []byte) error {
	var f float64
	*t = noCount
	if json.Unmarshal(raw, &f) == nil && f >= 0 && f < 1<<53 {
		*t = tokens(f)
	}
	return nil
}

// usagePart reports u, or that nothing is known, when a figure of it is noCount.
func usagePart(u agent.Usage) agent.Part {
	if min(u.Input, u.Output, u.CacheRead, u.CacheWrite) < 0 {
		u = agent.Usage{}
	}
	return agent.Part{Usage: &u}
}

// grown is a cumulative count after one more figure.
func grown(count int64, figure tokens) int64 {
	if count < 0 || figure < 0 {
		return noCount
	}
	return max(count, int64(figure))
}
