package jsonrpc

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
)

// Call sends a request and decodes the result of its answer, when that comes
// before ctx ends. An answer that comes later is ignored. The peer's error is an
// [*Error].
func (c *Conn) Call(ctx context.Context, method string, params, result any) error {
	answer := make(chan message, 1)
	c.mu.Lock()
	c.lastID++
	id := strconv.Itoa(c.lastID)
	c.waiting[id] = answer
	c.mu.Unlock()
	defer c.forget(id)
	line, err := encode(outgoing{ID: json.RawMessage(id), Method: method, Params: params})
	if err != nil {
		return fmt.Errorf("encode %s: %w", method, err)
	}
	if err := c.out.put(line, queued); err != nil {
		return err
	}
	select {
	case m := <-answer:
		return m.outcome(method, result)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// outcome decodes an answer to a request of ours.
func (m message) outcome(method string, result any) error {
	if m.err != nil && string(m.err) != "null" {
		var failure Error
		if err := json.Unmarshal(m.err, &failure); err != nil {
			return fmt.Errorf("%s: the client's error cannot be read: %w", method, err)
		}
		return &failure
	}
	if m.result == nil {
		return fmt.Errorf("%s: the client's answer has no result", method)
	}
	if err := json.Unmarshal(m.result, result); err != nil {
		return fmt.Errorf("%s: the client's answer cannot be read: %w", method, err)
	}
	return nil
}

func (c *Conn) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

// settle hands an answer to who waits for it. The first one counts; others, and
// those that nobody waits for, are ignored.
func (c *Conn) settle(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := canonicalID(m.id) // some clients write our 1 as 1.0
	if answer := c.waiting[id]; answer != nil {
		delete(c.waiting, id)
		answer <- m // it has room for one
	}
}
