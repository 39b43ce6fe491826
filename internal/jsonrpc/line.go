package jsonrpc

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// MaxLine is the longest line that is read, in bytes.
const MaxLine = 64 << 20

var errLineTooLong = errors.New("line too long")

// lines reads lines that end in LF or CRLF; the last one may lack its end.
type lines struct {
	r   *bufio.Reader
	max int
}

// next returns the next line without its end. Of one that is longer than max
// only the error [errLineTooLong] is returned, and the line after it can be
// read. The line is the caller's.
func (l lines) next() ([]byte, error) {
	var line []byte
	tooLong := false
	for {
		part, err := l.r.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(part) > l.max+len("\r\n"); tooLong {
			line = nil
		} else {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && (err != io.EOF || len(line) == 0 && !tooLong) {
			return nil, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if tooLong || len(line) > l.max {
			return nil, errLineTooLong
		}
		return line, nil
	}
}

// message is one line, decoded as far as the protocol goes.
type message struct {
	id     json.RawMessage // nil when absent
	method string          // "" for an answer to a request of ours
	params json.RawMessage
	result json.RawMessage
	err    json.RawMessage
}

// decode reads a line. Keys are matched exactly, and the last of two equal ones
// counts. On failure the message holds the id as far as it could be read.
func decode(line []byte) (message, *Error) {
	var fields map[string]json.RawMessage
	if !utf8.Valid(line) {
		return message{}, Errorf(CodeParse, "not JSON: the line is not UTF-8")
	}
	if err := json.Unmarshal(line, &fields); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return message{}, Errorf(CodeParse, "not JSON: %v at byte %d", err, syntax.Offset)
		}
		return message{}, Errorf(CodeInvalidRequest, "a message must be a JSON object; batches are not supported")
	}
	if fields == nil {
		return message{}, Errorf(CodeInvalidRequest, "a message must be a JSON object, not null")
	}
	m := message{id: fields["id"], result: fields["result"], err: fields["error"]}
	raw, isRequest := fields["method"]
	if !isRequest && (m.result != nil || m.err != nil) {
		return m, nil
	}
	if !isID(m.id) {
		m.id = nil // by the specification such a request is answered under null
		return m, Errorf(CodeInvalidRequest, `"id" must be a string or a number`)
	}
	if !isRequest {
		return m, Errorf(CodeInvalidRequest, `a message must have a "method", or a "result" or an "error"`)
	}
	if string(fields["jsonrpc"]) != `"2.0"` {
		return m, Errorf(CodeInvalidRequest, `"jsonrpc" must be "2.0"`)
	}
	if raw[0] != '"' || json.Unmarshal(raw, &m.method) != nil || m.method == "" {
		return m, Errorf(CodeInvalidRequest, `"method" must be a string that is not empty`)
	}
	switch m.params = fields["params"]; {
	case m.params == nil || string(m.params) == "null":
		m.params = nil
	case m.params[0] != '{' && m.params[0] != '[':
		return m, Errorf(CodeInvalidRequest, `"params" must be an object`)
	}
	return m, nil
}

// isID reports whether a JSON value may be an id: a string, a number or null; or
// absent.
func isID(raw json.RawMessage) bool {
	return raw == nil || !strings.ContainsRune("{[tf", rune(raw[0]))
}

// SameID reports whether two ids are the same JSON value, however each is written:
// "é" and "\u00e9", 5 and 5.0. Digits are never rounded.
func SameID(a, b json.RawMessage) bool { return canonicalID(a) == canonicalID(b) }

func canonicalID(raw json.RawMessage) string {
	var text string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil {
		return `"` + text // a number has no quote
	}
	if whole, fraction, _ := strings.Cut(string(raw), "."); strings.Trim(fraction, "0") == "" {
		return whole
	}
	return string(raw)
}

// outgoing is a line of ours. Exactly one of Method, Result and Error is set.
type outgoing struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  any             `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// encode returns the line with its LF. It is UTF-8 and holds no other character
// that some reader takes for the end of a line.
func encode(o outgoing) ([]byte, error) {
	o.Version = "2.0"
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(o); err != nil {
		return nil, err
	}
	line := b.Bytes()
	if !utf8.Valid(line) { // from a RawMessage
		line = bytes.ToValidUTF8(line, []byte("\uFFFD"))
	}
	line = bytes.ReplaceAll(line, []byte("\u2028"), []byte(`\u2028`))
	return bytes.ReplaceAll(line, []byte("\u2029"), []byte(`\u2029`)), nil
}

// null is the id of an answer to what has no readable one, and the result of a
// request that has nothing to say.
var null = json.RawMessage("null")
