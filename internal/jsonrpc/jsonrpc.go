// Package jsonrpc is JSON-RPC 2.0 (https://www.jsonrpc.org/specification) with
// one message a line, as protocols on stdin and stdout use it. It knows no
// method.
//
// Order: messages reach the [Handler] one by one, as they arrived. Lines go out
// in the order in which a goroutine sends them; nothing is dropped. A reader of
// our output that is slow slows down whoever writes, never the reading of
// notifications.
package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Error is what a failed request is answered with. A handler that returns
// another error answers with [CodeInternal] and that error's text.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// Errorf makes an [Error].
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// The codes of the specification.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

// MethodNotFound is the answer to a method that a handler does not know. A
// notification that fails with it is ignored.
func MethodNotFound(method string) *Error {
	return Errorf(CodeMethodNotFound, "method not found: %.100s", method)
}

// Request is a request or a notification of the peer.
type Request struct {
	Method string
	Params json.RawMessage // an object or an array; nil when absent or null

	id      json.RawMessage // nil for a notification
	replied bool
	send    func(id json.RawMessage, result any, err error)
}

// ID is the id as it was sent; nil for a notification.
func (r *Request) ID() json.RawMessage { return r.id }

// IsNotification reports that no answer is wanted.
func (r *Request) IsNotification() bool { return r.id == nil }

// Reply answers now. What the handler, and its [Later], return after it is
// dropped. It is for a handler that sends something which must follow its
// answer, and must not be called at the same time as the handler runs.
func (r *Request) Reply(result any, err error) {
	if r.replied || r.id == nil {
		return
	}
	r.replied = true
	r.send(r.id, result, err)
}

// ErrNoReply is returned by a [Handler], or a [Later], to leave a request without
// an answer: some protocols want none for a request that was cancelled.
var ErrNoReply = errors.New("no reply")

// Handler answers a request. It is called by the reading goroutine, so nothing
// that arrives later overtakes it; therefore it must be quick. What takes time
// it returns as a [Later], after it has noted what a later message, such as a
// cancellation, needs to find. The result of a notification is dropped, its
// error goes to the log. A panic answers with [CodeInternal].
//
// ctx ends when the connection does.
type Handler func(ctx context.Context, r *Request) (result any, err error)

// Later is a result that a goroutine of the connection makes. It must return
// soon after the handler's ctx has ended.
type Later func() (result any, err error)
