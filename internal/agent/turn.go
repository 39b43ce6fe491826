package agent

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// turn is the state of one running turn. It is used by one goroutine.
type turn struct {
	agent   *Agent
	session Session
	yield   func(Event) bool
	cancel  context.CancelFunc
	started time.Time
	request string // the text of the prompt

	number  int
	seq     int64
	stopped bool  // the consumer went away
	failure error // the log failed

	history folder          // of the session, this turn included
	context meter           // how full the model's window is
	callIDs map[string]bool // all that the session has used
	listed  bool            // the session has seen a listing
	bill    bill
	earlier float64 // what the session's earlier turns have cost, in USD
	budget  string  // the one that ended the turn
	steps   int
	recent  repetition

	overflowed bool // an overflow was handled in this turn
}

// run plays the turn from its first event to its terminal one.
func (t *turn) run(ctx context.Context, content []Block) {
	if err := t.load(ctx); err != nil {
		t.finish(StopError, err)
		return
	}
	t.request = textOf(content)
	t.emit(Event{Type: TurnStarted, Model: t.agent.model.Name(), Message: &Message{Role: RoleUser, Blocks: content}, Note: t.budgetNote()})
	if t.request == "" {
		t.finish(StopError, errors.New("the prompt is empty; write what you want to be done"))
		return
	}
	for {
		stop, err := t.step(ctx)
		if stop != "" {
			t.finish(stop, err)
			return
		}
	}
}

// load reads the session's past, also when the turn is cancelled already: it is
// then logged as such.
func (t *turn) load(ctx context.Context) error {
	events, err := t.session.Log.Events(context.WithoutCancel(ctx))
	if err != nil {
		return &logError{err}
	}
	t.callIDs = make(map[string]bool)
	t.number = 1
	t.context = newMeter(t.agent)
	for _, e := range events {
		t.seq = max(t.seq, e.Seq)
		t.number = max(t.number, e.Turn+1)
		if e.Type == UsageReported && e.CostUSD != nil {
			t.earlier += *e.CostUSD
		}
		t.remember(e)
	}
	return nil
}

// remember keeps what later steps need to know of an event.
func (t *turn) remember(e Event) {
	t.history.add(e)
	t.context.add(e)
	if e.Type == AssistantMessage && e.Message != nil {
		for _, b := range e.Message.Blocks {
			if b.Type == BlockCall {
				t.callIDs[b.Call.ID] = true
			}
		}
	}
	if e.Type == ToolCallFinished && e.Tool == ListTool && e.Result.Status == Completed {
		t.listed = true
	}
}

// step asks the model once and runs the calls of its reply. It returns a stop
// reason when the turn is over.
func (t *turn) step(ctx context.Context) (StopReason, error) {
	if stop := t.interrupted(ctx); stop != "" {
		return stop, t.failure
	}
	if t.steps >= t.agent.limits.MaxTurns {
		return StopMaxTurns, nil
	}
	if budget, err := t.overspent(ctx); err != nil {
		return StopError, err
	} else if budget != "" {
		t.budget = budget
		return StopBudget, nil
	}
	reply, err := t.ask(ctx)
	t.keep(reply)
	if stop := t.interrupted(ctx); stop != "" {
		if !reply.began {
			t.bill.unanswered(t.agent.facts.Price)
		}
		t.skip(reply.calls)
		return stop, t.failure
	}
	if err != nil {
		t.skip(reply.calls)
		return StopError, err
	}
	switch {
	case reply.finish == FinishMaxTokens:
		t.skip(reply.calls)
		return StopMaxTokens, nil
	case reply.finish == FinishRefusal:
		t.skip(reply.calls)
		return StopRefusal, nil
	case len(reply.calls) == 0:
		return StopEndTurn, nil
	}
	return t.runCalls(ctx, reply.calls)
}

// interrupted says why the turn cannot go on, if so.
func (t *turn) interrupted(ctx context.Context) StopReason {
	switch {
	case t.failure != nil:
		return StopError
	case errors.Is(context.Cause(ctx), errTurnTimeout):
		return StopTimeout
	case errors.Is(context.Cause(ctx), errInterrupted):
		return StopInterrupted
	case ctx.Err() != nil || t.stopped:
		return StopCancelled
	}
	return ""
}

