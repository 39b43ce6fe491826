package model

import (
	"bytes"
	"encoding/json"
	"mime"
	"strings"
)

// errorBody is what a provider says about a failure.
type errorBody struct {
	message string
	types   string // its type, code and status words, lower case, separated by spaces
	status  int    // an HTTP status that the body names, or 0
	page    bool   // a web page instead of an API's answer
}

// readErrorBody understands {"error": {…}}, {"error": "…"}, an array of such,
// {"message": …}, {"detail": …}, plain text, and web pages.
func readErrorBody(contentType string, body []byte) errorBody {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
	if media, _, _ := mime.ParseMediaType(contentType); media == "text/html" || bytes.HasPrefix(body, []byte("<")) {
		return errorBody{page: true}
	}
	if parsed, ok := parseError(body); ok {
		return parsed
	}
	return errorBody{message: string(body)}
}

// parseError reads the JSON forms; it reports false when body has none of them.
func parseError(body []byte) (errorBody, bool) {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var outer map[string]json.RawMessage
	if json.Unmarshal(body, &outer) != nil {
		return errorBody{}, false
	}
	fields := outer
	if inner := outer["error"]; isSomething(inner) {
		if s, ok := asString(inner); ok {
			return errorBody{message: s}, true
		}
		fields = nil
		if json.Unmarshal(inner, &fields) != nil {
			return errorBody{message: string(inner)}, true
		}
	}
	var e errorBody
	for _, name := range []string{"message", "Message", "detail", "msg"} {
		if raw, ok := fields[name]; ok && e.message == "" {
			e.message = textOf(raw)
		}
	}
	e.types = strings.ToLower(strings.Join([]string{textOf(fields["type"]), textOf(fields["code"]), textOf(fields["status"]), textOf(fields["__type"])}, " "))
	for _, name := range []string{"code", "status"} {
		var n int
		if json.Unmarshal(fields[name], &n) == nil && n >= 400 && n < 600 {
			e.status = n
		}
	}
	return e, e.message != "" || strings.TrimSpace(e.types) != ""
}

// isErrorFrame reports whether an event of a stream is an error object rather
// than a piece of a reply.
func isErrorFrame(ev event) bool {
	if ev.name == "error" {
		return true
	}
	if !bytes.Contains(ev.data, []byte(`"error"`)) {
		return false
	}
	var frame struct {
		Object json.RawMessage `json:"object"`
		Type   json.RawMessage `json:"type"`
		Error  json.RawMessage `json:"error"`
	}
	if json.Unmarshal(ev.data, &frame) != nil {
		return false
	}
	return isSomething(frame.Error) ||
		string(frame.Object) == `"error"` || string(frame.Type) == `"error"`
}

// isSomething reports whether a value is there and neither null, "" nor false.
func isSomething(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", `""`, "false":
		return false
	}
	return true
}

func asString(raw json.RawMessage) (string, bool) {
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}

// textOf is a JSON string's text, any other value as it is written, and "" for
// nothing.
func textOf(raw json.RawMessage) string {
	if s, ok := asString(raw); ok {
		return s
	}
	if string(raw) == "null" {
		return ""
	}
	return string(raw)
}
