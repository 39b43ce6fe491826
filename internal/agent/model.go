package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"
)

// Model is one language model of one provider.
//
// Stream sends req and yields the reply in parts. It ends after exactly one
// Part with Finish set, or with one error as the last pair; a stream that ends
// early in any other way is itself reported as an error of kind [ErrCut]. Errors
// are *[ModelError], or the context's error when ctx was cancelled. Text that
// arrived before an error has been yielded. Calls are yielded whole, in the
// provider's order, after the provider said that the reply is complete; the half
// call of a broken stream is never yielded. Stream does not retry, and leaves no
// goroutine when it returns.
type Model interface {
	// Name is "provider/model".
	Name() string
	Stream(ctx context.Context, req Request) iter.Seq2[Part, error]
}

// Request is what a model sees.
type Request struct {
	System   string
	Tools    []ToolSpec
	Messages []Message
}

// ToolSpec describes a tool to a model. Schema is a JSON Schema object with
// "type": "object".
type ToolSpec struct {
	Name        string
	Description string
	Schema      json.RawMessage
}

// Part is one piece of a reply. Exactly one field is set, except that a
// Reasoning part may carry text, a signature or both.
type Part struct {
	Text      string
	Reasoning *Block
	Call      *Call
	// Usage is the total of this reply so far; the last one counts.
	Usage  *Usage
	Finish Finish
}

// Finish is why a reply ended.
type Finish string

// The reasons for the end of a reply.
const (
	FinishStop      Finish = "stop"
	FinishCalls     Finish = "calls"
	FinishMaxTokens Finish = "max_tokens"
	FinishRefusal   Finish = "refusal"
)

// Usage counts tokens. Input excludes what was read from or written to the
// provider's cache. One in which a figure is negative or absurd is not believed:
// it counts as none was sent.
type Usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
}

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Output + v.Output, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite}
}

// Context is how many tokens of the model's window the prompt took.
func (u Usage) Context() int64 { return u.Input + u.CacheRead + u.CacheWrite }

// ErrorKind classifies what went wrong between us and a provider.
type ErrorKind string

// The kinds of [ModelError]. ErrCut is a reply that was lost on its way,
// ErrMalformed one that made no sense or that the server ended before its end. ErrCertificate is a TLS
// certificate that cannot be trusted, or a file of authorities that cannot be
// used: trying again changes nothing.
const (
	ErrCredentials   ErrorKind = "credentials"
	ErrUnreachable   ErrorKind = "unreachable"
	ErrCertificate   ErrorKind = "certificate"
	ErrModelNotFound ErrorKind = "model_not_found"
	ErrNoTools       ErrorKind = "no_tool_support"
	ErrRateLimit     ErrorKind = "rate_limit"
	ErrOverloaded    ErrorKind = "overloaded"
	ErrOverflow      ErrorKind = "context_overflow"
	ErrRefused       ErrorKind = "content_refused"
	ErrCut           ErrorKind = "reply_cut"
	ErrMalformed     ErrorKind = "malformed_reply"
	ErrRequest       ErrorKind = "bad_request"
)

// ModelError is a classified failure of a provider. Its text never contains a
// credential.
type ModelError struct {
	Kind ErrorKind
	// Message is one sentence about what happened; Hint says what to do next.
	Message string
	Hint    string
	// RetryAfter is what the provider asked for; zero when it asked for nothing.
	RetryAfter time.Duration
	Err        error
}

func (e *ModelError) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return fmt.Sprintf("%s; %s", e.Message, e.Hint)
}

func (e *ModelError) Unwrap() error { return e.Err }

// Temporary reports whether the same request may succeed later.
func (e *ModelError) Temporary() bool {
	switch e.Kind {
	case ErrRateLimit, ErrOverloaded, ErrUnreachable, ErrCut:
		return true
	}
	return false
}