// keep emits the reply, as far as it came, and its usage.
func (t *turn) keep(r reply) {
	if len(r.blocks) > 0 {
		t.emit(Event{Type: AssistantMessage, Message: &Message{Role: RoleAssistant, Model: t.agent.model.Name(), Blocks: r.blocks}})
	}
	t.account(r)
}

// runCalls runs the calls of one reply in their order. Every one of them gets
// its result, also when the turn ends in between.
func (t *turn) runCalls(ctx context.Context, calls []*Call) (StopReason, error) {
	for i, call := range calls {
		t.runCall(ctx, call)
		if stop := t.interrupted(ctx); stop != "" {
			t.skip(calls[i+1:])
			return stop, t.failure
		}
		if t.recent.count(call) >= maxIdenticalCalls {
			t.skip(calls[i+1:])
			return StopLoop, nil
		}
	}
	return "", nil
}

// skip answers calls that will not run.
func (t *turn) skip(calls []*Call) {
	for _, call := range calls {
		t.emit(Event{Type: ToolCallStarted, Call: call, CallID: call.ID, Tool: call.Name, Note: NotRun})
		t.emit(Event{Type: ToolCallFinished, CallID: call.ID, Tool: call.Name, Result: &Result{Status: Failed, Text: SkippedResult}})
	}
}

// finish emits the terminal event.
func (t *turn) finish(stop StopReason, err error) {
	usage := t.bill.usage // a copy: the event outlives the turn
	e := Event{
		Type: TurnFinished, Stop: stop, Budget: t.budget, Usage: &usage, ModelCalls: t.steps,
		DurationMS: time.Since(t.started).Milliseconds(), Note: t.missedNote(),
	}
	e.CostUSD, e.CostPartial = t.bill.cost()
	if err != nil {
		e.Error = errorInfo(err)
	}
	t.emit(e)
}

// emit stores events and shows them. Storing does not depend on the turn's
// context: a cancelled turn is stored as such. What cannot be stored is not
// shown, but for the end of the turn.
func (t *turn) emit(events ...Event) {
	now := time.Now().UTC()
	for i := range events {
		t.seq++
		e := &events[i]
		e.Seq, e.Time, e.Session, e.Turn = t.seq, now, t.session.ID, t.number
	}
	if err := t.session.Log.Append(context.Background(), events...); err != nil && t.failure == nil {
		t.failure = &logError{err}
		t.cancel()
	}
	for _, e := range events {
		t.remember(e)
		if t.failure != nil && e.Type != TurnFinished {
			continue
		}
		if !t.stopped && !t.yield(e) {
			t.stopped = true
			t.cancel()
		}
	}
}

// newCallID makes id unique in the session: history and providers need that,
// and some servers send "", or the same one for each call.
func (t *turn) newCallID(id string) string {
	if id == "" || t.callIDs[id] {
		id = "call_" + strings.ToLower(rand.Text())
	}
	t.callIDs[id] = true
	return id
}

// repetition counts how often the same call came in a row.
type repetition struct {
	last string
	n    int
}

func (r *repetition) count(c *Call) int {
	key := c.Name + "\x00" + canonical(c.Input) + "\x00" + c.Malformed
	if key != r.last {
		r.last, r.n = key, 0
	}
	r.n++
	return r.n
}

// canonical makes inputs comparable that differ only in layout or key order.
func canonical(raw json.RawMessage) string {
	var value any
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	if d.Decode(&value) != nil {
		return string(raw)
	}
	out, err := json.Marshal(value)
	if err != nil {
		return string(raw)
	}
	return string(out)
}

// textOf joins the text blocks of a prompt.
func textOf(blocks []Block) string {
	var texts []string
	for _, b := range blocks {
		if b.Type == BlockText {
			texts = append(texts, b.Text)
		}
	}
	return strings.TrimSpace(strings.Join(texts, "\n"))
}
