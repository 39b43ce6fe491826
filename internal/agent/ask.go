package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

const (
	maxRetries   = 4
	firstWait    = 500 * time.Millisecond
	longestWait  = 60 * time.Second // a provider that asks for more is not waited for
	maxReplyText = 8 << 20          // bytes of text or reasoning in one reply
)

// reply is what the model said in one step, as far as it came.
type reply struct {
	blocks []Block
	calls  []*Call // those of blocks
	usage  Usage
	finish Finish
	began  bool // the provider sent something of it
}

// ask sends the history to the model and streams its reply. It sends again
// after a temporary failure, and once after an overflow that shortening may
// mend, but never when something was shown.
func (t *turn) ask(ctx context.Context) (reply, error) {
	t.steps++
	t.makeRoom()
	for attempt := 1; ; attempt++ {
		r, err := t.stream(ctx, Request{System: t.agent.system, Tools: t.agent.specs, Messages: t.history.close()})
		var failure *ModelError
		if err == nil || !errors.As(err, &failure) || len(r.blocks) > 0 {
			return r, err
		}
		if failure.Kind == ErrOverflow && t.makeRoomAfterOverflow() {
			t.account(r)
			continue
		}
		if !failure.Temporary() || attempt > maxRetries {
			return r, err
		}
		wait, ok := retryWait(attempt, failure.RetryAfter)
		if !ok {
			return r, tooLongToWait(*failure)
		}
		t.account(r)
		t.emit(Event{Type: Retry, Retry: &RetryInfo{Attempt: attempt, WaitMS: wait.Milliseconds(), Kind: failure.Kind, Message: failure.Message}})
		if !sleep(ctx, wait) {
			return reply{}, ctx.Err()
		}
	}
}

// retryWait grows from half a second, and is at least what the provider asked
// for. ok is false when that is too long to wait inside a turn.
func retryWait(attempt int, asked time.Duration) (wait time.Duration, ok bool) {
	if asked > longestWait {
		return 0, false
	}
	wait = firstWait << (attempt - 1)
	wait += rand.N(wait / 2) //nolint:gosec // jitter needs no secrecy
	return max(wait, asked), true
}

// tooLongToWait is the failure with the time that the provider named.
func tooLongToWait(failure ModelError) *ModelError {
	failure.Hint = fmt.Sprintf("the provider asks to wait %s; try again after %s",
		failure.RetryAfter.Round(time.Second), time.Now().Add(failure.RetryAfter).Format("15:04 on 2 January"))
	return &failure
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// stream reads one reply and shows its text as it comes.
func (t *turn) stream(ctx context.Context, request Request) (reply, error) {
	parts, stop := receive(ctx, t.agent.model.Stream, request)
	defer stop()
	shown := batch{turn: t}
	var c collector
	for {
		select {
		case <-shown.due:
			shown.flush()
		case p, ok := <-parts:
			err := p.err
			if !ok && c.finish == "" {
				err = &ModelError{Kind: ErrMalformed, Message: "the model's reply ended without an end mark"}
			}
			if ok && err == nil {
				c.began = true
				shown.add(deltas(p.Part)...)
				err = c.add(p.Part)
			}
			if err != nil || !ok {
				shown.flush()
				return t.collect(&c), err
			}
		}
		if t.stopped || t.failure != nil {
			return t.collect(&c), context.Canceled
		}
	}
}

// deltas are the events that show a part of a reply.
func deltas(p Part) []Event {
	var events []Event
	if p.Text != "" {
		events = append(events, Event{Type: TextDelta, Text: p.Text})
	}
	if p.Reasoning != nil && p.Reasoning.Text != "" && !p.Reasoning.Redacted {
		events = append(events, Event{Type: ReasoningDelta, Text: p.Reasoning.Text})
	}
	return events
}

// collect closes c and gives its calls ids that the session has not seen.
func (t *turn) collect(c *collector) reply {
	r := c.close()
	for _, call := range r.calls {
		call.ID = t.newCallID(call.ID)
	}
	return r
}

// collector puts the parts of a reply together.
type collector struct {
	blocks []Block
	usage  Usage
	finish Finish
	began  bool
	text   strings.Builder
	reason strings.Builder
}

func (c *collector) add(p Part) error {
	switch {
	case p.Text != "":
		c.closeReasoning("")
		c.text.WriteString(p.Text)
	case p.Reasoning != nil:
		c.addReasoning(*p.Reasoning)
	case p.Call != nil:
		c.closeReasoning("")
		c.closeText()
		call := *p.Call
		if len(call.Input) == 0 {
			call.Input = []byte("{}")
		}
		c.blocks = append(c.blocks, Block{Type: BlockCall, Call: &call})
	}
	if p.Usage != nil {
		c.usage = *p.Usage
	}
	if p.Finish != "" {
		c.finish = p.Finish
	}
	if c.text.Len() > maxReplyText || c.reason.Len() > maxReplyText {
		return &ModelError{Kind: ErrMalformed, Message: "the model's reply is longer than 8 MiB and was cut"}
	}
	return nil
}

func (c *collector) addReasoning(b Block) {
	c.closeText()
	if b.Redacted {
		c.closeReasoning("")
		b.Type = BlockReasoning
		c.blocks = append(c.blocks, b)
		return
	}
	c.reason.WriteString(b.Text)
	if b.Signature != "" {
		c.closeReasoning(b.Signature)
	}
}

func (c *collector) closeText() {
	if text := c.text.String(); strings.TrimSpace(text) != "" {
		c.blocks = append(c.blocks, Text(text))
	}
	c.text.Reset()
}

func (c *collector) closeReasoning(signature string) {
	if c.reason.Len() > 0 || signature != "" {
		c.blocks = append(c.blocks, Block{Type: BlockReasoning, Text: c.reason.String(), Signature: signature})
	}
	c.reason.Reset()
}

func (c *collector) close() reply {
	c.closeReasoning("")
	c.closeText()
	r := reply{blocks: c.blocks, usage: c.usage, finish: c.finish, began: c.began}
	for _, b := range r.blocks {
		if b.Type == BlockCall {
			r.calls = append(r.calls, b.Call)
		}
	}
	return r
}
