package jsonrpc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"time"
)

const (
	finishWithin = 400 * time.Millisecond  // what runs when the input ends may still come to its end
	stopWithin   = 1000 * time.Millisecond // and then has this long to stop
	flushWithin  = 200 * time.Millisecond  // and its last lines this long to be read
	// maxRunning is how many requests may be at work at once; one beyond it is refused.
	maxRunning = 1024
	// CodeBusy answers a request that is refused because too many run.
	CodeBusy = -32001
)

// Options make a [Conn].
type Options struct {
	In      io.Reader
	Out     io.Writer // nothing else may write to it
	Handler Handler
	Log     func(text string) // for panics and the like; never nil
	MaxLine int               // bytes; 0 is [MaxLine]
}

// Conn is a connection with one peer.
type Conn struct {
	in      lines
	out     *writer
	handler Handler
	log     func(string)

	mu      sync.Mutex
	waiting map[string]chan<- message // for answers to requests of ours, by id
	lastID  int
	running int
	idle    chan struct{} // closed when nothing runs; nil unless somebody waits for that
}

// New makes a connection. Nothing happens before [Conn.Serve].
func New(o Options) *Conn {
	if o.MaxLine <= 0 {
		o.MaxLine = MaxLine
	}
	return &Conn{
		in:  lines{bufio.NewReaderSize(o.In, 64<<10), o.MaxLine},
		out: newWriter(o.Out), handler: o.Handler, log: o.Log,
		waiting: make(map[string]chan<- message),
	}
}

// Serve talks with the peer until the input ends (nil), ctx ends, or the output
// cannot be written (its error). Then the context of all handlers ends (after
// the end of the input: a moment later, so that what is nearly done comes
// to its end), their work is waited for, and what they sent is written: together
// less than two seconds. A read or a write that the system does not return from
// is left behind, and so is work that does not stop.
func (c *Conn) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		if err := c.out.run(); err != nil {
			cancel(fmt.Errorf("the client does not take our output any more: %w", err))
		}
	}()
	read := make(chan error, 1)
	go func() { read <- c.read(ctx) }()
	var err error
	select {
	case err = <-read:
		c.waitIdle(ctx.Done(), finishWithin)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	cancel(ErrClosed)
	c.waitIdle(nil, stopWithin)
	c.out.close(flushWithin)
	return err
}

// read hands on messages until the input ends. Between two of them it looks
// whether the connection has ended.
func (c *Conn) read(ctx context.Context) error {
	for ctx.Err() == nil {
		line, err := c.in.next()
		switch {
		case errors.Is(err, errLineTooLong):
			c.answer(queuedAnswers, null, nil, Errorf(CodeInvalidRequest, "the line is longer than %d MiB and was skipped", c.in.max>>20))
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("read from the client: %w", err)
		case !blank(line):
			c.dispatch(ctx, line)
		}
	}
	return nil
}

func blank(line []byte) bool {
	for _, b := range line {
		if b != ' ' && b != '\t' && b != '\r' {
			return false
		}
	}
	return true
}

func (c *Conn) dispatch(ctx context.Context, line []byte) {
	m, failure := decode(line)
	switch {
	case failure != nil:
		id := m.id
		if id == nil {
			id = null
		}
		c.answer(queuedAnswers, id, nil, failure)
	case m.method == "":
		c.settle(m)
	default:
		c.handle(ctx, m)
	}
}

// handle calls the handler, and starts the work that it leaves for later.
func (c *Conn) handle(ctx context.Context, m message) {
	limit := queuedAnswers
	r := &Request{Method: m.method, Params: m.params, id: m.id}
	r.send = func(id json.RawMessage, result any, err error) { c.answer(limit, id, result, err) }
	if !c.begin(r.IsNotification()) {
		c.finish(r, nil, Errorf(CodeBusy, "more than %d requests run at once; wait until some are answered", maxRunning))
		return
	}
	result, err := c.safely(r.Method, func() (any, error) { return c.handler(ctx, r) })
	later, isLater := result.(Later)
	if !isLater || err != nil {
		c.finish(r, result, err)
		c.end()
		return
	}
	limit = queued
	go func() {
		defer c.end()
		result, err := c.safely(r.Method, later)
		c.finish(r, result, err)
	}()
}

// finish answers r unless that has been done.
func (c *Conn) finish(r *Request, result any, err error) {
	if errors.Is(err, ErrNoReply) {
		return
	}
	var failure *Error
	if r.IsNotification() && err != nil && !(errors.As(err, &failure) && failure.Code == CodeMethodNotFound) {
		c.log(fmt.Sprintf("%s: %v", r.Method, err))
	}
	r.Reply(result, err)
}

// safely turns a panic into an error. What it was goes to the log only.
func (c *Conn) safely(method string, do func() (any, error)) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			c.log(fmt.Sprintf("panic in %s: %v\n%s", method, p, debug.Stack()))
			result, err = nil, Errorf(CodeInternal, "%.100s failed inside Tendril; this is a bug of ours, and what it was is on stderr", method)
		}
	}()
	return do()
}

// answer sends the answer to a request. Without a connection there is nobody to
// tell.
func (c *Conn) answer(limit int, id json.RawMessage, result any, err error) {
	o := outgoing{ID: id, Result: result}
	switch {
	case err != nil:
		o.Result = nil
		if !errors.As(err, &o.Error) {
			o.Error = Errorf(CodeInternal, "%v", err)
		}
	case result == nil:
		o.Result = null
	}
	line, encodeErr := encode(o)
	if encodeErr != nil {
		c.log(fmt.Sprintf("an answer cannot be encoded: %v", encodeErr))
		line, _ = encode(outgoing{ID: id, Error: Errorf(CodeInternal, "the answer cannot be encoded; this is a bug of ours")})
	}
	_ = c.out.put(line, limit) // it fails only when the connection is over
}

// Notify sends a notification. It waits while the peer is slow to read. An
// error means that the connection is over, or that params cannot be encoded.
func (c *Conn) Notify(method string, params any) error {
	line, err := encode(outgoing{Method: method, Params: params})
	if err != nil {
		return fmt.Errorf("encode %s: %w", method, err)
	}
	return c.out.put(line, queued)
}

// Sync waits until all that was sent so far is handed to the system. An error
// means that the connection is over.
func (c *Conn) Sync() error { return c.out.sync() }

// begin counts work that starts, unless too much runs. A notification, which may
// end work, always starts.
func (c *Conn) begin(always bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running >= maxRunning && !always {
		return false
	}
	c.running++
	return true
}

func (c *Conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running--; c.running == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// waitIdle waits until nothing runs, stop is closed, or the time is over.
func (c *Conn) waitIdle(stop <-chan struct{}, within time.Duration) {
	c.mu.Lock()
	if c.running == 0 {
		c.mu.Unlock()
		return
	}
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
	idle := c.idle
	c.mu.Unlock()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-idle:
	case <-stop:
	case <-timer.C:
	}
}
