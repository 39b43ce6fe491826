package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	wire "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tendril-agent/tendril/internal/jsonrpc"
)

// stopWithin is how long calls have to stop when their session has ended.
const stopWithin = time.Second

// ServeStdio serves one session on lines of in and out until in ends (nil), ctx
// ends, or out cannot be written (its error). Calls that still run then are
// cancelled; it returns in less than two seconds. Nothing else may write to out.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	t := newStdio()
	t.conn = jsonrpc.New(jsonrpc.Options{In: in, Out: out, Handler: t.handle, Log: func(text string) { s.warn("%s", text) }})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.sync(ctx)
	session, err := s.sdk.Connect(ctx, t, nil)
	if err != nil {
		return err
	}
	var watching sync.WaitGroup
	watching.Go(func() { s.watch(ctx) })
	err = t.conn.Serve(ctx)
	cancel()
	watching.Wait()
	s.end(t.Close, session)
	return err
}

// end ends a session and waits a while for its calls.
func (s *Server) end(closeConn func() error, session *sdk.ServerSession) {
	s.running.cancel(func(other *sdk.ServerSession) bool { return other == session })
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = closeConn() // why it ended is known
		_ = session.Wait()
	}()
	timer := time.NewTimer(stopWithin)
	defer timer.Stop()
	select {
	case <-over:
	case <-timer.C:
	}
}

// stdio is the SDK's view of a [jsonrpc.Conn]. The SDK's own transport ends at
// the first malformed line, loses digits of ids over 2^53, and answers cancelled
// requests. So requests, and the progress tokens in them, get small numbers of
// ours on their way in, and what they are replaced with never leaves.
type stdio struct {
	conn     *jsonrpc.Conn
	session  string
	incoming chan wire.Message
	closed   chan struct{}
	once     sync.Once

	mu    sync.Mutex
	last  int64
	calls map[int64]*stdioCall
}

// stdioCall is a request that has no answer yet.
type stdioCall struct {
	id        json.RawMessage // the client's
	token     json.RawMessage // the client's progress token, or nil
	answer    chan *wire.Response
	cancelled bool // by the client: it gets no answer
}

func newStdio() *stdio {
	return &stdio{session: rand.Text(), incoming: make(chan wire.Message), closed: make(chan struct{}), calls: make(map[int64]*stdioCall)}
}

// Connect implements [sdk.Transport].
func (t *stdio) Connect(context.Context) (sdk.Connection, error) { return t, nil }

// SessionID implements [sdk.Connection].
func (t *stdio) SessionID() string { return t.session }

// Close implements [sdk.Connection].
func (t *stdio) Close() error {
	t.once.Do(func() { close(t.closed) })
	return nil
}

// Read implements [sdk.Connection].
func (t *stdio) Read(ctx context.Context) (wire.Message, error) {
	select {
	case m := <-t.incoming:
		return m, nil
	case <-t.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// handle is the [jsonrpc.Handler].
func (t *stdio) handle(ctx context.Context, r *jsonrpc.Request) (any, error) {
	switch {
	case r.Method == "notifications/cancelled":
		t.cancel(ctx, r.Params)
		return nil, nil
	case r.IsNotification():
		t.deliver(ctx, &wire.Request{Method: r.Method, Params: r.Params})
		return nil, nil
	}
	call := &stdioCall{id: r.ID(), answer: make(chan *wire.Response, 1)}
	t.mu.Lock()
	t.last++
	n := t.last
	t.calls[n] = call
	t.mu.Unlock()
	params := r.Params
	call.token, params = swapToken(params, n)
	t.deliver(ctx, &wire.Request{ID: ownID(n), Method: r.Method, Params: params})
	return jsonrpc.Later(func() (any, error) {
		defer t.forget(n)
		select {
		case response := <-call.answer:
			return t.outcome(call, response)
		case <-ctx.Done():
			return nil, jsonrpc.ErrNoReply
		}
	}), nil
}

// ownID is a number of ours as the SDK has it.
func ownID(n int64) wire.ID {
	id, _ := wire.MakeID(float64(n)) // a number always makes one
	return id
}

func (t *stdio) deliver(ctx context.Context, m wire.Message) {
	select {
	case t.incoming <- m:
	case <-t.closed:
	case <-ctx.Done():
	}
}

func (t *stdio) forget(n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.calls, n)
}

// cancel passes a cancellation on, under our number.
func (t *stdio) cancel(ctx context.Context, params json.RawMessage) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(params, &fields) != nil {
		return
	}
	var cancelled []int64
	t.mu.Lock()
	for n, call := range t.calls {
		if jsonrpc.SameID(call.id, fields["requestId"]) {
			call.cancelled = true
			cancelled = append(cancelled, n)
		}
	}
	t.mu.Unlock()
	for _, n := range cancelled {
		raw, _ := json.Marshal(map[string]int64{"requestId": n}) // numbers always encode
		t.deliver(ctx, &wire.Request{Method: "notifications/cancelled", Params: raw})
	}
}

// outcome is the answer to a call.
func (t *stdio) outcome(call *stdioCall, r *wire.Response) (any, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if call.cancelled {
		return nil, jsonrpc.ErrNoReply
	}
	if r.Error == nil {
		return r.Result, nil
	}
	failure := jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%v", r.Error) // what has no code of its own is wrong with the request
	var coded *wire.Error
	if errors.As(r.Error, &coded) && coded.Code != 0 {
		failure.Code = int(coded.Code)
		if coded.Data != nil {
			failure.Data = coded.Data
		}
	}
	return nil, failure
}

// Write implements [sdk.Connection].
func (t *stdio) Write(_ context.Context, m wire.Message) error {
	switch m := m.(type) {
	case *wire.Response:
		n, _ := m.ID.Raw().(int64)
		t.mu.Lock()
		defer t.mu.Unlock()
		if call := t.calls[n]; call != nil {
			select {
			case call.answer <- m:
			default: // it has its answer
			}
		}
		return nil
	case *wire.Request:
		if m.ID.IsValid() {
			return errors.New("the client is asked nothing over stdio")
		}
		params := m.Params
		if m.Method == "notifications/progress" {
			if params = t.restoreToken(params); params == nil {
				return nil
			}
		}
		if params == nil {
			return t.conn.Notify(m.Method, nil)
		}
		return t.conn.Notify(m.Method, params)
	}
	return nil
}

// swapToken replaces the progress token in the params of a request by n. It
// returns the token, nil if there is none.
func swapToken(params json.RawMessage, n int64) (token, swapped json.RawMessage) {
	var fields, meta map[string]json.RawMessage
	if json.Unmarshal(params, &fields) != nil || json.Unmarshal(fields["_meta"], &meta) != nil || meta["progressToken"] == nil {
		return nil, params
	}
	token = meta["progressToken"]
	meta["progressToken"], _ = json.Marshal(n)
	fields["_meta"], _ = json.Marshal(meta)
	swapped, err := json.Marshal(fields)
	if err != nil {
		return nil, params
	}
	return token, swapped
}

// restoreToken undoes swapToken, in a notification. It is nil when the call is
// over.
func (t *stdio) restoreToken(params json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	var n int64
	if json.Unmarshal(params, &fields) != nil || json.Unmarshal(fields["progressToken"], &n) != nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	call := t.calls[n]
	if call == nil || call.cancelled {
		return nil
	}
	fields["progressToken"] = call.token
	out, err := json.Marshal(fields)
	if err != nil {
		return nil
	}
	return out
}
